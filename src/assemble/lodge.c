/* Results in whose memory temporaries may lie before anything of the result is written.

   The memory of a result is there from the run's beginning to its end, and is not looked at by anybody else before the run has ended,
   nor when it has failed. Until the run first writes to the result, its memory holds nothing. So a temporary that has died by then may be in
   it, as it may be in scratch memory:

     result         .  .  .  .  .  w  w  .     written from here on
     temporary      w  r  r  .  .  .  .  .     in the same memory

   Only the device that has the part may touch both: results that other devices write to, read, or see by pointers are left out, as are
   those that fewer parts than devices hold. A result that is written in a loop is one from the loop's beginning on, since each iteration may
   write another piece of it. A result in the memory of a donated argument holds that argument. */
#include "assemble/lodge.h"

/* The position from which on the memory is the result's. */
static uint32_t begins_at(const ax_assembly *a, const ax_lifetime *life) {
  uint32_t first = life->first;
  for (uint32_t g = life->region; g != 0; g = a->regions[g].parent)
    if (a->regions[g].is_loop && a->regions[g].begin < first) first = a->regions[g].begin;
  return first;
}

/* images: by allocation, whether others are seen in its memory; NULL: none are. */
static bool may_be_host(const ax_assembly *a, const ax_lifetime *lives, const bool *images, uint32_t allocation) {
  const ax_buffer *buffer = &a->plan->buffers[allocation];
  if (buffer->kind != AX_BUFFER_TEMP || buffer->axes != ax_all_axes(&a->plan->mesh) || a->shared[allocation]) return false;
  if (images != NULL && (images[allocation] || a->pointed[allocation].has_pointers)) return false;
  return lives[allocation].first <= lives[allocation].last && ax_buffer_bytes(buffer) >= AX_HOST_UNIT;
}

ax_status ax_list_hosts(const ax_assembly *a, ax_arena *arena, const ax_lifetime *lives, ax_hosts *out) {
  const ax_plan *plan = a->plan;
  bool *images = a->pointed != NULL ? ax_arena_alloc(arena, plan->buffer_count) : NULL, *seen = ax_arena_alloc(arena, plan->buffer_count);
  *out = (ax_hosts){0};
  out->allocation = ax_arena_alloc(arena, plan->out_count * sizeof out->allocation[0]);
  out->place = ax_arena_alloc(arena, plan->out_count * sizeof out->place[0]);
  if (seen == NULL || out->allocation == NULL || out->place == NULL || (a->pointed != NULL && images == NULL))
    return ax_out_of_memory(plan->buffer_count);
  for (uint32_t i = 0; images != NULL && i < plan->buffer_count; i++)
    if (a->pointed[i].memory != i) images[a->pointed[i].memory] = images[i] = true;
  for (uint32_t k = 0; k < plan->out_count && !a->results_elsewhere; k++) {
    const uint32_t allocation = plan->buffers[plan->out[k]].allocation;
    if (seen[allocation] || !may_be_host(a, lives, images, allocation)) continue;
    seen[allocation] = true;
    out->allocation[out->count] = allocation;
    out->place[out->count++] =
        (ax_pack_place){begins_at(a, &lives[allocation]), ax_buffer_bytes(&plan->buffers[allocation]) / AX_HOST_UNIT * AX_HOST_UNIT};
  }
  return AX_OK;
}
