/* Loops in which devices choose whether they exchange: the third exchange of one meets the third of the others, whatever rounds they are
   in. So a device goes rounds ahead of another, and may not wait there for what that one computes for all. Against counting by hand. */
#include <stdio.h>
#include <string.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/run.h"

enum { elems = 3, rounds = 12, most_devices = 4 };

typedef enum kind {
  SCAN,
  WHILE,
  WHILE_INSIDE,
  KINDS
} kind; /* WHILE_INSIDE: a loop of one round or none, in the place of a branch */

typedef struct choice {
  uint32_t devices, every, wide; /* a device exchanges in rounds t in which (t + its number) % every < wide */
  kind kind;
} choice;

static ax_value whole(int64_t x) { return ax_full_i64(AX_S32, AX_DIMS(), x); }

static void exchange(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_rem(ax_psum(in[0], "i"), ax_full_i64(AX_S32, AX_DIMS(elems), 1009));
}
static void stay(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_rem(ax_add(ax_mul(in[0], ax_full_i64(AX_S32, AX_DIMS(elems), 3)), in[1]), ax_full_i64(AX_S32, AX_DIMS(elems), 1009));
}

static void is_first(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], in[2]);
}
static void once(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], whole(1));
  exchange(in + 1, out + 1, context);
  out[2] = in[2];
}

/* t, c -> t + 1, c. What is added to c is the same on all devices, and so one may compute it for all. */
static void round_of(const ax_value *in, ax_value *out, void *context) {
  const choice *k = context;
  const ax_value t = in[0], number = ax_axis_index("i");
  const ax_value turn = ax_rem(ax_add(t, number), whole(k->every)), exchanges = ax_lt(turn, whole(k->wide));
  const ax_value same = ax_broadcast_to(ax_add(ax_mul(t, t), whole(5)), AX_DIMS(elems));
  out[0] = ax_add(t, whole(1));
  if (k->kind != WHILE_INSIDE) {
    (ax_if)(exchanges, AX_FN(exchange, 2, 1), AX_FN(stay, 2, 1), 2, (const ax_value[]){in[1], same}, 1, &out[1]);
    return;
  }
  ax_value left[3], stayed;
  const ax_value trips = ax_convert_element_type(exchanges, AX_S32);
  stay((const ax_value[]){in[1], same}, &stayed, NULL);
  (ax_while)(AX_FN(is_first, 3, 1), AX_FN(once, 3, 3), 3, (const ax_value[]){whole(0), in[1], trips}, 3, left);
  out[1] = ax_where(ax_broadcast_to(exchanges, AX_DIMS(elems)), left[1], stayed);
}

static void goes_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(in[0], whole(rounds));
}

static void on_device(const ax_value *in, ax_value *out, void *context) {
  const choice *k = context;
  ax_value ends[2];
  const ax_value starts[] = {whole(0), in[0]};
  if (k->kind == WHILE)
    (ax_while)(AX_FN(goes_on, 2, 1), (ax_fn){round_of, 2, 2, context}, 2, starts, 2, ends);
  else
    (ax_scan)((ax_fn){round_of, 2, 2, context}, 2, rounds, false, 2, starts, 2, ends);
  out[0] = ends[1];
}

/* Each device until its next exchange, then all together. False: some have exchanged more often. */
static bool count_by_hand(const choice *k, int32_t (*c)[elems]) {
  uint32_t t[most_devices] = {0};
  for (;;) {
    uint32_t over = 0;
    for (uint32_t d = 0; d < k->devices; d++) {
      for (; t[d] < rounds && (t[d] + d) % k->every >= k->wide; t[d]++)
        for (int e = 0; e < elems; e++) c[d][e] = (c[d][e] * 3 + (int32_t)(t[d] * t[d]) + 5) % 1009;
      over += t[d] == rounds;
    }
    if (over > 0) return over == k->devices;
    for (int e = 0; e < elems; e++) {
      int32_t sum = 0;
      for (uint32_t d = 0; d < k->devices; d++) sum += c[d][e];
      for (uint32_t d = 0; d < k->devices; d++) c[d][e] = sum % 1009;
    }
    for (uint32_t d = 0; d < k->devices; d++) t[d]++;
  }
}

static void try_choice(const choice *k, uint32_t workers) {
  char mesh[16];
  int32_t c[most_devices][elems], wanted[most_devices][elems];
  ax_runtime *runtime;
  ax_executable *e;
  ax_array *x, *y;
  for (uint32_t d = 0; d < k->devices; d++)
    for (int i = 0; i < elems; i++) c[d][i] = wanted[d][i] = (int32_t)(7 * d) + 11 * i + 1;
  assert_true(count_by_hand(k, wanted));
  snprintf(mesh, sizeof mesh, "i=%u", k->devices);
  const ax_type type = TEST_TYPE(AX_S32, (int64_t)k->devices * elems);
  ax_program *program = test_trace_map(
      &(test_map){.mesh = mesh, .in_specs = {"i"}, .out_specs = {"i"}, .body = on_device, .unchecked = true, .context = (void *)k},
      &type);
  const ax_mesh all = {1, {{.name = "i", .size = k->devices}}};
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = workers}, &runtime));
  TEST_OK(ax_compile(runtime, program, NULL, &e));
  TEST_OK(ax_device_put_data(runtime, &all, "i", &type, c, &x));
  for (int again = 0; again < 3; again++) {
    TEST_OK(ax_run(e, &x, &y));
    TEST_OK((ax_array_read)(y, AX_S32, c, (size_t)k->devices * sizeof c[0]));
    for (uint32_t d = 0; d < k->devices; d++)
      for (int i = 0; i < elems; i++)
        if (c[d][i] != wanted[d][i])
          fail_msg("%u devices, %u of %u, kind %d: device %u has %d, not %d", k->devices, k->wide, k->every, (int)k->kind, d,
                   c[d][i], wanted[d][i]);
    ax_array_release(y);
  }
  ax_array_release(x);
  ax_executable_release(e), ax_program_release(program), ax_runtime_release(runtime);
}

static void each_in_its_own_rounds(void **state) {
  (void)state;
  for (uint32_t workers = 1; workers <= 3; workers += 2)
    for (int of = 0; of < KINDS; of++)
      for (uint32_t devices = 2; devices <= most_devices; devices++)
        for (uint32_t every = 2; every <= 4; every++)
          for (uint32_t wide = 1; wide < every; wide++)
            if (rounds % every == 0) try_choice(&(choice){devices, every, wide, (kind)of}, workers);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_in_its_own_rounds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
