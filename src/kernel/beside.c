/* See beside.h.

     result 0 at (i, j), along k added up       grid (i, j, k): points of i and j side by side, each with all of its k in order

   Points of a dimension are computed side by side if the body only computes, each result has blocks of its own for each of the
   dimension's numbers, in order and up to its end, and nothing else goes from one to the next: no operand is written that is no such
   result, and scratch is written only where the dimension is AX_PARALLEL, of which each number may have scratch of its own, or where each
   number begins the scratch anew (beside_scratch.c). */
#include "kernel/beside.h"

#include <math.h>
#include <string.h>

#include "ir/memo.h"
#include "ir/number.h"
#include "kernel/discharge.h"
#include "kernel/ranges.h"
#include "kernel/step.h"
#include "prim/prims.h"

/* --- What chooses blocks --- */

static const ax_type *whole_of(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, uint32_t i) {
  return i < in_count ? &in[i] : &p->outs.v[i - in_count];
}

static int64_t blocks_along(const ax_type *whole, const ax_type *shape, uint32_t d) {
  const int64_t block = shape->dims[d];
  return block == 0 ? 0 : (whole->dims[d] + block - 1) / block;
}

static int8_t feed_of(const ax_kernel_params *p, const ax_program *map, uint32_t d) {
  const uint32_t id = map->outs[d];
  if (id < p->grid.count) return p->grid.v[id] == 1 ? AX_FEED_FIRST : (int8_t)id;
  const ax_literal *literal = ax_value_literal(map, id);
  return literal != NULL && ax_number_load(literal->type.dtype, literal->data, 0).i == 0 ? AX_FEED_FIRST : AX_FEED_OTHER;
}

static void find_feeds(const ax_kernel_params *p, ax_beside *out) {
  for (uint32_t i = 0; i < p->blocks.count; i++) memset(out->feeds[i].dim, AX_FEED_FIRST, sizeof out->feeds[i].dim);
  for (uint32_t b = 0; b < p->blocked.count; b++) {
    int8_t *dim = out->feeds[p->blocked.v[b][0]].dim;
    for (uint32_t d = 0; d < p->block_shapes.v[b].rank; d++) {
      dim[d] = feed_of(p, p->index_maps.v[p->blocked.v[b][1]], d);
      for (uint32_t before = 0; before < d && dim[d] >= 0; before++) /* blocks of a diagonal */
        if (dim[before] == dim[d]) dim[d] = AX_FEED_OTHER;
    }
  }
}

static const ax_type *shape_of(const ax_kernel_params *p, uint32_t i) {
  for (uint32_t b = 0; b < p->blocked.count; b++)
    if (p->blocked.v[b][0] == i) return &p->block_shapes.v[b];
  return NULL;
}

/* Which numbers of blocks may be none, as the ranges of the maps' results say. */
static ax_status find_late_of(ax_ranges *ranges, const ax_kernel_params *p, const ax_type *whole, uint32_t k, bool result, ax_feeds *feeds) {
  const ax_program *map = p->index_maps.v[p->blocked.v[k][1]];
  ax_interval numbers[AX_MAX_RANK];
  AX_TRY(ax_ranges_find(ranges, map, true, numbers));
  for (uint32_t d = 0; d < whole->rank; d++) {
    if (feeds->dim[d] != AX_FEED_OTHER) continue;
    const bool fixed = numbers[d].low == numbers[d].high, there = numbers[d].low >= 0 && numbers[d].high < blocks_along(whole, &p->block_shapes.v[k], d);
    feeds->late[d] = !there || (result && !fixed);
  }
  return AX_OK;
}

static ax_status find_late(ax_ranges *ranges, const ax_kernel_params *p, const ax_type *in, uint32_t in_count, ax_beside *out) {
  for (uint32_t k = 0; k < p->blocked.count; k++) {
    const uint32_t i = (uint32_t)p->blocked.v[k][0];
    AX_TRY(find_late_of(ranges, p, whole_of(p, in, in_count, i), k, i >= in_count, &out->feeds[i]));
  }
  return AX_OK;
}

/* --- Bodies that only compute --- */

/* Scratch of the core's own, without barriers. */
static bool is_plain_scope(const ax_eqn *eqn) {
  const ax_run_scoped_params *scope = ax_step_scope(eqn);
  for (uint32_t i = 0; scope != NULL && i < scope->scratch.count; i++)
    if (scope->scratch.v[i].form != AX_REF && scope->scratch.v[i].form != AX_DMA_SEMAPHORE) return false;
  return scope != NULL && scope->along.count == 0;
}

/* Of a product of m x k by k x n: m k n, as each of the three dimensions is in two of three arrays. */
static double multiplications(const ax_program *program, const ax_eqn *eqn) {
  if (eqn->prim != &ax_prim_dot_general) return 0;
  return sqrt((double)ax_type_elems(&program->types[eqn->in[0]]) * (double)ax_type_elems(&program->types[eqn->in[1]]) *
              (double)ax_type_elems(&program->types[eqn->out]));
}

static double ref_bytes(const ax_type *ref) { return (double)ax_type_elems(ref) * (double)ax_dtype_bytes(ref->dtype); }

/* It starts, groups or awaits copies within the core, which are done when they are started. */
static bool is_own_copying(const ax_program *program, const ax_eqn *eqn) {
  enum { most_bytes = 1 << 30 }; /* of counts, which are s32 */
  const ax_core_params *to = ax_step_target(eqn);
  for (uint32_t i = 0; i < eqn->in_count && i < 2; i++) {
    const ax_type *type = &program->types[eqn->in[i]];
    if (type->form == AX_REF && ref_bytes(type) > most_bytes) return false;
  }
  if (to != NULL && (to->logical || to->axes.count > 0)) return false;
  return !ax_step_copies(eqn) || !((const ax_copy_params *)eqn->params)->barrier;
}

static bool is_computing(const ax_program *program, const ax_eqn *eqn) {
  const ax_step *step = eqn->prim->step;
  if (step == NULL) return eqn->prim->effects == 0;
  if (step->view != NULL) return true;
  if (step->moves) return is_own_copying(program, eqn);
  return step->access != NULL || step->grid_number || is_plain_scope(eqn);
}

typedef struct facts { /* of a body, with the programs in it */
  bool computes_only;
  bool asks, until; /* has a view that may leave what it is of, or copies; has a loop whose end the data decides */
  uint64_t equations; /* those of a program in it once for each call */
  bool reduces;     /* an operation makes fewer elements than it is given */
  double product; /* multiplications of the largest product */
  double moved; /* bytes that its copies move, of all of them together */
  double accessed; /* bytes that it loads and stores, without the programs in it */
  bool accesses;   /* it loads or stores, or a program in it does */
  double bytes;  /* of all values that are computed */
  uint32_t rank; /* the largest */
} facts;

static bool has_dims(const ax_type *type) { return type->form == AX_ARRAY || type->form == AX_REF; }

/* Of its results. What is loaded is read where it lies. */
static double bytes_made(const ax_program *program, const ax_eqn *eqn) {
  double bytes = 0;
  for (uint32_t k = 0; k < eqn->out_count && eqn->prim->step == NULL; k++) {
    const ax_type *type = &program->types[eqn->out + k];
    if (type->form == AX_ARRAY) bytes += (double)ax_type_elems(type) * (double)ax_dtype_bytes(type->dtype);
  }
  return bytes;
}

static bool makes_fewer(const ax_program *program, const ax_eqn *eqn) {
  const ax_type *out = &program->types[eqn->out];
  if (eqn->prim->step != NULL || eqn->out_count == 0 || out->form != AX_ARRAY) return false;
  for (uint32_t i = 0; i < eqn->in_count; i++) {
    const ax_type *in = &program->types[eqn->in[i]];
    if (in->form == AX_ARRAY && ax_type_elems(in) > ax_type_elems(out)) return true;
  }
  return false;
}

/* Each program once, however many call it. NULL: no memory. */
static const facts *facts_of(ax_ranges *ranges, const ax_program *program) {
  const ax_program *nested;
  ax_memo *memo = &ranges->memo;
  ax_memo_entry *entry = ax_memo_ask(memo, "beside", program, NULL, 0);
  if (entry == NULL || entry->data != NULL) return entry != NULL ? entry->data : NULL;
  facts *f = ax_arena_alloc(&memo->arena, sizeof *f);
  if (f == NULL) return NULL;
  *f = (facts){.computes_only = true};
  for (uint32_t v = 0; v < program->value_count; v++)
    if (has_dims(&program->types[v]) && program->types[v].rank > f->rank) f->rank = program->types[v].rank;
  for (uint32_t e = 0; e < program->eqn_count; e++) {
    const ax_step *step = program->eqns[e].prim->step;
    f->computes_only = f->computes_only && is_computing(program, &program->eqns[e]);
    f->asks = f->asks || (step != NULL && (step->moves || (step->view != NULL && ax_ranges_is_late(ranges, program, e))));
    if (step != NULL && step->access != NULL) f->accesses = true, f->accessed += ref_bytes(&program->types[program->eqns[e].in[0]]);
    if (ax_step_copies(&program->eqns[e])) f->moved += ref_bytes(&program->types[program->eqns[e].in[0]]);
    const double product = multiplications(program, &program->eqns[e]);
    if (product > f->product) f->product = product;
    f->until = f->until || program->eqns[e].prim->runs == AX_RUNS_UNTIL;
    f->reduces = f->reduces || makes_fewer(program, &program->eqns[e]);
    f->equations++;
    f->bytes += bytes_made(program, &program->eqns[e]);
    for (uint32_t k = 0; (nested = ax_eqn_program(&program->eqns[e], k)) != NULL; k++) {
      const facts *of = facts_of(ranges, nested);
      if (of == NULL) return NULL;
      f->computes_only = f->computes_only && of->computes_only;
      f->asks = f->asks || of->asks;
      f->until = f->until || of->until;
      f->reduces = f->reduces || of->reduces;
      f->equations = f->equations + of->equations < UINT32_MAX ? f->equations + of->equations : UINT32_MAX;
      f->accesses = f->accesses || of->accesses;
      f->moved += of->moved;
      if (of->product > f->product) f->product = of->product;
      f->bytes += of->bytes;
      if (of->rank > f->rank) f->rank = of->rank;
    }
  }
  return entry->data = f;
}

/* --- Which dimensions --- */

/* Along one of the dimensions of the result each number has a block. */
static bool has_own_blocks(const ax_kernel_params *p, const ax_feeds *feeds, const ax_type *whole, const ax_type *shape, int8_t g) {
  for (uint32_t d = 0; d < whole->rank; d++)
    if (feeds->dim[d] == g) return blocks_along(whole, shape, d) == p->grid.v[g];
  return false;
}

/* An operand that is one memory with a result is read where the result is written. */
static bool aliases_agree(const ax_kernel_params *p, uint32_t in_count, const ax_beside *b) {
  for (uint32_t a = 0; a < p->aliases.count; a++) {
    const uint32_t operand = (uint32_t)p->aliases.v[a][0], result = in_count + (uint32_t)p->aliases.v[a][1];
    const ax_type *one = shape_of(p, operand), *other = shape_of(p, result);
    if (one == NULL || other == NULL || !ax_same_shape(one, other)) return false;
    if (memcmp(&b->feeds[operand], &b->feeds[result], sizeof b->feeds[0]) != 0) return false;
  }
  return true;
}

/* written: inputs of the body. *scratch: some is written. *own: no operand is that is not one memory with a result. */
static void look_at_writes(const ax_kernel_params *p, uint32_t in_count, const bool *written, bool *own, bool *scratch) {
  const ax_program *body = p->bodies.v[0];
  *own = true;
  *scratch = false;
  for (uint32_t i = (uint32_t)p->consts; i < body->in_count; i++) {
    const uint32_t k = i - (uint32_t)p->consts;
    if (!written[i]) continue;
    if (k >= p->blocks.count) *scratch = true;
    else if (k < in_count && ax_alias_of_operand(p, k) == AX_NONE) *own = false;
  }
}

/* Each number of the dimension has blocks of its own of all results. */
static bool is_own(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, const ax_beside *b, uint32_t g) {
  if (p->grid.v[g] < 2 || p->outs.count == 0) return false;
  for (uint32_t i = in_count; i < p->blocks.count; i++) {
    const ax_type *shape = shape_of(p, i);
    if (shape == NULL || !has_own_blocks(p, &b->feeds[i], whole_of(p, in, in_count, i), shape, (int8_t)g)) return false;
  }
  return true;
}

/* Scratch is one for all points, but along dimensions that are AX_PARALLEL; or along the outermost ones, if it begins anew with those within. */
static ax_status find_dims(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, bool scratch, ax_beside *b) {
  uint32_t outer = 0;
  bool anew = !scratch;
  while (outer < p->grid.count && (p->grid.v[outer] < 2 || is_own(p, in, in_count, b, outer))) outer++;
  if (scratch) AX_TRY(ax_beside_begins_anew(p, outer, &anew));
  for (uint32_t g = 0; g < p->grid.count; g++) {
    const bool parallel = p->semantics.count > 0 && p->semantics.v[g] == AX_PARALLEL;
    b->dim[g] = (!scratch || parallel || (anew && g < outer)) && is_own(p, in, in_count, b, g);
    b->count += b->dim[g];
  }
  return AX_OK;
}

/* Batches have a dimension for each; the last ones stay. */
static void keep_ranks(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, uint32_t rank, ax_beside *b) {
  for (uint32_t i = 0; i < p->blocks.count; i++)
    if (whole_of(p, in, in_count, i)->rank > rank) rank = whole_of(p, in, in_count, i)->rank;
  for (uint32_t g = 0; g < p->grid.count && rank + b->count > AX_MAX_RANK; g++) {
    b->count -= b->dim[g];
    b->dim[g] = false;
  }
}

/* A block that is not chosen in order is copied out of its operand, which a step does not do: too much where little is made of it. */
static bool copies_more(const ax_kernel_params *p, uint32_t in_count, const ax_beside *b) {
  const double much = 128 << 10;
  double copied = 0, others = 0;
  for (uint32_t i = 0; i < p->blocks.count; i++) {
    const double bytes = ref_bytes(&p->blocks.v[i]);
    bool other = false;
    for (uint32_t d = 0; d < AX_MAX_RANK && i < in_count; d++) other = other || b->feeds[i].dim[d] == AX_FEED_OTHER;
    if (other) copied += bytes;
    else others += bytes;
  }
  return copied >= much && copied > 4 * others;
}

/* Memory that lies where it is, of more bytes than this, is not handed on at each point. */
enum { much_pinned = 64 << 10, much_scratch = 1 << 20 };

/* Whether a program in it loads or stores: copies alone are made under a predicate, and hand nothing on. */
static ax_status hands_on(ax_ranges *ranges, const ax_eqn *eqn, bool *out) {
  const ax_program *nested;
  *out = false;
  for (uint32_t k = 0; !*out && (nested = ax_eqn_program(eqn, k)) != NULL; k++) {
    const facts *of = facts_of(ranges, nested);
    if (of == NULL) return ax_out_of_memory(sizeof *of);
    *out = of->accesses;
  }
  return AX_OK;
}

/* A branch, a loop or a call hands on all of the memory that it is given and the body writes, where a step touches some of it. */
static ax_status find_handed_on(ax_ranges *ranges, const ax_kernel_params *p, const bool *written, bool *found) {
  const ax_program *body = p->bodies.v[0];
  bool *large = ax_calloc((size_t)body->value_count + 1, 1);
  ax_status status = large != NULL ? AX_OK : ax_out_of_memory(body->value_count);
  for (uint32_t i = (uint32_t)p->consts; i < body->in_count && status == AX_OK; i++) {
    const uint32_t k = i - (uint32_t)p->consts;
    if (body->types[i].form != AX_REF || !written[i]) continue;
    large[i] = k < p->blocks.count ? shape_of(p, k) == NULL && ref_bytes(&body->types[i]) > much_pinned : ref_bytes(&body->types[i]) > much_scratch;
  }
  for (uint32_t e = 0; e < body->eqn_count && !*found && status == AX_OK; e++) {
    const ax_eqn *eqn = &body->eqns[e];
    const bool view = eqn->prim->step != NULL && eqn->prim->step->view != NULL;
    bool holds;
    status = hands_on(ranges, eqn, &holds);
    if (view && large[eqn->in[0]]) large[eqn->out] = true;
    for (uint32_t i = 0; i < eqn->in_count && status == AX_OK && holds; i++) *found = *found || large[eqn->in[i]];
  }
  ax_free(large);
  return status;
}

static double points_of(const ax_kernel_params *p) {
  double points = 1;
  for (uint32_t g = 0; g < p->grid.count; g++) points *= (double)p->grid.v[g];
  return points;
}

/* The plain program begins with whole memories that steps need not touch: results that are not gone over in blocks, which are filled, and
   arrays whose last block sticks out, which are widened. */
static bool touches_more(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, double point_bytes) {
  const double points = points_of(p);
  double filled = 0;
  for (uint32_t i = 0; i < p->blocks.count; i++) {
    const ax_type *whole = whole_of(p, in, in_count, i), *shape = shape_of(p, i);
    if (shape == NULL) {
      if (i >= in_count) filled += ref_bytes(whole);
      continue;
    }
    bool widened = false;
    for (uint32_t d = 0; d < whole->rank; d++) widened = widened || (shape->dims[d] > 0 && whole->dims[d] % shape->dims[d] != 0);
    if (widened && ref_bytes(whole) > much_pinned && ref_bytes(whole) > 4 * ref_bytes(shape) * points) return true;
  }
  return points > 1 && filled > much_pinned && filled > 4 * point_bytes * points; /* one point may loop over all of them */
}

static ax_status find_facts(ax_ranges *ranges, const ax_program *body, facts *out) {
  AX_TRY(ax_ranges_find(ranges, body, false, NULL));
  const facts *found = facts_of(ranges, body);
  if (found == NULL) return ax_out_of_memory(sizeof *found);
  *out = *found;
  return AX_OK;
}

static bool are_all_beside(const ax_kernel_params *p, const ax_beside *b) {
  bool all = true;
  for (uint32_t g = 0; g < p->grid.count; g++) all = all && (p->grid.v[g] < 2 || b->dim[g]);
  return all;
}

/* A step makes most copies without moving anything (image/image_alias.c), which is worth more than the step if they are large. */
enum { most_moved = 8 << 10 };

typedef struct looks { /* of a body */
  facts known;
  bool own, scratch, handed_on;
} looks;

static ax_status look_at_body(ax_ranges *ranges, const ax_kernel_params *p, uint32_t in_count, looks *out) {
  const ax_program *body = p->bodies.v[0];
  bool *written = ax_alloc((size_t)body->in_count + 1);
  if (written == NULL) return ax_out_of_memory(body->in_count);
  ax_status status = ax_written_inputs(body, written);
  if (status == AX_OK) status = find_facts(ranges, body, &out->known);
  if (status == AX_OK) look_at_writes(p, in_count, written, &out->own, &out->scratch);
  /* what is handed on once is handed on in its place */
  if (status == AX_OK && points_of(p) > 1) status = find_handed_on(ranges, p, written, &out->handed_on);
  ax_free(written);
  return status;
}

ax_status ax_beside_find(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, ax_beside *out) {
  looks body = {0};
  ax_ranges ranges;
  ax_ranges_init(&ranges, &p->grid);
  *out = (ax_beside){.feeds = ax_calloc((size_t)p->blocks.count + 1, sizeof out->feeds[0])};
  if (out->feeds == NULL) return ax_out_of_memory(p->blocks.count * sizeof out->feeds[0]);
  find_feeds(p, out);
  if (p->bodies.count != 1 || p->core_axes.v[0] != 0) return AX_OK;
  ax_status status = find_late(&ranges, p, in, in_count, out);
  if (status == AX_OK) status = look_at_body(&ranges, p, in_count, &body);
  ax_ranges_deinit(&ranges);
  AX_TRY(status);
  const facts *known = &body.known;
  out->bytes = known->bytes;
  out->computes_only = known->computes_only && body.own && !(known->asks && known->until); /* what is not right might never end */
  out->asks = known->asks;
  out->product = known->product;
  out->reduces = known->reduces;
  out->equations = known->equations;
  out->copies_more = copies_more(p, in_count, out) || body.handed_on ||
                     touches_more(p, in, in_count, known->bytes + known->moved + known->accessed);
  if (out->computes_only && aliases_agree(p, in_count, out)) {
    AX_TRY(find_dims(p, in, in_count, body.scratch, out));
    keep_ranks(p, in, in_count, known->rank, out);
  }
  out->copies_more = out->copies_more || (known->moved > most_moved && !are_all_beside(p, out));
  return AX_OK;
}

/* --- How many --- */

void ax_beside_limit(const ax_kernel_params *p, double most, ax_beside *beside) {
  double points = 1, bytes = beside->bytes;
  bool any = false;
  for (uint32_t g = 0; g < p->grid.count; g++) points *= beside->dim[g] ? 1 : (double)p->grid.v[g];
  if (points <= 1) return;
  for (uint32_t g = p->grid.count; g-- > 0;) {
    if (!beside->dim[g]) continue;
    beside->dim[g] = !any || bytes * (double)p->grid.v[g] <= most;
    if (beside->dim[g]) bytes *= (double)p->grid.v[g];
    else beside->count--;
    any = true;
  }
}

void ax_beside_deinit(ax_beside *beside) { ax_free(beside->feeds); }

/* --- Kernels without surprises --- */

static ax_regular are_there(const ax_kernel_params *p, const ax_feeds *feeds, const ax_type *whole, const ax_type *shape) {
  ax_regular found = AX_REGULAR_ALWAYS;
  for (uint32_t d = 0; d < whole->rank; d++) {
    const int64_t blocks = blocks_along(whole, shape, d);
    if (blocks == 0 || (feeds->dim[d] >= 0 && p->grid.v[feeds->dim[d]] > blocks)) return AX_REGULAR_NEVER;
    if (feeds->late[d]) found = AX_REGULAR_SOMETIMES;
  }
  return found;
}

/* Whether each point has blocks of its own of a result. If not, an operand that is one memory with it may be read anew at each point, or
   kept since it was brought in. */
static bool is_each_its_own(const ax_kernel_params *p, const ax_feeds *feeds) {
  for (uint32_t g = 0; g < p->grid.count; g++) {
    bool fed = p->grid.v[g] < 2;
    for (uint32_t d = 0; d < AX_MAX_RANK; d++) fed = fed || feeds->dim[d] == (int8_t)g;
    if (!fed) return false;
  }
  return true;
}

/* An operand that is one memory with a result has blocks that the grid chooses, as the result has. */
static bool is_alias_regular(const ax_kernel_params *p, uint32_t in_count, const ax_beside *b, uint32_t a) {
  const ax_feeds *operand = &b->feeds[p->aliases.v[a][0]], *result = &b->feeds[in_count + (uint32_t)p->aliases.v[a][1]];
  for (uint32_t d = 0; d < AX_MAX_RANK; d++)
    if (operand->dim[d] == AX_FEED_OTHER || result->dim[d] == AX_FEED_OTHER) return false;
  return is_each_its_own(p, result);
}

ax_regular ax_kernel_is_regular(const ax_kernel_params *p, const ax_type *in, uint32_t in_count, const ax_beside *b) {
  ax_regular found = AX_REGULAR_ALWAYS;
  if (!b->computes_only) return AX_REGULAR_NEVER;
  for (uint32_t a = 0; a < p->aliases.count; a++)
    if (!is_alias_regular(p, in_count, b, a)) return AX_REGULAR_NEVER;
  for (uint32_t k = 0; k < p->index_maps.count; k++)
    if (ax_find_effect(p->index_maps.v[k], UINT32_MAX) != NULL) return AX_REGULAR_NEVER;
  for (uint32_t i = 0; i < p->blocks.count; i++) {
    const ax_type *shape = shape_of(p, i);
    const ax_regular one = shape != NULL ? are_there(p, &b->feeds[i], whole_of(p, in, in_count, i), shape) : found;
    if (one < found) found = one;
  }
  if (b->asks) found = found == AX_REGULAR_ALWAYS ? AX_REGULAR_TRIED : AX_REGULAR_NEVER;
  /* The steps that may follow want the operand as it was: a result in its memory would be made in a copy of all of it. */
  return p->aliases.count > 0 && found != AX_REGULAR_ALWAYS ? AX_REGULAR_NEVER : found;
}
