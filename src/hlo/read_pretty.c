/* The short forms of operations. Most are a pattern of words, operands and attributes:

     %              an operand                      *          operands, separated by commas
     {name:kind}    an attribute: i an integer, I a list of integers, w a word, s a string, b a truth value, y a symbol,
                    o text in brackets that whoever needs it reads, a any attribute
     anything else  itself

   Behind the pattern stand attributes in braces and the types. An operation without a pattern has operands alone; those whose forms
   are other than patterns have functions. */
#include <string.h>

#include "hlo/read_sdy.h"

typedef struct form {
  const char *name, *pattern; /* pattern: NULL where `read` reads all */
  ax_status (*read)(ax_hlo_scan *r, ax_hlo_draft *draft);
} form;

/* --- Types behind an operation --- */

typedef enum results { RESULT_LAST, RESULT_ALL, RESULT_NONE } results;

static results results_of(ax_hlo_slice name) {
  static const char *const none[] = {"func.return",        "stablehlo.return",       "sdy.return",
                                     "sdy.mesh",           "sdy.sharding_group", "check.expect_eq",        "check.expect_eq_const",
                                     "check.expect_close", "check.expect_almost_eq", "check.expect_almost_eq_const",
                                     "check.expect_serialized_eq", "interpreter.print"};
  for (size_t i = 0; i < AX_COUNT(none); i++)
    if (ax_hlo_slice_is(name, none[i])) return RESULT_NONE;
  return ax_hlo_slice_is(name, "stablehlo.optimization_barrier") ? RESULT_ALL : RESULT_LAST;
}

static ax_status add_listed(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_list *types) {
  const ax_hlo_value_type *type;
  do {
    AX_TRY(ax_hlo_want_type(r, &type));
    AX_TRY(ax_hlo_list_add(types, &type, sizeof type));
  } while (ax_hlo_take(r, ","));
  if (ax_hlo_take(r, "->")) return ax_hlo_want_results(r, &draft->results);
  const results how = results_of(draft->op.name);
  const uint32_t most = ax_hlo_slice_is(draft->op.name, "stablehlo.select") ? 2 : 1; /* the predicate's type, too */
  if (how == RESULT_LAST && types->count > most)
    return ax_hlo_refuse(r, draft->at, "%u types stand behind the operation, which has %u: or (types) -> type", types->count, most);
  const uint32_t first = how == RESULT_ALL ? 0 : how == RESULT_LAST ? types->count - 1 : types->count;
  for (uint32_t i = first; i < types->count; i++) {
    type = ((const ax_hlo_value_type *const *)types->items)[i];
    AX_TRY(ax_hlo_list_add(&draft->results, &type, sizeof type));
  }
  return AX_OK;
}

/* ": type" of the results (and all operands), ": types -> types", or a signature. */
static ax_status want_types(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_list types = {0};
  ax_hlo_skip(r);
  const char *before = r->cursor;
  if (!ax_hlo_take(r, ":")) return results_of(draft->op.name) == RESULT_NONE ? AX_OK : ax_hlo_expected(r, "':'");
  if (ax_hlo_sees(r, "(")) {
    r->cursor = before;
    return ax_hlo_want_typed(r, draft);
  }
  const ax_status status = add_listed(r, draft, &types);
  ax_free(types.items);
  return status;
}

static ax_status want_rest(ax_hlo_scan *r, ax_hlo_draft *draft) {
  AX_TRY(ax_hlo_draft_attributes(r, draft));
  return want_types(r, draft);
}

/* --- Patterns --- */

static ax_status add_operand(ax_hlo_scan *r, ax_hlo_draft *draft) {
  uint32_t value;
  AX_TRY(ax_hlo_want_operand(r, &value));
  return ax_hlo_list_add(&draft->operands, &value, sizeof value);
}

/* A comma that no operand follows belongs to what comes next. */
static ax_status add_operands(ax_hlo_scan *r, ax_hlo_draft *draft) {
  if (!ax_hlo_sees(r, "%")) return AX_OK;
  for (const char *comma;;) {
    AX_TRY(add_operand(r, draft));
    comma = r->cursor;
    if (!ax_hlo_take(r, ",")) return AX_OK;
    if (ax_hlo_sees(r, "%")) continue;
    r->cursor = comma;
    return AX_OK;
  }
}

static ax_status want_integers(ax_hlo_scan *r, ax_hlo_attribute *out) {
  if (!ax_hlo_sees(r, "[")) return ax_hlo_expected(r, "a list of integers, [..]");
  return ax_hlo_want_attribute(r, out);
}

static ax_status want_kind(ax_hlo_scan *r, char kind, ax_hlo_attribute *out) {
  ax_hlo_skip(r);
  const char *at = r->cursor;
  switch (kind) {
    case 'I':
      return want_integers(r, out);
    case 'i':
      out->kind = AX_HLO_INTEGER;
      return ax_hlo_want_integer(r, &out->integer);
    case 'w':
      out->kind = AX_HLO_WORD;
      return ax_hlo_want_word(r, "a word", &out->text);
    case 's':
      out->kind = AX_HLO_STRING;
      return ax_hlo_want_string(r, &out->text);
    case 'y':
      return ax_hlo_want_symbol(r, out);
    case 'o':
      out->kind = AX_HLO_OPAQUE;
      AX_TRY(ax_hlo_want_balanced(r, &out->text));
      out->text = (ax_hlo_slice){at, (size_t)(r->cursor - at)};
      return AX_OK;
    default:
      return ax_hlo_want_attribute(r, out);
  }
}

/* {name:kind} at *p. */
static ax_status want_slot(ax_hlo_scan *r, const char **p, ax_hlo_draft *draft) {
  const char *colon = strchr(*p, ':');
  ax_hlo_attribute attribute = {.name = {*p + 1, (size_t)(colon - *p) - 1}};
  *p = colon + 3;
  AX_TRY(want_kind(r, colon[1], &attribute));
  return ax_hlo_list_add(&draft->attributes, &attribute, sizeof attribute);
}

static ax_status want_pattern(ax_hlo_scan *r, const char *p, ax_hlo_draft *draft) {
  while (*p != '\0') {
    char word[32] = {0};
    size_t length = strspn(p, "abcdefghijklmnopqrstuvwxyz_");
    if (length == 0) length = 1;
    if (*p == '{') {
      AX_TRY(want_slot(r, &p, draft));
      continue;
    }
    memcpy(word, p, length);
    if (*p == '%')
      AX_TRY(add_operand(r, draft));
    else if (*p == '*')
      AX_TRY(add_operands(r, draft));
    else if (*p != ' ')
      AX_TRY(ax_hlo_want(r, word));
    p += length;
  }
  return want_rest(r, draft);
}

/* --- Forms that are no patterns --- */

/* constant dense<..>, and constant() {value = dense<..>} : () -> type, of a type that is not the value's. */
static ax_status read_constant(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute value = {0};
  if (ax_hlo_take(r, "(")) {
    AX_TRY(ax_hlo_want(r, ")"));
    return want_rest(r, draft);
  }
  AX_TRY(ax_hlo_draft_attributes(r, draft));
  AX_TRY(ax_hlo_want_attribute(r, &value));
  if (value.type == NULL) return ax_hlo_expected(r, "a constant with its type");
  AX_TRY(ax_hlo_list_add(&draft->results, &value.type, sizeof value.type));
  return ax_hlo_draft_attribute(draft, "value", &value);
}

/* compare LT, %a, %b, SIGNED */
static ax_status read_compare(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute direction = {.kind = AX_HLO_WORD}, type = {.kind = AX_HLO_WORD};
  AX_TRY(ax_hlo_want_word(r, "EQ, NE, LT, LE, GT or GE", &direction.text));
  AX_TRY(ax_hlo_draft_attribute(draft, "comparison_direction", &direction));
  AX_TRY(ax_hlo_want(r, ","));
  AX_TRY(add_operands(r, draft));
  if (ax_hlo_take(r, ",")) {
    AX_TRY(ax_hlo_want_word(r, "FLOAT, TOTALORDER, SIGNED or UNSIGNED", &type.text));
    AX_TRY(ax_hlo_draft_attribute(draft, "compare_type", &type));
  }
  return want_rest(r, draft);
}

static ax_status add_numbers(ax_hlo_scan *r, ax_hlo_draft *draft, const char *name, ax_hlo_list *list, ax_status status) {
  ax_hlo_attribute numbers = {.kind = AX_HLO_NUMBERS, .count = list->count};
  numbers.numbers = ax_hlo_list_end(r, list, sizeof numbers.numbers[0], &status);
  return status == AX_OK ? ax_hlo_draft_attribute(draft, name, &numbers) : status;
}

/* [start:limit:stride, ..] */
static ax_status want_ranges(ax_hlo_scan *r, ax_hlo_list lists[3]) {
  AX_TRY(ax_hlo_want(r, "["));
  if (ax_hlo_take(r, "]")) return AX_OK;
  do {
    int64_t range[3] = {0, 0, 1};
    AX_TRY(ax_hlo_want_integer(r, &range[0]));
    AX_TRY(ax_hlo_want(r, ":"));
    AX_TRY(ax_hlo_want_integer(r, &range[1]));
    if (ax_hlo_take(r, ":")) AX_TRY(ax_hlo_want_integer(r, &range[2]));
    for (int k = 0; k < 3; k++) AX_TRY(ax_hlo_list_add(&lists[k], &range[k], sizeof range[k]));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, "]");
}

static ax_status read_slice(ax_hlo_scan *r, ax_hlo_draft *draft) {
  static const char *const names[] = {"start_indices", "limit_indices", "strides"};
  ax_hlo_list lists[3] = {{0}};
  AX_TRY(add_operand(r, draft));
  ax_status status = want_ranges(r, lists);
  for (int k = 0; k < 3; k++) {
    const ax_status added = add_numbers(r, draft, names[k], &lists[k], status);
    if (status == AX_OK) status = added;
  }
  AX_TRY(status);
  return want_rest(r, draft);
}

/* [..] x [..]: what the left and the right operand have. */
static ax_status want_pair(ax_hlo_scan *r, const char *left, const char *right, ax_hlo_attribute out[2]) {
  out[0].name = (ax_hlo_slice){left, strlen(left)}, out[1].name = (ax_hlo_slice){right, strlen(right)};
  AX_TRY(want_integers(r, &out[0]));
  AX_TRY(ax_hlo_want(r, "x"));
  return want_integers(r, &out[1]);
}

static ax_status read_dot_general(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute items[4] = {{0}}, precision = {0}, numbers = {.kind = AX_HLO_DICTIONARY};
  AX_TRY(add_operands(r, draft));
  while (ax_hlo_take(r, ",")) {
    if (ax_hlo_take(r, "batching_dims")) {
      AX_TRY(ax_hlo_want(r, "="));
      AX_TRY(want_pair(r, "lhs_batching_dimensions", "rhs_batching_dimensions", &items[numbers.count]));
      numbers.count += numbers.count == 0 ? 2 : 0;
    } else if (ax_hlo_take(r, "contracting_dims")) {
      AX_TRY(ax_hlo_want(r, "="));
      AX_TRY(want_pair(r, "lhs_contracting_dimensions", "rhs_contracting_dimensions", &items[2]));
    } else if (ax_hlo_take(r, "precision") || ax_hlo_take(r, "algorithm")) {
      precision = (ax_hlo_attribute){0};
      AX_TRY(ax_hlo_want(r, "="));
      AX_TRY(ax_hlo_take(r, "<") ? ax_hlo_want_group(r, &precision) : ax_hlo_want_attribute(r, &precision));
      AX_TRY(ax_hlo_draft_attribute(draft, precision.kind == AX_HLO_DICTIONARY ? "algorithm" : "precision_config", &precision));
    } else {
      return ax_hlo_expected(r, "batching_dims, contracting_dims, precision or algorithm");
    }
  }
  numbers.count = 4;
  numbers.items = ax_arena_copy(&r->module->arena, items, sizeof items);
  if (numbers.items == NULL) return ax_out_of_memory(sizeof items);
  AX_TRY(ax_hlo_draft_attribute(draft, "dot_dimension_numbers", &numbers));
  return want_rest(r, draft);
}

/* dot %a, %b, precision = [..] */
static ax_status read_dot(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute precision = {0};
  AX_TRY(add_operands(r, draft));
  if (ax_hlo_take(r, ",")) {
    AX_TRY(ax_hlo_want(r, "precision"));
    AX_TRY(ax_hlo_want(r, "="));
    AX_TRY(ax_hlo_want_attribute(r, &precision));
    AX_TRY(ax_hlo_draft_attribute(draft, "precision_config", &precision));
  }
  return want_rest(r, draft);
}

/* convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], ..} {..} */
static ax_status read_convolution(ax_hlo_scan *r, ax_hlo_draft *draft) {
  static const char *const names[][2] = {{"stride", "window_strides"},
                                         {"pad", "padding"},
                                         {"lhs_dilate", "lhs_dilation"},
                                         {"rhs_dilate", "rhs_dilation"},
                                         {"reverse", "window_reversal"}};
  ax_hlo_attribute dimensions = {0};
  AX_TRY(ax_hlo_want(r, "("));
  AX_TRY(add_operands(r, draft));
  AX_TRY(ax_hlo_want(r, ")"));
  AX_TRY(ax_hlo_want(r, "dim_numbers"));
  AX_TRY(ax_hlo_want(r, "="));
  AX_TRY(ax_hlo_want_conv(r, &dimensions));
  AX_TRY(ax_hlo_draft_attribute(draft, "dimension_numbers", &dimensions));
  AX_TRY(ax_hlo_want(r, ","));
  AX_TRY(ax_hlo_want(r, "window"));
  AX_TRY(ax_hlo_want(r, "="));
  const uint32_t first = draft->attributes.count;
  AX_TRY(ax_hlo_want_entries(r, &draft->attributes));
  for (uint32_t i = first; i < draft->attributes.count; i++)
    for (size_t k = 0; k < AX_COUNT(names); k++) {
      ax_hlo_attribute *entry = &((ax_hlo_attribute *)draft->attributes.items)[i];
      if (ax_hlo_slice_is(entry->name, names[k][0])) entry->name = (ax_hlo_slice){names[k][1], strlen(names[k][1])};
    }
  return want_rest(r, draft);
}

/* @callee(operands) */
static ax_status read_called(ax_hlo_scan *r, ax_hlo_draft *draft, const char *attribute) {
  ax_hlo_attribute callee = {0};
  AX_TRY(ax_hlo_want_symbol(r, &callee));
  AX_TRY(ax_hlo_draft_attribute(draft, attribute, &callee));
  AX_TRY(ax_hlo_want(r, "("));
  AX_TRY(add_operands(r, draft));
  AX_TRY(ax_hlo_want(r, ")"));
  return want_rest(r, draft);
}
static ax_status read_call(ax_hlo_scan *r, ax_hlo_draft *draft) { return read_called(r, draft, "callee"); }
static ax_status read_custom_call(ax_hlo_scan *r, ax_hlo_draft *draft) { return read_called(r, draft, "call_target_name"); }

/* %a, format = e5m10 */
static ax_status read_reduce_precision(ax_hlo_scan *r, ax_hlo_draft *draft) {
  static const char *const names[] = {"exponent_bits", "mantissa_bits"};
  ax_hlo_slice word;
  AX_TRY(add_operand(r, draft));
  AX_TRY(ax_hlo_want(r, ","));
  AX_TRY(ax_hlo_want(r, "format"));
  AX_TRY(ax_hlo_want(r, "="));
  ax_hlo_skip(r);
  const char *p = r->cursor;
  AX_TRY(ax_hlo_want_word(r, "a format, as e5m10", &word));
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    ax_hlo_attribute bits = {.kind = AX_HLO_INTEGER};
    const char *digits = p < r->cursor && *p == "em"[i] ? ++p : r->cursor;
    for (; p < r->cursor && ax_hlo_is_digit(*p) && bits.integer < INT32_MAX / 10; p++) bits.integer = 10 * bits.integer + (*p - '0');
    if (p == digits) return ax_hlo_refuse(r, word.start, "the format must be as e5m10");
    AX_TRY(ax_hlo_draft_attribute(draft, names[i], &bits));
  }
  if (p != r->cursor) return ax_hlo_refuse(r, word.start, "the format must be as e5m10");
  return want_rest(r, draft);
}

/* --- check, the dialect of StableHLO's own tests: operands, a constant, and name = value behind them --- */

static ax_status read_check(ax_hlo_scan *r, ax_hlo_draft *draft) {
  AX_TRY(add_operands(r, draft));
  static const struct {
    const char *name;
    char kind;
  } named[] = {{"max_ulp_difference", 'i'}, {"min_ulp_difference", 'i'}, {"tolerance", 'a'}, {"probe_id", 's'}, {"iter", 'i'}};
  while (ax_hlo_take(r, ",")) {
    ax_hlo_attribute attribute = {.name = {"value", strlen("value")}};
    size_t i = 0;
    while (i < AX_COUNT(named) && !ax_hlo_sees(r, named[i].name)) i++;
    if (i < AX_COUNT(named)) {
      attribute.name = ax_hlo_take_word(r);
      AX_TRY(ax_hlo_want(r, "="));
      AX_TRY(want_kind(r, named[i].kind, &attribute));
    } else {
      AX_TRY(ax_hlo_want_attribute(r, &attribute));
    }
    AX_TRY(ax_hlo_list_add(&draft->attributes, &attribute, sizeof attribute));
  }
  return want_rest(r, draft);
}

/* --- while --- */

static ax_status add_carries(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_list *names) {
  AX_TRY(ax_hlo_want(r, "("));
  if (ax_hlo_take(r, ")")) return AX_OK;
  do {
    ax_hlo_slice name;
    AX_TRY(ax_hlo_want_name(r, '%', &name));
    AX_TRY(ax_hlo_list_add(names, &name, sizeof name));
    AX_TRY(ax_hlo_want(r, "="));
    AX_TRY(add_operand(r, draft));
  } while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

static ax_status add_loop(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_list *names) {
  const ax_hlo_value_type *type;
  AX_TRY(add_carries(r, draft, names));
  if (ax_hlo_take(r, ":")) do {
      AX_TRY(ax_hlo_want_type(r, &type));
      AX_TRY(ax_hlo_list_add(&draft->results, &type, sizeof type));
    } while (ax_hlo_take(r, ","));
  if (draft->results.count != names->count)
    return ax_hlo_refuse(r, draft->at, "the loop has %u values, and types for %u", names->count, draft->results.count);
  const ax_hlo_arguments arguments = {names->items, draft->results.items, names->count};
  if (ax_hlo_take(r, "attributes")) AX_TRY(ax_hlo_draft_attributes(r, draft));
  AX_TRY(ax_hlo_want(r, "cond"));
  AX_TRY(ax_hlo_want_region(r, draft, &arguments));
  AX_TRY(ax_hlo_want(r, "do"));
  return ax_hlo_want_region(r, draft, &arguments);
}

static ax_status read_while(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_list names = {0};
  const ax_status status = add_loop(r, draft, &names);
  ax_free(names.items);
  return status;
}

/* --- reduce --- */

/* (%a init: %b), (%c init: %d): operands %a, %c, %b, %d. */
static ax_status add_reduced(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_list *inits) {
  uint32_t init;
  do {
    AX_TRY(ax_hlo_want(r, "("));
    AX_TRY(add_operand(r, draft));
    AX_TRY(ax_hlo_want(r, "init"));
    AX_TRY(ax_hlo_want(r, ":"));
    AX_TRY(ax_hlo_want_operand(r, &init));
    AX_TRY(ax_hlo_list_add(inits, &init, sizeof init));
    AX_TRY(ax_hlo_want(r, ")"));
  } while (ax_hlo_take(r, ","));
  for (uint32_t i = 0; i < inits->count; i++)
    AX_TRY(ax_hlo_list_add(&draft->operands, &((const uint32_t *)inits->items)[i], sizeof init));
  return AX_OK;
}

static bool may_apply(ax_hlo_slice name) {
  static const char *const names[] = {"stablehlo.add",      "stablehlo.and", "stablehlo.maximum", "stablehlo.minimum",
                                      "stablehlo.multiply", "stablehlo.or",  "stablehlo.xor"};
  for (size_t i = 0; i < AX_COUNT(names); i++)
    if (ax_hlo_slice_is(name, names[i])) return true;
  return false;
}

/* "applies stablehlo.add": the region that these words stand for. */
static ax_status add_applied(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_slice name, const uint32_t *init) {
  const ax_hlo_value_type *type = r->module->values[*init];
  const ax_hlo_value_type *const types[] = {type, type};
  ax_arena *arena = &r->module->arena;
  ax_hlo_block block = {.argument_count = 2, .operation_count = 2};
  ax_hlo_operation *ops = ax_arena_alloc(arena, 2 * sizeof ops[0]);
  uint32_t *operands = ax_arena_alloc(arena, 3 * sizeof operands[0]);
  block.operations = ax_arena_alloc(arena, 2 * sizeof block.operations[0]);
  if (ops == NULL || operands == NULL || block.operations == NULL) return ax_out_of_memory(0);
  AX_TRY(ax_hlo_new_values(r, 2, types, &block.argument));
  operands[0] = block.argument, operands[1] = block.argument + 1;
  ops[0] = (ax_hlo_operation){.name = name, .operands = operands, .operand_count = 2, .result_count = 1, .place = draft->op.place};
  AX_TRY(ax_hlo_new_values(r, 1, types, &ops[0].result));
  operands[2] = ops[0].result;
  ops[1] =
      (ax_hlo_operation){.name = {"stablehlo.return", 16}, .operands = operands + 2, .operand_count = 1, .place = draft->op.place};
  block.operations[0] = &ops[0], block.operations[1] = &ops[1];
  return ax_hlo_draft_region(r, draft, &block);
}

/* reducer(%a: type, %b: type) (%c: type, %d: type) {..}: its arguments are %a, %c, %b, %d. */
static ax_status add_reducer_of(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_slice *names, const ax_hlo_value_type **types,
                                uint32_t count) {
  ax_hlo_slice location;
  AX_TRY(ax_hlo_want(r, "reducer"));
  for (uint32_t i = 0; i < count; i++) {
    AX_TRY(ax_hlo_want(r, "("));
    for (uint32_t k = 0; k < 2; k++) {
      if (k > 0) AX_TRY(ax_hlo_want(r, ","));
      AX_TRY(ax_hlo_want_name(r, '%', &names[i + k * count]));
      AX_TRY(ax_hlo_want(r, ":"));
      AX_TRY(ax_hlo_want_type(r, &types[i + k * count]));
      AX_TRY(ax_hlo_take_location(r, &location));
    }
    AX_TRY(ax_hlo_want(r, ")"));
  }
  const ax_hlo_arguments arguments = {names, types, 2 * count};
  return ax_hlo_want_region(r, draft, &arguments);
}

static ax_status add_reducer(ax_hlo_scan *r, ax_hlo_draft *draft, uint32_t count) {
  ax_hlo_slice *names = ax_calloc(2 * count, sizeof names[0]);
  const ax_hlo_value_type **types = ax_calloc(2 * count, sizeof types[0]);
  ax_status status = names != NULL && types != NULL ? AX_OK : ax_out_of_memory(0);
  if (status == AX_OK) status = add_reducer_of(r, draft, names, types, count);
  ax_free(names);
  ax_free(types);
  return status;
}

static ax_status add_reduction(ax_hlo_scan *r, ax_hlo_draft *draft, ax_hlo_list *inits) {
  ax_hlo_attribute dimensions = {0};
  ax_hlo_slice applied = {0};
  AX_TRY(add_reduced(r, draft, inits));
  if (ax_hlo_take(r, "applies")) AX_TRY(ax_hlo_want_word(r, "an operation", &applied));
  if (applied.length > 0 && !may_apply(applied))
    return ax_hlo_refuse(r, applied.start, "%.*s is no operation of StableHLO on two operands in any order", (int)applied.length, applied.start);
  AX_TRY(ax_hlo_want(r, "across"));
  AX_TRY(ax_hlo_want(r, "dimensions"));
  AX_TRY(ax_hlo_want(r, "="));
  AX_TRY(want_integers(r, &dimensions));
  AX_TRY(ax_hlo_draft_attribute(draft, "dimensions", &dimensions));
  AX_TRY(want_rest(r, draft));
  return applied.length > 0 ? add_applied(r, draft, applied, inits->items) : add_reducer(r, draft, inits->count);
}

static ax_status read_reduce(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_list inits = {0};
  const ax_status status = add_reduction(r, draft, &inits);
  ax_free(inits.items);
  return status;
}

/* --- Modules and functions --- */

static ax_status read_module(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_attribute name = {0};
  if (ax_hlo_sees(r, "@")) {
    AX_TRY(ax_hlo_want_symbol(r, &name));
    AX_TRY(ax_hlo_draft_attribute(draft, "sym_name", &name));
  }
  if (ax_hlo_take(r, "attributes")) AX_TRY(ax_hlo_draft_attributes(r, draft));
  return ax_hlo_want_region(r, draft, NULL);
}

typedef struct signature { /* of a function, while it is read */
  ax_hlo_list names, locations, types, in_attributes, out_attributes;
  uint32_t in_count;
} signature;

static ax_status add_dictionary(ax_hlo_scan *r, ax_hlo_list *list) {
  ax_hlo_attribute dictionary = {.kind = AX_HLO_DICTIONARY};
  if (ax_hlo_sees(r, "{")) AX_TRY(ax_hlo_want_attribute(r, &dictionary));
  return ax_hlo_list_add(list, &dictionary, sizeof dictionary);
}

/* A result's type without attributes, which only those in brackets have. */
static ax_status add_result(ax_hlo_scan *r, signature *s) {
  const ax_hlo_attribute none = {.kind = AX_HLO_DICTIONARY};
  const ax_hlo_value_type *type;
  AX_TRY(ax_hlo_want_type(r, &type));
  AX_TRY(ax_hlo_list_add(&s->out_attributes, &none, sizeof none));
  return ax_hlo_list_add(&s->types, &type, sizeof type);
}

static ax_status add_declared(ax_hlo_scan *r, signature *s, bool named) {
  const ax_hlo_value_type *type;
  ax_hlo_slice name, location = {0};
  if (named && ax_hlo_sees(r, "%")) { /* a declaration has types alone */
    AX_TRY(ax_hlo_want_name(r, '%', &name));
    AX_TRY(ax_hlo_list_add(&s->names, &name, sizeof name));
    AX_TRY(ax_hlo_want(r, ":"));
  }
  AX_TRY(ax_hlo_want_type(r, &type));
  AX_TRY(ax_hlo_list_add(&s->types, &type, sizeof type));
  AX_TRY(add_dictionary(r, named ? &s->in_attributes : &s->out_attributes));
  AX_TRY(ax_hlo_take_location(r, &location));
  return named ? ax_hlo_list_add(&s->locations, &location, sizeof location) : AX_OK;
}

static ax_status add_list(ax_hlo_scan *r, signature *s, bool inputs) {
  AX_TRY(ax_hlo_want(r, "("));
  if (ax_hlo_take(r, ")")) return AX_OK;
  do AX_TRY(add_declared(r, s, inputs));
  while (ax_hlo_take(r, ","));
  return ax_hlo_want(r, ")");
}

/* What the text calls the function's arguments, in an attribute of our own. */
static ax_status add_argument_names(ax_hlo_scan *r, ax_hlo_draft *draft, const signature *s) {
  const ax_hlo_list *names = &s->names;
  ax_hlo_attribute array = {.kind = AX_HLO_ARRAY, .count = names->count};
  ax_hlo_attribute *items = ax_arena_alloc(&r->module->arena, (names->count + 1) * sizeof items[0]);
  if (items == NULL) return ax_out_of_memory(names->count * sizeof items[0]);
  for (uint32_t i = 0; i < names->count; i++)
    items[i] = (ax_hlo_attribute){.kind = AX_HLO_STRING,
                                  .name = ((const ax_hlo_slice *)s->locations.items)[i],
                                  .text = ((const ax_hlo_slice *)names->items)[i]};
  array.items = items;
  return ax_hlo_draft_attribute(draft, AX_HLO_ARGUMENT_NAMES, &array);
}

static ax_status add_parts(ax_hlo_scan *r, ax_hlo_draft *draft, const char *name, ax_hlo_list *list) {
  ax_hlo_attribute array = {.kind = AX_HLO_ARRAY, .count = list->count};
  ax_status status = AX_OK;
  array.items = ax_hlo_list_end(r, list, sizeof array.items[0], &status);
  return status == AX_OK ? ax_hlo_draft_attribute(draft, name, &array) : status;
}

static ax_status add_function(ax_hlo_scan *r, ax_hlo_draft *draft, signature *s) {
  ax_hlo_attribute name = {.kind = AX_HLO_STRING}, visibility = {.kind = AX_HLO_STRING}, symbol = {0};
  if (!ax_hlo_sees(r, "@")) {
    AX_TRY(ax_hlo_want_word(r, "the function's name", &visibility.text));
    AX_TRY(ax_hlo_draft_attribute(draft, "sym_visibility", &visibility));
  }
  AX_TRY(ax_hlo_want_symbol(r, &symbol));
  name.text = symbol.text;
  AX_TRY(ax_hlo_draft_attribute(draft, "sym_name", &name));
  AX_TRY(add_list(r, s, true));
  s->in_count = s->types.count;
  if (ax_hlo_take(r, "->")) AX_TRY(ax_hlo_sees(r, "(") ? add_list(r, s, false) : add_result(r, s));
  if (ax_hlo_take(r, "attributes")) AX_TRY(ax_hlo_draft_attributes(r, draft));
  AX_TRY(add_parts(r, draft, "arg_attrs", &s->in_attributes));
  AX_TRY(add_parts(r, draft, "res_attrs", &s->out_attributes));
  AX_TRY(add_argument_names(r, draft, s));
  const ax_hlo_arguments arguments = {s->names.items, s->types.items, s->in_count};
  ax_hlo_value_type type = {.kind = AX_HLO_FUNCTION, .in_count = s->in_count, .part_count = s->types.count};
  const bool declared = s->names.count < s->in_count || !ax_hlo_sees(r, "{");
  if (!declared) AX_TRY(ax_hlo_want_region(r, draft, &arguments));
  ax_status status = AX_OK;
  type.parts = ax_hlo_list_end(r, &s->types, sizeof type.parts[0], &status);
  AX_TRY(status);
  const ax_hlo_attribute whole = {.kind = AX_HLO_TYPE, .type = ax_arena_copy(&r->module->arena, &type, sizeof type)};
  return whole.type == NULL ? ax_out_of_memory(sizeof type) : ax_hlo_draft_attribute(draft, "function_type", &whole);
}

static ax_status read_function(ax_hlo_scan *r, ax_hlo_draft *draft) {
  signature s = {0};
  const ax_status status = add_function(r, draft, &s);
  ax_free(s.names.items);
  ax_free(s.locations.items);
  ax_free(s.types.items);
  ax_free(s.in_attributes.items);
  ax_free(s.out_attributes.items);
  return status;
}

/* --- The table --- */

static const form forms[] = {
    {"builtin.module", NULL, read_module},
    {"func.func", NULL, read_function},
    {"func.call", NULL, read_call},
    {"stablehlo.constant", NULL, read_constant},
    {"arith.constant", NULL, read_constant},
    {"stablehlo.compare", NULL, read_compare},
    {"stablehlo.slice", NULL, read_slice},
    {"stablehlo.dot", NULL, read_dot},
    {"stablehlo.dot_general", NULL, read_dot_general},
    {"stablehlo.convolution", NULL, read_convolution},
    {"stablehlo.dynamic_conv", NULL, read_convolution},
    {"stablehlo.custom_call", NULL, read_custom_call},
    {"stablehlo.while", NULL, read_while},
    {"stablehlo.reduce", NULL, read_reduce},
    {"stablehlo.transpose", "%, dims = {permutation:I}", NULL},
    {"stablehlo.broadcast_in_dim", "%, dims = {broadcast_dimensions:I}", NULL},
    {"stablehlo.dynamic_broadcast_in_dim", "%, %, dims = {broadcast_dimensions:I}", NULL},
    {"stablehlo.broadcast", "%, sizes = {broadcast_sizes:I}", NULL},
    {"stablehlo.iota", "dim = {iota_dimension:i}", NULL},
    {"stablehlo.dynamic_iota", "%, dim = {iota_dimension:i}", NULL},
    {"stablehlo.get_dimension_size", "%, dim = {dimension:i}", NULL},
    {"stablehlo.set_dimension_size", "%, %, dim = {dimension:i}", NULL},
    {"stablehlo.concatenate", "*, dim = {dimension:i}", NULL},
    {"stablehlo.pad", "%, %, low = {edge_padding_low:I}, high = {edge_padding_high:I}, interior = {interior_padding:I}", NULL},
    {"stablehlo.reverse", "%, dims = {dimensions:I}", NULL},
    {"stablehlo.dynamic_slice", "%, *, sizes = {slice_sizes:I}", NULL},
    {"stablehlo.get_tuple_element", "%[{index:i}]", NULL},
    {"stablehlo.reduce_precision", NULL, read_reduce_precision},
    {"stablehlo.cholesky", "%, lower = {lower:b}", NULL},
    {"stablehlo.fft", "%, type = {fft_type:w}, length = {fft_length:I}", NULL},
    {"stablehlo.rng", "%, %, %, distribution = {rng_distribution:w}", NULL},
    {"stablehlo.rng_bit_generator", "%, algorithm = {rng_algorithm:w}", NULL},
    {"stablehlo.einsum", "%, %, config = {einsum_config:s}", NULL},
    {"stablehlo.unary_einsum", "%, config = {einsum_config:s}", NULL},
    {"stablehlo.composite", "{name:s} *", NULL},
    {"chlo.top_k", "(%, k = {k:i})", NULL},
    {"chlo.constant", NULL, read_constant},
    {"chlo.scan", NULL, ax_hlo_read_scan},
    {"tensor.cast", NULL, ax_hlo_read_cast},
    {"sdy.mesh", "{sym_name:y} = {mesh:o}", NULL},
    {"sdy.sharding_constraint", "% {sharding:o}", NULL},
    {"sdy.reshard", "% {sharding:o}", NULL},
    {"sdy.all_gather", "{gathering_axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.all_slice", "{slicing_axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.all_to_all", "{params:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.collective_permute", "% out_sharding={out_sharding:o}", NULL},
    {"sdy.all_reduce", "{reduction_axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.reduce_scatter", "{reduce_scatter_axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.sharded_to_unreduced", "{axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.replicated_to_unreduced", "{axes:o} % out_sharding={out_sharding:o}", NULL},
    {"sdy.sharding_group", "% group_id={group_id:i}", NULL},
    {"sdy.propagation_barrier", "% allowed_direction={allowed_direction:w}", NULL},
    {"sdy.constant", NULL, read_constant},
    {"sdy.manual_computation", NULL, ax_hlo_read_manual},
    {"sdy.named_computation", NULL, ax_hlo_read_named},
    {"check.expect_eq", NULL, read_check},
    {"check.expect_eq_const", NULL, read_check},
    {"check.expect_almost_eq", NULL, read_check},
    {"check.expect_almost_eq_const", NULL, read_check},
    {"check.expect_close", NULL, read_check},
    {"check.expect_serialized_eq", NULL, read_check},
    {"interpreter.probe", NULL, read_check},
};

/* Operations of builtin and func may be written without their dialect. */
static ax_hlo_slice whole_name(ax_hlo_slice word) {
  static const char *const names[][2] = {
      {"module", "builtin.module"}, {"func", "func.func"}, {"call", "func.call"}, {"return", "func.return"}};
  for (size_t i = 0; i < AX_COUNT(names); i++)
    if (ax_hlo_slice_is(word, names[i][0])) return (ax_hlo_slice){names[i][1], strlen(names[i][1])};
  return word;
}

ax_status ax_hlo_want_pretty(ax_hlo_scan *r, ax_hlo_draft *draft) {
  ax_hlo_slice word;
  ax_hlo_skip(r);
  const char *at = r->cursor;
  AX_TRY(ax_hlo_want_word(r, "an operation", &word));
  draft->op.name = whole_name(word);
  for (size_t i = 0; i < AX_COUNT(forms); i++) {
    if (!ax_hlo_slice_is(draft->op.name, forms[i].name)) continue;
    return forms[i].read != NULL ? forms[i].read(r, draft) : want_pattern(r, forms[i].pattern, draft);
  }
  if (memchr(draft->op.name.start, '.', draft->op.name.length) == NULL)
    return ax_hlo_refuse(r, at, "there is no operation '%.*s'", (int)word.length, word.start);
  return want_pattern(r, "*", draft);
}
