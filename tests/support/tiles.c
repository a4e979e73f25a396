/* See tiles.h. The instructions, their encodings and what they do are those of Intel's manual (volume 2): VEX prefix with three
   bytes, map 0F38, one opcode for each group of instructions, chosen among by the prefix pp. An instruction that is not one of
   them, or that a processor would refuse, is left to the handler that was there before. */
#include "support/tiles.h"

#if defined(__x86_64__) && defined(__linux__)

#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <ucontext.h>

enum { tiles = 8, tile_rows = 16, row_bytes = 64 };

typedef struct tile {
  int rows, bytes; /* in a row */
  uint8_t content[tile_rows][row_bytes];
} tile;

static _Thread_local tile tile_of[tiles];
static _Thread_local bool taken;
static atomic_ulong products;
static struct sigaction before;

typedef struct decoded {
  int opcode, prefix; /* prefix: 0 none, 1 66, 2 F3, 3 F2 */
  int reg, rm, third; /* numbers of tiles */
  bool memory;
  char *address;
  int64_t stride; /* the index register, scaled */
  int bytes;      /* of the instruction */
} decoded;

/* In the order of their numbers in instructions. */
static int64_t register_of(const ucontext_t *c, int number) {
  static const int names[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return c->uc_mcontext.gregs[names[number]];
}

static int64_t displacement(const uint8_t *p, int bytes) {
  int32_t far = 0;
  if (bytes == 1) return (int8_t)*p;
  memcpy(&far, p, (size_t)bytes);
  return far;
}

/* Takes the operand in memory, whose ModRM byte is *p. `high`: the bits of VEX that extend the numbers of base and index. */
static void take_address(decoded *d, const ucontext_t *c, const uint8_t *p, int base_high, int index_high) {
  const int mod = *p >> 6, rm = *p & 7;
  const bool has_sib = rm == 4;
  const uint8_t sib = has_sib ? p[1] : 0;
  const int base = has_sib ? sib & 7 : rm, index = (sib >> 3 & 7) + index_high;
  const bool bare = mod == 0 && base == 5; /* no base: an address alone, or one from the next instruction on */
  const int more = mod == 1 ? 1 : mod == 2 || bare ? 4 : 0;
  int64_t at = displacement(p + 1 + has_sib, more);
  d->bytes += 1 + has_sib + more;
  if (!bare) at += register_of(c, base + base_high);
  else if (!has_sib) at += c->uc_mcontext.gregs[REG_RIP] + d->bytes;
  d->stride = has_sib && index != 4 ? (int64_t)((uint64_t)register_of(c, index) << (sib >> 6)) : 0;
  d->address = (char *)(intptr_t)at;
}

static bool decode(decoded *d, const ucontext_t *c) {
  const uint8_t *p = (const uint8_t *)(intptr_t)c->uc_mcontext.gregs[REG_RIP];
  if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x84) != 0) return false; /* map 0F38, W 0, L 0 */
  *d = (decoded){.opcode = p[3], .prefix = p[2] & 3, .reg = p[4] >> 3 & 7, .rm = p[4] & 7, .third = ~p[2] >> 3 & 7,
                 .memory = p[4] >> 6 != 3, .bytes = 4};
  if (d->memory) take_address(d, c, p + 4, p[1] & 0x20 ? 0 : 8, p[1] & 0x40 ? 0 : 8);
  else d->bytes++;
  return true;
}

static bool load_shapes(const uint8_t *from) {
  if (from[0] != 1 || from[1] != 0) return false;
  memset(tile_of, 0, sizeof tile_of);
  for (int i = 0; i < tiles; i++) {
    uint16_t bytes;
    memcpy(&bytes, from + 16 + 2 * i, sizeof bytes);
    tile_of[i].bytes = bytes;
    tile_of[i].rows = from[48 + i];
    if (bytes > row_bytes || from[48 + i] > tile_rows || (bytes == 0) != (from[48 + i] == 0)) return false;
  }
  taken = true;
  return true;
}

static bool load(tile *t, const decoded *d) {
  memset(t->content, 0, sizeof t->content);
  for (int row = 0; row < t->rows; row++) memcpy(t->content[row], d->address + row * d->stride, (size_t)t->bytes);
  return t->rows > 0;
}

static bool store(const tile *t, const decoded *d) {
  for (int row = 0; row < t->rows; row++) memcpy(d->address + row * d->stride, t->content[row], (size_t)t->bytes);
  return t->rows > 0;
}

/* --- Products --- */

static inline uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
static inline float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
/* Subnormal numbers are 0, of their sign. */
static inline float flushed(float x) { return float_of((bits_of(x) & 0x7f800000) == 0 ? bits_of(x) & 0x80000000 : bits_of(x)); }

/* One row of c. As the manual has it, with sums that it keeps in two chains. */
__attribute__((target("fma"))) static void multiply_halves(float *c, const uint32_t *a, const tile *b, int steps, int columns) {
  float first[tile_rows] = {0}, second[tile_rows] = {0};
  for (int k = 0; k < steps; k++)
    for (int n = 0; n < columns; n++) {
      uint32_t right;
      memcpy(&right, &b->content[k][4 * n], sizeof right);
      first[n] = flushed(__builtin_fmaf(flushed(float_of(a[k] << 16)), flushed(float_of(right << 16)), first[n]));
      second[n] =
          flushed(__builtin_fmaf(flushed(float_of(a[k] & 0xffff0000)), flushed(float_of(right & 0xffff0000)), second[n]));
    }
  for (int n = 0; n < columns; n++) c[n] = flushed(flushed(c[n]) + flushed(first[n] + second[n]));
}

/* prefix: which factors are signed. */
static int product_of_bytes(uint8_t a, uint8_t b, int prefix) {
  const int left = prefix >= 2 ? (int8_t)a : a, right = prefix == 1 || prefix == 3 ? (int8_t)b : b;
  return left * right;
}

static void multiply_bytes(uint32_t *c, const uint8_t *a, const tile *b, int steps, int columns, int prefix) {
  for (int n = 0; n < columns; n++)
    for (int k = 0; k < 4 * steps; k++) c[n] += (uint32_t)product_of_bytes(a[k], b->content[k / 4][4 * n + k % 4], prefix);
}

static bool multiply(const decoded *d) {
  tile *c = &tile_of[d->reg];
  const tile *a = &tile_of[d->rm], *b = &tile_of[d->third];
  const int steps = a->bytes / 4, columns = c->bytes / 4;
  if (c == a || c == b || a == b || c->rows != a->rows || c->bytes != b->bytes || steps != b->rows) return false;
  for (int row = 0; row < c->rows; row++) {
    uint32_t sums[tile_rows], left[tile_rows];
    float floats[tile_rows];
    memcpy(sums, c->content[row], sizeof sums);
    memcpy(floats, c->content[row], sizeof floats);
    memcpy(left, a->content[row], sizeof left);
    if (d->opcode == 0x5c) multiply_halves(floats, left, b, steps, columns);
    else multiply_bytes(sums, a->content[row], b, steps, columns, d->prefix);
    memcpy(c->content[row], d->opcode == 0x5c ? (const void *)floats : (const void *)sums, (size_t)c->bytes);
  }
  atomic_fetch_add(&products, 1);
  return true;
}

/* False: this is no instruction on tiles, or one that a processor would refuse. */
static bool compute(const decoded *d) {
  tile *t = &tile_of[d->reg];
  switch (d->opcode << 2 | d->prefix) {
    case 0x49 << 2: /* LDTILECFG, TILERELEASE */
      if (d->memory) return load_shapes((const uint8_t *)d->address);
      taken = false;
      memset(tile_of, 0, sizeof tile_of);
      return true;
    case 0x49 << 2 | 3: /* TILEZERO */
      memset(t->content, 0, sizeof t->content);
      return t->rows > 0;
    case 0x4b << 2 | 1:
    case 0x4b << 2 | 3: return load(t, d);                      /* TILELOADDT1, TILELOADD */
    case 0x4b << 2 | 2: return store(t, d);                     /* TILESTORED */
    case 0x5c << 2 | 2: return !d->memory && multiply(d);       /* TDPBF16PS */
    case 0x5e << 2 | 0: case 0x5e << 2 | 1: case 0x5e << 2 | 2: /* TDPBUUD, TDPBUSD, TDPBSUD */
    case 0x5e << 2 | 3: return !d->memory && multiply(d);       /* TDPBSSD */
    default: return false;
  }
}

static void on_illegal(int signal_number, siginfo_t *info, void *context) {
  (void)info;
  ucontext_t *c = context;
  decoded d;
  if (decode(&d, c) && compute(&d)) c->uc_mcontext.gregs[REG_RIP] += d.bytes;
  else sigaction(signal_number, &before, NULL); /* it comes again */
}

bool test_tiles_catch(void) {
  struct sigaction catching = {.sa_flags = SA_SIGINFO}, old;
  catching.sa_sigaction = on_illegal;
  if (sigaction(SIGILL, &catching, &old) != 0) return false;
  if (old.sa_sigaction != on_illegal) before = old;
  return true;
}
uint64_t test_tiles_products(void) { return atomic_load(&products); }
bool test_tiles_taken(void) { return taken; }

#else

bool test_tiles_catch(void) { return false; }
uint64_t test_tiles_products(void) { return 0; }
bool test_tiles_taken(void) { return false; }

#endif
