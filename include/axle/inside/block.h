/* The parts of the macros of axle/bodies.h. */
#ifndef AXLE_INSIDE_BLOCK_H
#define AXLE_INSIDE_BLOCK_H

#include "axle/bodies.h"

#pragma GCC system_header /* errors in its macros are shown at the line that uses them; what it includes is no such header */

#define AX_BLOCK_JOIN_(a, b) a##b
#define AX_BLOCK_JOIN(a, b) AX_BLOCK_JOIN_(a, b)
#define AX_BLOCK_NAME AX_BLOCK_JOIN(ax_block_, __COUNTER__)
#define AX_BLOCK_TEXT_(x) #x
#define AX_BLOCK_TEXT(x) AX_BLOCK_TEXT_(x)
#define AX_BLOCK_AT(name, listed) __FILE__ ":" AX_BLOCK_TEXT(__LINE__) ": " name, listed, __builtin_frame_address(0)
/* The first argument of a list, and the others; a 0 is appended so that the list may have one argument. */
#define AX_BLOCK_FIRST_(first, ...) first
#define AX_BLOCK_FIRST(...) AX_BLOCK_FIRST_(__VA_ARGS__, 0)
#define AX_BLOCK_REST_(first, ...) __VA_ARGS__

#define AX_LOOP_(block, i, lower, listed, ...)                                                                                  \
  for (AX_BLOCK_BEGIN(block, ax_loop_block(AX_BLOCK_AT("AX_LOOP", listed), AX_BLOCK_LIST(__VA_ARGS__), AX_BLOCK_OPERAND(lower), \
                                           AX_BLOCK_OPERAND(AX_BLOCK_FIRST(__VA_ARGS__))));                                     \
       AX_BLOCK_CHECK(__VA_ARGS__), ax_block_next(&block);)                                                                     \
    for (const AX_BLOCK_VALUE(i, block.index); ax_block_enter(&block, &i);)
#define AX_SCAN_(block, x, name, reverse, listed, ...)                                               \
  for (AX_BLOCK_BEGIN(block, ax_scan_block(AX_BLOCK_AT(name, listed), AX_BLOCK_LIST(__VA_ARGS__),    \
                                           AX_BLOCK_OPERAND(AX_BLOCK_FIRST(__VA_ARGS__)), reverse)); \
       AX_BLOCK_CHECK(__VA_ARGS__), ax_block_next(&block);)                                          \
    for (const AX_BLOCK_VALUE(x, block.index); ax_block_enter(&block, &x);)
#define AX_WHILE_(block, listed, ...)                                                                      \
  for (AX_BLOCK_BEGIN(block, ax_while_block(AX_BLOCK_AT("AX_WHILE", listed), AX_BLOCK_LIST(__VA_ARGS__))); \
       AX_BLOCK_CHECK(__VA_ARGS__),                                                                        \
       ax_block_next(&block) && ax_block_test(&block, AX_BLOCK_CONDITION(AX_BLOCK_FIRST(__VA_ARGS__)));)
#define AX_IF_(block, listed, ...)                                                                 \
  for (AX_BLOCK_BEGIN(block, ax_if_block(AX_BLOCK_AT("AX_IF", listed), AX_BLOCK_LIST(__VA_ARGS__), \
                                         AX_BLOCK_CONDITION(AX_BLOCK_FIRST(__VA_ARGS__))));        \
       AX_BLOCK_CHECK(__VA_ARGS__), ax_block_next(&block);)                                        \
    if (block.then)

#ifndef __cplusplus
#define AX_BLOCK_BEGIN(block, ...) ax_code_block block __attribute__((cleanup(ax_block_left))) = __VA_ARGS__
/* The variables, and a NULL behind them. The types of the first eight are checked. */
#define AX_BLOCK_LIST(...) AX_BLOCK_LIST_(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
#define AX_BLOCK_LIST_(first, a, b, c, d, e, f, g, h, ...)                                                                    \
  (ax_value *const[]) {                                                                                                       \
    AX_BLOCK_HELD(a), AX_BLOCK_HELD(b), AX_BLOCK_HELD(c), AX_BLOCK_HELD(d), AX_BLOCK_HELD(e), AX_BLOCK_HELD(f),               \
        AX_BLOCK_HELD(g), AX_BLOCK_HELD(h), __VA_ARGS__                                                                       \
  }
#define AX_BLOCK_HELD(address) __builtin_choose_expr(AX_BLOCK_HAS(address), (address), NULL)
#define AX_BLOCK_HAS(address) _Generic((address), ax_value *: 1, void *: 1, default: 0)
/* The condition is a bare _Generic, since clang repeats any other in front of the sentence. */
#define AX_BLOCK_CHECK(...) AX_BLOCK_CHECK_(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
#define AX_BLOCK_CHECK_(first, a, b, c, d, e, f, g, h, ...)                                                                    \
  (void)sizeof(struct {                                                                                                       \
    _Static_assert(_Generic((char(*)[1 + (AX_BLOCK_HAS(a) && AX_BLOCK_HAS(b) && AX_BLOCK_HAS(c) && AX_BLOCK_HAS(d) &&         \
                                          AX_BLOCK_HAS(e) && AX_BLOCK_HAS(f) && AX_BLOCK_HAS(g) && AX_BLOCK_HAS(h))])0,       \
                            char(*)[2]: 1, default: 0),                                                                       \
                   "the head of a block ends with the addresses of the ax_value variables that it sets: &x, &y");             \
    int none;                                                                                                                 \
  })
#define AX_BLOCK_VALUE(name, handle) ax_value name = handle
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
#define AX_BLOCK_OPERAND(x) AX_X(x)
#define AX_BLOCK_CONDITION(x)                                                                                               \
  __extension__({                                                                                                          \
    __auto_type ax_block_condition = (x);                                                                                  \
    _Static_assert(_Generic(ax_block_condition, ax_value: 1, default: 0),                                                  \
                   "AX_WHILE and AX_IF take a condition of the trace, as ax_lt(x, 10); for one of C there are while and if"); \
    _Generic(ax_block_condition, ax_value: ax_block_condition, default: ax_integer(0));                                    \
  })
#elif !defined(__cplusplus)
#define AX_BLOCK_OPERAND(x) (x)
#define AX_BLOCK_CONDITION(x) (x)
#endif

#ifdef __cplusplus
#include <cstddef>
#include <type_traits>

/* Ends the block however its scope is left. */
struct ax_block_guard : ax_code_block {
  explicit ax_block_guard(const ax_code_block &block) : ax_code_block(block) {}
  ax_block_guard(const ax_block_guard &) = delete;
  ax_block_guard &operator=(const ax_block_guard &) = delete;
  ~ax_block_guard() { ax_block_left(this); }
};
template <std::size_t N>
struct ax_block_variables {
  ax_value *list[N];
  operator ax_value * const *() const { return list; }
};
inline ax_value *ax_block_variable(ax_value *variable) { return variable; }
inline ax_value *ax_block_variable(std::nullptr_t) { return nullptr; }
template <class... V>
ax_block_variables<sizeof...(V)> ax_block_list(V... variable) {
  return {{ax_block_variable(variable)...}};
}
inline ax_value ax_block_operand(ax_value operand) { return operand; }
template <class N, std::enable_if_t<std::is_arithmetic<N>::value, int> = 0>
ax_value ax_block_operand(N number) {
  if constexpr (std::is_floating_point<N>::value)
    return ax_real(static_cast<double>(number));
  else if constexpr (std::is_unsigned<N>::value && !std::is_same<N, bool>::value)
    return ax_unsigned(number);
  else
    return ax_integer(number);
}
#define AX_BLOCK_BEGIN(block, ...) ax_block_guard block(__VA_ARGS__)
#define AX_BLOCK_CHECK(...) (void)0 /* ax_block_list takes nothing else */
#define AX_BLOCK_LIST(...) ax_block_list(AX_BLOCK_REST_(__VA_ARGS__, nullptr))
#define AX_BLOCK_OPERAND(x) ax_block_operand(x)
#define AX_BLOCK_CONDITION(x) ax_block_operand(x)
#define AX_BLOCK_VALUE(name, handle) ax_value name = handle /* axle/axle.hpp: axle::value */
#endif

#endif
