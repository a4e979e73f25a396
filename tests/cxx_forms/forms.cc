/* What cmake/cxx.awk makes of forms.h, called as users would. Only compiled. */
#include <axle/axle.h>
#include "forms.h"

#include <axle/axle.hpp>

axle::value values(axle::value x, const axle::program &program, const axle::runtime &runtime, const axle::executable &executable, const axle::tree &tree);
axle::value values(axle::value x, const axle::program &program, const axle::runtime &runtime, const axle::executable &executable, const axle::tree &tree) {
  x = forms_one(x);
  x = forms_two(x, 2) + axle::forms_none();
  x = forms_dims(x, {2, 3}) + forms_dims(x, {}) + forms_dims(x, std::vector<std::int64_t>{1});
  x = forms_dims_twice(x, {0}, axle::all_dims, true);
  x = axle::forms_values({x, x}, 0);
  x = forms_pairs(x, "data", {{0, 1}, {1, 0}});
  const std::int64_t lows[] = {0}, highs[] = {1};
  x = forms_shared(x, 1, lows, highs);
  ax_forms_options options{};
  options.depth = 2;
  x = forms_options_last(x, "data") + forms_options_last(x, std::string("data"), options);
  const axle::mesh mesh = axle::forms_mesh_out("data=2");
  x = forms_mesh(x, mesh, axle::f32);
  axle::forms_nothing();
  axle::forms_effect(x, 1, nullptr);
  std::int64_t count = axle::forms_count(program, 0);
  const char *name = axle::forms_name(axle::f32);
  const std::string text = axle::forms_text(executable);
  bool same = axle::forms_same(axle::array_type(axle::f32), axle::array_type(axle::s32));
  double first = axle::forms_first(std::vector<float>{1, 2});
  axle::executable made = axle::forms_handle(runtime, program), donating = axle::forms_handle(runtime, program, {axle::first(1)});
  ax_target target = axle::forms_struct("tpu-like");
  axle::host_array array = axle::forms_array("x.npy");
  axle::forms_check(tree);
  x = forms_raw(x, ax_fn{}, nullptr, nullptr);
  (void)count, (void)name, (void)same, (void)first, (void)target;
  return axle::delete_(x, x);
}
