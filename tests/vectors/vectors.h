/* The programs whose results JAX has computed: tables of cases, one a group, in NAME.c beside NAME.py, which says them in JAX. */
#ifndef AX_TESTS_VECTORS_H
#define AX_TESTS_VECTORS_H

#include <stddef.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"

/* A variant of a case: what a body gets as its context. */
typedef struct vector_variant {
  ax_mesh mesh;
  int64_t members; /* how many devices the case's collectives go over */
  char axes[64];   /* those axes: "b,a"; "" without a mesh */
} vector_variant;

typedef struct vector_case {
  const char *name;
  const char *variants; /* between blanks: dtypes, or meshes "a=4,b=2:b,a": see case.py */
  const char *specs; /* the body runs in a shard_map over the variant's mesh: "A . > R", see case.py; NULL: as it is */
  ax_value (*unary)(ax_value); /* one of these three */
  ax_value (*binary)(ax_value, ax_value);
  ax_function body; /* context: the vector_variant */
  uint32_t in, out; /* how many; 0 for 1 (binary: 2) */
  bool unchecked;
  const char *modes;  /* NULL: "vjg": values, jvp, gradient */
  double ulps;        /* how far results may be apart, in units of the dtype's epsilon; 0: 16 */
  bool scaled;        /* of the largest element of the result, or of 1 if that is larger, not of each */
  const char *no_hlo; /* why this case has no StableHLO, or XLA other results; NULL: it has */
} vector_case;

typedef struct vector_group {
  const char *name;
  const vector_case *cases;
  size_t count;
} vector_group;

extern const vector_group vectors_pointwise, vectors_arrays, vectors_parts, vectors_indexing, vectors_einsum, vectors_composites,
    vectors_nn, vectors_numpy_functions, vectors_transforms, vectors_collectives, vectors_groups, vectors_ragged, vectors_reduced, vectors_mesh, vectors_partial,
    vectors_pmap, vectors_control, vectors_derivatives, vectors_custom, vectors_checkpoint, vectors_mlp, vectors_windows,
    vectors_kernels, vectors_kernel_transforms, vectors_reductions, vectors_cumulative, vectors_linalg;
extern const vector_group vectors_special;
extern const vector_group vectors_solvers;
extern const vector_group vectors_fft;
extern const vector_group vectors_incomplete;
extern const vector_group vectors_complex_numbers;

extern const vector_group vectors_random_draws, vectors_keys;

#define VECTOR_GROUP(name) \
  vector_group vectors_##name = {#name, name##_cases, sizeof name##_cases / sizeof name##_cases[0]}

/* Attributes in few words. */
#define DIMS(...) AX_DIMS(__VA_ARGS__)
#define LIST(...) ((int64_t[]){__VA_ARGS__})
#define BODY(name) static void name(const ax_value *in, ax_value *out, __attribute__((unused)) void *context)

#endif
