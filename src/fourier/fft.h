/* The parameters of fft, and its block rule. */
#ifndef AX_FOURIER_FFT_H
#define AX_FOURIER_FFT_H

#include "prim/prims.h"

typedef struct ax_fft_params {
  const char *fft_type;
  int64_t fft_length, axis;
} ax_fft_params;

void ax_fft_block(const ax_block_args *args);

#endif
