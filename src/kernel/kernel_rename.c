/* Bodies of kernels in the environment of the whole mesh: the same equations, of which those that name axes of devices name the
   parts that these are of.

     d=4, and of cores core=2             the whole mesh has d as d_0=2, d_1=2:   d_0, d_1, core
     semaphore_signal[axes=(d)] s 1 c     semaphore_signal[axes=(d_0, d_1)] s 1 c/2 c%2

   A device's number is row-major over the axes that the kernel was traced under, of which the mesh may have more. So it becomes
   coordinates along them. */
#include <string.h>

#include "kernel/kernel_call.h"
#include "kernel/rebody.h"
#include "kernel/step.h"

static ax_mesh axes_of(const void *context, const ax_mesh *was) {
  const ax_rename_args *args = context;
  ax_mesh axes = *args->to;
  if (was->count < args->from->count) return *was; /* a program without any */
  for (uint32_t i = 0; i < axes.count; i++) axes.axis[i].unchecked = true;
  for (uint32_t i = args->from->count; i < was->count; i++) {
    if (axes.count == AX_MAX_AXES || ax_mesh_find(&axes, was->axis[i].name) >= 0) {
      ax_fail(ax_error(AX_ABSENT, "the core axis \"%s\" goes with no mesh of %u axes, or is called as one of them",
                       was->axis[i].name, axes.count));
      break;
    }
    axes.axis[axes.count++] = was->axis[i];
  }
  return axes;
}

/* Replaces axes of devices by their parts; axes of cores stay as they are. */
static ax_axes named_here(const ax_rename_args *args, const ax_axes *names) {
  ax_axes here = {.groups = names->groups};
  for (uint32_t i = 0; i < names->count; i++) {
    int at = ax_mesh_find(args->from, names->name[i]);
    const ax_axes own = {.count = 1}, *parts = at >= 0 ? &args->parts[at] : &own;
    for (uint32_t k = 0; k < parts->count; k++)
      memcpy(here.name[here.count++], at >= 0 ? parts->name[k] : names->name[i], AX_MAX_NAME);
  }
  return here;
}

static void rename_params(const void *context, const ax_eqn *eqn, void *params) {
  for (uint32_t p = 0; p < eqn->prim->param_count; p++) {
    if (eqn->prim->params[p].kind != AX_PARAM_AXES) continue;
    ax_axes *names = (ax_axes *)((char *)params + eqn->prim->params[p].offset);
    *names = named_here(context, names);
  }
}

/* --- Where signals and copies go --- */

/* A number along axes as one along each, row-major. */
static void split(const ax_mesh *mesh, const ax_axes *names, ax_value number, ax_value *out) {
  for (uint32_t i = names->count; i-- > 0;) {
    const ax_value size = ax_integer(mesh->axis[ax_mesh_find(mesh, names->name[i])].size);
    ax_value above = i > 0 ? ax_div(number, size) : number;
    out[i] = i > 0 ? ax_sub(number, ax_mul(above, size)) : number;
    number = above;
  }
}

static bool bind(const void *context, const ax_eqn *eqn, const ax_value *in, ax_value *out) {
  const ax_rename_args *args = context;
  const ax_core_params *to = ax_step_target(eqn);
  if (to == NULL) return false;
  if (!to->logical && to->axes.count == 0) return false;
  union {
    ax_core_params signal;
    ax_copy_params copy;
  } made;
  ax_value all[8 + AX_MAX_AXES];
  uint32_t first = eqn->in_count - ax_core_operands(to), count = first;
  memcpy(&made, eqn->params, eqn->prim->params_bytes);
  memcpy(all, in, first * sizeof all[0]);
  const ax_mesh whole = ax_mesh_plain(args->from);
  const ax_axes everything = to->logical ? ax_axis_set_names(ax_all_axes(&whole), &whole) : to->axes;
  made.signal.logical = false;
  made.signal.axes = named_here(args, &everything);
  if (to->logical) {
    split(&ax_builder_current()->axes, &made.signal.axes, in[first], all + first);
    count = first + made.signal.axes.count;
  }
  for (uint32_t i = 0; i < everything.count && !to->logical; i++) {
    ax_axes one = {.count = 1};
    memcpy(one.name[0], everything.name[i], AX_MAX_NAME);
    const ax_axes parts = named_here(args, &one);
    split(&ax_builder_current()->axes, &parts, in[first + i], all + count);
    count += parts.count;
  }
  ax_emit(eqn->prim, &made, all, count, out, eqn->out_count);
  return true;
}

ax_status ax_kernel_call_rename(const ax_rename_args *args, ax_program **out) {
  return ax_rebody_program(&(ax_rebody){args, axes_of, bind, rename_params}, args->program, out);
}
