/* Kernels: bodies as lambdas, refs, several functions on their meshes, and exceptions that leave them. */
#include "check.hpp"

#include <stdexcept>

using axle::value;
using refs = std::vector<value>;

namespace {

float kernel_computed(const axle::program &program, float x) {
  axle::runtime runtime = axle::runtime::create();
  axle::executable executable = runtime.compile(program);
  return executable.run_host({axle::host_view(&x, axle::f32, {})})[0].elements<float>()[0];
}

ax_kernel one_result(const ax_type &type) {
  ax_kernel kernel{};
  kernel.out_count = 1;
  kernel.outs = &type;
  return kernel;
}

void kernel_body_as_lambda() {
  const ax_type type = f32();
  double by = 3;
  auto program = axle::trace([&](value x) {
    return axle::kernel_call(one_result(type), [&](const refs &ref) {
      axle::ref_store(ref[1], axle::ref_load(ref[0]) * by);
      axle::ref_add(ref[1], 1);
    }, {x})[0];
  }, {f32()});
  CHECK(kernel_computed(program, 2) == 7);
}

void kernel_meshes() {
  ax_core_mesh first{}, second{};
  first.core = "a";
  second.core = "b";
  ax_scratch full{};
  full.type = ax_semaphore_type(0, nullptr);
  full.shared = true;
  ax_kernel_options options{};
  options.scratch_count = 1;
  options.scratch = &full;
  auto program = axle::trace([&](value x) {
    return axle::mpmd_map({first, second},
                          {[](const refs &ref) {
                             axle::ref_store(ref[1], axle::ref_load(ref[0]) + 1);
                             axle::semaphore_signal(ref[3], 1);
                           },
                           [](const refs &ref) {
                             axle::semaphore_wait(ref[3], 1);
                             axle::ref_store(ref[2], axle::ref_load(ref[1]) * 2);
                           }},
                          options, {x}, {f32(), f32()})[1];
  }, {f32()});
  CHECK(kernel_computed(program, 2) == 6);
  CHECK(axle::check_report::of(program).proved());
}

void kernel_exceptions() {
  const ax_type type = f32();
  bool caught = false;
  try {
    (void)axle::trace([&](value x) {
      return axle::kernel_call(one_result(type), [](const refs &) { throw std::runtime_error("enough"); }, {x})[0];
    }, {f32()});
  } catch (const std::runtime_error &thrown) {
    caught = std::string(thrown.what()) == "enough";
  }
  CHECK(caught);
}

}  // namespace

void kernels_test() {
  kernel_body_as_lambda();
  kernel_meshes();
  kernel_exceptions();
}
