/* Trains a digit classifier on a mesh of devices, in C++: an MLP 64-512-10, the batch split over "data", the hidden layer over "model".
   Each step is taken on one device too, from the same weights on the same rows, and the losses and the weights are compared.
   Data: 8x8 handwritten digits, UCI (CC BY 4.0); the file is the argument. */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <valarray>

#include <axle/axle.hpp>

using axle::value;

constexpr int pixels = 64, classes = 10, batch_rows = 256, held_out = 360, steps = 600;
constexpr double learning_rate = 0.4;

/* --- The model: what one device does with its part of the batch and its part of the hidden layer --- */

value logits(value w1, value b1, value w2, value b2, value x) {
  value hidden = axle::relu(axle::matmul(x, w1) + b1);
  return axle::psum(axle::matmul(hidden, w2), "model") + b2;
}
value loss(value w1, value b1, value w2, value b2, value x, value labels) { /* the mean over the whole batch */
  value picked = axle::log_softmax(logits(w1, b1, w2, b2, x)) * axle::one_hot(labels, classes);
  return axle::pmean(-axle::reduce_mean(axle::reduce_sum(picked, -1)), "data");
}
std::array<value, 5> step(value w1, value b1, value w2, value b2, value x, value labels) {
  auto [error, by] = axle::value_and_grad(loss, axle::first(4), {w1, b1, w2, b2, x, labels});
  return {error, w1 - learning_rate * by[0], b1 - learning_rate * by[1], w2 - learning_rate * by[2], b2 - learning_rate * by[3]};
}
value accuracy(value w1, value b1, value w2, value b2, value x, value labels) { /* how many of the rows are told, 0 to 1 */
  value right = axle::argmax(logits(w1, b1, w2, b2, x), -1) == labels;
  return axle::reduce_mean(axle::convert_element_type(right, axle::f32));
}

struct table { /* rows of the data */
  std::vector<float> x;
  std::vector<std::int32_t> labels;
  void add(const double *row) { /* 64 pixels from 0 to 16, then the label */
    for (int k = 0; k < pixels; k++) x.push_back(static_cast<float>(row[k] / 16));
    labels.push_back(static_cast<std::int32_t>(row[pixels]));
  }
};

class training { /* a model on a mesh */
  axle::runtime runtime = axle::runtime::create();
  axle::mesh mesh;
  axle::executable learner, judge;
  axle::tree batch, test, number;
  axle::tree tree(const char *leaves) { return axle::tree::create(runtime, mesh, axle::treedef::parse(leaves)); }

  template <class F> /* on the weights and the rows, each split over the mesh as its tree says */
  axle::executable compile(F function, const axle::tree &rows, const std::string &results, const axle::args &donate) {
    auto in = axle::treedef::join({{"", weights.def()}, {"", rows.def()}});
    auto whole = [&](const std::vector<value> &leaves) { return axle::shard_map(mesh, in.specs() + " -> " + results, function, leaves); };
    return runtime.jit(whole, in.types(), {donate});
  }

 public:
  axle::tree weights;

  explicit training(const char *devices) : mesh(axle::mesh::parse(devices)) {
    weights = tree("w1: f32[64,512] @ _,model; b1: f32[512] @ model; w2: f32[512,10] @ model; b2: f32[10]");
    weights.init("w*: he_normal; b*: zeros", 7);
    batch = tree("x: f32[256,64] @ data; labels: s32[256] @ data");
    test = tree("x: f32[360,64]; labels: s32[360]");
    number = tree("number: f32[]");
    learner = compile(step, batch, "; " + weights.def().specs(), axle::first(4));
    judge = compile(accuracy, test, "", {});
  }
  double learn(const table &rows) { /* gives the loss */
    batch.put("x", axle::view(rows.x, {batch_rows, pixels}));
    batch.put("labels", rows.labels);
    axle::tree_run(learner, {&weights, &batch}, {&number, &weights});
    return double{number.at("number").item<float>()};
  }
  double percent(const table &rows) { /* gives the accuracy */
    test.put("x", axle::view(rows.x, {held_out, pixels}));
    test.put("labels", rows.labels);
    axle::tree_run(judge, {&weights, &test}, {&number});
    return 100 * double{number.at("number").item<float>()};
  }
};

double apart(const training &a, const training &b) { /* the largest difference of weights, relative to the largest of its leaf */
  float most = 0;
  for (const char *name : {"w1", "b1", "w2", "b2"}) {
    std::vector<float> read_a = a.weights.at(name).read<float>(), read_b = b.weights.at(name).read<float>();
    std::valarray<float> ours(read_a.data(), read_a.size()), theirs(read_b.data(), read_b.size());
    most = std::max(most, std::abs(ours - theirs).max() / std::abs(theirs).max());
  }
  return double{most};
}

int main(int argc, char **argv) try {
  axle::host_array csv = axle::csv_read(argc > 1 ? argv[1] : "data/digits.csv.gz");
  std::linear_congruential_engine<std::uint64_t, 6364136223846793005u, 1442695040888963407u, 0> random(1);
  std::vector<const double *> rows; /* shuffled, so that those held out are like the others */
  for (std::int64_t i = 0; i < csv.dim(0); i++) {
    rows.push_back(csv.data<double>() + i * csv.dim(1));
    std::swap(rows[i], rows[(random() >> 33) % (i + 1)]);
  }
  table test;
  for (std::size_t i = rows.size() - held_out; i < rows.size(); i++) test.add(rows[i]);
  training mesh("data=4,model=2"), one("data=1,model=1");
  double difference = 0;
  for (int i = 1; i <= steps; i++) {
    table batch;
    for (int k = 0; k < batch_rows; k++) batch.add(rows[(random() >> 33) % (rows.size() - held_out)]);
    mesh.weights.copy_to(one.weights);
    double error = mesh.learn(batch), alone = one.learn(batch);
    difference = std::max({difference, std::fabs(error - alone) / alone, apart(mesh, one)});
    if (i % 100 == 0) std::printf("step %3d  loss %.4f  accuracy %.2f %%\n", i, error, mesh.percent(test));
  }
  std::printf("no step differs from one device's by more than %.1e (relative)\n", difference);
  return mesh.percent(test) >= 97 && difference <= 1e-5 ? 0 : 1;
} catch (const std::exception &failed) {
  std::fprintf(stderr, "digits: %s\n", failed.what());
  return 1;
}
