/* Into how many parts the work of an instruction may be cut, for threads to share. It follows from sizes alone, so results do not
   depend on the number of threads. */
#ifndef AX_CODE_SPLIT_H
#define AX_CODE_SPLIT_H

#include "code/instr.h"

/* The number of tiles of a GEMM. Large products are cut differently, when they run. */
uint32_t ax_gemm_parts(const ax_gemm *gemm);
/* How many threads are worth waking for `count` products of the batch; rarely a whole number. */
double ax_gemm_wanted_parts(const ax_gemm *gemm, double count);
uint32_t ax_check_parts(const ax_value_check *check);

#endif
