/* How the inputs of a planned program are cut, in a form that a search can change: for each family of parameters, and for the
   batch, which dimension each axis of the mesh cuts. Parameters of one type are a family, as the weights of equal layers are. */
#ifndef AX_PLANNER_ARRANGEMENT_H
#define AX_PLANNER_ARRANGEMENT_H

#include "ir/text.h"
#include "planner/step.h"

enum { AX_PLANNER_AXES = 4, AX_WHOLE = -1 };

typedef struct ax_axis_cuts { /* by axis: the dimension that it cuts, or AX_WHOLE */
  int8_t axis[AX_PLANNER_AXES];
} ax_axis_cuts;

typedef struct ax_family {
  ax_type type;
  double bytes;  /* of all its parameters */
  int8_t experts; /* the dimension of experts; -1: there is none */
  bool layered;  /* the first dimension is that of layers, which a pipeline alone cuts */
} ax_family;

/* The families of a model, the largest first. Zero to start. */
typedef struct ax_families {
  uint32_t count;
  ax_family *list;
  uint32_t *of; /* by parameter */
} ax_families;
AX_MUST_USE ax_status ax_families_make(const ax_model *model, ax_families *out);
void ax_families_deinit(ax_families *families);

typedef struct ax_arrangement {
  ax_axis_cuts *family; /* by family; owned */
  ax_axis_cuts batch;  /* dimension 0 is that of samples */
  bool state_cut; /* the optimizer's state is cut by the axes that cut samples too, where its parameter is not */
  bool gathered;  /* what axes of the batch cut of parameters is gathered where it is used, so that the batch keeps its cut; experts
                     are not. Otherwise the partitioner weighs one against the other */
} ax_arrangement;
AX_MUST_USE ax_status ax_arrangement_copy(const ax_arrangement *from, const ax_families *families, ax_arrangement *out);
AX_MUST_USE ax_status ax_arrangement_whole(const ax_families *families, ax_arrangement *out); /* nothing is cut */
void ax_arrangement_deinit(ax_arrangement *layout);
bool ax_arrangement_equal(const ax_arrangement *a, const ax_arrangement *b, const ax_families *families);

/* Leaves out what the mesh's sizes do not divide. microbatches: those that the batch is also divided in. False: the batch cannot be
   cut so. */
bool ax_arrangement_fit(ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh, int64_t microbatches);
/* Cuts each family that `axis` does not cut yet along its longest dimension that is not cut and that it divides. */
void ax_arrangement_shard(ax_arrangement *layout, const ax_families *families, const ax_mesh *mesh, uint32_t axis);

/* Writes why ax_arrangement_fit refuses it, and which sizes it would not refuse: "16 samples in 1 microbatches over data=3: these
   do not divide the samples; data=2 and data=4 would". False: it does not refuse it. */
bool ax_arrangement_why_not(const ax_arrangement *layout, const ax_model *model, const ax_mesh *mesh, int64_t microbatches,
                            ax_text *text);

/* What an axis does, which gives it its name. */
typedef enum ax_axis_role {
  AX_ROLE_NONE,
  AX_ROLE_SAMPLES,
  AX_ROLE_SHARDS,
  AX_ROLE_EXPERTS,
  AX_ROLE_SEQUENCE,
  AX_ROLE_TENSOR,
  AX_ROLE_COUNT
} ax_axis_role;
/* The role of an axis of that name, as `data` or `model2`. AX_ROLE_COUNT: it is no such name. */
ax_axis_role ax_axis_role_named(const char *name);

/* Does the axis cut any parameters? */
bool ax_arrangement_cuts(const ax_arrangement *layout, const ax_families *families, uint32_t axis);
/* What it is called: "data parallel", "sequence and tensor parallel, fully sharded". */
void ax_arrangement_kind(const ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh, char *out,
                         size_t bytes);
/* Calls each axis by what it does: data, shard, expert, sequence, model; same, if it cuts nothing; a second one model2. */
void ax_arrangement_name_axes(const ax_arrangement *layout, const ax_model *model, const ax_families *families, ax_mesh *mesh);

/* Writes the spec of one array: "_,data+model". */
void ax_cuts_spec(const ax_axis_cuts *cuts, const ax_type *type, const ax_mesh *mesh, ax_text *text);
/* Writes what ax_program_with_shardings takes for the step. */
void ax_arrangement_specs(const ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh, ax_text *text);
/* Writes the specs of the program's own inputs, "; " between. stages: the first dimension of layers is cut by an axis `pipe` too.
   */
void ax_arrangement_in_specs(const ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh, bool stages,
                        ax_text *text);
/* What is held for a parameter: itself; what the optimizer keeps for it; or, of several stages, the sum of its gradients over the
   microbatches, which lies as the state does along all axes but the first, that of groups (stage_mesh.h). */
typedef enum ax_held_array { AX_HELD_PARAM, AX_HELD_STATE, AX_HELD_SUM } ax_held_array;
/* Writes the spec of what is held for parameter p. */
void ax_arrangement_param_spec(const ax_arrangement *layout, const ax_model *model, const ax_families *families,
                               const ax_mesh *mesh, uint32_t p, ax_held_array held, ax_text *text);
/* Bytes of a device by what they are for; `temporaries` and `total` are not set. */
void ax_arrangement_memory(const ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh,
                      ax_planned_memory *out);
/* Bytes of a device, of what is held for the parameters that are marked: by ax_held_array. Of those with layers this share. */
void ax_arrangement_used_memory(const ax_arrangement *layout, const ax_model *model, const ax_families *families,
                                const ax_mesh *mesh, const bool *used, double share, double held[AX_HELD_SUM + 1]);
/* Finds the layout that specs say which ax_arrangement_specs wrote, of a program that is trained, over the same mesh. state_cut is
   false, and so is gathered. AX_INVALID_ARGUMENT: an axis that the mesh does not have, or more dimensions than an input. */
AX_MUST_USE ax_status ax_arrangement_read(const char *specs, const ax_model *model, const ax_families *families,
                                          const ax_mesh *mesh, ax_arrangement *out);

#endif
