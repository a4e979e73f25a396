/* Programs of parts, paddings and concatenations along cut dimensions, whose blocks are uneven on the way: the partitioned program computes what
   the whole one does, bit by bit. And what they receive: no more than crosses between blocks. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/stages.h"
#include "axle/transform.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { columns = 6 };

static int64_t below(test_random *r, int64_t count) { return (int64_t)(test_random_bits(r) % (uint64_t)count); }

static int64_t rows_of(ax_value x) { return ax_typeof(x).dims[0]; }

static ax_value part(test_random *r, ax_value x) {
  const int64_t n = rows_of(x), start = below(r, n), end = start + 1 + below(r, n - start),
                stride = below(r, 3) == 0 ? 1 + below(r, 4) : 1;
  return ax_slice_in_dim(x, start, end, stride, 0);
}

static ax_value padded(test_random *r, ax_value x) {
  const int64_t n = rows_of(x), most = n > 1 ? n / 2 : 1, low = below(r, 2 * most) - most + (n < 2),
                high = below(r, 2 * most) - most + (n < 2), between = below(r, 4) == 0 ? below(r, 3) : 0;
  const int64_t lows[] = {low, 0}, highs[] = {high, 0}, betweens[] = {between, 0};
  return ax_pad(x, ax_full(ax_typeof(x).dtype, AX_DIMS(), 3), lows, highs, betweens);
}

static ax_value rolled(test_random *r, ax_value x) {
  const int64_t n = rows_of(x), by = n > 1 ? 1 + below(r, n - 1) : 0;
  if (by == 0) return x;
  return ax_concatenate(AX_VALUES(ax_slice_in_dim(x, n - by, n, 1, 0), ax_slice_in_dim(x, 0, n - by, 1, 0)), 0);
}

static ax_value put_together(test_random *r, const ax_value *all, uint32_t count) {
  ax_value parts[5];
  const uint32_t n = 2 + (uint32_t)below(r, 4);
  for (uint32_t i = 0; i < n; i++) {
    parts[i] = all[below(r, count)];
    if (below(r, 2) == 0) parts[i] = part(r, parts[i]);
  }
  return ax_concatenate(AX_LIST(n, parts), 0);
}

typedef struct maker {
  test_random random;
  int64_t sizes[2], devices;
} maker;

static void make(const ax_value *in, ax_value *out, void *context) {
  maker m = *(const maker *)context;
  test_random *r = &m.random;
  ax_value all[16] = {in[0], in[1]};
  uint32_t count = 2;
  for (int64_t steps = 1 + below(r, 5); steps > 0 && !ax_failed(); steps--) {
    const ax_value x = all[below(r, count)];
    const int64_t which = below(r, 6);
    ax_value made = which == 0   ? part(r, x)
                    : which == 1 ? padded(r, x)
                    : which == 2 ? rolled(r, x)
                    : which == 3 ? ax_rev(x, AX_DIMS(0))
                                 : put_together(r, all, count);
    if (ax_failed() || rows_of(made) < 1 || rows_of(made) > 400) continue;
    all[count++] = below(r, 3) == 0 ? ax_add(made, made) : made;
  }
  out[0] = ax_failed() ? ax_poison : all[count - 1];
}

static void check(ax_program *program, ax_program *partitioned, ax_tensor **in, bool every_way) {
  ax_tensor *whole, *parts;
  test_run(program, in, &whole);
  test_run(partitioned, in, &parts);
  TEST_TENSORS_NEAR(whole, parts, 0);
  if (every_way) TEST_EVERY_WAY(partitioned, in, 0);
  ax_tensor_release(whole), ax_tensor_release(parts);
}

static void one(uint64_t seed, bool show) {
  static const ax_dtype dtypes[] = {AX_F32, AX_S8, AX_C64};
  maker m = {.random = {seed}};
  test_random *r = &m.random;
  ax_program *program, *said, *partitioned;
  ax_mesh mesh;
  char devices[32], specs[64];
  ax_tensor *in[2];
  m.devices = 1 + below(r, 9);
  for (int i = 0; i < 2; i++) m.sizes[i] = m.devices * (1 + below(r, 6));
  const ax_dtype dtype = dtypes[below(r, 3)];
  const bool two = below(r, 3) == 0;
  snprintf(devices, sizeof devices, two ? "d=%lld,m=2" : "d=%lld", (long long)m.devices);
  snprintf(specs, sizeof specs, "d,%s; %s,_ -> ?", two ? "m" : "_", below(r, 4) == 0 ? "_" : "d");
  const ax_type types[] = {ax_array_type(dtype, AX_DIMS(m.sizes[0], columns)), ax_array_type(dtype, AX_DIMS(m.sizes[1], columns))};
  program = test_trace(make, &m, types, 2, 1);
  TEST_OK(ax_mesh_parse(devices, &mesh));
  TEST_OK(ax_program_with_shardings(program, &mesh, specs, &said));
  TEST_OK(ax_program_partition(said, &partitioned));
  if (show) test_show_program(program), test_show_program(partitioned);
  for (int i = 0; i < 2; i++) in[i] = test_random_tensor(r, types[i], -50, 50);
  check(program, partitioned, in, seed % 8 == 0);
  test_release(in, 2);
  ax_program_release(program), ax_program_release(said), ax_program_release(partitioned);
}

static void programs_at_random(void **state) {
  (void)state;
  test_each_seed(400, one);
}

/* --- What a device receives --- */

typedef struct row {
  const char *text, *specs;
  double rows; /* that a device receives at most, each of 4 bytes times `columns` */
} row;

static void receives(const row *rows, size_t count, int64_t devices) {
  for (size_t i = 0; i < count; i++) {
    ax_program *program, *said;
    ax_mesh mesh;
    ax_cost cost;
    char text[32];
    snprintf(text, sizeof text, "d=%lld", (long long)devices);
    TEST_OK(ax_program_parse(rows[i].text, strlen(rows[i].text), "test", &program));
    TEST_OK(ax_mesh_parse(text, &mesh));
    TEST_OK(ax_program_with_shardings(program, &mesh, rows[i].specs, &said));
    TEST_OK(ax_program_cost(said, &cost));
    if (cost.received != 4 * columns * rows[i].rows)
      fail_msg("row %zu, %lld devices: %g rows are received, not %g", i, (long long)devices, cost.received / (4 * columns),
               rows[i].rows);
    ax_cost_release(&cost);
    ax_program_release(program), ax_program_release(said);
  }
}

/* By numbers of devices: rows that cross do not grow with it. */
static void only_what_crosses_is_received(void **state) {
  (void)state;
  static const row rows[] = {
      {"{ lambda x:f32[8192,6]. let a:f32[8191,6] = slice[start_indices=(0, 0) limit_indices=(8191, 6) strides=(1, 1)] x"
       "  b:f32[1,6] = slice[start_indices=(8191, 0) limit_indices=(8192, 6) strides=(1, 1)] x"
       "  y:f32[8192,6] = concatenate[dimension=0] b a in (y,) }",
       "d,_ -> d,_", 1},
      {"{ lambda x:f32[8192,6] y:f32[8192,6]. let a:f32[8188,6] = slice[start_indices=(4, 0) limit_indices=(8192, 6) strides=(1, "
       "1)] x"
       "  b:f32[4,6] = slice[start_indices=(100, 0) limit_indices=(104, 6) strides=(1, 1)] y"
       "  z:f32[8192,6] = concatenate[dimension=0] a b in (z,) }",
       "d,_; d,_ -> d,_", 8},
      {"{ lambda x:f32[8192,6]. let y:f32[8192,6] = pad[low=(3, 0) high=(-3, 0) interior=(0, 0)] x 0.0:f32[] in (y,) }",
       "d,_ -> d,_", 3},
  };
  for (int64_t devices = 8; devices <= 1024; devices *= 2) receives(rows, AX_COUNT(rows), devices);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs_at_random), cmocka_unit_test(only_what_crosses_is_received)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
