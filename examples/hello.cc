/* The program of docs/cxx.md: a line fitted by gradient descent over four devices. */
#include <axle/axle.hpp>

#include <cstdio>

using axle::value;

int main() {
  axle::runtime runtime = axle::runtime::create();
  axle::mesh mesh = axle::mesh::parse("data=4");

  auto loss = [](value w, value x, value y) { return axle::reduce_mean(axle::square(axle::matmul(x, w) - y)); };
  auto step = [&](value w, value x, value y) {
    auto whole = [&](value v, value part, value wanted) { return axle::pmean(loss(v, part, wanted), "data"); };
    auto [error, gradient] = axle::value_and_grad(whole, {w, x, y});
    return std::pair(error, w - 0.1 * gradient);
  };
  auto on_mesh = [&](value w, value x, value y) { return axle::shard_map(mesh, "; data; data -> ; ", step, {w, x, y}); };

  axle::executable train = runtime.jit(on_mesh, {axle::array_type(axle::f32, {2}), axle::array_type(axle::f32, {8, 2}),
                                                 axle::array_type(axle::f32, {8})}, {axle::first(1)});
  std::vector<float> rows(16, 0.5f), wanted(8, 2);
  axle::array w = runtime.put(mesh, "", std::vector<float>{0, 0});
  axle::array x = runtime.put(mesh, "data", axle::view(rows, {8, 2})), y = runtime.put(mesh, "data", wanted);
  for (int i = 0; i < 3; i++) {
    std::vector<axle::array> made = train.run({w, x, y});
    std::printf("loss %.4f\n", double{made[0].item<float>()});
    w = made[1];
  }
}
