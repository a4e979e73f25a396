/* The immutable part of a machine: codes, cores, and the instance of each ref that a core has.

     ref                    instances on a device
     operand, result        one, for all bodies; of a result that is an alias, its operand's
     scratch in HBM, shared one, for all bodies
     other scratch          one for each core of its body, but one together for cores that are threads of one

   A core of another body than the scratch's has the instance of the core with the same coordinates along axes of the same names. */
#include "kernel/machine/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/prim.h"
#include "kernel/machine/state.h"

static uint32_t bodies_of(const ax_machine *machine) { return machine->params->bodies.count; }

/* The core axes of body b: they are the last of its environment. */
static uint32_t first_core_axis(const ax_machine *machine, uint32_t b) {
  return machine->params->bodies.v[b]->axes.count - (uint32_t)machine->params->core_axes.v[b];
}

static bool is_named(const ax_axes *names, const char *name) {
  for (uint32_t i = 0; i < names->count; i++)
    if (strcmp(names->name[i], name) == 0) return true;
  return false;
}

static int64_t cores_of(const ax_machine *machine, uint32_t b, bool instances) {
  const ax_mesh *mesh = &machine->params->bodies.v[b]->axes;
  int64_t count = 1;
  for (uint32_t a = first_core_axis(machine, b); a < mesh->count; a++)
    if (!instances || !is_named(&machine->params->threads, mesh->axis[a].name)) count *= mesh->axis[a].size;
  return count;
}

/* Gives the instance of body `owner`'s scratch that core `number` of body `b` uses. */
static uint32_t instance_of(const ax_machine *machine, uint32_t owner, uint32_t b, int64_t number) {
  const ax_mesh *own = &machine->params->bodies.v[owner]->axes, *mesh = &machine->params->bodies.v[b]->axes;
  int64_t instance = 0;
  for (uint32_t a = first_core_axis(machine, owner); a < own->count; a++) {
    if (is_named(&machine->params->threads, own->axis[a].name)) continue;
    int64_t coordinate = 0, rest = number;
    for (uint32_t m = mesh->count; m-- > first_core_axis(machine, b);) {
      if (strcmp(mesh->axis[m].name, own->axis[a].name) == 0) coordinate = rest % mesh->axis[m].size;
      rest /= mesh->axis[m].size;
    }
    instance = instance * own->axis[a].size + coordinate;
  }
  return (uint32_t)instance;
}

/* The body whose a scratch ref is: `own` where each has its own; -1: the device's. */
static int owner_of(const ax_machine *machine, uint32_t scratch, uint32_t own) {
  const ax_kernel_params *params = machine->params;
  const ax_type *type = &params->scratch.v[scratch];
  const char *core = scratch < params->scratch_cores.count ? params->scratch_cores.name[scratch] : "each";
  if (strcmp(core, "device") == 0 || (strcmp(core, "each") == 0 && type->form == AX_REF && type->space == AX_SPACE_HBM)) return -1;
  for (uint32_t b = 0; b < params->cores.count; b++)
    if (strcmp(params->cores.name[b], core) == 0) return (int)b;
  return (int)own;
}

uint32_t ax_machine_place(const ax_machine *machine, const ax_core *core, uint32_t ref) {
  uint32_t bodies = bodies_of(machine), io = machine->operand_count + machine->params->outs.count;
  uint32_t first = machine->first_place[((size_t)core->device * bodies + core->body) * machine->ref_count + ref];
  if (ref < io) return first;
  int owner = owner_of(machine, ref - io, core->body);
  return owner < 0 ? first : first + instance_of(machine, (uint32_t)owner, core->body, core->number);
}

/* --- Making --- */

static ax_status make_cores(ax_machine *machine) {
  uint32_t bodies = bodies_of(machine);
  int64_t count = 0, most = 1 << 20;
  for (uint32_t b = 0; b < bodies; b++) count += cores_of(machine, b, false) * machine->device_count;
  if (count > most)
    return ax_error(AX_INVALID_ARGUMENT, "a kernel on %lld cores; at most %lld can be run", (long long)count, (long long)most);
  machine->cores = ax_arena_alloc(&machine->arena, (size_t)count * sizeof machine->cores[0]);
  machine->first_core = ax_arena_alloc(&machine->arena, (size_t)bodies * machine->device_count * sizeof machine->first_core[0]);
  if (machine->cores == NULL || machine->first_core == NULL) return ax_out_of_memory((size_t)count * sizeof machine->cores[0]);
  for (uint32_t d = 0; d < machine->device_count; d++)
    for (uint32_t b = 0; b < bodies; b++) {
      int64_t cores = cores_of(machine, b, false);
      machine->first_core[d * bodies + b] = machine->core_count;
      for (int64_t c = 0; c < cores; c++)
        machine->cores[machine->core_count++] =
            (ax_core){.device = d, .body = b, .number = c, .place = machine->devices[d] * cores + c};
    }
  return AX_OK;
}

static ax_status make_place(ax_machine *machine, uint32_t *capacity, struct ax_ref_place place) {
  AX_TRY(ax_grow(&machine->places, sizeof machine->places[0], machine->place_count, 1, capacity));
  machine->places[machine->place_count++] = place;
  return AX_OK;
}

static ax_status make_places(ax_machine *machine) {
  uint32_t bodies = bodies_of(machine), refs = machine->ref_count, operands = machine->operand_count, capacity = 0;
  uint32_t io = operands + machine->params->outs.count;
  machine->first_place =
      ax_arena_alloc(&machine->arena, (size_t)machine->device_count * bodies * refs * sizeof machine->first_place[0]);
  if (machine->first_place == NULL) return ax_out_of_memory(0);
  for (uint32_t d = 0; d < machine->device_count; d++)
    for (uint32_t ref = 0; ref < refs; ref++)
      for (uint32_t b = 0; b < bodies; b++) {
        uint32_t *at = &machine->first_place[((size_t)d * bodies + b) * refs + ref];
        const uint32_t *of_device = &machine->first_place[(size_t)d * bodies * refs];
        uint32_t alias = ref >= operands && ref < io ? ax_alias_of_result(machine->params, ref - operands) : AX_NONE;
        int owner = ref < io ? -1 : owner_of(machine, ref - io, b);
        uint32_t first_body = owner < 0 ? 0 : (uint32_t)owner;
        bool has_own =
            owner >= 0 &&
            strcmp(ref - io < machine->params->scratch_cores.count ? machine->params->scratch_cores.name[ref - io] : "each",
                   "each") == 0;
        *at = machine->place_count;
        if (alias != AX_NONE)
          *at = of_device[alias];
        else if (b > 0 && !has_own)
          *at = of_device[ref];
        else
          for (int64_t i = 0; i < (owner < 0 ? 1 : cores_of(machine, first_body, true)); i++)
            AX_TRY(make_place(machine, &capacity, (struct ax_ref_place){d, owner < 0 ? AX_NONE : first_body, ref, (uint32_t)i}));
      }
  machine->first_barrier = machine->place_count;
  for (uint32_t d = 0; d < machine->device_count; d++)
    AX_TRY(make_place(machine, &capacity, (struct ax_ref_place){d, AX_NONE, refs, 0}));
  return AX_OK;
}

static ax_status make_codes(ax_machine *machine) {
  uint32_t bodies = bodies_of(machine);
  machine->codes = ax_arena_alloc(&machine->arena, bodies * sizeof machine->codes[0]);
  if (machine->codes == NULL) return ax_out_of_memory(0);
  for (uint32_t b = 0; b < bodies; b++) AX_TRY(ax_core_code_create(machine->params->bodies.v[b], &machine->codes[b]));
  return AX_OK;
}

/* Makes the code of a kernel over a grid, which has one body. */
static ax_status make_grid_code(ax_machine *machine, const ax_type *in) {
  ax_program *body;
  machine->codes = ax_arena_alloc(&machine->arena, sizeof machine->codes[0]);
  if (machine->codes == NULL) return ax_out_of_memory(sizeof machine->codes[0]);
  AX_TRY(ax_kernel_expand(machine->params, machine->eqn->in_count, in, &body));
  ax_status status = ax_core_code_create(body, &machine->codes[0]);
  ax_program_release(body);
  return status;
}

ax_status ax_machine_create(const ax_eqn *eqn, const ax_type *in, const ax_mesh *axes, uint32_t device_count,
                            const int64_t *devices, const ax_hooks *hooks, ax_machine **out) {
  *out = NULL;
  ax_machine *machine = ax_calloc(1, sizeof *machine);
  if (machine == NULL) return ax_out_of_memory(sizeof *machine);
  *machine = (ax_machine){.eqn = eqn,
                          .params = eqn->params,
                          .axes = axes,
                          .hooks = hooks,
                          .device_count = device_count,
                          .devices = devices,
                          .begins = device_count > 1 ? device_count : 0};
  machine->operand_count = eqn->in_count - (uint32_t)machine->params->consts;
  machine->ref_count = machine->operand_count + machine->params->outs.count + machine->params->scratch.count;
  ax_status status = ax_names_create(&machine->names);
  if (status == AX_OK) status = ax_kernel_has_grid(machine->params) ? make_grid_code(machine, in) : make_codes(machine);
  if (status == AX_OK) status = make_cores(machine);
  if (status == AX_OK) status = make_places(machine);
  if (status == AX_OK)
    *out = machine;
  else
    ax_machine_release(machine);
  return status;
}

ax_status ax_machine_of(const ax_eval_args *args, const ax_hooks *hooks, ax_machine **out) {
  ax_type *in;
  *out = NULL;
  AX_TRY(ax_kernel_operand_types(args, &in));
  ax_status status = ax_machine_create(args->eqn, in, args->axes, args->lanes, args->device, hooks, out);
  ax_free(in);
  return status;
}

void ax_machine_release(ax_machine *machine) {
  if (machine == NULL) return;
  for (uint32_t b = 0; machine->codes != NULL && b < bodies_of(machine); b++) ax_core_code_release(machine->codes[b]);
  ax_names_release(machine->names);
  ax_free(machine->places);
  ax_arena_deinit(&machine->arena);
  ax_free(machine);
}

/* --- Elsewhere --- */

/* The device of this id among the machine's. AX_INVALID_ARGUMENT: it is not here. */
static ax_status device_here(const ax_machine *machine, int64_t id, uint32_t *out) {
  for (uint32_t d = 0; d < machine->device_count; d++)
    if (machine->devices[d] == id) {
      *out = d;
      return AX_OK;
    }
  return ax_error(AX_INVALID_ARGUMENT, "device %lld does not run this kernel", (long long)id);
}

/* The core of the same body at these coordinates. */
static ax_status core_at(const ax_machine *machine, const ax_core *from, const ax_core_params *to, const int64_t *coordinates,
                         uint32_t *out) {
  const ax_mesh *mesh = &machine->params->bodies.v[from->body]->axes;
  int64_t place = from->place, cores = cores_of(machine, from->body, false);
  if (to->logical) place = coordinates[0] * cores + from->number;
  if (to->logical && (coordinates[0] < 0 || coordinates[0] >= ax_mesh_devices(mesh) / cores))
    return ax_error(AX_INVALID_ARGUMENT, "there is no device %lld: there are %lld", (long long)coordinates[0],
                    (long long)(ax_mesh_devices(mesh) / cores));
  for (uint32_t i = 0; i < to->axes.count; i++) {
    int axis = ax_mesh_find(mesh, to->axes.name[i]);
    int64_t stride = 1;
    if (axis < 0) return ax_error(AX_INVALID_ARGUMENT, "there is no axis \"%s\"", to->axes.name[i]);
    if (coordinates[i] < 0 || coordinates[i] >= mesh->axis[axis].size)
      return ax_error(AX_INVALID_ARGUMENT, "coordinate %lld along \"%s\", which has %lld", (long long)coordinates[i],
                      to->axes.name[i], (long long)mesh->axis[axis].size);
    for (uint32_t a = (uint32_t)axis + 1; a < mesh->count; a++) stride *= mesh->axis[a].size;
    place += (coordinates[i] - ax_mesh_coordinate(mesh, place, (uint32_t)axis)) * stride;
  }
  uint32_t device = 0;
  AX_TRY(device_here(machine, place / cores, &device));
  *out = machine->first_core[device * bodies_of(machine) + from->body] + (uint32_t)(place % cores);
  return AX_OK;
}

ax_status ax_state_away(const ax_state *state, uint32_t core, const ax_core_params *to, const int64_t *coordinates, uint32_t place,
                        uint32_t *out) {
  const ax_machine *machine = state->machine;
  *out = place;
  if (!to->logical && to->axes.count == 0) return AX_OK;
  uint32_t target = 0;
  AX_TRY(core_at(machine, &machine->cores[core], to, coordinates, &target));
  const ax_core *there = &machine->cores[target];
  if (place >= machine->first_barrier && place < machine->place_count) {
    *out = machine->first_barrier + there->device;
    return AX_OK;
  }
  if (place < machine->place_count) {
    const struct ax_ref_place *ref = &machine->places[place];
    uint32_t bodies = bodies_of(machine),
             first =
                 machine
                     ->first_place[((size_t)there->device * bodies + (ref->body == AX_NONE ? 0 : ref->body)) * machine->ref_count +
                                   ref->ref];
    *out = ref->body == AX_NONE ? first : first + instance_of(machine, ref->body, there->body, there->number);
    return AX_OK;
  }
  ax_name_key key = *ax_names_key(machine->names, AX_NAME_PLACE, place - machine->place_count);
  key.core =
      key.core - core + target; /* of the same scope; one for several cores is named by the first of them, which is as far away */
  if (!ax_names_find(machine->names, &key, out)) return ax_error(AX_INVALID_ARGUMENT, "the core meant has not opened this scope");
  *out += machine->place_count;
  return AX_OK;
}

uint32_t ax_machine_leader(const ax_machine *machine, uint32_t c, const ax_axes *along, int64_t *users) {
  const ax_core *core = &machine->cores[c];
  const ax_mesh *mesh = &machine->params->bodies.v[core->body]->axes;
  int64_t back = 0;
  *users = 1;
  for (uint32_t i = 0; i < along->count; i++) {
    int axis = ax_mesh_find(mesh, along->name[i]);
    int64_t stride = 1;
    for (uint32_t m = (uint32_t)axis + 1; m < mesh->count; m++) stride *= mesh->axis[m].size;
    back += ax_mesh_coordinate(mesh, core->place, (uint32_t)axis) * stride;
    *users *= mesh->axis[axis].size;
  }
  return c - (uint32_t)back;
}

int64_t ax_arrivals_of(const ax_pairs *arrivals, uint32_t scratch) {
  for (uint32_t i = 0; i < arrivals->count; i++)
    if (arrivals->v[i][0] == scratch) return arrivals->v[i][1];
  return 1;
}
