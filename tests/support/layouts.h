/* Programs laid out over a mesh by specs, beside the same on one device. */
#ifndef AX_TESTS_SUPPORT_LAYOUTS_H
#define AX_TESTS_SUPPORT_LAYOUTS_H

#include "support/run.h"

typedef struct test_layout {
  const char *mesh, *specs; /* "a=2,b=4"; "a; _,b -> ?" */
} test_layout;

ax_program *test_laid_out(const ax_program *program, const test_layout *at); /* owned by the caller */
/* Runs the program whole and laid out, and compares its results, at most 4; tolerance 0: their bits. */
void test_same_laid_out(ax_runtime *runtime, ax_program *program, const test_layout *at, ax_tensor *const *in, double tolerance);
/* The bytes that a device receives. */
double test_received(const ax_program *program, const test_layout *at);

#endif
