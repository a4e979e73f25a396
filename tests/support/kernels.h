/* Kernels that several tests run, as functions of programs. */
#ifndef AX_TESTS_SUPPORT_KERNELS_H
#define AX_TESTS_SUPPORT_KERNELS_H

#include "axle/kernel.h"

extern const ax_core_mesh test_one_core;

void test_plain(const ax_value *in, ax_value *out, void *context);   /* f32[4] -> f32[4], plus 1 */
void test_doubled(const ax_value *in, ax_value *out,
                  void *context); /* f32[3,2] -> f32[3,2], row by row, by copies into a scope and out of it */

#endif
