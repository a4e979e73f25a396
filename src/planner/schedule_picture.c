/* A pipeline as a picture: a row for each stage, a box for each pass, over a time axis. Boxes of later chunks are darker. Of a pipeline with
   too many passes the beginning is drawn, as far as boxes can be told apart. */
#include <math.h>

#include "base/base.h"
#include "ir/text.h"
#include "planner/schedule.h"

enum { wide = 1000, left = 70, top = 40, row_height = 18, most_rows = 64, most_boxes = 20000, ticks = 8 };

typedef struct drawing {
  ax_text *text;
  const ax_pipeline *p;
  double seconds; /* that are drawn */
} drawing;

static double x_of(const drawing *d, double seconds) { return left + wide * seconds / d->seconds; }

static void draw_pass(void *context, const ax_stage_pass *pass) {
  static const char *const fill[] = {"#4e79a7", "#f28e2b", "#59a14f"};
  const drawing *d = context;
  if (pass->stage >= most_rows || pass->begin >= d->seconds || pass->seconds <= 0) return;
  const double end = fmin(pass->begin + pass->seconds, d->seconds), shade = 0.4 + 0.6 * (double)(pass->chunk + 1) / (double)d->p->chunks;
  ax_text_add(d->text, "<rect x=\"%.2f\" y=\"%lld\" width=\"%.2f\" height=\"%d\" fill=\"%s\" fill-opacity=\"%.2f\"/>\n",
              x_of(d, pass->begin), (long long)(top + row_height * pass->stage), fmax(x_of(d, end) - x_of(d, pass->begin) - 0.3, 0.2),
              row_height - 3, fill[pass->kind], shade);
}

static void draw_axis(const drawing *d, int64_t rows) {
  for (int64_t n = 0; n < rows; n++)
    ax_text_add(d->text, "<text x=\"4\" y=\"%lld\">stage %lld</text>\n", (long long)(top + row_height * n + 12), (long long)n);
  for (int t = 0; t <= ticks; t++) {
    const double at = d->seconds * t / ticks;
    ax_text_add(d->text, "<text x=\"%.1f\" y=\"%lld\" text-anchor=\"middle\">%.4g ms</text>\n", x_of(d, at),
                (long long)(top + row_height * rows + 14), 1e3 * at);
  }
}

static void draw_legend(const drawing *d, const ax_pipelined *all) {
  const ax_pipeline *p = d->p;
  ax_text_add(d->text, "<text x=\"4\" y=\"14\">%s, %lld stages, %lld microbatches: %.4g ms; drawn are %.4g ms",
              ax_pipeline_schedule_name(p->schedule), (long long)p->stages, (long long)p->microbatches, 1e3 * all->seconds, 1e3 * d->seconds);
  if (p->stages > most_rows) ax_text_add(d->text, " of %d stages", most_rows);
  ax_text_add(d->text, "</text>\n<text x=\"4\" y=\"30\"><tspan fill=\"#4e79a7\">forward</tspan> <tspan fill=\"#f28e2b\">backward</tspan>%s%s</text>\n",
              p->schedule == AX_PIPELINE_ZERO_BUBBLE ? " <tspan fill=\"#59a14f\">by parameters</tspan>" : "",
              p->chunks > 1 ? "; later parts of a stage are darker" : "");
}

ax_status ax_pipeline_picture(const ax_pipeline *p, char **out) {
  ax_text text = {0};
  ax_pipelined all;
  *out = NULL;
  AX_TRY(ax_pipeline_run(p, &all));
  const int64_t rows = p->stages < most_rows ? p->stages : most_rows, each = p->schedule == AX_PIPELINE_ZERO_BUBBLE ? 3 : 2;
  const double boxes = (double)each * (double)rows * (double)p->microbatches * (double)p->chunks;
  drawing d = {&text, p, all.seconds * fmin(1, most_boxes / boxes)};
  if (d.seconds <= 0) d.seconds = 1;
  ax_text_add(&text, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%lld\" font-family=\"sans-serif\" font-size=\"11\">\n",
              left + wide + 40, (long long)(top + row_height * rows + 24));
  ax_text_add(&text, "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n");
  draw_legend(&d, &all);
  ax_status status = ax_pipeline_visit(p, draw_pass, &d, &all);
  draw_axis(&d, rows);
  ax_text_add(&text, "</svg>\n");
  if (status == AX_OK) return ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}
