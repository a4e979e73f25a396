/* Collectives that are alike are surveyed once: what each algorithm takes for them where they are alone. From that there are
   several ways to do a program:

     each collective by the algorithm that is best for it alone; the same, but first with as few devices that differ as can be;
     all of them by one algorithm, for each that there is (what it does not do, as in the first way)
     the same, but in switches that add what takes less there

   When collectives are under way together, they get in one another's way, and where one makes devices unlike, all that follows is
   simulated for each device. So the ways are tried, each on the whole program, and the one with the least total is taken. Ways that
   make many more messages than another are tried last, and only where an estimate has them sooner than what was found. */
#include "sim/algorithms.h"

#include <math.h>
#include <string.h>

#include "sim/estimate.h"
#include "sim/rotation.h"

enum { ways_count = 2 * AX_ALGORITHM_COUNT + 1 };
static const double cheap_trial = 1e5; /* messages: some ten milliseconds; */
static const double dear_trial = 5e5;  /* half a second, where the estimate promises something; */
static const double most_repeats = 10; /* and so many times as many end a trial: loops are not in what was estimated */

typedef struct way {
  ax_algorithm wanted; /* BEST: none */
  bool modest;         /* with as few devices that differ as can be */
  bool switches;       /* in switches where that takes less */
  double work;         /* messages */
  double estimate;     /* seconds, about */
  bool tried;
  uint64_t hash;       /* of the algorithms that are taken */
} way;

typedef struct candidate {
  bool done; /* the algorithm does that at all */
  ax_sim_alone alone;
  double work;
  int64_t images;
} candidate;

typedef struct surveyed { /* collectives that are alike */
  const ax_sim_procedure *procedure;
  candidate by[AX_ALGORITHM_COUNT];
} surveyed;

typedef struct choosing {
  ax_sim_work *work;
  ax_sim_place *place;
  const ax_simulate_options *options;
  surveyed *all;
  uint32_t count, *of; /* of: by transfer, which of all */
  ax_sim_engine_result *known; /* of the best that was tried out */
} choosing;

/* --- How far devices are alike --- */

void ax_sim_work_unfold(ax_sim_place *place) {
  for (uint32_t d = 0; d < place->count; d++) place->digit[d].fold = place->digit[d].size;
  place->rotation_count = 0;
}

double ax_sim_work_fold(const ax_sim_work *work, ax_sim_place *place) {
  double messages = 0;
  ax_sim_work_unfold(place);
  ax_sim_place_fold(place);
  ax_sim_rotations_find(work, place);
  for (uint32_t t = 0; t < work->transfer_count; t++)
    if (!ax_sim_rotation_has(place, &work->transfers[t].procedure)) ax_sim_procedure_keep(&work->transfers[t].procedure, place);
  for (uint32_t p = 0; p < work->post_count; p++) ax_sim_procedure_keep(&work->posts[p].procedure, place);
  for (uint32_t t = 0; t < work->transfer_count; t++) messages += ax_sim_procedure_work(&work->transfers[t].procedure, false);
  return messages * (double)ax_sim_place_images(place);
}

double ax_sim_work_messages(const ax_sim_work *work, const ax_sim_place *place) {
  double messages = 0;
  for (uint32_t t = 0; t < work->transfer_count; t++) messages += ax_sim_procedure_work(&work->transfers[t].procedure, true);
  return messages * (double)ax_sim_place_images(place);
}

/* --- The survey --- */

static void count_images(const choosing *c, const ax_sim_procedure *procedure, candidate *out) {
  ax_sim_place place = *c->place;
  ax_sim_work_unfold(&place);
  ax_sim_place_fold(&place);
  ax_sim_procedure_keep(procedure, &place);
  out->images = ax_sim_place_images(&place);
  out->work = ax_sim_procedure_work(procedure, false) * (double)out->images;
}

/* An estimate goes through all images. With very many of them that takes seconds, but for trees, and it is only made where no algorithm
   has fewer. */
static bool is_soon_estimated(const candidate *made) {
  static const int64_t most_images = 1 << 12;
  static const double most_messages = 1 << 15;
  return made->images <= most_images || made->work <= most_messages;
}

static ax_status estimate_left(const choosing *c, ax_sim_procedure *procedure, surveyed *out) {
  int64_t least = INT64_MAX;
  for (int a = 0; a < AX_ALGORITHM_COUNT; a++)
    if (out->by[a].done && out->by[a].images < least) least = out->by[a].images;
  for (int a = 0; a < AX_ALGORITHM_COUNT; a++) {
    candidate *left = &out->by[a];
    if (!left->done || is_soon_estimated(left)) continue;
    left->done = left->images == least;
    if (!left->done) continue;
    AX_TRY(ax_sim_procedure_make(procedure, (ax_algorithm)a, &left->done));
    AX_TRY(ax_sim_procedure_estimate(procedure, c->place, &left->alone));
  }
  return AX_OK;
}

static ax_status survey(const choosing *c, ax_sim_procedure *procedure, surveyed *out) {
  const ax_algorithm wanted = c->options->algorithm;
  *out = (surveyed){.procedure = procedure};
  for (int a = AX_ALGORITHM_BEST + 1; a < AX_ALGORITHM_COUNT; a++) {
    if (out->by[wanted].done) continue; /* nothing else is asked for */
    const ax_algorithm next = wanted == AX_ALGORITHM_BEST ? (ax_algorithm)a
                              : a == 1                    ? wanted
                                                          : (ax_algorithm)(a <= (int)wanted ? a - 1 : a);
    if (next >= AX_ALGORITHM_GATHER && next != wanted) continue; /* runs over processes do these, and machines of processes alone */
    AX_TRY(ax_sim_procedure_make(procedure, next, &out->by[next].done));
    candidate *made = &out->by[next];
    if (made->done) count_images(c, procedure, made);
    if (made->done && is_soon_estimated(made)) AX_TRY(ax_sim_procedure_estimate(procedure, c->place, &made->alone));
  }
  return estimate_left(c, procedure, out);
}

static bool is_like(const ax_sim_procedure *a, const ax_sim_procedure *b) {
  return a->kind != AX_COLLECTIVE_PERMUTE && ax_sim_procedure_same(a, b);
}

/* The different collectives of a program are few. */
static ax_status survey_all(choosing *c) {
  ax_sim_work *w = c->work;
  c->all = ax_calloc(w->transfer_count, sizeof c->all[0]);
  c->of = ax_calloc(w->transfer_count, sizeof c->of[0]);
  if (c->all == NULL || c->of == NULL) return ax_out_of_memory(w->transfer_count * sizeof c->all[0]);
  for (uint32_t t = 0; t < w->transfer_count; t++) {
    ax_sim_procedure *procedure = &w->transfers[t].procedure;
    uint32_t k = 0;
    while (k < c->count && !is_like(c->all[k].procedure, procedure)) k++;
    if (k == c->count) AX_TRY(survey(c, procedure, &c->all[c->count++]));
    c->of[t] = k;
  }
  return AX_OK;
}

/* --- One way --- */

/* Modest: with as few devices that differ as can be. What cannot be simulated is the last choice. */
static bool is_better(const choosing *c, const candidate *a, const candidate *b, bool modest) {
  const bool a_fits = a->work <= c->options->most_messages, b_fits = b->work <= c->options->most_messages;
  if (a_fits != b_fits) return a_fits;
  if (!a_fits) return a->work < b->work;
  if (modest && a->images != b->images) return a->images < b->images;
  return a->alone.seconds < b->alone.seconds;
}

static ax_algorithm pick(const choosing *c, const surveyed *s, const way *way) {
  ax_algorithm best = AX_ALGORITHM_BEST;
  const candidate *wanted = &s->by[way->wanted], *in_switches = &s->by[AX_ALGORITHM_SWITCH];
  if (way->switches && wanted->done && in_switches->done && in_switches->alone.seconds < wanted->alone.seconds) return AX_ALGORITHM_SWITCH;
  if (wanted->done) return way->wanted;
  for (int a = AX_ALGORITHM_BEST + 1; a < AX_ALGORITHM_COUNT; a++)
    if (s->by[a].done && (best == AX_ALGORITHM_BEST || is_better(c, &s->by[a], &s->by[best], way->modest))) best = (ax_algorithm)a;
  return best;
}

/* Makes all procedures so, and folds the place. */
static ax_status take(const choosing *c, way *way) {
  ax_sim_work *w = c->work;
  way->hash = AX_HASH_SEED;
  for (uint32_t t = 0; t < w->transfer_count; t++) {
    const surveyed *s = &c->all[c->of[t]];
    const ax_algorithm picked = pick(c, s, way);
    ax_sim_work_op *op = &w->ops[w->transfers[t].op];
    bool done;
    AX_TRY(ax_sim_procedure_make(&w->transfers[t].procedure, picked, &done));
    op->bytes = ax_sim_procedure_bytes(&w->transfers[t].procedure);
    w->transfers[t].alone = s->by[picked].alone;
    op->seconds = s->by[picked].alone.seconds;
    op->bound = 2 * s->by[picked].alone.waiting > op->seconds ? "latency" : "bandwidth";
    way->hash = ax_hash_word(way->hash, (uint64_t)picked);
  }
  way->work = ax_sim_work_fold(w, c->place);
  return AX_OK;
}

/* --- The best of all --- */

/* Tries it out, and keeps what comes of it if that takes less than the best so far, in so many seconds (INFINITY: nothing). Infinite: it
   makes too many messages after all, or takes as long. */
static ax_status try_out(choosing *c, way *way, double messages, double least, double *seconds) {
  const ax_sim_limits limits = {.messages = fmin(messages, c->options->most_messages), .seconds = isfinite(least) ? least : 0};
  ax_sim_engine_result result;
  AX_TRY(take(c, way));
  const ax_status status = ax_sim_engine_run(c->work, c->place, limits, true, &result);
  *seconds = status == AX_OK ? result.seconds : INFINITY;
  if (status != AX_OK) return status == AX_INVALID_ARGUMENT ? AX_OK : status;
  ax_sim_engine_result_deinit(*seconds < least ? c->known : &result);
  if (*seconds < least) *c->known = result;
  return AX_OK;
}

static bool is_known(const way *ways, uint32_t count, uint64_t hash) {
  for (uint32_t i = 0; i < count; i++)
    if (ways[i].hash == hash) return true;
  return false;
}

/* The different ways; *least: the messages of the one with the fewest. */
static ax_status list_ways(const choosing *c, way *ways, uint32_t *count, double *least) {
  *count = 0;
  *least = INFINITY;
  for (int i = 0; i < ways_count; i++) {
    const int more = i - AX_ALGORITHM_COUNT; /* 0: the modest way */
    way next = {.wanted = (ax_algorithm)(more < 0 ? i : more > 0 ? more - 1 : 0), .modest = more == 0, .switches = more > 0};
    AX_TRY(take(c, &next));
    if (is_known(ways, *count, next.hash)) continue;
    ax_sim_estimate about;
    AX_TRY(ax_sim_work_estimate(c->work, c->place->machine->launch, &about));
    next.estimate = about.seconds;
    ways[(*count)++] = next;
    if (next.work < *least) *least = next.work;
  }
  return AX_OK;
}

/* Of the ways that make more messages than those that were tried, but not very many, the one with the least estimate, if that is less
   than so much; AX_NONE: there is none. */
static uint32_t next_dear(const way *ways, uint32_t count, double most, double dear, double estimate) {
  uint32_t next = AX_NONE;
  for (uint32_t i = 0; i < count; i++) {
    if (ways[i].work <= most || ways[i].work > dear || ways[i].tried || ways[i].estimate >= estimate) continue;
    next = i;
    estimate = ways[i].estimate;
  }
  return next;
}

/* The estimate lets no collectives of a group go on side by side, so it says nothing by itself; but it says the same of all ways. */
static ax_status try_dear(choosing *c, way *ways, uint32_t count, double most, uint32_t *best, double *least_seconds) {
  const double dear = fmax(dear_trial, most_repeats * most);
  for (uint32_t next; (next = next_dear(ways, count, most, dear, ways[*best].estimate)) != AX_NONE;) {
    double seconds;
    ways[next].tried = true;
    AX_TRY(try_out(c, &ways[next], most_repeats * dear, *least_seconds, &seconds));
    if (seconds >= *least_seconds) continue;
    *best = next;
    *least_seconds = seconds;
  }
  return AX_OK;
}

static ax_status take_best(choosing *c) {
  way ways[ways_count];
  uint32_t count, best = AX_NONE;
  double least, least_seconds = INFINITY;
  AX_TRY(list_ways(c, ways, &count, &least));
  const double most = least > cheap_trial ? least : cheap_trial;
  for (uint32_t i = 0; i < count; i++) {
    double seconds = 0;
    if (ways[i].work > most) continue;
    if (count > 1) AX_TRY(try_out(c, &ways[i], most_repeats * most, least_seconds, &seconds));
    if (best != AX_NONE && !(seconds < least_seconds || (isinf(least_seconds) && ways[i].work < ways[best].work))) continue;
    best = i;
    least_seconds = seconds;
  }
  if (count > 1) AX_TRY(try_dear(c, ways, count, most, &best, &least_seconds));
  return take(c, &ways[best]);
}

static ax_status choose(choosing *c) {
  way asked = {.wanted = c->options->algorithm};
  AX_TRY(survey_all(c));
  for (uint32_t p = 0; p < c->work->post_count; p++)
    AX_TRY(ax_sim_procedure_make(&c->work->posts[p].procedure, AX_ALGORITHM_DIRECT, &(bool){false}));
  if (asked.wanted == AX_ALGORITHM_BEST && c->work->transfer_count > 0) return take_best(c);
  AX_TRY(take(c, &asked));
  asked.modest = true;
  return asked.work > c->options->most_messages ? take(c, &asked) : AX_OK;
}

ax_status ax_algorithms_choose(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options,
                               ax_sim_engine_result *known) {
  choosing c = {.work = work, .place = place, .options = options, .known = known};
  const ax_status status = choose(&c);
  ax_free(c.all);
  ax_free(c.of);
  return status;
}

/* Whether the algorithm does any of the collectives, and they make few messages with it. */
static ax_status would_do(const choosing *c, ax_algorithm algorithm, bool *would) {
  way other = {.wanted = algorithm};
  *would = false;
  for (uint32_t k = 0; k < c->count && !*would; k++) *would = c->all[k].by[algorithm].done;
  if (!*would) return AX_OK;
  AX_TRY(take(c, &other));
  *would = ax_sim_work_messages(c->work, c->place) <= fmin(dear_trial, c->options->most_messages);
  return AX_OK;
}

static ax_status list_others(choosing *c, ax_text *names) {
  AX_TRY(survey_all(c));
  for (int a = AX_ALGORITHM_BEST + 1; a < AX_ALGORITHM_GATHER; a++) {
    bool would;
    AX_TRY(would_do(c, (ax_algorithm)a, &would));
    if (would) ax_text_add(names, "%s%s", names->length > 0 ? ", " : "", ax_algorithm_name((ax_algorithm)a));
  }
  return AX_OK;
}

ax_status ax_algorithms_refuse(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options) {
  ax_simulate_options any = *options;
  any.algorithm = AX_ALGORITHM_BEST;
  choosing c = {.work = work, .place = place, .options = &any};
  ax_text why = {0}, others = {0};
  ax_text_add(&why, "%s", ax_message());
  ax_status status = list_others(&c, &others);
  if (status == AX_OK && others.length > 0)
    ax_text_add(&why, " with the algorithm %s; these would do: best, %s", ax_algorithm_name(options->algorithm), others.data);
  if (status == AX_OK) status = ax_error(AX_INVALID_ARGUMENT, "%s", why.data != NULL ? why.data : "");
  ax_text_deinit(&why);
  ax_text_deinit(&others);
  ax_free(c.all);
  ax_free(c.of);
  return status;
}

static ax_status time_alone(const choosing *c, ax_kept_times *times) {
  const ax_sim_work *w = c->work;
  surveyed all;
  for (uint32_t t = 0; t < w->transfer_count; t++) {
    ax_sim_transfer *transfer = &w->transfers[t];
    if (times == NULL || !ax_kept_times_find(times, &transfer->procedure, c->place, &transfer->alone)) {
      AX_TRY(survey(c, &transfer->procedure, &all));
      transfer->alone = all.by[pick(c, &all, &(way){.wanted = AX_ALGORITHM_BEST})].alone;
      if (times != NULL) ax_kept_times_add(times, &transfer->procedure, c->place, &transfer->alone);
    }
    w->ops[transfer->op].seconds = transfer->alone.seconds;
  }
  return AX_OK;
}

ax_status ax_algorithms_time_alone(ax_sim_work *work, ax_sim_place *place, const ax_simulate_options *options,
                                   ax_kept_times *times) {
  choosing c = {.work = work, .place = place, .options = options};
  return time_alone(&c, times);
}
