/* The parts of the partitioner (partition.c), which only they include.

     whole_mesh.c   the mesh of all shard_maps in the program
     regroup.c      groups as axes of that mesh
     scope.c        from the axes of one of its programs to those of that mesh
     propagate.c    how values are to lie, from sharding_constraints and shard_maps on
     layouts.c      what of this holds for the operands and results of equations that hold programs
     rebuild.c      the walk that makes the per-device program
     operation.c    single operations in it, on blocks
     halo.c         what windows see of their neighbours' blocks

   Layouts are pointers: equal ones are the same, and NULL is whole. Whoever finds that there is no memory fails the trace. */
#ifndef AX_PARTITION_PARTITIONER_H
#define AX_PARTITION_PARTITIONER_H

#include "ir/memo.h"
#include "mesh/refine.h"
#include "partition/reshard.h"
#include "mesh/shard_map.h"

/* Of all shard_maps and sharding_constraints at one depth, but those over axes that are automatic around them. */
typedef struct ax_body_level {
  const ax_eqn **maps; /* the first shard_map over each of the different meshes; borrowed */
  uint32_t mesh_count, mesh_capacity, first, count; /* its axes of the whole mesh */
  ax_mesh refined; /* these, without names */
  ax_mesh *cuts;   /* that groups would have, where there is a refinement */
  uint32_t cut_count, cut_capacity;
} ax_body_level;

/* What the axes of a program's environment are made of in the whole mesh. */
typedef struct ax_scope {
  struct ax_scope *next;
  uint32_t depth; /* shard_maps around it, of those that add devices */
  ax_mesh axes;
  ax_axis_list runs[AX_MAX_AXES];
} ax_scope;

/* The axes that cut each of an equation's factors. */
typedef struct ax_cuts {
  ax_axis_list by[AX_MAX_FACTORS];
} ax_cuts;
/* An equation's factors, until the next equation's. */
typedef struct ax_factoring {
  ax_factors factors;
  ax_factored *in, *out;
  uint32_t capacity;
} ax_factoring;

typedef struct ax_partitioner {
  ax_body_level *levels;
  uint32_t level_count, level_capacity;
  bool unchecked; /* one of the shard_maps is */
  bool plain;     /* without kernels, where there is a program without */
  bool ungroups;  /* groups are to become axes, or go */
  bool grouped;   /* there are some */
  ax_mesh mesh;
  ax_arena arena;   /* for the time of the work */
  ax_memo memo;     /* likewise: a program held by many equations is looked at once */
  ax_scope *scopes; /* the different ones */
  ax_factoring factoring; /* of the equation at hand */
} ax_partitioner;

/* Finds all shard_maps; then makes the mesh for them. AX_ABSENT: there is none for all. */
AX_MUST_USE ax_status ax_whole_mesh_find(ax_partitioner *p, const ax_program *program);
AX_MUST_USE ax_status ax_whole_mesh_make(ax_partitioner *p);

/* --- Groups --- */

/* The mesh with its named axes cut so that the groups along them are those along some of the parts. False: no cuts make them so. */
bool ax_mesh_cut(const ax_mesh *mesh, const ax_axes *names, ax_mesh *out);
/* The axes among the named, of `mesh`, along which the members of each group are, in their order. False: there are none that. */
bool ax_groups_along(const ax_mesh *mesh, const ax_axes *names, ax_axes *out);

/* --- Scopes --- */

ax_axis_set ax_scope_set(const ax_scope *s, ax_axis_set set);
ax_axes ax_scope_names(const ax_partitioner *p, const ax_scope *s, const ax_axes *names);
ax_type ax_scope_type(const ax_partitioner *p, const ax_scope *s, const ax_type *type);
/* The type of the block that `spec` says. */
ax_type ax_scope_block(const ax_partitioner *p, const ax_scope *s, const ax_type *type, const ax_spec *spec);
/* Of the body of a shard_map. NULL: the trace has failed. */
const ax_scope *ax_scope_body(ax_partitioner *p, const ax_scope *outer, const ax_shard_map_params *params);
/* Whether some of its axes are automatic. */
bool ax_scope_lays_out(const ax_scope *s);
/* A layout on the mesh of a shard_map or a sharding_constraint in this scope, as one on the whole mesh. */
const ax_spec *ax_spec_on(ax_partitioner *p, const ax_scope *s, const ax_mesh *mesh, const ax_spec *spec);
/* Of a value's layout around a shard_map what its body sees, in whose scope blocks of it have this type: the axes that are
   automatic there, as far as they divide. And back: in each dimension the axes of the map's own spec, then these. */
const ax_spec *ax_spec_inward(ax_partitioner *p, const ax_scope *inner, const ax_type *block, const ax_spec *spec);
const ax_spec *ax_spec_outward(ax_partitioner *p, const ax_spec *own, const ax_spec *inside);
/* The one that equals it, which has nothing but zeros where it says nothing. */
const ax_spec *ax_spec_unique(ax_partitioner *p, const ax_spec *spec);
/* Dimension d becomes d + by; those that would be below 0 go. by + its rank is at most AX_MAX_RANK. */
ax_spec ax_spec_moved(const ax_spec *spec, int by);
/* A layout of slices as one of what they are stacked to, and back. A layout of too many dimensions is whole. */
const ax_spec *ax_spec_stacked(ax_partitioner *p, const ax_spec *spec);
const ax_spec *ax_spec_unstacked(ax_partitioner *p, const ax_spec *spec);

/* --- Propagation --- */

/* False: the trace has failed. */
bool ax_factoring_of(ax_factoring *f, const ax_program *program, const ax_eqn *eqn);
void ax_factoring_deinit(ax_factoring *f);
/* The axes by which an array of this type that lies so has its factors cut: cuts->by of those it has. Axes that fall into none are
   left out. */
void ax_cuts_read(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, const ax_type *type,
                  const ax_spec *spec, ax_cuts *cuts);
/* Whether dimension d is one factor, which may be cut by axes that do not divide it. */
bool ax_factor_is_all(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d);
/* Whether layouts are carried through it: of a dimension that windows go over, where a block of positions sees about a block of
   it. */
bool ax_factor_flows(const ax_factors *factors, const ax_factored *tensor, const ax_type *type, uint32_t d);
/* How it lies with its factors cut so: a factor can be cut only when those before it in its dimension are cut to the end. */
ax_spec ax_cuts_write(const ax_mesh *mesh, const ax_factors *factors, const ax_factored *tensor, uint32_t rank,
                      const ax_cuts *cuts);

/* Finds how values are to lie, of the program and of all in it but what shard_maps hold that leave no axis automatic, where these
   or sharding_constraints say something. */
void ax_propagate(ax_partitioner *p, const ax_scope *s, const ax_program *program);
/* By value, what was found; NULL: nothing was, as nothing is said: all values are whole. */
const ax_spec *const *ax_propagated(ax_partitioner *p, const ax_scope *s, const ax_program *program);
/* Of one value. */
const ax_spec *ax_propagated_at(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v);
/* Whether one operand of one equation is all that the value is used for. */
bool ax_propagated_once(ax_partitioner *p, const ax_scope *s, const ax_program *program, uint32_t v);

/* --- Layouts --- */

/* How an equation of `program` that holds programs takes its operands and gives its results: as propagation found. A call's results
   are left out, as they come as its body makes them. */
void ax_region_layouts(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn, const ax_spec **in,
                       const ax_spec **out);

/* --- The walk --- */

/* Room for the values of a program, which are not held yet. NULL: the trace has failed. */
ax_held *ax_held_alloc(ax_partitioner *p, const ax_program *program);
/* An equation of one operation on blocks, laid out so that little has to be moved; lies: as ax_propagated. The names of axes in its
   parameters are those of the whole mesh. */
void ax_bind_operation(ax_partitioner *p, const ax_scope *s, const ax_program *program, const ax_eqn *eqn,
                       const ax_spec *const *lies, ax_held *held);
/* The equations of `program`, bound in the trace in progress. held: by value; those of the inputs are set. */
void ax_rebuild(ax_partitioner *p, const ax_scope *s, const ax_program *program, ax_held *held);

#endif
