/* Operations of StableHLO's own tests that look at values while a program runs:

     %1 = interpreter.probe %0, probe_id = "p"         keeps %0, each time that it is computed; the result is the operand
     check.expect_serialized_eq %1, probe_id = "p"     fails unless the value is what the probe kept at iteration 0,
     .., probe_id = "p", iter = 2                      or at this one
     interpreter.print %0                              text, as ax_debug_print's

   Their interpreter writes files. Here the probes of a program keep their values in memory, as long as the program, and from run to
   run: iterations are counted from the first run on. Probes and checks are called in the order of the text. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "axle/callback.h"
#include "axle/ops.h"
#include "bridge/import.h"
#include "bridge/readers.h"
#include "ir/text.h"

typedef struct kept { /* a value */
  struct kept *before;
  ax_hlo_slice probe; /* in the store's arena */
  ax_dtype dtype;
  int64_t iteration;
  size_t bytes;
  char data[];
} kept;

struct ax_hlo_probes { /* of one program; its callbacks hold it */
  atomic_uint references;
  pthread_mutex_t lock;
  ax_arena arena;
  kept *last;
};

typedef struct place { /* a probe, or a check of one */
  ax_hlo_probes *probes;
  ax_hlo_slice probe;
  int64_t iteration; /* that is checked */
} place;

static ax_hlo_probes *probes_of(ax_hlo_import *import) {
  if (import->probes != NULL || (import->probes = ax_calloc(1, sizeof *import->probes)) == NULL) return import->probes;
  atomic_init(&import->probes->references, 1);
  pthread_mutex_init(&import->probes->lock, NULL);
  return import->probes;
}

void ax_hlo_probes_release(ax_hlo_probes *probes) {
  if (probes == NULL || atomic_fetch_sub(&probes->references, 1) > 1) return;
  pthread_mutex_destroy(&probes->lock);
  ax_arena_deinit(&probes->arena);
  ax_free(probes);
}

static void release(void *context) {
  place *p = context;
  ax_hlo_probes_release(p->probes);
  ax_free(p);
}

/* --- While the program runs --- */

static size_t bytes_of(const ax_host_array *x) { return (size_t)ax_dims_elems(x->rank, x->dims) * ax_dtype_bytes(x->dtype); }

/* The probe's value at the iteration; -1: the last one. NULL: it was not computed so often. */
static const kept *find(const place *p, int64_t iteration) {
  const kept *k = p->probes->last;
  while (k != NULL && !(ax_hlo_slice_same(k->probe, p->probe) && (iteration < 0 || k->iteration == iteration))) k = k->before;
  return k;
}

static ax_status keep(ax_callback_call *call, void *context) {
  const place *p = context;
  const size_t bytes = bytes_of(&call->in[0]);
  pthread_mutex_lock(&p->probes->lock);
  const kept *before = find(p, -1);
  kept *k = ax_arena_alloc(&p->probes->arena, sizeof *k + bytes);
  if (k != NULL) {
    *k = (kept){p->probes->last, p->probe, call->in[0].dtype, before != NULL ? before->iteration + 1 : 0, bytes};
    memcpy(k->data, call->in[0].data, bytes);
    p->probes->last = k;
  }
  pthread_mutex_unlock(&p->probes->lock);
  if (k == NULL) return ax_out_of_memory(sizeof *k + bytes);
  memcpy(call->out[0].data, call->in[0].data, bytes);
  return AX_OK;
}

static ax_status compare(ax_callback_call *call, void *context) {
  const place *p = context;
  const size_t bytes = bytes_of(&call->in[0]);
  pthread_mutex_lock(&p->probes->lock);
  const kept *k = find(p, p->iteration);
  const bool same = k != NULL && k->dtype == call->in[0].dtype && k->bytes == bytes && memcmp(k->data, call->in[0].data, bytes) == 0;
  pthread_mutex_unlock(&p->probes->lock);
  if (same) return AX_OK;
  snprintf(call->message, AX_MESSAGE_BYTES, "the value differs from that of the probe \"%.*s\" at iteration %" PRId64 "%s",
           p->probe.length < 100 ? (int)p->probe.length : 100, p->probe.start, p->iteration, k == NULL ? ", which there was not" : "");
  return AX_INVALID_ARGUMENT;
}

/* --- Reading --- */

/* A callback with the operation's probe; its name is copied, since the program outlives the module. */
static ax_status make(const ax_hlo_read_args *args, const char *name, ax_callback_function function, ax_callback **out) {
  const ax_hlo_attribute *probe = ax_hlo_find(args->op, "probe_id");
  int64_t iteration;
  AX_TRY(ax_hlo_integer_or(args->op, "iter", 0, &iteration));
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one array");
  if (probe == NULL || probe->kind != AX_HLO_STRING) return ax_error(AX_INVALID_ARGUMENT, "the attribute probe_id must be a string");
  if (iteration < 0) return ax_error(AX_INVALID_ARGUMENT, "the attribute iter must not be negative");
  ax_hlo_probes *probes = probes_of(args->import);
  if (probes == NULL) return ax_out_of_memory(sizeof *probes);
  const char *text = ax_arena_copy(&probes->arena, probe->text.start, probe->text.length);
  place *p = ax_alloc(sizeof *p);
  if (p == NULL || text == NULL) {
    ax_free(p);
    return ax_out_of_memory(sizeof *p);
  }
  *p = (place){probes, {text, probe->text.length}, iteration};
  atomic_fetch_add(&probes->references, 1);
  const ax_status status = ax_callback_create(name, function, p, release, out);
  if (status != AX_OK) release(p);
  return status;
}

static ax_status read_probe(const ax_hlo_read_args *args) {
  ax_callback *callback;
  AX_TRY(make(args, "interpreter.probe", keep, &callback));
  const ax_type type = ax_typeof(args->in[0]), made = ax_array_type(type.dtype, AX_LIST(type.rank, type.dims));
  (ax_io_callback)(callback, true, 1, args->in, 1, &made, 1, args->out);
  ax_callback_release(callback);
  return AX_OK;
}

static ax_status read_check(const ax_hlo_read_args *args) {
  ax_callback *callback;
  AX_TRY(make(args, "check.expect_serialized_eq", compare, &callback));
  (ax_io_callback)(callback, true, 1, args->in, 0, NULL, 0, NULL);
  ax_callback_release(callback);
  return AX_OK;
}

static ax_status read_print(const ax_hlo_read_args *args) {
  if (args->op->operand_count != 1) return ax_error(AX_INVALID_ARGUMENT, "it takes one array");
  (ax_debug_print)("{}", false, 1, args->in);
  return AX_OK;
}

const ax_hlo_reader ax_hlo_probe_readers[] = {
    {"interpreter.probe", read_probe}, {"check.expect_serialized_eq", read_check}, {"interpreter.print", read_print}, {0}};
