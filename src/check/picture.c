/* Runs as pictures: time goes down, each agent has a column, each step a row.

   Text and SVG show the same rows and columns, which are chosen first. Of many agents those are shown that the finding is about,
   then those that are held up, then those that do most. Of a long run the beginning and the end are shown; it is the end that a
   finding is about. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/finding.h"

enum { most_columns = 8, most_rows = 48, first_rows = 8, text_width = 118, widest = 34, narrowest = 13 };

typedef struct row {
  const ax_act_step *step; /* NULL: rows were left out here */
  uint32_t number;         /* of the step, from 1; of rows left out, how many; 0: what an agent would do next */
} row;

typedef struct picture {
  const ax_act_run *run;
  const ax_act_finding *finding;
  uint32_t columns[most_columns], column_count;
  uint32_t *column_of; /* by agent; AX_NONE: not shown */
  uint64_t *weight;    /* by agent: how much it matters */
  uint32_t hidden_agents, hidden_steps;
  row *rows;
  uint32_t row_count;
} picture;

/* --- What is shown --- */

/* Does it matter what this agent would do next? Of a race, only of the two; of a schedule that is replayed (kind NONE), of all. */
static bool shows_next(const picture *p, const ax_act_step *next) {
  const ax_act_finding *f = p->finding;
  const uint32_t agent = next->agent;
  if (next->act.kind == AX_ACT_JOIN && next->act.amount == INT64_MAX) return false; /* it only waits for others to be through */
  return f == NULL || f->kind == AX_FINDING_NONE || f->kind == AX_FINDING_DEADLOCK || agent == f->agent || agent == f->other;
}

static void choose_columns(picture *p) {
  const ax_act_run *run = p->run;
  uint32_t agents = run->objects->agent_count;
  for (uint32_t s = 0; s < run->step_count; s++) p->weight[run->steps[s].agent] += 1;
  for (uint32_t k = 0; k < run->pending_count; k++)
    if (shows_next(p, &run->pending[k])) p->weight[run->pending[k].agent] += (uint64_t)1 << 32;
  for (int k = 0; k < 2 && p->finding != NULL; k++) {
    uint32_t agent = k == 0 ? p->finding->agent : p->finding->other;
    if (agent != AX_NONE) p->weight[agent] += (uint64_t)1 << 62;
  }
  for (uint32_t c = 0; c < most_columns; c++) {
    uint32_t best = AX_NONE;
    for (uint32_t a = 0; a < agents; a++)
      if (p->column_of[a] == AX_NONE && p->weight[a] > 0 && (best == AX_NONE || p->weight[a] > p->weight[best])) best = a;
    if (best == AX_NONE) break;
    p->column_of[best] = c;
  }
  for (uint32_t a = 0; a < agents; a++) { /* in the order of their numbers */
    if (p->column_of[a] == AX_NONE) {
      p->hidden_agents += p->weight[a] > 0;
      continue;
    }
    p->column_of[a] = p->column_count;
    p->columns[p->column_count++] = a;
  }
}

static void choose_rows(picture *p) {
  const ax_act_run *run = p->run;
  uint32_t shown = 0, at = 0;
  for (uint32_t s = 0; s < run->step_count; s++) shown += p->column_of[run->steps[s].agent] != AX_NONE;
  p->hidden_steps = run->step_count - shown;
  for (uint32_t s = 0; s < run->step_count; s++) {
    if (p->column_of[run->steps[s].agent] == AX_NONE) continue;
    at++;
    if (shown <= most_rows || at <= first_rows || at > shown - (most_rows - first_rows))
      p->rows[p->row_count++] = (row){&run->steps[s], s + 1};
    else if (at == first_rows + 1)
      p->rows[p->row_count++] = (row){NULL, shown - most_rows};
  }
  for (uint32_t k = 0; k < run->pending_count; k++)
    if (p->column_of[run->pending[k].agent] != AX_NONE && shows_next(p, &run->pending[k]))
      p->rows[p->row_count++] = (row){&run->pending[k], 0};
}

static void deinit(picture *p) {
  ax_free(p->column_of);
  ax_free(p->weight);
  ax_free(p->rows);
}

static ax_status init(picture *p, const ax_act_run *run, const ax_act_finding *finding) {
  uint32_t agents = run->objects->agent_count;
  *p = (picture){.run = run, .finding = finding};
  p->column_of = ax_alloc(agents * sizeof p->column_of[0]);
  p->weight = ax_calloc(agents, sizeof p->weight[0]);
  p->rows = ax_alloc((most_rows + most_columns + 2) * sizeof p->rows[0]);
  if (p->column_of == NULL || p->weight == NULL || p->rows == NULL) {
    deinit(p);
    return ax_out_of_memory(0);
  }
  memset(p->column_of, 0xff, agents * sizeof p->column_of[0]);
  choose_columns(p);
  choose_rows(p);
  return AX_OK;
}

/* The how manieth act of its agent a row is. */
static uint32_t position_of(const picture *p, const row *r) {
  uint32_t before = 0, steps = r->number > 0 ? r->number - 1 : p->run->step_count;
  for (uint32_t s = 0; s < steps; s++) before += p->run->steps[s].agent == r->step->agent;
  return before;
}

/* Is it what the finding is about? An act that is next; where acts were put into another order, one that is done. */
static bool is_about(const picture *p, const row *r) {
  const ax_act_finding *f = p->finding;
  if (f == NULL || (r->number > 0 && !f->reordered)) return false;
  if (f->reordered && f->other != AX_NONE) {
    const uint32_t position = position_of(p, r);
    return (r->step->agent == f->agent && position == f->position) || (r->step->agent == f->other && position == f->other_position);
  }
  return r->number == 0 && (r->step->agent == f->agent || r->step->agent == f->other);
}

/* A text cut to `width`, its end marked. */
static void cut(char *text, uint32_t width) {
  if (strlen(text) <= width) return;
  text[width] = 0;
  if (width >= 2) text[width - 1] = text[width - 2] = '.';
}

/* Adds the object of an act that has a name. */
static void add_object(const picture *p, const ax_act *act, ax_text *text) {
  const ax_act_objects *o = p->run->objects;
  const ax_touch *touch = act->touch_count == 1 ? &p->run->touches->touches[act->touch_first] : NULL;
  bool semaphore = act->kind == AX_ACT_SIGNAL || act->kind == AX_ACT_WAIT || act->kind == AX_ACT_READ;
  if (act->what == NULL) return;
  if (semaphore)
    ax_text_add(text, " %s", o->semaphores[act->object].name);
  else if (act->kind == AX_ACT_ARRIVE || act->kind == AX_ACT_AWAIT)
    ax_text_add(text, " %s", o->barriers[act->object].name);
  else if (touch != NULL && touch->count > 0) {
    ax_text_add(text, " ");
    ax_act_region_print(&o->regions[touch->region], &p->run->touches->runs[touch->first], touch->count, text);
  }
}

static ax_status words_of(const picture *p, const row *r, uint32_t width, char **out) {
  ax_text text = {0};
  if (is_about(p, r)) ax_text_add(&text, "! ");
  else if (r->number == 0) ax_text_add(&text, "? ");
  ax_act_print(p->run->objects, &r->step->act, &text);
  add_object(p, &r->step->act, &text);
  if (r->step->act.span != NULL) ax_text_add(&text, " (%s)", r->step->act.span);
  AX_TRY(ax_text_finish(&text, out));
  cut(*out, width);
  return AX_OK;
}

/* --- Text --- */

static ax_status print_row(const picture *p, const row *r, uint32_t width, ax_text *text) {
  if (r->step == NULL) {
    ax_text_add(text, "      ... %u steps ...\n", r->number);
    return AX_OK;
  }
  char *words;
  AX_TRY(words_of(p, r, width, &words));
  if (r->number > 0)
    ax_text_add(text, "%5u", r->number);
  else
    ax_text_add(text, "     ");
  for (uint32_t c = 0; c < p->column_of[r->step->agent]; c++) ax_text_add(text, " |%*s", (int)width, "");
  ax_text_add(text, " |%s", words);
  if (r->step->act.location != NULL && r->number == 0) ax_text_add(text, "  (%s)", r->step->act.location);
  ax_text_add(text, "\n");
  ax_free(words);
  return AX_OK;
}

static void print_head(const picture *p, uint32_t width, ax_text *text) {
  bool short_names = true;
  for (uint32_t c = 0; c < p->column_count; c++)
    short_names = short_names && strlen(p->run->objects->agents[p->columns[c]].name) <= width;
  if (!short_names)
    for (uint32_t c = 0; c < p->column_count; c++)
      ax_text_add(text, "      %c: %s\n", 'A' + (int)c, p->run->objects->agents[p->columns[c]].name);
  ax_text_add(text, " step");
  for (uint32_t c = 0; c < p->column_count; c++) {
    char letter[2] = {(char)('A' + c), 0};
    bool last = c + 1 == p->column_count;
    ax_text_add(text, last ? " |%.*s" : " |%-*s", (int)width, short_names ? p->run->objects->agents[p->columns[c]].name : letter);
  }
  ax_text_add(text, "\n");
}

ax_status ax_act_run_print(const ax_act_run *run, const ax_act_finding *finding, char **out) {
  picture p;
  ax_text text = {0};
  *out = NULL;
  AX_TRY(init(&p, run, finding));
  uint32_t width = p.column_count > 0 ? text_width / p.column_count - 2 : widest;
  width = width > widest ? widest : width < narrowest ? narrowest : width;
  print_head(&p, width, &text);
  ax_status status = AX_OK;
  for (uint32_t r = 0; r < p.row_count && status == AX_OK; r++) status = print_row(&p, &p.rows[r], width, &text);
  if (p.hidden_agents > 0) ax_text_add(&text, "      not shown: %u agents, %u steps\n", p.hidden_agents, p.hidden_steps);
  deinit(&p);
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}

/* --- SVG --- */

enum {
  column_pixels = 190,
  box_pixels = column_pixels - 14,
  row_pixels = 20,
  left_pixels = 50,
  head_pixels = 44,
  letter_pixels = 7,                                 /* at most, of this font */
  box_letters = (box_pixels - 8) / letter_pixels,
  head_letters = 2 * column_pixels / letter_pixels - 1 /* names stand on two lines in turn, so each has the room of two columns */
};

static void add_escaped(ax_text *text, const char *words) {
  for (; *words != 0; words++) {
    if (*words == '<')
      ax_text_add(text, "&lt;");
    else if (*words == '>')
      ax_text_add(text, "&gt;");
    else if (*words == '&')
      ax_text_add(text, "&amp;");
    else if (*words == '"')
      ax_text_add(text, "&quot;");
    else
      ax_text_add_bytes(text, words, 1);
  }
}

static const char *color_of(const picture *p, const row *r) {
  if (is_about(p, r)) return "#f4b6b6";
  if (r->number == 0) return "#f6e3b0";
  switch (r->step->act.kind) {
    case AX_ACT_SIGNAL:
    case AX_ACT_ARRIVE:
      return "#cfe8cf";
    case AX_ACT_WAIT:
    case AX_ACT_AWAIT:
    case AX_ACT_JOIN:
      return "#d5e0f5";
    default:
      return "#eeeeee";
  }
}

/* The row of the last signal, arrival, start before row `r` that brings what it waits for or begins its agent; AX_NONE. */
static uint32_t cause_of(const picture *p, uint32_t r) {
  const ax_act_step *step = p->rows[r].step;
  ax_act_kind wanted = step->act.kind == AX_ACT_WAIT ? AX_ACT_SIGNAL : step->act.kind == AX_ACT_AWAIT ? AX_ACT_ARRIVE : AX_ACT_NONE;
  bool first = true;
  for (uint32_t k = 0; k < r && first; k++) first = p->rows[k].step == NULL || p->rows[k].step->agent != step->agent;
  for (uint32_t k = r; k-- > 0;) {
    const ax_act_step *before = p->rows[k].step;
    if (before == NULL || before->agent == step->agent) continue;
    if (wanted != AX_ACT_NONE && before->act.kind == wanted && before->act.object == step->act.object) return k;
    if (first && before->act.kind == AX_ACT_START && before->act.object == step->agent) return k;
  }
  return AX_NONE;
}

static uint32_t x_of(const picture *p, const row *r) { return left_pixels + p->column_of[r->step->agent] * column_pixels; }

static ax_status draw_row(const picture *p, uint32_t at, ax_text *text) {
  const row *r = &p->rows[at];
  uint32_t y = head_pixels + at * row_pixels;
  if (r->step == NULL) {
    ax_text_add(text, "<text x=\"%d\" y=\"%u\">&#8942; %u steps</text>\n", left_pixels, y + 14, r->number);
    return AX_OK;
  }
  char *words;
  AX_TRY(words_of(p, r, box_letters, &words));
  if (r->number > 0) ax_text_add(text, "<text x=\"6\" y=\"%u\" fill=\"#888\">%u</text>\n", y + 14, r->number);
  ax_text_add(text, "<rect x=\"%u\" y=\"%u\" width=\"%d\" height=\"%d\" rx=\"3\" fill=\"%s\"/>", x_of(p, r), y + 2,
              box_pixels, row_pixels - 4, color_of(p, r));
  ax_text_add(text, "<text x=\"%u\" y=\"%u\">", x_of(p, r) + 4, y + 14);
  add_escaped(text, words);
  ax_text_add(text, "</text>\n");
  ax_free(words);
  uint32_t cause = r->number > 0 ? cause_of(p, at) : AX_NONE;
  if (cause == AX_NONE) return AX_OK;
  bool right = x_of(p, r) > x_of(p, &p->rows[cause]);
  uint32_t from = x_of(p, &p->rows[cause]) + (right ? box_pixels : 0), to = x_of(p, r) + (right ? 0 : box_pixels);
  ax_text_add(text, "<line x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\" stroke=\"#7a7a7a\" marker-end=\"url(#a)\"/>\n", from,
              head_pixels + cause * row_pixels + row_pixels / 2, to, y + row_pixels / 2);
  return AX_OK;
}

/* An agent's name, cut where the next one on its line begins. */
static void add_name(ax_text *text, const char *name) {
  char cut[head_letters + 1];
  if (strlen(name) <= head_letters) add_escaped(text, name);
  else {
    snprintf(cut, sizeof cut, "%.*s..", head_letters - 2, name);
    add_escaped(text, cut);
  }
}

/* How far the last columns' names go beyond the columns. */
static uint32_t head_rest(const picture *p) {
  uint32_t most = p->column_count * column_pixels, all = most;
  for (uint32_t c = 0; c < p->column_count; c++) {
    const size_t length = strlen(p->run->objects->agents[p->columns[c]].name);
    const uint32_t end = c * column_pixels + letter_pixels * (uint32_t)(length < head_letters ? length : head_letters);
    most = end > most ? end : most;
  }
  return most - all;
}

ax_status ax_act_run_svg(const ax_act_run *run, const ax_act_finding *finding, char **out) {
  picture p;
  ax_text text = {0};
  *out = NULL;
  AX_TRY(init(&p, run, finding));
  uint32_t width = left_pixels + p.column_count * column_pixels + head_rest(&p);
  uint32_t height = head_pixels + (p.row_count + 2) * row_pixels;
  ax_text_add(&text,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" font-family=\"monospace\" font-size=\"11\">\n",
              width, height);
  ax_text_add(
      &text,
      "<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">"
      "<path d=\"M0,0 L8,4 L0,8 z\" fill=\"#7a7a7a\"/></marker></defs>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  for (uint32_t c = 0; c < p.column_count; c++) {
    uint32_t x = left_pixels + c * column_pixels;
    ax_text_add(&text, "<text x=\"%u\" y=\"%d\" font-weight=\"bold\">", x,
                (c & 1) != 0 ? 16 : 32);
    add_name(&text, run->objects->agents[p.columns[c]].name);
    ax_text_add(&text, "</text>\n<line x1=\"%u\" y1=\"%d\" x2=\"%u\" y2=\"%u\" stroke=\"#dddddd\"/>\n", x - 6, head_pixels, x - 6,
                height);
  }
  ax_status status = AX_OK;
  for (uint32_t r = 0; r < p.row_count && status == AX_OK; r++) status = draw_row(&p, r, &text);
  if (p.hidden_agents > 0)
    ax_text_add(&text, "<text x=\"6\" y=\"%u\" fill=\"#888\">not shown: %u agents, %u steps</text>\n", height - 8, p.hidden_agents,
                p.hidden_steps);
  ax_text_add(&text, "</svg>\n");
  deinit(&p);
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}
