/* Points side by side. A strand has the points of a kernel's grid that have the same numbers along the dimensions that beside.h names, and
   of memory the blocks that these numbers choose. What goes over the points of one strand is a function of them, which is batched, dimension
   by dimension; what strands have of memory lies in it where it lay.

     x: f32[8, 6], blocks of 2 x 3 at (i, k); i side by side        a strand has f32[2, 6]; all have f32[4, 2, 6], batched along 0

   Where the last block along such a dimension sticks out, its strands are a batch of their own, and only their operands are padded:

     x: f32[7, 6]                                                   those of x[0:6] are f32[3, 2, 6], that of x[6:7], padded, f32[1, 2, 6] */
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
  int64_t begin[AX_MAX_RANK], size[AX_MAX_RANK]; /* along each: the numbers of the strands at hand */
  uint32_t sticking, sticks[AX_MAX_RANK];        /* so many of them have blocks that stick out, and are in two pieces: which */
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

static ax_cut *result_in(const ax_discharged *k, uint32_t memory) {
  ax_cut *c = &k->cuts[k->operand_count];
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

/* Where the strands at hand begin and end along dimension `dim` of the memory, in blocks; false: they have all of it. */
static bool find_span(const strands *s, const ax_cut *c, uint32_t dim, int64_t *begin, int64_t *end) {
  const uint32_t strand = ax_strand_of(s->k, c, dim);
  uint32_t i = 0;
  if (strand == AX_NONE) return false;
  while (s->dims[i] != strand) i++;
  *begin = s->begin[i];
  *end = s->begin[i] + s->size[i];
  return true;
}

/* Of dimension `dim` of the memory, what the strands at hand have: from where to where, and where blocks end that stick out. */
typedef struct span {
  int64_t from, to, wide;
} span;

static span span_of(const strands *s, const ax_cut *c, uint32_t dim) {
  int64_t begin, end;
  if (!find_span(s, c, dim, &begin, &end)) return (span){0, c->type->dims[dim], c->whole->type.dims[dim]};
  const int64_t block = c->shape->dims[dim], wide = end * block;
  return (span){begin * block, wide < c->type->dims[dim] ? wide : c->type->dims[dim], wide};
}

/* What the strands at hand have of an operand, without the numbers of strands as dimensions. */
static ax_value piece_of(const strands *s, const ax_cut *c) {
  int64_t from[AX_MAX_RANK], to[AX_MAX_RANK], dims[AX_MAX_RANK];
  if (s->sticking == 0) return s->k->d.content[c->whole->memory];
  for (uint32_t d = 0; d < c->type->rank; d++) {
    const span there = span_of(s, c, d);
    from[d] = there.from, to[d] = there.to, dims[d] = there.wide - there.from;
  }
  return ax_discharge_spread(&s->k->d, ax_discharge_widened(s->k, ax_slice(c->given, from, to, NULL), dims));
}

static ax_value as_strands(const strands *s, const ax_cut *c) {
  int64_t dims[2 * AX_MAX_RANK], begin, end;
  uint32_t rank = 0;
  for (uint32_t d = 0; d < c->whole->type.rank; d++) {
    const bool cut = find_span(s, c, d, &begin, &end);
    if (cut) dims[rank++] = end - begin;
    dims[rank++] = cut ? c->shape->dims[d] : c->whole->type.dims[d];
  }
  return ax_reshape(piece_of(s, c), AX_LIST(rank, dims));
}

/* What the strands at hand made of a result; where there are several pieces, without what sticks out. */
static ax_value result_piece(const strands *s, const ax_cut *c, ax_value made) {
  int64_t none[AX_MAX_RANK] = {0}, wide[AX_MAX_RANK], there[AX_MAX_RANK];
  for (uint32_t d = 0; d < c->whole->type.rank; d++) {
    const span all = span_of(s, c, d);
    wide[d] = all.wide - all.from, there[d] = all.to - all.from;
  }
  const ax_value piece = ax_reshape(made, AX_LIST(c->whole->type.rank, wide));
  return s->sticking == 0 || memcmp(wide, there, c->whole->type.rank * sizeof wide[0]) == 0 ? piece
                                                                                            : ax_slice(piece, none, there, NULL);
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
  for (uint32_t i = 0; i < s->count; i++) s->size[i] = k->params->grid.v[s->dims[i]];
}

/* The blocks of an operand or a result that the strands' dimension chooses stick out. */
static bool sticks_out(const ax_discharged *k, uint32_t grid_dim) {
  for (uint32_t i = 0; i < k->cut_count; i++)
    for (uint32_t d = 0; k->cuts[i].shape != NULL && d < k->cuts[i].shape->rank; d++)
      if (ax_strand_of(k, &k->cuts[i], d) == grid_dim && k->cuts[i].type->dims[d] != k->cuts[i].whole->type.dims[d]) return true;
  return false;
}

/* Finds the dimensions along which the last strands are apart, if all memory is as it was given. What is computed element by element takes
   paddings in, and drops what is cut off, in one pass; beside products paddings take no time. */
static void find_sticking(strands *s) {
  enum { most_sticking = 2, most_equations = 256 }; /* each doubles the program */
  const ax_discharged *k = s->k;
  if (!ax_discharges_once(k) || !k->beside.reduces || k->beside.product > 0) return;
  for (uint32_t i = 0; i < s->count && s->sticking < most_sticking; i++)
    if (s->size[i] > 1 && sticks_out(k, s->dims[i]) && k->beside.equations << s->sticking <= most_equations)
      s->sticks[s->sticking++] = i;
}

/* Puts the strands of a piece at hand. Bit j of its number: behind the full blocks along dimension sticks[j]. */
static void choose_piece(strands *s, uint32_t piece) {
  for (uint32_t j = 0; j < s->sticking; j++) {
    const int64_t full = s->k->params->grid.v[s->dims[s->sticks[j]]] - 1;
    const bool last = (piece >> j & 1) != 0;
    s->begin[s->sticks[j]] = last ? full : 0;
    s->size[s->sticks[j]] = last ? 1 : full;
  }
}

/* The dimension of a result that the grid's dimension chooses. */
static int64_t chosen_by(const ax_discharged *k, const ax_cut *c, uint32_t grid_dim) {
  uint32_t d = 0;
  while (ax_strand_of(k, c, d) != grid_dim) d++;
  return d;
}

/* Joins a result's pieces, which are `apart` values from each other in the list. */
static ax_value join(const strands *s, const ax_cut *c, ax_value *pieces, uint32_t apart) {
  for (uint32_t j = s->sticking; j-- > 0 && !ax_failed();)
    for (uint32_t piece = 0; piece < 1u << j; piece++) {
      ax_value *first = &pieces[piece * apart], both[2] = {*first, first[(1u << j) * apart]};
      *first = ax_concatenate(AX_LIST(2, both), chosen_by(s->k, c, s->dims[s->sticks[j]]));
    }
  return ax_discharge_spread(&s->k->d, pieces[0]);
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
    status = ax_batch_program(program, in, s->size[i], NULL, out, NULL, &next);
    if (program != body->program) ax_program_release(program);
    program = next;
  }
  if (status != AX_OK) ax_fail(status);
  if (ax_failed()) return;
  for (uint32_t i = 0; i < body->captured_count; i++) given[i] = body->captured[i];
  for (uint32_t i = 0; i < s->count; i++) {
    const ax_value numbers = ax_iota(AX_S32, AX_LIST(1, &s->size[i]), 0);
    given[body->captured_count + i] =
        ax_discharge_spread(&k->d, s->begin[i] > 0 ? ax_add(numbers, ax_integer(s->begin[i])) : numbers);
  }
  for (uint32_t h = 0; h < s->held; h++) given[body->captured_count + s->count + h] = as_strands(s, s->of[h]);
  find_places(s, body, 0, in, out);
  ax_batch_call(program, given, in, s->size[0], NULL, out, made);
  if (program != body->program) ax_program_release(program);
}

/* Makes what the strands at hand make: values of memory, without the numbers of strands as dimensions. */
static void make_piece(strands *s, const ax_body *body, ax_value *made) {
  ax_discharged *k = s->k;
  batch_strands(s, body, made);
  for (uint32_t c = 0; c < k->by_core.count && !ax_failed(); c++) {
    if (k->by_core.memory[c] == k->d.right)
      ax_discharge_require(&k->d, ax_ne(ax_reduce_min(made[c], AX_ALL_DIMS, false), ax_integer(0)));
    else
      made[c] = result_piece(s, result_in(k, k->by_core.memory[c]), made[c]);
  }
}

static void make_all(strands *s, const ax_body *body) {
  ax_discharged *k = s->k;
  const uint32_t count = k->by_core.count, pieces = 1u << s->sticking;
  ax_value *made = ax_trace_alloc((size_t)(pieces * count + 1) * sizeof made[0]);
  for (uint32_t piece = 0; piece < pieces && !ax_failed(); piece++) {
    choose_piece(s, piece);
    make_piece(s, body, &made[piece * count]);
  }
  for (uint32_t c = 0; c < count && !ax_failed(); c++) {
    if (k->by_core.memory[c] == k->d.right) continue;
    ax_cut *result = result_in(k, k->by_core.memory[c]);
    made[c] = join(s, result, &made[c], count);
    if (s->sticking > 0)
      result->joined = &made[c];
    else
      k->d.content[k->by_core.memory[c]] = made[c];
  }
}

void ax_discharge_strands(ax_discharged *k, int64_t points) {
  strands s = {.k = k, .points = points, .of = ax_trace_alloc((k->operand_count + 1) * sizeof s.of[0])};
  if (ax_failed()) return;
  find_strands(k, &s);
  find_sticking(&s);
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
  make_all(&s, &body);
  ax_body_deinit(&body);
}
