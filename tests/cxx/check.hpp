/* What the tests of axle.hpp check with: a failed check says where, and the program fails. */
#ifndef CHECK_HPP
#define CHECK_HPP

#include <axle/axle.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

extern int failed_checks;

inline bool check(bool holds, const char *what, axle::location at = axle::location::here()) {
  if (!holds) {
    failed_checks++;
    std::fprintf(stderr, "%s:%d: not so: %s\n", at.file, at.line, what);
  }
  return holds;
}
#define CHECK(...) check((__VA_ARGS__), #__VA_ARGS__)

/* That a text has a part. */
inline void check_has(const std::string &text, const std::string &part, axle::location at = axle::location::here()) {
  if (!check(text.find(part) != std::string::npos, part.c_str(), at)) std::fprintf(stderr, "  in: %s\n", text.c_str());
}

inline axle::type f32(const axle::dims &shape = {}) { return axle::array_type(axle::f32, shape); }
inline axle::type s32(const axle::dims &shape = {}) { return axle::array_type(axle::s32, shape); }

void values_test();
void functions_test();
void functions_made_test();
void kernels_test();
void macros_test();
void handles_test();
void bodies_test();
void statuses_test();

#endif
