/* Groups of members that lie along the axes of a finer mesh.

     x=8   {0,1} {2,3} {4,5} {6,7}    is x_0=4, x_1=2, and the groups are those along x_1
           {0,4} {1,5} {2,6} {3,7}    is x_0=2, x_1=4, and the groups are those along x_0

   A collective over such groups becomes one over axes of the finer mesh, and so costs the same. The groups must have one size and
   members in ascending order, and each must be the group of member 0 moved by its own least member. */
#include <string.h>

#include "partition/partitioner.h"

/* The place in the list of members where the group of member 0 begins. AX_NONE: member 0 is not the first of its group, or
   groups differ in size. */
static uint32_t group_of_first(const ax_groups *groups) {
  if (!ax_groups_even(groups)) return AX_NONE;
  for (uint32_t g = 0; g < groups->count; g++)
    if (groups->member[ax_group_begin(groups, g)] == 0) return ax_group_begin(groups, g);
  return AX_NONE;
}

/* Finds the sizes of axes, the minor one first, such that the members 0, m1, m2 .. of a group lie along some of the axes: a run
   of members at equal distances is an axis, and so is a gap between runs. False: there are no such sizes. */
static bool sizes_of(const uint32_t *member, uint32_t count, int64_t all, ax_mesh *sizes) {
  int64_t inside = 1; /* the product of the sizes so far */
  for (uint32_t have = 1; have < count;) {
    int64_t step = member[have], run = 1; /* the next axis: so far apart, so long */
    while (run * have < count && member[run * have] == run * step) run++;
    if (step % inside != 0 || count % (have * run) != 0 || sizes->count + 2 > AX_MAX_AXES) return false;
    if (step > inside) sizes->axis[sizes->count++].size = step / inside;
    sizes->axis[sizes->count++].size = run;
    inside = step * run;
    have *= (uint32_t)run;
  }
  if (all % inside != 0 || sizes->count == AX_MAX_AXES) return false;
  if (all > inside) sizes->axis[sizes->count++].size = all / inside;
  return true;
}

/* The named axes are neighbours in the mesh, in its order: the first of them. -1: they are not. */
static int first_of_run(const ax_mesh *mesh, const ax_axes *names) {
  int first = names->count > 0 ? ax_mesh_find(mesh, names->name[0]) : -1;
  for (uint32_t i = 1; i < names->count && first >= 0; i++)
    if (ax_mesh_find(mesh, names->name[i]) != first + (int)i) first = -1;
  return first;
}

bool ax_mesh_cut(const ax_mesh *mesh, const ax_axes *names, ax_mesh *out) {
  const ax_groups *groups = &names->groups;
  int first = first_of_run(mesh, names);
  uint32_t begin = group_of_first(groups), size = ax_group_size(groups, 0);
  ax_mesh sizes = {0};
  if (first < 0 || begin == AX_NONE || size == 1) return false;
  if (!sizes_of(groups->member + begin, size, groups->end[groups->count - 1], &sizes)) return false;
  if (mesh->count - names->count + sizes.count > AX_MAX_AXES) return false;
  *out = (ax_mesh){0};
  for (int i = 0; i < first; i++) out->axis[out->count++].size = mesh->axis[i].size;
  for (uint32_t i = sizes.count; i-- > 0;) out->axis[out->count++].size = sizes.axis[i].size;
  for (uint32_t i = (uint32_t)first + names->count; i < mesh->count; i++) out->axis[out->count++].size = mesh->axis[i].size;
  return true;
}

/* The distance from the first member of a group to member i, for axes of these sizes and steps. */
static int64_t offset_of(uint32_t i, const int64_t *size, const int64_t *step, uint32_t count) {
  int64_t offset = 0;
  for (uint32_t k = count; k-- > 0; i /= (uint32_t)size[k]) offset += i % size[k] * step[k];
  return offset;
}

bool ax_groups_along(const ax_mesh *mesh, const ax_axes *names, ax_axes *out) {
  const ax_groups *groups = &names->groups;
  uint32_t begin = group_of_first(groups), members = groups->end[groups->count - 1], size = ax_group_size(groups, 0);
  int64_t sizes[AX_MAX_AXES], steps[AX_MAX_AXES], step = members, product = 1;
  *out = (ax_axes){0};
  if (begin == AX_NONE) return false;
  for (uint32_t i = 0; i < names->count; i++) {
    int64_t along = mesh->axis[ax_mesh_find(mesh, names->name[i])].size;
    bool inside = false;
    step /= along;
    for (uint32_t k = 1; k < size && along > 1; k++) inside = inside || groups->member[begin + k] == step;
    if (!inside) continue;
    memcpy(out->name[out->count], names->name[i], AX_MAX_NAME);
    sizes[out->count] = along;
    steps[out->count++] = step;
    product *= along;
  }
  if (product != size) return false;
  for (uint32_t i = 0; i < members; i++) {
    uint32_t first = groups->member[i - i % size];
    if (groups->member[i] != first + offset_of(i % size, sizes, steps, out->count)) return false;
    for (uint32_t k = 0; k < out->count && i % size == 0; k++)
      if (first / steps[k] % sizes[k] != 0) return false;
  }
  return true;
}
