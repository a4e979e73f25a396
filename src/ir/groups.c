/* Groups of members along axes: axis_index_groups. A group's members are listed in the order of their numbers in it. */
#include <stdlib.h>
#include <string.h>

#include "ir/prim.h"
#include "ir/program.h"

const ax_axes *ax_eqn_grouped(const ax_eqn *eqn) {
  const ax_axes *axes = eqn->prim->ungroup != NULL ? eqn->params : NULL;
  return axes != NULL && axes->groups.count > 0 ? axes : NULL;
}

bool ax_groups_equal(const ax_groups *a, const ax_groups *b) {
  if (a->count != b->count) return false;
  if (a->count == 0) return true;
  uint32_t members = a->end[a->count - 1];
  return memcmp(a->end, b->end, a->count * sizeof a->end[0]) == 0 &&
         memcmp(a->member, b->member, members * sizeof a->member[0]) == 0;
}

uint32_t ax_group_begin(const ax_groups *groups, uint32_t group) { return group > 0 ? groups->end[group - 1] : 0; }

uint32_t ax_group_size(const ax_groups *groups, uint32_t group) { return groups->end[group] - ax_group_begin(groups, group); }

bool ax_groups_even(const ax_groups *groups) {
  for (uint32_t g = 1; g < groups->count; g++)
    if (ax_group_size(groups, g) != ax_group_size(groups, 0)) return false;
  return true;
}

void ax_groups_text(ax_text *text, const ax_groups *groups) {
  for (uint32_t g = 0, i = 0; g < groups->count; g++) {
    for (const char *separator = " {"; i < groups->end[g]; i++, separator = ",")
      ax_text_add(text, "%s%u", separator, groups->member[i]);
    ax_text_add(text, "}");
  }
}

ax_status ax_group_list_open(ax_group_list *list) {
  AX_TRY(ax_grow(&list->end, sizeof list->end[0], list->count, 1, &list->capacity));
  list->end[list->count++] = list->member_count;
  return AX_OK;
}

ax_status ax_group_list_add(ax_group_list *list, int64_t member) {
  if (member < 0 || member > INT32_MAX)
    return ax_error(AX_INVALID_ARGUMENT, "member %lld of a group: there is none", (long long)member);
  AX_TRY(ax_grow(&list->member, sizeof list->member[0], list->member_count, 1, &list->member_capacity));
  list->member[list->member_count++] = (uint32_t)member;
  list->end[list->count - 1] = list->member_count;
  return AX_OK;
}

ax_status ax_group_list_close(ax_group_list *list, ax_arena *arena, ax_groups *out) {
  uint32_t *end = ax_arena_copy(arena, list->end, list->count * sizeof end[0]);
  uint32_t *member = ax_arena_copy(arena, list->member, list->member_count * sizeof member[0]);
  size_t bytes = (list->count + (size_t)list->member_count) * sizeof end[0];
  *out = (ax_groups){list->count, end, member};
  ax_group_list_deinit(list);
  return end == NULL || member == NULL ? ax_out_of_memory(bytes) : AX_OK;
}

void ax_group_list_deinit(ax_group_list *list) {
  ax_free(list->end);
  ax_free(list->member);
  *list = (ax_group_list){0};
}

/* `seen`: by member, 1 + the group that it is in. */
static ax_status check(const ax_groups *groups, int64_t members, uint32_t *seen) {
  for (uint32_t g = 0, i = 0; g < groups->count; g++) {
    if (groups->end[g] == i) return ax_error(AX_INVALID_ARGUMENT, "group %u is empty", g);
    for (; i < groups->end[g]; i++) {
      uint32_t member = groups->member[i];
      if (member >= members)
        return ax_error(AX_INVALID_ARGUMENT, "group %u names member %u, but the members along the axes are 0 to %lld", g, member,
                        (long long)members - 1);
      if (seen[member] == g + 1) return ax_error(AX_INVALID_ARGUMENT, "group %u names member %u twice", g, member);
      if (seen[member] != 0)
        return ax_error(AX_INVALID_ARGUMENT, "groups %u and %u overlap: both name member %u", seen[member] - 1, g, member);
      seen[member] = g + 1;
    }
  }
  for (int64_t m = 0; m < members; m++)
    if (seen[m] == 0)
      return ax_error(AX_INVALID_ARGUMENT, "the groups leave out member %lld of the %lld along the axes", (long long)m,
                      (long long)members);
  return AX_OK;
}

ax_status ax_groups_check(const ax_groups *groups, int64_t members) {
  uint32_t *seen = ax_calloc((size_t)members, sizeof seen[0]);
  if (seen == NULL) return ax_out_of_memory((size_t)members * sizeof seen[0]);
  ax_status status = check(groups, members, seen);
  ax_free(seen);
  return status;
}

void ax_groups_numbers(const ax_groups *groups, uint32_t *group, uint32_t *number) {
  for (uint32_t g = 0, i = 0; g < groups->count; g++)
    for (uint32_t first = i; i < groups->end[g]; i++) {
      if (group != NULL) group[groups->member[i]] = g;
      if (number != NULL) number[groups->member[i]] = i - first;
    }
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* A group's least member says where it comes: groups are told apart by it. */
bool ax_groups_sorted(const ax_groups *given, ax_arena *arena, ax_groups *out) {
  const ax_groups copy = *given, *groups = &copy; /* `out` may be the same */
  uint32_t members = groups->end[groups->count - 1], begin = 0, count = 0;
  uint32_t *sorted = ax_arena_copy(arena, groups->member, members * sizeof sorted[0]);
  uint32_t *end = ax_arena_alloc(arena, groups->count * sizeof end[0]), *member = ax_arena_alloc(arena, members * sizeof member[0]);
  uint32_t *of = ax_arena_alloc(arena, members * sizeof of[0]); /* by member: 1 + its group where it is the least of it */
  if (sorted == NULL || end == NULL || member == NULL || of == NULL) return false;
  for (uint32_t g = 0; g < groups->count; begin = groups->end[g++]) {
    qsort(sorted + begin, groups->end[g] - begin, sizeof sorted[0], ascending);
    of[sorted[begin]] = g + 1;
  }
  *out = (ax_groups){groups->count, end, member};
  for (uint32_t m = 0, to = 0; m < members; m++) {
    if (of[m] == 0) continue;
    uint32_t g = of[m] - 1, size = ax_group_size(groups, g);
    memcpy(member + to, sorted + ax_group_begin(groups, g), size * sizeof member[0]);
    end[count++] = to += size;
  }
  return true;
}
