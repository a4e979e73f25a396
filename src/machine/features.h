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
  AX_FEATURE_FAST_AVX512_BF16,
  AX_FEATURE_AVX_VNNI, /* sums of four products of 8 bits in registers of 32 bytes, where AVX-512 is missing */
  /* A gather of numbers that caches hold takes a third of the time of loads one by one: Intel's processors with AVX_VNNI or later. Those before
     them check each gather against reads of what others left behind, and AMD's load one by one themselves. */
  AX_FEATURE_FAST_GATHERS,
  AX_FEATURE_AMX_BF16, /* products of tiles of bf16; of s8 and u8. The system has given leave to use tiles */
  AX_FEATURE_AMX_INT8
} ax_feature;

/* A processor's and its system's account of themselves: words of the CPUID instruction, by leaf and part. */
typedef struct ax_processor_words {
  uint32_t leaf_1_ecx, leaf_7_ebx, leaf_7_ecx, leaf_7_edx, leaf_7_1_eax;
  uint64_t saved; /* XCR0: the register state that the system saves; 0: none */
  bool intel;
} ax_processor_words;

/* The features of such a processor: a bit each, 1 << AX_FEATURE_.. AMX is among them if the system saves tiles, before it is
   asked for leave. For a processor of another kind than x86-64 all words are 0. */
uint32_t ax_features_of(const ax_processor_words *words);

/* Says whether the processor has it, and the operating system saves the registers that it needs. The first question for AMX asks
   the system for leave to use tiles: for the process, all its threads and those it forks. The system refuses if a thread has an
   alternative signal stack that is too small for tiles; then there is no AMX. */
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
