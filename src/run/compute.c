/* Instructions that compute: kernels and the primitives' own reference code, whole or in parts; products are gemm.c's. */
#include "run/compute.h"

#include <assert.h>
#include <string.h>

#include "ir/prim.h"
#include "run/gemm.h"

/* --- Routines --- */

enum { most_refs = 8 }; /* that stand on the stack */

static ax_status routine_part(const ax_activation *activation, const ax_instr *instr, uint32_t part) {
  void *few[most_refs] = {NULL}, **memory = few;
  if (instr->ref_count > most_refs && (memory = ax_alloc(instr->ref_count * sizeof memory[0])) == NULL) return AX_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < instr->ref_count; i++) memory[i] = ax_address(activation, &instr->refs[i]);
  ax_status status = instr->routine->run(instr->routine->data, memory, part);
  if (memory != few) ax_free(memory);
  return status;
}

/* --- Instructions --- */

ax_status ax_compute_eval(const ax_compiled *c, const ax_hooks *hooks, const ax_run_options *options, const ax_activation *activation, const ax_instr *instr,
                          uint32_t f) {
  const ax_eqn *eqn = instr->eqn;
  uint32_t count = instr->ref_count;
  ax_tensor *tensors = ax_alloc(count * sizeof tensors[0]);
  ax_tensor **pointers = ax_alloc(count * sizeof pointers[0]);
  int64_t device = f;
  ax_status status = tensors == NULL || pointers == NULL ? ax_out_of_memory(count * sizeof tensors[0]) : AX_OK;
  for (uint32_t i = 0; status == AX_OK && i < count; i++) {
    uint32_t id = i < eqn->in_count ? eqn->in[i] : eqn->out + (i - eqn->in_count);
    const ax_type *type = &instr->program->types[id];
    tensors[i] = (ax_tensor){.dtype = type->dtype, .rank = type->rank, .data = ax_address(activation, &instr->refs[i])};
    memcpy(tensors[i].dims, type->dims, sizeof type->dims);
    pointers[i] = &tensors[i];
  }
  ax_eval_args args = {.eqn = eqn, .axes = &c->plan->mesh, .lanes = 1, .device = &device, .in = pointers,
                       .out = pointers + eqn->in_count, .hooks = hooks, .callback = instr->call.callback, .run = options,
                       .each = ~(ax_axis_set)0}; /* devices that do not own the result skip the instruction */
  if (status == AX_OK) status = eqn->prim->eval(&args);
  ax_free(tensors);
  ax_free(pointers);
  return status;
}

/* If parts are long, they begin at a multiple of a short vector's elements or of many vectors. A part that began inside a cache
   line would touch two lines with each vector, to its end. */
int64_t ax_part_begin(int64_t extent, int64_t part, int64_t parts) {
  int64_t begin = extent * part / parts, unit = 64;
  while (unit > 1 && extent / parts < 16 * unit) unit /= 2;
  return part == parts ? extent : begin / unit * unit;
}

ax_status ax_compute_part(const ax_activation *activation, const ax_instr *instr, uint32_t part) {
  if (instr->kind == AX_INSTR_ROUTINE) return routine_part(activation, instr, part);
  const int64_t parts = instr->parts, extent = instr->kernel.extent;
  ax_compute_range(activation, instr, ax_part_begin(extent, part, parts), ax_part_begin(extent, part + (int64_t)1, parts));
  return AX_OK;
}

ax_status ax_compute(const ax_activation *activation, const ax_instr *instr, void *block, ax_pool *pool) {
  ax_status status = AX_OK;
  if (instr->kind == AX_INSTR_GEMM) return ax_gemm_compute(activation, instr, pool);
  if (instr->kind == AX_INSTR_KERNEL)
    ax_compute_range(activation, instr, 0, instr->kernel.extent);
  else if (instr->kind == AX_INSTR_ROWS)
    status = ax_compute_rows(activation, instr, 0, instr->rows->rows->outer * instr->rows->rows->extent, block);
  else
    for (uint32_t part = 0; status == AX_OK && part < instr->parts; part++) status = ax_compute_part(activation, instr, part);
  return status;
}

ax_status ax_compute_failed(const ax_instr *instr, ax_status status) {
  const ax_gemm *g = instr->kind == AX_INSTR_PUSH ? instr->push->product : instr->gemm;
  if (status == AX_OK) return AX_OK;
  if (instr->kind == AX_INSTR_ROUTINE) return ax_error(status, "%s found no memory to work in", instr->eqn->prim->name);
  if (instr->kind == AX_INSTR_ROWS) return ax_error(status, "kernels and products over the same rows found no memory to work in");
  assert((instr->kind == AX_INSTR_GEMM || instr->kind == AX_INSTR_PUSH) && status == AX_OUT_OF_MEMORY);
  return ax_error(status, "a product %s[%lld,%lld] x [%lld,%lld] found no memory to work in", ax_dtype_name(g->dtype),
                  (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n);
}
