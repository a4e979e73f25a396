/* What a kernel costs, as it is estimated of plans: nanoseconds, loops multiplied out; and whether it pays that several threads run its cores
   at once. Each act that other cores can notice brings the group's state from one thread's processor to the other's, which takes longer than a
   small block's arithmetic. So if little is done between two such acts, one thread runs all cores. */
#include "array/straight.h"
#include "kernel/image/image.h"
#include "kernel/image/segment.h"

enum {
  least_work = 500, /* ns between two acts that are worth another thread */
  unknown_rounds = 100
};

/* --- Threads --- */

static bool is_shared(const ax_image_op *op) { return op->kind >= AX_IMAGE_OPEN && op->kind < AX_IMAGE_END && !op->own; }

static double time_of(const ax_image_body *body, const ax_image_op *op) {
  const ax_core_code_step *step = op->step;
  double bytes = 0;
  for (uint32_t k = 0; k < step->out_count; k++) bytes += (double)body->slots[step->out[k]].bytes;
  for (uint32_t k = 0; k < step->in_count; k++)
    bytes += body->slots[step->in[k]].source == AX_SLOT_VIEW ? (double)body->slots[step->in[k]].bytes : 0;
  if (op->kind == AX_IMAGE_SEGMENT) return ax_straight_time(op->segment->straight);
  return op->kind == AX_IMAGE_EVAL || op->kind == AX_IMAGE_ACCESS || op->kind == AX_IMAGE_ACT ? 0.05 * bytes : 0;
}

/* Of a body: its time and its acts that others can notice. A loop of unknown length without such acts may be long; one with them has some
   in each round, so its length does not matter. */
static ax_status add_body(const ax_image_body *body, double *time, double *acts) {
  uint32_t *before = ax_alloc((body->op_count + (size_t)1) * sizeof before[0]), first = body->op_count; /* before: acts before an op */
  double rounds = 1;
  if (before == NULL) return ax_out_of_memory(body->op_count * sizeof before[0]);
  before[0] = 0;
  for (uint32_t i = 0; i < body->op_count; i++) before[i + 1] = before[i] + is_shared(&body->ops[i]);
  for (uint32_t i = body->op_count; i-- > 0;) {
    const ax_image_op *op = &body->ops[i];
    const bool repeats = op->kind == AX_IMAGE_JUMP && op->target <= i && before[i] == before[op->target];
    if (repeats && op->target < first) first = op->target;
    if (op->kind == AX_IMAGE_ADVANCE) rounds *= (double)(op->step->length > 0 ? op->step->length : 1);
    *time += rounds * (first <= i ? unknown_rounds : 1) * time_of(body, op);
    *acts += rounds * is_shared(op);
    if (first == i) first = body->op_count;
    if (op->kind == AX_IMAGE_NEXT) rounds /= (double)(op->step->length > 0 ? op->step->length : 1);
  }
  ax_free(before);
  return AX_OK;
}

ax_status ax_image_find_threads(ax_image *image) {
  double time = 0, acts = 0;
  for (uint32_t b = 0; b < image->machine->params->bodies.count; b++) AX_TRY(add_body(&image->bodies[b], &time, &acts));
  image->one_thread = time < least_work * acts;
  return AX_OK;
}

/* --- What it costs --- */

/* Loops go around as often as they say; of others it is not known, and once is taken. */
static double body_time(const ax_image_body *body) {
  double time = 0, rounds = 1;
  for (uint32_t i = 0; i < body->op_count; i++) {
    const ax_image_op *op = &body->ops[i];
    const ax_core_code_step *step = op->step;
    if (op->kind == AX_IMAGE_NEXT) rounds *= (double)step->length;
    double bytes = 0;
    for (uint32_t k = 0; k < step->out_count; k++) bytes += (double)body->slots[step->out[k]].bytes;
    for (uint32_t k = 0; k < step->in_count; k++)
      bytes += body->slots[step->in[k]].source == AX_SLOT_VIEW ? (double)body->slots[step->in[k]].bytes : 0;
    if (op->forwarded) bytes = 0;
    time += rounds * (op->kind == AX_IMAGE_SEGMENT ? ax_straight_time(op->segment->straight) : 20 + 0.1 * bytes);
    if (op->kind == AX_IMAGE_ADVANCE && step->length > 0) rounds /= (double)step->length;
  }
  return time;
}

double ax_image_time(const ax_image *image) {
  const bool others = ax_mesh_devices(image->axes) > (int64_t)image->members; /* groups of other devices run it at the same time */
  double time = 0;
  if (image->one_thread && !others) return 0;
  for (uint32_t c = 0; c < image->machine->core_count; c++) time += body_time(&image->bodies[image->machine->cores[c].body]);
  return time;
}
