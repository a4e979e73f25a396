/* See nests.h. */
#include "assemble/nests.h"

#include "ir/prim.h"

static double computing(const ax_rates *rates, const ax_amount *a) { return ax_rates_computing(rates, a->flops, a->dtype); }
static double moving(const ax_rates *rates, const ax_amount *a) { return ax_rates_moving(rates, a->read, a->written); }

double ax_least_seconds(const ax_rates *rates, const ax_amount *amount) {
  const double a = computing(rates, amount), b = moving(rates, amount);
  return a > b ? a : b;
}

const char *ax_least_seconds_by(const ax_rates *rates, const ax_amount *amount) {
  return computing(rates, amount) > moving(rates, amount) ? "arithmetic" : "memory";
}

/* --- Nests as text --- */

static void nest_head(ax_text *text, const ax_op *op, uint32_t number, const ax_amount *amount) {
  ax_text_add(text, "%u: %s", number, op->eqn != NULL ? op->eqn->prim->name : "copy");
  if (op->eqn != NULL && op->eqn->location != NULL) ax_text_add(text, "  @\"%s\"", op->eqn->location);
  ax_text_add(text, "\n    reads %.4g KB, writes %.4g KB, %.4g thousand operations of %s", amount->read / 1e3,
              amount->written / 1e3, amount->flops / 1e3, ax_dtype_name(amount->dtype));
}

static void product_text(ax_text *text, const ax_gemm *g) {
  ax_text_add(text, "    product %s[%lld,%lld] x [%lld,%lld], %lld of them", ax_dtype_name(g->dtype), (long long)g->m,
              (long long)g->k, (long long)g->k, (long long)g->n, (long long)ax_dims_elems(g->batch_rank, g->batch));
  if (g->term_rank > 0) ax_text_add(text, ", each of %lld added up", (long long)ax_dims_elems(g->term_rank, g->terms));
}

/* Prints the members of a group, one by one. */
static ax_status rows_text(ax_text *text, const ax_rows *rows, uint32_t parts) {
  ax_text_add(text, "    %u kernels and products over the same %lld rows, %lld at a time, in %u parts:\n", rows->count,
              (long long)(rows->outer * rows->extent), (long long)rows->step, parts);
  for (uint32_t k = 0; k < rows->count; k++) {
    const ax_op *member = &rows->members[k];
    if (member->kind == AX_OP_GEMM) {
      product_text(text, member->gemm);
      ax_text_add(text, "\n");
      continue;
    }
    AX_TRY(ax_jit_nest_text(member->kernel.kernel, text));
    ax_kernel_text(text, member->kernel.kernel);
  }
  return AX_OK;
}

ax_status ax_nests_text(ax_text *text, const ax_assembly *a, const ax_rates *rates) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < a->instr_count; i++) {
    const ax_op *op = a->ops[i];
    const ax_instr_kind kind = a->instrs[i].kind;
    if (kind != AX_INSTR_KERNEL && kind != AX_INSTR_ROWS && kind != AX_INSTR_GEMM) continue;
    const ax_amount amount = ax_op_amount(a->plan, op);
    nest_head(text, op, number++, &amount);
    if (rates != NULL)
      ax_text_add(text, "; bound %.4g us (%s)", 1e6 * ax_least_seconds(rates, &amount), ax_least_seconds_by(rates, &amount));
    ax_text_add(text, "\n");
    if (op->kind == AX_OP_KERNEL) {
      AX_TRY(ax_jit_nest_text(op->kernel.kernel, text));
      ax_kernel_text(text, op->kernel.kernel);
    } else if (op->kind == AX_OP_ROWS) {
      AX_TRY(rows_text(text, op->rows, a->instrs[i].parts));
    } else {
      product_text(text, op->gemm);
      ax_text_add(text, ", in %u parts\n", a->instrs[i].parts);
    }
  }
  return AX_OK;
}
