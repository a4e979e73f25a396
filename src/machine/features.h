/* The vector instructions that this machine's processor has. Callers of the library's own vector code ask here first, because it is
   compiled for processors that not every machine has. Code that is made while Axle runs needs none of this: LLVM describes the
   processor to its own code generator (jit/emit/generator.c). */
#ifndef AX_MACHINE_FEATURES_H
#define AX_MACHINE_FEATURES_H

#include "base/base.h"
#include "base/digest.h"

typedef enum ax_feature {
  AX_FEATURE_AVX,
  AX_FEATURE_AVX2,        /* and FMA: the two are used together */
  AX_FEATURE_F16C,        /* conversions of f16 */
  AX_FEATURE_AVX512,      /* F, VL, BW and DQ, without which nothing here uses registers of 64 bytes */
  AX_FEATURE_AVX512_FP16, /* AVX512, and arithmetic on f16 */
  AX_FEATURE_AVX512_VNNI, /* sums of four products of 8 bits */
  AX_FEATURE_AVX512_BF16, /* sums of two products of bf16 */
  /* The same, and it pays: on Intel's processors such sums have half the rate of f32's fused multiply-add, so that a product takes
     longer than by way of f32 (2,048^3: 84 and 53 ms); on AMD's they have twice the rate */
  AX_FEATURE_FAST_AVX512_BF16
} ax_feature;

/* Says whether the processor has it, and the operating system saves the registers that it needs. */
bool ax_machine_has(ax_feature feature);
enum { AX_REGISTER_BYTES = 64 }; /* the widest registers that anything here uses */
/* The bytes of the widest registers of this machine that code is made for: 64, 32 or 16. */
uint32_t ax_machine_register_bytes(void);
/* The bytes of a tile register (AMX); 0: the processor has none, or the system does not save them. */
uint32_t ax_machine_tile_bytes(void);
/* Adds to the digest all that decides which instructions this processor has. Two processors that add the same can run the same
   machine code. False: this kind of processor does not say, and nothing was added. */
AX_MUST_USE bool ax_machine_add_identity(ax_digester *digester);

#endif
