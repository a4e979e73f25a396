/* One program on all lanes; as whole arrays through shard_map; many programs as one, so that one compilation does for all. */
#include "support/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "ir/program.h"
#include "machine/float_mode.h"
#include "machine/subnormals.h"
#include "support/cmocka.h"
#include "support/run.h"

uint32_t test_lanes(const ax_program *program) { return (uint32_t)ax_mesh_devices(&program->axes); }

ax_tensor **test_lane_array(const ax_program *program, uint32_t count) {
  ax_tensor **array = calloc((size_t)count * test_lanes(program) + 1, sizeof array[0]);
  assert_non_null(array);
  return array;
}

void test_lane_array_release(const ax_program *program, ax_tensor **tensors, uint32_t count) {
  test_release(tensors, count * test_lanes(program));
  free(tensors);
}

static ax_axis_set varying_of(const ax_program *program, const ax_type *type) {
  return type->spread.varying | (ax_all_axes(&program->axes) & ~ax_checked_axes(&program->axes));
}

ax_tensor *test_fill_edges(test_random *random, ax_type type, double low, double high) {
  (void)low, (void)high;
  return test_edge_tensor(random, type);
}

void test_fill_lanes(const ax_program *program, const ax_type *type, test_random *random, test_fill fill, double low,
                     double high, ax_tensor **out) {
  const uint64_t seed = test_random_bits(random);
  ax_axis_set varying = varying_of(program, type);
  for (uint32_t lane = 0; lane < test_lanes(program); lane++) {
    test_random own = {seed};
    for (uint32_t a = 0; a < program->axes.count; a++)
      if (varying >> a & 1) own.state = own.state * 64 + (uint64_t)ax_mesh_coordinate(&program->axes, lane, a) + 1;
    out[lane] = fill(&own, ax_array_type(type->dtype, AX_LIST(type->rank, type->dims)), low, high);
  }
}

ax_status test_run_lanes(const ax_program *program, ax_tensor *const *in, ax_tensor **out) {
  int64_t *device = calloc(test_lanes(program), sizeof device[0]);
  for (uint32_t d = 0; d < test_lanes(program); d++) device[d] = d;
  bool flush = false;
  TEST_OK(ax_subnormals_flush(AX_SUBNORMALS_DEFAULT, &flush));
  const ax_float_mode own = ax_float_mode_enter(flush); /* as runs have it */
  ax_status status = ax_evaluate_lanes(NULL, program, test_lanes(program), device, in, out);
  ax_float_mode_leave(own);
  free(device);
  return status;
}

static double over_lanes(const ax_program *program, const ax_type *type, ax_tensor *const *a, ax_tensor *const *b,
                         double (*inner)(ax_tensor *const *, ax_tensor *const *, uint32_t)) {
  ax_axis_set varying = varying_of(program, type);
  double sum = 0;
  for (uint32_t lane = 0; lane < test_lanes(program); lane++) {
    bool first = true;
    for (uint32_t axis = 0; axis < program->axes.count; axis++)
      if ((varying >> axis & 1) == 0 && ax_mesh_coordinate(&program->axes, lane, axis) != 0) first = false;
    if (first) sum += inner(&a[lane], &b[lane], 1);
  }
  return sum;
}

double test_inner_lanes(const ax_program *program, const ax_type *type, ax_tensor *const *a, ax_tensor *const *b) {
  return over_lanes(program, type, a, b, test_inner);
}

double test_squares_lanes(const ax_program *program, const ax_type *type, ax_tensor *const *a) {
  return over_lanes(program, type, a, a, test_squares);
}

/* --- Whole programs --- */

/* The type with a dimension in front for each axis it varies over: of the axis's size, or 1; and the spec that says so. */
static ax_type in_front(const ax_program *program, const ax_type *type, bool whole, char *spec) {
  ax_type result = ax_array_type(type->dtype, AX_DIMS());
  ax_axis_set varying = varying_of(program, type);
  char *end = spec;
  for (uint32_t a = 0; a < program->axes.count; a++) {
    if ((varying >> a & 1) == 0) continue;
    result.dims[result.rank++] = whole ? program->axes.axis[a].size : 1;
    if (spec != NULL) end += sprintf(end, "%s%s", end > spec ? "," : "", program->axes.axis[a].name);
  }
  if (spec != NULL) *end = 0;
  for (uint32_t d = 0; d < type->rank; d++) result.dims[result.rank++] = type->dims[d];
  return result;
}

static void block_body(const ax_value *in, ax_value *out, void *context) {
  const ax_program *program = context;
  ax_value *blocks = calloc(program->in_count + 1, sizeof blocks[0]);
  for (uint32_t i = 0; i < program->in_count; i++)
    blocks[i] = ax_reshape(in[i], AX_LIST(program->types[i].rank, program->types[i].dims));
  ax_call(program, blocks, out);
  for (uint32_t k = 0; k < program->out_count; k++) {
    ax_type type = in_front(program, &program->types[program->outs[k]], false, NULL);
    out[k] = ax_reshape(out[k], AX_LIST(type.rank, type.dims));
  }
  free(blocks);
}

static void mesh_body(const ax_value *in, ax_value *out, void *context) {
  ax_program *program = context;
  enum { most = 32, length = 256 };
  static char text[2 * most][length];
  const char *specs[2 * most];
  assert_true(program->in_count < most && program->out_count < most);
  for (uint32_t i = 0; i < program->in_count; i++) in_front(program, &program->types[i], true, text[i]);
  for (uint32_t k = 0; k < program->out_count; k++)
    in_front(program, &program->types[program->outs[k]], true, text[most + k]);
  for (uint32_t i = 0; i < 2 * most; i++) specs[i] = text[i];
  ax_mesh mesh = program->axes;
  test_shard_map(&mesh, specs, specs + most, mesh.axis[0].unchecked,
                 AX_CLOSURE(block_body, program->in_count, program->out_count, program), in, out);
}

ax_status test_on_mesh(ax_program *program, ax_program **out) {
  if (program->axes.count == 0) {
    *out = ax_program_retain(program);
    return AX_OK;
  }
  ax_type *types = calloc(program->in_count + 1, sizeof types[0]);
  for (uint32_t i = 0; i < program->in_count; i++) types[i] = in_front(program, &program->types[i], true, NULL);
  ax_status status = ax_trace(AX_CLOSURE(mesh_body, program->in_count, program->out_count, program), types, out);
  free(types);
  return status;
}

typedef struct together {
  ax_program *const *programs;
  uint32_t count;
} together;

static void together_body(const ax_value *in, ax_value *out, void *context) {
  const together *all = context;
  for (uint32_t i = 0; i < all->count; i++) {
    const ax_program *p = all->programs[i];
    ax_call(p, in, out);
    in += p->in_count;
    out += p->out_count;
  }
}

ax_status test_together(ax_program *const *programs, uint32_t count, ax_program **out) {
  uint32_t in_count = 0, out_count = 0, at = 0;
  for (uint32_t i = 0; i < count; i++) in_count += programs[i]->in_count, out_count += programs[i]->out_count;
  ax_type *types = calloc(in_count + 1, sizeof types[0]);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < programs[i]->in_count; k++) types[at++] = programs[i]->types[k];
  ax_status status = ax_trace(AX_CLOSURE(together_body, in_count, out_count, &(together){programs, count}), types, out);
  free(types);
  return status;
}
