/* ragged_all_to_all in StableHLO: a custom call that XLA knows, for one exchange between devices. The other forms of the equation
   are written as programs of that call and of ordinary operations:

     batch, local   elements of a batch and members of a device are stored behind one another in the device's rows, and their
                    slices in its
                    tables
     back           each slice comes back to an area of its own, at its place in the operand; the areas are added */
#include "collectives/ragged.h"
#include "hlo/hlo.h"
#include "prim/hlo_groups.h"

#include <string.h>

typedef struct form {
  const ax_ragged_params *params;
  uint32_t outer;                         /* dimensions before the rows */
  int64_t batch, local, from_rows, to_rows, slices; /* slices: K */
} form;

/* x plus step times the row-major index along its dimensions `where`. dims: its shape. */
static ax_value add_index(ax_value x, uint32_t rank, const int64_t *dims, uint32_t count, const int64_t *where, int64_t step) {
  int64_t sizes[AX_MAX_RANK], all = 1;
  for (uint32_t i = 0; i < count; i++) all *= sizes[i] = dims[where[i]];
  ax_value index = ax_mul(ax_iota(AX_S64, AX_LIST(1, &all), 0), ax_full_i64(AX_S64, AX_LIST(1, &all), step));
  return ax_add(x, ax_broadcast_in_dim(ax_reshape(index, AX_LIST(count, sizes)), AX_LIST(rank, dims), where));
}

/* [B.., L.., K] -> [devices, B, L of the sender, L of the receiver, slices]. receives: it speaks of what comes, not of what
   goes. */
static ax_value by_device(const form *f, ax_value table, bool receives) {
  const ax_dims *at = &f->params->local;
  ax_type type = ax_typeof(table);
  int64_t dims[AX_MAX_RANK], order[AX_MAX_RANK], members = 1, devices = 1, behind = f->slices;
  uint32_t rank = 2, n = 0;
  if (ax_failed()) return ax_poison;
  const int64_t *local = type.dims + f->params->batch;
  dims[0] = f->batch, dims[1] = f->local;
  for (uint32_t k = 0; k < at->count; k++) members *= local[k];
  devices = ax_axes_members(&f->params->axes);
  behind /= members * devices; /* slices for each member */
  for (uint32_t k = 0; k < at->count; k++) {
    dims[rank++] = (k > 0 ? at->v[k - 1] : devices) / at->v[k];
    dims[rank++] = local[k];
  }
  dims[rank++] = at->count > 0 ? at->v[at->count - 1] : devices;
  dims[rank++] = behind;
  for (uint32_t d = 2; d + 1 < rank; d += 2) order[n++] = d; /* devices' digits */
  order[n++] = 0;
  if (!receives) order[n++] = 1;
  for (uint32_t d = 3; d + 1 < rank; d += 2) order[n++] = d; /* local digits */
  if (receives) order[n++] = 1;
  order[n++] = rank - 1;
  return ax_reshape(ax_transpose(ax_reshape(table, AX_LIST(rank, dims)), order),
                    AX_DIMS(devices, f->batch, f->local, f->local, behind));
}

/* The tables of rows that lie one behind the other: [K'] each, in s64. */
static void merge_tables(const form *f, const ax_value *in, ax_value *out) {
  for (uint32_t k = AX_RAGGED_INPUT_OFFSETS; k <= AX_RAGGED_RECV_SIZES; k++) {
    ax_value table = by_device(f, ax_convert_element_type(in[k], AX_S64), k == AX_RAGGED_RECV_SIZES);
    ax_type type = ax_typeof(table);
    int64_t all = ax_type_elems(&type);
    if (ax_failed()) return;
    if (k == AX_RAGGED_INPUT_OFFSETS) table = add_index(table, 5, type.dims, 2, (const int64_t[]){1, 2}, f->from_rows);
    if (k == AX_RAGGED_OUTPUT_OFFSETS) table = add_index(table, 5, type.dims, 2, (const int64_t[]){1, 3}, f->to_rows);
    out[k] = ax_reshape(table, AX_LIST(1, &all));
  }
}

/* [B.., L.., rows, A..] -> [all rows, A..] */
static ax_value merge_rows(const form *f, ax_value x) {
  ax_type type = ax_typeof(x);
  if (ax_failed()) return ax_poison;
  type.dims[f->outer] *= f->batch * f->local;
  return ax_reshape(x, AX_LIST(type.rank - f->outer, type.dims + f->outer));
}

static ax_value exchange(const ax_axes *axes, ax_value table) {
  ax_text text = {0};
  ax_text_add(&text, "%s", ax_axes_listed(axes).text);
  ax_groups_text(&text, &axes->groups);
  if (text.failed && !ax_failed()) ax_fail(ax_out_of_memory(0));
  ax_value exchanged = axes->count == 0 || ax_failed() ? table : ax_all_to_all(table, text.data, 0, 0, true);
  ax_text_deinit(&text);
  return exchanged;
}

/* Slices of rows, from output to operand. */
static ax_value go_back(const form *f, const ax_ragged_params *plain, const ax_value *in) {
  const ax_axes *axes = &plain->axes;
  ax_type slices = ax_typeof(in[AX_RAGGED_SEND_SIZES]), rows = ax_typeof(in[AX_RAGGED_OUTPUT]);
  if (ax_failed()) return ax_poison;
  int64_t count = slices.dims[0], area = f->batch * f->local * f->from_rows;
  ax_type areas = rows;
  areas.dims[0] = count * area;
  ax_value turned[6] = {in[AX_RAGGED_OPERAND], ax_zeros_of(&areas)};
  turned[AX_RAGGED_INPUT_OFFSETS] = exchange(axes, in[AX_RAGGED_OUTPUT_OFFSETS]);
  turned[AX_RAGGED_SEND_SIZES] = in[AX_RAGGED_RECV_SIZES];
  turned[AX_RAGGED_OUTPUT_OFFSETS] =
      exchange(axes, add_index(in[AX_RAGGED_INPUT_OFFSETS], 1, &count, 1, (const int64_t[]){0}, area));
  turned[AX_RAGGED_RECV_SIZES] = in[AX_RAGGED_SEND_SIZES];
  ax_value came = ax_split_dim(ax_ragged_bind(plain, turned), 0, count);
  return ax_add(in[AX_RAGGED_OUTPUT], ax_reduce_sum(came, AX_DIMS(0), false));
}

static void written_out(const ax_value *in, ax_value *out, void *context) {
  const form *f = context;
  const ax_ragged_params plain = {.axes = f->params->axes};
  ax_type type = ax_typeof(in[AX_RAGGED_OUTPUT]);
  ax_value merged[6];
  merge_tables(f, in, merged);
  merged[AX_RAGGED_OPERAND] = merge_rows(f, in[AX_RAGGED_OPERAND]);
  merged[AX_RAGGED_OUTPUT] = merge_rows(f, in[AX_RAGGED_OUTPUT]);
  if (ax_failed()) return;
  ax_value made = f->params->back ? go_back(f, &plain, merged) : ax_ragged_bind(&plain, merged);
  out[0] = ax_reshape(made, AX_LIST(type.rank, type.dims));
}

static ax_status call(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_ragged_params *params = eqn->params;
  ax_hlo_attributes attributes = {.hlo = hlo}, config = {.hlo = hlo};
  ax_hlo_add_replica_groups(&config, &params->axes, &hlo->axes);
  ax_hlo_add_integer(&config, "channel_id", ++hlo->channel);
  ax_hlo_add_string(&attributes, "call_target_name", "ragged_all_to_all");
  ax_hlo_add_short(&attributes, "api_version", 4, "i32");
  ax_hlo_add_group(&attributes, "backend_config", "", &config);
  return ax_hlo_simple(hlo, eqn, "stablehlo.custom_call", in, &attributes, out);
}

static form form_of(const ax_ragged_params *params, const ax_type *types) {
  const ax_type *operand = &types[params->back ? AX_RAGGED_OUTPUT : AX_RAGGED_OPERAND],
                *output = &types[params->back ? AX_RAGGED_OPERAND : AX_RAGGED_OUTPUT];
  const uint32_t outer = (uint32_t)params->batch + params->local.count;
  return (form){.params = params, .outer = outer, .batch = ax_dims_elems((uint32_t)params->batch, operand->dims),
                .local = ax_dims_elems(params->local.count, operand->dims + params->batch), .from_rows = operand->dims[outer],
                .to_rows = output->dims[outer], .slices = types[AX_RAGGED_INPUT_OFFSETS].dims[outer]};
}

ax_status ax_ragged_write_out(const ax_mesh *axes, const ax_ragged_params *params, const ax_type *types, ax_program **out) {
  form f = form_of(params, types);
  return ax_trace_on(axes, AX_CLOSURE(written_out, 6, 1, &f), types, out);
}

void ax_ragged_written_out(const ax_ragged_params *params, const ax_value *in, ax_value *out) {
  ax_type types[6];
  for (uint32_t k = 0; k < AX_COUNT(types); k++) types[k] = ax_typeof(in[k]);
  if (ax_failed()) return;
  form f = form_of(params, types);
  written_out(in, out, &f);
}

ax_status ax_ragged_hlo(ax_hlo *hlo, const ax_eqn *eqn, const uint32_t *in, uint32_t *out) {
  const ax_ragged_params *params = eqn->params;
  ax_type types[6];
  ax_program *program;
  if (params->batch == 0 && params->local.count == 0 && !params->back) return call(hlo, eqn, in, out);
  for (uint32_t k = 0; k < AX_COUNT(types); k++) types[k] = hlo->program->types[eqn->in[k]];
  AX_TRY(ax_ragged_write_out(&hlo->axes, params, types, &program));
  ax_status status = hlo->inline_program(hlo, program, in, out);
  ax_program_release(program);
  return status;
}

/* --- Reading --- */

ax_status ax_ragged_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *config = ax_hlo_find(args->op, "backend_config");
  ax_hlo_operation call = *args->op;
  ax_hlo_read_args inner = *args;
  const char *names;
  if (args->op->operand_count != 6 || args->op->result_count != 1)
    return ax_error(AX_INVALID_ARGUMENT, "it takes six operands and gives one result");
  if (config == NULL || config->kind != AX_HLO_DICTIONARY)
    return ax_error(AX_INVALID_ARGUMENT, "its groups must stand in backend_config = {replica_groups = ..}");
  call.attributes = config->items, call.attribute_count = config->count;
  inner.op = &call;
  AX_TRY(ax_hlo_read_groups(&inner, AX_HLO_BY_CHANNEL, &names, NULL));
  const ax_value *in = args->in;
  args->out[0] = ax_ragged_all_to_all(in[AX_RAGGED_OPERAND], in[AX_RAGGED_OUTPUT], in[AX_RAGGED_INPUT_OFFSETS], in[AX_RAGGED_SEND_SIZES],
                                      in[AX_RAGGED_OUTPUT_OFFSETS], in[AX_RAGGED_RECV_SIZES], names);
  return AX_OK;
}
