/* Fourier transforms along dimensions that are cut over devices: beside those of one device, with their bits where lines are
   transformed whole; what devices receive; among other operations, and derivatives. */
#include <string.h>

#include "axle/numpy.h"
#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "fourier/fft.h"
#include "ir/prim.h"
#include "support/cmocka.h"
#include "support/layouts.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

static ax_runtime *runtime;

/* In the order in which ax_fft, ax_ifft, ax_rfft and ax_irfft stand. */
typedef enum direction { FORWARD, BACK, REAL, REAL_BACK } direction;

typedef struct transform {
  direction direction;
  int64_t n, axis;
} transform;

static AX_BODY(transformed) {
  const transform *t = context;
  switch (t->direction) {
    case FORWARD: out[0] = ax_fft(in[0], t->axis); break;
    case BACK: out[0] = ax_ifft(in[0], t->axis); break;
    case REAL: out[0] = ax_rfft(in[0], t->axis); break;
    case REAL_BACK: out[0] = ax_irfft(in[0], t->n, t->axis); break;
  }
}

static ax_type type_of(const transform *t, bool wide, uint32_t rank, const int64_t *dims) {
  ax_type type = {.form = AX_ARRAY, .dtype = wide ? AX_C128 : AX_C64, .rank = rank};
  memcpy(type.dims, dims, rank * sizeof dims[0]);
  if (t->direction == REAL) type.dtype = wide ? AX_F64 : AX_F32;
  type.dims[t->axis] = t->direction == REAL_BACK ? t->n / 2 + 1 : t->n;
  return type;
}

static uint32_t count_of(const ax_program *program, const test_layout *at, const char *prim) {
  ax_program *laid = test_laid_out(program, at), *partitioned;
  TEST_OK(ax_program_partition(laid, &partitioned));
  const uint32_t count = (uint32_t)test_count_prim(partitioned, prim);
  ax_program_release(laid), ax_program_release(partitioned);
  return count;
}

/* --- Whole lines --- */

typedef struct lines {
  uint32_t rank;
  int64_t dims[4], axis;
  test_layout at;
} lines;

static void whole_lines(void **state) {
  (void)state;
  static const lines cases[] = {
      {2, {96, 256}, 1, {"a=2", "_,a -> _,a"}},
      {2, {96, 256}, 1, {"a=8", "_,a -> _,a"}},
      {2, {256, 96}, 0, {"a=8", "a -> a"}},
      {2, {256, 96}, 0, {"a=2,b=4", "a+b -> a+b"}},
      {2, {256, 97}, 0, {"a=8", "a -> a"}},                     /* uneven lines */
      {2, {40, 1000}, 1, {"a=8", "_,a -> _,a"}},
      {2, {40, 1001}, 1, {"a=8", "_,a -> _,a"}},                /* uneven blocks */
      {2, {40, 1002}, 1, {"a=2", "_,a -> _,a"}},
      {3, {16, 128, 6}, 1, {"a=4", "_,a -> _,a"}},
      {3, {16, 128, 6}, 1, {"a=2,b=4", "a,b -> a,b"}},
      {3, {6, 16, 512}, 2, {"a=2,b=2,c=2", "b,a,c -> b,a,c"}},
      {4, {3, 5, 512, 9}, 2, {"a=8", "_,_,a -> _,_,a"}},
      {4, {2, 8, 256, 3}, 2, {"a=2,b=4", "a,_,b -> a,_,b"}},
      {2, {64, 256}, 1, {"a=8", "_,a -> a"}},                   /* wanted cut along the other dimension */
      {2, {64, 256}, 1, {"a=8", "a -> _,a"}},
      {2, {64, 256}, 1, {"a=8", "_,a -> _"}},
      {2, {2, 4096}, 1, {"a=3", "_,a -> _,a"}},                 /* fewer lines than devices, which do not divide them either */
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    for (int d = FORWARD; d <= REAL_BACK; d++)
      for (int wide = 0; wide < 2; wide++) {
        const lines *c = &cases[i];
        transform t = {(direction)d, c->dims[c->axis], c->axis};
        const ax_type type = type_of(&t, wide != 0, c->rank, c->dims);
        test_random random = {11 + i};
        ax_tensor *x = test_random_tensor(&random, type, -1, 1);
        ax_program *program = test_trace(transformed, &t, &type, 1, 1);
        test_same_laid_out(runtime, program, &c->at, &x, 0);
        ax_program_release(program);
        ax_tensor_release(x);
      }
}

/* --- Lines that are alone --- */

static void four_steps(void **state) {
  (void)state;
  static const lines cases[] = {
      {1, {4096}, 0, {"a=2", "a -> a"}},        {1, {4096}, 0, {"a=8", "a -> a"}},
      {1, {15 * 64}, 0, {"a=8", "a -> a"}},     {1, {16384}, 0, {"a=2,b=4", "b+a -> b+a"}},
      {1, {9 * 11}, 0, {"a=3", "a -> a"}},      {2, {3, 4096}, 1, {"a=8", "_,a -> _,a"}},
      {3, {2, 4096, 3}, 1, {"a=4", "_,a -> _,a"}}, {2, {8, 4096}, 1, {"a=4,b=4", "b,a -> b,a"}},
      {1, {1 << 17}, 0, {"a=8", "a -> a"}},     {1, {100000}, 0, {"a=8", "a -> a"}}, /* not by 64: gathered */
      {1, {1001}, 0, {"a=8", "a -> a"}},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    for (int d = FORWARD; d <= REAL_BACK; d++)
      for (int wide = 0; wide < 2; wide++) {
        const lines *c = &cases[i];
        transform t = {(direction)d, c->dims[c->axis], c->axis};
        const ax_type type = type_of(&t, wide != 0, c->rank, c->dims);
        test_random random = {17 + i};
        ax_tensor *x = test_random_tensor(&random, type, -1, 1);
        ax_program *program = test_trace(transformed, &t, &type, 1, 1);
        test_same_laid_out(runtime, program, &c->at, &x, wide ? 1e-12 : 3e-4);
        ax_program_release(program);
        ax_tensor_release(x);
      }
}

/* --- Among other operations: a filter, u and its derivative by u and by the filter --- */

/* u f64[64,n], w f64[64,n/2+1] -> u filtered, the sum of whose squares is taken, and its gradients */
static AX_BODY(energy) {
  const ax_type type = ax_typeof(in[0]);
  const ax_value y = ax_mul(ax_rfft(in[0], 1), ax_complex(in[1], ax_sin(in[1])));
  const ax_value v = ax_irfft(y, type.dims[1], 1), z = ax_fft(ax_complex(v, ax_cos(in[0])), 1);
  out[0] = ax_add(ax_reduce_sum(ax_mul(v, v), AX_ALL_DIMS, false), ax_reduce_sum(ax_sin(ax_real_part(z)), AX_ALL_DIMS, false));
}
static AX_BODY(gradients) { ax_grad(AX_FN(energy, 2, 1), AX_FIRST(2), in, out); }

static void derivatives(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=2", "_,a; _ -> _,a; _"}, {"a=8", "_,a; ? -> ?; ?"}, {"a=2,b=4", "b,a; b -> b,a; b"}};
  const ax_type types[] = {TEST_TYPE(AX_F64, 64, 512), TEST_TYPE(AX_F64, 64, 257)};
  test_random random = {5};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], -1, 1)};
  ax_program *program = test_trace(gradients, NULL, types, 2, 2), *whole = test_trace(energy, NULL, types, 2, 1);
  for (size_t i = 0; i < AX_COUNT(at); i++) test_same_laid_out(runtime, program, &at[i], in, 1e-10);
  ax_program *laid = test_laid_out(whole, &(test_layout){"a=2,b=2", "b,a; b -> ?"});
  TEST_EVERY_WAY(laid, in, 1e-9);
  ax_program_release(program), ax_program_release(whole), ax_program_release(laid);
  test_release(in, 2);
}

/* Of a signal that is alone: a convolution by transforms, and its derivative. */
static AX_BODY(convolved) {
  const ax_value zero = ax_full_like(in[0], 0), x = ax_fft(ax_complex(in[0], zero), 0), y = ax_fft(ax_complex(in[1], zero), 0);
  const ax_value z = ax_real_part(ax_ifft(ax_mul(x, y), 0));
  out[0] = ax_reduce_sum(ax_mul(z, ax_sin(z)), AX_ALL_DIMS, false);
}
static AX_BODY(convolved_gradients) { ax_grad(AX_FN(convolved, 2, 1), AX_FIRST(2), in, out); }

static void one_signal(void **state) {
  (void)state;
  static const test_layout at[] = {{"a=2", "a; a -> a; a"}, {"a=8", "a; a -> a; _"}, {"a=8", "a; _ -> ?; ?"}};
  const ax_type types[] = {TEST_TYPE(AX_F64, 4096), TEST_TYPE(AX_F64, 4096)};
  test_random random = {6};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -0.1, 0.1), test_random_tensor(&random, types[1], -0.1, 0.1)};
  ax_program *program = test_trace(convolved_gradients, NULL, types, 2, 2), *whole = test_trace(convolved, NULL, types, 2, 1);
  for (size_t i = 0; i < AX_COUNT(at); i++) test_same_laid_out(runtime, program, &at[i], in, 1e-10);
  ax_program *laid = test_laid_out(whole, &(test_layout){"a=4", "a; a -> ?"});
  TEST_EVERY_WAY(laid, in, 1e-9);
  ax_program_release(program), ax_program_release(whole), ax_program_release(laid);
  test_release(in, 2);
}

/* --- What is sent, and how --- */

/* How many blocks a device receives: each exchange over D devices is all but 1 / D of one. */
static void fewer_bytes(void **state) {
  (void)state;
  static const struct {
    lines lines;
    direction direction;
    double most; /* in blocks of the operand; to gather them takes D - 1 */
    uint32_t exchanges;
  } cases[] = {
      {{2, {512, 512}, 1, {"a=2", "_,a -> _,a"}}, FORWARD, 1, 2},
      {{2, {512, 512}, 1, {"a=8", "_,a -> _,a"}}, FORWARD, 1.75, 2},
      {{2, {512, 512}, 1, {"a=8", "_,a -> a"}}, FORWARD, 0.875, 1},  /* blocks are exchanged once, before or behind */
      {{2, {512, 512}, 1, {"a=8", "a -> _,a"}}, FORWARD, 0.875, 1},
      {{2, {512, 512}, 1, {"a=8", "_,a -> a"}}, REAL, 0.875, 1},
      {{2, {512, 512}, 1, {"a=8", "a -> a"}}, REAL, 0, 0},
      {{1, {1 << 20}, 0, {"a=2", "a -> a"}}, FORWARD, 1.5, 3},
      {{1, {1 << 20}, 0, {"a=8", "a -> a"}}, BACK, 2.625, 3},
      {{2, {512, 64}, 1, {"a=8", "_,a -> _,a"}}, FORWARD, 1.75, 2},
      {{2, {8, 64}, 1, {"a=8", "_,a -> _,a"}}, FORWARD, 7, 0},       /* few elements: gathered */
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    const lines *c = &cases[i].lines;
    transform t = {cases[i].direction, c->dims[c->axis], c->axis};
    const ax_type type = type_of(&t, false, c->rank, c->dims);
    ax_program *program = test_trace(transformed, &t, &type, 1, 1);
    ax_mesh mesh;
    TEST_OK(ax_mesh_parse(c->at.mesh, &mesh));
    const double bytes = (double)(ax_type_elems(&type) * (int64_t)ax_dtype_bytes(type.dtype));
    const double blocks = test_received(program, &c->at) / (bytes / (double)mesh.axis[0].size);
    if (!(blocks <= cases[i].most)) fail_msg("%s, %s: %g blocks, not %g", c->at.mesh, c->at.specs, blocks, cases[i].most);
    const uint32_t exchanges = count_of(program, &c->at, "all_to_all");
    if (exchanges != cases[i].exchanges) fail_msg("%s, %s: %u exchanges", c->at.mesh, c->at.specs, exchanges);
    ax_program_release(program);
  }
}

/* Half a spectrum of 257 numbers stays cut between two transforms, in blocks of 33. */
static AX_BODY(there_and_back) {
  const ax_value half = ax_rfft(in[0], 1);
  out[0] = ax_irfft(ax_mul(half, half), 512, 1);
}
static void fewer_bytes_of_halves(void **state) {
  (void)state;
  const test_layout at = {"a=8", "_,a -> _,a"};
  const ax_type type = TEST_TYPE(AX_F32, 512, 512);
  assert_true(ax_prim_fft.block == ax_fft_block);
  ax_program *program = test_trace(there_and_back, NULL, &type, 1, 1);
  const double blocks = test_received(program, &at) / (512.0 * 512 * 4 / 8);
  if (!(blocks <= 0.875 * (1 + 66.0 / 64 + 66.0 / 64 + 1))) fail_msg("%g blocks", blocks);
  assert_int_equal(count_of(program, &at, "all_gather_invariant"), 0);
  ax_program_release(program);
}

static int set_up(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  ax_runtime_release(runtime);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(whole_lines), cmocka_unit_test(four_steps), cmocka_unit_test(derivatives),
                                     cmocka_unit_test(one_signal), cmocka_unit_test(fewer_bytes),
                                     cmocka_unit_test(fewer_bytes_of_halves)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
