/* Points side by side. A strand has the points of a kernel's grid that have the same numbers along the dimensions that beside.h names, and
   of memory the blocks that these numbers choose. What goes over the points of one strand is a function of them, which is batched, dimension
   by dimension; what strands have of memory lies in it where it lay.

     x: f32[8, 6], blocks of 2 x 3 at (i, k); i side by side        a strand has f32[2, 6]; all have f32[4, 2, 6], batched along 0  */
#include <string.h>

#include "kernel/discharge_points.h"
#include "prim/region.h"

uint32_t ax_strand_of(const ax_discharged *k, const ax_cut *c, uint32_t dim) {
  const int8_t feed = k->beside.feeds[c - k->cuts].dim[dim];
  if (feed < 0 || !k->beside.dim[feed]) return AX_NONE;
  return c->whole->type.dims[dim] == k->params->grid.v[feed] * c->shape->dims[dim] ? (uint32_t)feed : AX_NONE;
}

typedef struct strands {
  ax_discharged *k;
  int64_t points;           /* of each */
  uint32_t count, held;
  uint32_t dims[AX_MAX_RANK]; /* of the grid */
  const ax_cut **of;           /* by memory that is given in: an operand with blocks that strands choose */
} strands;

/* What a strand has of memory. */
static ax_type strand_type(const ax_discharged *k, const ax_cut *c) {
  ax_type type = ax_typeof(k->d.content[c->whole->memory]);
  for (uint32_t d = 0; d < type.rank; d++)
    if (ax_strand_of(k, c, d) != AX_NONE) type.dims[d] = c->shape->dims[d];
  return type;
}

static bool is_given(const strands *s, uint32_t memory) {
  for (uint32_t h = 0; h < s->held; h++)
    if (s->of[h]->whole->memory == memory) return true;
  return false;
}

static const ax_cut *result_in(const ax_discharged *k, uint32_t memory) {
  const ax_cut *c = &k->cuts[k->operand_count];
  while (c->whole->memory != memory) c++;
  return c;
}

/* (numbers of the strand, what it has of operands) -> (what it has of results) */
static AX_BODY(do_strand) {
  const strands *s = context;
  ax_discharged *k = s->k;
  const uint32_t memories = k->d.memory_count;
  ax_value *numbers = ax_trace_alloc((k->params->grid.count + 1) * sizeof numbers[0]),
           *before = ax_trace_alloc((memories + 1) * sizeof before[0]);
  if (ax_failed()) return;
  memcpy(before, k->d.content, memories * sizeof before[0]);
  for (uint32_t i = 0; i < s->count; i++) numbers[s->dims[i]] = in[i];
  for (uint32_t h = 0; h < s->held; h++) k->d.content[s->of[h]->whole->memory] = in[s->count + h];
  for (uint32_t c = 0; c < k->by_core.count && !ax_failed(); c++) {
    if (k->by_core.memory[c] == k->d.right) k->d.content[k->d.right] = ax_discharge_spread(&k->d, ax_full_i64(AX_S32, AX_DIMS(), 1));
    if (k->by_core.memory[c] == k->d.right || is_given(s, k->by_core.memory[c])) continue;
    const ax_type type = strand_type(k, result_in(k, k->by_core.memory[c]));
    k->d.content[k->by_core.memory[c]] = ax_content_unset(&k->d, &type);
  }
  k->strands = numbers;
  ax_discharge_points(k, s->points);
  k->strands = NULL;
  for (uint32_t c = 0; c < k->by_core.count; c++) out[c] = k->d.content[k->by_core.memory[c]];
  memcpy(k->d.content, before, memories * sizeof before[0]);
}

/* Where the numbers along dimension `i` of the strands are in what all strands together have of memory, once those of the dimensions behind
   it are there; -1: it is the same for all. */
static int strand_place(const strands *s, const ax_cut *c, uint32_t i) {
  int place = -1, more = 0;
  for (uint32_t d = 0; d < c->whole->type.rank; d++) {
    const uint32_t strand = ax_strand_of(s->k, c, d);
    if (strand == s->dims[i]) place = (int)d + more;
    more += strand != AX_NONE && strand > s->dims[i];
  }
  return place;
}

static ax_value as_strands(const ax_discharged *k, const ax_cut *c, ax_value x) {
  int64_t dims[2 * AX_MAX_RANK];
  uint32_t rank = 0;
  for (uint32_t d = 0; d < c->whole->type.rank; d++) {
    const uint32_t strand = ax_strand_of(k, c, d);
    if (strand != AX_NONE) dims[rank++] = k->params->grid.v[strand];
    dims[rank++] = strand != AX_NONE ? c->shape->dims[d] : c->whole->type.dims[d];
  }
  return ax_reshape(x, AX_LIST(rank, dims));
}

static void find_strands(ax_discharged *k, strands *s) {
  for (uint32_t d = 0; d < k->params->grid.count; d++)
    if (k->beside.dim[d]) s->dims[s->count++] = d;
  for (uint32_t i = 0; i < k->operand_count; i++) {
    const ax_cut *c = &k->cuts[i];
    bool any = false;
    for (uint32_t d = 0; c->shape != NULL && d < c->shape->rank; d++) any = any || ax_strand_of(k, c, d) != AX_NONE;
    if (any) s->of[s->held++] = c;
  }
}

/* Where inputs and results of the function have dimension i of the strands. */
static void find_places(const strands *s, const ax_body *body, uint32_t i, int *in, int *out) {
  const uint32_t first = body->captured_count;
  for (uint32_t n = 0; n < first; n++) in[n] = -1;
  for (uint32_t n = 0; n < s->count; n++) in[first + n] = n == i ? 0 : -1;
  for (uint32_t h = 0; h < s->held; h++) in[first + s->count + h] = strand_place(s, s->of[h], i);
  for (uint32_t c = 0; c < s->k->by_core.count; c++) {
    const uint32_t memory = s->k->by_core.memory[c];
    out[c] = memory == s->k->d.right ? 0 : strand_place(s, result_in(s->k, memory), i);
  }
}

static void batch_strands(const strands *s, const ax_body *body, ax_value *made) {
  ax_discharged *k = s->k;
  const uint32_t in_count = body->captured_count + s->count + s->held;
  ax_program *program = body->program;
  int *in = ax_trace_alloc((in_count + 1) * sizeof in[0]), *out = ax_trace_alloc((k->by_core.count + 1) * sizeof out[0]);
  ax_value *given = ax_trace_alloc((in_count + 1) * sizeof given[0]);
  ax_status status = ax_failed() ? AX_OUT_OF_MEMORY : AX_OK;
  for (uint32_t i = s->count; status == AX_OK && i-- > 1;) {
    ax_program *next = NULL;
    find_places(s, body, i, in, out);
    status = ax_batch_program(program, in, k->params->grid.v[s->dims[i]], NULL, out, NULL, &next);
    if (program != body->program) ax_program_release(program);
    program = next;
  }
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < body->captured_count; i++) given[i] = body->captured[i];
  for (uint32_t i = 0; i < s->count; i++)
    given[body->captured_count + i] = ax_discharge_spread(&k->d, ax_iota(AX_S32, AX_LIST(1, &k->params->grid.v[s->dims[i]]), 0));
  for (uint32_t h = 0; h < s->held; h++)
    given[body->captured_count + s->count + h] = as_strands(k, s->of[h], k->d.content[s->of[h]->whole->memory]);
  find_places(s, body, 0, in, out);
  ax_batch_call(program, given, in, k->params->grid.v[s->dims[0]], NULL, out, made);
  if (program != body->program) ax_program_release(program);
}

void ax_discharge_strands(ax_discharged *k, int64_t points) {
  strands s = {.k = k, .points = points, .of = ax_trace_alloc((k->operand_count + 1) * sizeof s.of[0])};
  ax_value *made = ax_trace_alloc((k->by_core.count + 1) * sizeof made[0]);
  if (ax_failed()) return;
  find_strands(k, &s);
  ax_body body;
  ax_type *types = ax_trace_alloc((s.count + s.held + 1) * sizeof types[0]);
  if (types == NULL) return;
  for (uint32_t i = 0; i < s.count; i++) {
    types[i] = ax_array_type(AX_S32, AX_DIMS());
    types[i].spread = k->d.spread;
  }
  for (uint32_t h = 0; h < s.held; h++) types[s.count + h] = strand_type(k, s.of[h]);
  ax_status status = ax_body_trace(&(ax_body_options){.owner = k->params->name, .part = "points of a strand", .in = types,
                                                      .function = AX_CLOSURE(do_strand, s.count + s.held, k->by_core.count, &s)},
                                   &body);
  if (status != AX_OK) {
    ax_fail(status);
    return;
  }
  batch_strands(&s, &body, made);
  for (uint32_t c = 0; c < k->by_core.count && !ax_failed(); c++) {
    if (k->by_core.memory[c] == k->d.right) {
      ax_discharge_require(&k->d, ax_ne(ax_reduce_min(made[c], AX_ALL_DIMS, false), ax_integer(0)));
      continue;
    }
    const ax_cut *result = result_in(k, k->by_core.memory[c]);
    k->d.content[k->by_core.memory[c]] =
        ax_discharge_spread(&k->d, ax_reshape(made[c], AX_LIST(result->whole->type.rank, result->whole->type.dims)));
  }
  ax_body_deinit(&body);
}
