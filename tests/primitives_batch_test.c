/* The walk over the table of primitives: vmap is a loop, whichever operands are mapped and wherever their dimension is; and a batch
   spread over the devices of any mesh gives what one device gives. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/collectives.h"
#include "ir/prim.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/compare.h"
#include "support/lanes.h"
#include "support/run.h"

enum { dtype_count = 6 };
static const ax_dtype from_f64[dtype_count] = {AX_F64, AX_S32, AX_BOOL, AX_C128, AX_U32, AX_KEY},
                      from_f32[dtype_count] = {AX_F32, AX_S32, AX_BOOL, AX_C64, AX_U32, AX_KEY};

/* In the first dtype that the primitive takes. */
static test_instances first_of(const test_sample *sample, const ax_dtype *dtypes, const char *const *shapes,
                               uint32_t shape_count) {
  test_instances instances = {0};
  test_variety variety = {
      .others = dtypes, .dtype_count = 1, .other_count = dtype_count, .shapes = shapes, .shape_count = shape_count};
  for (uint32_t i = 0; i < dtype_count && instances.count == 0; i++) {
    variety.dtypes = dtypes + i;
    instances = test_instances_of(sample, &variety);
  }
  assert_true(instances.count > 0);
  return instances;
}

/* --- One way of batching: a bit an input says whether it is mapped --- */

typedef struct way {
  int64_t size;
  uint32_t mapped;
  int64_t *in_axes, *out_axes;
} way;

/* The dimensions move on with `turn`, so that a few turns meet all places. */
static way way_of(const ax_program *program, uint32_t mapped, uint32_t turn, int64_t size) {
  way w = {size, mapped, calloc(program->in_count + 1, sizeof(int64_t)), calloc(program->out_count + 1, sizeof(int64_t))};
  for (uint32_t i = 0; i < program->in_count; i++)
    w.in_axes[i] = mapped >> i & 1 ? (int)((turn + i) % (program->types[i].rank + 1)) : AX_NOT_MAPPED;
  for (uint32_t k = 0; k < program->out_count; k++)
    w.out_axes[k] = (int)((turn + k) % (ax_program_out_type(program, k)->rank + 1));
  return w;
}

static ax_vmap_options options_of(const ax_program *program, const way *w) {
  return (ax_vmap_options){
      .in_axes = {program->in_count, w->in_axes}, .out_axes = {program->out_count, w->out_axes}, .size = w->size};
}

static void way_deinit(way *w) { free(w->in_axes), free(w->out_axes); }

/* The next set of mapped inputs: every one of up to three inputs, of more each alone and all. */
static uint32_t next_mapped(const ax_program *program, uint32_t mapped) {
  uint32_t all = (1u << program->in_count) - 1;
  if (mapped == all) return 0;
  if (program->in_count <= 3 || mapped == 0) return mapped + 1;
  return mapped < (all + 1) / 2 ? mapped * 2 : all;
}

/* `part` is element `member` of dimension `dim` of `whole`: copied from it, or into it. */
static void copy_member(ax_tensor *whole, int dim, int64_t member, ax_tensor *part, bool into) {
  size_t bytes = ax_dtype_bytes(whole->dtype);
  for (uint32_t d = (uint32_t)dim; d < part->rank; d++) bytes *= (size_t)part->dims[d];
  size_t count = bytes > 0 ? test_tensor_bytes(part) / bytes : 0;
  for (size_t i = 0; i < count; i++) {
    char *in_whole = (char *)whole->data + (i * (size_t)whole->dims[dim] + (size_t)member) * bytes;
    char *in_part = (char *)part->data + i * bytes;
    memcpy(into ? in_whole : in_part, into ? in_part : in_whole, bytes);
  }
}

/* dim -1: all of it. */
static ax_tensor *member_of(ax_tensor *whole, int dim, int64_t member) {
  ax_tensor *part;
  if (dim < 0) {
    TEST_OK(ax_tensor_copy(whole, &part));
    return part;
  }
  ax_type type = {.dtype = whole->dtype, .rank = whole->rank - 1};
  for (uint32_t d = 0; d < type.rank; d++) type.dims[d] = whole->dims[d + (d >= (uint32_t)dim)];
  part = test_tensor(type, NULL);
  copy_member(whole, dim, member, part, false);
  return part;
}

static void fill_inputs(const test_instance *instance, const ax_program *program, ax_tensor **in) {
  test_random random = test_instance_random(instance);
  test_fill fill = instance->sample->sums || instance->sample->generic ? test_random_tensor : test_fill_edges;
  for (uint32_t i = 0; i < program->in_count; i++)
    test_fill_lanes(program, &program->types[i], &random, fill, test_low(instance->sample), test_high(instance->sample),
                    in + i * test_lanes(program));
}

/* What reference evaluation gives from absolute values, when the instance is one of sums. */
static void find_condition(const test_instance *instance, const ax_program *program, ax_tensor *const *in,
                           ax_tensor **out) {
  if (!instance->sample->sums || instance->t != AX_F64) return;
  uint32_t count = program->in_count * test_lanes(program);
  ax_tensor **absolute = test_lane_array(program, program->in_count);
  for (uint32_t i = 0; i < count; i++) absolute[i] = test_absolute(in[i]);
  TEST_OK(test_run_lanes(program, absolute, out));
  test_lane_array_release(program, absolute, program->in_count);
}

/* --- vmap --- */

static void check_member(const test_instance *instance, const way *w, int64_t member, ax_tensor **in, ax_tensor **out) {
  const ax_program *program = instance->program;
  uint32_t lanes = test_lanes(program);
  char what[128];
  snprintf(what, sizeof what, "vmap, member %lld of %lld, mapped %x at %d ..", (long long)member, (long long)w->size, w->mapped,
           (int)w->in_axes[0]);
  ax_tensor **own_in = test_lane_array(program, program->in_count),
            **own_out = test_lane_array(program, program->out_count);
  ax_tensor **condition = test_lane_array(program, program->out_count);
  for (uint32_t i = 0; i < program->in_count * lanes; i++) own_in[i] = member_of(in[i], (int)w->in_axes[i / lanes], member);
  TEST_OK(test_run_lanes(program, own_in, own_out));
  find_condition(instance, program, own_in, condition);
  for (uint32_t k = 0; k < program->out_count * lanes; k++) {
    ax_tensor *part = member_of(out[k], (int)w->out_axes[k / lanes], member);
    test_compare(instance, what, part, own_out[k], condition[k]);
    ax_tensor_release(part);
  }
  test_lane_array_release(program, own_in, program->in_count);
  test_lane_array_release(program, own_out, program->out_count);
  test_lane_array_release(program, condition, program->out_count);
}

static void check_way(const test_instance *instance, way w) {
  ax_program *batched;
  const ax_vmap_options options = options_of(instance->program, &w);
  if (test_passes(instance, "vmap", ax_program_vmap(instance->program, &options, &batched))) {
    ax_tensor **in = test_lane_array(batched, batched->in_count), **out = test_lane_array(batched, batched->out_count);
    fill_inputs(instance, batched, in);
    if (test_passes(instance, "vmap", ax_program_verify(batched)) &&
        test_passes(instance, "vmap", test_run_lanes(batched, in, out)))
      for (int64_t member = 0; member < w.size; member++) check_member(instance, &w, member, in, out);
    test_lane_array_release(batched, in, batched->in_count);
    test_lane_array_release(batched, out, batched->out_count);
    ax_program_release(batched);
  }
  way_deinit(&w);
}

static void vmap(void **state) {
  (void)state;
  static const int64_t sizes[] = {3, 1, 2, 0};
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].no_batch) continue;
    test_instances instances = first_of(&test_samples[i], from_f64, test_in_f64.shapes, test_in_f64.shape_count);
    for (uint32_t k = 0; k < instances.count; k++) {
      const ax_program *program = instances.v[k].program;
      for (uint32_t mapped = next_mapped(program, 0); mapped != 0; mapped = next_mapped(program, mapped))
        for (uint32_t turn = 0; turn < AX_COUNT(sizes); turn++)
          check_way(&instances.v[k], way_of(program, mapped, turn, sizes[turn]));
    }
    test_instances_release(&instances);
  }
  test_blameless();
}

/* --- A named axis: devices along it become members of a batch --- */

/* The lane among all devices that is `member` along `axis` of the lane among those without the axis. */
static uint32_t lane_of(const ax_mesh *mesh, uint32_t axis, uint32_t lane, int64_t member) {
  int64_t inner = 1;
  for (uint32_t a = axis + 1; a < mesh->count; a++) inner *= mesh->axis[a].size;
  return (uint32_t)((lane / inner * mesh->axis[axis].size + member) * inner + lane % inner);
}

/* Inputs that vary over the axis are mapped; the first is when none does, as one has to be. */
static way way_along(const ax_program *program, uint32_t axis, uint32_t turn) {
  uint32_t mapped = 0;
  for (uint32_t i = 0; i < program->in_count; i++)
    if (program->axes.axis[axis].unchecked || program->types[i].spread.varying >> axis & 1) mapped |= 1u << i;
  return way_of(program, mapped > 0 ? mapped : 1, turn, program->axes.axis[axis].size);
}

static void compare_members(const test_instance *instance, uint32_t axis, const way *w, const ax_program *batched,
                            ax_tensor *const *out, ax_tensor **in_order) {
  const ax_program *program = instance->program;
  uint32_t lanes = test_lanes(program), rest = test_lanes(batched);
  ax_tensor **wanted = test_lane_array(program, program->out_count),
            **condition = test_lane_array(program, program->out_count);
  TEST_OK(test_run_lanes(program, in_order, wanted));
  find_condition(instance, program, in_order, condition);
  for (uint32_t k = 0; k < program->out_count; k++)
    for (uint32_t lane = 0; lane < lanes; lane++) {
      int64_t inner = lane_of(&program->axes, axis, 0, 1), size = w->size;
      uint32_t own = (uint32_t)(lane / (inner * size) * inner + lane % inner);
      ax_tensor *part = member_of(out[k * rest + own], (int)w->out_axes[k], lane / inner % size);
      test_compare(instance, program->axes.axis[axis].name, part, wanted[k * lanes + lane],
                   condition[k * lanes + lane]);
      ax_tensor_release(part);
    }
  test_lane_array_release(program, wanted, program->out_count);
  test_lane_array_release(program, condition, program->out_count);
}

static void check_axis(const test_instance *instance, uint32_t axis, way w) {
  const ax_program *program = instance->program;
  ax_program *batched;
  const char *name = program->axes.axis[axis].name;
  ax_vmap_options options = options_of(program, &w);
  options.axis_name = name;
  if (test_passes(instance, name, ax_program_vmap(program, &options, &batched))) {
    uint32_t lanes = test_lanes(program), rest = test_lanes(batched);
    ax_tensor **in = test_lane_array(program, program->in_count),
              **stacked = test_lane_array(batched, program->in_count);
    ax_tensor **out = test_lane_array(batched, program->out_count);
    fill_inputs(instance, program, in);
    for (uint32_t i = 0; i < program->in_count; i++)
      for (uint32_t lane = 0; lane < rest; lane++) {
        ax_type type = ax_array_type(batched->types[i].dtype, AX_LIST(batched->types[i].rank, batched->types[i].dims));
        ax_tensor *to = stacked[i * rest + lane] = test_tensor(type, NULL);
        for (int64_t member = 0; member < w.size; member++) {
          ax_tensor *from = in[i * lanes + lane_of(&program->axes, axis, lane, member)];
          if (w.in_axes[i] >= 0)
            copy_member(to, (int)w.in_axes[i], member, from, true);
          else
            memcpy(to->data, from->data, test_tensor_bytes(to));
        }
      }
    if (test_passes(instance, name, ax_program_verify(batched)) &&
        test_passes(instance, name, test_run_lanes(batched, stacked, out)))
      compare_members(instance, axis, &w, batched, out, in);
    test_lane_array_release(program, in, program->in_count);
    test_lane_array_release(batched, stacked, program->in_count);
    test_lane_array_release(batched, out, program->out_count);
    ax_program_release(batched);
  }
  way_deinit(&w);
}

static void named_axes(void **state) {
  (void)state;
  for (size_t i = 0; i < test_sample_count; i++) {
    if (test_samples[i].axes == NULL || test_samples[i].two_sides || test_samples[i].no_batch) continue;
    test_instances instances = first_of(&test_samples[i], from_f64, test_in_f64.shapes, test_in_f64.shape_count);
    for (uint32_t k = 0; k < instances.count; k++)
      for (uint32_t axis = 0; axis < instances.v[k].program->axes.count; axis++)
        for (uint32_t turn = 0; turn < 3; turn++)
          check_axis(&instances.v[k], axis, way_along(instances.v[k].program, axis, turn));
    test_instances_release(&instances);
  }
  test_blameless();
}

/* --- Meshes --- */

enum { batch_size = 4 };
static const struct {
  const char *mesh, *axes;
  bool unchecked; /* what the devices have in common is for the lowering to find out */
} meshes[] = {{"d=1", "d", false},       {"d=2", "d", false},       {"d=4", "d", false},     {"d=4", "d", true},
              {"a=2,b=2", "a+b", false}, {"b=2,a=2", "a+b", false}, {"b=2,a=2", "a+b", true}};

typedef struct spread { /* an instance, batched, over a mesh */
  const ax_program *local;
  const ax_mesh *mesh;
  const char *axes;
  bool unchecked;
  way way;
} spread;

/* The instance as a device's program, in whose environment operands that vary differently are made to agree. */
static void bind_again(const ax_value *in, ax_value *out, void *context) {
  const ax_program *program = context;
  ax_value *value = calloc(program->value_count, sizeof value[0]),
           *operands = calloc(program->value_count, sizeof value[0]);
  memcpy(value, in, program->in_count * sizeof in[0]);
  for (const ax_eqn *eqn = program->eqns; eqn < program->eqns + program->eqn_count; eqn++) {
    for (uint32_t i = 0; i < eqn->in_count; i++) operands[i] = value[eqn->in[i]];
    ax_bind(eqn->prim, eqn->params, operands, eqn->in_count, value + eqn->out, eqn->out_count);
  }
  for (uint32_t k = 0; k < program->out_count; k++) out[k] = value[program->outs[k]];
  free(value), free(operands);
}

/* Inputs that are mapped vary over the mesh. */
static ax_status on_device(const ax_program *program, const ax_mesh *mesh, uint32_t mapped, bool unchecked,
                           ax_program **out) {
  ax_mesh axes = *mesh;
  ax_type *types = calloc(program->in_count + 1, sizeof types[0]);
  for (uint32_t a = 0; a < axes.count; a++) axes.axis[a].unchecked = unchecked;
  for (uint32_t i = 0; i < program->in_count; i++) {
    types[i] = program->types[i];
    types[i].spread.varying = mapped >> i & 1 ? ax_checked_axes(&axes) : 0;
  }
  ax_status status = ax_trace_on(&axes, AX_CLOSURE(bind_again, program->in_count, program->out_count, (void *)program), types, out);
  free(types);
  return status;
}

static void spread_body(const ax_value *in, ax_value *out, void *context) {
  const spread *s = context;
  ax_call(s->local, in, out);
}

/* The dimension `dim` over the axes; all of it on each device when it is -1. */
static char *spec_of(int dim, const char *axes) {
  char *text = calloc(128, 1), *end = text;
  for (int d = 0; d < dim; d++) end += sprintf(end, "_,");
  if (dim >= 0) sprintf(end, "%s", axes);
  return text;
}

static void spread_whole(const ax_value *in, ax_value *out, void *context) {
  const spread *s = context;
  uint32_t ins = s->local->in_count, outs = s->local->out_count;
  char **specs = calloc(ins + outs, sizeof specs[0]);
  for (uint32_t i = 0; i < ins; i++) specs[i] = spec_of((int)s->way.in_axes[i], s->axes);
  for (uint32_t k = 0; k < outs; k++) specs[ins + k] = spec_of((int)s->way.out_axes[k], s->axes);
  test_shard_map(s->mesh, (const char *const *)specs, (const char *const *)specs + ins, s->unchecked,
                 AX_CLOSURE(spread_body, ins, outs, context), in, out);
  for (uint32_t i = 0; i < ins + outs; i++) free(specs[i]);
  free(specs);
}

/* The instance on every device of a mesh, which all do the same. */
static void same_body(const ax_value *in, ax_value *out, void *context) {
  const ax_program *program = ((const spread *)context)->local;
  ax_call(program, in, out);
}
static void same_on_all(const ax_value *in, ax_value *out, void *context) {
  const spread *s = context;
  uint32_t ins = s->local->in_count, outs = s->local->out_count;
  const char **specs = calloc(ins + outs, sizeof specs[0]);
  for (uint32_t i = 0; i < ins + outs; i++) specs[i] = "";
  test_shard_map(s->mesh, specs, specs + ins, s->unchecked, AX_CLOSURE(same_body, ins, outs, context), in, out);
  free(specs);
}

/* vmap splits what is mapped over the mesh, where it comes to that shard_map. */
static ax_status split_by_vmap(const spread *s, ax_program **out) {
  ax_program *same;
  char names[16];
  snprintf(names, sizeof names, "%s", s->axes);
  for (char *plus = strchr(names, '+'); plus != NULL; plus = strchr(plus, '+')) *plus = ',';
  ax_vmap_options options = options_of(s->local, &s->way);
  options.spmd_axis_name = names;
  ax_status status = ax_trace(AX_CLOSURE(same_on_all, s->local->in_count, s->local->out_count, (void *)s), s->local->types, &same);
  *out = NULL;
  if (status == AX_OK) status = ax_program_vmap(same, &options, out);
  ax_program_release(same);
  return status == AX_OK ? ax_program_verify(*out) : status;
}

typedef struct on_mesh { /* all instances, on one mesh */
  ax_mesh mesh;
  const char *axes;
  bool unchecked, by_vmap;
  test_instance *instances;
  ax_program **wanted, **spread; /* on one device; over the mesh */
  uint32_t count;
} on_mesh;

static ax_status spread_by_hand(const test_instance *instance, spread *s, uint32_t mapped, const ax_program *whole,
                                ax_program **out) {
  ax_program *device, *local = NULL;
  ax_vmap_options options = options_of(instance->program, &s->way);
  options.size /= ax_mesh_devices(s->mesh);
  *out = NULL;
  TEST_OK(on_device(instance->program, s->mesh, mapped, s->unchecked, &device));
  ax_status status = ax_program_vmap(device, &options, &local);
  s->local = local;
  if (status == AX_OK) status = ax_trace(AX_CLOSURE(spread_whole, whole->in_count, whole->out_count, s), whole->types, out);
  ax_program_release(device);
  ax_program_release(local);
  return status;
}

static void add_instance(on_mesh *m, const test_instance *instance, uint32_t mapped, uint32_t turn) {
  const char *prim = instance->sample->prim;
  bool region = ax_prim_find(prim, strlen(prim))->kind == AX_REGION; /* whose types stand in the text */
  way w = way_of(instance->program, mapped, turn, batch_size);
  ax_program *whole, *spread_over;
  spread s = {instance->program, &m->mesh, m->axes, m->unchecked || (region && !m->by_vmap), w};
  const ax_vmap_options options = options_of(instance->program, &w);
  TEST_OK(ax_program_vmap(instance->program, &options, &whole));
  ax_status status = m->by_vmap ? split_by_vmap(&s, &spread_over) : spread_by_hand(instance, &s, mapped, whole, &spread_over);
  if (test_passes(instance, m->by_vmap ? "vmap split over a mesh" : "vmap on a mesh", status)) {
    m->instances = realloc(m->instances, (m->count + 1) * sizeof m->instances[0]);
    m->wanted = realloc(m->wanted, (m->count + 1) * sizeof m->wanted[0]);
    m->spread = realloc(m->spread, (m->count + 1) * sizeof m->spread[0]);
    m->instances[m->count] = *instance;
    m->instances[m->count].program = ax_program_retain(instance->program);
    m->wanted[m->count] = ax_program_retain(whole);
    m->spread[m->count++] = spread_over;
  }
  ax_program_release(whole);
  way_deinit(&w);
}

static void compare_on_mesh(on_mesh *m) {
  ax_program *all;
  ax_runtime *runtime;
  TEST_OK(test_together(m->spread, m->count, &all));
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.policy = AX_POLICY_PARALLEL, .workers = 2}, &runtime));
  ax_tensor **in = calloc(all->in_count, sizeof in[0]), **got = calloc(all->out_count, sizeof got[0]);
  for (uint32_t i = 0, at = 0; i < m->count; at += m->wanted[i++]->in_count)
    fill_inputs(&m->instances[i], m->wanted[i], in + at);
  test_execute(runtime, all, in, got);
  for (uint32_t i = 0, in_at = 0, out_at = 0; i < m->count; i++) {
    const ax_program *p = m->wanted[i];
    ax_tensor **wanted = calloc(p->out_count, sizeof wanted[0]), **condition = calloc(p->out_count, sizeof wanted[0]);
    test_run(p, in + in_at, wanted);
    find_condition(&m->instances[i], p, in + in_at, condition);
    for (uint32_t k = 0; k < p->out_count; k++)
      test_compare(&m->instances[i], m->axes, got[out_at + k], wanted[k], condition[k]);
    in_at += p->in_count, out_at += p->out_count;
    test_release(wanted, p->out_count);
    test_release(condition, p->out_count);
    free(wanted), free(condition);
  }
  test_release(in, all->in_count);
  test_release(got, all->out_count);
  free(in), free(got);
  ax_program_release(all);
  ax_runtime_release(runtime);
}

static void check_mesh(const char *text, const char *axes, bool unchecked, bool by_vmap) {
  static const char *const shapes[] = {"", "2,3", "0"};
  on_mesh m = {.axes = axes, .unchecked = unchecked, .by_vmap = by_vmap};
  TEST_OK(ax_mesh_parse(text, &m.mesh));
  for (size_t i = 0; i < test_sample_count; i++) {
    const test_sample *sample = &test_samples[i];
    if (sample->axes != NULL || sample->no_batch || sample->kernel || strcmp(sample->prim, "shard_map") == 0)
      continue; /* on a mesh of their own */
    test_instances instances = first_of(sample, sample->sums ? from_f64 : from_f32, shapes, AX_COUNT(shapes));
    for (uint32_t k = 0; k < instances.count; k++) {
      uint32_t turn = 0;
      for (uint32_t mapped = next_mapped(instances.v[k].program, 0); mapped != 0;
           mapped = next_mapped(instances.v[k].program, mapped))
        add_instance(&m, &instances.v[k], mapped, turn++);
    }
    test_instances_release(&instances);
  }
  compare_on_mesh(&m);
  for (uint32_t i = 0; i < m.count; i++) {
    test_instance_release(&m.instances[i]);
    ax_program_release(m.wanted[i]);
    ax_program_release(m.spread[i]);
  }
  free(m.instances), free(m.wanted), free(m.spread);
}

static void every_mesh(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(meshes); i++) check_mesh(meshes[i].mesh, meshes[i].axes, meshes[i].unchecked, false);
  test_blameless();
}

static void split_over_meshes(void **state) {
  (void)state;
  check_mesh("d=2", "d", false, true);
  check_mesh("d=4", "d", true, true);
  check_mesh("b=2,a=2", "a+b", false, true);
  test_blameless();
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(vmap), cmocka_unit_test(named_axes),
                                     cmocka_unit_test(every_mesh), cmocka_unit_test(split_over_meshes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
