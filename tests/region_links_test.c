/* The `links` of primitives that hold programs (ir/prim.h): over all samples they say of each input and output of each program what
   it is, once, and of the right type; for one equation of each primitive they are written out; and a primitive without them is
   refused. */
#include <stdio.h>
#include <string.h>

#include "ir/region_link.h"
#include "partition/partition.h"
#include "prim/prims.h"
#include "prim/bind.h"
#include "support/cmocka.h"
#include "support/sample.h"

enum { MOST = 64 };

static bool holds_programs(const ax_prim *prim) {
  for (uint32_t i = 0; i < prim->param_count; i++)
    if (prim->params[i].kind == AX_PARAM_PROGRAM || prim->params[i].kind == AX_PARAM_PROGRAMS) return true;
  return false;
}

/* --- What links must be --- */

/* `around`: an operand's or a result's type; `inside`: that of the input or output it is linked to. Futures are of what their
   program gives. */
static void check_types(const ax_eqn *eqn, ax_region_link_how how, const ax_type *around, const ax_type *inside) {
  const uint32_t first = how == AX_LINK_SLICE;
  bool fits = around->dtype == inside->dtype && around->rank == inside->rank + first;
  for (uint32_t d = 0; fits && d < inside->rank && how != AX_LINK_BLOCK; d++) fits = around->dims[d + first] == inside->dims[d];
  for (uint32_t d = 0; fits && d < inside->rank && how == AX_LINK_BLOCK; d++)
    fits = inside->dims[d] == 0 || around->dims[d] % inside->dims[d] == 0;
  if (!fits) fail_msg("%s links values of different types", eqn->prim->name);
}

static void check_number(const ax_eqn *eqn, ax_region_link link, uint32_t count, bool *seen) {
  if ((link.how == AX_LINK_OWN) != (link.number == AX_NONE))
    fail_msg("%s: an own value has a number, or another has none", eqn->prim->name);
  if (link.how == AX_LINK_OWN && (link.carry != AX_NONE || link.once))
    fail_msg("%s: an own value goes round, or is made once", eqn->prim->name);
  if (link.how == AX_LINK_OWN) return;
  if (link.number >= count || seen[link.number])
    fail_msg("%s: there is no operand or result %u, or it is linked twice", eqn->prim->name, link.number);
  seen[link.number] = true;
}

/* How many programs give the carry. */
static uint32_t givers_of(const ax_eqn *eqn, uint32_t carry) {
  uint32_t givers = 0;
  const ax_program *held;
  for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++)
    for (uint32_t j = 0; j < held->out_count; j++) {
      const ax_region_link link = ax_region_link_out(eqn, k, j);
      if (link.number != carry || link.carry == AX_NONE) continue;
      assert_int_equal(ax_region_link_in(eqn, k, link.carry).carry, carry);
      givers++;
    }
  return givers;
}

static void check_inputs(const ax_program *program, const ax_eqn *eqn, uint32_t k, const ax_program *held) {
  bool operands[MOST] = {false}, carries[MOST] = {false};
  for (uint32_t i = 0; i < held->in_count; i++) {
    const ax_region_link link = ax_region_link_in(eqn, k, i);
    check_number(eqn, link, eqn->in_count, operands);
    if (link.how != AX_LINK_OWN) check_types(eqn, link.how, &program->types[eqn->in[link.number]], &held->types[i]);
    if (link.carry == AX_NONE) continue;
    assert_true(link.carry < eqn->out_count && !carries[link.carry] && !link.once);
    carries[link.carry] = true;
    check_types(eqn, link.how, &program->types[eqn->out + link.carry], &held->types[i]);
    assert_int_equal(givers_of(eqn, link.carry), 1);
  }
}

/* A program gives all results or none. */
static void check_outputs(const ax_program *program, const ax_eqn *eqn, uint32_t k, const ax_program *held) {
  bool results[MOST] = {false};
  uint32_t given = 0;
  for (uint32_t j = 0; j < held->out_count; j++) {
    const ax_region_link link = ax_region_link_out(eqn, k, j);
    check_number(eqn, link, eqn->out_count, results);
    assert_true(!link.once && (link.carry == AX_NONE || link.carry < held->in_count));
    if (link.how == AX_LINK_OWN) continue;
    check_types(eqn, link.how, &program->types[eqn->out + link.number], &held->types[held->outs[j]]);
    given++;
  }
  assert_true(given == 0 || given == eqn->out_count);
  assert_true(ax_region_link_gives(eqn, k) == (given > 0));
}

static void check_program(const ax_program *program, bool *seen) {
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_eqn *eqn = &program->eqns[e];
    const ax_program *held;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) {
      assert_true(eqn->in_count <= MOST && eqn->out_count <= MOST);
      check_inputs(program, eqn, k, held);
      check_outputs(program, eqn, k, held);
      check_program(held, seen);
    }
    for (uint32_t p = 0; p < ax_prim_count; p++) seen[p] = seen[p] || ax_prims[p] == eqn->prim;
  }
}

static void links_cover_all_programs(void **state) {
  (void)state;
  bool seen[512] = {false};
  assert_true(ax_prim_count <= sizeof seen);
  for (size_t i = 0; i < test_sample_count; i++) {
    test_instances instances = test_instances_of(&test_samples[i], &test_in_f64);
    for (uint32_t n = 0; n < instances.count; n++) check_program(instances.v[n].program, seen);
    test_instances_release(&instances);
  }
  for (uint32_t p = 0; p < ax_prim_count; p++) {
    const bool holds = holds_programs(ax_prims[p]);
    if (holds != (ax_prims[p]->links != NULL) || holds != (ax_prims[p]->kind == AX_REGION))
      fail_msg("%s: links of what holds no programs, or none", ax_prims[p]->name);
    if (holds && !seen[p]) fail_msg("%s: there was no equation of it", ax_prims[p]->name);
  }
}

/* --- Links written out --- */

/* Inputs, "->", outputs: the number of the operand or the result; "-" an own value; "[]" a slice, "|" a block; "!" made once; ">0":
   goes round as carry 0, "<1": to input 1. */
static void write(const ax_eqn *eqn, char *text) {
  const ax_program *held;
  *text = '\0';
  for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) {
    if (k > 0) text += sprintf(text, "; ");
    for (uint32_t i = 0; i <= held->in_count + held->out_count; i++) {
      if (i == held->in_count) {
        text += sprintf(text, "-> ");
        continue;
      }
      const bool in = i < held->in_count;
      const ax_region_link link = in ? ax_region_link_in(eqn, k, i) : ax_region_link_out(eqn, k, i - held->in_count - 1);
      text += link.how == AX_LINK_OWN ? sprintf(text, "-") : sprintf(text, "%u", link.number);
      text += sprintf(text, "%s%s", link.how == AX_LINK_SLICE ? "[]" : link.how == AX_LINK_BLOCK ? "|" : "", link.once ? "!" : "");
      if (link.carry != AX_NONE) text += sprintf(text, "%c%u", in ? '>' : '<', link.carry);
      text += sprintf(text, " ");
    }
  }
}

static const ax_eqn *first_of(const ax_program *program, const ax_prim *prim) {
  const ax_eqn *found = NULL;
  for (uint32_t e = 0; e < program->eqn_count && found == NULL; e++) {
    const ax_program *held;
    if (program->eqns[e].prim == prim) found = &program->eqns[e];
    for (uint32_t k = 0; found == NULL && (held = ax_eqn_program(&program->eqns[e], k)) != NULL; k++) found = first_of(held, prim);
  }
  return found;
}

static void links_are_as_written(void **state) {
  (void)state;
  static const struct {
    const char *prim, *links; /* of its first sample whose text has `with` */
    const char *with;
  } rows[] = {
      {"cond", "1 2 -> 0 1 ; 1 2 -> 0 1 ; 1 2 -> 0 1 ", "sub c a in (d, c)"},
      {"scan", "0! 1>0 2[] -> 0<1 1[] ", "reverse=true num_consts=1"},
      {"while", "0! 2>0 3>1 -> - ; 1! 2>0 3>1 -> 0<1 1<2 ", "body_nconsts=1"},
      {"closed_call", "0! 1! -> 0 1 ", "mul x y"},
      {"checkpoint", "0 1 -> 0 1 ", "mul x y"},
      {"start", "0 1 -> 0 1 ", "c, f)"},
      {"custom_jvp", "0 1 -> 0 ; 0 1 - -> 0 - ", "rule={"},
      {"custom_vjp", "0 1 2 -> 0 1 ; 0 1 2 -> 0 1 - ; - - - -> - - ", "in (z, y, k)"},
      {"custom_linear", "0 - -> - ", "custom_linear["},
      {"custom_linear_solve", "0 1 -> 0 ; 0 1 -> 0 ", "symmetric=true"},
      {"shard_map", "0| 1| -> 0| 1| ", "in (r, p)"},
      {"kernel_call", "- - -> ", "kernel_call["},
      {"run_scoped", "0 - -> 0 ", "O["},
      {"grid_point", "1 2 -> ", "O["},
      {"collective_matmul", "0 1 -> 0 ", "columns=true"},
      {"matmul_reduce_scatter", "0 1 -> 0 ", "columns=false"},
  };
  uint32_t regions = 0;
  for (uint32_t p = 0; p < ax_prim_count; p++) regions += holds_programs(ax_prims[p]);
  assert_int_equal(regions, AX_COUNT(rows));
  for (size_t r = 0; r < AX_COUNT(rows); r++) {
    char text[512] = "";
    for (size_t i = 0; i < test_sample_count && text[0] == '\0'; i++) {
      if (strcmp(test_samples[i].prim, rows[r].prim) != 0 || strstr(test_samples[i].text, rows[r].with) == NULL) continue;
      test_instances instances = test_instances_of(&test_samples[i], &test_in_f64);
      const ax_eqn *eqn = first_of(instances.v[0].program, ax_prim_find(rows[r].prim, strlen(rows[r].prim)));
      assert_non_null(eqn);
      write(eqn, text);
      test_instances_release(&instances);
    }
    if (strcmp(text, rows[r].links) != 0) fail_msg("%s: \"%s\", not \"%s\"", rows[r].prim, text, rows[r].links);
  }
}

/* --- A region without links --- */

static void bind_without(const ax_value *in, ax_value *out, void *context) {
  ax_prim *prim = context;
  *prim = ax_prim_closed_call;
  prim->name = "associative_scan";
  prim->links = NULL;
  ax_program *body;
  const ax_type type = ax_typeof(in[0]);
  const char text[] = "{ lambda x:f32[3]. let in (x,) }";
  assert_int_equal(type.dtype, AX_F32);
  assert_int_equal(ax_program_parse(text, strlen(text), NULL, &body), AX_OK);
  ax_bind(prim, &body, in, 1, out, 1); /* its parameters are one program */
  ax_program_release(body);
}

static void a_region_without_links_is_refused(void **state) {
  (void)state;
  ax_prim prim;
  ax_program *program;
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(3));
  ax_fn function = {.function = bind_without, .in_count = 1, .out_count = 1, .context = &prim};
  assert_int_equal(ax_trace(function, &type, &program), AX_INTERNAL);
  assert_non_null(strstr(ax_message(), "associative_scan holds programs, but its record has no `links` rule"));
}

/* --- What only derivatives run --- */

/* Tangents are no inputs of backward, which takes cotangents of the results: of one value that is cut it takes two that are
   whole. */
static void a_linear_map_is_partitioned(void **state) {
  (void)state;
  const char text[] =
      "{ lambda r:f32[4] t:f32[4,6]. let s:f32[4,6] = sharding_constraint[mesh=(u=2, v=3) specs=(P(u, v),)] t\n"
      "  y:f32[3] z:f32[] = custom_linear[backward={ lambda r:f32[4] a:f32[3] b:f32[]. let c:f32[] = reduce_sum[axes=(0,)] a d:f32[] = mul b c\n"
      "    x:f32[4,6] = broadcast_in_dim[shape=(4, 6) broadcast_dimensions=()] d in (x,) } num_residuals=1] r s in (y, z) }";
  ax_program *program, *made;
  ax_status status = ax_program_parse(text, strlen(text), NULL, &program);
  if (status != AX_OK) fail_msg("%s", ax_message());
  status = ax_program_partition(program, &made);
  if (status != AX_OK) fail_msg("%s", ax_message());
  ax_program_release(made);
  ax_program_release(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(links_cover_all_programs), cmocka_unit_test(links_are_as_written),
                                     cmocka_unit_test(a_region_without_links_is_refused),
                                     cmocka_unit_test(a_linear_map_is_partitioned)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
