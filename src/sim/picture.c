/* A simulation as a picture: two rows for each device, computing above and collectives below, over a time axis, with a legend.

   The steps of a long loop are drawn once. The first step is marked "x500", and the time of the others is cut out: a gap stands for
   it, behind which the axis goes on with the time after the last step. What repeats is found on the first device that has spans.

     pieces:   |  0 .. 2 us  |  2 .. 5 us, x500  | gap |  1.5 ms .. 1.6 ms  | */
#include <math.h>
#include <string.h>

#include "sim/fold.h"
#include "sim/report.h"

enum {
  wide = 1000, /* pixels of the time axis */
  left = 90,
  top = 40,
  row_height = 16,
  gap = 18, /* pixels of a time that is cut out */
  most_devices = 32,
  most_boxes = 20000,
  legend_width = 350,
  legend_columns = 3,
  most_legend = 36,
  letters = 46, /* of a name in the legend */
  ticks = 8
};

/* A time that is drawn, from `start` to `end`, `times` in a row; what lies between it and the next piece is cut out. */
typedef struct piece {
  double start, end, x;
  uint32_t times;
} piece;

typedef struct sim_picture {
  ax_text *text;
  const ax_simulation *s;
  uint32_t device_count, device[most_devices];
  piece *pieces;
  uint32_t piece_count;
  double scale; /* pixels a second */
  bool *drawn;  /* by operation */
} sim_picture;

static void add_xml(ax_text *text, const char *s, size_t most) {
  for (size_t i = 0; s[i] != '\0' && i < most; i++) {
    if (s[i] == '<')
      ax_text_add(text, "&lt;");
    else if (s[i] == '&')
      ax_text_add(text, "&amp;");
    else
      ax_text_add(text, "%c", s[i]);
  }
  if (strlen(s) > most) ax_text_add(text, "..");
}

static void add_op(ax_text *text, const ax_simulated_op *op, size_t most) {
  ax_text name = {0};
  ax_sim_op_text(&name, op);
  add_xml(text, name.data != NULL ? name.data : "", most);
  text->failed = text->failed || name.failed;
  ax_text_deinit(&name);
}

static uint32_t row_of(const sim_picture *p, uint32_t device) {
  uint32_t i = 0;
  while (i < p->device_count && p->device[i] != device) i++;
  return i;
}

static uint32_t bottom_of(const sim_picture *p) { return top + 2 * row_height * p->device_count; }

/* --- Pieces of time --- */

/* The spans of the first device, in order, and their operations as keys. */
static ax_status take_first(const sim_picture *p, uint32_t **spans, uint64_t **keys, uint32_t *count) {
  const ax_simulation *s = p->s;
  *spans = ax_alloc(s->span_count * sizeof **spans);
  *keys = ax_alloc(s->span_count * sizeof **keys);
  *count = 0;
  if (*spans == NULL || *keys == NULL) return ax_out_of_memory(s->span_count * sizeof **keys);
  for (uint32_t i = 0; i < s->span_count; i++) {
    if (s->spans[i].device != p->device[0]) continue;
    (*spans)[*count] = i;
    (*keys)[(*count)++] = s->spans[i].op;
  }
  return AX_OK;
}

/* Cuts the steps of a repetition out, but the first. */
static void cut(sim_picture *p, const ax_sim_fold *fold, const uint32_t *spans, uint32_t count) {
  const ax_simulated_span *all = p->s->spans;
  piece *last = &p->pieces[p->piece_count - 1];
  const uint32_t next = fold->first + fold->period * fold->times;
  const double begin = all[spans[fold->first]].start, second = all[spans[fold->first + fold->period]].start,
               after = next < count ? all[spans[next]].start : p->s->seconds;
  if (!(begin >= last->start && second > begin && after > second)) return;
  last->end = begin;
  p->pieces[p->piece_count++] = (piece){.start = begin, .end = second, .times = fold->times};
  p->pieces[p->piece_count++] = (piece){.start = after, .end = p->s->seconds, .times = 1};
}

/* Gives each piece its place: all time that is drawn has one scale. */
static void place_pieces(sim_picture *p) {
  double drawn = 0, x = left;
  uint32_t gaps = 0;
  for (uint32_t i = 0; i < p->piece_count; i++) {
    drawn += p->pieces[i].end - p->pieces[i].start;
    gaps += p->pieces[i].times > 1;
  }
  p->scale = (wide - (gaps < wide / (2 * gap) ? gaps : wide / (2 * gap)) * gap) / (drawn > 0 ? drawn : 1);
  for (uint32_t i = 0; i < p->piece_count; i++) {
    piece *now = &p->pieces[i];
    now->x = x;
    x += (now->end - now->start) * p->scale + (now->times > 1 ? gap : 0);
  }
}

static ax_status make_pieces(sim_picture *p) {
  uint32_t *spans = NULL, count = 0, fold_count = 0;
  uint64_t *keys = NULL;
  ax_sim_fold *folds = NULL;
  ax_status status = take_first(p, &spans, &keys, &count);
  if (status == AX_OK) status = ax_sim_fold_make(keys, count, &folds, &fold_count);
  if (status == AX_OK && (p->pieces = ax_alloc((1 + 2 * (size_t)fold_count) * sizeof p->pieces[0])) == NULL)
    status = ax_out_of_memory((1 + 2 * (size_t)fold_count) * sizeof p->pieces[0]);
  if (status == AX_OK) {
    p->pieces[p->piece_count++] = (piece){.start = 0, .end = p->s->seconds, .times = 1};
    for (uint32_t f = 0; f < fold_count; f++)
      if (folds[f].times > 1) cut(p, &folds[f], spans, count);
    place_pieces(p);
  }
  ax_free(folds);
  ax_free(keys);
  ax_free(spans);
  return status;
}

/* The piece in which a time lies, or behind which it is cut out. */
static const piece *piece_at(const sim_picture *p, double time) {
  uint32_t low = 0, high = p->piece_count;
  while (high - low > 1) {
    const uint32_t middle = (low + high) / 2;
    if (p->pieces[middle].start <= time)
      low = middle;
    else
      high = middle;
  }
  return &p->pieces[low];
}

static double x_at(const sim_picture *p, double time) {
  const piece *at = piece_at(p, time);
  return at->x + (fmin(time, at->end) - at->start) * p->scale;
}

/* --- Boxes --- */

static bool is_cut_out(const sim_picture *p, const ax_simulated_span *span) {
  const piece *at = piece_at(p, span->start);
  return span->start >= at->end && at->times > 1;
}

static void add_box(sim_picture *p, const ax_simulated_span *span) {
  const ax_simulated_op *op = &p->s->ops[span->op];
  const double x = x_at(p, span->start), width = x_at(p, span->end) - x;
  const uint32_t row = 2 * row_of(p, span->device) + (op->algorithm != NULL);
  p->drawn[span->op] = true;
  ax_text_add(
      p->text, "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,60%%,%d%%)\" fill-opacity=\"0.8\"><title>", x,
      top + 2 + row * row_height, width > 0.2 ? width : 0.2, row_height - 3, span->op * 67 % 360, op->algorithm != NULL ? 70 : 50);
  add_op(p->text, op, SIZE_MAX);
  ax_text_add(p->text, ", %s", "");
  ax_sim_seconds_text(p->text, span->start, 0);
  ax_text_add(p->text, " to %s", "");
  ax_sim_seconds_text(p->text, span->end, 0);
  ax_text_add(p->text, "</title></rect>\n");
}

/* Returns how many boxes are missing, since there are too many. */
static uint32_t add_boxes(sim_picture *p) {
  uint32_t boxes = 0;
  for (uint32_t i = 0; i < p->s->span_count; i++) {
    const ax_simulated_span *span = &p->s->spans[i];
    if (row_of(p, span->device) == p->device_count || is_cut_out(p, span)) continue;
    if (boxes++ < most_boxes) add_box(p, span);
  }
  return boxes > most_boxes ? boxes - most_boxes : 0;
}

/* --- The axis --- */

/* "1.234 ms": as many digits as tell it from a time that is `step` away. */
static void add_time(ax_text *text, double time, double step) {
  const double factor = time >= 1 ? 1 : time >= 1e-3 ? 1e3 : time >= 1e-6 ? 1e6 : 1e9;
  const char *unit = time >= 1 ? "s" : time >= 1e-3 ? "ms" : time >= 1e-6 ? "us" : "ns";
  const double digits = -floor(log10(step * factor) + 1e-9);
  ax_text_add(text, "%.*f %s", digits > 0 ? (int)digits : 0, time * factor, unit);
}

/* 1, 2 or 5 times a power of ten, at least `least`. */
static double round_step(double least) {
  const double power = pow(10, floor(log10(least)));
  return least <= power ? power : least <= 2 * power ? 2 * power : least <= 5 * power ? 5 * power : 10 * power;
}

static void add_tick(sim_picture *p, double time, double step) {
  const double x = x_at(p, time);
  const uint32_t y = bottom_of(p);
  ax_text_add(
      p->text,
      "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%u\" y2=\"%u\" stroke=\"#888\"/><text x=\"%.2f\" y=\"%u\" text-anchor=\"middle\">", x, x,
      y, y + 5, x, y + 17);
  add_time(p->text, time, step);
  ax_text_add(p->text, "</text>\n");
}

static void add_axis(sim_picture *p) {
  const uint32_t y = bottom_of(p);
  const double step = round_step(wide / p->scale / ticks);
  double before = 0; /* where the tick before this one stands */
  for (uint32_t i = 0; i < p->piece_count; i++) {
    const piece *now = &p->pieces[i];
    ax_text_add(p->text, "<line x1=\"%.2f\" x2=\"%.2f\" y1=\"%u\" y2=\"%u\" stroke=\"#888\"/>\n", now->x,
                now->x + (now->end - now->start) * p->scale, y, y);
    for (double k = ceil(now->start / step); k * step < now->end || (i + 1 == p->piece_count && k * step <= now->end); k++) {
      if (x_at(p, k * step) < before + wide / (2. * ticks) && before > 0) continue;
      add_tick(p, k * step, step);
      before = x_at(p, k * step);
    }
  }
}

/* Marks the step that stands for all, and the gap behind it. */
static void add_repetitions(sim_picture *p) {
  for (uint32_t i = 0; i < p->piece_count; i++) {
    const piece *now = &p->pieces[i];
    const double width = (now->end - now->start) * p->scale;
    if (now->times == 1) continue;
    ax_text_add(p->text, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%u\" fill=\"#f2f2e4\"/>\n", now->x, top - 2, width,
                bottom_of(p) - top + 2);
    ax_text_add(p->text,
                "<rect x=\"%.2f\" y=\"%d\" width=\"%d\" height=\"%u\" fill=\"none\" stroke=\"#aaa\" stroke-dasharray=\"3 3\"/>\n",
                now->x + width, top - 2, gap, bottom_of(p) - top + 2);
    ax_text_add(p->text, "<text x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">x%u</text>\n", now->x + width / 2, top - 6, now->times);
  }
}

/* --- The legend --- */

static uint32_t legend_count(const sim_picture *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->s->op_count; i++) count += p->drawn[i];
  return count;
}

static void add_legend(sim_picture *p, uint32_t y) {
  uint32_t shown = 0;
  ax_text_add(p->text, "<text x=\"4\" y=\"%u\">of each device, above: computing; below: collectives under way</text>\n", y);
  for (uint32_t i = 0; i < p->s->op_count && shown < most_legend; i++) {
    if (!p->drawn[i]) continue;
    const uint32_t x = 4 + legend_width * (shown % legend_columns), row = y + 18 + row_height * (shown / legend_columns);
    ax_text_add(p->text, "<rect x=\"%u\" y=\"%u\" width=\"12\" height=\"11\" fill=\"hsl(%u,60%%,%d%%)\"/><text x=\"%u\" y=\"%u\">",
                x, row - 10, i * 67 % 360, p->s->ops[i].algorithm != NULL ? 70 : 50, x + 18, row);
    add_op(p->text, &p->s->ops[i], letters);
    ax_text_add(p->text, "</text>\n");
    shown++;
  }
}

/* --- All of it --- */

static void add_head(sim_picture *p) {
  ax_text_add(p->text, "<text x=\"%d\" y=\"18\">%lld devices of ", left, (long long)p->s->devices);
  add_xml(p->text, p->s->machine, SIZE_MAX);
  ax_text_add(p->text, ", %s", "");
  ax_sim_seconds_text(p->text, p->s->seconds, 0);
  ax_text_add(p->text, "</text>\n");
  for (uint32_t i = 0; i < p->device_count; i++) {
    const uint32_t y = top + 2 * i * row_height;
    ax_text_add(p->text, "<text x=\"4\" y=\"%u\">device %u</text><line x1=\"0\" x2=\"%d\" y1=\"%u\" y2=\"%u\" stroke=\"#ccc\"/>\n",
                y + 14, p->device[i], left + wide, y, y);
  }
}

static void draw(sim_picture *p) {
  ax_text boxes = {0}, *all = p->text;
  p->text = &boxes;
  const uint32_t missing = add_boxes(p), y = bottom_of(p) + 40, count = legend_count(p);
  const uint32_t shown = count < most_legend ? count : most_legend;
  p->text = all;
  ax_text_add(all,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" font-family=\"sans-serif\" font-size=\"11\">\n"
              "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
              left + wide + 40, y + 34 + row_height * ((shown + legend_columns - 1) / legend_columns));
  add_repetitions(p);
  add_head(p);
  if (boxes.data != NULL) ax_text_add_bytes(all, boxes.data, boxes.length);
  if (p->piece_count > 0 && p->s->seconds > 0) add_axis(p);
  add_legend(p, y);
  if (missing > 0) ax_text_add(all, "<text x=\"500\" y=\"%u\">%u more boxes are not drawn</text>\n", y, missing);
  if (count > shown) ax_text_add(all, "<text x=\"760\" y=\"%u\">%u more operations</text>\n", y, count - shown);
  ax_text_add(all, "</svg>\n");
  all->failed = all->failed || boxes.failed;
  ax_text_deinit(&boxes);
}

ax_status ax_sim_picture(ax_text *text, const ax_simulation *s) {
  sim_picture p = {.text = text, .s = s};
  for (uint32_t i = 0; i < s->span_count && p.device_count < most_devices; i++)
    if (row_of(&p, s->spans[i].device) == p.device_count) p.device[p.device_count++] = s->spans[i].device;
  p.drawn = ax_calloc(s->op_count, sizeof p.drawn[0]);
  ax_status status = p.drawn != NULL ? AX_OK : ax_out_of_memory(s->op_count);
  if (status == AX_OK) status = make_pieces(&p);
  if (status == AX_OK) draw(&p);
  ax_free(p.pieces);
  ax_free(p.drawn);
  return status;
}
