#include "planner/arrangement.h"

#include <stdio.h>
#include <string.h>

/* --- Groups --- */

static double bytes_of(const ax_type *type) { return (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype); }
static const ax_type *param_type(const ax_model *m, uint32_t p) { return &m->program->types[m->params[p]]; }

static uint32_t family_of(ax_families *g, const ax_model *m, uint32_t p) {
  const ax_type *type = param_type(m, p);
  for (uint32_t i = 0; i < g->count; i++)
    if (ax_type_equal(&g->list[i].type, type) && g->list[i].layered == m->layered[p] && g->list[i].experts == m->experts[p])
      return i;
  g->list[g->count] = (ax_family){.type = *type, .layered = m->layered[p], .experts = m->experts[p]};
  return g->count++;
}

/* Sorts families by their bytes; there are few. */
static void sort(ax_families *g, uint32_t param_count) {
  for (uint32_t i = 1; i < g->count; i++)
    for (uint32_t k = i; k > 0 && g->list[k].bytes > g->list[k - 1].bytes; k--) {
      const ax_family swapped = g->list[k];
      g->list[k] = g->list[k - 1];
      g->list[k - 1] = swapped;
      for (uint32_t p = 0; p < param_count; p++) g->of[p] = g->of[p] == k ? k - 1 : g->of[p] == k - 1 ? k : g->of[p];
    }
}

ax_status ax_families_make(const ax_model *m, ax_families *out) {
  *out = (ax_families){.list = ax_calloc((size_t)m->param_count + 1, sizeof out->list[0]),
                     .of = ax_calloc((size_t)m->param_count + 1, sizeof out->of[0])};
  if (out->list == NULL || out->of == NULL) return ax_out_of_memory(m->param_count);
  for (uint32_t p = 0; p < m->param_count; p++) {
    out->of[p] = family_of(out, m, p);
    out->list[out->of[p]].bytes += bytes_of(param_type(m, p));
  }
  sort(out, m->param_count);
  return AX_OK;
}

void ax_families_deinit(ax_families *g) {
  ax_free(g->list);
  ax_free(g->of);
  *g = (ax_families){0};
}

/* --- Layouts --- */

static const ax_axis_cuts whole = {{AX_WHOLE, AX_WHOLE, AX_WHOLE, AX_WHOLE}};

ax_status ax_arrangement_copy(const ax_arrangement *from, const ax_families *families, ax_arrangement *out) {
  const size_t bytes = ((size_t)families->count + 1) * sizeof from->family[0];
  ax_axis_cuts *made = ax_alloc(bytes);
  if (made == NULL) return ax_out_of_memory(bytes);
  memcpy(made, from->family, families->count * sizeof made[0]);
  *out = (ax_arrangement){made, from->batch, from->state_cut, from->gathered};
  return AX_OK;
}

ax_status ax_arrangement_whole(const ax_families *families, ax_arrangement *out) {
  *out = (ax_arrangement){ax_calloc((size_t)families->count + 1, sizeof out->family[0]), whole, false, false};
  if (out->family == NULL) return ax_out_of_memory(families->count);
  for (uint32_t g = 0; g < families->count; g++) out->family[g] = whole;
  return AX_OK;
}

void ax_arrangement_deinit(ax_arrangement *layout) {
  ax_free(layout->family);
  *layout = (ax_arrangement){0};
}

static bool same(const ax_axis_cuts *a, const ax_axis_cuts *b) { return memcmp(a, b, sizeof *a) == 0; }

bool ax_arrangement_equal(const ax_arrangement *a, const ax_arrangement *b, const ax_families *families) {
  for (uint32_t g = 0; g < families->count; g++)
    if (!same(&a->family[g], &b->family[g])) return false;
  return same(&a->batch, &b->batch) && a->state_cut == b->state_cut && a->gathered == b->gathered;
}

/* Parts that the axes before `before` cut the dimension in. */
static int64_t parts(const ax_axis_cuts *cuts, const ax_mesh *mesh, int dim, uint32_t before) {
  int64_t made = 1;
  for (uint32_t a = 0; a < mesh->count && a < before; a++)
    if (cuts->axis[a] == dim) made *= mesh->axis[a].size;
  return made;
}

static void fit_cuts(ax_axis_cuts *cuts, const ax_type *type, const ax_mesh *mesh) {
  for (uint32_t a = 0; a < AX_PLANNER_AXES; a++) {
    const int dim = cuts->axis[a];
    if (dim < 0) continue;
    const bool there = a < mesh->count && mesh->axis[a].size > 1 && dim < (int)type->rank;
    if (!there || type->dims[dim] % (parts(cuts, mesh, dim, a) * mesh->axis[a].size) != 0) cuts->axis[a] = AX_WHOLE;
  }
}

bool ax_arrangement_fit(ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh, int64_t microbatches) {
  for (uint32_t g = 0; g < families->count; g++) fit_cuts(&layout->family[g], &families->list[g].type, mesh);
  for (uint32_t a = 0; a < AX_PLANNER_AXES && m->train; a++) {
    const int dim = layout->batch.axis[a];
    if (dim < 0) continue;
    if (a >= mesh->count || mesh->axis[a].size == 1) {
      layout->batch.axis[a] = AX_WHOLE;
      continue;
    }
    const int64_t cut = parts(&layout->batch, mesh, dim, a + 1);
    if (dim == 0 && (m->samples % microbatches != 0 || m->samples / microbatches % cut != 0)) return false;
    for (uint32_t b = 0; dim > 0 && b < m->batch_count; b++) {
      const ax_type *sample = &m->program->types[m->batch[b]];
      if (dim <= (int)sample->rank && sample->dims[dim - 1] % cut != 0) return false;
    }
  }
  return m->samples % microbatches == 0;
}

/* The number nearest to `size`, below it or above, that divides `whole`: what an axis could have instead. 0: there is none. */
static int64_t nearest_factor(int64_t whole, int64_t size, bool below) {
  if (!below && size >= whole) return 0;
  do size += below ? -1 : 1;
  while (size > 0 && whole % size != 0);
  return size;
}

/* "data=3 and shard=2": the axes of several devices that cut this dimension of the batch. Gives the number of the last. */
static uint32_t add_axes_of(const ax_axis_cuts *cuts, const ax_mesh *mesh, int dim, ax_text *text) {
  uint32_t last = AX_NONE;
  for (uint32_t a = 0; a < mesh->count; a++) {
    if (cuts->axis[a] != dim || mesh->axis[a].size == 1) continue;
    ax_text_add(text, "%s%s=%lld", last == AX_NONE ? "" : " and ", mesh->axis[a].name, (long long)mesh->axis[a].size);
    last = a;
  }
  return last;
}

/* "; data=2 and data=4 would": what the axis could be where the others leave so much to be cut. */
static void add_would(const ax_mesh *mesh, uint32_t axis, int64_t whole, ax_text *text) {
  const int64_t below = nearest_factor(whole, mesh->axis[axis].size, true),
                above = nearest_factor(whole, mesh->axis[axis].size, false);
  const char *name = mesh->axis[axis].name;
  if (below > 0) ax_text_add(text, "; %s=%lld", name, (long long)below);
  if (above > 0) ax_text_add(text, "%s%s=%lld", below > 0 ? " and " : "; ", name, (long long)above);
  if (below > 0 || above > 0) ax_text_add(text, " would");
}

bool ax_arrangement_why_not(const ax_arrangement *layout, const ax_model *m, const ax_mesh *mesh, int64_t microbatches,
                            ax_text *text) {
  const int64_t cut = parts(&layout->batch, mesh, 0, mesh->count);
  if (m->samples % microbatches != 0 || m->samples / microbatches % cut != 0) {
    ax_text_add(text, "%lld samples in %lld microbatches over ", (long long)m->samples, (long long)microbatches);
    const uint32_t last = add_axes_of(&layout->batch, mesh, 0, text);
    ax_text_add(text, "%s: these do not divide the samples", last == AX_NONE ? "one device" : "");
    const int64_t others = last != AX_NONE ? microbatches * (cut / mesh->axis[last].size) : 0;
    if (microbatches <= m->samples && others > 0 && m->samples % others == 0) add_would(mesh, last, m->samples / others, text);
    return true;
  }
  for (uint32_t b = 0; b < m->batch_count; b++) {
    const ax_type *sample = &m->program->types[m->batch[b]];
    const int64_t positions = sample->rank > 0 ? sample->dims[0] : 1, of = parts(&layout->batch, mesh, 1, mesh->count);
    if (sample->rank == 0 || positions % of == 0) continue;
    ax_text_add(text, "the first dimension of input %s, %s, over ", ax_model_input_name(m, m->batch[b], (char[16]){0}),
                ax_type_string(sample, &m->program->axes));
    const uint32_t last = add_axes_of(&layout->batch, mesh, 1, text);
    ax_text_add(text, ": that does not divide it");
    const int64_t others = of / mesh->axis[last].size;
    if (positions % others == 0) add_would(mesh, last, positions / others, text);
    return true;
  }
  return false;
}

/* The longest dimension of an array that no axis cuts and the axis divides; AX_WHOLE: none. */
static int longest(const ax_axis_cuts *cuts, const ax_family *g, const ax_mesh *mesh, uint32_t axis) {
  int best = AX_WHOLE;
  for (int d = g->layered; d < (int)g->type.rank; d++) {
    if (g->type.dims[d] % mesh->axis[axis].size != 0 || parts(cuts, mesh, d, mesh->count) > 1) continue;
    if (best < 0 || g->type.dims[d] > g->type.dims[best]) best = d;
  }
  return best;
}

void ax_arrangement_shard(ax_arrangement *layout, const ax_families *families, const ax_mesh *mesh, uint32_t axis) {
  if (axis >= mesh->count || mesh->axis[axis].size == 1) return;
  for (uint32_t g = 0; g < families->count; g++)
    if (layout->family[g].axis[axis] < 0) layout->family[g].axis[axis] = (int8_t)longest(&layout->family[g], &families->list[g], mesh, axis);
}

/* --- Specs --- */

/* first: what stands for the first dimension if no axis of the mesh cuts it; NULL: nothing. */
static void add_spec(const ax_axis_cuts *cuts, const ax_type *type, const ax_mesh *mesh, const char *first, ax_text *text) {
  int last = first != NULL ? 0 : AX_WHOLE;
  for (uint32_t a = 0; a < mesh->count; a++)
    if (cuts->axis[a] > last && cuts->axis[a] < (int)type->rank) last = cuts->axis[a];
  for (int d = 0; d <= last; d++) {
    bool any = false;
    if (d > 0) ax_text_add(text, ",");
    for (uint32_t a = 0; a < mesh->count; a++) {
      if (cuts->axis[a] != d) continue;
      ax_text_add(text, "%s%s", any ? "+" : "", mesh->axis[a].name);
      any = true;
    }
    if (!any) ax_text_add(text, "%s", d == 0 && first != NULL ? first : "_");
  }
}

void ax_cuts_spec(const ax_axis_cuts *cuts, const ax_type *type, const ax_mesh *mesh, ax_text *text) {
  add_spec(cuts, type, mesh, NULL, text);
}

/* The layout of a parameter's state. */
static ax_axis_cuts state_cuts(const ax_arrangement *layout, const ax_families *families, const ax_mesh *mesh, uint32_t family) {
  ax_axis_cuts cuts = layout->family[family];
  for (uint32_t a = 0; layout->state_cut && a < mesh->count; a++)
    if (layout->batch.axis[a] == 0 && cuts.axis[a] < 0 && mesh->axis[a].size > 1)
      cuts.axis[a] = (int8_t)longest(&cuts, &families->list[family], mesh, a);
  return cuts;
}

static ax_axis_cuts held_cuts(const ax_arrangement *layout, const ax_families *families, const ax_mesh *mesh, uint32_t family,
                              ax_held_array held) {
  if (held == AX_HELD_PARAM) return layout->family[family];
  ax_axis_cuts cuts = state_cuts(layout, families, mesh, family);
  if (held == AX_HELD_SUM) cuts.axis[0] = layout->family[family].axis[0];
  return cuts;
}

/* Whether the family waits for the batch's layout: an axis cuts both, and it does not stand for experts. */
static bool is_gathered(const ax_arrangement *layout, const ax_families *families, const ax_mesh *mesh, uint32_t family) {
  const ax_family *f = &families->list[family];
  for (uint32_t a = 0; layout->gathered && a < mesh->count; a++) {
    const int dim = layout->family[family].axis[a];
    if (layout->batch.axis[a] >= 0 && dim >= 0 && dim < (int)f->type.rank && dim != f->experts) return true;
  }
  return false;
}

void ax_arrangement_param_spec(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                               uint32_t p, ax_held_array held, ax_text *text) {
  const uint32_t family = families->of[p];
  const ax_axis_cuts cuts = held_cuts(layout, families, mesh, family, held);
  const size_t before = text->length;
  add_spec(&cuts, param_type(m, p), mesh, NULL, text);
  /* such a cut goes as far as the parameter and its gradient, and not into what is computed with them */
  const bool later = (held == AX_HELD_STATE && layout->state_cut) ||
                     (held == AX_HELD_SUM && !same(&cuts, &layout->family[family])) || is_gathered(layout, families, mesh, family);
  if (later && text->length > before) ax_text_add(text, " p1");
}

static void add_params(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh, ax_text *text) {
  for (uint32_t p = 0; p < m->param_count; p++) {
    if (p > 0) ax_text_add(text, "; ");
    ax_arrangement_param_spec(layout, m, families, mesh, p, AX_HELD_PARAM, text);
  }
}

static void add_state(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh, ax_text *text) {
  for (uint32_t k = 0; k < m->state_count; k++) {
    const uint32_t p = ax_model_state_of(m, k);
    ax_text_add(text, "; ");
    if (p == AX_NONE) continue;
    ax_arrangement_param_spec(layout, m, families, mesh, p, AX_HELD_STATE, text);
  }
}

/* A sample lies as the batch does, without its first dimension. */
static void add_sample(const ax_arrangement *layout, const ax_type *sample, const ax_mesh *mesh, ax_text *text) {
  ax_type batch = *sample;
  batch.rank++;
  add_spec(&layout->batch, &batch, mesh, NULL, text);
}

void ax_arrangement_in_specs(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh, bool stages,
                        ax_text *text) {
  uint32_t p = 0, b = 0;
  for (uint32_t i = 0; i < m->program->in_count; i++) {
    if (i > 0) ax_text_add(text, "; ");
    if (p < m->param_count && m->params[p] == i) {
      add_spec(&layout->family[families->of[p]], param_type(m, p), mesh, stages && m->layered[p] ? "pipe" : NULL, text);
      if (is_gathered(layout, families, mesh, families->of[p])) ax_text_add(text, " p1");
      p++;
    } else {
      add_sample(layout, &m->program->types[m->batch[b++]], mesh, text);
    }
  }
}

/* --- Specs that are read --- */

/* One entry, up to `end`: "_,data+model p1". */
static ax_status read_spec(const char *at, const char *end, uint32_t rank, const ax_mesh *mesh, ax_axis_cuts *out) {
  uint32_t dim = 0;
  *out = whole;
  while (at < end && *at == ' ') at++;
  const char *begin = at;
  while (at < end && *at != ' ') {
    const size_t length = strcspn(at, ",+; ");
    const bool named = length > 0 && !(length == 1 && at[0] == '_');
    uint32_t axis = 0;
    while (named && axis < mesh->count &&
           !(strlen(mesh->axis[axis].name) == length && memcmp(mesh->axis[axis].name, at, length) == 0))
      axis++;
    if (named && (axis == mesh->count || dim >= rank))
      return ax_error(AX_INVALID_ARGUMENT, "planner: the strategy's specs have '%.*s', which does not fit its mesh and the program",
                      (int)(end - begin), begin);
    if (named) out->axis[axis] = (int8_t)dim;
    at += length;
    if (at < end && *at == ',') dim++;
    if (at < end && *at != ' ') at++;
  }
  return AX_OK;
}

ax_status ax_arrangement_read(const char *specs, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                              ax_arrangement *out) {
  const uint32_t params = m->param_count, first = params + m->state_count;
  const char *at = specs, *arguments = specs + strlen(specs);
  AX_TRY(ax_arrangement_whole(families, out));
  for (uint32_t i = 0; i < first + m->batch_count; i++) {
    const char *end = at + strcspn(at, ";"), *arrow = strstr(at, " ->");
    if (arrow != NULL && arrow < end) end = arrow;
    if (i < params)
      AX_TRY(read_spec(at, end, param_type(m, i)->rank, mesh, &out->family[families->of[i]]));
    else if (i >= first && end > at + 1)
      AX_TRY(read_spec(at, end, m->program->types[m->batch[i - first]].rank + 1, mesh, &out->batch));
    at = end < arguments && *end == ';' ? end + 1 : end;
  }
  return AX_OK;
}

/* --- What it is called --- */

static const char *const axis_names[AX_ROLE_COUNT] = {"same", "data", "shard", "expert", "sequence", "model"};

ax_axis_role ax_axis_role_named(const char *name) {
  int role = 0;
  for (; role < AX_ROLE_COUNT; role++) {
    const size_t length = strlen(axis_names[role]);
    if (strncmp(name, axis_names[role], length) == 0 && strspn(name + length, "0123456789") == strlen(name + length)) break;
  }
  return (ax_axis_role)role;
}

bool ax_arrangement_cuts(const ax_arrangement *layout, const ax_families *families, uint32_t axis) {
  for (uint32_t g = 0; g < families->count; g++)
    if (layout->family[g].axis[axis] >= 0) return true;
  return false;
}

static ax_axis_role role_of(const ax_arrangement *layout, const ax_model *model, const ax_families *families, uint32_t axis) {
  const int samples = model->train ? layout->batch.axis[axis] : AX_WHOLE;
  bool experts = false;
  double all = 0, cut = 0;
  for (uint32_t g = 0; g < families->count; g++) {
    const int dim = layout->family[g].axis[axis];
    all += families->list[g].bytes;
    cut += dim >= 0 ? families->list[g].bytes : 0;
    experts = experts || (dim >= 0 && dim == families->list[g].experts);
  }
  if (samples == 1) return AX_ROLE_SEQUENCE;
  if (samples == 0)
    return experts ? AX_ROLE_EXPERTS : 2 * cut > all ? AX_ROLE_SHARDS : AX_ROLE_SAMPLES; /* small ones are cut or not */
  return experts ? AX_ROLE_EXPERTS : cut > 0 ? AX_ROLE_TENSOR : AX_ROLE_NONE;
}

void ax_arrangement_name_axes(const ax_arrangement *layout, const ax_model *model, const ax_families *families, ax_mesh *mesh) {
  uint32_t of[AX_PLANNER_AXES], count[AX_ROLE_COUNT] = {0}, met[AX_ROLE_COUNT] = {0};
  for (uint32_t a = 0; a < mesh->count; a++) count[of[a] = role_of(layout, model, families, a)]++;
  for (uint32_t a = 0; a < mesh->count; a++) { /* of several, one that also cuts a few parameters shards */
    if (of[a] != AX_ROLE_SAMPLES || count[AX_ROLE_SAMPLES] < 2 || !ax_arrangement_cuts(layout, families, a)) continue;
    count[of[a]]--;
    count[of[a] = AX_ROLE_SHARDS]++;
  }
  for (uint32_t a = 0; a < mesh->count; a++) {
    /* shards over the only axis of samples are over the data */
    const uint32_t role =
        of[a] == AX_ROLE_SHARDS && count[AX_ROLE_SAMPLES] == 0 && count[AX_ROLE_SHARDS] == 1 ? AX_ROLE_SAMPLES : of[a];
    char *name = mesh->axis[a].name;
    if (met[role]++ == 0) snprintf(name, sizeof mesh->axis[a].name, "%s", axis_names[role]);
    else snprintf(name, sizeof mesh->axis[a].name, "%s%u", axis_names[role], met[role]);
  }
}

void ax_arrangement_kind(const ax_arrangement *layout, const ax_model *model, const ax_families *families, const ax_mesh *mesh, char *out,
                         size_t bytes) {
  static const char *const names[AX_ROLE_COUNT] = {
      [AX_ROLE_EXPERTS] = "expert", [AX_ROLE_SEQUENCE] = "sequence", [AX_ROLE_TENSOR] = "tensor"};
  bool has[AX_ROLE_COUNT] = {false};
  const char *parts[3] = {"", "", ""}, *shares = "";
  uint32_t count = 0;
  for (uint32_t a = 0; a < mesh->count; a++)
    if (mesh->axis[a].size > 1) has[role_of(layout, model, families, a)] = true;
  for (int role = AX_ROLE_EXPERTS; role < AX_ROLE_COUNT; role++)
    if (has[role]) parts[count++] = names[role];
  if (has[AX_ROLE_SHARDS])
    shares = has[AX_ROLE_SAMPLES] ? "hybrid sharded" : "fully sharded";
  else if (layout->state_cut && has[AX_ROLE_SAMPLES])
    shares = "state sharded";
  if (count == 0 && has[AX_ROLE_SAMPLES] && !has[AX_ROLE_SHARDS]) parts[count++] = "data";
  const char *const between[] = {"", count == 3 ? ", " : count == 2 ? " and " : "", count == 3 ? " and " : ""};
  snprintf(out, bytes, "%s%s%s%s%s%s%s%s", parts[0], between[1], parts[1], between[2], parts[2], count > 0 ? " parallel" : "",
           count > 0 && shares[0] != '\0' ? ", " : "", count == 0 && shares[0] == '\0' ? "nothing cut" : shares);
}

void ax_arrangement_specs(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh, ax_text *text) {
  add_params(layout, m, families, mesh, text);
  if (!m->train) {
    ax_text_add(text, " -> ?");
    return;
  }
  add_state(layout, m, families, mesh, text);
  for (uint32_t b = 0; b < m->batch_count; b++) {
    ax_text_add(text, "; ");
    add_sample(layout, &m->program->types[m->batch[b]], mesh, text);
  }
  ax_text_add(text, " -> ; ");
  add_params(layout, m, families, mesh, text);
  add_state(layout, m, families, mesh, text);
}

/* --- Memory --- */

static double cut_bytes(const ax_axis_cuts *cuts, const ax_type *type, const ax_mesh *mesh) {
  double bytes = bytes_of(type);
  for (uint32_t a = 0; a < mesh->count; a++)
    if (cuts->axis[a] >= 0 && cuts->axis[a] < (int)type->rank) bytes /= (double)mesh->axis[a].size;
  return bytes;
}

void ax_arrangement_used_memory(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                                const bool *used, double share, double held[AX_HELD_SUM + 1]) {
  held[AX_HELD_PARAM] = held[AX_HELD_STATE] = held[AX_HELD_SUM] = 0;
  for (uint32_t p = 0; p < m->param_count; p++) {
    const ax_axis_cuts sum = held_cuts(layout, families, mesh, families->of[p], AX_HELD_SUM);
    if (!used[p]) continue;
    held[AX_HELD_PARAM] += cut_bytes(&layout->family[families->of[p]], param_type(m, p), mesh) * (m->layered[p] ? share : 1);
    held[AX_HELD_SUM] += cut_bytes(&sum, param_type(m, p), mesh) * (m->layered[p] ? share : 1);
  }
  for (uint32_t k = 0; k < m->state_count; k++) {
    const uint32_t p = ax_model_state_of(m, k);
    if (p == AX_NONE || !used[p]) continue;
    const ax_axis_cuts cuts = state_cuts(layout, families, mesh, families->of[p]);
    held[AX_HELD_STATE] += cut_bytes(&cuts, ax_treedef_type(m->state_def, k), mesh) * (m->layered[p] ? share : 1);
  }
}

void ax_arrangement_memory(const ax_arrangement *layout, const ax_model *m, const ax_families *families, const ax_mesh *mesh,
                      ax_planned_memory *out) {
  *out = (ax_planned_memory){0};
  for (uint32_t p = 0; p < m->param_count; p++) out->parameters += cut_bytes(&layout->family[families->of[p]], param_type(m, p), mesh);
  for (uint32_t k = 0; k < m->state_count; k++) {
    const uint32_t p = ax_model_state_of(m, k);
    const ax_axis_cuts cuts = p != AX_NONE ? state_cuts(layout, families, mesh, families->of[p]) : whole;
    out->state += cut_bytes(&cuts, ax_treedef_type(m->state_def, k), mesh);
  }
  for (uint32_t b = 0; b < m->batch_count && m->train; b++) {
    const ax_type batch = ax_batch_type(m->program->types[m->batch[b]], m->samples);
    out->batch += cut_bytes(&layout->batch, &batch, mesh);
  }
}
