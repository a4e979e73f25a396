/* A program of a user's, in C++, that sees what is installed: adds 1 to 2. */
#include <cstdio>

#include <axle/axle.hpp>

int main() {
  axle::executable add = axle::runtime::create().jit([](axle::value x) { return x + 1; }, {axle::array_type(axle::f32, {1})});
  std::printf("%g\n", double{add.run_host({std::vector<float>{2}})[0].data<float>()[0]});
}
