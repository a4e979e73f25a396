/* Without exceptions: every call that can fail gives a status, and nothing is thrown. Linked with files that throw. */
#include "check.hpp"

#include <type_traits>

using axle::value;

#if AXLE_THROWS
#error "this file is compiled without exceptions"
#endif

static ax_status fail(ax_status status, const std::string &message) {
  check_has(message, "statuses.cc:");
  return status;
}
static ax_status printed(value (*f)(value), axle::type type) {
  auto made = axle::trace(f, {type});
  if (!made) return fail(made.status(), made.message());
  std::puts(made->print()->c_str());
  return AX_OK;
}

void statuses_test() {
  axle::type type = axle::array_type(axle::f32, {2});
  axle::result<axle::program> traced = axle::trace([](value x) { return x + 1; }, {type});
  CHECK(traced && traced.ok() && traced.status() == AX_OK && traced.message().empty());
  axle::result<axle::runtime> runtime = axle::runtime::create();
  axle::result<axle::executable> executable = runtime->compile(*traced);
  axle::result<axle::array> x = runtime->put({}, "", std::vector<float>{1, 2});
  auto out = executable->run({*x});
  CHECK(out.ok() && *out->at(0).read<float>() == std::vector<float>{2, 3});
  CHECK(*runtime->jit([](value y) { return reduce_sum(y); }, {type})->run({*x})->at(0).item<float>() == 3);

  auto failed = axle::trace([](value y) { return matmul(y, axle::reshape(y, {1, 2})); }, {type});
  CHECK(!failed && failed.status() == AX_INVALID_ARGUMENT);
  check_has(failed.message(), "statuses.cc:" + std::to_string(__LINE__ - 2) + ": matmul");
  CHECK(x->read<double>().status() == AX_INVALID_ARGUMENT);
  CHECK(!axle::mesh::parse("d=0") && !axle::treedef::parse("?") && !axle::npz::read("/nowhere/file.npz"));
  axle::result<void> verified = traced->verify(), missing = axle::program().verify();
  CHECK(verified.ok() && !missing && missing.status() == AX_INVALID_ARGUMENT && !missing.message().empty());

  std::vector<axle::type> two(2, type);
  auto mismatch = axle::trace([](value y) { return y; }, two);
  check_has(mismatch.message(), "the function takes 1 values, but there are 2 operands");
  auto inside = axle::trace([](const std::vector<value> &in) { return axle::closed_call([](value y) { return y; }, in); }, two);
  check_has(inside.message(), "closed_call: the function takes 1 values, but there are 2 operands");
  auto stopped = axle::trace([](value y) { return axle::trace_fail("not today"), y; }, {type});
  check_has(stopped.message(), "trace_fail: not today");

  CHECK(printed([](value y) { return -y; }, type) == AX_OK);
  CHECK(printed([](value y) { return reshape(y, 3); }, type) == AX_INVALID_ARGUMENT);

  auto jitted = axle::jitted::of(*runtime, [](value y) { return y + 1; });
  CHECK(jitted.ok() && *jitted->run({*x})->at(0).read<float>() == std::vector<float>{2, 3});
  check_has(jitted->run({*x, *x}).message(), "statuses.cc:" + std::to_string(__LINE__) + ": jitted_run");

  axle::result<axle::array> kept = std::move(x);
  axle::array own = std::move(kept).value();
  CHECK(own && own.read<float>().ok());
}
