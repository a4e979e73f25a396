/* Functions that cmake/cxx.awk makes of the C headers, and those beside them that take a function or a list: each once, with what comes of it.
   tests/cxx/values.cc has the operations. */
#include "check.hpp"

using axle::value;

namespace {

void named_things() {
  CHECK(std::string(axle::status_name(AX_IO_ERROR)) == "AX_IO_ERROR");
  ax_algorithm ring = axle::algorithm_find("ring");
  CHECK(ring == AX_ALGORITHM_RING && std::string(axle::algorithm_name(ring)) == "ring");
  try {
    axle::algorithm_find("squares");
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "functions_made.cc:" + std::to_string(__LINE__ - 3) + ": algorithm_find: ");
  }
  auto machines = axle::cluster::builtin();
  CHECK(!machines.empty() && axle::cluster(axle::cluster::read(machines[0].first)).name() == machines[0].first && !machines[0].second.empty());
  CHECK(ax_target(axle::target_parse("vmem called=VMEM bytes=16MiB align=4096")).space[AX_SPACE_VMEM].bytes == 16 << 20);
  CHECK(axle::type_equal(f32({2}), f32({2})) && !axle::type_equal(f32({2}), f32({3})));
  ax_spec spec = axle::spec_parse("_,d", axle::mesh(axle::mesh::parse("d=4")));
  CHECK(spec.rank == 2 && spec.count[0] == 0 && spec.count[1] == 1);
  CHECK(axle::host_at(std::vector<double>{1, 2.5}, 1) == 2.5);
}

void runs_of_host_arrays() {
  axle::runtime runtime = axle::runtime::create();
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  axle::executable twice = runtime.jit_host([](value v) { return v * 2; }, {axle::view(x, {2, 3})});
  axle::array put = twice.put(0, x);
  std::vector<axle::array> made = twice.run({put});
  CHECK(made[0].type().rank == 2 && std::vector<float>(made[0].read<float>()) == std::vector<float>{2, 4, 6, 8, 10, 12});
}

void trees_of_own_memory() {
  axle::runtime runtime = axle::runtime::create();
  axle::treedef def = axle::treedef::create({{"w", f32({3}), ""}});
  axle::tree tree = axle::tree::create(runtime, {}, def);
  const float given[] = {1, 2, 3};
  float read[3] = {};
  tree.put_raw("w", given);
  tree.read_raw("w", read, sizeof read);
  CHECK(read[0] == 1 && read[2] == 3);
}

/* What a schedule gives at a step. */
float rate(const ax_schedule &schedule, int step) {
  axle::runtime runtime = axle::runtime::create();
  axle::executable executable = runtime.jit([&](value count) { return axle::schedule_at(schedule, count); }, {s32()});
  std::vector<axle::host_array> made = executable.run_host({axle::host_view(&step, axle::s32, {})});
  return made[0].elements<float>().at(0);
}

void schedules() {
  CHECK(rate(axle::constant_schedule(0.5), 3) == 0.5f && rate(axle::linear_schedule(0, 8, 4, 0), 1) == 2);
  const std::vector<std::int64_t> boundaries = {2};
  const std::vector<double> scales = {0.5}, many = {0.5, 0.25};
  CHECK(rate(axle::piecewise_constant_schedule(4, boundaries, scales), 1) == 4 && rate(axle::piecewise_constant_schedule(4, boundaries, scales), 2) == 2);
  const std::vector<ax_schedule> parts = {axle::constant_schedule(1), axle::linear_schedule(0, 4, 4, 0)};
  const ax_schedule joined = axle::join_schedules(parts, boundaries);
  CHECK(rate(joined, 1) == 1 && rate(joined, 3) == 1 && rate(joined, 5) == 3);
  try {
    rate(axle::piecewise_constant_schedule(4, boundaries, many), 0);
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "piecewise_constant_schedule: the boundaries take 1 scale, but the list has 2");
  }
  axle::treedef params = axle::treedef::create({{"w", f32({2}), ""}});
  CHECK(axle::treedef(axle::optimizer_state(axle::sgd(joined), params)).count() < axle::treedef(axle::optimizer_state(axle::adam(joined), params)).count());
}

void ring_kernels() {
  axle::mesh mesh = axle::mesh::parse("d=2");
  const std::vector<float> x = {1, 2, 3, 4}, w = {1, 1, 1, 1};
  auto product = [&](const axle::rings &rings) {
    axle::runtime runtime = axle::runtime::create();
    axle::executable executable = runtime.jit([&](value a, value b) {
      return axle::shard_map(mesh, "d; -> d", [&](value own, value all) {
        return axle::matmul_reduce_scatter_kernel(axle::collective_matmul_kernel(own, all, "d", rings), all, "d", rings);
      }, {a, b});
    }, {f32({2, 2}), f32({2, 2})});
    std::vector<axle::host_array> made = executable.run_host({axle::view(x, {2, 2}), axle::view(w, {2, 2})});
    return made[0].elements<float>();
  };
  CHECK(product({}) == product({{0, 1}}) && product({}) == std::vector<float>{12, 12, 28, 28});
  try {
    product({{0}, {1, 0}});
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "collective_matmul_kernel");
  }
}

}  // namespace

void functions_made_test() {
  named_things();
  runs_of_host_arrays();
  trees_of_own_memory();
  schedules();
  ring_kernels();
}
