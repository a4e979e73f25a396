/* The parts of the partitioner (partition.c). No other file includes this header, but for cost.c, which counts by factors.

     whole_mesh.c   the mesh of all shard_maps in the program
     regroup.c      groups as axes of that mesh
     scope.c        from the axes of one program to those of that mesh
     factoring.c    the factors of an equation's dimensions, and the axes that cut them
     propagate.c    layouts for all values, from those that sharding_constraints and shard_maps give
     layouts.c      layouts for the operands and results of equations that hold programs
     explicit.c     sharding in types: layouts by rule
     rebuild.c      the walk that makes the per-device program
     operation.c    single operations in it, on blocks
     halo.c         the elements that windows see of neighbours' blocks
     join.c         arrays put one behind the other along a cut dimension
     redistribute.c the rounds of exchanges that both take
     host_calls.c   functions of the host that each device calls with its blocks, or that ask for layouts

   Layouts are pointers: equal layouts have the same address, and NULL is whole. A function that runs out of memory fails the
   trace. */
#ifndef AX_PARTITION_PARTITIONER_H
#define AX_PARTITION_PARTITIONER_H

#include "ir/memo.h"
#include "ir/prim.h"
#include "mesh/refine.h"
#include "partition/reshard.h"
#include "mesh/shard_map.h"

/* The meshes of all shard_maps and sharding_constraints at one depth. Meshes whose axes a shard_map around them leaves automatic
   are not among them. */
typedef struct ax_body_level {
  const ax_eqn **maps; /* the first shard_map or sharding_constraint over each different mesh; borrowed */
  uint32_t mesh_count, mesh_capacity, first, count; /* first, count: the level's axes in the whole mesh */
  ax_mesh refined; /* the common refinement of the meshes; axes without names */
  ax_mesh *cuts;   /* finer meshes that have groups along their axes */
  uint32_t cut_count, cut_capacity;
} ax_body_level;

/* The axes of a program's environment, and the axes of the whole mesh that each of them is made of. */
typedef struct ax_scope {
  struct ax_scope *next;
  uint32_t depth; /* shard_maps around the program that add devices */
  ax_mesh axes;
  ax_axis_list runs[AX_MAX_AXES];
} ax_scope;

/* The axes that cut each of an equation's factors. */
typedef struct ax_cuts {
  ax_axis_list by[AX_MAX_FACTORS];
} ax_cuts;
/* An equation's factors. They hold until ax_factoring_of is called for the next equation. */
typedef struct ax_factoring {
  ax_factors factors;
  ax_factored *in, *out;
  uint32_t capacity;
} ax_factoring;

typedef struct ax_partitioner {
  ax_body_level *levels;
  uint32_t level_count, level_capacity;
  bool unchecked; /* a shard_map is unchecked, or a body with automatic axes has messages */
  bool plain;     /* kernels are replaced by equal programs without them, where a rule `plain` gives one */
  bool ungroups;  /* groups are to become axes, or to be dissolved */
  bool grouped;   /* the program has groups */
  ax_mesh mesh;
  ax_arena arena;   /* memory until the partitioner is done */
  ax_memo memo;     /* so that a program that many equations hold is looked at once */
  ax_scope *scopes; /* a list of the different scopes */
  ax_factoring factoring; /* factors of the current equation */
} ax_partitioner;

/* ax_whole_mesh_find collects the meshes of all shard_maps and constraints; ax_whole_mesh_make then makes one mesh of them.
   AX_ABSENT: there is no mesh that all of them are made of. */
AX_MUST_USE ax_status ax_whole_mesh_find(ax_partitioner *p, const ax_program *program);
AX_MUST_USE ax_status ax_whole_mesh_make(ax_partitioner *p);

/* --- Groups --- */

/* Cuts the named axes of `mesh` finer, so that each group has the members along some of the finer axes. *out has no names.
   False: no cut does that. */
bool ax_mesh_cut(const ax_mesh *mesh, const ax_axes *names, ax_mesh *out);
/* Finds the axes, among the named ones of `mesh` and in their order, along which the members of each group lie. False: there are
   no such axes. */
bool ax_groups_along(const ax_mesh *mesh, const ax_axes *names, ax_axes *out);

/* --- Scopes --- */

ax_axis_set ax_scope_set(const ax_scope *s, ax_axis_set set);
ax_axes ax_scope_names(const ax_partitioner *p, const ax_scope *s, const ax_axes *names);
ax_type ax_scope_type(const ax_partitioner *p, const ax_scope *s, const ax_type *type);
/* The type of a device's block of a value that `spec` cuts; NULL: whole. Blocks may end in padding. */
ax_type ax_scope_block(const ax_partitioner *p, const ax_scope *s, const ax_type *type, const ax_spec *spec);
/* The scope of a shard_map's body. NULL: the trace has failed. */
const ax_scope *ax_scope_body(ax_partitioner *p, const ax_scope *outer, const ax_shard_map_params *params);
/* Whether some of the scope's axes are automatic. */
bool ax_scope_lays_out(const ax_scope *s);
/* Translates a layout on `mesh`, that of a shard_map or a sharding_constraint in this scope, to the whole mesh. */
const ax_spec *ax_spec_on(ax_partitioner *p, const ax_scope *s, const ax_mesh *mesh, const ax_spec *spec);
/* ax_spec_inward: the layout that a shard_map's body sees of a value that lies as `spec` around it. It has the axes that are
   automatic inside, as far as they divide `block`, the type of the value in the body's scope. ax_spec_outward goes back: in each
   dimension it has the axes of the map's own spec, then those of the layout inside. */
const ax_spec *ax_spec_inward(ax_partitioner *p, const ax_scope *inner, const ax_type *block, const ax_spec *spec);
const ax_spec *ax_spec_outward(ax_partitioner *p, const ax_spec *own, const ax_spec *inside);
/* The one address of all layouts equal to *spec; NULL: it cuts nothing. Layouts are compared by their bytes: unused ones must be
   zero. */
const ax_spec *ax_spec_unique(ax_partitioner *p, const ax_spec *spec);
/* Moves each dimension d to d + by, and drops those that would be below 0. by + the spec's rank is at most AX_MAX_RANK. */
ax_spec ax_spec_moved(const ax_spec *spec, int by);
/* ax_spec_stacked: the layout of an array, from that of its slices along dimension 0; whole if it would have too many
   dimensions. ax_spec_unstacked goes back. */
const ax_spec *ax_spec_stacked(ax_partitioner *p, const ax_spec *spec);
const ax_spec *ax_spec_unstacked(ax_partitioner *p, const ax_spec *spec);

/* --- Propagation --- */

/* Asks the equation's primitive for its factors. False: the trace has failed. */
bool ax_factoring_of(ax_factoring *f, const ax_program *program, const ax_eqn *eqn);
void ax_factoring_deinit(ax_factoring *f);
/* Reads off a layout which axes cut the factors of an array of this type. Sets cuts->by for the factors that the array has, and
   leaves out axes that cut none of them. */
void ax_cuts_read(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, const ax_type *type,
                  const ax_spec *spec, ax_cuts *cuts);
/* Whether dimension d is a single factor, or the dimension that windows go over. Axes that do not divide it may cut it. */
bool ax_factor_is_all(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d);
/* Whether propagation carries layouts through dimension d. It does, except along a dimension that windows go over if a block of
   positions sees much more or much less than a block of elements. */
bool ax_factor_flows(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d);
/* The layout of an array whose factors are cut as `cuts` says. A factor is cut only if those before it in its dimension are cut
   to single elements. */
ax_spec ax_cuts_write(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, uint32_t rank,
                      const ax_cuts *cuts);

/* Finds layouts for the values of a program and of the programs in it, from those that shard_maps and sharding_constraints give.
   It does not enter a shard_map that leaves no axis automatic. It finds none if the scope has no automatic axis and there is no
   mesh at its depth. */
void ax_propagate(ax_partitioner *p, const ax_scope *s, const ax_program *program);
/* The layouts that ax_propagate found, by value. NULL: it found none, and all values are whole. */
const ax_spec *const *ax_propagated(ax_partitioner *p, const ax_scope *s, const ax_program *program);
/* The layout that ax_propagate found for value v; NULL: whole. */
const ax_spec *ax_propagated_at(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v);
/* Whether value v is used once, as an operand, and is no result of the program. False, too, if ax_propagate has not seen the
   program. */
bool ax_propagated_once(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v);

/* --- Layouts --- */

/* The layouts in which an equation of `program` that holds programs takes its operands and gives its results, as propagation
   found them. A call's results are not set, because they lie as its body makes them. */
void ax_region_layouts(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, const ax_spec **in,
                       const ax_spec **out);

/* --- The walk --- */

/* Allocates the records of a program's values, with their types; no value is held yet. NULL: the trace has failed. */
ax_held *ax_held_alloc(ax_partitioner *p, const ax_program *program);
/* Binds an equation of one operation on blocks, in layouts that move few bytes. lies: as ax_propagated gives them. The axes in
   its parameters have the names of the whole mesh. */
void ax_bind_operation(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn,
                       const ax_spec *const *lies, ax_held *held);
/* The value's block in the layout `spec`, varying as its type does. NULL: the whole value. */
ax_value ax_held_here(const ax_partitioner *p, ax_held *held, const ax_spec *spec);
/* Binds the call of a function that is called with blocks, or answers one that asks how a value lies (ir/callback.h). False: the equation
   is neither; nothing is bound. */
bool ax_bind_host_call(ax_partitioner *p, const ax_scope *s, const ax_eqn *eqn, ax_held *held);
/* Binds the equations of `program` in the current trace. held: by value; the caller has set those of the inputs. */
void ax_rebuild(ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_held *held);

#endif
