/* A lowered program on a machine: its plan, algorithms for its collectives, how far devices are alike, the run, and what came of it. */
#include "sim/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "exec/exec.h"
#include "sim/engine.h"

typedef struct simulating {
  ax_simulate_options options;
  ax_plan *plan;
  ax_place place;
  ax_work work;
  ax_timed_kernels *kernels;
  ax_engine_result result;
} simulating;

static const double default_messages = 5e7;
enum { default_spans = 64 };

/* --- Which algorithm --- */

typedef struct candidate {
  double seconds, waiting, work;
  int64_t images;
} candidate;

static ax_status weigh(const simulating *s, const ax_procedure *procedure, candidate *out) {
  ax_place place = s->place;
  if (!s->options.every_device) ax_place_fold(&place);
  ax_procedure_keep(procedure, &place);
  out->images = ax_place_images(&place);
  out->work = ax_procedure_work(procedure) * (double)out->images;
  return ax_procedure_estimate(procedure, &s->place, &out->seconds, &out->waiting);
}

/* Modest: with as few devices that differ as can be. What cannot be simulated is the last choice. */
static bool is_better(const simulating *s, const candidate *a, const candidate *b, bool modest) {
  const bool a_fits = a->work <= s->options.most_messages, b_fits = b->work <= s->options.most_messages;
  if (a_fits != b_fits) return a_fits;
  if (!a_fits) return a->work < b->work;
  if (modest && a->images != b->images) return a->images < b->images;
  return a->seconds < b->seconds;
}

static bool is_like(const ax_procedure *a, const ax_procedure *b) {
  return a->kind == b->kind && a->kind != AX_COLLECTIVE_PERMUTE && a->bytes == b->bytes && a->root == b->root &&
         memcmp(&a->group, &b->group, sizeof a->group) == 0;
}

static ax_status choose(simulating *s, ax_procedure *procedure, bool modest, candidate *chosen) {
  ax_algorithm best = AX_ALGORITHM_BEST;
  bool done;
  AX_TRY(ax_procedure_make(procedure, s->options.algorithm, &done));
  if (done) return weigh(s, procedure, chosen);
  for (int a = AX_ALGORITHM_BEST + 1; a < AX_ALGORITHM_COUNT; a++) {
    candidate c;
    AX_TRY(ax_procedure_make(procedure, (ax_algorithm)a, &done));
    if (!done) continue;
    AX_TRY(weigh(s, procedure, &c));
    if (best != AX_ALGORITHM_BEST && !is_better(s, &c, chosen, modest)) continue;
    *chosen = c;
    best = (ax_algorithm)a;
  }
  return ax_procedure_make(procedure, best, &done);
}

/* Equal collectives are done alike; the different ones of a program are few. */
static ax_status choose_all(simulating *s, bool modest) {
  ax_work *w = &s->work;
  candidate *chosen = ax_calloc(w->transfer_count, sizeof chosen[0]);
  uint32_t *distinct = ax_calloc(w->transfer_count, sizeof distinct[0]), count = 0;
  ax_status status = chosen != NULL && distinct != NULL ? AX_OK : ax_out_of_memory(w->transfer_count * sizeof chosen[0]);
  for (uint32_t t = 0; t < w->transfer_count && status == AX_OK; t++) {
    ax_procedure *procedure = &w->transfers[t].procedure;
    uint32_t k = 0;
    bool done;
    while (k < count && !is_like(&w->transfers[distinct[k]].procedure, procedure)) k++;
    if (k < count) {
      status = ax_procedure_make(procedure, w->transfers[distinct[k]].procedure.algorithm, &done);
      chosen[t] = chosen[distinct[k]];
    } else {
      status = choose(s, procedure, modest, &chosen[t]);
      distinct[count++] = t;
    }
    ax_work_op *op = &w->ops[w->transfers[t].op];
    op->bytes = status == AX_OK ? ax_procedure_bytes(procedure) : 0;
    op->seconds = chosen[t].seconds;
    op->bound = 2 * chosen[t].waiting > chosen[t].seconds ? "latency" : "bandwidth";
  }
  for (uint32_t p = 0; p < w->post_count && status == AX_OK; p++) status = ax_procedure_make(&w->posts[p].procedure, AX_ALGORITHM_DIRECT, &(bool){false});
  ax_free(chosen);
  ax_free(distinct);
  return status;
}

/* As far as all transfers allow; how many messages that makes, about. */
static double fold(simulating *s) {
  double work = 0;
  for (uint32_t d = 0; d < s->place.count; d++) s->place.digit[d].fold = s->place.digit[d].size;
  if (s->options.every_device) return 0;
  ax_place_fold(&s->place);
  for (uint32_t t = 0; t < s->work.transfer_count; t++) ax_procedure_keep(&s->work.transfers[t].procedure, &s->place);
  for (uint32_t p = 0; p < s->work.post_count; p++) ax_procedure_keep(&s->work.posts[p].procedure, &s->place);
  for (uint32_t t = 0; t < s->work.transfer_count; t++) work += ax_procedure_work(&s->work.transfers[t].procedure);
  return work * (double)ax_place_images(&s->place);
}

/* --- What came of it --- */

static ax_status give_ops(const simulating *s, ax_simulation *out) {
  const ax_work *w = &s->work;
  const double images = (double)out->simulated;
  size_t bytes = 1;
  for (uint32_t i = 0; i < w->op_count; i++) bytes += w->ops[i].location != NULL ? strlen(w->ops[i].location) + 1 : 0;
  out->ops = ax_calloc(w->op_count, sizeof out->ops[0]);
  char *text = out->texts = ax_alloc(bytes);
  if (out->ops == NULL || text == NULL) return ax_out_of_memory(bytes);
  out->op_count = w->op_count;
  for (uint32_t i = 0; i < w->op_count; i++) {
    const ax_work_op *op = &w->ops[i];
    const ax_op_time *t = &s->result.ops[i];
    const ax_procedure *procedure = op->transfer != AX_NONE ? &w->transfers[op->transfer].procedure : NULL;
    const double runs = t->runs / images;
    out->ops[i] = (ax_simulated_op){.name = op->name, .line = op->line, .bound = op->bound, .members = procedure != NULL ? procedure->group.members : 1,
                                    .algorithm = procedure != NULL ? ax_algorithm_name(procedure->algorithm) : NULL, .start = t->start, .end = t->end,
                                    .busy = t->busy / images, .runs = runs, .flops = op->flops * runs, .bytes = op->bytes * runs};
    if (op->location == NULL) continue;
    out->ops[i].location = strcpy(text, op->location);
    text += strlen(text) + 1;
  }
  return AX_OK;
}

static int by_start(const void *x, const void *y) {
  const ax_simulated_span *a = x, *b = y;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->device < b->device ? -1 : a->device > b->device;
}

static ax_simulated_span span_of(const simulating *s, uint32_t index) {
  ax_simulated_span span = s->result.spans[index].span;
  span.device = (uint32_t)ax_place_device(&s->place, span.device);
  return span;
}

/* The path is found from its end: what each span waited for ended before it. A collective counts from when the member that held it up came to it, here or
   on another device. */
static ax_status give_spans(const simulating *s, ax_simulation *out) {
  const ax_engine_result *r = &s->result;
  uint32_t length = 0;
  for (uint32_t i = r->last; i != AX_NONE; i = r->spans[i].cause) length++;
  out->spans = ax_alloc(r->span_count * sizeof out->spans[0]);
  out->path = ax_alloc(length * sizeof out->path[0]);
  if (out->spans == NULL || out->path == NULL) return ax_out_of_memory(r->span_count * sizeof out->spans[0]);
  out->path_count = length;
  out->all_spans = r->all_spans && out->simulated <= s->options.spans;
  for (uint32_t i = 0; i < r->span_count; i++)
    if (r->spans[i].span.device < s->options.spans) out->spans[out->span_count++] = span_of(s, i);
  for (uint32_t i = r->last; i != AX_NONE; i = r->spans[i].cause) {
    out->path[--length] = span_of(s, i);
    out->ops[r->spans[i].span.op].critical = true;
  }
  for (uint32_t i = 0; i < out->path_count; i++) out->path[i].start = i > 0 ? out->path[i - 1].end : 0;
  if (out->span_count > 0) qsort(out->spans, out->span_count, sizeof out->spans[0], by_start);
  return AX_OK;
}

static ax_status give_links(const simulating *s, ax_simulation *out) {
  const int64_t links = ax_place_links(&s->place);
  out->link_count = ax_place_kinds(&s->place);
  out->links = ax_calloc(out->link_count, sizeof out->links[0]);
  int64_t *count = ax_calloc(out->link_count, sizeof count[0]);
  ax_status status = out->links != NULL && count != NULL ? AX_OK : ax_out_of_memory(out->link_count * sizeof out->links[0]);
  for (uint32_t k = 0; k < out->link_count && status == AX_OK; k++) ax_place_describe(&s->place, k, &out->links[k]);
  for (int64_t l = 0; l < links && status == AX_OK && out->seconds > 0; l++) {
    ax_simulated_link *link = &out->links[ax_place_kind(&s->place, l)];
    const double use = s->result.link_bytes[l] / (link->bandwidth * out->seconds);
    link->mean += use;
    link->most = use > link->most ? use : link->most;
    count[ax_place_kind(&s->place, l)]++;
  }
  for (uint32_t k = 0; k < out->link_count && status == AX_OK; k++)
    if (count[k] > 0) out->links[k].mean /= (double)count[k];
  ax_free(count);
  return status;
}

static ax_status give(simulating *s, ax_simulation *out) {
  const int64_t images = ax_place_images(&s->place);
  out->devices = s->place.devices;
  out->simulated = images < out->devices ? images : out->devices;
  out->seconds = s->result.seconds;
  out->messages = s->result.messages * (double)out->devices / (double)out->simulated;
  out->events = s->result.events;
  out->at_least = s->work.at_least;
  out->kernels = s->kernels->kernels;
  out->kernel_count = s->kernels->count;
  memcpy(out->machine, s->place.machine->name, sizeof out->machine);
  out->timed = s->kernels;
  s->kernels = NULL;
  AX_TRY(give_ops(s, out));
  AX_TRY(give_spans(s, out));
  return give_links(s, out);
}

/* --- All of it --- */

static void look_for_kernel(void *context, ax_op *op) { *(bool *)context = *(bool *)context || op->kind == AX_OP_CORES; }

/* Kernels are gone through with data, and so is the whole program, where there are any. */
static ax_status time_kernels(simulating *s, const ax_lowered *lowered) {
  bool found = false;
  s->kernels = ax_calloc(1, sizeof *s->kernels);
  if (s->kernels == NULL) return ax_out_of_memory(sizeof *s->kernels);
  ax_block_walk(&s->plan->block, look_for_kernel, &found);
  return found ? ax_kernels_time(ax_lowered_program(lowered), &s->place, s->kernels) : AX_OK;
}

static ax_status simulate(simulating *s, const ax_lowered *lowered, const ax_cluster *machine, ax_simulation *out) {
  AX_TRY(ax_lowered_plan(lowered, &s->plan));
  AX_TRY(ax_place_make(machine, &s->plan->mesh, &s->place));
  AX_TRY(time_kernels(s, lowered));
  AX_TRY(ax_work_make(s->plan, &s->place, s->kernels, &s->work));
  AX_TRY(choose_all(s, false));
  if (fold(s) > s->options.most_messages) {
    AX_TRY(choose_all(s, true));
    (void)fold(s);
  }
  AX_TRY(ax_engine_run(&s->work, &s->place, s->options.most_messages, !s->options.every_device, &s->result));
  return give(s, out);
}

ax_status ax_simulate(const ax_lowered *lowered, const ax_cluster *machine, const ax_simulate_options *options, ax_simulation *out) {
  simulating s = {.options = options != NULL ? *options : (ax_simulate_options){0}};
  *out = (ax_simulation){0};
  AX_TRY(ax_require(lowered, "lowered"));
  AX_TRY(ax_require(machine, "machine"));
  if ((unsigned)s.options.algorithm >= AX_ALGORITHM_COUNT) return ax_error(AX_INVALID_ARGUMENT, "simulate: the algorithm is %d, which is none", (int)s.options.algorithm);
  if (!(s.options.most_messages > 0)) s.options.most_messages = default_messages;
  if (s.options.spans == 0) s.options.spans = default_spans;
  ax_status status = simulate(&s, lowered, machine, out);
  if (status != AX_OK) ax_simulation_release(out);
  ax_engine_result_deinit(&s.result);
  ax_work_deinit(&s.work);
  if (s.kernels != NULL) ax_timed_kernels_deinit(s.kernels);
  ax_free(s.kernels);
  ax_plan_destroy(s.plan);
  return status;
}

void ax_simulation_release(ax_simulation *simulation) {
  if (simulation == NULL) return;
  ax_free(simulation->ops);
  ax_free(simulation->spans);
  ax_free(simulation->path);
  ax_free(simulation->links);
  ax_free(simulation->texts);
  if (simulation->timed != NULL) ax_timed_kernels_deinit(simulation->timed);
  ax_free(simulation->timed);
  *simulation = (ax_simulation){0};
}
