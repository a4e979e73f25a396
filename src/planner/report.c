/* Strategies as text. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "planner/search.h"
#include "sim/report.h"

static void add_seconds(ax_text *text, double seconds) {
  if (isinf(seconds)) { /* it does not fit, and was not simulated */
    ax_text_add(text, "%8s   ", "-");
    return;
  }
  const char *unit = seconds >= 1 ? "s " : seconds >= 1e-3 ? "ms" : "us";
  ax_text_add(text, "%8.4g %s", seconds >= 1 ? seconds : seconds >= 1e-3 ? seconds * 1e3 : seconds * 1e6, unit);
}

static void add_mesh(ax_text *text, const ax_mesh *mesh) {
  char shown[AX_MAX_AXES * (AX_MAX_NAME + 24)];
  int length = 0;
  for (uint32_t a = 0; a < mesh->count; a++)
    length += snprintf(shown + length, sizeof shown - (size_t)length, "%s%s=%lld", a > 0 ? "," : "", mesh->axis[a].name,
                       (long long)mesh->axis[a].size);
  ax_text_add(text, "%-28s", shown);
}

static void add_row(ax_text *text, uint32_t number, double devices, const ax_strategy *s) {
  const double idle = devices - (double)ax_mesh_devices(&s->mesh);
  ax_text_add(text, "%2u  ", number);
  add_mesh(text, &s->mesh);
  add_seconds(text, s->seconds);
  ax_text_add(text, " %5.1f %%  ", 100 * s->utilization);
  ax_sim_bytes_text(text, s->memory.total, 6, 3);
  ax_text_add(text, "%s  %4.0f %% %4.0f %% %4.0f %%  %6lld  %-10s  %s", !s->fits ? "!" : " ", 100 * s->computing,
              100 * s->exchanging, 100 * s->waiting, (long long)s->microbatches, ax_checkpoint_policy_name(s->saved), s->kind);
  if (s->stages > 1) ax_text_add(text, "; %s", ax_pipeline_schedule_name(s->schedule));
  if (s->chunks > 1) ax_text_add(text, " of %lld parts", (long long)s->chunks);
  if (idle > 0) ax_text_add(text, "; %.0f device%s idle", idle, idle == 1 ? "" : "s");
  ax_text_add(text, "\n");
}

/* A spec as JAX has it, which has no priorities there: PartitionSpec(None, ('data', 'model')). */
static void add_jax(ax_text *text, const char *spec, size_t length) {
  const char *priority = memchr(spec, ' ', length);
  if (priority != NULL) length = (size_t)(priority - spec);
  ax_text_add(text, "PartitionSpec(");
  for (size_t at = 0; at < length;) {
    size_t end = at;
    while (end < length && spec[end] != ',') end++;
    const char *plus = memchr(spec + at, '+', end - at);
    if (at > 0) ax_text_add(text, ", ");
    if (plus == NULL) ax_text_add(text, spec[at] == '_' ? "None" : "'%.*s'", (int)(end - at), spec + at);
    if (plus != NULL) ax_text_add(text, "(");
    for (size_t axis = at; plus != NULL && axis < end;) {
      size_t until = axis;
      while (until < end && spec[until] != '+') until++;
      ax_text_add(text, "%s'%.*s'", axis > at ? ", " : "", (int)(until - axis), spec + axis);
      axis = until + 1;
    }
    if (plus != NULL) ax_text_add(text, ")");
    at = end + 1;
  }
  ax_text_add(text, ")");
}

static void add_layouts(ax_text *text, const ax_strategy *s, uint32_t name_count, const char *const *names) {
  const char *at = s->in_specs;
  for (uint32_t i = 0; at != NULL; i++) {
    const char *end = strstr(at, "; ");
    const size_t length = end != NULL ? (size_t)(end - at) : strlen(at);
    if (i < name_count) ax_text_add(text, "  %-16s ", names[i]);
    else ax_text_add(text, "  %-16u ", i);
    ax_text_add(text, "%-22.*s ", (int)length, at);
    add_jax(text, at, length);
    ax_text_add(text, "\n");
    at = end != NULL ? end + 2 : NULL;
  }
}

ax_status ax_strategies_print(const ax_strategies *s, uint32_t name_count, const char *const *names, char **out) {
  ax_text text = {0};
  *out = NULL;
  ax_text_add(&text, "%.0f device%s", s->devices, s->devices == 1 ? "" : "s");
  if (s->capacity > 0) {
    ax_text_add(&text, " of ");
    ax_sim_bytes_text(&text, s->capacity, 1, 3);
  }
  ax_text_add(&text, "; %.0f programs tried in %.1f s%s\n", s->tried, s->seconds, s->complete ? "" : "; with more time there is more to try");
  if (s->count > 0 && !s->list[0].fits) ax_text_add(&text, "nothing was found that fits the memory of a device\n");
  if (s->count > 0)
    ax_text_add(&text, "\n    %-28s%11s    MFU    memory   computes  exchanges  waits  microbatches  saves\n", "mesh", "a run");
  for (uint32_t i = 0; i < s->count; i++) add_row(&text, i + 1, s->devices, &s->list[i]);
  if (s->count > 0) {
    ax_text_add(&text, "\ninputs in the first  spec                   in JAX\n");
    add_layouts(&text, &s->list[0], name_count, names);
  }
  const ax_status status = ax_text_finish(&text, out);
  ax_text_deinit(&text);
  return status;
}
