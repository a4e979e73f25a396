/* Functions of every kind where the library takes one, what they give, and exceptions that leave them. */
#include "check.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

using axle::value;

namespace {

/* What f gives for x, one number after the other. */
template <class F>
std::vector<float> computed(F f, const std::vector<float> &x) {
  axle::runtime runtime = axle::runtime::create();
  std::vector<axle::type> types(x.size(), f32());
  std::vector<axle::host_view> in;
  for (const float &one : x) in.push_back(axle::host_view(&one, axle::f32, {}));
  std::vector<float> all;
  axle::executable executable = runtime.jit(f, types);
  for (const axle::host_array &out : executable.run_host(in))
    for (float one : out.elements<float>()) all.push_back(one);
  return all;
}

value cube(value x) { return x * x * x; }
value difference(const value &x, value y) noexcept { return x - y; }
struct scaled {
  double by;
  value operator()(value x) const { return x * by; }
};

/* Each kind of function; each kind of result. */
void kinds() {
  using list = std::vector<float>;
  double by = 3;
  CHECK(computed([&](value x) { return x * by; }, {2}) == list{6});
  CHECK(computed(cube, {2}) == list{8});
  CHECK(computed(&cube, {2}) == list{8});
  CHECK(computed(difference, {2, 3}) == list{-1});
  CHECK(computed(scaled{4}, {2}) == list{8});
  CHECK(computed(std::function<value(value)>(cube), {3}) == list{27});
  CHECK(computed([](const std::vector<value> &xs) { return xs[0] + xs[1] + xs[2]; }, {1, 2, 3}) == list{6});
  CHECK(computed([](const value &x, value &&y) { return x - y; }, {1, 2}) == list{-1});
  CHECK(computed([count = 0](value x) mutable { return x + ++count; }, {1}) == list{2});
  CHECK(computed([](value x) { return axle::closed_call([](auto y, auto z) { return y - z; }, {x, 2 * x}); }, {5}) == list{-5});
  CHECK(computed([](value x) { return axle::closed_call([](auto... all) { return (all + ...); }, {x, x, x}); }, {5}) == list{15});
  CHECK(computed([](value x) { return axle::vmap(axle::exp, {axle::full(axle::f32, {2}, 0)}) + x; }, {1}) == list{2, 2});
  CHECK(computed([](value x) { return axle::closed_call(axle::add, {x, x}); }, {4}) == list{8});
  ax_checkpoint_options saved = {};
  saved.save_dots = true;
  saved.save_names = "once";
  auto again = [saved](value x) {
    value once = axle::checkpoint([](value y) { return y * y; }, {x});
    return axle::checkpoint([](auto y, auto z) { return y * z; }, {x, axle::checkpoint_name(once, "once")}, saved);
  };
  CHECK(computed([again](value x) { return axle::grad(again, {x}); }, {3}) == list{27});
  auto own = [](value x) {
    return axle::custom_vjp([](value y) { return y * y; }, [](value y) { return std::pair(y * y, y); }, [](value y, value d) { return 7 * y * d; }, {x});
  };
  CHECK(computed([own](value x) { return axle::grad(own, {x}); }, {3}) == list{21});
  auto ruled = [](value x) {
    return axle::custom_jvp([](value y) { return y * y; }, [](const std::vector<value> &in) { return std::pair(in[0] * in[0], 5 * in[1]); }, {x});
  };
  CHECK(computed([ruled](value x) { return axle::grad(ruled, {x}); }, {3}) == list{5});
  auto solved = [](value x) { /* 2 x^2 y = x, and 4 z = x */
    ax_linear_solve_options options = {};
    options.symmetric = true;
    value y = axle::cg([x](value v) { return 2 * x * x * v; }, {x});
    return y + axle::custom_linear_solve([](value v) { return 4 * v; }, [](value b) { return b / 4; }, {x}, options);
  };
  CHECK(computed(solved, {2}) == list{0.75f});
  CHECK(computed([solved](value x) { return axle::grad(solved, {x}); }, {2}) == list{0.125f});
  auto root = [](value x) { /* y^2 = x, by its square root */
    return axle::custom_root([x](value y) { return y * y - x; }, [x](value) { return axle::sqrt(x); },
                             [](auto g, value b) { return b / g(axle::full_like(b, 1)); }, {x});
  };
  CHECK(computed(root, {4}) == list{2});
  CHECK(computed([root](value x) { return axle::grad(root, {x}); }, {4}) == list{0.25f});
  auto roots = [](value x) {
    return axle::custom_root([x](value y, value z) { return std::pair(2 * y - x, 4 * z - x); },
                             [x](value, value) { return std::pair(x / 2, x / 4); },
                             [](const axle::linear_function &g, const std::vector<value> &b) {
                               std::vector<value> slope = g({axle::full_like(b[0], 1), axle::full_like(b[1], 1)});
                               return std::pair(b[0] / slope[0], b[1] / slope[1]);
                             },
                             {x, x});
  };
  CHECK(computed(roots, {4}) == list{2, 1});
  CHECK(computed([roots](value x) { return axle::grad([roots](value y) { auto [a, b] = roots(y); return a + 8 * b; }, {x}); }, {4}) ==
        list{2.5f});
  auto least = [](value x) {
    auto found = axle::minimize([x](value y) { return axle::reduce_sum((y - x) * (y - x)); }, axle::full(axle::f32, {1}, 0));
    value near = axle::abs(axle::reduce_sum(found.x) - x) < 1e-4f;
    return std::pair(axle::convert_element_type(near, axle::f32), axle::convert_element_type(found.status, axle::f32));
  };
  CHECK(computed(least, {3}) == list{1, 0});
}

void results() {
  using list = std::vector<float>;
  CHECK(computed([](value x) { return std::tuple(x, 2 * x, 3 * x); }, {1}) == list{1, 2, 3});
  CHECK(computed([](value x) { return std::array{x, -x}; }, {1}) == list{1, -1});
  CHECK(computed([](value x) { return std::pair(x, std::array{2 * x, 3 * x}); }, {1}) == list{1, 2, 3});
  CHECK(computed(axle::returning(4, [](value x) { return std::vector<value>(4, x); }), {1}) == list{1, 1, 1, 1});
  auto called = [](value x) {
    auto [a, rest] = axle::closed_call([](value y) { return std::pair(y, std::tuple(2 * y, std::array{3 * y})); }, x);
    std::vector<value> more = axle::closed_call(axle::returning(2, [](value y) { return std::vector<value>{4 * y, 5 * y}; }), {x});
    return std::tuple(a, std::get<0>(rest), std::get<1>(rest)[0], more.at(0), more.at(1));
  };
  CHECK(computed(called, {1}) == list{1, 2, 3, 4, 5});
  CHECK(axle::trace([] { return std::array<value, 0>(); }).out_count() == 0);

  for (std::size_t given : {2u, 4u, 40u}) {
    try {
      axle::trace(axle::returning(3, [&](value x) { return std::vector<value>(given, x); }), {f32()});
      CHECK(false);
    } catch (const axle::error &failed) {
      check_has(failed.what(), given < 3 ? "out[2] was never set, but there are 3 results" : "out[3] was set, but there are 3 results");
    }
  }
}

void control_flow() {
  using list = std::vector<float>;
  auto absolute = [](value x) { return axle::if_(x > 0, [&] { return x; }, [&] { return -x; }); };
  CHECK(computed(absolute, {-2}) == list{2});
  auto picked = [](value x) {
    auto branches = std::tuple([](value y) { return y; }, [](value y) { return 10 * y; }, &cube);
    return axle::switch_(convert_element_type(x, axle::s32), branches, {x});
  };
  CHECK(computed(picked, {2}) == list{8} && computed(picked, {1}) == list{10});
  auto chosen = [](value x) { return axle::if_(x > 0, difference, [](value a, value b) { return a + b; }, {x, 2 * x}); };
  CHECK(computed(chosen, {1}) == list{-1} && computed(chosen, {-1}) == list{-3});

  auto powers = [](value x) {
    auto [last, all] = axle::scan([&](value power) { return std::pair(power * x, power); }, {axle::full(axle::f32, {}, 1)}, 4);
    return std::tuple(last, all);
  };
  CHECK(computed(powers, {2}) == list{16, 1, 2, 4, 8});
  auto sums = [](value x) {
    value row = axle::iota(axle::f32, {4});
    auto [sum, running] = axle::scan([](value so_far, value y) { return std::pair(so_far + y, so_far); }, {x}, {row}, -1, true);
    std::vector<value> one = {x};
    value again = axle::scan([](const std::vector<value> &in) { return in[0] + in[1]; }, one, row);
    return std::tuple(sum, running, again);
  };
  CHECK(computed(sums, {10}) == list{16, 16, 15, 13, 10, 16});
  auto paired = [](value sum) {
    value xs = axle::iota(axle::f32, {3});
    auto both = axle::scan([&](value carry, value x) { return std::pair(carry + x, carry * x); }, {sum}, {xs});
    return both;
  };
  CHECK(computed(paired, {1}) == list{4, 0, 1, 4});
  auto affine = [](value x) { /* y[i] = 2 y[i - 1] + x[i] */
    value twos = axle::full(axle::f32, {3}, 2);
    auto after = [](value a, value b, value c, value d) { return std::pair(a * c, b * c + d); };
    auto [factors, all] = axle::associative_scan(after, {twos, x + axle::iota(axle::f32, {3})});
    std::vector<value> one = {all};
    value greatest = axle::associative_scan([](const std::vector<value> &in) { return axle::max(in[0], in[1]); }, one, -1, true);
    return std::tuple(factors, all, greatest, cummax(all), cumprod(all, 0, true));
  };
  CHECK(computed(affine, {1}) == list{2, 4, 8, 1, 4, 11, 11, 11, 11, 1, 4, 11, 44, 44, 11});
  auto counted = [](value x) {
    value upper = convert_element_type(x, axle::s32);
    auto times = [&](value i, value y) { return y * x + convert_element_type(i, axle::f32); };
    return std::pair(axle::fori_loop(0, 3, times, {x}), axle::fori_loop(0, upper, times, x));
  };
  CHECK(computed(counted, {2}) == list{20, 9});
  auto mapped = [](value x) {
    value rows = axle::stack({x, 2 * x, 3 * x}, 0);
    auto step = [](value h, value row) { return std::pair(h + row, h * row); };
    auto [last, all] = axle::scan_unrolled(step, 2, {x}, {rows});
    return std::tuple(axle::reduce_sum(axle::map([](value row) { return row * row; }, {rows}, 2)), last, axle::reduce_sum(all));
  };
  CHECK(computed(mapped, {2}) == list{56, 14, 68});
  auto doubled = [](value x) {
    return axle::while_([](value y, value) { return y < 100; }, [](value y, value n) { return std::pair(2 * y, n + 1); },
                        {x, axle::full(axle::f32, {}, 0)});
  };
  CHECK(computed(doubled, {30}) == list{120, 2});
}

void derivatives() {
  using list = std::vector<float>;
  auto product = [](value w, value x) { return w * w * x; };
  CHECK(computed([&](value w, value x) { return axle::grad(product, {w, x}); }, {3, 5}) == list{30});
  auto by_both = [&](value w, value x) {
    auto gradients = axle::grad(product, {0, 1}, {w, x});
    auto [y, same] = axle::value_and_grad(product, axle::all_args, {w, x});
    auto [z, by_w] = axle::value_and_grad(product, {w, x});
    return std::array{gradients.at(0), gradients.at(1), y, same.at(0), same.at(1), z, by_w};
  };
  CHECK(computed(by_both, {3, 5}) == list{30, 9, 45, 30, 9, 45, 30});
  auto with_more = [](value w) {
    auto [results, by_w] = axle::value_and_grad([](value v) { return std::tuple(v * v, v + 1); }, w);
    return std::tuple(results, by_w, axle::grad([](value v) { return axle::grad(cube, v); }, w));
  };
  CHECK(computed(with_more, {4}) == list{16, 5, 8, 24});
  auto forward = [&](value w, value x) {
    auto [y, dy] = axle::jvp(product, {w, x}, {x, w});
    auto [z, dz] = axle::jvp(product, {1}, {w, x}, {w});
    return std::array{y, dy, z, dz};
  };
  CHECK(computed(forward, {3, 5}) == list{45, 30 * 5 + 9 * 3, 45, 27});
  auto backward = [&](value w, value x) {
    auto [y, by] = axle::vjp(product, {w, x}, {1});
    auto [z, by_x] = axle::vjp(product, {1}, {w, x}, {w});
    auto [same, map] = axle::linearize(product, {w, x});
    return std::array{y, by.at(0), by.at(1), z, by_x.at(0), same, map.pushforward({1, w}).at(0), map.pullback({2}).at(1)};
  };
  CHECK(computed(backward, {3, 5}) == list{45, 30, 9, 45, 27, 45, 57, 18});
  auto second = [&](value w, value x) {
    auto [gradients, products] = axle::hvp(product, {0, 1}, {w, x}, {1, 0});
    auto all = axle::hessian(product, {0, 1}, {w, x});
    auto forward_rows = axle::jacfwd(product, {0, 1}, {w, x});
    auto [first, other] = axle::jacrev([](value v) { return std::pair(v * v, 2 * v); }, {w});
    return std::array{gradients.at(0), products.at(0), products.at(1), all.at(0), all.at(3), axle::hessian(cube, w), forward_rows.at(1),
                      axle::jacfwd(cube, w), first, other, axle::jacrev(product, {1}, {w, x}).at(0)};
  };
  CHECK(computed(second, {3, 5}) == list{30, 10, 6, 10, 0, 18, 9, 27, 6, 2, 9});
  auto mapped = [](value x) {
    value rows = axle::reshape(axle::iota(axle::f32, {6}), {2, 3});
    value sums = axle::vmap([](value row) { return reduce_sum(row); }, {rows});
    value products = axle::vmap([](value column, value by) { return column * by; }, {rows, x}, {{1, AX_NOT_MAPPED}, {1}});
    value means = axle::vmap([](value row) { return row - axle::pmean(row, "batch"); }, rows, {{}, {}, 0, "batch"});
    return std::tuple(sums, products, means);
  };
  CHECK(computed(mapped, {2}) == list{3, 12, 0, 2, 4, 6, 8, 10, -1.5f, -1.5f, -1.5f, 1.5f, 1.5f, 1.5f});
  auto on_devices = [](value x) {
    value rows = axle::reshape(axle::iota(axle::f32, {4}), {2, 2});
    value sums = axle::pmap([](value row) { return reduce_sum(row); }, {rows});
    value products = axle::pmap([](value column, value by) { return column * by; }, {rows, x}, {{1, AX_NOT_MAPPED}, {1}});
    value means = axle::pmap([](value row) { return row - axle::pmean(row, "batch"); }, rows, {{}, {AX_NOT_MAPPED}, "batch", 2, {1, 0}});
    return std::tuple(sums, products, means);
  };
  CHECK(computed(on_devices, {2}) == list{1, 5, 0, 2, 4, 6, -1, -1});
  auto tiled = [](value x) {
    auto less_mean = [](value block, value by) { return block * by - axle::pmean(block, "d"); };
    return axle::vtile(axle::mesh::parse("d=2"), "d; -> d", less_mean, {axle::iota(axle::f32, {4}), x});
  };
  CHECK(computed(tiled, {2}) == list{-1, 0, 3, 4});
  CHECK(axle::trace([](value x) { return axle::pmap(cube, {x}); }, {f32({4})}).devices() == 4);
  CHECK(axle::trace([](value x) { return axle::call(axle::trace(cube, {f32()}), {x}).at(0); }, {f32()}) == axle::trace(cube, {f32()}));
}

/* Counts what is alive, so that what an exception passes is known to be gone. */
struct guest {
  static int alive;
  guest() { alive++; }
  guest(const guest &) { alive++; }
  ~guest() { alive--; }
};
int guest::alive = 0;
struct thrown {
  int number;
};

/* Out of shard_map in scan in grad; then the thread is as before. */
void exceptions() {
  axle::mesh mesh = axle::mesh::parse("d=2");
  auto through = [&](int number) {
    auto innermost = [&](value x) -> value {
      guest here;
      if (number == 1) throw thrown{7};
      if (number == 2) throw std::runtime_error("by its own words");
      if (number == 3) axle::trace([](value y) { return matmul(y, y); }, {f32()});
      if (number == 4) return matmul(x, x);
      return x;
    };
    auto body = [&](value carry) {
      guest here;
      return std::pair(carry + axle::shard_map(mesh, " -> ", innermost, {carry}), carry);
    };
    auto loss = [&](value x) {
      guest here;
      auto [last, all] = axle::scan(body, {x}, 3);
      return last + reduce_sum(all);
    };
    return axle::program(axle::trace([&](value x) { return axle::grad(loss, {x}); }, {f32()}));
  };
  for (int repeat = 0; repeat < 3; repeat++) {
    try {
      through(1);
      CHECK(false);
    } catch (const thrown &it) {
      CHECK(it.number == 7);
    }
    try {
      through(2);
      CHECK(false);
    } catch (const std::runtime_error &it) {
      CHECK(std::string(it.what()) == "by its own words");
    }
    try {
      through(3);
      CHECK(false);
    } catch (const axle::error &it) {
      check_has(it.what(), "trace: ");
      check_has(it.what(), "matmul");
    }
    try {
      through(4);
      CHECK(false);
    } catch (const axle::error &it) {
      check_has(it.what(), "grad: ");
      check_has(it.what(), "scan: body: ");
      check_has(it.what(), "shard_map: body: ");
      check_has(it.what(), "matmul");
    }
    CHECK(guest::alive == 0);
    CHECK(through(0).out_count() == 1);
  }

  /* A function that catches goes on; its trace has failed, and says why. */
  bool caught = false;
  try {
    axle::trace([&](value x) {
      try {
        axle::closed_call([](value) -> value { throw std::runtime_error("thrown within"); }, {x});
      } catch (const std::runtime_error &) {
        caught = true;
      }
      return x;
    }, {f32()});
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "closed_call");
    check_has(failed.what(), "thrown within");
  }
  CHECK(caught);

  /* Out of an expression that is started: the trace around is as it was, and has failed. */
  auto begun = [&](bool all) {
    return axle::program(axle::trace([&](value x) {
      try {
        return axle::done(axle::start([&]() -> value { return all ? psum(-x, "") : throw thrown{3}; })) * x;
      } catch (const thrown &) {
        return x;
      }
    }, {f32()}));
  };
  CHECK(begun(true).out_count() == 1);
  try {
    begun(false);
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "start: ");
  }

  /* Of an if_, the second; of a switch_, each. */
  for (int which = 0; which < 3; which++) {
    auto branch = [&](int own) { return [=](value x) -> value { return own == which ? throw thrown{own} : x; }; };
    try {
      axle::trace([&](value x) {
        if (which == 1) return axle::if_(x > 0, branch(0), branch(1), {x});
        if (which == 2) return axle::while_([](value y) { return y < 3; }, branch(2), {x});
        return axle::switch_(convert_element_type(x, axle::s32), std::tuple(branch(1), branch(0)), {x});
      }, {f32()});
      CHECK(false);
    } catch (const thrown &it) {
      CHECK(it.number == which);
    }
  }
}

/* Another number of operands than the function takes, known when it runs. */
void mismatches() {
  std::vector<axle::type> types(3, f32());
  try {
    axle::trace(difference, types);
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "functions.cc:");
    check_has(failed.what(), "trace: the function takes 2 values, but there are 3 operands");
  }
  try {
    axle::trace([](const std::vector<value> &in) { return axle::grad(difference, in); }, types);
    CHECK(false);
  } catch (const axle::error &failed) {
    check_has(failed.what(), "grad: the function takes 2 values, but there are 3 operands");
  }
  auto refused = [&](auto f, const char *part) {
    try {
      axle::trace(f, {f32({2})});
      CHECK(false);
    } catch (const axle::error &failed) {
      check_has(failed.what(), part);
    }
  };
  refused([](value x) { return axle::vmap(cube, {x}, {{0, 0}}); }, "vmap: in_axes has 2 entries, but there is 1 operand");
  refused([](value x) { return axle::pmap(cube, {x}, {{0, 0}}); }, "pmap: in_axes has 2 entries, but there is 1 operand");
  refused([](value x) { return axle::pmap(cube, {x}, {{1}}); }, "pmap: in_axes[0]=1 of f32[2] is out of range");
  refused([](value x) { return axle::jvp(cube, {x}, {x, x}); }, "jvp: there are 2 tangents, but 1 are wanted");
  refused([](value x) { return axle::grad(cube, axle::first(9), {x}).at(8); }, "grad: derivatives by 9 operands, but there are 1");
  refused([](value x) { return axle::call(axle::trace(difference, {f32(), f32()}), {x}).at(0); }, "call: ");
}

/* A function may trace itself; traces on several threads are each their own. */
value nested(value x, int depth) {
  return depth == 0 ? x : axle::closed_call([&](value y) { return nested(y, depth - 1) + x; }, {x});
}
void recursion_and_threads() {
  CHECK(computed([](value x) { return nested(x, 10); }, {1}) == std::vector<float>{11});
  axle::runtime runtime = axle::runtime::create();
  std::vector<std::thread> threads;
  std::vector<float> found(4);
  for (int i = 0; i < 4; i++)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 5; k++) {
        try {
          axle::trace([&](value x) -> value { return i % 2 == 0 ? throw thrown{i} : matmul(x, x); }, {f32()});
        } catch (const thrown &) {
        } catch (const axle::error &) {
        }
        axle::executable executable = runtime.jit([&](value x) { return x * i; }, {f32()});
        const float two = 2;
        axle::array put = runtime.put({}, "", axle::host_view(&two, axle::f32, {}));
        found[static_cast<std::size_t>(i)] = executable.run({put})[0].item<float>();
      }
    });
  for (std::thread &thread : threads) thread.join();
  CHECK(found == std::vector<float>{0, 2, 4, 6});
}

/* Functions of the host: kept by what holds them, called by a run; exceptions end it. */
void callbacks() {
  auto gone = std::make_shared<int>(0);
  std::weak_ptr<int> kept = gone;
  std::string printed;
  ax_runtime_options options{};
  options.workers = 1;
  options.print = [](const char *text, void *context) { *static_cast<std::string *>(context) += text; };
  options.print_context = &printed;
  axle::runtime runtime = axle::runtime::create(options);
  axle::executable executable;
  {
    auto add = axle::callback::create("add", [gone](ax_callback_call &call) {
      ++*gone;
      static_cast<float *>(call.out[0].data)[0] = static_cast<float>(ax_host_at(&call.in[0], 0) + ax_host_at(&call.in[1], 0));
    });
    CHECK(add.name() == "add");
    executable = runtime.jit([&](value x) {
      axle::debug_print("x is {:.1f}", {x}, true);
      value sum = axle::pure_callback(add, {x, x}, {f32()})[0];
      axle::io_callback(add, {sum, x}, {f32()});
      return sum;
    }, {f32()});
  }
  gone.reset();
  float x = 2;
  CHECK(executable.run_host({axle::host_view(&x, axle::f32, {})})[0].elements<float>()[0] == 4);
  CHECK(printed == "x is 2.0\n");
  CHECK(!kept.expired() && *kept.lock() == 2);
  executable = axle::executable();
  CHECK(kept.expired());

  auto thrower = axle::callback::create("thrower", [](ax_callback_call &) { throw std::runtime_error("thrown inside"); });
  auto refuser = axle::callback::create("refuser", [](ax_callback_call &) { return AX_IO_ERROR; });
  for (const axle::callback &one : {thrower, refuser}) {
    auto failing = runtime.jit([&](value y) {
      axle::io_callback(one, {y});
      return y;
    }, {f32()});
    try {
      (void)failing.run_host({axle::host_view(&x, axle::f32, {})});
      CHECK(false);
    } catch (const axle::error &failed) {
      check_has(failed.what(), one.name() == "thrower" ? "thrown inside" : "callback \"refuser\" failed (AX_IO_ERROR)");
      CHECK(failed.status() == (one.name() == "thrower" ? AX_INVALID_ARGUMENT : AX_IO_ERROR));
    }
  }
  runtime.register_callback(refuser);
  runtime.wait();
}

/* Callbacks that have the last handle of their runtime, captured or to be dropped by the function, when all others go while a run is in flight. */
void callbacks_that_own() {
  for (int k = 0; k < 20; k++) {
    auto alive = std::make_shared<axle::runtime>();
    std::weak_ptr<axle::runtime> context = alive;
    axle::array made;
    {
      ax_runtime_options options{};
      options.workers = 3;
      axle::runtime runtime = axle::runtime::create(options);
      *alive = runtime;
      auto called = axle::callback::create("called", [alive, drops = k % 2 == 0](ax_callback_call &) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (drops) *alive = axle::runtime();
      });
      alive.reset();
      axle::executable executable = runtime.jit([&](value x) {
        axle::io_callback(called, {x});
        return x + 1;
      }, {f32({1})});
      made = executable.run_start({runtime.put(axle::mesh(), "", std::vector<float>{2})}).at(0);
    }
    if (k % 3 == 0) CHECK(made.item<float>() == 3);
    made = axle::array();
    for (int i = 0; i < 20000 && !context.expired(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    CHECK(context.expired());
  }
}

/* Functions that a module calls by name: kept by the program, which outlives the collection. */
void custom_calls() {
  const std::string module =
      "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = stablehlo.custom_call @add(%x) {api_version = 4 : i32, backend_config = "
      "{by = 3 : i32}} : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n";
  auto gone = std::make_shared<int>(0);
  std::weak_ptr<int> kept = gone;
  axle::program program;
  {
    auto calls = axle::custom_calls::create();
    calls.add("add", [gone](ax_callback_call &call, const ax_attribute &attributes) {
      std::int64_t by = 0;
      axle::attribute_integer(&attributes, "by", &by);
      if (by > 100) throw std::runtime_error("too much");
      for (int i = 0; i < 2; i++) static_cast<float *>(call.out[0].data)[i] = static_cast<float>(ax_host_at(&call.in[0], i)) + static_cast<float>(by);
    });
    ax_stablehlo_options options{};
    options.custom_calls = calls.get();
    program = axle::program_from_stablehlo_with(module, module.size(), "m.mlir", options);
    try {
      calls.add("add", [](ax_callback_call &, const ax_attribute &) { return AX_OK; });
      CHECK(false);
    } catch (const axle::error &failed) {
      check_has(failed.what(), "the custom call @add is registered already");
    }
  }
  gone.reset();
  axle::runtime runtime = axle::runtime::create();
  float x[] = {1, 2};
  axle::executable executable = runtime.compile(program);
  CHECK(executable.run_host({axle::host_view(x, axle::f32, {2})})[0].elements<float>()[1] == 5);
  executable = axle::executable();
  runtime = axle::runtime();
  CHECK(!kept.expired());
  program = axle::program();
  CHECK(kept.expired());
}

}  // namespace

void functions_test() {
  kinds();
  results();
  control_flow();
  derivatives();
  exceptions();
  mismatches();
  recursion_and_threads();
  callbacks();
  callbacks_that_own();
  custom_calls();
}
