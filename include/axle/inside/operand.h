/* Calls that give a value, and their operands, for the macros of axle/ops.h and others. */
#ifndef AXLE_INSIDE_OPERAND_H
#define AXLE_INSIDE_OPERAND_H
#pragma GCC system_header /* errors in its macros are shown at the line that uses them */

#define AX_LINED(name, ...) ax_lined_value((ax_##name)(__VA_ARGS__), AX_CALL(#name))

/* An operand that may be a C number: a value stays as it is, a number becomes a handle. The argument is evaluated once. Anything
   else, such as a pointer or a string, does not compile. */
#define AX_X(x) AX_X_(x, AX_JOIN(ax_operand_, __COUNTER__))
#define AX_X_(x, name)                                                                                                      \
  __extension__({                                                                                                           \
    __auto_type name = (x);                                                                                                 \
    _Static_assert(_Generic(name, AX_OPERAND(1, 1, 1, 1), default: 0),                                                      \
                   "an operand is an ax_value or a number of C, and this argument is neither");                             \
    _Generic(name, AX_OPERAND(ax_itself, ax_real, ax_integer, ax_unsigned), default: (ax_value(*)(__typeof__(name)))0)(name); \
  })
#define AX_OPERAND(value, real, integer, natural)                                                                           \
  ax_value: value, float: real, double: real, long double: real, _Bool: integer, char: integer, signed char: integer,       \
      unsigned char: integer, short: integer, unsigned short: integer, int: integer, unsigned: integer, long: integer,      \
      long long: integer, unsigned long: natural, unsigned long long: natural

#endif
