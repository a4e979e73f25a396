#include "sim/moves.h"

#include <math.h>
#include <string.h>

#include "sim/switches.h"

/* --- Transfers that do the same --- */

static bool is_alike(const ax_sim_procedure *a, const ax_sim_procedure *b) {
  return a->algorithm == b->algorithm && ax_sim_procedure_same(a, b);
}

static uint64_t hash_of(const ax_sim_procedure *s) {
  uint64_t hash = ax_hash_word(AX_HASH_SEED, (uint64_t)s->kind * AX_ALGORITHM_COUNT + (uint64_t)s->algorithm);
  hash = ax_hash_word(hash, (uint64_t)s->bytes);
  hash = ax_hash_word(hash, (uint64_t)(uintptr_t)s->target);
  for (uint32_t p = 0; p < s->group.count; p++) hash = ax_hash_word(hash, (uint64_t)s->group.cycle[p].stride);
  return hash;
}

/* By a table of hashes with room for twice as many: transfer + 1, or 0. */
static ax_status find_alike(ax_sim_moves *m) {
  const ax_sim_transfer *all = m->work->transfers;
  const size_t room = 2 * (size_t)m->work->transfer_count + 1;
  uint32_t *table = ax_calloc(room, sizeof table[0]);
  if (table == NULL) return ax_out_of_memory(room * sizeof table[0]);
  for (uint32_t t = 0; t < m->work->transfer_count; t++) {
    size_t at = hash_of(&all[t].procedure) % room;
    while (table[at] != 0 && !is_alike(&all[table[at] - 1].procedure, &all[t].procedure)) at = (at + 1) % room;
    if (table[at] == 0) table[at] = t + 1;
    m->like[t] = table[at] - 1;
  }
  ax_free(table);
  return AX_OK;
}

ax_status ax_sim_moves_make(const ax_sim_work *work, const ax_sim_place *place, uint32_t images, double tick, ax_sim_moves *out) {
  *out = (ax_sim_moves){.work = work, .place = place, .tick = tick, .images = images};
  out->like = ax_alloc(work->transfer_count * sizeof out->like[0]);
  out->courses = ax_calloc(work->transfer_count, sizeof out->courses[0]);
  if (out->like == NULL || out->courses == NULL) return ax_out_of_memory(work->transfer_count * sizeof out->courses[0]);
  return find_alike(out);
}

void ax_sim_moves_deinit(ax_sim_moves *m) {
  for (uint32_t t = 0; m->courses != NULL && t < m->work->transfer_count; t++) {
    ax_sim_course_moves *course = &m->courses[t];
    for (uint32_t i = 0; course->messages != NULL && i < course->phases; i++) ax_free(course->messages[i]);
    ax_free(course->messages);
    ax_free(course->turns);
  }
  ax_free(m->courses);
  ax_free(m->like);
  ax_free(m->hops);
  ax_free(m->there);
  ax_sim_route_deinit(&m->route);
  *m = (ax_sim_moves){0};
}

/* --- Tables --- */

static const double most_kept = 1 << 22;       /* messages and turns in tables: 160 MB at most */
static const uint32_t most_hops = 1u << 23;    /* 128 MB; routes behind these are found again each time */

static const ax_sim_phase *phase_at(const ax_sim_moves *m, const ax_sim_at *at) {
  return &m->work->transfers[at->transfer].procedure.chains[at->chain].phases[at->phase];
}

static ax_status begin(ax_sim_moves *m, const ax_sim_procedure *s, ax_sim_course_moves *course) {
  for (uint32_t c = 0; c < s->chain_count; c++) {
    course->first[c] = course->phases;
    course->phases += s->chains[c].phase_count;
  }
  course->messages = ax_calloc((size_t)course->phases + 1, sizeof course->messages[0]);
  if (course->messages == NULL) return ax_out_of_memory(course->phases * sizeof course->messages[0]);
  const double turns = (double)m->images * course->phases;
  if (m->kept + turns > most_kept) return AX_OK;
  m->kept += turns;
  course->turns = ax_calloc((size_t)turns + 1, sizeof course->turns[0]);
  return course->turns != NULL ? AX_OK : ax_out_of_memory((size_t)turns * sizeof course->turns[0]);
}

static ax_sim_turn turn_of(const ax_sim_procedure *s, const ax_sim_phase *phase, int64_t device) {
  return (ax_sim_turn){.known = true,
                       .sends = (uint32_t)ax_sim_procedure_sends(s, phase, device),
                       .receives = (uint32_t)ax_sim_procedure_receives(s, phase, device)};
}

/* In a tree a device has something to do in two phases of all, more often than not. */
ax_status ax_sim_moves_turn(ax_sim_moves *m, const ax_sim_at *at, const ax_sim_turn **out) {
  ax_sim_course_moves *course = &m->courses[m->like[at->transfer]];
  const ax_sim_procedure *s = &m->work->transfers[at->transfer].procedure;
  const ax_sim_chain *chain = &s->chains[at->chain];
  if (course->messages == NULL) AX_TRY(begin(m, s, course));
  const bool kept = course->turns != NULL;
  ax_sim_turn *turn = &m->turn;
  if (kept) turn = &course->turns[(size_t)at->image * course->phases + course->first[at->chain] + at->phase];
  *out = turn;
  if (kept && turn->known) return AX_OK;
  const int64_t device = ax_sim_place_device(m->place, at->image);
  *turn = turn_of(s, &chain->phases[at->phase], device);
  for (turn->next = at->phase + 1; kept && turn->next < chain->phase_count; turn->next++) {
    const ax_sim_turn later = turn_of(s, &chain->phases[turn->next], device);
    if (later.sends > 0 || later.receives > 0) break;
  }
  return AX_OK;
}

static ax_status keep_route(ax_sim_moves *m, ax_sim_message *out) {
  AX_TRY(ax_grow(&m->hops, sizeof m->hops[0], m->hop_count, m->route.count, &m->hop_capacity));
  if (m->route.count > 0) memcpy(m->hops + m->hop_count, m->route.hops, m->route.count * sizeof m->hops[0]); /* none to oneself */
  out->hop_first = m->hop_count;
  out->hop_count = m->route.count;
  return AX_OK;
}

/* All that are at a switch send one message together. */
static ax_status find_switch(ax_sim_moves *m, const ax_sim_at *at, ax_sim_message *out) {
  const ax_sim_phase *phase = phase_at(m, at);
  const ax_sim_procedure *s = &m->work->transfers[at->transfer].procedure;
  uint32_t end = m->there_count;
  AX_TRY(ax_sim_switch_images(s, phase, m->place, ax_sim_place_device(m->place, at->image), &m->there, &end, &m->there_capacity));
  *out = (ax_sim_message){.image = m->there[m->there_count], .there_first = m->there_count, .there_count = end - m->there_count, .known = true};
  m->route.count = 0;
  for (uint32_t i = m->there_count; i < end; i++)
    AX_TRY(ax_sim_switch_route(m->place, phase, ax_sim_place_device(m->place, m->there[i]), &m->route));
  const double besides = phase->shift == 1 ? ax_sim_place_besides(m->place, 0, s->per_switch, phase->bytes) : 0;
  out->overhead = nearbyint(m->route.overhead / m->tick);
  out->latency = nearbyint((m->route.latency + besides) / m->tick);
  return keep_route(m, out);
}

/* Puts it into the table of the phase, for all that are there. */
static ax_status keep_switch(ax_sim_moves *m, const ax_sim_at *at, ax_sim_message *table) {
  ax_sim_message found;
  AX_TRY(find_switch(m, at, &found));
  m->hop_count += found.hop_count;
  m->there_count += found.there_count;
  for (uint32_t i = 0; i < found.there_count; i++) table[m->there[found.there_first + i]] = found;
  return AX_OK;
}

static ax_status find(ax_sim_moves *m, const ax_sim_at *at, int64_t step, int64_t k, ax_sim_message *out) {
  const ax_sim_phase *phase = phase_at(m, at);
  if (phase->move == AX_MOVE_SWITCH) return find_switch(m, at, out);
  const int64_t from = ax_sim_place_device(m->place, at->image);
  const int64_t to = ax_sim_procedure_target(&m->work->transfers[at->transfer].procedure, phase, step, k, from);
  AX_TRY(ax_sim_route_find(m->place, from, to, &m->route));
  *out = (ax_sim_message){.image = (uint32_t)ax_sim_place_image(m->place, to),
                          .known = true,
                          .overhead = nearbyint(ax_sim_place_overhead(m->place, from, to) / m->tick),
                          .latency = nearbyint((m->route.latency + ax_sim_place_besides(m->place, from, to, phase->bytes)) / m->tick)};
  return keep_route(m, out);
}

/* NULL in *out: too many to keep. */
static ax_status table_at(ax_sim_moves *m, const ax_sim_at *at, ax_sim_message **out) {
  const ax_sim_course_moves *course = &m->courses[m->like[at->transfer]];
  ax_sim_message **table = &course->messages[course->first[at->chain] + at->phase];
  *out = *table;
  if (*out != NULL) return AX_OK;
  const ax_sim_phase *phase = phase_at(m, at);
  const double messages = (double)phase->fan * (double)(phase->varied ? phase->repeat : 1) * m->images;
  if (m->kept + messages > most_kept) return AX_OK;
  m->kept += messages;
  *out = *table = ax_calloc((size_t)messages, sizeof *table[0]);
  return *table != NULL ? AX_OK : ax_out_of_memory((size_t)messages * sizeof *table[0]);
}

ax_status ax_sim_moves_message(ax_sim_moves *m, const ax_sim_at *at, int64_t step, int64_t k, const ax_sim_message **out) {
  ax_sim_message *message;
  AX_TRY(table_at(m, at, &message));
  *out = &m->last;
  if (message == NULL || m->hop_count > most_hops) return find(m, at, step, k, &m->last);
  const ax_sim_phase *phase = phase_at(m, at);
  message += (size_t)((phase->varied ? step * phase->fan : 0) + k) * m->images + at->image;
  *out = message;
  if (message->known) return AX_OK;
  if (phase->move == AX_MOVE_SWITCH) return keep_switch(m, at, message - at->image);
  AX_TRY(find(m, at, step, k, message));
  m->hop_count += message->hop_count;
  return AX_OK;
}
