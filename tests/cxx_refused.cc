// What does not compile: cxx_refused_test.sh looks for these messages, each as often as it says.
//   2 axle: the function takes another number of values than there are operands
//   1 axle: a function that is traced gives an axle::value, or a std::tuple, std::pair or std::array of them
//   1 axle: how many values a std::vector will have must be known before: axle::returning(count, f)
//   1 axle: both functions of an if_ give results of the same types
//   1 axle: all branches of a switch_ give results of the same types
#include <axle/axle.hpp>

using axle::value;

void too_few_operands(value x) {
  axle::grad([](value a, value b) { return a * b; }, {x});
}
void too_many_types() {
  axle::trace([](value x) { return x; }, {axle::array_type(axle::f32), axle::array_type(axle::f32)});
}
void no_value(value x) {
  axle::closed_call([](value) { return 2.0; }, {x});
}
void uncounted_vector(value x) {
  axle::closed_call([](value y) { return std::vector<value>{y, y}; }, {x});
}
void unlike_functions(value x) {
  axle::if_(x > 0, [&] { return x; }, [&] { return std::pair(x, x); });
}
void unlike_branches(value x) {
  axle::switch_(x, std::tuple([&] { return x; }, [&] { return std::pair(x, x); }));
}
