/* Kernels for registers of 16 bytes, in plain C: for any processor. Multiplications and additions round one after the other. */
#include "product/table.h"

#include <string.h>

#include "ir/number.h"

typedef float floats __attribute__((vector_size(16)));
typedef double doubles __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));

/* --- f32 --- */

static inline floats f32_load(const char *p) {
  floats x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline floats f32_load_some(const char *p, int count) {
  floats x = {0};
  memcpy(&x, p, (size_t)count * sizeof x[0]);
  return x;
}
static inline void f32_store(char *p, floats x) { memcpy(p, &x, sizeof x); }
static inline void f32_store_some(char *p, floats x, int count) { memcpy(p, &x, (size_t)count * sizeof x[0]); }
static inline floats f32_broadcast(const char *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return x - (floats){0};
}
static inline floats f32_multiply_add(floats sum, floats a, floats b) { return sum + a * b; }
static inline floats f32_unit_along(const char *p, int count) { return count == 4 ? f32_load(p) : f32_load_some(p, count); }

#define KIND(name) f32_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- f64 --- */

static inline doubles f64_load(const char *p) {
  doubles x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline doubles f64_load_some(const char *p, int count) {
  doubles x = {0};
  memcpy(&x, p, (size_t)count * sizeof x[0]);
  return x;
}
static inline void f64_store(char *p, doubles x) { memcpy(p, &x, sizeof x); }
static inline void f64_store_some(char *p, doubles x, int count) { memcpy(p, &x, (size_t)count * sizeof x[0]); }
static inline doubles f64_broadcast(const char *p) {
  double x;
  memcpy(&x, p, sizeof x);
  return x - (doubles){0};
}
static inline doubles f64_multiply_add(doubles sum, doubles a, doubles b) { return sum + a * b; }
static inline doubles f64_unit_along(const char *p, int count) { return count == 2 ? f64_load(p) : f64_load_some(p, count); }

#define KIND(name) f64_##name
#define UNITS(name) f64_##name
#define RESULTS(name) f64_##name
#define MULTIPLY_ADD f64_multiply_add
#define LANES 2
#define ROWS 4
#define UNIT 1
#define SOME 0
#define FACTOR doubles
#define SUM doubles
#define NUMBER_BYTES 8
#include "product/tile_template.h"

/* --- s32 and u32 --- */

static inline words s32_load(const char *p) {
  words x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline words s32_load_some(const char *p, int count) {
  words x = {0};
  memcpy(&x, p, (size_t)count * sizeof x[0]);
  return x;
}
static inline void s32_store(char *p, words x) { memcpy(p, &x, sizeof x); }
static inline void s32_store_some(char *p, words x, int count) { memcpy(p, &x, (size_t)count * sizeof x[0]); }
static inline words s32_broadcast(const char *p) {
  uint32_t x;
  memcpy(&x, p, sizeof x);
  return x - (words){0};
}
static inline words s32_multiply_add(words sum, words a, words b) { return sum + a * b; }
static inline words s32_unit_along(const char *p, int count) { return count == 4 ? s32_load(p) : s32_load_some(p, count); }

#define KIND(name) s32_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 4
#include "product/tile_template.h"

/* --- bf16 and f16 made f32 when they are packed --- */

static inline floats some_floats(ax_dtype dtype, const char *p, int count) {
  floats x = {0};
  for (int i = 0; i < count; i++) x[i] = (float)ax_number_load(dtype, p, i).f;
  return x;
}

static inline floats bf16_unit_along(const char *p, int count) { return some_floats(AX_BF16, p, count); }

static void bf16_round(const ax_rounding *r) { ax_round_rows(r, ax_bf16_round_row); }

#define KIND(name) bf16_##name
#define ROUND bf16_round
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

static inline floats f16_unit_along(const char *p, int count) { return some_floats(AX_F16, p, count); }

#define KIND(name) f16_##name
#define UNITS(name) f32_##name
#define RESULTS(name) f32_##name
#define MULTIPLY_ADD f32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR floats
#define SUM floats
#define NUMBER_BYTES 2
#include "product/tile_template.h"

/* --- s8 and u8 made 32 bits when they are packed --- */

static inline words s8_unit_along(const char *p, int count) {
  words x = {0};
  for (int i = 0; i < count; i++) x[i] = (uint32_t)(int8_t)p[i];
  return x;
}

#define KIND(name) s8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

static inline words u8_unit_along(const char *p, int count) {
  words x = {0};
  for (int i = 0; i < count; i++) x[i] = (uint8_t)p[i];
  return x;
}

#define KIND(name) u8_##name
#define UNITS(name) s32_##name
#define RESULTS(name) s32_##name
#define MULTIPLY_ADD s32_multiply_add
#define LANES 4
#define ROWS 6
#define UNIT 1
#define SOME 0
#define FACTOR words
#define SUM words
#define NUMBER_BYTES 1
#include "product/tile_template.h"

const ax_product_kernels *ax_product_128_f32(void) { return &f32_kernels; }
const ax_product_kernels *ax_product_128_f64(void) { return &f64_kernels; }
const ax_product_kernels *ax_product_128_s32(void) { return &s32_kernels; }
const ax_product_kernels *ax_product_128_s8(void) { return &s8_kernels; }
const ax_product_kernels *ax_product_128_u8(void) { return &u8_kernels; }
const ax_product_kernels *ax_product_128_bf16(void) { return &bf16_kernels; }
const ax_product_kernels *ax_product_128_f16(void) { return &f16_kernels; }
