#include "sim/rotation.h"

#include <string.h>

enum { ways = 2 }; /* links of a device along a dimension: up and down */

/* --- Which rings --- */

/* By digit of the place: the only ring that uses its links, as 1 + the number of its transfer; spoiled: something else does. */
typedef struct uses {
  const ax_sim_work *work;
  uint32_t ring[AX_MAX_DIGITS];
  bool spoiled[AX_MAX_DIGITS];
} uses;

static bool is_same_group(const ax_sim_group *a, const ax_sim_group *b) { return memcmp(a, b, sizeof *a) == 0; }

static bool is_ring(const ax_sim_procedure *s) {
  return s->chain_count > 0 && s->chains[0].phase_count > 0 && s->chains[0].phases[0].move == AX_MOVE_WINDING;
}

/* It goes through whole dimensions, and its last step is one to a neighbour as well. */
static bool comes_back(const ax_sim_place *place, const ax_sim_group *group) {
  for (uint32_t p = 0; p < group->count; p++)
    if (group->cycle[p].digit == AX_NONE || group->cycle[p].size != place->digit[group->cycle[p].digit].size) return false;
  return group->winding > 1 && group->winding == group->count && group->cycle[group->wound[0]].size % 2 == 0;
}

static const ax_sim_group *ring_at(const uses *u, uint32_t digit) { return &u->work->transfers[u->ring[digit] - 1].procedure.group; }

static void spoil(const ax_sim_place *place, const ax_sim_group *group, uses *u) {
  for (uint32_t p = 0; p < group->count; p++)
    for (uint32_t d = 0; d < place->count; d++)
      if (group->cycle[p].digit == AX_NONE || group->cycle[p].digit == d) u->spoiled[d] = true;
}

static void use(const ax_sim_place *place, uint32_t transfer, uses *u) {
  const ax_sim_procedure *s = &u->work->transfers[transfer].procedure;
  if (!is_ring(s) || !comes_back(place, &s->group)) {
    spoil(place, &s->group, u);
    return;
  }
  for (uint32_t p = 0; p < s->group.count; p++) {
    const uint32_t d = s->group.cycle[p].digit;
    if (u->ring[d] == 0) u->ring[d] = transfer + 1;
    else if (!is_same_group(ring_at(u, d), &s->group)) u->spoiled[d] = true;
  }
}

static bool is_alone(const ax_sim_group *group, const uses *u) {
  for (uint32_t p = 0; p < group->count; p++)
    if (u->spoiled[group->cycle[p].digit]) return false;
  return true;
}

void ax_sim_rotations_find(const ax_sim_work *work, ax_sim_place *place) {
  uses u = {.work = work};
  place->rotation_count = 0;
  if (place->machine->topology != AX_TOPOLOGY_TORUS || !place->foldable) return;
  for (uint32_t t = 0; t < work->transfer_count; t++) use(place, t, &u);
  for (uint32_t p = 0; p < work->post_count; p++) spoil(place, &work->posts[p].procedure.group, &u);
  for (uint32_t d = 0; d < place->count; d++) {
    if (u.ring[d] == 0 || !is_alone(ring_at(&u, d), &u)) continue;
    if (ring_at(&u, d)->cycle[0].digit == d) place->rotations[place->rotation_count++] = ring_at(&u, d); /* once */
  }
}

bool ax_sim_rotation_has(const ax_sim_place *place, const ax_sim_procedure *s) {
  for (uint32_t i = 0; i < place->rotation_count && is_ring(s); i++)
    if (is_same_group(place->rotations[i], &s->group)) return true;
  return false;
}

/* --- Bytes on their links --- */

/* The part of all members whose step to the next, or back, is along wound cycle `at`, up or down. In a row all steps but the last are
   along the cycle itself; rows go up and down in turn. */
static double part_of(const ax_sim_group *group, uint32_t at, bool up, bool back) {
  const int64_t size = group->cycle[group->wound[at]].size;
  int64_t rows = 1;
  for (uint32_t i = 0; i < at; i++) rows *= group->cycle[group->wound[i]].size;
  int64_t ups = at == 0 ? size : (size - 1) * (rows - rows / 2), downs = at == 0 ? 0 : (size - 1) * (rows / 2);
  if (size == 2) ups += downs, downs = 0; /* two neighbours have one link each way, which counts as up */
  const bool as_up = size == 2 ? up : up != back;
  return (double)(as_up ? ups : downs) / (double)group->members;
}

/* The bytes that go from the first member of an image's ring over the links of all its dimensions, to the next or back. Only rings use
   these, so its one link there that is used is that of its step. */
static double bytes_of_step(const ax_sim_group *group, const double *used, bool back) {
  const uint32_t last = group->winding - 1;
  const ax_sim_cycle *cycle = &group->cycle[group->wound[back ? 0 : last]];
  return used[ways * cycle->digit + (back && cycle->size > 2)];
}

bool ax_sim_rotation_spread(const ax_sim_place *place, uint32_t kind, const double *used, int64_t image, double *mean, double *most) {
  for (uint32_t i = 0; i < place->rotation_count; i++) {
    const ax_sim_group *group = place->rotations[i];
    for (uint32_t at = 0; at < group->winding; at++) {
      if (group->cycle[group->wound[at]].digit != kind / ways) continue;
      const double *of_image = used + image * (int64_t)ways * place->count;
      *mean = *most = 0;
      for (int back = 0; back < 2; back++) {
        const double part = part_of(group, at, kind % ways == 0, back == 1), bytes = bytes_of_step(group, of_image, back == 1);
        *mean += part * bytes;
        if (part > 0 && bytes > *most) *most = bytes;
      }
      return true;
    }
  }
  return false;
}
