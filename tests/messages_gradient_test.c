/* Backwards through messages: the same functions with ppermute in their place have the same gradients, bit for bit, on 2 to 8
   devices and in every way to run; where there is no transpose that is said. */
#include <stdio.h>
#include <string.h>

#include "axle/ops.h"
#include "axle/transform.h"
#include "ir/program.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"

typedef struct moved {
  bool messages; /* or ppermutes */
  int64_t devices;
  const char *mesh; /* with devices along d */
  ax_function body;
  bool unchecked;
} moved;

enum { MOST_DEVICES = 8 };

/* To the device `by` further on, round the ring or not. */
static ax_value move(const moved *m, ax_value x, int64_t by, bool wrap) {
  int64_t pairs[MOST_DEVICES][2];
  uint32_t count = 0;
  for (int64_t i = 0; i < m->devices; i++) {
    if (!wrap && (i + by < 0 || i + by >= m->devices)) continue;
    pairs[count][0] = i;
    pairs[count++][1] = (i + by + m->devices) % m->devices;
  }
  const int64_t(*of)[2] = (const int64_t(*)[2])pairs;
  if (!m->messages) return ax_ppermute(x, "d", count, of);
  return ax_precv(ax_psend(x, "d", count, of), ax_typeof(x), "d", count, of);
}

/* in: x, which devices have blocks of, and w, which all have. out: a value for each device. */
static void ring(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_value y = move(m, ax_mul(ax_sin(in[0]), in[1]), 1, true);
  ax_value z = move(m, ax_mul(y, in[0]), -1, true);
  (void)move(m, ax_cos(z), 1, false); /* not used */
  out[0] = ax_add(ax_mul(z, move(m, ax_add(y, z), 1, true)), ax_psum(y, "d"));
}

/* Constants come, and cotangents that are zero go. */
static void edges(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_value constant = ax_pvary(ax_full_like(in[1], 3), "d");
  ax_value x = move(m, constant, 1, false);
  ax_value y = move(m, in[0], 1, false);
  out[0] = ax_mul(ax_add(x, ax_mul(y, y)), ax_exp(in[0]));
}

/* Microbatches go from stage to stage. */
static void pipeline(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_value first = ax_eq(ax_axis_index("d"), ax_integer(0)), sum = ax_pvary(ax_full_like(in[1], 0), "d");
  for (int batch = 0; batch < 3; batch++) {
    ax_value a = ax_mul(in[0], ax_real(1 + batch));
    for (int64_t stage = 1; stage < m->devices && stage < 4; stage++) a = ax_tanh(ax_mul(move(m, a, 1, false), in[1]));
    sum = ax_add(sum, ax_where(first, in[0], a));
  }
  out[0] = sum;
}

static void called(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  out[0] = move(m, ax_mul(in[0], ax_sin(in[1])), 1, true);
}

/* The same function three times. */
static void calls(const ax_value *in, ax_value *out, void *context) {
  ax_value both[] = {in[0], in[1]};
  for (int i = 0; i < 3; i++) ax_closed_call(AX_CLOSURE(called, 2, 1, context), both, &both[0]);
  out[0] = both[0];
}

static const int64_t one_on[][2] = {{0, 1}};

static void sender(const ax_value *in, ax_value *out, void *context) {
  (void)out;
  if (((const moved *)context)->messages) (void)ax_psend(ax_sin(in[0]), "d", 1, one_on);
}

static void receiver(const ax_value *in, ax_value *out, void *context) {
  (void)in;
  out[0] = ax_precv(ax_create_token(), *(const ax_type *)context, "d", 1, one_on);
}

/* A function that only sends, and one that only receives. */
static void apart(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_value x = ax_mul(in[0], in[1]), got;
  ax_type type = ax_typeof(x);
  ax_closed_call(AX_CLOSURE(sender, 1, 0, context), &x, NULL);
  if (m->messages) ax_closed_call(AX_CLOSURE(receiver, 0, 1, &type), NULL, &got);
  else got = ax_ppermute(ax_sin(x), "d", 1, one_on);
  out[0] = ax_mul(got, in[0]);
}

/* A gradient of a gradient: the vjp on each device. */
static void inside(const ax_value *in, ax_value *out, void *context) {
  ax_value made[2], along = ax_cos(in[0]), value;
  ax_vjp(AX_CLOSURE(ring, 2, 1, context), AX_ARGS(0, 1), in, &along, &value, made);
  out[0] = ax_add(ax_mul(made[0], value), ax_mul(made[0], made[1]));
}

/* What is the same along e comes to all there, who use it each in their way. */
static void grid(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_value got = move(m, ax_mul(in[0], in[1]), 1, true);
  if (!m->messages) got = ax_pvary(got, "e"); /* as precv types it */
  got = ax_mul(got, ax_convert_element_type(ax_add(ax_axis_index("e"), ax_integer(1)), AX_F32));
  out[0] = ax_psum(ax_sin(got), "e");
}

/* --- In loops and branches --- */

typedef struct loop { /* of moves, with values of the function around it */
  const moved *m;
  ax_value w, x;
} loop;

static AX_BODY(ring_step) { /* (a, b; v) -> (a, b; y): b takes part only by what is sent, v is sent and used */
  const loop *l = context;
  ax_value went = move(l->m, ax_mul(ax_sin(in[0]), l->w), 1, true);
  out[2] = ax_mul(move(l->m, ax_add(in[1], in[2]), -1, true), l->x);
  (void)move(l->m, ax_cos(in[0]), 1, false); /* not used */
  out[0] = ax_add(went, in[2]);
  out[1] = ax_mul(in[1], l->w);
}

static void scanned_by(bool reverse, const ax_value *in, ax_value *out, void *context) {
  loop l = {context, in[1], in[0]};
  ax_value rows = ax_stack(AX_VALUES(in[0], ax_mul(in[0], ax_integer(2)), ax_cos(in[0])), 0), made[3];
  ax_scan(AX_CLOSURE(ring_step, 3, 3, &l), 2, -1, reverse, AX_VALUES(in[0], ax_mul(in[0], in[1]), rows), made);
  out[0] = ax_add(made[0], ax_reduce_sum(made[2], AX_DIMS(0), false));
}
static AX_BODY(scanned) { scanned_by(false, in, out, context); }
static AX_BODY(scanned_back) { scanned_by(true, in, out, context); }

static AX_BODY(stage_step) { /* (i, a) -> a */
  const loop *l = context;
  ax_value first = ax_eq(ax_axis_index("d"), ax_integer(0)), came = move(l->m, in[1], 1, false);
  out[0] = ax_tanh(ax_mul(ax_where(first, ax_mul(l->x, ax_convert_element_type(in[0], AX_F32)), came), l->w));
}
/* A pipeline as one writes it: a loop over ticks. */
static AX_BODY(ticks) {
  loop l = {context, in[1], in[0]};
  ax_fori_loop(ax_integer(1), ax_integer(l.m->devices + 3), AX_CLOSURE(stage_step, 2, 1, &l), AX_VALUES(in[0]), AX_LIST(1, out));
}

static AX_BODY(send_step) {
  (void)out;
  if (((const moved *)context)->messages) (void)ax_psend(ax_sin(in[0]), "d", 1, one_on);
}
static AX_BODY(receive_step) {
  const loop *l = context;
  out[0] = ax_add(in[0], ax_mul(ax_precv(ax_create_token(), ax_typeof(l->x), "d", 1, one_on), l->w));
  out[0] = ax_mul(out[0], ax_real(0.75));
}
static AX_BODY(permuted_step) {
  const loop *l = context;
  out[0] = ax_mul(ax_add(in[0], ax_mul(ax_ppermute(ax_sin(in[1]), "d", 1, one_on), l->w)), ax_real(0.75));
}
/* A loop that only sends, without any result, and one that only receives. */
static AX_BODY(loops_apart) {
  loop l = {context, in[1], in[0]};
  ax_value rows = ax_stack(AX_VALUES(in[0], ax_mul(in[0], in[1]), ax_cos(in[0])), 0);
  if (l.m->messages) {
    ax_scan(AX_CLOSURE(send_step, 1, 0, context), 0, -1, false, AX_LIST(1, &rows), AX_LIST(0, out));
    ax_scan(AX_CLOSURE(receive_step, 1, 1, &l), 1, 3, false, AX_LIST(1, in), AX_LIST(1, out));
  } else {
    ax_scan(AX_CLOSURE(permuted_step, 2, 1, &l), 1, -1, false, AX_VALUES(in[0], rows), AX_LIST(1, out));
  }
}

static AX_BODY(there) { out[0] = move(context, ax_mul(in[0], in[1]), 1, true); }
static AX_BODY(back_again) { out[0] = ax_sin(move(context, ax_mul(in[0], in[0]), -1, true)); }
static AX_BODY(nowhere) { out[0] = ax_mul(in[0], ax_pvary(in[1], "d")); }
/* Branches that all devices take together. */
static AX_BODY(branched) {
  const ax_fn branches[] = {AX_CLOSURE(there, 2, 1, context), AX_CLOSURE(back_again, 2, 1, context), AX_FN(nowhere, 2, 1)};
  ax_value y = in[0];
  for (int k = 0; k < 4; k++)
    ax_switch(ax_full_i64(AX_S32, AX_DIMS(), k), AX_LIST(3, branches), AX_VALUES(y, in[1]), AX_LIST(1, &y));
  out[0] = y;
}

static AX_BODY(sends_branch) { (void)sender(in, out, context), out[0] = ax_mul(in[0], in[0]); }
static AX_BODY(receives_branch) {
  const ax_type type = ax_typeof(in[0]);
  out[0] = ax_mul(in[0], ax_precv(ax_create_token(), type, "d", 1, one_on));
}
static AX_BODY(stays_branch) { out[0] = ax_exp(in[0]); }
/* Each device in a branch of its own: one sends, one receives. */
static AX_BODY(sides) {
  const moved *m = context;
  const ax_fn branches[] = {AX_CLOSURE(sends_branch, 1, 1, context), AX_FN(receives_branch, 1, 1), AX_FN(stays_branch, 1, 1)};
  ax_value x = ax_mul(in[0], in[1]), index = ax_axis_index("d");
  if (m->messages) {
    ax_switch(index, AX_LIST(3, branches), AX_LIST(1, &x), AX_LIST(1, out));
    return;
  }
  ax_value got = ax_ppermute(ax_sin(x), "d", 1, one_on);
  out[0] = ax_where(ax_eq(index, ax_integer(0)), ax_mul(x, x), ax_where(ax_eq(index, ax_integer(1)), ax_mul(x, got), ax_exp(x)));
}

static AX_BODY(inner_step) { /* (a) -> a: a branch in a loop in a loop */
  const loop *l = context;
  ax_value even = ax_eq(ax_rem(in[0], ax_integer(2)), ax_integer(0));
  const ax_fn branches[] = {AX_CLOSURE(nowhere, 2, 1, NULL), AX_CLOSURE(there, 2, 1, (void *)(uintptr_t)l->m)};
  ax_switch(ax_convert_element_type(even, AX_S32), AX_LIST(2, branches), AX_VALUES(in[1], l->w), AX_LIST(1, out));
}
static AX_BODY(outer_step) {
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(inner_step, 2, 1, context), AX_LIST(1, in + 1), AX_LIST(1, out));
  out[0] = ax_add(out[0], ((const loop *)context)->x);
}
static AX_BODY(nested) {
  loop l = {context, in[1], in[0]};
  ax_fori_loop(ax_integer(0), ax_integer(2), AX_CLOSURE(outer_step, 2, 1, &l), AX_LIST(1, in), AX_LIST(1, out));
}

/* A gradient of a gradient of a loop. */
static AX_BODY(inside_loop) {
  ax_value made[2], along = ax_cos(in[0]), value;
  ax_vjp(AX_CLOSURE(scanned, 2, 1, context), AX_ARGS(0, 1), in, &along, &value, made);
  out[0] = ax_add(ax_mul(made[0], value), ax_mul(made[0], made[1]));
}

static void loss(const ax_value *in, ax_value *out, void *context) {
  const moved *m = context;
  ax_mesh mesh;
  ax_value made;
  TEST_OK(ax_mesh_parse(m->mesh, &mesh));
  if (m->unchecked) ax_shard_map_unchecked(&mesh, "d; _ -> d", AX_CLOSURE(m->body, 2, 1, context), in, &made);
  else ax_shard_map(&mesh, "d; _ -> d", AX_CLOSURE(m->body, 2, 1, context), in, &made);
  out[0] = ax_reduce_sum(ax_mul(made, made), AX_ALL_DIMS, false);
}

static ax_program *gradient_of(const moved *m) {
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(2 * m->devices)),
                           ax_array_type(AX_F32, AX_DIMS(2))};
  ax_program *program, *gradient;
  TEST_OK(ax_trace(AX_CLOSURE(loss, 2, 1, (void *)m), types, &program));
  TEST_OK(ax_program_grad(program, AX_ARGS(0, 1), &gradient));
  ax_program_release(program);
  return gradient;
}

static void compare(ax_function body, int64_t devices, const char *more, bool unchecked) {
  char mesh[16];
  snprintf(mesh, sizeof mesh, "d=%d%s", (int)devices, more);
  ax_program *program[2];
  ax_tensor *in[2], *got[2][2];
  test_random random = {(uint64_t)devices};
  for (int k = 0; k < 2; k++) program[k] = gradient_of(&(moved){k == 1, devices, mesh, body, unchecked});
  for (int k = 0; k < 2; k++) in[k] = test_random_tensor(&random, program[0]->types[k], -1, 1);
  for (int k = 0; k < 2; k++) TEST_OK(ax_evaluate(program[k], in, got[k]));
  for (int k = 0; k < 2; k++) TEST_TENSORS_NEAR(got[1][k], got[0][k], 0);
  TEST_EVERY_WAY(program[1], in, 1e-5);
  for (int k = 0; k < 2; k++) {
    ax_program_release(program[k]);
    test_release(got[k], 2);
  }
  test_release(in, 2);
}

static void as_permuted(void **state) {
  (void)state;
  const ax_function bodies[] = {ring, edges, pipeline, calls, apart, inside};
  for (size_t i = 0; i < AX_COUNT(bodies); i++)
    for (int64_t devices = 2; devices <= MOST_DEVICES; devices += 3) compare(bodies[i], devices, "", false);
  const ax_function loops[] = {scanned, scanned_back, ticks, loops_apart, branched, sides, nested, inside_loop};
  for (size_t i = 0; i < AX_COUNT(loops); i++)
    for (int64_t devices = 2; devices <= 5; devices += 3) compare(loops[i], devices, "", false);
  compare(grid, 2, ",e=3", false);
  compare(grid, 4, ",e=2", false);
  compare(ring, 3, "", true);
}

/* --- Where there is none --- */

#define X "x:f32[2]{V:d}"
#define SEND "psend[axes=(d) pairs=((0, 1)) link=0]"
#define RECEIVE "precv[dtype=f32 dims=(2) axes=(d) pairs=((0, 1)) link=0]"
#define BODY "{ axes d=2 ; lambda " X ". let t:token{V:d} = " SEND " x y:f32[2]{V:d} = " RECEIVE " t in (y) }"

static ax_program *parsed(const char *text) {
  ax_program *program;
  TEST_OK(ax_program_parse(text, strlen(text), "t", &program));
  return program;
}

static void absent(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
  } rows[] = {
      {"{ axes d=2 ; lambda " X ". let n:s32[] y:f32[2]{V:d} = while[\n"
       "  cond={ axes d=2 ; lambda n:s32[] " X ". let b:bool[] = lt n 3:s32[] in (b) } cond_nconsts=0\n"
       "  body={ axes d=2 ; lambda n:s32[] " X ". let m:s32[] = add n 1:s32[] t:token{V:d} = " SEND " x y:f32[2]{V:d} = " RECEIVE
       " t in (m, y) } body_nconsts=0] 0:s32[] x in (y) }",
       "while has no linearize rule where it holds messages (psend, precv) of floats"},
      {"{ axes d=2 ; lambda " X " i:s32[]. let y:f32[2]{V:d} = cond[branches=({ axes d=2 ; lambda " X
       ". let n:s32[] y:f32[2]{V:d} = while[\n"
       "  cond={ axes d=2 ; lambda n:s32[] " X ". let b:bool[] = lt n 3:s32[] in (b) } cond_nconsts=0\n"
       "  body={ axes d=2 ; lambda n:s32[] " X ". let m:s32[] = add n 1:s32[] t:token{V:d} = " SEND " x y:f32[2]{V:d} = " RECEIVE
       " t in (m, y) } body_nconsts=0] 0:s32[] x in (y) })] i x in (y) }",
       "while has no linearize rule"},
  };
  ax_program *program, *primal, *tangent, *made;
  uint32_t residuals;
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    program = parsed(rows[i].text);
    TEST_FAILS(ax_program_linearize(program, AX_ARGS(0), &primal, &tangent, &residuals), AX_ABSENT, rows[i].part);
    TEST_OK(ax_program_jvp(program, AX_ARGS(0), &made));
    TEST_FAILS(ax_program_transpose(made, AX_ARGS(made->in_count - 1), &tangent), AX_ABSENT,
               "has no transpose where it holds messages");
    ax_program_release(made);
    ax_program_release(program);
  }
  program = parsed(BODY);
  TEST_FAILS(ax_program_transpose(program, AX_ARGS(0), &made), AX_ABSENT,
             "psend has no transpose where it sends or receives what is linear");
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(as_permuted), cmocka_unit_test(absent)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
