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
  kernel.outs = {1, &type};
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
  options.scratch = {1, &full};
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

/* A scope's refs, with a result and without; what leaves its body. */
void kernel_scopes() {
  const ax_type type = f32();
  auto program = axle::trace([&](value x) {
    return axle::kernel_call(one_result(type), [](const refs &ref) {
      value doubled = axle::run_scoped({axle::scratch(axle::vmem(axle::f32)), axle::scratch(axle::semaphore_type())}, [&](const refs &own) {
        axle::ref_store(own[0], axle::ref_load(ref[0]) * 2);
        axle::semaphore_signal(own[1], 1);
        axle::semaphore_wait(own[1], 1);
        return axle::ref_load(own[0]);
      });
      axle::run_scoped({axle::scratch(axle::vmem(axle::f32, {3}))}, [&](const refs &own) {
        axle::ref_store(own[0], doubled);
        axle::ref_store(ref[1], axle::reduce_sum(axle::ref_load(own[0])));
      });
      axle::kernel_trace_begin("end");
      axle::kernel_trace_end();
    }, {x})[0];
  }, {f32()});
  CHECK(kernel_computed(program, 2) == 12);

  bool caught = false;
  try {
    (void)axle::trace([&](value x) {
      return axle::kernel_call(one_result(type), [](const refs &ref) {
        axle::run_scoped({axle::scratch(axle::vmem(axle::f32))}, [&](const refs &) -> value { throw std::runtime_error("in a scope"); });
        axle::ref_store(ref[1], 0);
      }, {x})[0];
    }, {f32()});
  } catch (const std::runtime_error &thrown) {
    caught = std::string(thrown.what()) == "in a scope";
  }
  CHECK(caught);
}

/* Pipelines over rows: y is twice x; of warpgroups also with a sum that is carried. */
constexpr std::int64_t pipe_rows = 4, pipe_row = 8;

AX_BODY(by_step) {
  out[0] = in[0];
  out[1] = axle::convert_element_type(value(in[0]) * 0, axle::s32).get();
}

struct piped {
  const std::int64_t grid[1] = {pipe_rows}, block[2] = {1, pipe_row};
  ax_block_spec spec{};
  ax_pipeline_options options{};
  piped() {
    spec.block = {2, block};
    spec.index_map = by_step;
    options.grid = {1, grid};
    options.in_count = options.out_count = 1;
    options.in_specs = options.out_specs = {1, &spec};
  }
  piped(const piped &) = delete;
  piped &operator=(const piped &) = delete;
};

std::vector<float> pipelined(const ax_core_mesh &mesh, const axle::kernel_function &body, std::size_t outs) {
  const std::vector<axle::type> types = {f32({pipe_rows, pipe_row}), f32({pipe_rows, pipe_row})};
  axle::runtime runtime = axle::runtime::create();
  axle::program program = axle::trace([&](value x) {
    return axle::mpmd_map({mesh}, {body}, {}, {x}, std::vector<axle::type>(types.begin(), types.begin() + static_cast<std::ptrdiff_t>(outs)))[0];
  }, {types[0]});
  CHECK(axle::check_report::of(program).proved());
  axle::executable executable = runtime.compile(program);
  std::vector<float> x(pipe_rows * pipe_row);
  for (std::size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i);
  std::vector<axle::host_array> made = executable.run_host({axle::view(x, {pipe_rows, pipe_row})});
  return made[0].elements<float>();
}

void kernel_pipelines() {
  std::vector<float> twice(pipe_rows * pipe_row);
  for (std::size_t i = 0; i < twice.size(); i++) twice[i] = 2 * static_cast<float>(i);
  piped p;
  ax_core_mesh one{};
  one.core = "tensorcore";
  CHECK(pipelined(one, [&](const refs &ref) {
          axle::emit_pipeline(p.options, [](const refs &slot) { axle::ref_store(slot[1], axle::ref_load(slot[0]) * 2); }, ref);
        }, 1) == twice);

  ax_core_mesh warpgroups{};
  warpgroups.core = "warpgroup";
  warpgroups.mesh = axle::mesh(axle::mesh::parse("wg=2"));
  warpgroups.threads = "wg";
  ax_warp_pipeline_options warps{};
  warps.pipeline = p.options;
  warps.memory_registers = 40;
  warps.wg_axis = "wg";
  warps.compute_wgs = 1;
  warps.memory_thread = -1;
  auto doubles = [](const refs &slot) { axle::ref_store(slot[1], axle::ref_load(slot[0]) * 2); };
  CHECK(pipelined(warpgroups, [&](const refs &ref) { axle::emit_pipeline_warp_specialized(warps, doubles, ref); }, 1) == twice);

  warps.carry_count = 1;
  int last = 0;
  CHECK(pipelined(warpgroups, [&](const refs &ref) {
          axle::emit_pipeline_warp_specialized(
              warps, [] { return axle::full(axle::f32, {}, 0.0); },
              [](const refs &slot) {
                axle::ref_store(slot[1], axle::ref_load(slot[0]) * 2);
                return slot[2] + axle::reduce_sum(axle::ref_load(slot[0]));
              },
              [&](const refs &carried) { last = static_cast<int>(carried.size()); }, ref);
        }, 1) == twice);
  CHECK(last == 1);
}

}  // namespace

void kernels_test() {
  kernel_body_as_lambda();
  kernel_meshes();
  kernel_exceptions();
  kernel_scopes();
  kernel_pipelines();
}
