/* A lowered program on a machine: its plan, algorithms for its collectives, how far devices are alike, the run, and what came of
   it. */
#include "sim/cluster.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array/executable.h"
#include "machine/caches.h"
#include "sim/algorithms.h"
#include "sim/engine.h"
#include "sim/rotation.h"

typedef struct simulating {
  const ax_lowered *lowered;
  const ax_cluster *machine;
  ax_simulate_options options;
  ax_sim_place place;
  ax_sim_work work;
  ax_timed_kernels *kernels;
  ax_sim_engine_result result;
  uint32_t *reported; /* by operation of the work: its number in the report */
  double *slow; /* by device; NULL */
} simulating;

static const double default_messages = 5e7;
enum { default_spans = 64 };

/* --- What came of it --- */

static bool is_copy(const ax_sim_work_op *a, const ax_sim_work_op *b) {
  return a->equation == b->equation && strcmp(a->name, b->name) == 0 && (a->transfer == AX_NONE) == (b->transfer == AX_NONE) &&
         a->flops == b->flops && a->bytes == b->bytes;
}

/* The operations [first, end) of a loop's body: if the second half does the same as the first, the loop does two steps in one, and
   if their number is odd, the last one stands behind it (src/plan/alternate.c). The report has one operation for each of a step. */
static void fold_body(simulating *s, uint32_t first, uint32_t end) {
  const ax_sim_work *w = &s->work;
  const uint32_t step = (end - first) / 2;
  if (step == 0 || end - first != 2 * step) return;
  for (uint32_t i = first; i < first + step; i++)
    if (!is_copy(&w->ops[i], &w->ops[i + step])) return;
  uint32_t behind = end;
  while (behind < w->op_count && behind - end < step && is_copy(&w->ops[first + behind - end], &w->ops[behind])) behind++;
  if (behind - end < step) behind = end;
  for (uint32_t i = first + step; i < behind; i++) s->reported[i] = first + (i - first) % step;
}

/* Numbers the operations of the report, in the order of the plan. */
static ax_status number_ops(simulating *s, uint32_t *count) {
  const ax_sim_work *w = &s->work;
  uint32_t first = AX_NONE; /* the first operation of the loop that was entered last; AX_NONE: it is over, or holds a loop */
  s->reported = ax_alloc(w->op_count * sizeof s->reported[0]);
  if (s->reported == NULL) return ax_out_of_memory(w->op_count * sizeof s->reported[0]);
  for (uint32_t i = 0; i < w->op_count; i++) s->reported[i] = i;
  for (uint32_t i = 0, op = 0; i < w->step_count; i++) { /* op: the next one, as each computation and each transfer has its own */
    const ax_sim_work_step *step = &w->steps[i];
    if (step->kind == AX_WORK_LOOP) first = op;
    else if (step->kind != AX_WORK_NEXT) op = step->op + 1;
    else if (first != AX_NONE) fold_body(s, first, op);
    if (step->kind == AX_WORK_NEXT) first = AX_NONE;
  }
  *count = 0;
  for (uint32_t i = 0; i < w->op_count; i++) s->reported[i] = s->reported[i] == i ? (*count)++ : s->reported[s->reported[i]];
  return AX_OK;
}

static const char *algorithm_of(const ax_sim_work *w, const ax_sim_work_op *op) {
  return op->transfer != AX_NONE ? ax_algorithm_name(w->transfers[op->transfer].procedure.algorithm) : NULL;
}

/* Adds the runs of an operation to those that are reported with it. */
static void give_op(const simulating *s, uint32_t index, ax_simulated_op *out, double images) {
  const ax_sim_work_op *op = &s->work.ops[index];
  const ax_sim_op_time *t = &s->result.ops[index];
  const double runs = t->runs / images;
  if (out->name == NULL)
    *out = (ax_simulated_op){.name = op->name,
                             .line = op->line,
                             .bound = op->bound,
                             .members = op->transfer != AX_NONE ? s->work.transfers[op->transfer].procedure.group.members : 1,
                             .algorithm = algorithm_of(&s->work, op),
                             .start = t->start,
                             .end = t->end};
  if (runs == 0) return;
  out->start = out->runs > 0 && out->start < t->start ? out->start : t->start;
  out->end = out->end > t->end ? out->end : t->end;
  out->busy += t->busy / images;
  out->runs += runs;
  out->flops += op->flops * runs;
  out->bytes += op->bytes * runs;
}

static ax_status give_ops(simulating *s, ax_simulation *out) {
  const ax_sim_work *w = &s->work;
  size_t bytes = 1;
  AX_TRY(number_ops(s, &out->op_count));
  for (uint32_t i = 0; i < w->op_count; i++) bytes += w->ops[i].location != NULL ? strlen(w->ops[i].location) + 1 : 0;
  out->ops = ax_calloc(out->op_count, sizeof out->ops[0]);
  char *text = out->texts = ax_alloc(bytes);
  if (out->ops == NULL || text == NULL) return ax_out_of_memory(bytes);
  for (uint32_t i = 0; i < w->op_count; i++) {
    ax_simulated_op *op = &out->ops[s->reported[i]];
    give_op(s, i, op, (double)out->simulated);
    if (w->ops[i].location == NULL || op->location != NULL) continue;
    op->location = strcpy(text, w->ops[i].location);
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
  span.device = (uint32_t)ax_sim_place_device(&s->place, span.device);
  span.op = s->reported[span.op];
  return span;
}

/* The path is found from its end: what each span waited for ended before it. A collective counts from when the member that held it
   up came to it, here or on another device. */
static ax_status give_spans(const simulating *s, ax_simulation *out) {
  const ax_sim_engine_result *r = &s->result;
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
    out->ops[s->reported[r->spans[i].span.op]].critical = true;
  }
  for (uint32_t i = 0; i < out->path_count; i++) out->path[i].start = i > 0 ? out->path[i - 1].end : 0;
  if (out->span_count > 0) qsort(out->spans, out->span_count, sizeof out->spans[0], by_start);
  return AX_OK;
}

static ax_status give_links(const simulating *s, ax_simulation *out) {
  const int64_t links = ax_sim_place_links(&s->place);
  out->link_count = ax_sim_place_kinds(&s->place);
  out->links = ax_calloc(out->link_count, sizeof out->links[0]);
  int64_t *count = ax_calloc(out->link_count, sizeof count[0]);
  ax_status status = out->links != NULL && count != NULL ? AX_OK : ax_out_of_memory(out->link_count * sizeof out->links[0]);
  for (uint32_t k = 0; k < out->link_count && status == AX_OK; k++) ax_sim_place_describe(&s->place, k, &out->links[k]);
  for (int64_t l = 0; l < links && status == AX_OK && out->seconds > 0; l++) {
    const uint32_t kind = ax_sim_place_kind(&s->place, l);
    ax_simulated_link *link = &out->links[kind];
    double mean = s->result.link_bytes[l], most = mean;
    (void)ax_sim_rotation_spread(&s->place, kind, s->result.link_bytes, l / out->link_count, &mean, &most);
    link->mean += mean / (link->bandwidth * out->seconds);
    link->most = fmax(link->most, most / (link->bandwidth * out->seconds));
    count[kind]++;
  }
  for (uint32_t k = 0; k < out->link_count && status == AX_OK; k++)
    if (count[k] > 0) out->links[k].mean /= (double)count[k];
  ax_free(count);
  return status;
}

static ax_status give_topology(const simulating *s, ax_simulation *out) {
  ax_text text = {0};
  ax_sim_place_topology(&s->place, &text);
  const ax_status status = text.failed ? ax_out_of_memory(0) : AX_OK;
  if (status == AX_OK) snprintf(out->topology, sizeof out->topology, "%s", text.data);
  ax_text_deinit(&text);
  return status;
}

static ax_status give(simulating *s, ax_simulation *out) {
  const int64_t images = ax_sim_place_images(&s->place);
  out->devices = s->place.devices;
  out->simulated = images < out->devices ? images : out->devices;
  out->seconds = s->result.seconds;
  out->capacity = s->place.machine->capacity;
  out->joules = s->place.machine->watts * (double)out->devices * out->seconds;
  out->price = s->place.machine->price * (double)out->devices * out->seconds / 3600;
  out->messages = s->result.messages * (double)out->devices / (double)out->simulated;
  out->events = s->result.events;
  out->at_least = s->work.at_least;
  out->kernels = s->kernels->kernels;
  out->kernel_count = s->kernels->count;
  memcpy(out->machine, s->place.machine->name, sizeof out->machine);
  AX_TRY(give_topology(s, out));
  out->timed = s->kernels;
  s->kernels = NULL;
  AX_TRY(give_ops(s, out));
  AX_TRY(give_spans(s, out));
  return give_links(s, out);
}

/* --- All of it --- */

/* Kernels are gone through with data, and so is the whole program, where there are any. */
static ax_status time_kernels(simulating *s, const ax_plan *plan) {
  s->kernels = ax_calloc(1, sizeof *s->kernels);
  if (s->kernels == NULL) return ax_out_of_memory(sizeof *s->kernels);
  return ax_plan_has_kernels(plan) ? ax_kernels_time(ax_lowered_program(s->lowered), &s->place, s->kernels) : AX_OK;
}

/* Young's interval, as far as checkpoints take less time than there is between failures. */
static void count_losses(const ax_cluster *machine, double held, ax_simulation *out) {
  if (!(machine->failures > 0) || !(machine->store > 0) || held <= 0) return;
  const double between = 1 / (machine->failures * (double)out->devices), checkpoint = held / machine->store;
  out->checkpoint_interval = sqrt(2 * checkpoint * between);
  const double lost = checkpoint / out->checkpoint_interval + (out->checkpoint_interval / 2 + machine->restart) / between;
  out->lost = lost < 1 ? lost : 1;
}

/* A factor says how much of a device's speed is left. With factors further from 1, times of a device and of the others would not be
   numbers of one scale, and sums of them neither exact nor, at last, finite. */
static const double most_factor = 1e6;

/* Devices that are slow are like no others, and so no device stands for another. */
static ax_status take_slow(simulating *s) {
  const ax_slow_device_list *list = &s->options.slow;
  if (list->count == 0) return AX_OK;
  s->slow = ax_alloc((size_t)s->place.devices * sizeof s->slow[0]);
  if (s->slow == NULL) return ax_out_of_memory((size_t)s->place.devices * sizeof s->slow[0]);
  for (int64_t d = 0; d < s->place.devices; d++) s->slow[d] = 1;
  for (uint32_t i = 0; i < list->count; i++) {
    const ax_slow_device *slow = &list->v[i];
    if (slow->device < 0 || slow->device >= s->place.devices)
      return ax_error(AX_INVALID_ARGUMENT, "simulate: device %lld, slower by %g: there are %lld devices, the first of them 0",
                      (long long)slow->device, slow->factor, (long long)s->place.devices);
    if (!(slow->factor >= 1 / most_factor && slow->factor <= most_factor))
      return ax_error(AX_INVALID_ARGUMENT, "simulate: device %lld, slower by %g: factors are from %g to %g",
                      (long long)slow->device, slow->factor, 1 / most_factor, most_factor);
    s->slow[slow->device] = slow->factor;
  }
  s->place.slow = s->slow;
  return AX_OK;
}

static ax_status simulate_plan(simulating *s, const ax_plan *plan, ax_simulation *out) {
  AX_TRY(ax_sim_place_make(s->machine, &plan->mesh, &s->place));
  AX_TRY(take_slow(s));
  AX_TRY(time_kernels(s, plan));
  AX_TRY(ax_sim_work_make(plan, &s->place, s->kernels, &s->work));
  if (s->slow != NULL) s->place.foldable = false; /* groups are those of the machine as it is without stragglers */
  AX_TRY(ax_algorithms_choose(&s->work, &s->place, &s->options, &s->result));
  if (s->result.ops != NULL && !s->options.every_device) return give(s, out);
  ax_sim_engine_result_deinit(&s->result);
  if (s->options.every_device) ax_sim_work_unfold(&s->place);
  const ax_sim_limits limits = {.messages = s->options.most_messages, .all = ax_sim_work_messages(&s->work, &s->place)};
  const ax_status status = ax_sim_engine_run(&s->work, &s->place, limits, !s->options.every_device, &s->result);
  if (status == AX_INVALID_ARGUMENT && s->options.algorithm != AX_ALGORITHM_BEST && !s->options.every_device)
    return ax_algorithms_refuse(&s->work, &s->place, &s->options);
  AX_TRY(status);
  return give(s, out);
}

typedef struct using_plan {
  simulating *s;
  ax_simulation *out;
} using_plan;

static ax_status use_plan(void *context, const ax_plan *plan, const ax_memory *memory) {
  const using_plan *u = context;
  AX_TRY(simulate_plan(u->s, plan, u->out));
  u->out->memory = ax_memory_bytes_all(&memory->device);
  count_losses(u->s->machine, (double)memory->device.arguments, u->out);
  return AX_OK;
}

static ax_status simulate_without_memory(simulating *s, ax_simulation *out) {
  ax_plan *plan;
  AX_TRY(ax_lowered_plan(s->lowered, &plan));
  const ax_status status = simulate_plan(s, plan, out);
  ax_plan_destroy(plan);
  return status;
}

/* The plan whose memory is counted is simulated. Counting goes through tables of all devices, so it is left out of very many. */
static ax_status simulate(simulating *s, ax_simulation *out) {
  static const int64_t most_devices = 1 << 20;
  const ax_mesh *mesh = ax_lowered_mesh(s->lowered);
  ax_runtime *runtime;
  ax_memory memory;
  if (mesh != NULL && ax_mesh_devices(mesh) > most_devices) return simulate_without_memory(s, out);
  AX_TRY(ax_runtime_create(&(ax_runtime_options){.workers = 1, .max_devices = most_devices}, &runtime));
  const ax_status status = ax_lowered_use_plan(runtime, s->lowered, &(ax_plan_use){use_plan, &(using_plan){s, out}}, &memory);
  ax_runtime_release(runtime);
  return status;
}

ax_status ax_simulate(const ax_lowered *lowered, const ax_cluster *machine, const ax_simulate_options *options,
                      ax_simulation *out) {
  simulating s = {.lowered = lowered, .machine = machine, .options = options != NULL ? *options : (ax_simulate_options){0}};
  *out = (ax_simulation){0};
  AX_TRY(ax_require(lowered, "lowered"));
  AX_TRY(ax_require(machine, "machine"));
  if ((unsigned)s.options.algorithm >= AX_ALGORITHM_COUNT)
    return ax_error(AX_INVALID_ARGUMENT, "simulate: the algorithm is %d, which is none", (int)s.options.algorithm);
  if (!(s.options.most_messages > 0)) s.options.most_messages = default_messages;
  if (s.options.spans == 0) s.options.spans = default_spans;
  const bool assumed = ax_caches_assume(!ax_cluster_is_here(machine));
  ax_status status = simulate(&s, out);
  (void)ax_caches_assume(assumed);
  if (status != AX_OK) ax_simulation_release(out);
  ax_sim_engine_result_deinit(&s.result);
  ax_sim_work_deinit(&s.work);
  if (s.kernels != NULL) ax_timed_kernels_deinit(s.kernels);
  ax_free(s.kernels);
  ax_free(s.reported);
  ax_free(s.slow);
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
