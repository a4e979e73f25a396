/* Simulations as text, as trace events, and as a picture. */
#include <math.h>
#include <string.h>

#include "axle/simulate.h"
#include "base/base.h"

/* "12.3 us" */
static void add_seconds(ax_text *text, double seconds, int width) {
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

static void add_name(ax_text *text, const ax_simulated_op *op) {
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
    add_seconds(text, op->start, 10);
    ax_text_add(text, " ");
    add_seconds(text, op->end, 10);
    ax_text_add(text, " ");
    add_seconds(text, op->busy, 10);
    ax_text_add(text, "%8.6g  ", op->runs);
    add_amount(text, op->flops);
    ax_text_add(text, "  ");
    add_amount(text, op->bytes);
    ax_text_add(text, "  %-9s %c ", op->bound, op->critical ? '*' : ' ');
    add_name(text, op);
    ax_text_add(text, "\n");
  }
}

/* Spans of one operation that follow each other are one line. */
static void add_path(ax_text *text, const ax_simulation *s) {
  enum { most = 24 };
  uint32_t lines = 0;
  if (s->path_count == 0) return;
  ax_text_add(text, "\ncritical path (* above):\n");
  for (uint32_t i = 0, end; i < s->path_count; i = end) {
    const ax_simulated_span *first = &s->path[i];
    for (end = i + 1; end < s->path_count && s->path[end].op == first->op && s->path[end].device == first->device; end++) continue;
    if (lines++ >= most) continue;
    add_seconds(text, first->start, 10);
    ax_text_add(text, " ");
    add_seconds(text, s->path[end - 1].end, 10);
    ax_text_add(text, "  device %-6u ", first->device);
    add_name(text, &s->ops[first->op]);
    if (end - i > 1) ax_text_add(text, ", %u runs", end - i);
    ax_text_add(text, "\n");
  }
  if (lines > most) ax_text_add(text, "%u more\n", lines - most);
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
    add_seconds(text, k->seconds, 10);
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

static void add_text(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "%lld device%s of the machine %s (%s)", (long long)s->devices, s->devices == 1 ? "" : "s", s->machine,
              s->topology);
  if (s->simulated < s->devices)
    ax_text_add(text, ", of which %lld stand%s for all", (long long)s->simulated, s->simulated == 1 ? "s" : "");
  ax_text_add(text, "\n%.6g messages, %.6g events\n", s->messages, s->events);
  if (s->at_least) ax_text_add(text, "at least: of loops that run until a condition says so one step is counted\n");
  ax_text_add(text, "total %s", "");
  add_seconds(text, s->seconds, 0);
  ax_text_add(text, " (%.9g s)\n", s->seconds);
  if (s->op_count > 0) add_ops(text, s);
  add_path(text, s);
  add_kernels(text, s);
  add_links(text, s);
}

/* --- Trace events --- */

/* Names of operations hold locations, which may hold anything. */
static void add_escaped(ax_text *text, const char *s) {
  for (; *s != '\0'; s++) {
    if ((unsigned char)*s < ' ') ax_text_add(text, "\\u%04x", (unsigned)*s);
    else ax_text_add(text, *s == '"' || *s == '\\' ? "\\%c" : "%c", *s);
  }
}

/* A kernel's acts, from its own beginning, are behind the devices: a process for each device of each kernel, and a row for each
   agent. */
static void add_kernel_acts(ax_text *text, const ax_simulation *s) {
  enum { apart = 1000000 };
  for (uint32_t k = 0; k < s->kernel_count; k++)
    for (uint32_t i = 0; i < s->kernels[k].span_count; i++) {
      const ax_simulated_act *act = &s->kernels[k].spans[i];
      ax_text_add(text, "{\"name\":\"");
      add_escaped(text, act->agent);
      ax_text_add(text, ": %s\",\"ph\":\"X\",\"ts\":%.6f,\"dur\":%.6f,\"pid\":%u,\"tid\":%u},\n", act->what, act->start * 1e6,
                  (act->end - act->start) * 1e6, apart * (1 + k) + act->device,
                  (uint32_t)(ax_hash_bytes(AX_HASH_SEED, act->agent, strlen(act->agent)) % apart));
    }
}

/* A device is a process, of which computing is row 0 and each collective a row of its own, as several may be under way at once. */
static void add_json(ax_text *text, const ax_simulation *s) {
  ax_text_add(text, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
  add_kernel_acts(text, s);
  for (uint32_t i = 0; i < s->span_count; i++) {
    const ax_simulated_span *span = &s->spans[i];
    const ax_simulated_op *op = &s->ops[span->op];
    ax_text name = {0};
    add_name(&name, op);
    ax_text_add(text, "{\"name\":\"");
    add_escaped(text, name.data != NULL ? name.data : "");
    ax_text_add(text, "\",\"ph\":\"X\",\"ts\":%.6f,\"dur\":%.6f,\"pid\":%u,\"tid\":%u}%s\n", span->start * 1e6,
                (span->end - span->start) * 1e6, span->device, op->algorithm != NULL ? 1 + span->op : 0,
                i + 1 < s->span_count ? "," : "");
    text->failed = text->failed || name.failed;
    ax_text_deinit(&name);
  }
  ax_text_add(text, "]}\n");
}

/* --- A picture --- */

enum { picture_width = 1000, left = 90, row_height = 16, most_devices = 32, most_boxes = 20000 };

static void add_xml(ax_text *text, const char *s) {
  for (; *s != '\0'; s++) {
    if (*s == '<') ax_text_add(text, "&lt;");
    else if (*s == '&') ax_text_add(text, "&amp;");
    else ax_text_add(text, "%c", *s);
  }
}

/* The rows: of each device that has spans, computing and collectives. */
typedef struct rows {
  uint32_t count, device[most_devices];
} rows;

static uint32_t row_of(const rows *r, uint32_t device) {
  uint32_t i = 0;
  while (i < r->count && r->device[i] != device) i++;
  return i;
}

static void add_box(ax_text *text, const ax_simulation *s, const rows *r, const ax_simulated_span *span) {
  const ax_simulated_op *op = &s->ops[span->op];
  const double scale = picture_width / (s->seconds > 0 ? s->seconds : 1), width = (span->end - span->start) * scale;
  const uint32_t row = 2 * row_of(r, span->device) + (op->algorithm != NULL);
  ax_text_add(text,
              "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,60%%,%d%%)\" fill-opacity=\"0.8\"><title>",
              left + span->start * scale, 30 + row * row_height, width > 0.2 ? width : 0.2, row_height - 3, span->op * 67 % 360,
              op->algorithm != NULL ? 70 : 50);
  ax_text name = {0}, times = {0};
  add_name(&name, op);
  add_seconds(&times, span->start, 0);
  ax_text_add(&times, " to %s", "");
  add_seconds(&times, span->end, 0);
  add_xml(text, name.data != NULL ? name.data : "");
  ax_text_add(text, ", %s</title></rect>\n", times.data != NULL ? times.data : "");
  text->failed = text->failed || name.failed || times.failed;
  ax_text_deinit(&name);
  ax_text_deinit(&times);
}

static void add_svg(ax_text *text, const ax_simulation *s) {
  rows r = {0};
  uint32_t boxes = 0;
  for (uint32_t i = 0; i < s->span_count && r.count < most_devices; i++)
    if (row_of(&r, s->spans[i].device) == r.count) r.device[r.count++] = s->spans[i].device;
  ax_text_add(text,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" font-family=\"sans-serif\" font-size=\"11\">\n",
              left + picture_width + 10, 40 + 2 * row_height * r.count);
  ax_text_add(text, "<text x=\"%d\" y=\"18\">%lld devices of ", left, (long long)s->devices);
  add_xml(text, s->machine);
  ax_text_add(text, ", ");
  add_seconds(text, s->seconds, 0);
  ax_text_add(text, "</text>\n");
  for (uint32_t i = 0; i < r.count; i++)
    ax_text_add(text, "<text x=\"4\" y=\"%u\">device %u</text><line x1=\"0\" x2=\"%d\" y1=\"%u\" y2=\"%u\" stroke=\"#ccc\"/>\n",
                42 + 2 * i * row_height, r.device[i], left + picture_width, 28 + 2 * i * row_height, 28 + 2 * i * row_height);
  for (uint32_t i = 0; i < s->span_count && boxes < most_boxes; i++) {
    if (row_of(&r, s->spans[i].device) == r.count) continue;
    add_box(text, s, &r, &s->spans[i]);
    boxes++;
  }
  ax_text_add(text, "</svg>\n");
}

ax_status ax_simulation_print(const ax_simulation *simulation, ax_simulation_form form, char **out) {
  ax_text text = {0};
  *out = NULL;
  AX_TRY(ax_require(simulation, "simulation"));
  if (form != AX_SIMULATION_TEXT && form != AX_SIMULATION_JSON && form != AX_SIMULATION_SVG)
    return ax_error(AX_INVALID_ARGUMENT, "simulation_print: the form is %d, which is none", (int)form);
  if (form == AX_SIMULATION_TEXT) add_text(&text, simulation);
  else if (form == AX_SIMULATION_JSON) add_json(&text, simulation);
  else add_svg(&text, simulation);
  return ax_text_finish(&text, out);
}
