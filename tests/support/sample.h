/* Samples of the primitives: programs as text, with holes for dtypes and shapes, and what the walk over the table has to know to
   judge them. The table stands in samples.c; a new primitive is tested once it has a row there.

   Holes are capital letters that stand alone:  O the primitive's name;  T a dtype, each in turn (those the primitive refuses are
   passed over);  U another, likewise;  S the dimensions of an array. */
#ifndef AX_TESTS_SUPPORT_SAMPLE_H
#define AX_TESTS_SUPPORT_SAMPLE_H

#include "support/random.h"

typedef struct test_sample {
  const char *prim, *text;    /* text: a program without its axes */
  const char *axes;           /* "d=2; a=2 b=2": the environments to try it in, one after the other; NULL: none */
  const char *linear;         /* "xy z": linear in x and y together, and in z; the names are the text's */
  double low, high;           /* where it is smooth; both 0: -2 and 2 */
  unsigned ulps, narrow_ulps; /* how far results may be off, f32 and f64, and bf16 and f16 */
  bool sums;                  /* order may matter: results may be off by the rounding of a sum of absolute values */
  bool generic;               /* not at edge values: what becomes of them depends on the order of operations */
  bool complex_generic;       /* nor complex numbers */
  bool by_largest;            /* results are off by `ulps` of the largest element, as a library's */
  bool stops_gradients;       /* its derivative is zero by definition */
  bool forward_only;          /* no transpose */
  bool own_derivative;        /* backwards alone, and its own (src/control/custom_test.c) */
  bool two_sides;             /* a member of its axes is no member of a batch */
  bool no_batch;              /* there is no batch rule */
  bool kernel;                /* it is a kernel, or a step in one, whose axes are those of the text */
} test_sample;

extern const test_sample test_samples[];
extern const size_t test_sample_count;

typedef struct test_instance {
  const test_sample *sample;
  ax_dtype t, u;
  const char *shape;
  char axes[64];
  ax_program *program;
  char names[16]; /* of the inputs, a letter each */
} test_instance;

typedef struct test_variety { /* what goes into the holes */
  const ax_dtype *dtypes, *others;
  uint32_t dtype_count, other_count;
  const char *const *shapes;
  uint32_t shape_count;
} test_variety;
extern const test_variety test_in_f64; /* a few shapes; everything in f64 */
extern const test_variety test_in_c128; /* the same in c128, with f64 for U */
extern const ax_dtype test_dtypes[];   /* all */
enum { test_dtype_count = AX_DTYPE_COUNT - 1 };

typedef struct test_instances {
  test_instance *v;
  uint32_t count;
} test_instances;
/* Of a sample, in every variety it allows; of many dtypes, and of many pairs of them, those but the commonest each in a third of many shapes,
   others for the next. */
test_instances test_instances_of(const test_sample *sample, const test_variety *variety);
/* The same instance in f64. */
test_instance test_instance_in_f64(const test_instance *instance);
void test_instance_release(test_instance *instance);
void test_instances_release(test_instances *instances);

/* A seed of its own for each instance. */
test_random test_instance_random(const test_instance *instance);
/* A generic point of the sample's. */
double test_low(const test_sample *sample);
double test_high(const test_sample *sample);

/* Reports what is wrong with an instance; the test goes on. */
void test_blame(const test_instance *instance, const char *format, ...) AX_PRINTF(2, 3);
/* As TEST_OK, but blames the instance; false when the status is an error. */
bool test_passes(const test_instance *instance, const char *what, ax_status status);
/* Fails the test if anything was blamed since the last call. */
void test_blameless(void);

#endif
