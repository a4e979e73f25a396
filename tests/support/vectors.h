/* Vectors that a library may give with either sign. */
#ifndef AX_TESTS_SUPPORT_VECTORS_H
#define AX_TESTS_SUPPORT_VECTORS_H

#include "ir/program.h"
#include "support/tensor.h"

/* Where results of the program are real eigenvectors of an eigh equation, or u and vt of an svd, turns each vector in `got` that points the
   other way than the one in `wanted`: u's column and vt's row together, since their product is unique, but for those that a full matrix adds. */
void test_align_vectors(const ax_program *program, ax_tensor *const *got, ax_tensor *const *wanted);

/* The program with other results where it has an eig or schur equation: those that are the same whatever order eigenvalues
   have, which numbers of size 1 vectors are multiplied by, and which vectors there are of equal values. With t for diag(w), and
   x for the equation's operand: x + (q t - x q) and q^H q; for eigenvectors q the same with l^H, and the diagonal of q^H q
   alone; 1 and what stands where t is zero; and the traces of t, t^2 .. t^n. So t and q are a form of x, and t has x's
   eigenvalues, each as often. Without such an equation `program` itself, retained. */
AX_MUST_USE ax_status test_fixed_program(const ax_program *program, ax_program **out);

#endif
