/* Every operation as C++ says it: the program it comes to, and what it computes where the words differ from C's. */
#include "check.hpp"

using axle::value;
using axle::values;

namespace {

std::string text_of(const axle::program &program) { return program.print(); }

/* What f gives for x, which has these dimensions. */
template <class F>
std::vector<float> computed(F f, const std::vector<float> &x, const axle::dims &shape) {
  axle::runtime runtime = axle::runtime::create();
  axle::executable executable = runtime.jit(f, {f32(shape)});
  std::vector<axle::host_array> out = executable.run_host({axle::view(x, shape)});
  return out.at(0).elements<float>();
}

/* C++'s complex numbers are those of arrays. */
void complex_numbers() {
  using number = std::complex<float>;
  static_assert(axle::dtype_of<number> == AX_C64 && axle::dtype_of<std::complex<double>> == AX_C128, "complex dtypes");
  static_assert(axle::prng_key == AX_KEY, "the dtype of keys");
  const std::vector<number> x = {{1, 2}, {0, -1}};
  axle::runtime runtime = axle::runtime::create();
  axle::executable executable = runtime.jit([](value z) { return axle::conj(z * z) + axle::complex(axle::real_part(z), axle::imag_part(z)); },
                                            {axle::array_type(axle::c64, {2})});
  const std::vector<number> made = executable.run_host({axle::view(x, {2})}).at(0).elements<number>();
  for (std::size_t i = 0; i < x.size(); i++) CHECK(made[i] == std::conj(x[i] * x[i]) + x[i]);
}

void operators() {
  auto program = axle::trace([](value x, value y) {
    value z = (x + y - 2) * 3.5 / y;
    z += 1;
    z -= x;
    z *= 2u;
    z /= y;
    return std::tuple(-z, 1 - z, 2 * z, 1 / z, 0.5f + z);
  }, {f32({3}), f32({3})});
  std::string text = text_of(program);
  for (const char *part : {"add a b", "2.0:f32[]", "3.5:f32[]", "neg", "1.0:f32[]", "0.5:f32[]"}) check_has(text, part);
  CHECK(program.in_count() == 2 && program.out_count() == 5);

  auto compared = axle::trace([](value x, value y) {
    value inside = (x > 0) & (x <= 3) & ~(x == y);
    return std::array{inside | (1 >= x), x != y, y < x, 2 == x};
  }, {s32(), s32()});
  text = text_of(compared);
  for (const char *part : {"gt", "le", "eq", "not", "and", "or", "ge", "ne", "lt"}) check_has(text, part);
  CHECK(compared.out_type(0).dtype == AX_BOOL);

  auto wide = axle::trace([](value x) { return x + 18446744073709551615u; }, {axle::array_type(axle::u64)});
  check_has(text_of(wide), "18446744073709551615:u64[]");
  auto narrow = axle::trace([](value x) { return x + true + 'a' + static_cast<short>(-7); }, {s32()});
  check_has(text_of(narrow), "97:s32[]");

  CHECK(computed([](value x) { return 1 - x * x / 2; }, {1, 2, 4}, 3) == std::vector<float>{0.5f, -1, -7});
}

/* Each function, once: what it is called in the program, and the shape it gives. */
void named() {
  std::vector<axle::type> types = {f32({2, 3}), s32({2, 3}), axle::array_type(AX_BOOL, {2, 3}), s32()};
  auto of = [&](auto f) {
    return axle::program(axle::trace([&](const std::vector<value> &in) { return f(in[0], in[1], in[2], in[3]); }, types));
  };
  auto gives = [&](auto f, std::vector<std::int64_t> shape, axle::location at = axle::location::here()) {
    axle::type type = of(f).out_type(0);
    check(std::vector<std::int64_t>(type.dims, type.dims + type.rank) == shape, "the shape", at);
  };
  using axle::abs;
  gives([](value x, value, value, value) { return add(x, 1) + sub(2, x) + mul(x, x) + div(x, 2) + max(x, 0) + min(0, x) + pow(x, 2); }, {2, 3});
  gives([](value x, value, value, value) { return neg(x) + abs(x) + sign(x) + exp(x) + log(x) + log1p(x) + expm1(x) + tanh(x); }, {2, 3});
  gives([](value x, value, value, value) { return logistic(x) + sqrt(x) + rsqrt(x) + accurate(erf(x), 1) + integer_pow(x, 3) + square(x) + sin(x) * cos(x); }, {2, 3});
  gives([](value x, value, value, value) { return and_(eq(x, 1), or_(ne(x, 2), not_(lt(x, 3)))) & le(x, 4) & gt(x, 5) & ge(6, x); }, {2, 3});
  gives([](value x, value n, value b, value) { return select_n(b, x, where(b, x, 0)) + convert_element_type(n, axle::f32); }, {2, 3});
  gives([](value x, value, value, value) { return stop_gradient(x) + clamp(0, x, 1) + axle::full_like(x, 2); }, {2, 3});
  gives([](value x, value, value, value) { return rem(x, 2) + mod(-7, x) + floor_divide(x, x) + axle::floor(x) + axle::ceil(x) + axle::round(x); }, {2, 3});
  gives([](value x, value, value, value) { return reshape(x, {3, 2}); }, {3, 2});
  gives([](value x, value, value, value) { return matrix_transpose(axle::index(index_set(x, ":, 0", 1), "::-1, None, 1:")); }, {2, 2, 1});
  gives([](value x, value, value, value) { return reshape(x, 6); }, {6});
  gives([](value x, value, value, value) { return transpose(x, {1, 0}); }, {3, 2});
  gives([](value x, value, value, value) { return broadcast_in_dim(x, {4, 2, 3}, {1, 2}); }, {4, 2, 3});
  gives([](value x, value, value, value) { return slice(x, {0, 1}, {2, 3}); }, {2, 2});
  gives([](value x, value, value, value) { return slice(x, {0, 0}, {2, 3}, {1, 2}); }, {2, 2});
  gives([](value x, value, value, value) { return pad(x, 0, {1, 0}, {0, 2}); }, {3, 5});
  gives([](value x, value, value, value) { return pad(x, 0, {0, 0}, {0, 0}, {1, 1}); }, {3, 5});
  gives([](value x, value, value, value) { return axle::concatenate({x, x, x}); }, {6, 3});
  gives([](value x, value, value, value) { return axle::concatenate(std::vector<value>{x, x}, 1); }, {2, 6});
  gives([](value x, value, value, value i) { return dynamic_slice(x, {i, 0}, {1, 3}); }, {1, 3});
  gives([](value x, value, value, value i) { return dynamic_update_slice(x, axle::full(axle::f32, {1, 1}, 0), {0, i}); }, {2, 3});
  gives([](value x, value, value, value) { return expand_dims(x, 0); }, {1, 2, 3});
  gives([](value x, value, value, value) { return squeeze(expand_dims(x, 0)); }, {2, 3});
  gives([](value x, value, value, value) { return squeeze(expand_dims(expand_dims(x, 0), -1), {-1}); }, {1, 2, 3});
  gives([](value x, value, value, value) { return moveaxis(x, 0, 1) + swapaxes(x, 0, -1); }, {3, 2});
  gives([](value x, value, value, value) { return axle::stack({x, x, x, x}, -1); }, {2, 3, 4});
  gives([](value x, value, value, value) { return split(x, {1, 2}, 1)[1]; }, {2, 2});
  gives([](value x, value, value, value) { return slice_in_dim(x, 1, axle::end, 1, 1); }, {2, 2});
  gives([](value x, value, value, value) { return at(x, -1); }, {3});
  gives([](value x, value, value, value) { return broadcast_to(at(x, 0), {4, 3}); }, {4, 3});
  gives([](value x, value n, value, value) { return take(x, at(n, 0), 1); }, {2, 3});
  gives([](value x, value, value b, value) { return cumsum(x, 1) + logsumexp(x) + where(reduce_or(b) & reduce_and(b, 0), x, 0); }, {2, 3});
  gives([](value x, value, value, value i) { return dynamic_at(x, i, 1); }, {2});
  gives([](value x, value, value, value i) { return dynamic_at_set(x, 0, i); }, {2, 3});
  gives([](value x, value, value, value i) { return dynamic_slice_in_dim(x, i, 2, 1); }, {2, 2});
  gives([](value x, value, value, value i) { return dynamic_update_slice_in_dim(x, slice_in_dim(x, 0, 1), i); }, {2, 3});
}

void reductions_and_products() {
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  CHECK(computed([](value v) { return reduce_sum(v); }, x, {2, 3}) == std::vector<float>{21});
  CHECK(computed([](value v) { return reduce_sum(v, 0); }, x, {2, 3}) == std::vector<float>{5, 7, 9});
  CHECK(computed([](value v) { return reduce_sum(v, {-1}, true) + reduce_sum(v, {}); }, x, {2, 3}) == std::vector<float>{7, 8, 9, 19, 20, 21});
  CHECK(computed([](value v) { return reduce_mean(v, -1); }, x, {2, 3}) == std::vector<float>{2, 5});
  CHECK(computed([](value v) { return reduce_max(v) - reduce_min(v, axle::all_dims); }, x, {2, 3}) == std::vector<float>{5});
  CHECK(computed([](value v) { return convert_element_type(argmax(v, 1), axle::f32); }, x, {2, 3}) == std::vector<float>{2, 2});
  CHECK(computed([](value v) { return convert_element_type(argmin(v, 1), axle::f32); }, x, {2, 3}) == std::vector<float>{0, 0});
  CHECK(computed([](value v) { return matmul(v, transpose(v, {1, 0})); }, x, {2, 3}) == std::vector<float>{14, 32, 32, 77});
  CHECK(computed([](value v) { return dot_general(v, v, {1}, {1}); }, x, {2, 3}) == std::vector<float>{14, 32, 32, 77});
  CHECK(computed([](value v) { return dot_general(v, v, {1}, {1}, {0}, {0}); }, x, {2, 3}) == std::vector<float>{14, 77});
  CHECK(computed([](value v) { return axle::reduce_window_sum(v, {1, 2}) + axle::slice_in_dim(axle::rev(v, 1), 0, 2, 1, 1); }, x, {2, 3}) == std::vector<float>{6, 7, 15, 16});
  CHECK(computed([](value v) { return axle::einsum("ij,ij->i", {v, v}); }, x, {2, 3}) == std::vector<float>{14, 77});
  CHECK(computed([](value v) { return reduce_sum(softmax(v), -1) + at(exp(log_softmax(v, 0)), 0, 1) * 0; }, x, {2, 3}).size() == 2);
  CHECK(computed([](value v) { return relu(v - 3) + gelu(v) * 0; }, x, {2, 3}) == std::vector<float>{0, 0, 0, 1, 2, 3});
  CHECK(computed([](value v) { return one_hot(convert_element_type(at(v, 0), axle::s32), 4); }, x, {2, 3}).size() == 12);
}

void constants() {
  auto program = axle::trace([] {
    value table = axle::constant(axle::view(std::vector<float>{1, 2, 3, 4}, {2, 2}));
    value whole = axle::full(axle::s64, {}, std::int64_t{1} << 60);
    value list = axle::constant(std::array<std::int8_t, 3>{1, 2, 3});
    return std::tuple(table + axle::iota(axle::f32, {2, 2}, 1), whole, list, axle::full(axle::bf16, {2}, 0.5));
  });
  std::string text = text_of(program);
  check_has(text, "1152921504606846976");
  CHECK(program.out_type(2).dtype == AX_S8 && program.out_type(3).dtype == AX_BF16);
}

/* Questions about a value; dims from vectors and arrays. */
void shapes() {
  auto program = axle::trace([](value x) {
    CHECK(x.rank() == 2 && x.dim(0) == 2 && x.dim(-1) == 3 && x.dim(2) == 0 && x.dtype() == axle::f32);
    std::vector<std::int64_t> list = {x.dim(1), x.dim(0)};
    return std::pair(reshape(x, list), reshape(x, std::array<std::int64_t, 1>{6}));
  }, {f32({2, 3})});
  CHECK(program.out_type(0).dims[0] == 3 && program.out_type(1).rank == 1);
}

void collectives() {
  axle::mesh mesh = axle::mesh::parse("d=4");
  auto body = [](value x) {
    CHECK(axle::axis_size("d") == 4);
    value sums = psum(x, "d") + pmean(x, "d") + pmax(x, "d") + pmin(x, "d") + axle::done(psum_start(x, "d"));
    value moved = ppermute(x, "d", {{0, 1}, {1, 0}}) + pshift(x, "d", 1, true) + axle::done(axle::start([&] { return pshift(x, "d", -1, false); }));
    value gathered = reduce_sum(all_gather(x, "d"), 0) + reduce_sum(all_gather_invariant(x, "d", 0), 0);
    value scattered = psum_scatter(all_gather(x, "d", 0, true), "d", 0, true);
    value turned = all_to_all(pvary(axle::full(axle::f32, {4}, 1), "d"), "d", 0, 0);
    value square = pvary(axle::full(axle::f32, {4, 4}, 1), "d");
    value products = reduce_sum(matmul_reduce_scatter(collective_matmul(square, square, "d"), square, "d"));
    return sums + moved + gathered + scattered + reduce_sum(turned) + products + convert_element_type(axle::axis_index("d"), axle::f32) +
           pcast(axle::full(axle::f32, {}, 0), "d", "varying");
  };
  auto program = axle::trace([&](value x) { return axle::shard_map(mesh, "d -> d", body, {x}); }, {f32({4})});
  std::string text = text_of(program);
  for (const char *part : {"psum", "pmax", "pmin", "ppermute", "all_gather", "psum_scatter", "all_to_all", "axis_index", "start", "done", "collective_matmul", "matmul_reduce_scatter"})
    check_has(text, part);
}

/* An error says the line of the call, through operators and functions, whatever number stands first. */
template <class F>
void fails_with(F f, const std::string &part, axle::location at = axle::location::here()) {
  try {
    axle::trace(f, {f32({2, 3}), f32({2, 3})});
    check(false, "the trace fails", at);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "values.cc:" + std::to_string(at.line) + ": " + part, at);
    check(failed.status() == AX_INVALID_ARGUMENT, "the status", at);
  }
}
void lines() {
  fails_with([](value x, value y) { return matmul(x, y); }, "matmul: ");
  fails_with([](value x, value) { return x + transpose(x, {1, 0}); }, "add f32[2,3] f32[3,2]: ");
  fails_with([](value x, value) { return 1 + (2 + reshape(x, {7})); }, "reshape");
  fails_with([](value x, value) { return transpose(x, {0, 1, 2}); }, "transpose: the permutation has 3 entries, but the operand 2 dimensions");
  fails_with([](value x, value) { return slice(x, {0}, {2, 2}); }, "slice: start has 1 entries");
  fails_with([](value x, value y) { return dot_general(x, y, {1}, {}); }, "dot_general: there are as many");
  fails_with([](value x, value) { return axle::exp(value()) + x; }, "exp: the operand is a value that was never set");
  fails_with([](value x, value) { return axle::psum(x, "nowhere"); }, "psum");
  fails_with([](value x, value) { axle::trace_fail("the rows are odd"); return x; }, "trace_fail: the rows are odd");
  fails_with([](value x, value) { return axle::constant(axle::view(std::vector<float>{1, 2}, {3})) + x; }, "constant");
  auto program = axle::trace([](value x) { return exp(x); }, {f32()});
  std::string located = program.print_locations();
  check_has(located, "values.cc:" + std::to_string(__LINE__ - 2));
}

}  // namespace

void values_test() {
  complex_numbers();
  operators();
  named();
  reductions_and_products();
  constants();
  shapes();
  collectives();
  lines();
}
