/* Vectors that a library may give with either sign. */
#ifndef AX_TESTS_SUPPORT_VECTORS_H
#define AX_TESTS_SUPPORT_VECTORS_H

#include "support/tensor.h"

/* Where results of the program are real eigenvectors of an eigh equation, or u and vt of an svd, turns each vector in `got` that points the
   other way than the one in `wanted`: u's column and vt's row together, since their product is unique, but for those that a full matrix adds. */
void test_align_vectors(const ax_program *program, ax_tensor *const *got, ax_tensor *const *wanted);

#endif
