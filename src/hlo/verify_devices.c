#include "hlo/verify_rules.h"

#include <inttypes.h>
#include <string.h>

#include "ir/dtype.h"

/* --- Groups of devices --- */

/* A mesh of the module, which groups by axes name. */
static ax_status check_mesh(const ax_verified *v, const ax_hlo_attribute *groups) {
  const ax_hlo_attribute *mesh = groups->kind == AX_HLO_DICTIONARY ? ax_hlo_item(groups, "mesh") : NULL;
  if (mesh == NULL || mesh->kind != AX_HLO_SYMBOL) return AX_OK;
  if (ax_hlo_symbol(v, mesh->text) != NULL) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "replica_groups: there is no mesh @%.*s", ax_hlo_length(mesh->text), mesh->text.start);
}

enum { most_ids = 1 << 20 };

/* Numbers of devices, each once and from 0 on; -1 behind the members of a group that has fewer. */
static ax_status check_ids(const ax_hlo_attribute *groups, int64_t count, bool all) {
  int64_t largest = -1, members = 0;
  char *seen = ax_calloc(1, (size_t)count + 1);
  if (seen == NULL) return ax_out_of_memory((size_t)count);
  ax_status status = AX_OK;
  for (int64_t i = 0; status == AX_OK && i < count; i++) {
    const int64_t id = ax_hlo_table_at(groups, i);
    if (id == -1) continue;
    members++;
    if (id < 0 || (all && id >= count))
      status = ax_error(AX_INVALID_ARGUMENT, "replica_groups has %" PRId64 ", and must have each number from 0 on", id);
    else if (id >= count)
      continue; /* numbers that are left out are found below */
    else if (seen[id])
      status = ax_error(AX_INVALID_ARGUMENT, "replica_groups has %" PRId64 " twice", id);
    else
      seen[id] = 1, largest = id > largest ? id : largest;
  }
  for (int64_t id = 0; status == AX_OK && all && id <= largest; id++)
    if (!seen[id])
      status = ax_error(AX_INVALID_ARGUMENT, "replica_groups has %" PRId64 " numbers, but %" PRId64 " is missing", members, id);
  ax_free(seen);
  return status;
}

/* What an operation wants of its groups, as bits. */
enum { UNIFORM = 1, MAY_BE_NONE = 2, SOME = 4 }; /* all as long; none are one of all devices; devices may be in none */

/* *size: members of a group, 0 if that is not known. */
static ax_status check_groups(const ax_verified *v, uint32_t wanted, int64_t *size) {
  const ax_hlo_attribute *groups = ax_hlo_find(v->op, "replica_groups");
  int64_t rows, columns;
  *size = 0;
  if (groups == NULL) return ax_error(AX_INVALID_ARGUMENT, "replica_groups are missing");
  if (groups->kind != AX_HLO_ELEMENTS) return check_mesh(v, groups);
  if (!ax_hlo_table(groups, &rows, &columns)) return ax_error(AX_INVALID_ARGUMENT, "replica_groups must be a list of lists of i64");
  if (rows * columns == 0)
    return (wanted & MAY_BE_NONE) != 0 ? AX_OK : ax_error(AX_INVALID_ARGUMENT, "replica_groups must not be empty");
  if (rows > most_ids / columns) return AX_OK;
  for (int64_t i = 0; (wanted & UNIFORM) != 0 && i < rows * columns; i++)
    if (ax_hlo_table_at(groups, i) == -1) return ax_error(AX_INVALID_ARGUMENT, "replica_groups has -1: all groups must be as long");
  *size = columns;
  return check_ids(groups, rows * columns, (wanted & SOME) == 0);
}

/* use_global_device_ids goes with a channel. */
static ax_status check_channel(const ax_verified *v) {
  const ax_hlo_attribute *channel = ax_hlo_find(v->op, "channel_handle"), *global = ax_hlo_find(v->op, "use_global_device_ids");
  const ax_hlo_attribute *handle = channel != NULL && channel->kind == AX_HLO_DICTIONARY ? ax_hlo_item(channel, "handle") : NULL;
  const bool wanted = global != NULL && (global->kind != AX_HLO_BOOL || global->integer != 0);
  const int64_t id = handle != NULL ? handle->integer : 0;
  if (wanted && id <= 0)
    return ax_error(AX_INVALID_ARGUMENT, "use_global_device_ids needs a channel, and its number is %" PRId64, id);
  return AX_OK;
}

/* --- Collectives --- */

ax_status ax_hlo_check_all_gather(const ax_verified *v) {
  int64_t size, along;
  AX_TRY(check_groups(v, UNIFORM | MAY_BE_NONE, &size));
  AX_TRY(check_channel(v));
  AX_TRY(ax_hlo_integer(v->op, "all_gather_dim", &along));
  for (uint32_t i = 0; i < v->op->operand_count; i++) {
    const ax_hlo_value_type *in = ax_verified_in(v, i), *out = ax_verified_out(v, i);
    if (!ax_hlo_ranked(in)) continue;
    if (along >= in->rank)
      return ax_error(AX_INVALID_ARGUMENT, "all_gather_dim is %" PRId64 ", and operand %u has the rank %u", along, i, in->rank);
    if (in->dims[along] == 0) return ax_error(AX_INVALID_ARGUMENT, "operand %u must not be empty along all_gather_dim", i);
    if (!ax_hlo_ranked(out)) continue;
    if (out->rank != in->rank)
      return ax_error(AX_INVALID_ARGUMENT, "result %u has the rank %u, and operand %u %u", i, out->rank, i, in->rank);
    const int64_t to = out->dims[along], from = in->dims[along];
    ax_dims dims = ax_hlo_dims_of(in);
    dims.v[along] = AX_HLO_DYNAMIC;
    AX_TRY(ax_hlo_check_shape(v, i, &dims));
    if (to != AX_HLO_DYNAMIC && from != AX_HLO_DYNAMIC && to % from != 0)
      return ax_error(AX_INVALID_ARGUMENT,
                      "result %u has the extent %" PRId64 " along all_gather_dim, and must have that of the operand, %" PRId64
                      ", or a multiple of it",
                      i, to, from);
  }
  return AX_OK;
}

static ax_status check_reducers(const ax_verified *v, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const ax_hlo_value_type *in = ax_verified_in(v, i);
    AX_TRY(ax_hlo_check_reducer(v, 0, 1, &in, NULL, NULL));
    const ax_hlo_block *block = &v->op->regions[0].blocks[0];
    const ax_hlo_value_type *made = v->module->values[block->operations[block->operation_count - 1]->operands[0]];
    if (!ax_hlo_elements_fit(made, ax_verified_out(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "result %u must have the elements that the region makes, %.*s", i,
                      ax_hlo_length(made->text), made->text.start);
  }
  return AX_OK;
}

static ax_status check_same_shapes(const ax_verified *v, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (!ax_hlo_shapes_fit(ax_verified_in(v, i), ax_verified_out(v, i)))
      return ax_error(AX_INVALID_ARGUMENT, "result %u must have the shape of operand %u", i, i);
  return AX_OK;
}

ax_status ax_hlo_check_all_reduce(const ax_verified *v) {
  int64_t size;
  AX_TRY(check_groups(v, MAY_BE_NONE, &size));
  AX_TRY(check_channel(v));
  AX_TRY(check_reducers(v, v->op->operand_count));
  return check_same_shapes(v, v->op->operand_count);
}

ax_status ax_hlo_check_reduce_scatter(const ax_verified *v) {
  const ax_hlo_value_type *in = ax_verified_in(v, 0), *out = ax_verified_out(v, 0);
  int64_t size, along;
  AX_TRY(check_groups(v, UNIFORM | MAY_BE_NONE, &size));
  AX_TRY(check_channel(v));
  AX_TRY(check_reducers(v, 1));
  AX_TRY(ax_hlo_integer(v->op, "scatter_dimension", &along));
  if (!ax_hlo_ranked(in) || !ax_hlo_ranked(out)) return AX_OK;
  if (in->rank != out->rank)
    return ax_error(AX_INVALID_ARGUMENT, "the result has the rank %u, and the operand %u", out->rank, in->rank);
  if (along >= in->rank)
    return ax_error(AX_INVALID_ARGUMENT, "scatter_dimension is %" PRId64 ", and the rank is %u", along, in->rank);
  ax_dims dims = ax_hlo_dims_of(in);
  const int64_t from = in->dims[along], to = out->dims[along];
  if (from == 0 || to == 0) return ax_error(AX_INVALID_ARGUMENT, "arrays must not be empty along scatter_dimension");
  dims.v[along] = AX_HLO_DYNAMIC;
  AX_TRY(ax_hlo_check_shape(v, 0, &dims));
  if (from == AX_HLO_DYNAMIC || to == AX_HLO_DYNAMIC || from % to == 0) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "the result has the extent %" PRId64 " along scatter_dimension, and must have that of the operand, %" PRId64
                  ", or a part of it",
                  to, from);
}

/* dense<..> : tensor<0x2xi64>, which says how long its lists are. */
static bool is_empty_list(const ax_hlo_attribute *groups) {
  int64_t rows, columns;
  return ax_hlo_table(groups, &rows, &columns) && rows * columns == 0 && rows + columns > 0;
}

ax_status ax_hlo_check_all_to_all(const ax_verified *v) {
  int64_t size, split, join, parts;
  AX_TRY(check_groups(v, UNIFORM | MAY_BE_NONE, &size));
  AX_TRY(ax_hlo_integer(v->op, "split_dimension", &split));
  AX_TRY(ax_hlo_integer(v->op, "concat_dimension", &join));
  AX_TRY(ax_hlo_integer(v->op, "split_count", &parts));
  if (size == 0 && is_empty_list(ax_hlo_find(v->op, "replica_groups")))
    return ax_error(AX_INVALID_ARGUMENT, "replica_groups must have members, or not even lists");
  if (size > 0 && size != parts)
    return ax_error(AX_INVALID_ARGUMENT, "groups have %" PRId64 " members, and split_count is %" PRId64, size, parts);
  for (uint32_t i = 0; i < v->op->operand_count; i++) {
    const ax_hlo_value_type *in = ax_verified_in(v, i);
    if (!ax_hlo_ranked(in)) continue;
    if (split >= in->rank || join >= in->rank)
      return ax_error(AX_INVALID_ARGUMENT,
                      "split_dimension is %" PRId64 ", concat_dimension %" PRId64 ", and operand %u has the rank %u", split, join,
                      i, in->rank);
    ax_dims dims = ax_hlo_dims_of(in);
    if (dims.v[split] != AX_HLO_DYNAMIC && dims.v[split] % parts != 0)
      return ax_error(AX_INVALID_ARGUMENT,
                      "operand %u has the extent %" PRId64 " along split_dimension, which is not divided by split_count, %" PRId64,
                      i, dims.v[split], parts);
    if (dims.v[split] != AX_HLO_DYNAMIC) dims.v[split] /= parts;
    if (dims.v[join] != AX_HLO_DYNAMIC && __builtin_mul_overflow(dims.v[join], parts, &dims.v[join])) dims.v[join] = AX_HLO_DYNAMIC;
    AX_TRY(ax_hlo_check_shape(v, i, &dims));
  }
  return AX_OK;
}

static ax_status check_pairs(const ax_hlo_attribute *pairs) {
  int64_t rows, columns;
  if (pairs == NULL || pairs->kind != AX_HLO_ELEMENTS) return AX_OK;
  if (!ax_hlo_table(pairs, &rows, &columns) || columns != 2)
    return ax_error(AX_INVALID_ARGUMENT, "source_target_pairs must be a list of pairs of i64");
  if (rows > 4096) return AX_OK; /* the reader of the operation finds doubles among more */
  for (int64_t i = 0; i < rows; i++)
    for (int64_t side = 0; side < 2; side++) {
      const int64_t id = ax_hlo_table_at(pairs, 2 * i + side);
      if (id < 0) return ax_error(AX_INVALID_ARGUMENT, "source_target_pairs has %" PRId64 ", and must have numbers from 0 on", id);
      for (int64_t j = 0; j < i; j++)
        if (ax_hlo_table_at(pairs, 2 * j + side) == id)
          return ax_error(AX_INVALID_ARGUMENT, "source_target_pairs has %" PRId64 " twice as a %s", id,
                          side == 0 ? "source" : "target");
    }
  return AX_OK;
}

ax_status ax_hlo_check_permute(const ax_verified *v) { return check_pairs(ax_hlo_find(v->op, "source_target_pairs")); }

ax_status ax_hlo_check_cross_replica_sum(const ax_verified *v) {
  int64_t size;
  return check_groups(v, MAY_BE_NONE, &size);
}

/* collective_broadcast and collective_reduce: the last operand may be the root of each array. */
ax_status ax_hlo_check_rooted(const ax_verified *v) {
  const ax_hlo_attribute *dynamic = ax_hlo_find(v->op, "has_dynamic_root");
  const bool rooted = dynamic != NULL && (dynamic->kind != AX_HLO_BOOL || dynamic->integer != 0);
  const uint32_t count = v->op->operand_count - (rooted ? 1 : 0);
  int64_t size;
  AX_TRY(check_groups(v, UNIFORM | SOME | MAY_BE_NONE, &size));
  AX_TRY(check_channel(v));
  if (rooted && v->op->operand_count < 2)
    return ax_error(AX_INVALID_ARGUMENT, "has_dynamic_root: it must have an array and a root");
  const ax_hlo_value_type *root = ax_verified_in(v, v->op->operand_count - 1);
  if (rooted && ax_hlo_ranked(root)) {
    if (root->rank != 1 || root->dtype != AX_S32)
      return ax_error(AX_INVALID_ARGUMENT, "the last operand, the roots, must be one dimension of i32");
    if (!ax_hlo_extents_fit(root->dims[0], count))
      return ax_error(AX_INVALID_ARGUMENT, "the last operand must have a root for each of %u arrays, and has %" PRId64, count,
                      root->dims[0]);
  }
  if (v->op->result_count != count)
    return ax_error(AX_INVALID_ARGUMENT, "it must have %u results, and has %u", count, v->op->result_count);
  if (v->op->region_count > 0) AX_TRY(check_reducers(v, count));
  for (uint32_t i = 0; i < count && v->op->region_count == 0; i++) AX_TRY(ax_hlo_check_elements(v, i, i));
  return check_same_shapes(v, count);
}

/* --- The host, and other devices --- */

static ax_status check_transfer(const ax_verified *v, int64_t host_type, const char *host_name) {
  const ax_hlo_attribute *channel = ax_hlo_find(v->op, "channel_handle");
  const ax_hlo_attribute *type = channel != NULL && channel->kind == AX_HLO_DICTIONARY ? ax_hlo_item(channel, "type") : NULL;
  bool host;
  AX_TRY(ax_hlo_bool_or(v->op, "is_host_transfer", false, &host));
  AX_TRY(check_pairs(ax_hlo_find(v->op, "source_target_pairs")));
  if (type == NULL || type->integer == (host ? host_type : 1)) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT,
                  "its channel is of type %" PRId64 ", and must be of type %" PRId64 ", %s, as is_host_transfer is %s",
                  type->integer, host ? host_type : 1, host ? host_name : "device to device", host ? "true" : "false");
}

ax_status ax_hlo_check_send(const ax_verified *v) { return check_transfer(v, 2, "device to host"); }

/* Arrays, then a token. */
static ax_status check_arrays_and_token(const ax_verified *v) {
  const uint32_t count = v->op->result_count;
  for (uint32_t k = 0; k < count; k++) {
    const ax_hlo_kind kind = ax_verified_out(v, k)->kind;
    if (k + 1 < count && kind != AX_HLO_TENSOR)
      return ax_error(AX_INVALID_ARGUMENT, "result %u must be an array, as all but the last", k);
    if (k + 1 == count && kind != AX_HLO_TOKEN) return ax_error(AX_INVALID_ARGUMENT, "the last result must be a token");
  }
  return AX_OK;
}

ax_status ax_hlo_check_recv(const ax_verified *v) {
  AX_TRY(check_transfer(v, 3, "host to device"));
  return check_arrays_and_token(v);
}

ax_status ax_hlo_check_infeed(const ax_verified *v) {
  const ax_hlo_attribute *layout = ax_hlo_find(v->op, "layout");
  AX_TRY(check_arrays_and_token(v));
  if (layout == NULL || layout->kind != AX_HLO_ARRAY || layout->count == 0) {
    if (layout == NULL || v->op->result_count == 1 || layout->kind != AX_HLO_ARRAY) return AX_OK;
  }
  if (layout->count != v->op->result_count - 1)
    return ax_error(AX_INVALID_ARGUMENT, "layout has %u entries, and must have %u, one for each array", layout->count,
                    v->op->result_count - 1);
  for (uint32_t i = 0; i < layout->count; i++) {
    const ax_hlo_attribute *one = &layout->items[i];
    if (one->kind != AX_HLO_ARRAY) return ax_error(AX_INVALID_ARGUMENT, "each entry of layout must be a list of integers");
    for (uint32_t k = 0; k < one->count; k++)
      if (one->items[k].kind != AX_HLO_INTEGER)
        return ax_error(AX_INVALID_ARGUMENT, "each entry of layout must be a list of integers");
  }
  return AX_OK;
}

/* --- Calls --- */

static bool is_namespaced(ax_hlo_slice name) {
  const char *dot = name.length > 0 ? memchr(name.start, '.', name.length) : NULL;
  if (dot == NULL || dot == name.start || dot + 1 == name.start + name.length) return false;
  for (size_t i = 0; i < name.length; i++) {
    const char c = name.start[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = (c >= '0' && c <= '9') || c == '$' || c == '.' || c == '-';
    if (!letter && !(digit && i > 0)) return false;
  }
  return true;
}

ax_status ax_hlo_check_composite(const ax_verified *v) {
  const ax_hlo_attribute *name = ax_hlo_find(v->op, "name"), *body = ax_hlo_find(v->op, "decomposition");
  if (name == NULL || name->kind != AX_HLO_STRING || !is_namespaced(name->text))
    return ax_error(AX_INVALID_ARGUMENT, "its name must be that of an operation in a namespace, as \"mine.gelu\"");
  const ax_hlo_operation *function = body != NULL ? ax_hlo_symbol(v, body->text) : NULL;
  if (function == NULL || !ax_hlo_slice_is(function->name, "func.func"))
    return ax_error(AX_INVALID_ARGUMENT, "there is no function @%.*s", body != NULL ? ax_hlo_length(body->text) : 0,
                    body != NULL ? body->text.start : "");
  const ax_hlo_attribute *said = ax_hlo_find(function, "function_type");
  if (said == NULL || said->kind != AX_HLO_TYPE || said->type->kind != AX_HLO_FUNCTION) return AX_OK;
  const uint32_t ins = said->type->in_count, outs = said->type->part_count - ins;
  if (ins != v->op->operand_count || outs != v->op->result_count)
    return ax_error(AX_INVALID_ARGUMENT, "it has %u operands and %u results, and its decomposition %u and %u", v->op->operand_count,
                    v->op->result_count, ins, outs);
  for (uint32_t i = 0; i < ins + outs; i++) {
    const ax_hlo_value_type *is = i < ins ? ax_verified_in(v, i) : ax_verified_out(v, i - ins), *wanted = said->type->parts[i];
    if (!ax_hlo_types_fit(is, wanted))
      return ax_error(AX_INVALID_ARGUMENT, "%s %u is %.*s, and that of the decomposition %.*s", i < ins ? "operand" : "result",
                      i < ins ? i : i - ins, ax_hlo_length(is->text), is->text.start, ax_hlo_length(wanted->text),
                      wanted->text.start);
  }
  return AX_OK;
}
