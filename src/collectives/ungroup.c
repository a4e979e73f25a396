/* Collectives over groups of members (axis_index_groups), written as collectives over all members: for groups that no axes of a
   mesh can express (partition/regroup.c), and for batches over a grouped axis. The work is that of the collective over all members.

     combine   x is cut in n parts and traded: each member has one part of every member's x. It combines them for every group, and
               trades each member's combination back. Groups of any sizes
     gather    the x of all members are gathered once, and each member takes its group's
     trade     a round for each distance in the group: one part to the member so many places on */
#include "collectives/collective.h"
#include "ops/pointwise.h"

static uint32_t members_of(const ax_axes *axes) { return axes->groups.end[axes->groups.count - 1]; }

/* --- What a member knows of itself: a table by member, looked up --- */

static ax_value look_up(const ax_axes *axes, uint32_t *table) {
  const ax_axes_list all = ax_axes_listed(axes);
  ax_type type = ax_array_type(AX_S32, AX_DIMS(members_of(axes)));
  if (table == NULL || ax_failed()) return ax_poison;
  return ax_dynamic_at(ax_constant(&type, table), ax_axis_index(all.text), 0);
}

static uint32_t *table_of(const ax_axes *axes) { return ax_trace_alloc(members_of(axes) * sizeof(uint32_t)); }

static ax_value own_number(const ax_axes *axes) {
  uint32_t *table = table_of(axes);
  if (table != NULL) ax_groups_numbers(&axes->groups, NULL, table);
  return look_up(axes, table);
}

ax_value ax_own_group_size(const ax_axes *axes) {
  uint32_t *table = table_of(axes), members = members_of(axes);
  if (table != NULL) ax_groups_numbers(&axes->groups, table, NULL);
  for (uint32_t m = 0; table != NULL && m < members; m++) table[m] = ax_group_size(&axes->groups, table[m]);
  return look_up(axes, table);
}

/* --- Rows of a dimension in front --- */

static ax_value combine_two(ax_scalar op, ax_value a, ax_value b) {
  if (op == AX_SCALAR_ADD) return ax_add(a, b);
  return op == AX_SCALAR_MAX ? ax_max(a, b) : ax_min(a, b);
}

/* Rows `list` of x; NULL: all. */
static ax_value combine_listed(ax_scalar op, ax_value x, const uint32_t *list, uint32_t count) {
  ax_dtype dtype = ax_typeof(x).dtype, wide = ax_combined_in(op, dtype, count);
  ax_value total = ax_poison;
  for (uint32_t i = 0; i < count && !ax_failed(); i++) {
    ax_value next = ax_convert_element_type(ax_at(x, list != NULL ? list[i] : i, 0), wide);
    total = i == 0 ? next : combine_two(op, total, next);
  }
  return ax_convert_element_type(total, dtype);
}

ax_value ax_combine_rows(ax_scalar op, ax_value rows) {
  ax_type type = ax_typeof(rows);
  return ax_failed() ? ax_poison : combine_listed(op, rows, NULL, (uint32_t)type.dims[0]);
}

/* --- Combining --- */

/* Row i goes to member i; of each member a row comes. */
static ax_value trade_all(const ax_axes *axes, ax_value rows) {
  const ax_axes_list all = ax_axes_listed(axes);
  return ax_all_to_all(rows, all.text, 0, 0, true);
}

/* [e] as n rows, zeros after the last. */
static ax_value cut(ax_value x, int64_t elems, int64_t members) {
  int64_t part = (elems + members - 1) / members, more = part * members - elems;
  if (more > 0) {
    ax_value both[] = {x, ax_full(ax_typeof(x).dtype, AX_LIST(1, &more), 0)};
    x = ax_concatenate(AX_LIST(2, both), 0);
  }
  return ax_reshape(x, AX_DIMS(members, part));
}

ax_value ax_ungrouped_combine(ax_scalar op, const ax_axes *axes, ax_value x) {
  const ax_groups *groups = &axes->groups;
  ax_type type = ax_typeof(x);
  uint32_t members = members_of(axes), *group = table_of(axes);
  ax_value *combined = ax_trace_alloc(groups->count * sizeof combined[0]), *back = ax_trace_alloc(members * sizeof back[0]);
  if (group == NULL || combined == NULL || back == NULL) return ax_poison;
  int64_t elems = ax_type_elems(&type);
  if (elems == 0) return x;
  const ax_type whole = type;
  ax_value parts = trade_all(axes, cut(ax_reshape(x, AX_LIST(1, &elems)), elems, members));
  for (uint32_t g = 0; g < groups->count; g++)
    combined[g] =
        ax_expand_dims(combine_listed(op, parts, groups->member + ax_group_begin(groups, g), ax_group_size(groups, g)), 0);
  ax_groups_numbers(groups, group, NULL);
  for (uint32_t m = 0; m < members; m++) back[m] = combined[group[m]];
  parts = trade_all(axes, ax_concatenate(AX_LIST(members, back), 0));
  type = ax_typeof(parts);
  if (ax_failed()) return ax_poison;
  int64_t all = ax_type_elems(&type);
  x = ax_reshape(parts, AX_LIST(1, &all));
  if (all > elems) x = ax_slice(x, AX_DIMS(0), &elems, NULL);
  return ax_reshape(x, AX_LIST(whole.rank, whole.dims));
}

/* --- Moving --- */

ax_value ax_ungrouped_gather(const ax_axes *axes, ax_value x) {
  const ax_axes_list names = ax_axes_listed(axes);
  const ax_groups *groups = &axes->groups;
  uint32_t size = ax_group_size(groups, 0), *group = table_of(axes), *table = table_of(axes), members = members_of(axes);
  ax_value *rows = ax_trace_alloc(size * sizeof rows[0]);
  if (group == NULL || table == NULL || rows == NULL) return ax_poison;
  ax_value all = ax_all_gather(x, names.text, 0, false);
  ax_groups_numbers(groups, group, NULL);
  for (uint32_t i = 0; i < size; i++) { /* my group's member i */
    for (uint32_t m = 0; m < members; m++) table[m] = groups->member[ax_group_begin(groups, group[m]) + i];
    rows[i] = ax_dynamic_at(all, look_up(axes, table), 0);
  }
  return ax_stack(AX_LIST(size, rows), 0);
}

/* x to the member of my group that is `by` places on. */
static ax_value pass_on(const ax_axes *axes, ax_value x, uint32_t by) {
  const ax_groups *groups = &axes->groups;
  uint32_t members = members_of(axes), size = ax_group_size(groups, 0);
  const ax_axes_list names = ax_axes_listed(axes);
  int64_t(*pairs)[2] = ax_trace_alloc(members * sizeof pairs[0]);
  if (pairs == NULL) return ax_poison;
  for (uint32_t i = 0; i < members; i++) {
    uint32_t begin = i - i % size;
    pairs[i][0] = groups->member[i];
    pairs[i][1] = groups->member[begin + (i % size + by) % size];
  }
  return ax_ppermute(x, names.text, members, (const int64_t(*)[2])pairs);
}

/* (number + by) modulo the size, 0 <= by < size. */
static ax_value places_on(ax_value number, uint32_t by, uint32_t size) {
  ax_value place = ax_add(number, ax_integer(by));
  return ax_where(ax_lt(place, ax_integer(size)), place, ax_sub(place, ax_integer(size)));
}

ax_value ax_ungrouped_trade(const ax_axes *axes, ax_value parts) {
  uint32_t size = ax_group_size(&axes->groups, 0);
  ax_value number = own_number(axes), *rounds = ax_trace_alloc(size * sizeof rounds[0]),
           *rows = ax_trace_alloc(size * sizeof rows[0]);
  if (rounds == NULL || rows == NULL) return ax_poison;
  for (uint32_t by = 0; by < size; by++) {
    ax_value part = ax_dynamic_at(parts, places_on(number, by, size), 0);
    rounds[by] = by > 0 ? pass_on(axes, part, by) : part;
  }
  ax_value came = ax_stack(AX_LIST(size, rounds), 0); /* row `by` from the member so many places before me */
  for (uint32_t i = 0; i < size; i++) {
    ax_value by = ax_sub(number, ax_integer(i));
    by = ax_where(ax_lt(by, ax_integer(0)), ax_add(by, ax_integer(size)), by);
    rows[i] = ax_dynamic_at(came, by, 0);
  }
  return ax_stack(AX_LIST(size, rows), 0);
}
