/* See devices.h. */
#include "array/devices.h"

#include <string.h>

#include "array/executable.h"
#include "mesh/assignment.h"

/* --- How results lie --- */

static bool has_mesh(const ax_executable *e) { return e->signature.mesh.count > 0; }

/* The layout of result k of the program, which has a spec. */
static ax_status describe(ax_executable *e, const ax_assigned *assigned, uint32_t k, ax_layout **out) {
  const ax_layout *like = assigned->like;
  const ax_type *type = ax_program_out_type(e->program, k);
  const ax_spec *spec = e->signature.out[k].spec;
  const ax_mesh *mesh = has_mesh(e) || like == NULL ? &e->signature.mesh : &like->mesh;
  if (like == NULL) return ax_layout_create(e->runtime, type, mesh, spec, NULL, has_mesh(e), out);
  ax_sharding *devices = NULL;
  if (like->sharding != NULL) AX_TRY(ax_sharding_create_on(mesh, spec, like->sharding, &devices));
  ax_status status = ax_layout_create(e->runtime, type, mesh, spec, devices, true, out);
  ax_sharding_release(devices);
  return status;
}

static ax_status describe_all(ax_executable *e, ax_assigned *assigned) {
  const uint32_t made = e->compiled.plan->out_count;
  assigned->made = ax_calloc((size_t)made + e->signature.out_count + 1, sizeof assigned->made[0]);
  if (assigned->made == NULL) return ax_out_of_memory(made * sizeof assigned->made[0]);
  assigned->passed = assigned->made + made;
  for (uint32_t k = 0; k < e->signature.out_count; k++) {
    const ax_signature_out *out = &e->signature.out[k];
    ax_layout **place = out->made != AX_NONE ? &assigned->made[out->made] : &assigned->passed[k];
    if (out->spec != NULL) AX_TRY(describe(e, assigned, k, place));
  }
  return AX_OK;
}

static void release(const ax_executable *e, ax_assigned *assigned) {
  for (uint32_t k = 0; assigned->made != NULL && k < e->compiled.plan->out_count + e->signature.out_count; k++)
    ax_layout_release(assigned->made[k]);
  ax_free(assigned->made);
  ax_layout_release(assigned->like);
}

ax_status ax_assigned_init(ax_executable *e) { return describe_all(e, &e->assigned); }

void ax_assigned_deinit(ax_executable *e) {
  release(e, &e->assigned);
  for (ax_assigned *a = atomic_load(&e->other_assigned), *next; a != NULL; a = next) {
    next = a->next;
    release(e, a);
    ax_free(a);
  }
}

bool ax_layout_same_devices(const ax_layout *a, const ax_layout *b) {
  const ax_sharding *x = a->sharding, *y = b->sharding;
  if (a->devices != b->devices) return false;
  return x == y || (x != NULL && y != NULL && memcmp(x->ids, y->ids, (size_t)a->devices * sizeof x->ids[0]) == 0);
}

static ax_assigned *look(ax_executable *e, const ax_layout *like) {
  ax_assigned *a = atomic_load_explicit(&e->other_assigned, memory_order_acquire);
  while (a != NULL &&
         !(ax_layout_same_devices(a->like, like) && (has_mesh(e) || ax_mesh_equal(&a->like->mesh, &like->mesh, false))))
    a = a->next;
  return a;
}

static ax_status make(ax_executable *e, ax_layout *like, ax_assigned **out) {
  ax_assigned *a = ax_calloc(1, sizeof *a);
  if (a == NULL) return ax_out_of_memory(sizeof *a);
  a->like = ax_layout_retain(like);
  ax_status status = describe_all(e, a);
  if (status == AX_OK) {
    *out = a;
    return AX_OK;
  }
  release(e, a);
  ax_free(a);
  return status;
}

/* Entries stay until the executable goes, so callers hold no reference to one. */
static ax_status find_other(ax_executable *e, ax_layout *like, const ax_assigned **out) {
  ax_status status = AX_OK;
  ax_assigned *a = look(e, like);
  if (a == NULL) {
    pthread_mutex_lock(&e->lock);
    a = look(e, like);
    if (a == NULL) {
      status = make(e, like, &a);
      if (status == AX_OK) a->next = atomic_load(&e->other_assigned);
      if (status == AX_OK) atomic_store_explicit(&e->other_assigned, a, memory_order_release);
    }
    pthread_mutex_unlock(&e->lock);
  }
  *out = a;
  return status;
}

/* --- Refused --- */

void ax_argument_text(ax_text *text, const ax_executable *e, const ax_naming *naming, uint32_t argument) {
  if (naming != NULL) {
    naming->write(text, naming->context, argument);
    return;
  }
  ax_text_add(text, "argument %u", argument);
  if (e->names != NULL && e->names[argument] != NULL) ax_text_add(text, " (%s)", e->names[argument]);
}

static void ids_text(ax_text *text, const ax_layout *layout) {
  enum { shown = 16 };
  ax_text_add(text, "device ids [");
  for (int64_t p = 0; p < layout->devices && p < shown; p++)
    ax_text_add(text, "%s%lld", p > 0 ? ", " : "", (long long)(layout->sharding != NULL ? layout->sharding->ids[p] : p));
  ax_text_add(text, "%s] of platform cpu", layout->devices > shown ? ", .." : "");
}

/* "argument 0 (x), f32[8], which lies P(d) over (d=4) on device ids [0, 1, 2, 3] of platform cpu" */
static void whereabouts(ax_text *text, const ax_executable *e, ax_array *const *in, const ax_naming *naming, uint32_t i) {
  const ax_layout *layout = in[i]->layout;
  ax_argument_text(text, e, naming, i);
  ax_text_add(text, ", %s, which lies ", ax_type_string(&layout->type, NULL));
  ax_spec_text(text, &layout->spec, &layout->mesh);
  ax_text_add(text, " over ");
  ax_mesh_text(text, &layout->mesh);
  ax_text_add(text, " on ");
  ids_text(text, layout);
}

/* The next argument, from *i on, that decides on which devices this call runs: it is committed, and a result or an effect depends
   on it. */
static const ax_layout *next_committed(const ax_executable *e, ax_array *const *in, uint32_t *i) {
  for (; *i < e->signature.in_count; ++*i)
    if (ax_signature_uses(&e->signature, *i) && in[*i]->layout->committed) return in[*i]->layout;
  return NULL;
}

static uint32_t count_others(const ax_executable *e, ax_array *const *in, const ax_layout *than) {
  uint32_t count = 0, i = 0;
  for (const ax_layout *layout; (layout = next_committed(e, in, &i)) != NULL; i++) count += !ax_layout_same_devices(layout, than);
  return count;
}

static ax_status refuse(const ax_executable *e, ax_array *const *in, const char *who, const ax_naming *naming, uint32_t first,
                        uint32_t second) {
  const ax_layout *layout = in[first]->layout;
  ax_text text = {0};
  uint32_t more = count_others(e, in, layout);
  if (second == AX_NONE) {
    ax_text_add(&text, "the program runs on %u device%s, ", e->compiled.devices, e->compiled.devices == 1 ? "" : "s");
    ax_mesh_text(&text, &e->signature.mesh);
    ax_text_add(&text, ", and was given ");
  } else {
    ax_text_add(&text, "incompatible devices: ");
    more--;
  }
  whereabouts(&text, e, in, naming, first);
  if (second != AX_NONE) {
    ax_text_add(&text, ", and ");
    whereabouts(&text, e, in, naming, second);
  }
  if (more > 0) ax_text_add(&text, "; %u more %s not on the first one's devices", more, more == 1 ? "is" : "are");
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s: %s", who, text.data);
  ax_text_deinit(&text);
  return status;
}

/* --- Found --- */

ax_status ax_assigned_find(ax_executable *e, ax_array *const *in, const char *who, const ax_naming *naming,
                           const ax_assigned **out) {
  uint32_t i = 0;
  *out = &e->assigned;
  const ax_layout *first = next_committed(e, in, &i), *seen = first;
  if (first == NULL) return AX_OK;
  const uint32_t at = i;
  for (const ax_layout *layout; (layout = next_committed(e, in, &i)) != NULL; i++) {
    if (layout == seen || ax_layout_same_devices(layout, first)) seen = layout;
    else return refuse(e, in, who, naming, at, i);
  }
  if (has_mesh(e) && first->devices != e->compiled.devices) return refuse(e, in, who, naming, at, AX_NONE);
  return has_mesh(e) && first->sharding == NULL
             ? AX_OK
             : find_other(e, (ax_layout *)first, out); /* the cast: counting references does not change the layout */
}
