/* rng, whose numbers come from a state that the program has not: each time that one is drawn they are others. Here the state is how
   often the operation has been run. Draw number n of an operation on a device is made by jax.random's generator (axle/random.h) of the
   key 0, into which the operation's number in the module, the device's number and n are folded. So the first run of a program that
   was read draws the same numbers each time, with any number of workers; the next run goes on. */
#include "bridge/readers.h"

#include <pthread.h>

#include "axle/callback.h"
#include "axle/ops.h"
#include "axle/random.h"
#include "ir/dtype.h"
#include "prim/bind.h"

/* --- The state --- */

typedef struct draws {
  pthread_mutex_t lock;
  uint32_t *v, count, room; /* by device: how often it has drawn */
} draws;

static ax_status next_draw(draws *d, int64_t device, uint32_t *out) {
  if (device < 0 || device >= AX_NONE) return AX_INVALID_ARGUMENT;
  while (d->count <= device) {
    AX_TRY(ax_grow(&d->v, sizeof d->v[0], d->count, 1, &d->room));
    d->v[d->count++] = 0;
  }
  *out = d->v[device]++;
  return AX_OK;
}

/* -> u32[2]: the device, and which draw it is. */
static ax_status draw(ax_callback_call *call, void *context) {
  draws *d = context;
  uint32_t number = 0;
  pthread_mutex_lock(&d->lock);
  const ax_status status = next_draw(d, call->device, &number);
  pthread_mutex_unlock(&d->lock);
  uint32_t *out = call->out[0].data;
  out[0] = (uint32_t)call->device, out[1] = number;
  return status;
}

static void release(void *context) {
  draws *d = context;
  pthread_mutex_destroy(&d->lock);
  ax_free(d->v);
  ax_free(d);
}

static ax_status make_state(ax_callback **out) {
  draws *d = ax_calloc(1, sizeof *d);
  if (d == NULL) return ax_out_of_memory(sizeof *d);
  pthread_mutex_init(&d->lock, NULL);
  const ax_status status = ax_callback_create("rng", draw, d, release, out);
  if (status != AX_OK) release(d);
  return status;
}

static ax_status make_key(const ax_hlo_read_args *args, ax_value *out) {
  const int64_t two[] = {2};
  const ax_type words = ax_array_type(AX_U32, AX_LIST(1, two));
  ax_callback *state;
  ax_value drawn = ax_poison;
  AX_TRY(make_state(&state));
  (ax_io_callback)(state, false, 0, &drawn, 1, &words, 1, &drawn);
  ax_callback_release(state);
  const ax_value of_op = ax_random_fold_in(ax_random_key(ax_integer(0)), ax_integer(args->op->result));
  *out = ax_random_fold_in(ax_random_fold_in(of_op, ax_at(drawn, 0, 0)), ax_at(drawn, 1, 0));
  return AX_OK;
}

/* --- Reading --- */

static ax_status rng_read(const ax_hlo_read_args *args) {
  const ax_hlo_attribute *distribution = ax_hlo_find(args->op, "rng_distribution");
  const ax_type *to = &args->out_types[0];
  ax_value key = ax_poison;
  const bool uniform = distribution != NULL && ax_hlo_slice_is(distribution->text, "UNIFORM");
  if (args->op->operand_count != 3) return ax_error(AX_INVALID_ARGUMENT, "it takes 3 operands");
  if (!uniform && (distribution == NULL || !ax_hlo_slice_is(distribution->text, "NORMAL")))
    return ax_error(AX_INVALID_ARGUMENT, "rng_distribution must be UNIFORM or NORMAL");
  if (!ax_is_float(to->dtype) && (!uniform || to->dtype == AX_BOOL || ax_is_complex(to->dtype)))
    return ax_error(AX_ABSENT, "numbers of %s are not drawn", ax_dtype_name(to->dtype));
  AX_TRY(make_key(args, &key));
  if (!uniform) {
    const ax_value normal = (ax_random_normal)(key, to->dtype, AX_LIST(to->rank, to->dims));
    args->out[0] = ax_add(ax_mul(normal, args->in[1]), args->in[0]);
  } else if (ax_is_float(to->dtype)) {
    args->out[0] = (ax_random_uniform)(key, to->dtype, AX_LIST(to->rank, to->dims), args->in[0], args->in[1]);
  } else {
    args->out[0] = (ax_random_randint)(key, to->dtype, AX_LIST(to->rank, to->dims), args->in[0], args->in[1]);
  }
  return AX_OK;
}

const ax_hlo_reader ax_hlo_rng_readers[] = {{"stablehlo.rng", rng_read}, {0}};
