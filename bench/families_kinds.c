/* Families of one kind of equation each, n of them one after the other or side by side: what a program of many look-ups, sorts,
   checkpoints, constants or messages takes. */
#include <stdio.h>
#include <stdlib.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "axle/transform.h"
#include "families.h"

static int64_t size_of(const void *context) { return ((const subject *)context)->n; }
static ax_value sum_of(ax_value x) { return ax_reduce_sum(x, AX_ALL_DIMS, false); }

/* The subject's loss is repeated(step): x = step(x, y, i), n times. */
typedef ax_value step(ax_value x, ax_value y, int64_t i);
typedef struct repeated {
  int64_t n;
  step *next;
} repeated;

static void repeated_loss(const ax_value *in, ax_value *out, void *context) {
  const repeated *r = context;
  ax_value x = in[0];
  for (int64_t i = 0; i < r->n; i++) x = r->next(x, in[1], i);
  out[0] = sum_of(x);
}

static void repeat(subject *s, step *next) {
  repeated *r = family_room(1, sizeof *r);
  *r = (repeated){s->n, next};
  family_differentiated(s, repeated_loss, 2, 2, (const int64_t[]){8, 16});
  s->loss_context = r;
}

static void two_links(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_tanh(ax_mul(ax_sin(in[0]), in[1]));
}
static ax_value checkpointed(ax_value x, ax_value y, int64_t i) {
  ax_value made;
  (void)i;
  ax_checkpoint(AX_FN(two_links, 2, 1), AX_VALUES(x, y), &made, NULL);
  return made;
}
static void checkpoints(subject *s) { repeat(s, checkpointed); }

static void forward(const ax_value *in, ax_value *out, void *context) {
  two_links(in, out, context);
  out[1] = in[0];
  out[2] = in[1];
}
static void backward(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(in[2], in[1]);
  out[1] = ax_mul(in[2], in[0]);
}
static ax_value ruled(ax_value x, ax_value y, int64_t i) {
  ax_value made;
  (void)i;
  ax_custom_vjp(AX_FN(two_links, 2, 1), AX_FN(forward, 2, 3), AX_FN(backward, 3, 2), AX_VALUES(x, y), &made);
  return made;
}
static void custom_vjps(subject *s) { repeat(s, ruled); }

static ax_value sorted(ax_value x, ax_value y, int64_t i) { return ax_mul(ax_sort(x, i % 2), y); }
static void sorts(subject *s) { repeat(s, sorted); }

static ax_value summed(ax_value x, ax_value y, int64_t i) { return ax_mul(ax_cumsum(x, i % 2, false), y); }
static void cumsums(subject *s) { repeat(s, summed); }

static ax_value pooled(ax_value x, ax_value y, int64_t i) {
  (void)i;
  return ax_mul(ax_reduce_window_max(x, AX_DIMS(3, 3), &(ax_window_options){.padding = "SAME"}), y);
}

static ax_value turned(ax_value x, ax_value y, int64_t i) {
  ax_value flat = ax_reshape(ax_matrix_transpose(ax_reshape(x, AX_DIMS(4, 32))), AX_DIMS(8, 16));
  return i % 2 == 0 ? ax_mul(flat, y) : ax_tanh(flat);
}
static void transposes(subject *s) { repeat(s, turned); }

static ax_value parted(ax_value x, ax_value y, int64_t i) {
  ax_value parts[2];
  ax_split(x, AX_DIMS(5, 11), 1, parts);
  const ax_value other[] = {parts[1], parts[0]};
  return i % 2 == 0 ? ax_mul(ax_concatenate(AX_LIST(2, other), 1), y) : ax_tanh(ax_concatenate(AX_LIST(2, other), 1));
}
static void concatenations(subject *s) { repeat(s, parted); }

static ax_value chosen(ax_value x, ax_value y, int64_t i) {
  return i % 2 == 0 ? ax_where(ax_gt(x, y), ax_sin(x), y) : ax_mul(x, y);
}
static void choices(subject *s) { repeat(s, chosen); }

static ax_value normed(ax_value x, ax_value y, int64_t i) {
  (void)i;
  return ax_mul(ax_softmax(x, -1), y);
}
static void softmaxes(subject *s) { repeat(s, normed); }

static ax_value scattered(ax_value x, ax_value y, int64_t i) {
  ax_value index = ax_convert_element_type(ax_slice(x, AX_DIMS(0, i % 16), AX_DIMS(3, i % 16 + 1), NULL), AX_S32);
  return ax_at_add(x, ax_reshape(index, AX_DIMS(3)), ax_slice(ax_sin(y), AX_DIMS(0, 0), AX_DIMS(3, 16), NULL), 0, NULL);
}
static void scatters(subject *s) { repeat(s, scattered); }

static ax_value rounded(ax_value x, ax_value y, int64_t i) {
  ax_value short_one = ax_convert_element_type(x, i % 2 == 0 ? AX_BF16 : AX_F16);
  return ax_mul(ax_convert_element_type(short_one, AX_F32), y);
}
static void conversions(subject *s) { repeat(s, rounded); }

/* Kernels that differ in a constant alone, and that no memory order makes one: columns are scaled. */
static ax_value scaled(ax_value x, ax_value y, int64_t i) {
  ax_value columns = ax_reduce_sum(x, AX_DIMS(0), true);
  return ax_mul(ax_sub(x, ax_mul(ax_full_like(columns, 1.0 / (double)(3 + i)), columns)), y);
}
static void factors(subject *s) { repeat(s, scaled); }

/* n arrays that the program holds. */
static ax_value shifted(ax_value x, ax_value y, int64_t i) {
  float data[16];
  const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {16}};
  for (int k = 0; k < 16; k++) data[k] = (float)(i + k);
  ax_value constant = ax_constant(&type, data);
  return ax_mul(ax_add(x, ax_broadcast_to(constant, AX_DIMS(8, 16))), y);
}
static void constants(subject *s) { repeat(s, shifted); }

/* One array of n elements that the program holds. */
static void large_constant_loss(const ax_value *in, ax_value *out, void *context) {
  const int64_t n = size_of(context);
  float *data = family_room(n, sizeof data[0]);
  const ax_type type = {.dtype = AX_F32, .rank = 1, .dims = {n}};
  for (int64_t i = 0; i < n; i++) data[i] = (float)i / 3;
  out[0] = sum_of(ax_mul(in[0], ax_constant(&type, data)));
  free(data);
}
static void large_constant(subject *s) { family_differentiated(s, large_constant_loss, 1, 1, (const int64_t[]){s->n}); }

/* A scan whose body reads n values from around it. */
static void reading_step(const ax_value *in, ax_value *out, void *context) {
  const ax_value *around = *(ax_value *const *)context;
  int64_t n = (int64_t)((const uintptr_t *)context)[1];
  out[0] = in[0];
  for (int64_t i = 0; i < n; i++) out[0] = ax_tanh(ax_mul(out[0], around[i]));
}
static void captures_loss(const ax_value *in, ax_value *out, void *context) {
  ax_value *around = family_room(size_of(context), sizeof around[0]), start = ax_full_like(in[0], 1);
  for (int64_t i = 0; i < size_of(context); i++) around[i] = in[i];
  uintptr_t all[] = {(uintptr_t)around, (uintptr_t)size_of(context)};
  ax_scan(AX_CLOSURE(reading_step, 1, 1, all), 1, 4, false, &start, out);
  out[0] = sum_of(out[0]);
  free(around);
}
static void captures(subject *s) { family_differentiated(s, captures_loss, (uint32_t)s->n, 1, (const int64_t[]){4}); }

/* n functions in a batch whose members choose their own number of steps. */
static void not_far(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_lt(sum_of(in[0]), ax_full(AX_F32, AX_DIMS(), 2.0));
}
static void one_farther(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 0.5));
}
static void loops_of_one(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int64_t i = 0; i < size_of(context); i++) ax_while(AX_FN(not_far, 1, 1), AX_FN(one_farther, 1, 1), out, out);
}
static void whiles_in_batch(const ax_value *in, ax_value *out, void *context) {
  ax_vmap(AX_CLOSURE(loops_of_one, 1, 1, context), in, out, NULL);
}

/* --- On meshes --- */

static void on_mesh(subject *s, ax_function body, const char *mesh, int64_t elems) {
  family_differentiated(s, NULL, 2, 1, (const int64_t[]){elems});
  s->job.body = body;
  s->job.mesh = mesh;
  s->job.out_count = 1;
  const char **specs = family_room(3, sizeof specs[0]);
  for (int i = 0; i < 3; i++) specs[i] = "d";
  s->job.in_specs = specs;
  s->job.out_specs = specs + 2;
}

/* n devices: a sum, a shift and a gathering. */
static void devices_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_mul(ax_psum(in[0], "d"), in[1]);
  for (int i = 0; i < 4; i++) x = ax_mul(ax_pshift(ax_tanh(x), "d", 1, true), in[1]);
  ax_value all = ax_all_gather(x, "d", 0, true);
  out[0] = ax_psum_scatter(ax_mul(all, all), "d", 0, true);
}
static void devices(subject *s) {
  char *mesh = family_room(32, 1);
  snprintf(mesh, 32, "d=%lld", (long long)s->n);
  on_mesh(s, devices_body, mesh, 4 * s->n);
}

static void gathers_body(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int64_t i = 0; i < size_of(context); i++)
    out[0] = ax_psum_scatter(ax_tanh(ax_all_gather(out[0], "d", 0, true)), "d", 0, true);
}
static void gathers(subject *s) { on_mesh(s, gathers_body, "d=8", 64); }

static void exchanges_body(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int64_t i = 0; i < size_of(context); i++)
    out[0] = ax_tanh(ax_all_to_all(i % 2 == 0 ? out[0] : ax_mul(out[0], in[1]), "d", 0, 0, true));
}
static void exchanges(subject *s) { on_mesh(s, exchanges_body, "d=8", 64); }

/* In a trace of whole arrays: operations that the partitioner lays over eight devices. */
static void laid_body(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh;
  ax_value x = in[0];
  check(ax_mesh_parse("d=8", &mesh));
  for (int64_t i = 0; i < size_of(context); i++) {
    x = ax_matmul(ax_tanh(x), in[1]);
    if (i % 4 == 0) x = ax_with_sharding(x, &mesh, i % 8 == 0 ? "d,_" : "_,d");
  }
  out[0] = sum_of(x);
}
static void laid_out(subject *s) { family_differentiated(s, laid_body, 2, 2, (const int64_t[]){16, 16}); }

static void batched_whiles(subject *s) {
  family_differentiated(s, NULL, 1, 2, (const int64_t[]){4, 4});
  s->job.body = whiles_in_batch;
  s->job.out_count = 1;
}

static void pools(subject *s) { repeat(s, pooled); }

const family family_kinds[] = {
    {"checkpoints", checkpoints},
    {"custom_vjps", custom_vjps},
    {"sorts", sorts},
    {"cumsums", cumsums},
    {"pools", pools},
    {"transposes", transposes},
    {"concatenations", concatenations},
    {"choices", choices},
    {"softmaxes", softmaxes},
    {"scatters", scatters},
    {"conversions", conversions},
    {"factors", factors},
    {"constants", constants},
    {"large_constant", large_constant},
    {"captures", captures},
    {"batched_whiles", batched_whiles},
    {"devices", devices},
    {"gathers", gathers},
    {"exchanges", exchanges},
    {"laid_out", laid_out},
    {NULL, NULL},
};
