/* A state is an array of words, so that it is copied and hashed as one:

     for each agent       the act that is next; acts done; a hash of what it has read; is it started; what additions have loaded
                          and not stored yet, by byte modulo 4
     for each semaphore   its count
     for each barrier     arrivals
     for each byte        a hash of who has written it, and what that one had read */
#include "check/script.h"

#include <string.h>

enum { loaded_bytes = 8, agent_words = 4 + loaded_bytes };

ax_status ax_script_add(ax_script *script, uint32_t agent, ax_act act, uint32_t skip) {
  if (agent >= script->agent_count) {
    AX_TRY(ax_grow(&script->agents, sizeof script->agents[0], script->agent_count, agent + 1 - script->agent_count,
                   &script->agent_capacity));
    while (script->agent_count <= agent) script->agents[script->agent_count++] = (ax_script_agent){0};
  }
  ax_script_agent *a = &script->agents[agent];
  AX_TRY(ax_grow(&a->acts, sizeof a->acts[0], a->count, 1, &a->capacity));
  a->acts[a->count++] = (ax_script_act){act, skip};
  return AX_OK;
}

static ax_status copy_record(const ax_act_record *r, ax_script *out) {
  for (uint32_t k = 0; k < r->objects.agent_count; k++) AX_TRY(ax_act_objects_add_agent(&out->objects, r->objects.agents[k]));
  for (uint32_t k = 0; k < r->objects.semaphore_count; k++)
    AX_TRY(ax_act_objects_add_semaphore(&out->objects, r->objects.semaphores[k]));
  for (uint32_t k = 0; k < r->objects.barrier_count; k++) AX_TRY(ax_act_objects_add_barrier(&out->objects, r->objects.barriers[k]));
  for (uint32_t k = 0; k < r->objects.region_count; k++) AX_TRY(ax_act_objects_add_region(&out->objects, r->objects.regions[k]));
  for (uint32_t k = 0; k < r->touches.touch_count; k++)
    AX_TRY(ax_touches_copy(&out->touches, &r->touches, &r->touches.touches[k]));
  for (uint32_t k = 0; k < r->step_count; k++) AX_TRY(ax_script_add(out, r->steps[k].agent, r->steps[k].act, 0));
  for (uint32_t k = 0; k < r->pending_count; k++) AX_TRY(ax_script_add(out, r->pending[k].agent, r->pending[k].act, 0));
  return AX_OK;
}

ax_status ax_script_of_record(const ax_act_record *record, ax_script *out) {
  *out = (ax_script){0};
  ax_status status = copy_record(record, out);
  if (status != AX_OK) ax_script_deinit(out);
  return status;
}

void ax_script_deinit(ax_script *script) {
  for (uint32_t a = 0; a < script->agent_count; a++) ax_free(script->agents[a].acts);
  ax_free(script->agents);
  ax_free(script->first_word);
  ax_act_objects_deinit(&script->objects);
  ax_touches_deinit(&script->touches);
  *script = (ax_script){0};
}

/* --- States --- */

static uint64_t *at_of(uint64_t *words, uint32_t agent) { return words + agent_words * agent; }
static uint64_t *count_of(const ax_script *s, uint64_t *words, uint32_t semaphore) {
  return words + agent_words * s->objects.agent_count + semaphore;
}
static uint64_t *arrivals_of(const ax_script *s, uint64_t *words, uint32_t barrier) {
  return words + agent_words * s->objects.agent_count + s->objects.semaphore_count + barrier;
}
static size_t word_count(const ax_script *s) { return (size_t)s->first_word[s->objects.region_count]; }

static ax_status create(void *context, void **state) {
  const ax_script *s = context;
  uint64_t *words = *state = ax_calloc(word_count(s), sizeof words[0]);
  if (words == NULL) return ax_out_of_memory(0);
  for (uint32_t a = 0; a < s->objects.agent_count; a++) at_of(words, a)[3] = s->objects.agents[a].initial;
  for (uint32_t k = 0; k < s->objects.semaphore_count; k++) *count_of(s, words, k) = (uint64_t)s->objects.semaphores[k].initial;
  return AX_OK;
}

static ax_status clone(void *context, const void *state, void **out) {
  size_t bytes = word_count(context) * sizeof(uint64_t);
  *out = ax_alloc(bytes);
  if (*out == NULL) return ax_out_of_memory(bytes);
  memcpy(*out, state, bytes);
  return AX_OK;
}

static void release(void *context, void *state) {
  (void)context;
  ax_free(state);
}

static uint32_t agents(void *context, const void *state) {
  (void)state;
  return ((const ax_script *)context)->objects.agent_count;
}

/* The amount that all agents but `but` have still to take from a semaphore. */
static int64_t still_taken(const ax_script *s, uint64_t *words, uint32_t semaphore, uint32_t but) {
  int64_t amount = 0;
  for (uint32_t a = 0; a < s->agent_count; a++)
    for (uint64_t k = *at_of(words, a); k < s->agents[a].count && a != but; k++) {
      const ax_act *act = &s->agents[a].acts[k].act;
      if (act->kind == AX_ACT_WAIT && act->object == semaphore) amount += act->amount;
    }
  return amount;
}

static bool can(const ax_script *s, uint64_t *words, uint32_t agent, const ax_act *act) {
  switch (act->kind) {
    case AX_ACT_SEEN:
      return (int64_t)*count_of(s, words, act->object) - still_taken(s, words, act->object, agent) <= act->amount;
    case AX_ACT_WAIT:
      return (int64_t)*count_of(s, words, act->object) >= act->amount;
    case AX_ACT_AWAIT:
      return (int64_t)*arrivals_of(s, words, act->object) >= act->amount * s->objects.barriers[act->object].arrivals;
    case AX_ACT_JOIN:
      return (int64_t)at_of(words, act->object)[1] >= act->amount;
    default:
      return true;
  }
}

static ax_status peek(void *context, void *state, uint32_t agent, ax_act *act, bool *enabled) {
  const ax_script *s = context;
  uint64_t *at = at_of(state, agent);
  *act = (ax_act){.kind = AX_ACT_NONE};
  *enabled = false;
  if (agent >= s->agent_count || at[3] == 0 || at[0] >= s->agents[agent].count) return AX_OK;
  *act = s->agents[agent].acts[at[0]].act;
  *enabled = can(s, state, agent, act);
  return AX_OK;
}

static uint64_t updated(ax_update update, uint64_t a, uint64_t b) {
  switch (update) {
    case AX_UPDATE_MUL:
      return a * b;
    case AX_UPDATE_MAX:
      return a > b ? a : b;
    case AX_UPDATE_MIN:
      return a < b ? a : b;
    case AX_UPDATE_AND:
      return a & b;
    case AX_UPDATE_OR:
      return a | b;
    case AX_UPDATE_XOR:
      return a ^ b;
    default:
      return a + b;
  }
}

/* What an addition has loaded is added to, and stored; until then other writes may depend on it. */
static void touch_for_sum(uint64_t *at, uint32_t agent, uint64_t *word, uint64_t byte, const ax_touch *touch) {
  uint64_t *loaded = &at[4 + byte % loaded_bytes];
  if (!touch->write) {
    *loaded = *word;
    return;
  }
  *word = updated((ax_update)touch->sum.update, *loaded, ax_hash_word(ax_hash_word(AX_HASH_SEED, agent), at[1] + 1));
  *loaded = 0;
}

static uint64_t written(const uint64_t *at, uint32_t agent) {
  uint64_t hash = ax_hash_word(ax_hash_word(at[2], agent), at[1] + 1);
  for (uint32_t k = 0; k < loaded_bytes; k++)
    if (at[4 + k] != 0) hash = ax_hash_word(hash, at[4 + k]);
  return hash;
}

/* Reads first, then writes. */
static void touch_memory(const ax_script *s, uint64_t *words, uint32_t agent, const ax_act *act) {
  uint64_t *at = at_of(words, agent);
  for (int write = 0; write < 2; write++)
    for (uint32_t t = act->touch_first; t < act->touch_first + act->touch_count; t++) {
      const ax_touch *touch = &s->touches.touches[t];
      if (touch->write != (write != 0)) continue;
      for (uint32_t r = touch->first; r < touch->first + touch->count; r++)
        for (uint64_t b = s->touches.runs[r].begin; b < s->touches.runs[r].end; b++) {
          uint64_t *word = &words[s->first_word[touch->region] + b];
          if (touch->sum.bits != 0)
            touch_for_sum(at, agent, word, b, touch);
          else if (write == 0)
            at[2] = ax_hash_word(at[2], *word);
          else
            *word = touch->scope ? 0 : written(at, agent);
        }
    }
}

static ax_status step(void *context, void *state, uint32_t agent, ax_act_fault *fault) {
  const ax_script *s = context;
  uint64_t *words = state, *at = at_of(words, agent);
  const ax_script_act *a = &s->agents[agent].acts[at[0]];
  (void)fault;
  touch_memory(s, words, agent, &a->act);
  switch (a->act.kind) {
    case AX_ACT_SIGNAL:
      *count_of(s, words, a->act.object) += (uint64_t)a->act.amount;
      break;
    case AX_ACT_WAIT:
      *count_of(s, words, a->act.object) -= (uint64_t)a->act.amount;
      break;
    case AX_ACT_READ:
      at[2] = ax_hash_word(at[2], *count_of(s, words, a->act.object));
      break;
    case AX_ACT_ARRIVE:
      ++*arrivals_of(s, words, a->act.object);
      break;
    case AX_ACT_START:
      at_of(words, a->act.object)[3] = 1;
      break;
    default:
      break;
  }
  at[0] += 1 + (a->skip > 0 && (at[2] & 1) != 0 ? a->skip : 0);
  at[1]++;
  return AX_OK;
}

static void hash(void *context, const void *state, uint64_t out[2]) {
  size_t count = word_count(context);
  const uint64_t *words = state;
  out[0] = AX_HASH_SEED;
  out[1] = ~AX_HASH_SEED;
  for (size_t k = 0; k < count; k++) {
    out[0] = ax_hash_word(out[0], words[k]);
    out[1] = ax_hash_word(out[1] + k, words[k]);
  }
}

/* A hash of memory and of the semaphores' counts. */
static uint64_t outcome(void *context, const void *state) {
  const ax_script *s = context;
  const uint64_t *words = state;
  uint64_t result = AX_HASH_SEED;
  for (uint32_t k = 0; k < s->objects.semaphore_count; k++) result = ax_hash_word(result, *count_of(s, (uint64_t *)state, k));
  for (size_t k = s->first_word[0]; k < word_count(s); k++) result = ax_hash_word(result, words[k]);
  return result;
}

static int64_t semaphore(void *context, const void *state, uint32_t number) {
  return (int64_t)*count_of(context, (uint64_t *)state, number);
}

static int64_t arrivals(void *context, const void *state, uint32_t barrier) {
  return (int64_t)*arrivals_of(context, (uint64_t *)state, barrier);
}

static size_t bytes(void *context, const void *state) {
  (void)state;
  return word_count(context) * sizeof(uint64_t);
}

ax_status ax_script_system(ax_script *script, ax_system *out) {
  const ax_act_objects *o = &script->objects;
  assert(script->agent_count <= o->agent_count);
  ax_free(script->first_word);
  script->first_word = ax_alloc(((size_t)o->region_count + 1) * sizeof script->first_word[0]);
  if (script->first_word == NULL) return ax_out_of_memory(0);
  script->first_word[0] = (uint64_t)agent_words * o->agent_count + o->semaphore_count + o->barrier_count;
  for (uint32_t r = 0; r < o->region_count; r++) script->first_word[r + 1] = script->first_word[r] + o->regions[r].bytes;
  *out = (ax_system){.context = script,
                     .objects = o,
                     .touches = &script->touches,
                     .create = create,
                     .clone = clone,
                     .release = release,
                     .agents = agents,
                     .peek = peek,
                     .step = step,
                     .hash = hash,
                     .outcome = outcome,
                     .semaphore = semaphore,
                     .arrivals = arrivals,
                     .bytes = bytes};
  return AX_OK;
}
