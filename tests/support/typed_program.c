/* Whole programs of well-typed steps, and what must hold of each device's values. */
#include <string.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/typed.h"

enum { STEPS = 9, CHECKED = 24, SEEN = 3 };

static const char *const meshes[] = {"x=2", "x=2,y=2", "x=4", "x=2,y=3", "x=3", "x=2,y=2,z=2", "x=4,y=2", "x=8", "x=3,y=2", "x=6"};


typed_making typed_making_of(uint64_t seed) {
  typed_making made = {.maker = {.random = {seed}, .depth = 2}};
  typed_maker *m = &made.maker;
  TEST_OK(ax_mesh_parse(meshes[seed % AX_COUNT(meshes)], &m->mesh));
  m->dtype = seed / 2 % 2 == 0 ? AX_S32 : AX_F32;
  m->unreduced = seed / 4 % 3 != 0;
  ax_type array = ax_array_type(m->dtype, AX_DIMS(TYPED_LENGTH)), scalar = ax_array_type(AX_S32, AX_DIMS());
  ax_axis_set all = ((ax_axis_set)1 << m->mesh.count) - 1;
  made.in[made.in_count++] = array;
  array.spread.varying = scalar.spread.varying = all;
  made.in[made.in_count++] = array;
  for (uint32_t a = 0; m->mesh.count > 1 && a < m->mesh.count; a++) {
    array.spread.varying = (ax_axis_set)1 << a;
    made.in[made.in_count++] = array;
  }
  made.in[made.in_count++] = ax_array_type(AX_S32, AX_DIMS());
  made.in[made.in_count++] = scalar;
  return made;
}

static void body(const ax_value *in, ax_value *out, void *context) {
  const typed_making *made = context;
  typed_maker m = made->maker;
  uint32_t arrays = made->in_count - 2;
  ax_axis_set all = ((ax_axis_set)1 << m.mesh.count) - 1;
  for (uint32_t i = 0; i < arrays; i++) typed_hold(&m, in[i], in[i]);
  memcpy(m.scalar, in + arrays, sizeof m.scalar);
  typed_steps(&m, STEPS);
  typed_end_futures(&m);
  for (uint32_t k = 0; made->everything && k < CHECKED; k++) {
    typed_held held = m.pool[k < m.count ? m.count - 1 - k : 0];
    out[3 * k] = held.own, out[3 * k + 1] = typed_combined(&m, held.own), out[3 * k + 2] = held.whole;
  }
  for (uint32_t k = 0; !made->everything && k < SEEN; k++)
    out[k] = typed_vary(&m, typed_combined(&m, m.pool[m.count - 1 - k].own), all);
}

ax_status typed_trace(typed_making *made, bool everything, ax_program **out) {
  made->everything = everything;
  return ax_trace_on(&made->maker.mesh, AX_CLOSURE(body, made->in_count, everything ? 3 * CHECKED : SEEN, made), made->in, out);
}

/* --- Each device's values --- */

/* The first device that must hold what this one holds. */
static uint32_t fellow(const ax_program *program, uint32_t lane, ax_axis_set varying) {
  int64_t first = 0;
  for (uint32_t a = 0; a < program->axes.count; a++)
    first = first * program->axes.axis[a].size + ((varying >> a & 1) ? ax_mesh_coordinate(&program->axes, lane, a) : 0);
  return (uint32_t)first;
}

static bool same_bits(const ax_tensor *a, const ax_tensor *b) { return memcmp(a->data, b->data, test_tensor_bytes(a)) == 0; }

static bool near(const ax_tensor *a, const ax_tensor *b) {
  if (a->dtype == AX_S32) return same_bits(a, b);
  for (int64_t i = 0; i < test_elems(a); i++)
    if (!test_near(test_get(a, i), test_get(b, i), 2e-3)) return false;
  return true;
}

static void check_values(const ax_program *program, ax_tensor **out, uint64_t seed, bool twice) {
  uint32_t lanes = test_lanes(program);
  for (uint32_t k = 0; k < program->out_count; k++) {
    const ax_type *type = &program->types[program->outs[k]];
    for (uint32_t lane = 0; lane < lanes; lane++) {
      uint32_t other = fellow(program, lane, type->spread.varying | type->spread.unreduced);
      if (!same_bits(out[k * lanes + lane], out[k * lanes + other]))
        fail_msg("seed %llu: result %u, %s, differs between devices %u and %u", (unsigned long long)seed, k,
                 ax_type_string(type, &program->axes), other, lane);
      if (twice && k % 3 == 1 && !near(out[k * lanes + lane], out[(k + 1) * lanes + lane]))
        fail_msg("seed %llu: the parts of result %u, %s, do not come to the whole on device %u", (unsigned long long)seed, k - 1,
                 ax_type_string(&program->types[program->outs[k - 1]], &program->axes), lane);
    }
  }
}

static ax_tensor *fill(test_random *random, ax_type type, double low, double high) {
  if (type.rank == 0) return test_random_tensor(random, type, 0, 4);
  return test_random_tensor(random, type, type.dtype == AX_S32 ? 10 * low : low, type.dtype == AX_S32 ? 10 * high : high);
}

void typed_check(const ax_program *program, uint64_t seed, bool twice, bool damaged) {
  uint32_t lanes = test_lanes(program);
  test_random data = {seed};
  ax_tensor **in = test_lane_array(program, program->in_count), **out = test_lane_array(program, program->out_count);
  for (uint32_t i = 0; i < program->in_count; i++)
    test_fill_lanes(program, &program->types[i], &data, fill, -1, 1, in + (size_t)i * lanes);
  ax_status status = test_run_lanes(program, in, out);
  bool misfits = damaged && status == AX_INVALID_ARGUMENT && strstr(ax_message(), "ragged_all_to_all: slice") != NULL;
  if (status != AX_OK && !misfits) fail_msg("seed %llu: accepted, and then: %s", (unsigned long long)seed, ax_message());
  if (status == AX_OK) check_values(program, out, seed, twice);
  test_lane_array_release(program, in, program->in_count);
  test_lane_array_release(program, out, program->out_count);
}
