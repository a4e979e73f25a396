/* BLAKE2b, without a key, as RFC 7693 has it in section 3. A text of up to 2^64 bytes. Words are little-endian. */
#include "base/digest.h"

#include <string.h>

static const uint64_t initial[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                                    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

/* The words of the message, in the order in which each round mixes them. */
static const unsigned char order[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static uint64_t word_at(const unsigned char *bytes) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | bytes[i];
  return word;
}

static uint64_t rotate(uint64_t word, int by) { return word >> by | word << (64 - by); }

static void mix(uint64_t *v, int a, int b, int c, int d, uint64_t x, uint64_t y) {
  v[a] += v[b] + x;
  v[d] = rotate(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = rotate(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = rotate(v[b] ^ v[c], 63);
}

static void take_in(ax_digester *digester, const unsigned char *block, int last) {
  uint64_t v[16], m[16];
  memcpy(v, digester->state, sizeof digester->state);
  memcpy(v + 8, initial, sizeof initial);
  v[12] ^= digester->count;
  if (last) v[14] = ~v[14];
  for (int i = 0; i < 16; i++) m[i] = word_at(block + 8 * i);
  for (int round = 0; round < 12; round++) {
    const unsigned char *s = order[round % 10];
    for (int i = 0; i < 4; i++) mix(v, i, 4 + i, 8 + i, 12 + i, m[s[2 * i]], m[s[2 * i + 1]]);
    for (int i = 0; i < 4; i++) mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
  }
  for (int i = 0; i < 8; i++) digester->state[i] ^= v[i] ^ v[8 + i];
}

void ax_digester_init(ax_digester *digester) {
  memcpy(digester->state, initial, sizeof initial);
  digester->state[0] ^= 0x01010000 ^ sizeof(ax_digest); /* depth 1, fanout 1, no key */
  digester->count = 0;
  digester->filled = 0;
}

void ax_digester_add(ax_digester *digester, const void *data, size_t bytes) {
  const unsigned char *from = data;
  while (bytes > 0) {
    if (digester->filled == sizeof digester->block) {
      digester->count += sizeof digester->block;
      take_in(digester, digester->block, 0);
      digester->filled = 0;
    }
    const size_t room = sizeof digester->block - digester->filled, some = bytes < room ? bytes : room;
    memcpy(digester->block + digester->filled, from, some);
    digester->filled += some;
    from += some;
    bytes -= some;
  }
}

ax_digest ax_digester_finish(ax_digester *digester) {
  ax_digest digest;
  memset(digester->block + digester->filled, 0, sizeof digester->block - digester->filled);
  digester->count += digester->filled;
  take_in(digester, digester->block, 1);
  for (size_t i = 0; i < sizeof digest.bytes; i++) digest.bytes[i] = (unsigned char)(digester->state[i / 8] >> 8 * (i % 8));
  return digest;
}
