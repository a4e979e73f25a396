/* A product that goes into a sum over devices and nowhere else is made where it is added. Example: the gradient of weights that all
   devices have, each of its own examples.

     GEMM b7 = b2' b3;  START b7 to b9      ->      START b2' b3 to b9

   Each member makes a tile of its product while that tile of the sum is in the cache, so the product itself, as large as the weights and
   there for each device, has no memory. Members add in the order of their numbers, as they do with operands: the bits are the same.

   The plan keeps both operations: simulated devices have memories of their own, and a sum between processes is made of operands. */
#include <string.h>

#include "assemble/assembly.h"
#include "code/tiles.h"
#include "plan/op.h"
#include "plan/panels.h"

enum { window = 256, /* operations between a product and its sum, */
       ahead = 1024, /* and behind it that are asked whether they read a factor */
       least_bytes = AX_HOSTILE ? 16 : 32 << 10 }; /* hostile: so that the tests' random programs have some */

typedef struct finder {
  ax_assembly *a;
  uint32_t *reads, *writes; /* by allocation: see ax_plan_count */
} finder;

static const ax_buffer *buffer_of(const finder *f, uint32_t buffer) { return &f->a->plan->buffers[buffer]; }
static uint32_t allocation_of(const finder *f, uint32_t buffer) { return buffer_of(f, buffer)->allocation; }

/* It adds whole operands, element by element as they lie, to one sum for all members. */
static bool adds_up(const finder *f, const ax_exchange *x) {
  const ax_buffer *in = buffer_of(f, x->in), *out = buffer_of(f, x->out);
  int64_t elems = 1;
  if (x->combine != AX_SCALAR_ADD || x->peers != AX_PEERS_ONE || x->alone || in->type.dtype != out->type.dtype) return false;
  if (in->type.dtype != AX_F32 && in->type.dtype != AX_F64) return false;
  for (uint32_t d = x->rank; d-- > 0; elems *= x->dims[d])
    if (x->dims[d] != 1 && (x->src_stride[d] != elems || x->dst_stride[d] != elems)) return false;
  return elems == ax_type_elems(&in->type) && elems == ax_type_elems(&out->type) && ax_buffer_bytes(in) >= least_bytes;
}

static bool goes_by_pointer(const finder *f, uint32_t allocation) {
  const ax_pointed *pointed = f->a->pointed;
  return pointed != NULL && (pointed[allocation].has_pointers || pointed[allocation].memory != allocation);
}

/* One product, dense as its result lies, which is made as it stands. */
static bool can_be_made_later(const finder *f, const ax_op *op, const ax_op *start) {
  const ax_gemm *g = op->gemm;
  const uint32_t allocations[] = {allocation_of(f, g->a), allocation_of(f, g->b), allocation_of(f, start->exchange->out)};
  if (op->axes != start->axes || op->diverging != start->diverging || g->accumulate || g->rounds || g->k == 0) return false;
  if (ax_dims_elems(g->batch_rank, g->batch) != 1 || buffer_of(f, g->c)->offset != 0) return false;
  if (!ax_gemm_is_dense(g, ax_type_elems(&buffer_of(f, start->exchange->out)->type))) return false;
  for (int i = 0; i < 3; i++)
    if (goes_by_pointer(f, allocations[i]) || (i < 2 && allocations[i] == allocations[2])) return false;
  return true;
}

typedef struct use { /* of an allocation */
  const finder *f;
  uint32_t allocation;
  bool read_too; /* asked for: reads and writes, or writes alone */
  bool found;
} use;

static void note_use(void *context, uint32_t buffer, bool writes) {
  use *u = context;
  u->found = u->found || ((writes || u->read_too) && allocation_of(u->f, buffer) == u->allocation);
}

/* Whether operations from `begin` to before `end`, with those inside them, use the buffer's allocation. */
static bool is_used(const finder *f, const ax_block *block, uint32_t begin, uint32_t end, uint32_t buffer, bool read_too) {
  use u = {f, allocation_of(f, buffer), read_too, false};
  for (uint32_t i = begin; i < end && !u.found; i++) ax_op_visit_all(&block->ops[i], note_use, &u);
  return u.found;
}

/* The product before operation `at` that makes `in`, and whose factors are as they were; NULL. */
static const ax_op *maker_of(const finder *f, const ax_block *block, uint32_t at, uint32_t in) {
  const uint32_t first = at > window ? at - window : 0;
  for (uint32_t i = at; i-- > first;) {
    const ax_op *op = &block->ops[i];
    if (op->kind != AX_OP_GEMM || allocation_of(f, op->gemm->c) != allocation_of(f, in)) continue;
    const bool written = is_used(f, block, i + 1, at, op->gemm->a, false) || is_used(f, block, i + 1, at, op->gemm->b, false);
    return written ? NULL : op;
  }
  return NULL;
}

/* Bytes of a factor that would have to be held for the sum alone, from its product on. */
static int64_t held_for(const finder *f, const ax_block *block, uint32_t at, uint32_t factor) {
  const ax_buffer *allocation = buffer_of(f, allocation_of(f, factor));
  const uint32_t end = block->count - at > ahead ? at + 1 + ahead : block->count;
  return allocation->kind != AX_BUFFER_TEMP || is_used(f, block, at + 1, end, factor, true) ? 0 : ax_buffer_bytes(allocation);
}

/* Members add one after the other, so the tiles of a product are all that threads can make at once; otherwise each makes its own
   device's product at the same time. Half as many at once are worth the memory. */
static bool is_for_threads(const finder *f, const ax_gemm *g, const ax_op *start) {
  const int64_t members = ax_axis_set_size(start->exchange->axes, &f->a->plan->mesh), threads = f->a->threads;
  const ax_product whole = ax_gemm_product(g, g->m, g->n);
  const ax_tiling tiles = ax_gemm_tiling(g, ax_gemm_way(g, &whole).plain, threads);
  return 2 * tiles.rows * tiles.columns >= (members < threads ? members : threads);
}

/* Its factors take no more memory until the sum than the product would. */
static bool pays(const finder *f, const ax_block *block, uint32_t at, const ax_op *product) {
  const ax_gemm *g = product->gemm;
  if (product + 1 == &block->ops[at]) return true;
  const int64_t held = held_for(f, block, at, g->a) + (g->b != g->a ? held_for(f, block, at, g->b) : 0);
  return held <= ax_buffer_bytes(buffer_of(f, g->c));
}

static ax_status find_in_block(void *context, ax_block *block, bool is_body) {
  finder *f = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    const ax_op *start = &block->ops[i];
    if (start->kind != AX_OP_START || !adds_up(f, start->exchange) || !ax_is_passed_on(f->a->plan, f->reads, f->writes, start->exchange->in)) continue;
    const ax_op *product = maker_of(f, block, i, start->exchange->in);
    if (product == NULL || !can_be_made_later(f, product, start)) continue;
    if (!is_for_threads(f, product->gemm, start) || !pays(f, block, i, product)) continue;
    f->a->contributed.product[start->exchange->id] = product->gemm;
    f->a->contributed.unmade[allocation_of(f, product->gemm->c)] = true;
  }
  return AX_OK;
}

ax_status ax_find_contributed(ax_assembly *a) {
  ax_plan *plan = a->plan;
  if (plan->options.map != NULL || plan->exchange_count == 0) return AX_OK;
  const size_t bytes = plan->buffer_count * sizeof(uint32_t);
  finder f = {a, ax_arena_alloc(&a->scratch, bytes), ax_arena_alloc(&a->scratch, bytes)};
  a->contributed.product = ax_arena_alloc(&a->scratch, plan->exchange_count * sizeof a->contributed.product[0]);
  a->contributed.unmade = ax_arena_alloc(&a->scratch, plan->buffer_count * sizeof a->contributed.unmade[0]);
  if (f.reads == NULL || f.writes == NULL || a->contributed.product == NULL || a->contributed.unmade == NULL) return ax_out_of_memory(bytes);
  ax_plan_count(plan, f.reads, f.writes);
  return ax_blocks_visit(&plan->block, find_in_block, &f);
}

uint32_t ax_exchange_buffers(const ax_assembly *a, const ax_exchange *exchange, uint32_t *out) {
  const ax_gemm *product = ax_contributed_to(a, exchange);
  uint32_t count = 0;
  out[count++] = product != NULL ? product->a : exchange->in;
  if (product != NULL) out[count++] = product->b;
  out[count++] = exchange->out;
  return count;
}

bool ax_is_contributed(const ax_assembly *a, const ax_op *op) {
  return op->kind == AX_OP_GEMM && a->contributed.unmade != NULL && a->contributed.unmade[a->plan->buffers[op->gemm->c].allocation];
}
