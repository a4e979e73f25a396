/* The kernels that make the products of a dtype: the first entry for it whose instructions the processor has. The kernels' files
   are compiled for such processors, so nothing in them is called before this file has asked for their features.

   All kernels are Axle's own; see README.md for why. Each entry that is not simply the widest says what was measured. */
#include "product/table.h"

#include "machine/caches.h"
#include "machine/features.h"
#include "product/kernels_512.h"

uint32_t ax_product_hidden, ax_product_added;

#define IS(dtype) (1u << (dtype))
#define NEEDS(feature) (1u << AX_FEATURE_##feature)

enum {
  words_ = IS(AX_S32) | IS(AX_U32),
  base_256 = NEEDS(AVX2) | NEEDS(F16C),
  base_512 = NEEDS(AVX512),
  amx = NEEDS(AVX512) | NEEDS(AVX512_VNNI)
};

static const ax_product_entry entries[] = {
#if defined(__x86_64__)
    /* AMX: 512 multiplications and additions of bf16 a cycle, 8 times AVX-512's f32 (one core of a Xeon, 512^3: 1,560 GF/s, beside 110
       by pairs and 210 by f32); twice as many of s8 (3,980, beside 877 by fours). */
    {IS(AX_BF16), amx | NEEDS(AMX_BF16), 64, "amx_bf16", ax_product_amx_pairs},
    {IS(AX_S8), amx | NEEDS(AMX_INT8), 64, "amx_int8", ax_product_amx_fours},
    {IS(AX_U8), amx | NEEDS(AMX_INT8), 64, "amx_uint8", ax_product_amx_u8_fours},
    /* Pairs have twice f32's rate on AMD's processors, and half of it on Intel's (111 and 218 GF/s a core). */
    {IS(AX_BF16), base_512 | NEEDS(FAST_AVX512_BF16), 64, "pairs_512", ax_product_512_pairs},
    {IS(AX_BF16), base_512, 64, "bf16_512", ax_product_512_bf16},
    {IS(AX_F16), base_512, 64, "f16_512", ax_product_512_f16},
    {IS(AX_F32), base_512, 64, "f32_512", ax_product_512_f32},
    {IS(AX_F64), base_512, 64, "f64_512", ax_product_512_f64},
    {IS(AX_S8), base_512 | NEEDS(AVX512_VNNI), 64, "fours_512", ax_product_512_fours},
    {IS(AX_U8), base_512 | NEEDS(AVX512_VNNI), 64, "u8_fours_512", ax_product_512_u8_fours},
    {IS(AX_S8), base_512, 64, "s8_512", ax_product_512_s8},
    {IS(AX_U8), base_512, 64, "u8_512", ax_product_512_u8},
    {words_, base_512, 64, "s32_512", ax_product_512_s32},
    /* Also processors whose AVX10 has registers of 32 bytes: they have AVX2. */
    {IS(AX_S8), base_256 | NEEDS(AVX_VNNI), 32, "fours_256", ax_product_256_fours},
    {IS(AX_U8), base_256 | NEEDS(AVX_VNNI), 32, "u8_fours_256", ax_product_256_u8_fours},
    {IS(AX_BF16), base_256, 32, "bf16_256", ax_product_256_bf16},
    {IS(AX_F16), base_256, 32, "f16_256", ax_product_256_f16},
    {IS(AX_F32), base_256, 32, "f32_256", ax_product_256_f32},
    {IS(AX_F64), base_256, 32, "f64_256", ax_product_256_f64},
    {IS(AX_S8), base_256, 32, "s8_256", ax_product_256_s8},
    {IS(AX_U8), base_256, 32, "u8_256", ax_product_256_u8},
    {words_, base_256, 32, "s32_256", ax_product_256_s32},
#endif
    {IS(AX_BF16), 0, 16, "bf16_128", ax_product_128_bf16},
    {IS(AX_F16), 0, 16, "f16_128", ax_product_128_f16},
    {IS(AX_F32), 0, 16, "f32_128", ax_product_128_f32},
    {IS(AX_F64), 0, 16, "f64_128", ax_product_128_f64},
    {IS(AX_S8), 0, 16, "s8_128", ax_product_128_s8},
    {IS(AX_U8), 0, 16, "u8_128", ax_product_128_u8},
    {words_, 0, 16, "s32_128", ax_product_128_s32},
};

/* The processor is asked for the features of one entry after the other, so that it is asked for AMX by products of bf16 and of
   bytes alone. */
static bool has_all(uint32_t needs) {
  for (int feature = 0; needs >> feature != 0; feature++) {
    const uint32_t one = needs & 1u << feature;
    if (one == 0 || (one & ax_product_added) != 0) continue;
    if ((one & ax_product_hidden) != 0 || !ax_machine_has((ax_feature)feature)) return false;
  }
  return true;
}

static const ax_product_entry *first(ax_dtype dtype, uint32_t most_bytes, const uint32_t *features) {
  for (size_t i = 0; i < AX_COUNT(entries); i++) {
    const ax_product_entry *e = &entries[i];
    if ((e->dtypes & IS(dtype)) == 0 || e->bytes > most_bytes || e->kernels() == NULL) continue;
    if (features != NULL ? (e->needs & ~*features) == 0 : has_all(e->needs)) return e;
  }
  return NULL;
}

const ax_product_entry *ax_product_entry_of(ax_dtype dtype, uint32_t most_bytes, uint32_t features) {
  return first(dtype, most_bytes, &features);
}

bool ax_product_rounds(ax_dtype dtype, int64_t k) {
  if (ax_machine_is_described()) return dtype == AX_BF16 || dtype == AX_F16;
  const ax_product_kernels *kernels = ax_product_kernels_of(dtype, 64);
  return kernels != NULL && kernels->round != NULL && k <= (int64_t)kernels->block_steps * kernels->unit;
}

bool ax_product_in_units(ax_dtype dtype) {
  const ax_product_kernels *kernels = ax_product_kernels_of(dtype, 64);
  return kernels != NULL && kernels->unit > 1;
}

const ax_product_kernels *ax_product_kernels_of(ax_dtype dtype, uint32_t most_bytes) {
  const ax_product_entry *entry = first(dtype, most_bytes, NULL);
  return entry != NULL ? entry->kernels() : NULL;
}
