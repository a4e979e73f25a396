/* Keys as a dtype: programs of key[] and of its words give the same bits, in loops, conditionals, batches and derivatives, on one device
   and over several, compiled and by reference evaluation. Functions that move elements move keys as numbers of 64 bits. Arrays of keys
   on devices: made of words, cut, run on, and read. */
#include <stdint.h>
#include <string.h>

#include "axle/axle.h"
#include "support/cmocka.h"
#include "support/tensor.h"

enum { N = 8 };

/* --- Bodies: keys u32[8,2] or key[8], x f32[8] -> y f32[8] --- */

static ax_value unit(ax_value key) { return ax_random_uniform(key, AX_F32, AX_DIMS(), ax_real(0), ax_real(1)); }
static ax_value one(ax_value keys, int64_t k) { return ax_at(keys, k, 0); }

static AX_BODY(mul_draw) { out[0] = ax_mul(in[1], unit(in[0])); }

/* Each element by its own key, and again by keys of these. */
static AX_BODY(element) {
  const ax_value keys = ax_random_split(in[0], AX_DIMS(3));
  ax_value y = ax_mul(in[1], unit(one(keys, 0)));
  out[0] = ax_sin(ax_add(y, unit(ax_random_fold_in(one(keys, 1), ax_integer(5)))));
}
static AX_BODY(batched) { ax_vmap(AX_FN(element, 2, 1), in, AX_LIST(1, out), NULL); }

/* Branches keep different things for their derivatives: one a key, one none. */
static AX_BODY(by_later) { ax_checkpoint(AX_FN(mul_draw, 2, 1), in, AX_LIST(1, out), NULL); }
static AX_BODY(by_square) { out[0] = ax_mul(in[1], in[1]); }
static AX_BODY(either) {
  ax_if(ax_gt(in[1], ax_real(0)), AX_FN(by_later, 2, 1), AX_FN(by_square, 2, 1), AX_LIST(2, in), AX_LIST(1, out));
}
static AX_BODY(branches) { ax_vmap(AX_FN(either, 2, 1), in, AX_LIST(1, out), NULL); }
static AX_BODY(one_branch) {
  ax_value y;
  either((ax_value[]){one(in[0], 2), one(in[1], 0)}, &y, NULL);
  out[0] = ax_mul(in[1], y);
}

/* A key goes round, each step on a key of its own; both directions of x. */
static AX_BODY(step) {
  const ax_value keys = ax_random_split(in[0], AX_DIMS(2));
  ax_value y;
  ax_checkpoint(AX_FN(mul_draw, 2, 1), AX_VALUES(one(keys, 1), in[1]), AX_LIST(1, &y), NULL);
  out[0] = one(keys, 0);
  out[1] = ax_add(y, unit(in[2]));
  out[2] = out[1];
}
static AX_BODY(loop) {
  ax_value made[3];
  ax_scan(AX_FN(step, 3, 3), 2, -1, true, AX_VALUES(one(in[0], 1), in[1], in[0]), AX_LIST(3, made));
  out[0] = ax_add(made[1], ax_reduce_sum(made[2], AX_DIMS(0), false));
}

/* As often as each member's own key says. */
static AX_BODY(small) { out[0] = ax_lt(unit(in[0]), ax_real(0.75)); }
static AX_BODY(next) {
  out[0] = ax_random_fold_in(in[0], ax_integer(1));
  out[1] = ax_mul(in[1], ax_real(1.25));
}
static AX_BODY(until) {
  ax_value made[2];
  ax_while(AX_FN(small, 2, 1), AX_FN(next, 2, 2), in, AX_LIST(2, made));
  out[0] = made[1];
}
static AX_BODY(loops_until) { ax_vmap(AX_FN(until, 2, 1), in, AX_LIST(1, out), NULL); }

/* A derivative of the caller's, which draws from the key again. */
static AX_BODY(forward) {
  mul_draw(in, out, NULL);
  out[1] = in[0];
}
static AX_BODY(backward) { out[0] = ax_mul(in[1], ax_add(unit(in[0]), ax_real(2))); }
static AX_BODY(custom) {
  ax_custom_vjp(AX_FN(mul_draw, 2, 1), AX_FN(forward, 2, 2), AX_FN(backward, 2, 1), AX_VALUES(one(in[0], 3), in[1]),
                AX_LIST(1, out));
}

/* On each device its own keys, and its neighbour's. */
static AX_BODY(on_device) {
  static const int64_t ring[][2] = {{0, 1}, {1, 0}};
  const ax_value sent = ax_ppermute(in[0], "d", 2, ring), all = ax_all_gather(in[0], "d", 0, true);
  const ax_value other = ax_pbroadcast(ax_random_fold_in(one(in[0], 0), ax_axis_index("d")), "d", 1);
  ax_value drawn[3];
  const ax_value from[] = {sent, ax_slice_in_dim(all, 2, 2 + N / 2, 1, 0), ax_all_to_all(in[0], "d", 0, 0, true)};
  for (int i = 0; i < 3; i++) batched((ax_value[]){from[i], in[1]}, &drawn[i], NULL);
  out[0] = ax_add(ax_add(drawn[0], drawn[1]), ax_mul(drawn[2], unit(other)));
}
static AX_BODY(devices) {
  ax_mesh mesh;
  if (ax_mesh_parse("d=2", &mesh) != AX_OK) return;
  ax_shard_map(&mesh, context, AX_FN(on_device, 2, 1), AX_LIST(2, in), AX_LIST(1, out));
}

typedef struct body {
  const char *name;
  ax_function function;
  bool no_tangent, no_gradient; /* there is none of it */
} body;
static const body bodies[] = {{"batched", batched, false, false},       {"branches", branches, false, false},
                              {"one_branch", one_branch, false, false}, {"loop", loop, false, false},
                              {"until", loops_until, false, true},      {"custom", custom, true, false},
                              {"devices", devices, false, false}};

/* --- Typed, or of words --- */

typedef struct way {
  const body *of;
  bool typed;
} way;

static AX_BODY(function_of) {
  const way *w = context;
  const ax_value keys = w->typed ? ax_random_wrap_key_data(in[0]) : in[0];
  w->of->function((ax_value[]){keys, in[1]}, out, (void *)(uintptr_t)(w->typed ? "d; d -> d" : "d,_; d -> d"));
}
static AX_BODY(total) {
  ax_value y;
  function_of(in, &y, context);
  out[0] = ax_reduce_sum(ax_mul(y, y), AX_DIMS(0), false);
}
static AX_BODY(all_of) {
  const way *w = context;
  const ax_fn function = AX_CLOSURE(function_of, 2, 1, context);
  function_of(in, &out[0], context);
  out[1] = out[2] = out[0];
  if (!w->of->no_tangent) {
    const ax_value ones = ax_full_like(in[1], 1);
    ax_value again;
    ax_jvp(function, AX_RANGE(1, 1), in, AX_VALUES(ones), AX_LIST(1, &again), AX_LIST(1, &out[1]));
  }
  if (!w->of->no_gradient) ax_grad(AX_CLOSURE(total, 2, 1, context), AX_RANGE(1, 1), in, AX_LIST(1, &out[2]));
}

static const uint32_t words[N][2] = {{0, 0}, {UINT32_MAX, 7}, {3, 0x80000000}, {1, 2}, {99, 1}, {5, 5}, {0, 12}, {77, 3}};
static const float xs[N] = {0.5F, -1, 2, 0.25F, -3, 1, 1.5F, -0.75F};

static void run(const body *of, bool typed, bool reference, ax_tensor **out) {
  const ax_type types[] = {TEST_TYPE(AX_U32, N, 2), TEST_TYPE(AX_F32, N)};
  way w = {of, typed};
  ax_program *program = test_trace(all_of, &w, types, 2, 3);
  ax_tensor *in[] = {test_tensor(types[0], NULL), test_tensor(types[1], NULL)};
  memcpy(in[0]->data, words, sizeof words);
  memcpy(in[1]->data, xs, sizeof xs);
  ax_host_array results[3], from[] = {ax_host_view(AX_U32, AX_DIMS(N, 2), words), ax_host_view(AX_F32, AX_DIMS(N), xs)};
  if (reference) {
    test_run(program, in, out);
  } else {
    ax_executable *executable;
    ax_runtime *runtime;
    TEST_OK(ax_runtime_create(NULL, &runtime));
    TEST_OK(ax_compile(runtime, program, NULL, &executable));
    TEST_OK(ax_run_host(executable, from, results));
    for (int k = 0; k < 3; k++) {
      out[k] = test_tensor(ax_array_type(results[k].dtype, AX_LIST(results[k].rank, results[k].dims)), NULL);
      memcpy(out[k]->data, results[k].data, N * sizeof(float));
      ax_host_array_release(&results[k]);
    }
    ax_executable_release(executable);
    ax_runtime_release(runtime);
  }
  test_release(in, 2);
  ax_program_release(program);
}

static void as_words(void **state) {
  (void)state;
  for (size_t b = 0; b < sizeof bodies / sizeof bodies[0]; b++)
    for (int reference = 0; reference < 2; reference++) {
      ax_tensor *typed[3], *plain[3];
      run(&bodies[b], true, reference, typed);
      run(&bodies[b], false, reference, plain);
      for (int k = 0; k < 3; k++)
        if (!test_same_tensors(typed[k], plain[k]))
          fail_msg("%s, result %d, %s", bodies[b].name, k, reference ? "evaluated" : "compiled");
      assert_true(test_get(typed[0], 0) != 0);
      test_release(typed, 3);
      test_release(plain, 3);
    }
}

/* --- Functions that move: of keys as of 64 bits that are the same, k key[4,2] and b u64[4,2] --- */

static ax_value bits_of(ax_value keys) { return ax_bitcast_convert_type(ax_random_key_data(keys), AX_U64); }

static void moved(ax_value x, ax_value at, ax_value *out) {
  const ax_value flags = ax_eq(ax_rem(at, ax_integer(2)), ax_integer(0)), column = ax_at(x, 1, 1);
  const ax_value pair[] = {x, ax_flip(x, AX_DIMS(0))};
  int n = 0;
  out[n++] = ax_tile(x, AX_DIMS(2, 1));
  out[n++] = ax_repeat_elements(x, 2, 1);
  out[n++] = ax_roll(x, AX_DIMS(1), AX_DIMS(0));
  out[n++] = ax_rot90(x, 1, 0, 1);
  out[n++] = ax_hstack(AX_LIST(2, pair));
  out[n++] = ax_stack(AX_LIST(2, pair), 1);
  out[n++] = ax_swapaxes(x, 0, 1);
  out[n++] = ax_index(x, "::2, -1");
  out[n++] = ax_index_set(x, "1:3, 0", ax_at(ax_slice_in_dim(x, 0, 2, 1, 0), 1, 1));
  out[n++] = ax_dynamic_at(x, ax_at(at, 0, 0), 0);
  out[n++] = ax_dynamic_at_set(x, ax_at(x, 0, 0), ax_at(at, 1, 0), 0);
  out[n++] = ax_take(x, at, 0);
  out[n++] = ax_take_with(x, at, 0, NULL);
  out[n++] = ax_take_along_axis(column, at, 0, NULL);
  out[n++] = ax_at_set(x, at, pair[1], 0, NULL);
  out[n++] = ax_diagonal(x, 0, 0, 1);
  out[n++] = ax_where(flags, column, ax_at(x, 0, 1));
  out[n++] = ax_squeeze(ax_expand_dims(x, 0), AX_DIMS(0));
  ax_optimization_barrier(AX_LIST(1, &x), AX_LIST(1, &out[n++]));
  out[n++] = ax_stop_gradient(x);
}
enum { MOVES = 20 };
static AX_BODY(both_moved) {
  const ax_value keys = ax_reshape(ax_random_wrap_key_data(in[0]), AX_DIMS(4, 2));
  ax_value of_keys[MOVES], of_bits[MOVES];
  moved(keys, in[1], of_keys);
  moved(bits_of(keys), in[1], of_bits);
  for (int i = 0; i < MOVES; i++) {
    const ax_value same = ax_eq(bits_of(of_keys[i]), of_bits[i]);
    out[i] = ax_reduce_and(same, AX_ALL_DIMS, false);
  }
}

static void moves(void **state) {
  (void)state;
  static const int32_t at[] = {2, 0, 3, 1};
  const ax_host_array in[] = {ax_host_view(AX_U32, AX_DIMS(N, 2), words), ax_host_view(AX_S32, AX_DIMS(4), at)};
  ax_host_array same[MOVES];
  TEST_OK(ax_apply(NULL, AX_FN(both_moved, 2, MOVES), in, same));
  for (int i = 0; i < MOVES; i++) {
    if (!*(const bool *)same[i].data) fail_msg("move %d", i);
    ax_host_array_release(&same[i]);
  }
}

/* --- Arrays on devices --- */

static AX_BODY(wrapped) { out[0] = ax_random_wrap_key_data(in[0]); }
static AX_BODY(split_each) {
  ax_value keys;
  ax_vmap(AX_FN(element, 2, 1), AX_VALUES(in[0], in[1]), AX_LIST(1, &out[0]), NULL);
  keys = ax_rev(in[0], AX_DIMS(0));
  out[1] = keys;
  out[2] = ax_random_key_data(keys);
}

static void on_devices(void **state) {
  (void)state;
  for (int way = 0; way < 2; way++) { /* of words by a program, or put down as they are */
    const ax_type types[] = {TEST_TYPE(AX_U32, N, 2), TEST_TYPE(AX_KEY, N), TEST_TYPE(AX_F32, N)};
    const ax_host_array host = ax_host_view(AX_U32, AX_DIMS(N, 2), words), keys = ax_host_view(AX_KEY, AX_DIMS(N), &words[0][0]);
    const ax_host_array numbers = ax_host_view(AX_F32, AX_DIMS(N), xs);
    uint32_t got[2][N][2];
    ax_runtime *runtime;
    ax_mesh mesh;
    ax_executable *wrap, *use;
    ax_array *in, *made[2], *out[3];
    TEST_OK(ax_runtime_create(NULL, &runtime));
    TEST_OK(ax_mesh_parse("d=4", &mesh));
    TEST_OK(ax_device_put(runtime, &mesh, "d,_", &host, &in));
    TEST_OK(ax_device_put(runtime, &mesh, "d", &numbers, &made[1]));
    TEST_OK(ax_jit(runtime, AX_FN(wrapped, 1, 1), AX_LIST(1, types), &(ax_compile_options){.like = {AX_ARRAYS(in)}}, &wrap));
    if (way == 0)
      TEST_OK(ax_run(wrap, AX_LIST(1, &in), AX_LIST(1, made)));
    else
      TEST_OK(ax_device_put(runtime, &mesh, "d", &keys, &made[0]));
    assert_int_equal(ax_array_typeof(made[0])->dtype, AX_KEY);
    TEST_OK(ax_jit(runtime, AX_FN(split_each, 2, 3), AX_LIST(2, types + 1),
                   &(ax_compile_options){.like = {AX_ARRAYS(made[0], made[1])}}, &use));
    TEST_OK(ax_run(use, AX_LIST(2, made), AX_LIST(3, out)));
    TEST_OK(ax_array_read(out[1], &got[0][0][0], sizeof got[0]));
    TEST_OK(ax_array_read(out[2], &got[1][0][0], sizeof got[1]));
    for (int i = 0; i < N; i++)
      for (int k = 0; k < 2; k++) assert_memory_equal(got[k][i], words[N - 1 - i], sizeof words[0]);
    ax_array *const all[] = {in, made[0], made[1], out[0], out[1], out[2]};
    for (int i = 0; i < 6; i++) ax_array_release(all[i]);
    ax_executable_release(wrap);
    ax_executable_release(use);
    ax_runtime_release(runtime);
  }
}

/* Constants among keys, and their text. */
static AX_BODY(kept) {
  out[0] = ax_concatenate(AX_VALUES(in[0], ax_full(AX_KEY, AX_DIMS(1), 7)), 0);
  out[1] = ax_eq(out[0], ax_full_like(out[0], 7));
}
static void texts(void **state) {
  (void)state;
  const ax_type key = TEST_TYPE(AX_KEY, 1);
  ax_program *program = test_trace(kept, NULL, &key, 1, 2), *again;
  char *text;
  TEST_OK(ax_program_print(program, &text));
  assert_non_null(strstr(text, "30064771079:key[]"));
  TEST_OK(ax_program_parse(text, strlen(text), "text", &again));
  assert_true(ax_program_equal(program, again));
  ax_string_free(text);
  ax_program_release(program);
  ax_program_release(again);
}

/* Printed as their words. */
static AX_BODY(printing) {
  ax_debug_print("{} {}", false, AX_VALUES(in[0], ax_eq(in[0], in[0])));
  out[0] = in[0];
}
static void write_down(const char *text, void *context) { (void)strncat(context, text, 99); }
static void prints(void **state) {
  (void)state;
  const ax_host_array key = ax_host_view(AX_KEY, AX_DIMS(), words[1]);
  char log[200] = "";
  ax_runtime *runtime;
  ax_host_array out;
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 1, .print = write_down, .print_context = log}, &runtime));
  TEST_OK(ax_apply(runtime, AX_FN(printing, 1, 1), &key, &out));
  assert_string_equal(log, "[4294967295, 7] true\n");
  assert_memory_equal(out.data, words[1], sizeof words[1]);
  ax_host_array_release(&out);
  ax_runtime_release(runtime);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_words), cmocka_unit_test(moves), cmocka_unit_test(on_devices),
                                     cmocka_unit_test(texts), cmocka_unit_test(prints)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
