/* Chooses among the kernels for registers of 64 bytes: AVX-512, and its products of bf16 and s8 if the processor has them. The
   kernels' files are compiled for such a processor, so nothing in them is called before this file has asked the processor. */
#include "product/kernels_512.h"

const ax_product_kernels *ax_product_kernels_512(ax_dtype dtype) {
#if defined(__x86_64__)
  const bool narrow = dtype == AX_S8 || dtype == AX_U8;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return NULL;
  if (narrow && __builtin_cpu_supports("avx512vnni") && ax_product_512_fours() != NULL) return ax_product_512_fours();
  if (dtype == AX_BF16 && __builtin_cpu_supports("avx512bf16") && ax_product_512_pairs() != NULL) return ax_product_512_pairs();
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
