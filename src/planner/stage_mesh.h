/* What the axes of a stage's mesh do.

     data | expert, sequence, model ..

   `data` comes first, and is one of several *groups* of devices: each trains on samples of its own, and gradients are added up over
   the groups at the end of a step. The axes behind are within a group, which does a microbatch together. What each of them cuts is
   said by the arrangement: of parameters, as tensor parallelism does; samples of a microbatch, and experts; the positions of each
   sample. So a pass is a program over a group, in which `data` is of size 1, and the update is one over the whole mesh.

   What axes within a group cut of samples is not yet added up in a device's own gradients. The sums of gradients lie as the
   optimizer's state lies within a group, so that each pass scatters what it adds up there. */
#ifndef AX_PLANNER_STAGE_MESH_H
#define AX_PLANNER_STAGE_MESH_H

#include "planner/arrangement.h"
#include "planner/pieces.h"

/* A group's mesh: the same, with one group. */
ax_mesh ax_stage_group(const ax_mesh *mesh);
/* The number of groups. */
int64_t ax_stage_groups(const ax_mesh *mesh);
/* Parts that axes within a group cut the samples of a microbatch in: so many divide them. */
int64_t ax_stage_sample_parts(const ax_arrangement *layout, const ax_mesh *mesh);
/* Whether carries are cut wherever samples are cut along their positions: one that has none of these dimensions is whole. */
bool ax_stage_cuts_carries(const ax_arrangement *layout, const ax_model *model, const ax_mesh *mesh);
/* Bytes of a microbatch of so many samples that a device of a stage sends one of the next: its part of the carries. */
double ax_stage_message_bytes(const ax_arrangement *layout, const ax_model *model, const ax_mesh *mesh, int64_t samples);
/* How inputs of passes and of the update lie. What *out has is in the arena. */
AX_MUST_USE ax_status ax_stage_specs(const ax_arrangement *layout, const ax_model *model, const ax_families *families,
                                     const ax_mesh *mesh, ax_arena *arena, ax_piece_specs *out);

#endif
