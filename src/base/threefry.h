/* Threefry2x32 with 20 rounds, the generator of random bits: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3
   (2011). A key and a count give 64 bits; other counts give others, which nobody can tell from random ones. The two words of 32 bits
   of a key, a count and a result stand in one number, the first one above. */
#ifndef AX_BASE_THREEFRY_H
#define AX_BASE_THREEFRY_H

#include <stdint.h>

enum { AX_THREEFRY_GROUPS = 5, AX_THREEFRY_ROUNDS = 4 }; /* of rounds, in a group; after each group the key comes in */
/* What a round rotates by; groups take the rows by turns. */
static const uint8_t ax_threefry_rotations[2][AX_THREEFRY_ROUNDS] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
/* The third word of a key is this, xor the two others. */
static const uint32_t ax_threefry_parity = 0x1bd11bda;

static inline uint64_t ax_threefry_bits(uint64_t key, uint64_t count) {
  const uint32_t high = (uint32_t)(key >> 32), low = (uint32_t)key, words[3] = {high, low, high ^ low ^ ax_threefry_parity};
  uint32_t x0 = (uint32_t)(count >> 32) + words[0], x1 = (uint32_t)count + words[1];
  for (uint32_t group = 0; group < AX_THREEFRY_GROUPS; group++) {
    for (int i = 0; i < AX_THREEFRY_ROUNDS; i++) {
      const int by = ax_threefry_rotations[group % 2][i];
      x0 += x1;
      x1 = (x1 << by | x1 >> (32 - by)) ^ x0;
    }
    x0 += words[(group + 1) % 3];
    x1 += words[(group + 2) % 3] + group + 1;
  }
  return (uint64_t)x0 << 32 | x1;
}

#endif
