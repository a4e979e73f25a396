#include "support/layouts.h"

#include "axle/stages.h"
#include "axle/transform.h"
#include "support/cmocka.h"

ax_program *test_laid_out(const ax_program *program, const test_layout *at) {
  ax_mesh mesh;
  ax_program *laid;
  TEST_OK(ax_mesh_parse(at->mesh, &mesh));
  TEST_OK(ax_program_with_shardings(program, &mesh, at->specs, &laid));
  return laid;
}

void test_same_laid_out(ax_runtime *runtime, ax_program *program, const test_layout *at, ax_tensor *const *in, double tolerance) {
  ax_tensor *wanted[4], *got[4];
  const uint32_t count = ax_program_out_count(program);
  ax_program *laid = test_laid_out(program, at);
  test_execute(runtime, program, in, wanted);
  test_execute(runtime, laid, in, got);
  for (uint32_t k = 0; k < count; k++)
    for (int64_t i = 0; i < test_elems(wanted[k]); i++) {
      const double x = test_get(got[k], i), y = test_get(wanted[k], i);
      if (tolerance == 0 ? x != y : !test_near(x, y, tolerance))
        fail_msg("%s, %s: result %u, element %d: %.17g, not %.17g", at->mesh, at->specs, k, (int)i, x, y);
    }
  test_release(wanted, (int)count), test_release(got, (int)count);
  ax_program_release(laid);
}

double test_received(const ax_program *program, const test_layout *at) {
  ax_program *laid = test_laid_out(program, at);
  ax_cost cost;
  TEST_OK(ax_program_cost(laid, &cost));
  const double bytes = cost.received;
  ax_cost_release(&cost);
  ax_program_release(laid);
  return bytes;
}
