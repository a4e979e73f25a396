/* Chooses among the kernels for registers of 64 bytes: AVX-512, and its products of bf16 and s8 if the processor has them. The
   kernels' files are compiled for such a processor, so nothing in them is called before this file has asked the processor. */
#include "product/kernels_512.h"

#include "machine/features.h"

bool ax_product_avoids_pairs;

const ax_product_kernels *ax_product_kernels_512(ax_dtype dtype) {
#if defined(__x86_64__)
  const bool narrow = dtype == AX_S8 || dtype == AX_U8;
  if (!ax_machine_has(AX_FEATURE_AVX512)) return NULL;
  if (narrow && ax_machine_has(AX_FEATURE_AVX512_VNNI) && ax_product_512_fours() != NULL) return ax_product_512_fours();
  const bool pairs = !ax_product_avoids_pairs && ax_machine_has(AX_FEATURE_FAST_AVX512_BF16);
  if (dtype == AX_BF16 && pairs && ax_product_512_pairs() != NULL) return ax_product_512_pairs();
  switch ((int)dtype) {
    case AX_F32: return ax_product_512_f32();
    case AX_F64: return ax_product_512_f64();
    case AX_S32:
    case AX_U32: return ax_product_512_s32();
    case AX_S8:
    case AX_U8: return ax_product_512_s8();
    case AX_BF16: return ax_product_512_bf16();
    case AX_F16: return ax_product_512_f16();
    default: return NULL;
  }
#else
  (void)dtype;
  return NULL;
#endif
}
