/* A product that is only added to a value adds itself to it. Example: the gradient of a loop's weights, added to a carry.

     gemm b5 = b2' b3                       gemm b4 += b2' b3
     kernel of b4 b5:  b4 = b4 + b5    ->

   For floats the contracted dimension must be a single block (product/product.h). Then the product's sums end in registers and
   the old value is added last, so the bits are those of a separate addition. A product of several blocks adds each block to its
   result, and is left alone. For integers the order of additions does not matter.

   A sum of products alone, as of blocks of a kernel's grid, is made by the first of them, to which the others add themselves:

     gemm b5 = b2' b3;  gemm b8 = b6' b7            gemm b4 = b2' b3;  gemm b4 += b6' b7
     kernel of b4 b5 b8:  b4 = 0 + b5 + b8     ->

   The product stays where it is, so no operation between it and the sum may touch the value that it adds to. The search goes
   back only a few operations. The pass runs after carries are in place and before rows are grouped. */
#include <string.h>

#include "plan/panels.h"
#include "plan/passes.h"

enum { window = 24, /* operations between a product and its sum */
       most_terms = 17 };

typedef struct accumulator {
  ax_plan *plan;
  uint32_t *reads, *writes; /* by allocation: see ax_plan_count */
  uint32_t *made;           /* by allocation: 1 + the position, in the block looked at last, of a product that writes it; 0: none */
} accumulator;

/* --- The sum --- */

static bool same_place(const ax_buffer *a, const ax_buffer *b) {
  return a->allocation == b->allocation && a->offset == b->offset && a->loop == b->loop && a->step == b->step;
}

/* The buffer of which a node is the element at each step; AX_NONE. */
static uint32_t loaded(const ax_op *op, ax_ex node) {
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const ax_expr *load = &kernel->exprs[node];
  if (load->op != AX_LEAF_LOAD || load->arg[0] != AX_NONE || !ax_kernel_covers(kernel, load->slot, load->at)) return AX_NONE;
  return op->kernel.buffers[load->slot];
}

/* The operation does nothing but to add `*more` to `*to`, element by element as they lie. */
static bool adds(const ax_plan *plan, const ax_op *op, uint32_t *to, uint32_t *more) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || op->kernel.kernel->store_count != 1 || op->kernel.kernel->reduce_rank > 0)
    return false;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const ax_store *store = &kernel->stores[0];
  const ax_expr *sum = &kernel->exprs[store->expr];
  if (sum->op != AX_SCALAR_ADD || !ax_kernel_covers(kernel, store->slot, store->at)) return false;
  const uint32_t terms[] = {loaded(op, sum->arg[0]), loaded(op, sum->arg[1])};
  *to = op->kernel.buffers[store->slot];
  for (int k = 0; k < 2; k++)
    if (terms[k] != AX_NONE && terms[1 - k] != AX_NONE && same_place(&plan->buffers[*to], &plan->buffers[terms[k]])) {
      *more = terms[1 - k];
      return true;
    }
  return false;
}

/* --- The product --- */

/* Whether the product, as an accumulating one, gives the bits of a separate addition. */
static bool can_accumulate(const ax_gemm *g) { return !g->accumulate && g->k > 0 && !g->rounds && ax_gemm_adds_last(g); }

/* By the operations between; of regions that is not asked. */
static bool is_touched(const ax_plan *plan, const ax_block *block, uint32_t after, uint32_t before, uint32_t allocation) {
  for (uint32_t i = after + 1; i < before; i++) {
    const ax_op_access access = ax_op_access_of(plan, &block->ops[i], allocation);
    if (access.reads || access.writes || ax_op_block(&block->ops[i], 0) != NULL) return true;
  }
  return false;
}

/* The product before operation `at` that makes `term`, which can be made at `to` instead; NULL. */
static ax_op *maker_of(const accumulator *a, const ax_block *block, uint32_t at, uint32_t term, uint32_t to) {
  const ax_plan *plan = a->plan;
  const ax_op *op = &block->ops[at];
  if (!ax_is_passed_on(plan, a->reads, a->writes, term)) return NULL;
  const uint32_t position = a->made[plan->buffers[term].allocation];
  if (position == 0 || position > at || at - position > window) return NULL;
  ax_op *product = &block->ops[position - 1];
  if (product->kind != AX_OP_GEMM || plan->buffers[product->gemm->c].allocation != plan->buffers[term].allocation ||
      product->axes != op->axes || product->diverging != op->diverging)
    return NULL;
  const ax_buffer *made = &plan->buffers[product->gemm->c];
  if (made->offset != 0 || !ax_gemm_is_dense(product->gemm, ax_type_elems(&plan->buffers[to].type)) || !can_accumulate(product->gemm)) return NULL;
  const uint32_t allocation = plan->buffers[to].allocation; /* which is no factor: it would be read while it is written */
  if (plan->buffers[product->gemm->a].allocation == allocation || plan->buffers[product->gemm->b].allocation == allocation) return NULL;
  return product;
}

/* --- Sums of products alone --- */

/* The operation does nothing but to add values up, from left to right, element by element as they lie; a 0 may stand in front. Their number;
   0: it is no such sum. terms: from the last to the first. */
static uint32_t sums_up(const ax_op *op, uint32_t *to, uint32_t *terms) {
  if (op->kind != AX_OP_KERNEL || ax_op_is_ordered(op) || op->kernel.kernel->store_count != 1 || op->kernel.kernel->reduce_rank > 0) return 0;
  const ax_loop_kernel *kernel = op->kernel.kernel;
  const ax_store *store = &kernel->stores[0];
  const ax_expr *sum = &kernel->exprs[store->expr];
  ax_ex first = store->expr;
  uint32_t count = 0;
  if (!ax_kernel_covers(kernel, store->slot, store->at)) return 0;
  for (; sum->op == AX_SCALAR_ADD && count < most_terms - 1; sum = &kernel->exprs[first = sum->arg[0]])
    if ((terms[count++] = loaded(op, sum->arg[1])) == AX_NONE) return 0;
  *to = op->kernel.buffers[store->slot];
  if (sum->op == AX_LEAF_CONST && sum->imm == 0) return count; /* a product is no -0, which 0 would change */
  return (terms[count++] = loaded(op, first)) == AX_NONE ? 0 : count;
}

/* The first product makes the result, and the others add themselves to it, if they are made in the order of the sum. */
static void add_up(const accumulator *a, const ax_block *block, uint32_t at) {
  ax_op *op = &block->ops[at], *makers[most_terms];
  uint32_t to, terms[most_terms];
  const uint32_t count = sums_up(op, &to, terms);
  if (count < 2) return;
  for (uint32_t t = 0; t < count; t++) {
    makers[t] = maker_of(a, block, at, terms[t], to);
    if (makers[t] == NULL || (t > 0 && makers[t] >= makers[t - 1])) return;
  }
  if (is_touched(a->plan, block, (uint32_t)(makers[count - 1] - block->ops), at, a->plan->buffers[to].allocation)) return;
  for (uint32_t t = 0; t < count; t++) {
    makers[t]->gemm->c = to;
    makers[t]->gemm->accumulate = t + 1 < count;
  }
  op->kind = AX_OP_NONE;
}

/* --- The walk --- */

static void add_product(const accumulator *a, const ax_block *block, uint32_t at) {
  const ax_plan *plan = a->plan;
  ax_op *op = &block->ops[at];
  uint32_t to, more;
  if (!adds(plan, op, &to, &more)) return;
  ax_op *product = maker_of(a, block, at, more, to);
  if (product == NULL || is_touched(plan, block, (uint32_t)(product - block->ops), at, plan->buffers[to].allocation)) return;
  product->gemm->c = to;
  product->gemm->accumulate = true;
  op->kind = AX_OP_NONE;
}

static ax_status add_in_block(void *context, ax_block *block, bool is_body) {
  const accumulator *a = context;
  (void)is_body;
  for (uint32_t i = 0; i < block->count; i++) {
    if (block->ops[i].kind == AX_OP_GEMM) a->made[a->plan->buffers[block->ops[i].gemm->c].allocation] = i + 1;
    add_product(a, block, i);
    if (block->ops[i].kind == AX_OP_KERNEL) add_up(a, block, i);
  }
  ax_block_sweep(block);
  return AX_OK;
}

ax_status ax_plan_accumulate(ax_plan *plan) {
  ax_arena scratch = {0};
  const size_t bytes = plan->buffer_count * sizeof(uint32_t);
  accumulator a = {plan, ax_arena_alloc(&scratch, bytes), ax_arena_alloc(&scratch, bytes), ax_arena_alloc(&scratch, bytes)};
  const bool there = a.reads != NULL && a.writes != NULL && a.made != NULL;
  if (there) ax_plan_count(plan, a.reads, a.writes);
  const ax_status status = there ? ax_blocks_visit(&plan->block, add_in_block, &a) : ax_out_of_memory(bytes);
  ax_arena_deinit(&scratch);
  return status;
}
