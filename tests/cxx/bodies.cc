/* Loops and branches in blocks, of axle::value and of ax_value: they make what the lambdas make, and an exception out of one is an
   error. */
#include "check.hpp"

namespace {

using axle::value;

axle::value block_by_lambda(value x, value y) {
  auto [first, second] = axle::fori_loop(0, 4,
                                         [](value i, value a, value b) {
                                           value up = axle::convert_element_type(i, axle::f32);
                                           return std::pair(a * 2 + up, b + axle::reduce_sum(a));
                                         },
                                         {x, y});
  auto [last, rows] = axle::scan([](value carry, value row) { return std::pair(carry + row, carry * row); }, {second}, {first});
  value small = axle::while_([](value a) { return a < 1000; }, [](value a) { return a * 2; }, {last});
  return rows + axle::if_(
                    small > 1500, [&]() { return small; }, [&]() { return -small; });
}

axle::value block_by_block(value x, value y) {
  AX_LOOP(i, 0, 4, &x, &y) {
    value up = axle::convert_element_type(i, axle::f32), before = x;
    x = x * 2 + up;
    y += axle::reduce_sum(before);
  }
  value rows;
  AX_SCAN(row, x, &y) {
    value before = y;
    y = y + row;
    axle::collect(&rows, before * axle::each(x));
  }
  AX_WHILE(y < 1000, &y) { y = y * 2; }
  AX_IF(y > 1500, &y) {}
  AX_ELSE { y = -y; }
  return rows + y;
}

void block_same_programs() {
  const std::vector<axle::type> types = {f32({3}), f32()};
  axle::program wanted = axle::trace(block_by_lambda, types), found = axle::trace(block_by_block, types);
  axle::runtime runtime = axle::runtime::create();
  const std::vector<float> x = {1, 2, 3}, y = {0.5f};
  auto run = [&](const axle::program &program) {
    return runtime.compile(program).run_host({axle::view(x, {3}), axle::view(y, {})})[0].elements<float>();
  };
  CHECK(run(wanted) == run(found));
}

/* The C functions, without axle::value: compiled in a file that includes axle.hpp, where only what a head declares is one. */
AX_BODY(block_of_handles) {
  ax_value x = in[0];
  AX_LOOP(i, 0, in[1], &x) {
    x = ax_add(x, ax_convert_element_type(i.get(), AX_F32));
    AX_IF(ax_gt(x, ax_real(3)), &x) { x = ax_neg(x); }
  }
  out[0] = x;
}

void block_handles() {
  ax_program *traced;
  const axle::type types[] = {f32(), s32()};
  if (CHECK(ax_trace(AX_FN(block_of_handles, 2, 1), 2, types, &traced) == AX_OK)) check_has(axle::program(traced).print(), "while");
}

template <class F>
void block_fails(F function, const char *part, axle::location at = axle::location::here()) {
  try {
    axle::trace(function, {f32({3})});
    check(false, part, at);
  } catch (const axle::error &failed) {
    check_has(failed.what(), part, at);
  }
}

void block_slips() {
  block_fails(
      [](value x) {
        value t = x;
        AX_LOOP(i, 0, 2, &x) {
          x = x + t;
          t = x * 2;
        }
        return x;
      },
      "add: operand 1 is a value of AX_LOOP's block at ");
  block_fails(
      [](value x) {
        AX_LOOP(i, 0, 2, &x) {
          x = x + 1;
          if (x.rank() == 1) break;
        }
        return x;
      },
      "AX_LOOP: its block was left by break");
  block_fails(
      [](value x) {
        AX_IF(axle::reduce_sum(x) > 0, &x) { return x; }
        return x;
      },
      "AX_IF: its block was left by break, return");
  block_fails(
      [](value x) {
        AX_LOOP(i, 0, 2, &x) { x = axle::reduce_sum(x); }
        return x;
      },
      "AX_LOOP: x starts as f32[3], but the block makes it f32[]");
  block_fails(
      [](value x) {
        try {
          AX_LOOP(i, 0, 2, &x) { throw 3; }
        } catch (int) {
        }
        return x;
      },
      "AX_LOOP: its block was left by break, return, goto, longjmp or an exception");
}

void block_exceptions() {
  int caught = 0;
  try {
    axle::trace(
        [](value x) {
          AX_LOOP(i, 0, 2, &x)
          AX_IF(axle::reduce_sum(x) > 0, &x) { throw 7; }
          return x;
        },
        {f32({3})});
  } catch (int number) {
    caught = number;
  }
  CHECK(caught == 7);
  block_same_programs(); /* nothing of it is left */
}

}  // namespace

void bodies_test() {
  block_same_programs();
  block_handles();
  block_slips();
  block_exceptions();
}
