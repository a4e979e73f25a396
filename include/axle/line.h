/* The location of a call: the public functions that can fail are macros over themselves. The macros attach the call's C file and
   line to the equations that it makes and to its error message.

     ax_matmul(x, w)      ->   "prog.c:12: matmul f32[2,3] f32[4,5]: ..."

   A bare name is the function itself, so that a pointer to it can be taken. A file compiled with AXLE_NO_LINES has no macros. C
   only:
   in C++ axle/axle.hpp does the same. Each header says at its end which of its functions are such macros. */
#ifndef AXLE_LINE_H
#define AXLE_LINE_H

#include <stdint.h>

#include "axle/status.h"

#if defined(__cplusplus) && !defined(AXLE_NO_LINES)
#define AXLE_NO_LINES
#endif

#ifndef AXLE_NO_LINES
#define AX_TEXT_OF_(x) #x
#define AX_TEXT_OF(x) AX_TEXT_OF_(x)
#define AX_CALL(name) __FILE__ ":" AX_TEXT_OF(__LINE__) ": " name
/* Four forms: for functions that return a value (axle/inside/operand.h), a status, nothing, or anything else. The name becomes a
   string here, before a user's macro of the same name (iso646.h has `and`) can replace it. */
#define AX_LINED_STATUS(name, ...) ax_lined_status((ax_##name)(__VA_ARGS__), AX_CALL(#name))
#define AX_LINED_VOID(name, ...) ((ax_##name)(__VA_ARGS__), ax_stamp(AX_CALL(#name)))
#define AX_LINED_ANY(name, ...) AX_LINED_ANY_(ax_##name, AX_CALL(#name), AX_JOIN(ax_given_, __COUNTER__), __VA_ARGS__)
#define AX_LINED_ANY_(function, call, given, ...) \
  __extension__({ __auto_type given = (function)(__VA_ARGS__); ax_stamp(call); given; })
/* Makes a fresh name for each use, so that a call inside a call's arguments shadows nothing. */
#define AX_JOIN_(a, b) a##b
#define AX_JOIN(a, b) AX_JOIN_(a, b)
#include "axle/inside/operand.h"
#else /* macros that count lists (axle/type.h) remain */
#define AX_CALL(name) name
#define AX_LINED(name, ...) (ax_##name)(__VA_ARGS__)
#define AX_LINED_STATUS(name, ...) (ax_##name)(__VA_ARGS__)
#define AX_LINED_VOID(name, ...) (ax_##name)(__VA_ARGS__)
#define AX_LINED_ANY(name, ...) (ax_##name)(__VA_ARGS__)
#define AX_X(x) (x)
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Called by the macros. `call` is "file:line: function", read only during the call. ax_stamp gives this location to the equations
   of the trace in progress that have none yet, and to its error. ax_blame puts this location before this thread's error message. */
void ax_stamp(const char *call);
void ax_blame(ax_status status, const char *call);

#pragma GCC visibility pop

static inline AX_MUST_USE ax_status ax_lined_status(ax_status status, const char *call) {
  if (status != AX_OK) ax_blame(status, call);
  return status;
}

#ifdef __cplusplus
}
#endif
#endif
