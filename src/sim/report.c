/* Simulations as text. */
#include "sim/report.h"

#include <math.h>

#include "sim/fold.h"

void ax_sim_seconds_text(ax_text *text, double seconds, int width) {
  static const struct {
    double least, factor;
    const char *unit;
  } units[] = {{1, 1, "s "}, {1e-3, 1e3, "ms"}, {1e-6, 1e6, "us"}, {0, 1e9, "ns"}};
  uint32_t u = 0;
  while (u + 1 < AX_COUNT(units) && seconds < units[u].least) u++;
  ax_text_add(text, "%*.4g %s", width, seconds * units[u].factor, units[u].unit);
}

/* "1.5e+06" with a unit's prefix: "1.5 M". */
static void add_amount(ax_text *text, double amount) {
  static const char prefixes[] = " kMGTPE";
  uint32_t p = 0;
  while (amount >= 1000 && prefixes[p + 1] != '\0') {
    amount /= 1000;
    p++;
  }
  ax_text_add(text, "%7.4g %c", amount, prefixes[p]);
}

void ax_sim_op_text(ax_text *text, const ax_simulated_op *op) {
  ax_text_add(text, "%s", op->name);
  if (op->algorithm != NULL) ax_text_add(text, " of %lld, %s", (long long)op->members, op->algorithm);
  if (op->location != NULL) ax_text_add(text, " (%s)", op->location);
  else if (op->line != 0) ax_text_add(text, " (line %u)", op->line);
}

/* --- Text --- */

static void add_ops(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "\n        start           end     under way    runs      flops      bytes  bound by\n");
  for (uint32_t i = 0; i < s->op_count; i++) {
    const ax_simulated_op *op = &s->ops[i];
    ax_sim_seconds_text(text, op->start, 10);
    ax_text_add(text, " ");
    ax_sim_seconds_text(text, op->end, 10);
    ax_text_add(text, " ");
    ax_sim_seconds_text(text, op->busy, 10);
    ax_text_add(text, "%8.6g  ", op->runs);
    add_amount(text, op->flops);
    ax_text_add(text, "  ");
    add_amount(text, op->bytes);
    ax_text_add(text, "  %-9s %c ", op->bound, op->critical ? '*' : ' ');
    ax_sim_op_text(text, op);
    ax_text_add(text, "\n");
  }
}

/* A line of the critical path: spans of one operation on one device that follow each other. */
typedef struct path_line {
  uint32_t first, end; /* spans */
} path_line;

static uint64_t key_of(const ax_simulation *s, const path_line *line) {
  const ax_simulated_span *first = &s->path[line->first];
  const uint32_t words[] = {first->op, first->device, line->end - line->first};
  return ax_hash_bytes(AX_HASH_SEED, words, sizeof words);
}

/* A span of a computation may be several runs in a row, which all take the same time. */
static double runs_of(const ax_simulation *s, const path_line *line) {
  const ax_simulated_op *op = &s->ops[s->path[line->first].op];
  const double seconds = s->path[line->end - 1].end - s->path[line->first].start;
  return op->algorithm == NULL && op->busy > 0 ? round(seconds * op->runs / op->busy) : line->end - line->first;
}

static void add_path_line(ax_text *text, const ax_simulation *s, const path_line *line) {
  const ax_simulated_span *first = &s->path[line->first];
  const double runs = runs_of(s, line);
  ax_sim_seconds_text(text, first->start, 10);
  ax_text_add(text, " ");
  ax_sim_seconds_text(text, s->path[line->end - 1].end, 10);
  ax_text_add(text, "  device %-6u ", first->device);
  ax_sim_op_text(text, &s->ops[first->op]);
  if (runs > 1) ax_text_add(text, ", %.0f runs", runs);
  ax_text_add(text, "\n");
}

/* Prints each repetition once, and below it how often it comes and when the last one ends. */
static void add_folds(ax_text *text, const ax_simulation *s, const path_line *lines, const ax_sim_fold *folds, uint32_t count) {
  enum { most = 24 };
  uint32_t printed = 0, left_out = 0;
  for (uint32_t f = 0; f < count; f++) {
    const ax_sim_fold *fold = &folds[f];
    if (printed >= most) {
      left_out += fold->period;
      continue;
    }
    for (uint32_t i = 0; i < fold->period; i++, printed++) add_path_line(text, s, &lines[fold->first + i]);
    if (fold->times == 1) continue;
    ax_text_add(text, "%13s", "to ");
    ax_sim_seconds_text(text, s->path[lines[fold->first + fold->period * fold->times - 1].end - 1].end, 11);
    ax_text_add(text, "  the same %u times", fold->times);
    ax_text_add(text, fold->period > 1 ? ": the %u lines above\n" : "\n", fold->period);
  }
  if (left_out > 0) ax_text_add(text, "%u more\n", left_out);
}

static ax_status add_path(ax_text *text, const ax_simulation *s) {
  if (s->path_count == 0) return AX_OK;
  path_line *lines = ax_alloc(s->path_count * sizeof lines[0]);
  uint64_t *keys = ax_alloc(s->path_count * sizeof keys[0]);
  ax_sim_fold *folds = NULL;
  uint32_t count = 0, fold_count = 0;
  ax_status status = lines != NULL && keys != NULL ? AX_OK : ax_out_of_memory(s->path_count * sizeof keys[0]);
  for (uint32_t i = 0, end; status == AX_OK && i < s->path_count; i = end) {
    for (end = i + 1; end < s->path_count && s->path[end].op == s->path[i].op && s->path[end].device == s->path[i].device; end++)
      continue;
    lines[count] = (path_line){i, end};
    keys[count] = key_of(s, &lines[count]);
    count++;
  }
  if (status == AX_OK) status = ax_sim_fold_make(keys, count, &folds, &fold_count);
  if (status == AX_OK) {
    ax_text_add(text, "\ncritical path (* above):\n");
    add_folds(text, s, lines, folds, fold_count);
  }
  ax_free(folds);
  ax_free(keys);
  ax_free(lines);
  return status;
}

static void add_links(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "\n     links   bytes/s   in use: mean    most\n");
  for (uint32_t i = 0; i < s->link_count; i++) {
    const ax_simulated_link *link = &s->links[i];
    ax_text_add(text, "%10lld %s", (long long)link->count, "");
    add_amount(text, link->bandwidth);
    ax_text_add(text, "        %5.1f %%  %5.1f %%  %s\n", 100 * link->mean, 100 * link->most, link->name);
  }
}

static void add_kernels(ax_text *text, const ax_simulation *s) {
  if (s->kernel_count == 0) return;
  ax_text_add(text, "\n kernel alone    acts      flops     copied       sent  computing  carrying\n");
  for (uint32_t i = 0; i < s->kernel_count; i++) {
    const ax_simulated_kernel *k = &s->kernels[i];
    ax_sim_seconds_text(text, k->seconds, 10);
    ax_text_add(text, "%8.6g  ", k->acts);
    add_amount(text, k->flops);
    ax_text_add(text, "  ");
    add_amount(text, k->copied);
    ax_text_add(text, "  ");
    add_amount(text, k->sent);
    ax_text_add(text, "   %5.1f %%    %5.1f %%  %s%s%s%s\n", 100 * k->computing, 100 * k->carrying, k->name,
                k->location[0] != '\0' ? " (" : "", k->location, k->location[0] != '\0' ? ")" : "");
  }
}

void ax_sim_bytes_text(ax_text *text, double bytes, int width, int digits) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 5) bytes /= 1000, unit++;
  ax_text_add(text, width > 0 ? "%*.*g %-2s" : "%*.*g %s", width, digits, bytes, units[unit]);
}

static void add_bytes(ax_text *text, double bytes) { ax_sim_bytes_text(text, bytes, 0, 4); }

/* What a device needs, and what the run takes of all. */
static void add_needs(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "memory ");
  if (s->memory > 0) add_bytes(text, s->memory);
  ax_text_add(text, s->memory > 0 ? " a device" : "of more than 1048576 devices is not counted");
  if (s->capacity > 0) ax_text_add(text, ", %s has ", s->memory > 0 ? "which" : "each");
  if (s->capacity > 0) add_bytes(text, s->capacity);
  if (s->joules > 0) ax_text_add(text, "; energy %.4g J", s->joules);
  if (s->price > 0) ax_text_add(text, "; price %.4g", s->price);
  ax_text_add(text, "\n");
  if (s->checkpoint_interval > 0)
    ax_text_add(text, "failures take %.2g %% of a long training, with a checkpoint every %.4g s\n", 100 * s->lost, s->checkpoint_interval);
}

static ax_status add_text(ax_text *text, const ax_simulation *s) {
  if (s->capacity > 0 && s->memory > s->capacity) {
    ax_text_add(text, "does not fit: a device needs ");
    add_bytes(text, s->memory);
    ax_text_add(text, " and has ");
    add_bytes(text, s->capacity);
    ax_text_add(text, "\n");
  }
  ax_text_add(text, "%lld device%s of the machine %s (%s)", (long long)s->devices, s->devices == 1 ? "" : "s", s->machine,
              s->topology);
  if (s->simulated < s->devices)
    ax_text_add(text, ", of which %lld stand%s for all", (long long)s->simulated, s->simulated == 1 ? "s" : "");
  ax_text_add(text, "\n%.6g messages, %.6g events\n", s->messages, s->events);
  if (s->at_least) ax_text_add(text, "at least: of loops that run until a condition says so one step is counted\n");
  ax_text_add(text, "total %s", "");
  ax_sim_seconds_text(text, s->seconds, 0);
  ax_text_add(text, " (%.9g s)\n", s->seconds);
  add_needs(text, s);
  if (s->op_count > 0) add_ops(text, s);
  AX_TRY(add_path(text, s));
  add_kernels(text, s);
  add_links(text, s);
  return AX_OK;
}

ax_status ax_simulation_print(const ax_simulation *simulation, ax_simulation_form form, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(simulation, "simulation"));
  if (form != AX_SIMULATION_TEXT && form != AX_SIMULATION_JSON && form != AX_SIMULATION_SVG)
    return ax_error(AX_INVALID_ARGUMENT, "simulation_print: the form is %d, which is none", (int)form);
  ax_status status = AX_OK;
  if (form == AX_SIMULATION_TEXT) status = add_text(&text, simulation);
  else if (form == AX_SIMULATION_JSON) ax_sim_trace_events(&text, simulation);
  else status = ax_sim_picture(&text, simulation);
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}
