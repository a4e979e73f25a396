/* Kernels that several tests run. */
#include "support/kernels.h"

#include "axle/axle.h"

const ax_core_mesh test_one_core = {.core = "tensorcore"};

static AX_BODY(add_one) { ax_ref_store(in[1], ax_add(ax_ref_load(in[0]), ax_real(1))); }

AX_BODY(test_plain) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(add_one, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 4)), out);
}

static AX_BODY(step) {
  const ax_value *refs = context;
  ax_value row = ax_ref_at(refs[0], in[0]);
  ax_copy_start(row, refs[2], &(ax_copy_options){.received = (ax_value *)&refs[3]});
  ax_copy_wait(refs[3], refs[2]);
  ax_ref_store(refs[2], ax_mul(ax_ref_load(refs[2]), ax_real(2)));
  ax_copy(refs[2], ax_ref_at(refs[1], in[0]));
}

static AX_BODY(scoped) {
  const ax_value *refs = context;
  const ax_value all[] = {refs[0], refs[1], in[0], in[1]};
  ax_fori_loop(ax_integer(0), ax_integer(3), AX_CLOSURE(step, 1, 0, all), NULL, NULL);
}

static AX_BODY(doubling) {
  const ax_scratch scratch[] = {{.type = AX_VMEM(AX_F32, 2)}, {.type = ax_dma_semaphore_type(AX_DIMS())}};
  ax_run_scoped(AX_LIST(2, scratch), NULL, AX_CLOSURE(scoped, 2, 0, in), NULL);
}

AX_BODY(test_doubled) {
  ax_mpmd_map(AX_LIST(1, &test_one_core), &AX_FN(doubling, 2, 0), NULL, AX_LIST(1, in), AX_TYPES(AX_TYPE(AX_F32, 3, 2)), out);
}
