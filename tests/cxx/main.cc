/* The tests of axle.hpp: operations, functions and exceptions, handles, and the same without exceptions, all in one program. */
#include "check.hpp"

int failed_checks;

int main() {
  axle::set_allocator(nullptr);
  values_test();
  functions_test();
  functions_made_test();
  kernels_test();
  macros_test();
  bodies_test();
  handles_test();
  statuses_test();
  if (failed_checks > 0) std::fprintf(stderr, "%d checks failed\n", failed_checks);
  return failed_checks > 0;
}
