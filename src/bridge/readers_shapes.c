/* Operations whose shapes, or other numbers, are operands: each is another operation that has these as attributes, or as its result's
   type, once the operands are known.

     dynamic_pad(x, value, low, high, interior)     pad(x, value) {edge_padding_low = .., edge_padding_high = .., ..}
     dynamic_iota(shape)                            iota : tensor<shape>

   And what asks for extents, or asserts something about them; and CHLO's operations that broadcast their operands first. */
#include "bridge/readers.h"

#include <string.h>

#include "axle/ops.h"
#include "bridge/import.h"
#include "ir/dtype.h"
#include "ir/number.h"
#include "ir/program.h"
#include "ops/sort.h"
#include "prim/bind.h"

enum { most_numbers = 2 * AX_MAX_RANK, most_attributes = 5 };

typedef struct static_form { /* an operation, and the one that has its last operands as attributes */
  const char *op, *as;
  const char *attributes[most_attributes]; /* of the last operands, in order */
  uint32_t count, result;                  /* no attributes: the last operand is the shape of this result */
} static_form;

static const static_form forms[] = {
    {"stablehlo.dynamic_reshape", "stablehlo.reshape", {0}, 1, 0},
    {"chlo.dynamic_reshape", "stablehlo.reshape", {0}, 1, 0},
    {"stablehlo.dynamic_iota", "stablehlo.iota", {0}, 1, 0},
    {"stablehlo.dynamic_broadcast_in_dim", "stablehlo.broadcast_in_dim", {0}, 1, 0},
    {"stablehlo.dynamic_gather", "stablehlo.gather", {"slice_sizes"}, 1, 0},
    {"stablehlo.dynamic_conv", "stablehlo.convolution", {"padding"}, 1, 0},
    {"stablehlo.dynamic_pad", "stablehlo.pad", {"edge_padding_low", "edge_padding_high", "interior_padding"}, 3, 0},
    {"stablehlo.real_dynamic_slice", "stablehlo.slice", {"start_indices", "limit_indices", "strides"}, 3, 0}};

/* The same of custom calls, by their targets. */
static const static_form calls[] = {
    {"stablehlo.dynamic_reduce_window",
     "stablehlo.reduce_window",
     {"window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding"},
     5,
     0},
    {"stablehlo.dynamic_rng_bit_generator", "stablehlo.rng_bit_generator", {0}, 1, 1},
    {"stablehlo.dynamic_top_k", "chlo.top_k", {"k"}, 1, 0}};

static const static_form *find_form(const static_form *list, size_t count, ax_hlo_slice name) {
  for (size_t i = 0; i < count; i++)
    if (ax_hlo_slice_is(name, list[i].op)) return &list[i];
  return NULL;
}

/* --- Numbers as attributes --- */

typedef struct number_list { /* what an attribute points to */
  int64_t numbers[most_numbers], dims[2];
  ax_hlo_value_type type;
} number_list;

/* An integer, a list, or a list of pairs. */
static ax_status make_attribute(const ax_hlo_read_args *args, uint32_t operand, const char *name, number_list *list, ax_hlo_attribute *out) {
  uint32_t count;
  AX_TRY(ax_hlo_known_integers(args, operand, most_numbers, list->numbers, &count));
  const uint32_t rank = ax_hlo_known(args, operand)->type.rank;
  *out = (ax_hlo_attribute){.name = {name, strlen(name)}, .count = count, .numbers = list->numbers};
  out->kind = rank == 0 ? AX_HLO_INTEGER : rank == 1 ? AX_HLO_NUMBERS : AX_HLO_ELEMENTS;
  out->integer = list->numbers[0];
  if (rank < 2) return AX_OK;
  memcpy(list->dims, ax_hlo_known(args, operand)->type.dims, sizeof list->dims);
  list->type = (ax_hlo_value_type){
      .kind = AX_HLO_TENSOR, .element_known = true, .ranked = true, .dtype = AX_S64, .rank = rank, .dims = list->dims};
  out->type = &list->type, out->data = list->numbers;
  return AX_OK;
}

/* The operation's attributes, and the numbers before them: those that it has of the same name are not meant. */
static ax_status make_attributes(const ax_hlo_read_args *args, const static_form *form, ax_hlo_operation *op) {
  const uint32_t first = args->op->operand_count - form->count, old = args->op->attribute_count;
  number_list *lists = ax_trace_alloc(form->count * sizeof lists[0]);
  ax_hlo_attribute *attributes = ax_trace_alloc((form->count + old) * sizeof attributes[0]);
  if (lists == NULL || attributes == NULL) return AX_OK; /* the trace has failed */
  for (uint32_t i = 0; i < form->count; i++)
    AX_TRY(make_attribute(args, first + i, form->attributes[i], &lists[i], &attributes[i]));
  if (old > 0) memcpy(attributes + form->count, args->op->attributes, old * sizeof attributes[0]);
  op->attributes = attributes;
  op->attribute_count = form->count + old;
  return AX_OK;
}

/* --- Shapes of results --- */

static ax_status take_shape(const ax_hlo_read_args *args, uint32_t operand, const ax_type *said, ax_type *out) {
  ax_dims dims;
  AX_TRY(ax_hlo_known_dims(args, operand, &dims));
  *out = ax_array_type(said->dtype, AX_LIST(dims.count, dims.v));
  for (uint32_t d = 0; d < dims.count; d++)
    if (dims.v[d] < 0) return ax_error(AX_INVALID_ARGUMENT, "operand %u says an extent of %lld", operand, (long long)dims.v[d]);
  return AX_OK;
}

static bool is_open(const ax_type *type) {
  for (uint32_t d = 0; d < type->rank; d++)
    if (type->dims[d] == AX_HLO_DYNAMIC) return true;
  return false;
}

ax_status ax_hlo_want_shape(const ax_hlo_read_args *args, uint32_t result) {
  if (!is_open(&args->out_types[result])) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "the module leaves the shape of result %u open, and nothing says it", result);
}

/* The results' types, of which one is said by the last operand; where it is not known the module may say it. */
static ax_status make_types(const ax_hlo_read_args *args, const static_form *form, ax_type *types) {
  const uint32_t last = args->op->operand_count - 1;
  memcpy(types, args->out_types, args->op->result_count * sizeof types[0]);
  if (ax_hlo_known(args, last) == NULL && !is_open(&types[form->result])) return AX_OK;
  return take_shape(args, last, &args->out_types[form->result], &types[form->result]);
}

/* --- As the other operation --- */

static ax_status read_as(const ax_hlo_read_args *args, const static_form *form, ax_hlo_operation *op) {
  const ax_reader_entry *entry = ax_reader_slot(args->import, form->as, strlen(form->as));
  ax_type *types = ax_trace_alloc((args->op->result_count + 1) * sizeof types[0]);
  if (types == NULL) return AX_OK; /* the trace has failed */
  if (op->operand_count < form->count || op->result_count <= form->result)
    return ax_error(AX_INVALID_ARGUMENT, "it has %u operands and %u results: too few", op->operand_count, op->result_count);
  if (form->attributes[0] != NULL)
    AX_TRY(make_attributes(args, form, op));
  else
    AX_TRY(make_types(args, form, types));
  op->name = (ax_hlo_slice){form->as, strlen(form->as)};
  op->operand_count -= form->count;
  ax_hlo_read_args as = *args;
  as.op = op, as.prim = entry->prim;
  if (form->attributes[0] == NULL) as.out_types = types;
  return ax_failed() ? AX_OK : entry->read(&as);
}

static ax_status form_read(const ax_hlo_read_args *args) {
  ax_hlo_operation op = *args->op;
  return read_as(args, find_form(forms, AX_COUNT(forms), op.name), &op);
}

/* --- A slice that begins where operands say, with extents that are known: its limits are start + sizes --- */

static bool same_attribute(const ax_hlo_attribute *a, const ax_hlo_attribute *b) {
  if (a->kind != b->kind || a->integer != b->integer || a->count != b->count || a->items != NULL || b->items != NULL) return false;
  if (!ax_hlo_slice_same(a->name, b->name) || !ax_hlo_slice_same(a->text, b->text) || a->data != b->data) return false;
  return a->count == 0 || (a->numbers != NULL && memcmp(a->numbers, b->numbers, a->count * sizeof a->numbers[0]) == 0);
}

/* Whether the two values are computed alike, from the same values; *steps bounds how many operations are looked at. */
static bool computed_alike(const ax_hlo_module *module, uint32_t a, uint32_t b, uint32_t *steps) {
  const ax_hlo_operation *x = module->makers[a], *y = module->makers[b];
  if (a == b) return true;
  if (x == NULL || y == NULL || *steps == 0 || !ax_hlo_slice_same(x->name, y->name)) return false;
  --*steps;
  bool same = x->operand_count == y->operand_count && x->attribute_count == y->attribute_count && x->region_count + y->region_count == 0 &&
              a - x->result == b - y->result && module->values[a] == module->values[b];
  for (uint32_t i = 0; same && i < x->attribute_count; i++) same = same_attribute(&x->attributes[i], &y->attributes[i]);
  for (uint32_t i = 0; same && i < x->operand_count; i++) same = computed_alike(module, x->operands[i], y->operands[i], steps);
  return same;
}

/* The operand of the limits' addition besides the start; NULL: they are not computed so, or it is not known. */
static const ax_literal *sizes_of(const ax_hlo_read_args *args) {
  const ax_hlo_module *module = args->import->module;
  const uint32_t start = args->op->operands[1];
  const ax_hlo_operation *limit = module->makers[args->op->operands[2]];
  if (args->import->known == NULL || limit == NULL || !ax_hlo_slice_is(limit->name, "stablehlo.add") || limit->operand_count != 2)
    return NULL;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t steps = 256;
    const ax_literal *sizes = args->import->known[limit->operands[1 - i]];
    if (sizes != NULL && computed_alike(module, start, limit->operands[i], &steps)) return sizes;
  }
  return NULL;
}

static ax_status moving_slice(const ax_hlo_read_args *args, const ax_literal *sizes) {
  const ax_type x = ax_typeof(args->in[0]), start = ax_typeof(args->in[1]);
  ax_value starts[AX_MAX_RANK];
  int64_t extents[AX_MAX_RANK], strides[AX_MAX_RANK];
  uint32_t count;
  AX_TRY(ax_hlo_known_integers(args, 3, AX_MAX_RANK, strides, &count));
  if (ax_failed()) return AX_OK;
  if (start.rank != 1 || start.dims[0] != x.rank || count != x.rank || sizes->type.rank != 1 || sizes->type.dims[0] != x.rank)
    return ax_error(AX_INVALID_ARGUMENT, "starts, limits and strides must have an entry for each of %u dimensions", x.rank);
  for (uint32_t d = 0; d < x.rank; d++) {
    const int64_t first[] = {d}, behind[] = {(int64_t)d + 1};
    if (strides[d] != 1) return ax_error(AX_ABSENT, "a slice whose start is not known must have strides of 1");
    starts[d] = (ax_reshape)((ax_slice)(args->in[1], AX_LIST(1, first), AX_LIST(1, behind), AX_LIST(0, NULL)), AX_LIST(0, NULL));
    extents[d] = ax_number_load(sizes->type.dtype, sizes->data, d).i;
  }
  args->out[0] = (ax_dynamic_slice)(args->in[0], AX_LIST(x.rank, starts), AX_LIST(x.rank, extents));
  return AX_OK;
}

static ax_status real_dynamic_slice_read(const ax_hlo_read_args *args) {
  const bool whole = args->op->operand_count == 4 && args->op->result_count == 1;
  const ax_literal *sizes = whole && ax_hlo_known(args, 1) == NULL ? sizes_of(args) : NULL;
  return sizes != NULL ? moving_slice(args, sizes) : form_read(args);
}

/* The function that a custom call names, if it names one, has the region. */
static ax_status take_computation(const ax_hlo_read_args *args, ax_hlo_operation *op) {
  const ax_hlo_attribute *computations = ax_hlo_find(op, "called_computations");
  if (computations == NULL || computations->kind != AX_HLO_ARRAY || computations->count != 1) return AX_OK;
  const ax_hlo_operation *function = ax_hlo_function(args, computations->items[0].text);
  if (function == NULL) return ax_error(AX_INVALID_ARGUMENT, "called_computations names no function");
  op->regions = function->regions, op->region_count = function->region_count;
  return AX_OK;
}

static ax_status call_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *target = ax_hlo_find(args->op, "call_target_name");
  ax_hlo_operation op = *args->op;
  AX_TRY(take_computation(args, &op));
  return read_as(args, find_form(calls, AX_COUNT(calls), target->text), &op);
}

/* --- The approximate top k, exactly: operands, starts, and perhaps k; sorted by the computation, and the first of them --- */

static ax_status want_reduced(const ax_hlo_read_args *args, const ax_type *x, int64_t *dimension) {
  const ax_hlo_attribute *of_jax = ax_hlo_find(args->op, "mhlo.backend_config");
  const ax_hlo_attribute *config = of_jax != NULL ? of_jax : ax_hlo_find(args->op, "backend_config");
  const ax_hlo_attribute *found = config != NULL ? ax_hlo_item(config, "reduction_dim") : NULL;
  if (found == NULL || found->kind != AX_HLO_INTEGER || found->integer < 0 || found->integer >= x->rank)
    return ax_error(AX_INVALID_ARGUMENT, "its configuration must say reduction_dim, a dimension of %s", ax_type_string(x, NULL));
  *dimension = found->integer;
  return AX_OK;
}

static ax_status approx_top_k_read(const ax_hlo_read_args *args) {
  const uint32_t count = args->op->result_count;
  ax_hlo_operation op = *args->op;
  ax_hlo_read_args sort = *args;
  int64_t dimension = 0;
  if (count == 0 || op.operand_count < 2 * count) return ax_error(AX_INVALID_ARGUMENT, "it takes operands and as many starts");
  const ax_type x = ax_typeof(args->in[0]);
  AX_TRY(want_reduced(args, &x, &dimension));
  AX_TRY(take_computation(args, &op));
  for (uint32_t k = 0; k < count; k++) AX_TRY(ax_hlo_want_shape(args, k));
  const ax_type *first = &args->out_types[0];
  if (first->rank != x.rank || first->dims[dimension] > x.dims[dimension])
    return ax_error(AX_INVALID_ARGUMENT, "of %s no %s can be taken", ax_type_string(&x, NULL), ax_type_string(first, NULL));
  op.operand_count = count;
  sort.op = &op;
  return ax_hlo_read_sort(&sort, dimension, first->dims[dimension]);
}

/* --- Custom calls whose last operands are the shapes of their results --- */

ax_status ax_hlo_take_shapes(const ax_hlo_read_args *args, ax_hlo_operation *op, ax_type *types) {
  ax_dims at;
  memcpy(types, args->out_types, op->result_count * sizeof types[0]);
  if (ax_hlo_find(op, "indices_of_shape_operands") == NULL) return AX_OK;
  AX_TRY(ax_hlo_integers(op, "indices_of_shape_operands", &at));
  if (at.count != op->result_count || at.count > op->operand_count)
    return ax_error(AX_INVALID_ARGUMENT, "indices_of_shape_operands has %u entries, and there are %u results", at.count, op->result_count);
  for (uint32_t k = 0; k < at.count; k++) {
    if (at.v[k] != (int64_t)(op->operand_count - at.count + k))
      return ax_error(AX_INVALID_ARGUMENT, "indices_of_shape_operands must be the last operands, in order");
    AX_TRY(take_shape(args, (uint32_t)at.v[k], &args->out_types[k], &types[k]));
  }
  op->operand_count -= at.count;
  return AX_OK;
}

/* --- Extents --- */

static ax_status want_dimension(const ax_hlo_read_args *args, const ax_type *type, int64_t *dimension) {
  AX_TRY(ax_hlo_integer(args->op, "dimension", dimension));
  if (*dimension >= 0 && *dimension < type->rank) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "dimension %lld is outside rank %u", (long long)*dimension, type->rank);
}

static ax_status get_dimension_size_read(const ax_hlo_read_args *args) {
  const ax_type scalar = ax_array_type(AX_S32, AX_DIMS());
  int64_t dimension;
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes 1 operands, and here are %u", args->op->operand_count);
  const ax_type type = ax_typeof(args->in[0]);
  AX_TRY(want_dimension(args, &type, &dimension));
  if (type.dims[dimension] > INT32_MAX)
    return ax_error(AX_INVALID_ARGUMENT, "the extent, %lld, is more than 32 bits hold", (long long)type.dims[dimension]);
  const int32_t extent = (int32_t)type.dims[dimension];
  args->out[0] = (ax_full)(AX_S32, AX_LIST(0, NULL), extent);
  return ax_hlo_know(args, 0, &scalar, &extent);
}

/* Of an array whose elements are all there only the extent that it has can be set. */
static ax_status set_dimension_size_read(const ax_hlo_read_args *args) {
  int64_t dimension, size = 0;
  uint32_t count;
  if (args->op->operand_count != 2) return ax_error(AX_INVALID_ARGUMENT, "it takes 2 operands, and here are %u", args->op->operand_count);
  const ax_type type = ax_typeof(args->in[0]);
  AX_TRY(want_dimension(args, &type, &dimension));
  AX_TRY(ax_hlo_known_integers(args, 1, 1, &size, &count));
  if (count != 1 || size != type.dims[dimension])
    return ax_error(AX_ABSENT, "sets an extent of %lld to %lld: extents of which only a bound is known are not supported",
                    (long long)type.dims[dimension], (long long)size);
  args->out[0] = args->in[0];
  return AX_OK;
}

/* --- Assertions --- */

/* The message, in which {0} is the first number behind the predicate. */
static void write_message(const ax_hlo_read_args *args, ax_hlo_slice message, ax_text *text) {
  for (size_t i = 0; i < message.length; i++) {
    const char *at = message.start + i;
    const bool mark = at[0] == '{' && i + 2 < message.length && at[1] >= '0' && at[1] <= '9' && at[2] == '}';
    const uint32_t operand = mark ? 1 + (uint32_t)(at[1] - '0') : 0;
    int64_t number;
    uint32_t count;
    if (mark && operand < args->op->operand_count && ax_hlo_known_integers(args, operand, 1, &number, &count) == AX_OK && count == 1) {
      ax_text_add(text, "%lld", (long long)number);
      i += 2;
    } else {
      ax_text_add_bytes(text, at, 1);
    }
  }
}

static ax_status shape_assertion_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *message = ax_hlo_find(args->op, "error_message");
  ax_text text = {0};
  int64_t holds = 1;
  uint32_t count;
  if (args->op->operand_count == 0) return ax_error(AX_INVALID_ARGUMENT, "it has no operand");
  AX_TRY(ax_hlo_known_integers(args, 0, 1, &holds, &count));
  if (holds != 0 || count != 1) return AX_OK;
  if (message != NULL && message->kind == AX_HLO_STRING) write_message(args, message->text, &text);
  const ax_status status = ax_error(AX_INVALID_ARGUMENT, "%s", text.data != NULL ? text.data : "the assertion does not hold");
  ax_text_deinit(&text);
  return status;
}

/* --- The lists --- */

uint32_t ax_hlo_shape_operands(ax_hlo_slice op) {
  const static_form *form = find_form(forms, AX_COUNT(forms), op);
  return form != NULL ? form->count : ax_hlo_slice_is(op, "stablehlo.set_dimension_size");
}

const ax_hlo_reader ax_hlo_shape_readers[] = {{"stablehlo.dynamic_reshape", form_read},
                                              {"chlo.dynamic_reshape", form_read},
                                              {"stablehlo.dynamic_iota", form_read},
                                              {"stablehlo.dynamic_broadcast_in_dim", form_read},
                                              {"stablehlo.dynamic_gather", form_read},
                                              {"stablehlo.dynamic_conv", form_read},
                                              {"stablehlo.dynamic_pad", form_read},
                                              {"stablehlo.real_dynamic_slice", real_dynamic_slice_read},
                                              {"stablehlo.get_dimension_size", get_dimension_size_read},
                                              {"stablehlo.set_dimension_size", set_dimension_size_read},
                                              {0}};

const ax_hlo_reader ax_hlo_shape_targets[] = {{"stablehlo.dynamic_reduce_window", call_read},
                                              {"stablehlo.dynamic_rng_bit_generator", call_read},
                                              {"stablehlo.dynamic_top_k", call_read},
                                              {"stablehlo.dynamic_approx_top_k", approx_top_k_read},
                                              {"ApproxTopK", approx_top_k_read},
                                              {"shape_assertion", shape_assertion_read},
                                              {0}};
