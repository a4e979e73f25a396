/* Schedules and optimisers against optax's numbers (tests/vectors/make_trees.py), and everything that is refused. */
#include "axle/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/tensor.h"
#include "tree/moments.h"

static ax_runtime *runtime;
static const char *vectors_path = "tests/vectors/trees.npz";
static ax_npz *vectors;

static int setup(void **state) {
  (void)state;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_npz_read(vectors_path, &vectors));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ax_npz_release(vectors);
  ax_runtime_release(runtime);
  return 0;
}

/* --- Schedules --- */

static const int64_t jumps[] = {6, 19, 30}, joints[] = {9, 21};
static const double scales[] = {0.3, 2.0, 0.1};

static ax_schedule schedule_of(const char *name, ax_schedule parts[3]) {
  parts[0] = ax_linear_schedule(0, 0.4, 9, 0);
  parts[1] = ax_constant_schedule(0.4);
  parts[2] = ax_exponential_decay_schedule(0.4, 5, 0.5, 0, false, NAN);
  if (strcmp(name, "constant") == 0) return ax_constant_schedule(0.3);
  if (strcmp(name, "linear") == 0) return ax_linear_schedule(0.1, 0.7, 17, 5);
  if (strcmp(name, "polynomial") == 0) return ax_polynomial_schedule(0.9, 0.05, 3, 20, 2);
  if (strcmp(name, "polynomial_fraction") == 0) return ax_polynomial_schedule(0.9, 0.05, 0.7, 20, 2);
  if (strcmp(name, "cosine") == 0) return ax_cosine_decay_schedule(0.7, 31, 0.1, 1);
  if (strcmp(name, "cosine_exponent") == 0) return ax_cosine_decay_schedule(0.7, 31, 0, 2.5);
  if (strcmp(name, "exponential") == 0) return ax_exponential_decay_schedule(0.8, 7, 0.6, 0, false, NAN);
  if (strcmp(name, "exponential_staircase") == 0) return ax_exponential_decay_schedule(0.8, 7, 0.6, 3, true, 0.2);
  if (strcmp(name, "warmup_cosine") == 0) return ax_warmup_cosine_decay_schedule(0.01, 0.6, 8, 33, 0.02);
  if (strcmp(name, "piecewise") == 0) return ax_piecewise_constant_schedule(0.5, AX_LIST(3, jumps), scales);
  assert_string_equal(name, "join");
  return ax_join_schedules(parts, AX_LIST(2, joints));
}

static void value_at(const ax_value *in, ax_value *out, void *schedule) { out[0] = ax_schedule_at(schedule, in[0]); }

static void schedules(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_S32);
  uint32_t met = 0;
  for (uint32_t k = 0; k < ax_npz_count(vectors); k++) {
    const char *name = ax_npz_name(vectors, k);
    ax_schedule parts[3], schedule;
    if (strncmp(name, "schedule.", 9) != 0) continue;
    schedule = schedule_of(name + 9, parts);
    ax_program *program = test_trace(value_at, &schedule, &type, 1, 1);
    const ax_host_array *want = ax_npz_array(vectors, k);
    for (int32_t count = 0; count < want->dims[0]; count++, met++) {
      ax_tensor *in = test_tensor(type, (double[]){count}), *out;
      test_run(program, &in, &out);
      double ours = test_get(out, 0), theirs = (double)((const float *)want->data)[count];
      if (!(fabs(ours - theirs) <= 0x1p-22 * fmax(fabs(theirs), 0.25)))
        fail_msg("%s at step %d is %.9g, in optax %.9g", name, count, ours, theirs);
      test_release(&in, 1), test_release(&out, 1);
    }
    ax_program_release(program);
  }
  assert_int_equal(met, 11 * 40);
}

/* Parts that another takes the place of make no infinities meanwhile. */
static void schedules_are_finite(void **state) {
  (void)state;
  const ax_schedule parts[] = {ax_constant_schedule(1), ax_exponential_decay_schedule(1e-3, 10, 0.1, 0, true, NAN)};
  ax_schedule all[] = {ax_warmup_cosine_decay_schedule(0, 1e-3, 1000, 1010, 1e-5),
                       ax_exponential_decay_schedule(1e-3, 1, 0.5, 1000, false, NAN),
                       ax_join_schedules(parts, AX_DIMS(100000))};
  const ax_compile_options options = {.check_numerics = AX_CHECK_NAN | AX_CHECK_INF};
  const ax_type type = TEST_SCALAR(AX_S32);
  ax_runtime *runtime;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    ax_executable *executable;
    int32_t count = 0;
    const ax_host_array in = ax_host_view(AX_S32, AX_DIMS(), &count);
    ax_host_array out;
    TEST_OK(ax_jit(runtime, AX_CLOSURE(value_at, 1, 1, &all[i]), &type, &options, &executable));
    TEST_OK(ax_run_host(executable, &in, &out));
    assert_true(fabs(ax_host_at(&out, 0) - (double[]){0, (double)1e-3f, 1}[i]) < 1e-9);
    ax_host_array_release(&out);
    ax_executable_release(executable);
  }
  ax_runtime_release(runtime);
}

static void of_ones_own(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_S32);
  ax_schedule nothing = {0};
  ax_program *program = test_trace(value_at, &nothing, &type, 1, 1);
  ax_tensor *in = test_tensor(type, (double[]){3}), *out;
  test_run(program, &in, &out);
  assert_true(test_get(out, 0) == 0);
  test_release(&in, 1), test_release(&out, 1);
  ax_program_release(program);
}

static ax_value as_it_is(const ax_schedule *schedule, ax_value count) {
  (void)schedule;
  return count;
}

static void refused_schedules(void **state) {
  (void)state;
  const double negative[] = {-1};
  const struct {
    ax_schedule schedule;
    const char *part;
  } cases[] = {
      {ax_cosine_decay_schedule(1, 0, 0, 1), "cosine_decay_schedule: steps is 0; there must be some"},
      {ax_warmup_cosine_decay_schedule(0, 1, 10, 10, 0),
       "warmup_cosine_decay_schedule: the 10 steps are to include the 10 of warming up"},
      {ax_constant_schedule(INFINITY), "constant_schedule: the value is inf, which is not finite"},
      {ax_linear_schedule(NAN, 1, 10, 0), "polynomial_schedule: from is nan"},
      {ax_linear_schedule(0, 1, INT64_MAX, 0), "polynomial_schedule: steps is 9223372036854775807, beyond what is counted"},
      {ax_exponential_decay_schedule(1, 5, 0.5, 0, false, INFINITY), "exponential_decay_schedule: to is inf; NAN is for none"},
      {ax_piecewise_constant_schedule(1, AX_LIST(1, jumps), negative), "piecewise_constant_schedule: scale 0 is -1, below 0"},
      {ax_piecewise_constant_schedule(1, AX_LIST(1, jumps), NULL), "there are no boundaries, or no scales"},
      {ax_join_schedules(NULL, AX_LIST(1, jumps)), "join_schedules: there are no parts"},
      {{.function = as_it_is}, "schedule_at: the schedule gives s32[], not f32[]"},
  };
  ax_type type = TEST_SCALAR(AX_S32);
  ax_program *program;
  for (size_t i = 0; i < AX_COUNT(cases); i++)
    TEST_FAILS(ax_trace(AX_CLOSURE(value_at, 1, 1, (void *)&cases[i].schedule), &type, &program), AX_INVALID_ARGUMENT,
               cases[i].part);
  TEST_FAILS(ax_trace(AX_FN(value_at, 1, 1), &type, &program), AX_INVALID_ARGUMENT, "there is no schedule");
  ax_schedule constant = ax_constant_schedule(1);
  type = TEST_TYPE(AX_F32, 2);
  TEST_FAILS(ax_trace(AX_CLOSURE(value_at, 1, 1, &constant), &type, &program), AX_INVALID_ARGUMENT,
             "schedule_at: the count is f32[2], not s32[]");
}

/* --- Optimisers --- */

static ax_optimizer optimizer_of(const char *name) {
  ax_optimizer o;
  if (strncmp(name, "sgd", 3) == 0 && strcmp(name, "sgd_everything") != 0) {
    o = ax_sgd(ax_constant_schedule(strcmp(name, "sgd") == 0 || strcmp(name, "sgd_clipped") == 0 ? 0.1 : 0.03));
    if (strcmp(name, "sgd_momentum") == 0) o.momentum = 0.9;
    if (strcmp(name, "sgd_nesterov") == 0) o.momentum = 0.85, o.nesterov = true, o.clip_block_rms = 0.8;
    if (strcmp(name, "sgd_clipped") == 0) o.clip_norm = 1.5;
    return o;
  }
  if (strcmp(name, "adam") == 0) return ax_adam(ax_constant_schedule(0.02));
  if (strcmp(name, "adamw") == 0) return ax_adamw(ax_constant_schedule(0.02));
  if (strcmp(name, "lamb") == 0) {
    o = ax_lamb(ax_constant_schedule(0.02));
    o.weight_decay = 0.01, o.decay = "!bias; *";
    return o;
  }
  if (strcmp(name, "lion") == 0) return ax_lion(ax_constant_schedule(0.02));
  if (strcmp(name, "adagrad") == 0) return ax_adagrad(ax_constant_schedule(0.1));
  if (strncmp(name, "rmsprop", 7) == 0) {
    o = ax_rmsprop(ax_constant_schedule(0.02));
    if (strcmp(name, "rmsprop_momentum") == 0) o.b2 = 0.8, o.eps = 1e-5, o.momentum = 0.7, o.nesterov = true;
    return o;
  }
  if (strncmp(name, "adafactor", 9) == 0) {
    o = ax_adafactor(ax_constant_schedule(0.05));
    o.min_dim_size_to_factor = 3;
    if (strcmp(name, "adafactor_whole") == 0) {
      o.learning_rate = ax_exponential_decay_schedule(0.8, 7, 0.6, 0, false, NAN);
      o.min_dim_size_to_factor = 128, o.multiply_by_parameter_scale = false, o.clipping_threshold = 0;
    }
    if (strcmp(name, "adafactor_all") == 0) {
      o.clip_norm = 2, o.min_dim_size_to_factor = 2, o.b2 = 0.6, o.momentum = 0.8, o.clipping_threshold = 0.7;
      o.weight_decay = 0.01, o.decay = "!bias; *";
    }
    return o;
  }
  if (strncmp(name, "novograd", 8) == 0) {
    o = ax_novograd(ax_constant_schedule(0.02));
    if (strcmp(name, "novograd_all") == 0) o.b1 = 0.8, o.b2 = 0.5, o.eps = 1e-4, o.eps_root = 1e-5, o.weight_decay = 0.05;
    return o;
  }
  if (strncmp(name, "shampoo", 7) == 0) {
    o = ax_shampoo(ax_constant_schedule(strcmp(name, "shampoo_all") == 0 ? 0.02 : 0.1));
    o.eps = strcmp(name, "shampoo") == 0 ? 1e-3 : 1e-2;
    if (strcmp(name, "shampoo_blocks") == 0) o.block_size = 2, o.momentum = 0.9;
    if (strcmp(name, "shampoo_all") == 0) {
      o.clip_norm = 2, o.block_size = 4, o.b2 = 0.9, o.momentum = 0.7, o.nesterov = true;
      o.weight_decay = 0.05, o.decay = "!bias; *";
    }
    return o;
  }
  if (strcmp(name, "adam_ema") == 0) {
    o = ax_adam(ax_constant_schedule(0.02));
    o.ema_decay = 0.9;
    return o;
  }
  if (strcmp(name, "adam_frozen") == 0) {
    o = ax_adam(ax_constant_schedule(0.02));
    o.clip_norm = 1.5, o.trainable = "!bias; *";
    return o;
  }
  if (strcmp(name, "sgd_everything") == 0) {
    o = ax_sgd(ax_constant_schedule(0.05));
    o.momentum = 0.7, o.trainable = "!bias; *", o.accumulate_steps = 3, o.ema_decay = 0.8;
    return o;
  }
  if (strcmp(name, "adamw_accumulated") == 0) {
    o = ax_adamw(ax_warmup_cosine_decay_schedule(0.01, 0.6, 8, 33, 0.02));
    o.clip_norm = 0.8, o.accumulate_steps = 4;
    return o;
  }
  if (strcmp(name, "adam_root") == 0) {
    o = ax_adam(ax_exponential_decay_schedule(0.8, 7, 0.6, 0, false, NAN));
    o.b1 = 0.8, o.b2 = 0.99, o.eps = 1e-5, o.eps_root = 1e-7, o.clip_value = 0.6;
    return o;
  }
  assert_string_equal(name, "adamw_all");
  o = ax_adamw(ax_warmup_cosine_decay_schedule(0.01, 0.6, 8, 33, 0.02));
  o.weight_decay = 0.1, o.decay = "!bias; *", o.clip_norm = 2;
  return o;
}

typedef struct job {
  ax_optimizer optimizer;
  ax_treedef *params, *state, *all, *results;
  const ax_mesh *mesh; /* NULL: none */
  bool unchecked;
} job;

static void update_body(const ax_value *in, ax_value *out, void *context) {
  job *j = context;
  uint32_t n = ax_treedef_count(j->params);
  const ax_value *state = ax_leaves(j->all, in, "state"), *gradients = ax_leaves(j->all, in, "gradients");
  ax_optimizer_update(&j->optimizer, j->params, gradients, state, in, out + n, out);
}

static void update(const ax_value *in, ax_value *out, void *context) {
  job *j = context;
  ax_fn body = AX_CLOSURE(update_body, ax_treedef_count(j->all), ax_treedef_count(j->results), j);
  char specs[512];
  snprintf(specs, sizeof specs, "%s -> %s", ax_treedef_specs(j->all), ax_treedef_specs(j->results));
  if (j->unchecked) ax_shard_map_unchecked(j->mesh, specs, body, in, out);
  else if (j->mesh != NULL) ax_tree_shard_map(j->mesh, j->all, j->results, body, in, out);
  else update_body(in, out, j);
}

static ax_status job_begin(job *j, const char *params) {
  AX_TRY(ax_treedef_parse(params, &j->params));
  AX_TRY(ax_optimizer_state(&j->optimizer, j->params, &j->state));
  AX_TRY(ax_treedef_join("params; state; gradients", AX_TREEDEFS(j->params, j->state, j->params), &j->all));
  return ax_treedef_join("params; state", AX_TREEDEFS(j->params, j->state), &j->results);
}

static void job_end(job *j) {
  ax_treedef_release(j->params), ax_treedef_release(j->state), ax_treedef_release(j->all), ax_treedef_release(j->results);
}

static ax_executable *compiled(job *j) {
  ax_program *program;
  ax_executable *executable;
  TEST_OK(
      ax_trace(AX_CLOSURE(update, ax_treedef_count(j->all), ax_treedef_count(j->results), j), ax_treedef_types(j->all), &program));
  TEST_OK(ax_compile(runtime, program, &(ax_compile_options){.donate = ax_treedef_select(j->all, "params; state")}, &executable));
  ax_program_release(program);
  return executable;
}

static const char *const leaves[] = {"bias", "scale", "w"};

static const ax_host_array *vector(const char *name, const char *dtype, const char *kind, const char *leaf) {
  char member[96];
  snprintf(member, sizeof member, "optimizer.%s.%s.%s.%s", name, dtype, kind, leaf);
  const ax_host_array *array = ax_npz_find(vectors, member);
  if (array == NULL) fail_msg("no vector %s", member);
  return array;
}

/* The elements of step `step` of a vector whose first dimension is steps. */
static const char *row(const ax_host_array *array, int64_t step) {
  size_t bytes = ax_dtype_bytes(array->dtype);
  for (uint32_t d = 1; d < array->rank; d++) bytes *= (size_t)array->dims[d];
  return (const char *)array->data + (size_t)step * bytes;
}

/* Compares leaves of a tree, below `node`, with a kind of vectors, in which a leaf may be missing. */
static void compare(const ax_tree *tree, const char *node, const char *kind, const char *name, const char *dtype, int64_t step) {
  double unit = strcmp(dtype, "f64") == 0 ? 0x1p-52 : strcmp(dtype, "f32") == 0 ? 0x1p-23 : 0x1p-7;
  if (strncmp(name, "shampoo", 7) == 0 && unit < 0x1p-7) unit *= 8; /* by eigenvalues */
  for (size_t l = 0; l < AX_COUNT(leaves); l++) {
    ax_host_array ours;
    char member[96];
    snprintf(member, sizeof member, "optimizer.%s.%s.%s.%s", name, dtype, kind, leaves[l]);
    const ax_host_array *array = ax_npz_find(vectors, member);
    if (array == NULL && strcmp(kind, "out") != 0) continue;
    assert_non_null(array);
    const char *theirs = row(array, step);
    TEST_OK(ax_tree_to_host(tree, &ours, "%s%s", node, leaves[l]));
    ax_type type = ax_array_type(ours.dtype, AX_LIST(ours.rank, ours.dims));
    for (int64_t i = 0; i < ax_type_elems(&type); i++) {
      double a = ax_number_load(ours.dtype, ours.data, i).f, b = ax_number_load(ours.dtype, theirs, i).f;
      if (!(fabs(a - b) <= (unit == 0x1p-7 ? 4 : 8) * unit * fmax(fabs(b), 1)))
        fail_msg("%s.%s: %s%s[%lld] after step %lld is %.9g, in optax %.9g", name, dtype, node, leaves[l], (long long)i,
                 (long long)step, a, b);
    }
    ax_host_array_release(&ours);
  }
}

static void run_optimizer(const char *name, const char *dtype, const char *mesh_text, const char *specs, bool unchecked) {
  char text[160];
  ax_mesh mesh;
  ax_tree *params, *state, *gradients;
  job j = {.optimizer = optimizer_of(name), .unchecked = unchecked};
  TEST_OK(ax_mesh_parse(mesh_text, &mesh));
  if (mesh.count > 0) j.mesh = &mesh;
  snprintf(text, sizeof text, specs, dtype, dtype, dtype);
  TEST_OK(job_begin(&j, text));
  TEST_OK(ax_tree_create(runtime, &mesh, j.params, &params));
  TEST_OK(ax_tree_create(runtime, &mesh, j.params, &gradients));
  TEST_OK(ax_tree_create(runtime, &mesh, j.state, &state));
  TEST_OK(ax_tree_init(state, j.optimizer.kind == AX_ADAGRAD ? "sum_of_*: constant(0.1); *: zeros" : "*: zeros", 0));
  for (size_t l = 0; l < AX_COUNT(leaves); l++)
    TEST_OK(ax_tree_put_host(params, vector(name, dtype, "in", leaves[l]), "%s", leaves[l]));
  ax_executable *executable = compiled(&j);
  int64_t steps = vector(name, dtype, "out", "w")->dims[0];
  assert_true(steps >= 20);
  for (int64_t step = 0; step < steps; step++) {
    for (size_t l = 0; l < AX_COUNT(leaves); l++)
      TEST_OK(ax_tree_put(gradients, row(vector(name, dtype, "gradient", leaves[l]), step), "%s", leaves[l]));
    TEST_OK(ax_tree_run(executable, AX_TREES(params, state, gradients), AX_TREES(params, state)));
    compare(params, "", "out", name, dtype, step);
    if (j.optimizer.ema_decay > 0) compare(state, "ema/", "ema", name, dtype, step);
  }
  int32_t count;
  TEST_OK(ax_tree_read(state, &count, sizeof count, "count"));
  assert_int_equal(count, j.optimizer.accumulate_steps > 0 ? steps / j.optimizer.accumulate_steps : steps);
  ax_tree_release(params), ax_tree_release(state), ax_tree_release(gradients);
  ax_executable_release(executable);
  job_end(&j);
}

static const char *const names[] = {"sgd",  "sgd_momentum", "sgd_nesterov", "sgd_clipped",
                                    "adam", "adam_root",    "adamw",        "adamw_all",
                                    "lamb", "lion",         "rmsprop",      "rmsprop_momentum",
                                    "adagrad", "adafactor", "adafactor_whole", "adafactor_all", "novograd", "novograd_all",
                                    "adamw_accumulated", "adam_ema", "adam_frozen", "sgd_everything",
                                    "shampoo", "shampoo_blocks", "shampoo_all"};

static void optimizers(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(names); i++) run_optimizer(names[i], "f32", "", "bias: %s[7]; scale: %s[]; w: %s[5,3]", false);
  for (int i = 0; i < 2; i++) {
    run_optimizer(i == 0 ? "adamw" : "shampoo", "bf16", "", "bias: %s[7]; scale: %s[]; w: %s[5,3]", false);
    run_optimizer(i == 0 ? "adamw" : "shampoo", "f64", "", "bias: %s[7]; scale: %s[]; w: %s[5,3]", false);
  }
}

/* Parts of leaves on a mesh: norms are those of whole leaves, whether types say what is cut or the specs. */
static void sharded(void **state) {
  (void)state;
  static const char *const some[] = {"adamw_all", "sgd_nesterov", "sgd_clipped", "lamb",
                                     "adafactor", "adafactor_all", "novograd_all", "adamw_accumulated", "sgd_everything",
                                     "shampoo_all"};
  for (size_t i = 0; i < 2 * AX_COUNT(some); i++)
    run_optimizer(some[i / 2], "f32", "a=5,b=7,c=3", "bias: %s[7] @ b; scale: %s[]; w: %s[5,3] @ a,c", i % 2 == 1);
  run_optimizer("adamw_all", "f32", "a=5,b=3", "bias: %s[7]; scale: %s[]; w: %s[5,3] @ _,b", false);
}

/* States, by name, type and spec. */
static void states(void **state) {
  (void)state;
  const struct {
    ax_optimizer optimizer;
    const char *text;
  } cases[] = {
      {optimizer_of("adafactor"),
       "count: s32[]\nv_row/b: f32[1]\nv_row/w: f32[3,6] @ _,y\nv_col/b: f32[1]\nv_col/w: f32[3,8] @ _,x\n"
       "v/b: f32[7] @ x\nv/w: f32[1]\n"},
      {optimizer_of("shampoo_blocks"),
       "count: s32[]\nleft/b: f32[4,1,2,2]\nleft/w: f32[12,3,2,2]\nright/b: f32[1]\nright/w: f32[12,3,2,2]\n"
       "trace/b: f32[7] @ x\ntrace/w: f32[3,8,6] @ _,x,y\n"},
      {optimizer_of("shampoo"),
       "count: s32[]\nleft/b: f32[1,1,7,7]\nleft/w: f32[1,1,24,24]\nright/b: f32[1]\nright/w: f32[1,1,6,6]\n"},
      {optimizer_of("novograd"), "count: s32[]\nmu/b: f32[7] @ x\nmu/w: f32[3,8,6] @ _,x,y\nnu/b: f32[]\nnu/w: f32[]\n"},
      {optimizer_of("adamw_accumulated"),
       "count: s32[]\nmini_step: s32[]\nmu/b: f32[7] @ x\nmu/w: f32[3,8,6] @ _,x,y\nnu/b: f32[7] @ x\nnu/w: f32[3,8,6] @ _,x,y\n"
       "acc_grads/b: f32[7] @ x\nacc_grads/w: f32[3,8,6] @ _,x,y\n"},
      {(ax_optimizer){.ema_decay = 0.5, .trainable = "w"}, "count: s32[]\nema/w: f32[3,8,6] @ _,x,y\n"},
      {(ax_optimizer){.momentum = 0.5, .trainable = "none"}, "count: s32[]\n"},
  };
  ax_treedef *params, *def;
  TEST_OK(ax_treedef_parse("b: f32[7] @ x; w: f32[3,8,6] @ _,x,y", &params));
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    char text[1024] = "";
    TEST_OK(ax_optimizer_state(&cases[i].optimizer, params, &def));
    for (uint32_t k = 0; k < ax_treedef_count(def); k++) {
      const char *spec = ax_treedef_spec(def, k);
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s: %s%s%s\n", ax_treedef_name(def, k),
               ax_type_string(&ax_treedef_types(def)[k], NULL), spec[0] != '\0' ? " @ " : "", spec);
    }
    assert_string_equal(text, cases[i].text);
    ax_treedef_release(def);
  }
  ax_treedef_release(params);
}

/* Leaves as matrices in even blocks. */
static void blocks(void **state) {
  (void)state;
  const ax_optimizer o = {.block_size = 4}, whole = {.block_size = 0};
  const ax_type types[] = {TEST_SCALAR(AX_F32), TEST_TYPE(AX_F32, 9), TEST_TYPE(AX_F32, 2, 3, 5), TEST_TYPE(AX_F32, 0, 3)};
  const ax_shampoo_blocks expected[] = {
      {1, 1, 1, 1, 1, 1, true}, {9, 1, 3, 1, 3, 1, true}, {6, 5, 2, 2, 3, 3, false}, {0, 3, 1, 1, 0, 3, false}};
  for (size_t i = 0; i < AX_COUNT(types); i++) {
    const ax_shampoo_blocks b = ax_shampoo_blocks_of(&o, &types[i]), all = ax_shampoo_blocks_of(&whole, &types[i]);
    const ax_shampoo_blocks want = expected[i];
    assert_true(b.rows == want.rows && b.columns == want.columns && b.down == want.down && b.across == want.across);
    assert_true(b.block_rows == want.block_rows && b.block_columns == want.block_columns && b.vector == want.vector);
    assert_true(all.down == 1 && all.across == 1 && all.block_rows == want.rows && all.block_columns == want.columns);
  }
}

static ax_optimizer plain(void) { return ax_adam(ax_constant_schedule(0.1)); }

static void refused(void **state) {
  (void)state;
  ax_treedef *params, *integers, *out;
  ax_optimizer o = plain();
  TEST_OK(ax_treedef_parse("w: f32[3]", &params));
  TEST_OK(ax_treedef_parse("w: f32[3]; n: s32[]", &integers));
  TEST_FAILS(ax_optimizer_state(&o, integers, &out), AX_INVALID_ARGUMENT, "optimizer_state: n is s32[]: only floats are optimised");
  TEST_FAILS(ax_optimizer_state(NULL, params, &out), AX_INVALID_ARGUMENT, "there is no optimizer");
  TEST_FAILS(ax_optimizer_state(&o, NULL, &out), AX_INVALID_ARGUMENT, "there is no treedef of the parameters");
  o.b1 = 1;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "b1 is 1; it must be at least 0 and less than 1");
  o = plain(), o.clip_norm = NAN;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "clip_norm is nan");
  o = plain(), o.accumulate_steps = -1;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "accumulate_steps is -1; it must be at least 0");
  o = ax_shampoo(ax_constant_schedule(1)), o.block_size = -1;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "block_size is -1; it must be at least 0");
  o = plain(), o.ema_decay = 1;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "ema_decay is 1; it must be at least 0 and less than 1");
  o = plain(), o.trainable = "w: 3";
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_PARSE_ERROR, "optimizer_state: ");
  o = plain(), o.kind = 10;
  TEST_FAILS(ax_optimizer_state(&o, params, &out), AX_INVALID_ARGUMENT, "there is no optimizer 10");
  assert_null(out);
  ax_treedef_release(params), ax_treedef_release(integers);
}

/* in: count, mu, nu, w, gradient */
static void bad_update(const ax_value *in, ax_value *out, void *context) {
  job *j = context;
  ax_optimizer_update(&j->optimizer, j->params, &in[4], in, &in[3], out, out + 3);
}

static void refused_updates(void **state) {
  (void)state;
  ax_program *program;
  job j = {.optimizer = plain()};
  TEST_OK(ax_treedef_parse("l/w: f32[3]", &j.params));
  ax_type types[] = {TEST_SCALAR(AX_S32), TEST_TYPE(AX_F32, 3), TEST_TYPE(AX_F32, 3), TEST_TYPE(AX_F32, 3), TEST_TYPE(AX_F32, 4)};
  TEST_FAILS(ax_trace(AX_CLOSURE(bad_update, 5, 4, &j), types, &program), AX_INVALID_ARGUMENT,
             "optimizer_update: l/w: its gradient is f32[4], the parameter f32[3]");
  types[4] = types[3], types[2] = TEST_TYPE(AX_F64, 3);
  TEST_FAILS(ax_trace(AX_CLOSURE(bad_update, 5, 4, &j), types, &program), AX_INVALID_ARGUMENT,
             "optimizer_update: l/w: its state is f64[3], the parameter f32[3]");
  types[2] = types[3], types[0] = TEST_SCALAR(AX_F32);
  TEST_FAILS(ax_trace(AX_CLOSURE(bad_update, 5, 4, &j), types, &program), AX_INVALID_ARGUMENT, "the count is f32[], not s32[]");
  types[0] = TEST_SCALAR(AX_S32);
  j.optimizer.decay = "a b";
  TEST_FAILS(ax_trace(AX_CLOSURE(bad_update, 5, 4, &j), types, &program), AX_PARSE_ERROR,
             "optimizer_update: decay:1:2: a pattern has letters");
  j.optimizer.decay = NULL, j.optimizer.trainable = "a b";
  TEST_FAILS(ax_trace(AX_CLOSURE(bad_update, 5, 4, &j), types, &program), AX_PARSE_ERROR,
             "optimizer_update: trainable:1:2: a pattern has letters");
  job_end(&j);
}

/* in: count, v_row, v_col, v, w, gradient */
static void cut_otherwise(const ax_value *in, ax_value *out, void *context) {
  job *j = context;
  ax_optimizer_update(&j->optimizer, j->params, &in[5], in, &in[4], out, out + 4);
}

/* adafactor has to know which dimensions are cut. */
static void refused_parts(void **state) {
  (void)state;
  ax_program *program;
  job j = {.optimizer = ax_adafactor(ax_constant_schedule(1))};
  TEST_OK(ax_treedef_parse("w: f32[4,4] @ x", &j.params));
  const ax_type part = TEST_TYPE(AX_F32, 2, 4), one = TEST_TYPE(AX_F32, 1);
  const ax_type types[] = {TEST_SCALAR(AX_S32), one, one, part, part, part};
  TEST_FAILS(ax_trace(AX_CLOSURE(cut_otherwise, 6, 5, &j), types, &program), AX_INVALID_ARGUMENT,
             "optimizer_update: adafactor takes means along dimensions: a parameter is f32[2,4], which is not f32[4,4] as the spec "
             "\"x\" cuts it");
  const ax_type flat = TEST_TYPE(AX_F32, 4), of_flat[] = {TEST_SCALAR(AX_S32), one, one, flat, flat, flat};
  TEST_FAILS(ax_trace(AX_CLOSURE(cut_otherwise, 6, 5, &j), of_flat, &program), AX_INVALID_ARGUMENT, "which is not f32[4,4] as the spec");
  j.optimizer.min_dim_size_to_factor = 1;
  TEST_FAILS(ax_trace(AX_CLOSURE(cut_otherwise, 6, 5, &j), of_flat, &program), AX_INVALID_ARGUMENT, "w: its state is f32[1], the parameter");
  job_end(&j);
}

/* A badly conditioned problem in a loop: loss = sum (c (w - 1))^2 / 2, c the products of the elements of two vectors. */
enum { DOWN = 4, ACROSS = 3, DESCENT = 200 };

static ax_value off_by(ax_value w) {
  double scale[DOWN * ACROSS];
  for (int i = 0; i < DOWN * ACROSS; i++) scale[i] = pow(10, -0.5 * (i / ACROSS) - 0.75 * (i % ACROSS));
  const ax_type type = TEST_TYPE(AX_F64, DOWN, ACROSS);
  return ax_mul(ax_constant(&type, scale), ax_sub(w, ax_real(1)));
}

static AX_BODY(squared) {
  (void)context;
  out[0] = ax_mul(ax_reduce_sum(ax_mul(off_by(in[0]), off_by(in[0])), AX_ALL_DIMS, false), ax_real(0.5));
}

static AX_BODY(descend) { /* i, w, the state -> w, the state */
  const job *j = context;
  const uint32_t states = ax_treedef_count(j->state);
  ax_value gradient;
  ax_grad(AX_FN(squared, 1, 1), AX_ALL_ARGS, AX_LIST(1, &in[1]), AX_LIST(1, &gradient));
  (ax_optimizer_update)(&j->optimizer, j->params, 1, &gradient, states, in + 2, 1, in + 1, states, out + 1, 1, out);
}

static AX_BODY(descent) { /* w, the state -> the loss after all steps */
  job *j = context;
  const uint32_t carries = 1 + ax_treedef_count(j->state);
  ax_value made[8];
  ax_fori_loop(ax_integer(0), ax_integer(DESCENT), AX_CLOSURE(descend, 1 + carries, carries, j), AX_LIST(carries, in),
               AX_LIST(carries, made));
  squared(made, out, NULL);
}

static double loss_after(ax_optimizer optimizer) {
  job j = {.optimizer = optimizer};
  ax_tensor *in[8], *out;
  TEST_OK(job_begin(&j, "w: f64[4,3]"));
  const uint32_t carries = 1 + ax_treedef_count(j.state);
  ax_program *program = test_trace(descent, &j, ax_treedef_types(j.results), carries, 1);
  for (uint32_t k = 0; k < carries; k++) in[k] = test_tensor(ax_treedef_types(j.results)[k], (double[DOWN * DOWN]){0});
  test_run(program, in, &out);
  const double loss = test_get(out, 0);
  test_release(in, carries), test_release(&out, 1);
  ax_program_release(program);
  job_end(&j);
  return loss;
}

/* sgd with its best rate, 2 / (largest + smallest eigenvalue), is held back by the ratio of these. */
static void badly_conditioned(void **state) {
  (void)state;
  const double by_sgd = loss_after(ax_sgd(ax_constant_schedule(1.99)));
  ax_optimizer shampoo = ax_shampoo(ax_constant_schedule(1));
  shampoo.eps = 1e-12;
  const double by_shampoo = loss_after(shampoo);
  if (!(by_shampoo < by_sgd / 100)) fail_msg("the loss is %g by shampoo, %g by sgd", by_shampoo, by_sgd);
}

/* The equations of a step are so many for each leaf. */
static void many_leaves(void **state) {
  (void)state;
  double equations[2];
  for (int i = 0; i < 2; i++) {
    char text[64];
    ax_program *program;
    job j = {.optimizer = ax_adamw(ax_cosine_decay_schedule(1, 100, 0, 1))};
    j.optimizer.clip_norm = 1;
    snprintf(text, sizeof text, "l/{1..%d}/w: f32[3]", i == 0 ? 1000 : 4000);
    TEST_OK(job_begin(&j, text));
    TEST_OK(
        ax_trace(AX_CLOSURE(update, ax_treedef_count(j.all), ax_treedef_count(j.results), &j), ax_treedef_types(j.all), &program));
    equations[i] = program->eqn_count;
    ax_program_release(program);
    job_end(&j);
  }
  assert_true(equations[1] < 4 * equations[0] && equations[1] < 4000 * 60);
}

static ax_status everything(void *context) {
  ax_program *program = NULL;
  job j = {.optimizer = ax_adamw(ax_warmup_cosine_decay_schedule(0, 1, 5, 100, 0))};
  if (context != NULL) j.optimizer = *(const ax_optimizer *)context;
  j.optimizer.clip_norm = 1, j.optimizer.decay = j.optimizer.trainable = "w";
  j.optimizer.accumulate_steps = 2, j.optimizer.ema_decay = 0.5, j.optimizer.min_dim_size_to_factor = 2;
  ax_status status = job_begin(&j, "w: f32[3,2]; b: f32[]");
  if (status == AX_OK)
    status =
        ax_trace(AX_CLOSURE(update, ax_treedef_count(j.all), ax_treedef_count(j.results), &j), ax_treedef_types(j.all), &program);
  ax_program_release(program);
  job_end(&j);
  return status;
}

static void no_memory(void **state) {
  (void)state;
  assert_true(test_each_allocation(everything, NULL) > 50);
  ax_optimizer others[] = {ax_adafactor(ax_constant_schedule(1)), ax_shampoo(ax_constant_schedule(1))};
  for (size_t i = 0; i < AX_COUNT(others); i++) assert_true(test_each_allocation(everything, &others[i]) > 50);
}

int main(int argc, char **argv) {
  if (argc > 1) vectors_path = argv[1]; /* tests/oracle/run gives fresh ones */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(schedules),       cmocka_unit_test(of_ones_own),   cmocka_unit_test(refused_schedules),
      cmocka_unit_test(optimizers),      cmocka_unit_test(sharded),       cmocka_unit_test(states),
      cmocka_unit_test(refused),         cmocka_unit_test(refused_parts), cmocka_unit_test(refused_updates),
      cmocka_unit_test(many_leaves),     cmocka_unit_test(no_memory),     cmocka_unit_test(schedules_are_finite),
      cmocka_unit_test(badly_conditioned), cmocka_unit_test(blocks),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
