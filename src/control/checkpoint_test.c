/* Bodies that are done again for their derivatives: beside the same functions kept, with every collective inside, in loops,
   branches, calls and one another, mapped and differentiated twice; that less is held for it; what is refused. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/prim.h"
#include "plan/passes.h"
#include "prim/prims.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/oom.h"
#include "support/run.h"

/* --- A function of two operands and one result: kept, or done again --- */

typedef enum wrapping { PLAIN, AGAIN, AGAIN_BUT_DOTS, AGAIN_TWICE, WRAPPINGS } wrapping;
static const char *const wrapping_names[] = {"plain", "checkpoint", "checkpoint, dots saved", "checkpoint in a checkpoint"};
static const ax_checkpoint_options with_dots = {.save_dots = true};

static AX_BODY(call) { ((const ax_fn *)context)->function(in, out, NULL); }
static AX_BODY(call_again) {
  ax_value half;
  ax_checkpoint(AX_CLOSURE(call, 2, 1, context), in, &half, NULL);
  out[0] = ax_mul(half, ax_cos(half));
}
static AX_BODY(call_and_use) {
  ax_value half;
  call(in, &half, context);
  out[0] = ax_mul(half, ax_cos(half));
}

static ax_value wrapped(wrapping by, ax_function function, ax_value x, ax_value w) {
  ax_fn f = AX_FN(function, 2, 1), use = AX_CLOSURE(by == AGAIN_TWICE ? call_again : call_and_use, 2, 1, &f);
  ax_value in[] = {x, w}, out;
  if (by == PLAIN) use.function(in, &out, use.context);
  else ax_checkpoint(use, in, &out, by == AGAIN_BUT_DOTS ? &with_dots : NULL);
  return out;
}

/* --- Functions of a device: x varies, w is the same on all --- */

static ax_value mixed(ax_value x, ax_value w) { return ax_sin(ax_mul(x, w)); }

static AX_BODY(sums) { out[0] = ax_mul(ax_psum(mixed(in[0], in[1]), "d"), in[1]); }
static AX_BODY(largest) { out[0] = ax_mul(ax_pmax(in[0], "d"), in[1]); }
static AX_BODY(smallest) { out[0] = ax_mul(ax_pmin(in[0], "d"), in[1]); }
static AX_BODY(mean) { out[0] = ax_pmean(mixed(in[0], in[1]), "d"); }
static AX_BODY(gathered) { out[0] = ax_all_gather(mixed(in[0], in[1]), "d", 0, true); }
static AX_BODY(gathered_alike) { out[0] = ax_all_gather_invariant(mixed(in[0], in[1]), "d", 0, true); }
static AX_BODY(gathered_reduced) { out[0] = ax_reduced_vary_cast(ax_all_gather_reduced(mixed(in[0], in[1]), "d", 0, true), "d"); }
static AX_BODY(scattered) { out[0] = ax_psum_scatter(mixed(in[0], in[1]), "d", 0, true); }
static AX_BODY(exchanged) { out[0] = ax_all_to_all(mixed(in[0], in[1]), "d", 0, 1, true); }
static AX_BODY(passed_on) { out[0] = ax_pshift(mixed(in[0], in[1]), "d", 1, true); }
static AX_BODY(told) { out[0] = ax_pbroadcast(mixed(in[0], in[1]), "d", 1); }
static AX_BODY(grouped) { out[0] = ax_psum(mixed(in[0], in[1]), "d {0,2} {1,3}"); }
static AX_BODY(in_parts) { out[0] = ax_mul(in[0], ax_preduced(in[1], "d")); }
static AX_BODY(parts) { out[0] = ax_unreduced_psum(ax_vary_unreduced_cast(mixed(in[0], in[1]), "d", AX_UNREDUCED_SUM), "d"); }
static AX_BODY(begun) { out[0] = ax_done(ax_start(ax_psum(mixed(in[0], in[1]), "d"))); }
static AX_BODY(numbered) { out[0] = ax_mul(mixed(in[0], in[1]), ax_convert_element_type(ax_axis_index("d"), AX_F64)); }
static AX_BODY(moved_rows) {
  ax_value offsets = ax_iota(AX_S32, AX_DIMS(4), 0), ones = ax_full(AX_S32, AX_DIMS(4), 1);
  ax_value to = ax_add(ax_full(AX_S32, AX_DIMS(4), 0), ax_axis_index("d"));
  out[0] = ax_ragged_all_to_all(mixed(in[0], in[1]), ax_mul(in[0], ax_real(0)), offsets, ones, to, ones, "d");
}
static AX_BODY(products) {
  out[0] = ax_tanh(ax_matmul(ax_matmul(in[0], ax_mul(ax_iota(AX_F64, AX_DIMS(4, 4), 1), ax_reshape(in[1], AX_DIMS(4, 1)))),
                             ax_iota(AX_F64, AX_DIMS(4, 4), 0)));
}
static AX_BODY(of_w_alone) { out[0] = ax_sin(in[1]); }

/* The same in a loop, in a branch, in a call and on many members: whoever uses one has it there. */
typedef enum place { HERE, IN_SCAN, IN_BRANCH, IN_CALL, IN_BATCH, PLACES } place;
typedef struct subject {
  wrapping by;
  ax_function f;
  place place;
  bool unchecked;
} subject;

static AX_BODY(turn) {
  const subject *s = context;
  ax_value made = wrapped(s->by, s->f, in[0], in[1]);
  out[0] = ax_add(ax_mul(in[0], ax_real(0.5)), ax_mul(ax_reduce_sum(ax_cos(made), AX_ALL_DIMS, false), ax_real(0.1)));
  out[1] = in[1];
}
static AX_BODY(other) {
  out[0] = ax_neg(in[0]);
  out[1] = in[1];
}
static AX_BODY(turn_member) {
  ax_value made[2];
  turn((ax_value[]){in[0], in[1]}, made, context);
  out[0] = made[0];
}

static AX_BODY(on_device) {
  const subject *s = context;
  ax_fn f = AX_CLOSURE(turn, 2, 2, context);
  ax_value made[2];
  if (s->place == HERE) turn(in, made, context);
  if (s->place == IN_SCAN) ax_scan(f, 2, 3, false, in, made);
  if (s->place == IN_BRANCH) ax_if(ax_gt(ax_reduce_sum(in[1], AX_ALL_DIMS, false), ax_real(-100)), f, AX_FN(other, 2, 2), in, made);
  if (s->place == IN_CALL) ax_closed_call(f, in, made);
  if (s->place == IN_BATCH) {
    ax_value members[] = {ax_stack(AX_VALUES(in[0], ax_cos(in[0])), 0), in[1]};
    ax_vmap(AX_CLOSURE(turn_member, 2, 1, context), members, made, &(ax_vmap_options){.in_axes = {AX_DIMS(0, AX_NOT_MAPPED)}});
  }
  out[0] = ax_psum(ax_reduce_sum(ax_mul(made[0], made[0]), AX_ALL_DIMS, false), "d");
}

static AX_BODY(on_mesh) {
  const subject *s = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  ax_fn f = AX_CLOSURE(on_device, 2, 1, context);
  if (s->unchecked) ax_shard_map_unchecked(&mesh, "d; -> ", f, in, out);
  else ax_shard_map(&mesh, "d; -> ", f, in, out);
}

static AX_BODY(steepness) {
  ax_value slopes[2];
  ax_grad(AX_CLOSURE(on_mesh, 2, 1, context), AX_FIRST(2), in, slopes);
  out[0] = ax_add(ax_reduce_sum(ax_square(slopes[0]), AX_ALL_DIMS, false), ax_reduce_sum(ax_sin(slopes[1]), AX_ALL_DIMS, false));
}

/* The loss and its gradient; the gradients for several w; the gradient of the gradient; the tangent; what is pulled back. */
enum { result_count = 8 };
static AX_BODY(everything) {
  ax_fn f = AX_CLOSURE(on_mesh, 2, 1, context);
  ax_value many = ax_mul(ax_reshape(ax_add(ax_iota(AX_F64, AX_DIMS(3), 0), ax_real(-1)), AX_DIMS(3, 1)), in[1]), again, pulled[2];
  ax_value_and_grad(f, AX_FIRST(2), in, out);
  ax_fn both = AX_CLOSURE(steepness, 2, 1, context);
  ax_vmap(both, AX_VALUES(in[0], many), &out[3], &(ax_vmap_options){.in_axes = {AX_DIMS(AX_NOT_MAPPED, 0)}});
  ax_grad(both, AX_FIRST(2), in, &out[4]);
  ax_jvp(f, AX_FIRST(2), in, in, &again, &out[6]);
  ax_linear linear = ax_linearize(f, AX_FIRST(2), in, &again);
  ax_pullback(linear, &again, pulled);
  out[7] = pulled[0];
}

static const struct {
  const char *name;
  ax_function f;
  bool checked_alone;
} functions[] = {{"psum", sums, false},
                 {"pmax", largest, false},
                 {"pmin", smallest, false},
                 {"pmean", mean, false},
                 {"all_gather", gathered, false},
                 {"all_gather_invariant", gathered_alike, true},
                 {"all_gather_reduced", gathered_reduced, true},
                 {"psum_scatter", scattered, false},
                 {"all_to_all", exchanged, false},
                 {"ppermute", passed_on, false},
                 {"pbroadcast", told, false},
                 {"groups", grouped, false},
                 {"preduced", in_parts, true},
                 {"unreduced_psum", parts, true},
                 {"start", begun, false},
                 {"axis_index", numbered, false},
                 {"ragged_all_to_all", moved_rows, false},
                 {"dot_general", products, false},
                 {"none", of_w_alone, true}};

static void make_all(const subject *s, const char *name, const ax_type *types, ax_tensor *const *in, ax_tensor **out) {
  ax_program *program;
  ax_tensor *reference[result_count];
  ax_status status = ax_trace(AX_CLOSURE(everything, 2, result_count, s), types, &program);
  if (status != AX_OK) fail_msg("%s, %s, place %d: %s", name, wrapping_names[s->by], (int)s->place, ax_message());
  TEST_OK(ax_program_verify(program));
  status = test_try(program, in, out);
  if (status != AX_OK) fail_msg("%s, %s, place %d: %s", name, wrapping_names[s->by], (int)s->place, ax_message());
  TEST_OK(ax_evaluate(program, in, reference));
  for (uint32_t k = 0; k < result_count; k++) TEST_TENSORS_NEAR(out[k], reference[k], 1e-9);
  test_release(reference, result_count);
  ax_program_release(program);
}

static void compare(const char *name, wrapping by, int variant, uint32_t k, const ax_tensor *made, const ax_tensor *plain) {
  for (int64_t e = 0; e < test_elems(made); e++)
    if (!test_near(test_get(made, e), test_get(plain, e), 1e-9))
      fail_msg("%s, %s, place %d, result %u[%lld]: %g, not %g", name, wrapping_names[by], variant, k, (long long)e,
               test_get(made, e), test_get(plain, e));
}

static void as_what_is_kept(void **state) {
  (void)state;
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  test_random random = {.state = 3};
  ax_tensor *in[] = {test_random_tensor(&random, types[0], -1, 1), test_random_tensor(&random, types[1], 0.1, 1)};
  for (size_t i = 0; i < AX_COUNT(functions); i++)
    for (int variant = 0; variant < (functions[i].checked_alone ? (int)PLACES : PLACES + 1); variant++) {
      ax_tensor *out[WRAPPINGS][result_count];
      bool everywhere = functions[i].f == sums || functions[i].f == products, own = i % PLACES == (size_t)variant % PLACES;
      if (!everywhere && !own && variant != (int)HERE) continue;
      for (int by = 0; by < WRAPPINGS; by++) {
        if (by >= AGAIN_BUT_DOTS && !own && functions[i].f != products) continue;
        make_all(&(subject){(wrapping)by, functions[i].f, variant % PLACES, variant == PLACES}, functions[i].name, types, in,
                 out[by]);
        for (uint32_t k = 0; k < result_count; k++) compare(functions[i].name, (wrapping)by, variant, k, out[by][k], out[PLAIN][k]);
        if (by != PLAIN) test_release(out[by], result_count);
      }
      test_release(out[PLAIN], result_count);
    }
  test_release(in, 2);
}

/* --- It is done again, and less is held --- */

enum { WIDTH = 128, DEEPEST = 32, GROUP = 4 };
typedef struct chain {
  wrapping by; /* AGAIN_TWICE: groups of layers in a checkpoint */
  int layers;
  bool on_mesh; /* a psum at the end of each layer */
  bool in_scan; /* which goes through the layers */
} chain;

static AX_BODY(layer) {
  const chain *c = context;
  ax_value x = ax_tanh(ax_matmul(in[0], in[1]));
  x = ax_matmul(ax_tanh(ax_matmul(x, in[1])), in[1]);
  out[0] = ax_sin(c->on_mesh ? ax_add(ax_psum(x, "d"), in[0]) : x);
}
static AX_BODY(one_layer) {
  const chain *c = context;
  ax_fn f = AX_CLOSURE(layer, 2, 1, context);
  if (c->by == PLAIN) layer(in, out, context);
  else ax_checkpoint(f, in, out, c->by == AGAIN_BUT_DOTS ? &with_dots : NULL);
}
static AX_BODY(group) {
  ax_value x = in[0];
  for (int i = 0; i < GROUP; i++) one_layer((ax_value[]){x, in[1]}, &x, context);
  out[0] = x;
}
typedef struct step {
  const chain *chain;
  ax_value w;
} step;
static AX_BODY(one_step) {
  const step *s = context;
  one_layer((ax_value[]){in[0], s->w}, out, (void *)(uintptr_t)s->chain);
}
static AX_BODY(of_layers) {
  const chain *c = context;
  ax_value pair[] = {in[0], in[1]};
  if (c->in_scan) ax_scan(AX_CLOSURE(one_step, 1, 1, &(step){c, in[1]}), 1, c->layers, false, pair, pair);
  else if (c->by == AGAIN_TWICE)
    for (int i = 0; i < c->layers; i += GROUP) ax_checkpoint(AX_CLOSURE(group, 2, 1, context), pair, pair, NULL);
  else
    for (int i = 0; i < c->layers; i++) one_layer(pair, pair, context);
  out[0] = ax_reduce_sum(pair[0], AX_ALL_DIMS, false);
  if (c->on_mesh) out[0] = ax_psum(out[0], "d");
}
static AX_BODY(chain_loss) {
  const chain *c = context;
  ax_mesh mesh;
  TEST_OK(ax_mesh_parse("d=4", &mesh));
  if (c->on_mesh) ax_shard_map(&mesh, "d; -> ", AX_CLOSURE(of_layers, 2, 1, context), in, out);
  else of_layers(in, out, context);
}
static AX_BODY(chain_slope) { ax_grad(AX_CLOSURE(chain_loss, 2, 1, context), AX_FIRST(2), in, out); }

static void chain_types(const chain *c, int64_t width, ax_type *types) {
  types[0] = TEST_TYPE(AX_F32, c->on_mesh ? 4 * width : width, width);
  types[1] = TEST_TYPE(AX_F32, width, width);
}

static ax_program *trace_chain(const chain *c, int64_t width) {
  ax_type types[2];
  ax_program *program;
  chain_types(c, width, types);
  TEST_OK(ax_trace(AX_CLOSURE(chain_slope, 2, 2, c), types, &program));
  return program;
}

/* Bytes of a run beside arguments and results, as the executable's text has them: "s4: kept 0, 3407872 bytes per {d}". */
static int64_t held_by(ax_program *program) {
  ax_runtime *runtime;
  ax_executable *executable;
  char *text, space[16];
  long long bytes, all = 0;
  TEST_OK(ax_runtime_create(NULL, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &executable));
  TEST_OK(ax_executable_text(executable, &text));
  for (const char *at = text; (at = strstr(at, " bytes per {")) != NULL; at++) {
    const char *line = at;
    while (line > text && line[-1] != '\n') line--;
    if (sscanf(line, " s%*d: %15s %*d, %lld bytes", space, &bytes) != 2) fail_msg("%.80s", line);
    bool own = strcmp(space, "scratch") == 0 || strcmp(space, "kept") == 0 || strcmp(space, "shared") == 0;
    if (own) all += bytes * (strncmp(at, " bytes per {d}", 14) == 0 ? 4 : 1);
  }
  ax_string_free(text);
  ax_executable_release(executable);
  ax_runtime_release(runtime);
  return all;
}

/* By how many activations of all devices more is held for a layer more. */
static double held_for_each(wrapping by, bool on_mesh, bool in_scan) {
  int64_t bytes[2];
  for (int i = 0; i < 2; i++) {
    ax_program *program = trace_chain(&(chain){by, DEEPEST >> i, on_mesh, in_scan}, WIDTH);
    bytes[i] = held_by(program);
    ax_program_release(program);
  }
  return (double)(bytes[0] - bytes[1]) / (DEEPEST / 2.0) / (WIDTH * WIDTH * 4.0 * (on_mesh ? 4 : 1));
}

/* Of a layer its operand, not the two or three values on the way; of a group of layers its operand. A scan keeps one a step. */
static void less_is_held(void **state) {
  const double rest = AX_HOSTILE ? 0.2 : 0.05; /* groups of rows, which are made wherever they may be, hold more */
  (void)state;
  for (int on_mesh = 0; on_mesh < 2; on_mesh++) {
    for (int in_scan = 0; in_scan < 2; in_scan++) {
      assert_true(held_for_each(PLAIN, on_mesh, in_scan) > 2.4);
      assert_true(held_for_each(AGAIN, on_mesh, in_scan) < 1 + rest);
      assert_true(held_for_each(AGAIN_BUT_DOTS, on_mesh, in_scan) > 2.9);
    }
    assert_true(held_for_each(AGAIN_TWICE, on_mesh, false) < (1 + rest) / GROUP);
  }
}

/* The same is done, only again: to the bit, but for sums of what is used in several places, which are added up by layer. */
static void same_bits(void **state) {
  (void)state;
  for (int on_mesh = 0; on_mesh < 2; on_mesh++)
    for (int in_scan = 0; in_scan < 2; in_scan++) {
      ax_tensor *in[2], *plain[2], *out[2];
      ax_type types[2];
      test_random random = {.state = 5};
      chain_types(&(chain){.on_mesh = on_mesh}, 16, types);
      for (int i = 0; i < 2; i++) in[i] = test_random_tensor(&random, types[i], -0.3, 0.3);
      for (int by = 0; by < WRAPPINGS; by++) {
        ax_program *program = trace_chain(&(chain){(wrapping)by, 2 * GROUP, on_mesh, in_scan}, 16);
        TEST_OK(test_try(program, in, by == PLAIN ? plain : out));
        if (by != PLAIN) assert_true(test_same_tensors(plain[0], out[0]));
        if (by != PLAIN) TEST_TENSORS_NEAR(plain[1], out[1], 1e-5);
        if (by != PLAIN) test_release(out, 2);
        if (by == AGAIN) TEST_EVERY_WAY(program, in, 1e-5);
        ax_program_release(program);
      }
      test_release(plain, 2);
      test_release(in, 2);
    }
}

/* --- What programs hold --- */

/* Layers that are alike are one program, and what is made of them. */
static void layers_share(void **state) {
  (void)state;
  ax_program *program = trace_chain(&(chain){AGAIN, DEEPEST, false, false}, 16);
  const ax_program *seen[8];
  uint32_t calls = 0, bodies = 0;
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_program *body = program->eqns[i].prim == &ax_prim_checkpoint ? ax_eqn_program(&program->eqns[i], 0) : NULL;
    if (body == NULL) continue;
    uint32_t k = 0;
    while (k < bodies && seen[k] != body) k++;
    if (k == bodies) seen[bodies++] = body;
    assert_true(bodies < AX_COUNT(seen));
    calls++;
  }
  assert_int_equal(calls, 2 * DEEPEST - 1); /* nobody needs what the last gives */
  assert_int_equal(bodies, 2);
  ax_program_release(program);
}

/* Forwards through a while, where there is no way back. */
static AX_BODY(below_ten) { out[0] = ax_lt(in[0], ax_real(10)); }
static AX_BODY(grow) { out[0] = ax_add(in[0], ax_square(in[0])); }
static AX_BODY(grow_again) { ax_checkpoint(AX_FN(grow, 1, 1), in, out, NULL); }
static AX_BODY(grown) { ax_while(AX_FN(below_ten, 1, 1), context != NULL ? AX_FN(grow_again, 1, 1) : AX_FN(grow, 1, 1), in, out); }
static AX_BODY(growth) { ax_jvp(AX_CLOSURE(grown, 1, 1, context), AX_FIRST(1), in, &in[1], &out[0], &out[1]); }

static void in_while(void **state) {
  (void)state;
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  double out[2][2];
  for (int again = 0; again < 2; again++) {
    ax_program *program = test_trace(growth, again ? &again : NULL, types, 2, 2);
    test_run_scalars(program, (const double[]){0.3, 1}, out[again]);
    ax_program_release(program);
  }
  assert_memory_equal(out[0], out[1], sizeof out[0]);
}

/* Numbers that are no floats, and what is captured. */
static AX_BODY(times) {
  out[0] = ax_sin(ax_mul(ax_mul(in[0], ax_convert_element_type(in[1], AX_F64)), *(const ax_value *)context));
}
static AX_BODY(tripled) {
  ax_value three = ax_convert_element_type(ax_add(ax_stop_gradient(in[0]), ax_real(2)), AX_S32);
  ax_checkpoint(AX_CLOSURE(times, 2, 1, &in[1]), AX_VALUES(in[0], three), out, NULL);
}
static AX_BODY(tripled_slopes) { ax_grad(AX_FN(tripled, 2, 1), AX_FIRST(2), in, out); }

static void captured(void **state) {
  (void)state;
  const ax_type types[] = {TEST_SCALAR(AX_F64), TEST_SCALAR(AX_F64)};
  ax_program *program = test_trace(tripled_slopes, NULL, types, 2, 2), *parsed;
  double out[2];
  char *text;
  test_run_scalars(program, (const double[]){1, 0.5}, out);
  TEST_NEAR(out[0], 1.5 * 0.0707372016677029, 1e-12); /* cos 1.5 */
  TEST_NEAR(out[1], 3 * 0.0707372016677029, 1e-12);
  TEST_OK(ax_program_print(program, &text));
  TEST_OK(ax_program_parse(text, strlen(text), "printed", &parsed));
  assert_true(ax_program_equal(program, parsed));
  ax_string_free(text);
  ax_program_release(parsed);
  ax_program_release(program);
}

/* What has a name that is saved is kept, and nothing else: the sines of it are done again, those before it are not. */
static AX_BODY(named) {
  ax_value kept = ax_checkpoint_name(ax_sin(ax_sin(in[0])), "kept");
  out[0] = ax_exp(ax_checkpoint_name(ax_tanh(kept), "other"));
}
static AX_BODY(named_again) { ax_checkpoint(AX_FN(named, 1, 1), in, out, &(ax_checkpoint_options){.save_names = context}); }
static AX_BODY(named_slope) { ax_grad(AX_CLOSURE(named_again, 1, 1, context), AX_FIRST(1), in, out); }

static void names(void **state) {
  (void)state;
  const ax_type type = TEST_SCALAR(AX_F64);
  const struct {
    const char *saved;
    uint32_t sines, tanhs; /* in all of the program: a tanh's derivative is made of it as it was before it had a name */
  } rows[] = {{NULL, 2, 1}, {"kept", 3, 1}, {"unknown", 2, 1}, {"other", 4, 2}, {"unknown,kept,other", 3, 2}};
  double first = 0, out;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(named_slope, (void *)(uintptr_t)rows[i].saved, &type, 1, 1);
    assert_int_equal(test_count_prim(program, "sin"), rows[i].sines);
    assert_int_equal(test_count_prim(program, "tanh"), rows[i].tanhs);
    test_run_scalars(program, (const double[]){0.7}, &out);
    if (i == 0) first = out;
    TEST_NEAR(out, first, 1e-15);
    ax_program_release(program);
  }
}

/* What the policies keep: how often each stands in the program of value and gradient. Kept, it stands there once; done again, twice.
   The exponential's derivative is itself, so that keeping it by its primitive, and not by a name, is what helps; the cosine is part
   of the derivative alone. */
static AX_BODY(many_kinds) { /* f64[3,2,2] */
  ax_value unbatched = ax_dot_general(in[0], in[0], AX_DIMS(0, 1), AX_DIMS(0, 1), AX_DIMS(), AX_DIMS());
  ax_value batched = ax_dot_general(ax_exp(in[0]), in[0], AX_DIMS(2), AX_DIMS(1), AX_DIMS(0), AX_DIMS(0));
  ax_value product = ax_conv(ax_expand_dims(ax_tanh(batched), 0), ax_full(AX_F64, AX_DIMS(3, 3, 1, 1), 0.5), NULL, "SAME");
  ax_value named = ax_checkpoint_name(ax_log1p(ax_square(product)), "first");
  out[0] =
      ax_sin(ax_reduce_sum(ax_mul(ax_sin(named), ax_logistic(ax_reduce_sum(unbatched, AX_ALL_DIMS, false))), AX_ALL_DIMS, false));
}
static AX_BODY(many_again) { ax_checkpoint(AX_FN(many_kinds, 1, 1), in, out, context); }
static AX_BODY(many_slopes) { ax_value_and_grad(AX_CLOSURE(many_again, 1, 1, context), AX_FIRST(1), in, out); }

static void policies(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F64, 3, 2, 2);
  enum { EXP, TANH, LOG1P, LOGISTIC, COUNTED };
  static const char *const counted[] = {"exp", "tanh", "log1p", "logistic"};
  static const struct {
    const char *name;
    ax_checkpoint_options options;
    uint32_t count[COUNTED], products; /* products: beside those of the bare function's gradient */
  } rows[] = {
      {"nothing", {0}, {2, 2, 2, 2}, 3},
      {"everything", {.save_everything = true}, {1, 1, 1, 1}, 0},
      {"dots", {.save_dots = true}, {2, 2, 2, 2}, 0},
      {"unbatched", {.save_unbatched_dots = true}, {2, 2, 2, 2}, 2},
      {"these", {.save_names = "first"}, {2, 2, 1, 2}, 3},
      {"others", {.save_names_but = "second"}, {2, 2, 1, 2}, 3},
      {"all names", {.save_names_but = ""}, {2, 2, 1, 2}, 3},
      {"not these", {.save_names_but = "second,first"}, {2, 2, 2, 2}, 3},
      {"primitives", {.save_primitives = "exp, tanh"}, {1, 1, 2, 2}, 2},
      {"both", {.save_dots = true, .save_names = "first", .save_primitives = "exp"}, {1, 2, 1, 2}, 0},
  };
  test_random random = {.state = 5};
  ax_tensor *in = test_random_tensor(&random, type, -1, 1), *first[2] = {NULL, NULL}, *out[2];
  uint32_t least = 0;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program = test_trace(many_slopes, (void *)(uintptr_t)&rows[i].options, &type, 1, 2);
    for (uint32_t k = 0; k < COUNTED; k++)
      if (test_count_prim(program, counted[k]) != rows[i].count[k])
        fail_msg("%s: %s %u times, not %u", rows[i].name, counted[k], test_count_prim(program, counted[k]), rows[i].count[k]);
    uint32_t products = test_count_prim(program, "dot_general") + test_count_prim(program, "conv_general_dilated");
    if (i == 0) least = products - rows[i].products;
    if (products != least + rows[i].products) fail_msg("%s: %u products, not %u", rows[i].name, products, least + rows[i].products);
    TEST_OK(test_try(program, &in, out));
    for (uint32_t k = 0; k < 2 && first[k] != NULL; k++) TEST_TENSORS_NEAR(out[k], first[k], 1e-14);
    if (first[0] == NULL)
      memcpy(first, out, sizeof first);
    else
      test_release(out, 2);
    ax_program_release(program);
  }
  test_release(first, 2);
  test_release(&in, 1);
}

/* --- What is refused, and when there is no memory --- */

static AX_BODY(sent) { out[0] = ax_precv(ax_psend(in[0], "d", AX_PAIRS({0, 1})), ax_typeof(in[0]), "d", AX_PAIRS({0, 1})); }
static AX_BODY(sent_again) { ax_checkpoint(AX_FN(sent, 1, 1), in, out, NULL); }

static void refused(void **state) {
  (void)state;
  const ax_type type = TEST_TYPE(AX_F32, 4);
  ax_program *program;
  TEST_FAILS(ax_trace(AX_CLOSURE(named_again, 1, 1, "a b"), &type, &program), AX_INVALID_ARGUMENT, "checkpoint: ");
  TEST_FAILS(ax_trace(AX_CLOSURE(named_again, 1, 1, "a {0}"), &type, &program), AX_INVALID_ARGUMENT, "there are no groups here");
  const ax_type cube = TEST_TYPE(AX_F64, 3, 2, 2);
  TEST_FAILS(ax_trace(AX_CLOSURE(many_again, 1, 1, &(ax_checkpoint_options){.save_primitives = "sin,sine"}), &cube, &program),
             AX_INVALID_ARGUMENT, "checkpoint: there is no primitive \"sine\" to save the results of");
  TEST_FAILS(ax_trace(AX_CLOSURE(many_again, 1, 1, &(ax_checkpoint_options){.save_names_but = "a b"}), &cube, &program),
             AX_INVALID_ARGUMENT, "checkpoint: ");
  TEST_FAILS(ax_trace(AX_CLOSURE(test_map_body, 1, 1, &(test_map){"d=2", {"d"}, {"d"}, .body = sent_again}), &type, &program),
             AX_INVALID_ARGUMENT,
             "the body has a psend, but what stands in a checkpoint is done again for derivatives; messages are sent once");
}

static void refused_texts(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } rows[] = {
      {"{ lambda x:f32[2]. let y:f32[2] = name[names=(a, b)] x in (y,) }", "there are 2 names, not one"},
      {"{ lambda x:f32[2]. let y:f32[2] = name[names=()] x in (y,) }", "there are 0 names, not one"},
      {"{ lambda x:f32[2]. let y:f32[2] = name[names=(a {0, 1})] x in (y,) }", "names without groups"},
      {"{ lambda x:f32[2]. let y:f32[2] = checkpoint[body={ lambda x:f32[3]. let in (x,) } differentiated=false "
       "save_everything=false save_dots=false save_unbatched_dots=false save_names=() save_other_names=false but_names=() "
       "save_primitives=()] x in (y,) }",
       "operand 0 is f32[2], but the body takes f32[3]"},
  };
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    TEST_FAILS(ax_program_parse(rows[i].text, strlen(rows[i].text), "text", &program), AX_PARSE_ERROR, rows[i].message);
  }
}

static ax_status with_little_memory(void *context) {
  const ax_type types[] = {TEST_TYPE(AX_F64, 16, 4), TEST_TYPE(AX_F64, 4)};
  ax_program *program;
  ax_status status =
      ax_trace(AX_CLOSURE(steepness, 2, 1, &(subject){*(const wrapping *)context, sums, HERE, false}), types, &program);
  ax_program_release(program);
  return status;
}

static ax_status planned_with_little_memory(void *context) {
  ax_plan *plan;
  ax_status status = test_make_plan(context, &plan);
  if (status == AX_OK) status = ax_plan_order(plan);
  ax_plan_destroy(plan);
  return status;
}

static void without_memory(void **state) {
  (void)state;
  for (int by = AGAIN; by < WRAPPINGS; by++) assert_true(test_each_allocation(with_little_memory, &(wrapping){(wrapping)by}) > 10);
  ax_program *program = trace_chain(&(chain){AGAIN_TWICE, 2 * GROUP, false, false}, 4);
  assert_true(test_each_allocation(planned_with_little_memory, program) > 10);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(less_is_held),    cmocka_unit_test(same_bits),     cmocka_unit_test(layers_share),
      cmocka_unit_test(in_while),        cmocka_unit_test(captured),      cmocka_unit_test(refused),
      cmocka_unit_test(refused_texts),   cmocka_unit_test(names),         cmocka_unit_test(policies),
      cmocka_unit_test(as_what_is_kept), cmocka_unit_test(without_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
