/* Programs: tracing C functions into them, printing, parsing, verifying. */
#ifndef AXLE_PROGRAM_H
#define AXLE_PROGRAM_H

#include "axle/type.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* all else is hidden in the library */

/* Programs hold programs (the body of a scan, ..) up to this many inside one another; deeper nesting is refused where it would be
   made, so that every printed program can be read back. */
enum { AX_MAX_NESTING = 256 };

/* An immutable list of equations over typed values. Reference-counted; retain and release from any thread. */
typedef struct ax_program ax_program;

/* A value of the trace in progress on this thread. A plain handle: copy it freely. A handle whose step failed, or that belongs
   to a finished or foreign trace, is poison: steps on it do nothing but keep the trace's first error. */
typedef struct ax_value {
  uint64_t trace;
  uint32_t id;
} ax_value;

/* A function to trace. Reads `in`, fills `out` (all entries start as poison). `context` is passed through. It may use values
   of an enclosing trace: they become extra operands of the operation that this trace is for. It may be called more than once.
   It sets each of the results it was asked for, out[0 .. out_count), and no other: one that is not set, or out[out_count ..
   out_count + 64) set, is an error ("scan: body: out[2] was set, but there are 2 results"), and so is using in[in_count .. in_count
   + 64). Beyond these entries the behaviour is undefined.
   Equations stand in the order of the calls. C leaves open which argument of a call is evaluated first, so in ax_sub(ax_exp(x),
   ax_mul(x, y)) the compiler may make the product first or last. The last digits of results can differ with that. To fix the order,
   give the product a name, in a statement before.
   It should return. If it leaves by longjmp or a C++ exception, its trace is abandoned. If that is caught outside all traces, the
   thread is as before, and the memory of the abandoned trace is freed when the thread begins the next one. If it is caught by a
   function that is being traced itself, the trace of that function fails once it uses a value made after catching. Memory of the
   call that was left (ax_switch's, ..) may leak. A function must not begin a trace on another stack than its own (a fiber's). */
typedef void (*ax_function)(const ax_value *in, ax_value *out, void *context);

/* The head of such a function, whose parameters are called in, out and context, and need not be used:
     static AX_BODY(center) { out[0] = ax_sub(in[0], ax_pmean(in[0], "data")); } */
#define AX_BODY(name) void name(AX_UNUSED const ax_value *in, AX_UNUSED ax_value *out, AX_UNUSED void *context)

/* The same of a function whose context is of that type, and is called `variable` in it. `static` stands in front:
     static AX_BODY_OF(scale, const double, factor) { out[0] = ax_mul(in[0], ax_real(*factor)); }
     ax_vmap(AX_CLOSURE(scale, 1, 1, &rate), ..) */
#define AX_BODY_OF(name, type, variable)                                                                                     \
  void name##_of(AX_UNUSED const ax_value *in, AX_UNUSED ax_value *out, AX_UNUSED type *variable);                           \
  static void name(const ax_value *in, ax_value *out, void *context) { name##_of(in, out, (type *)context); }                \
  static void name##_of(AX_UNUSED const ax_value *in, AX_UNUSED ax_value *out, AX_UNUSED type *variable)

/* A function with its counts and its context, as all calls that take a function expect it. Arrays of operands have
   function.in_count entries, arrays of results function.out_count. A plain value; it owns nothing. */
typedef struct ax_fn {
  ax_function function;
  uint32_t in_count, out_count;
  void *context;
} ax_fn;
#ifdef __cplusplus
#define AX_FN(function_, in_count_, out_count_) \
  (ax_fn{(function_), static_cast<uint32_t>(in_count_), static_cast<uint32_t>(out_count_), NULL})
#define AX_CLOSURE(function_, in_count_, out_count_, ...)                                 \
  (ax_fn{(function_), static_cast<uint32_t>(in_count_), static_cast<uint32_t>(out_count_), \
         const_cast<void *>(static_cast<const void *>(__VA_ARGS__))})
#else
#define AX_FN(function_, in_count_, out_count_) \
  ((ax_fn){.function = (function_), .in_count = (in_count_), .out_count = (out_count_), .context = NULL})
#define AX_CLOSURE(function_, in_count_, out_count_, ...) \
  ((ax_fn){.function = (function_), .in_count = (in_count_), .out_count = (out_count_), \
           .context = (void *)(uintptr_t)(const void *)(__VA_ARGS__)}) /* data may be const */
#endif

/* A set of operands, inputs or arguments by number: those that derivatives are taken by, those that are donated, .. A plain value
   that borrows `list`: `count` numbers, ascending; or, where list is NULL, all from `first` on, `count` of them. {0} is the empty
   set. */
typedef struct ax_args {
  const uint32_t *list;
  uint32_t first, count;
} ax_args;
#ifdef __cplusplus
#define AX_RANGE(first_, count_) (ax_args{NULL, static_cast<uint32_t>(first_), static_cast<uint32_t>(count_)})
#else
#define AX_ARGS(...) \
  ((ax_args){.list = (const uint32_t[]){__VA_ARGS__}, \
             .count = (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))})
#define AX_RANGE(first_, count_) ((ax_args){.first = (first_), .count = (count_)})
#endif
#define AX_FIRST(count_) AX_RANGE(0, count_)
#define AX_ALL_ARGS AX_RANGE(0, UINT32_MAX) /* all there are; for derivatives, all that are floats */

/* Values as a count and a list: AX_VALUES(a, b) is `2, (ax_value[]){a, b}`. */
#ifndef __cplusplus
#define AX_VALUES(...) (uint32_t)(sizeof((ax_value[]){{0}, __VA_ARGS__}) / sizeof(ax_value) - 1), ((ax_value[]){{0}, __VA_ARGS__} + 1)
#define AX_FNS(...) (uint32_t)(sizeof((ax_fn[]){__VA_ARGS__}) / sizeof(ax_fn)), ((ax_fn[]){__VA_ARGS__}) /* branches of ax_switch */
#endif
typedef struct ax_value_list { /* in structs of options: {AX_VALUES(a, b)} */
  uint32_t count;
  const ax_value *v;
} ax_value_list;

/* A number as a handle: it belongs to no trace and has no dtype, and becomes a scalar of the dtype of the other operand where it
   meets one. A number that the dtype cannot hold exactly is an error for integers and bool; floats round. Functions whose operands
   may be numbers say so, and their macros make them: ax_mul(x, 2), ax_sub(1, x). */
ax_value ax_real(double number);
ax_value ax_integer(int64_t number);
ax_value ax_unsigned(uint64_t number);

/* Traces `function` on values of types `in_types`, one for each of its inputs (axle/type.h has the forms of lists), into a program;
   `*out` is owned by the caller, NULL on failure. AX_INVALID_ARGUMENT: another number of types; an unsound type; the first bad
   step, with its shapes, dtypes and axis names. AX_ABSENT: a step needs a rule that its primitive lacks. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_trace(ax_fn function, uint32_t in_count, const ax_type *in_types, ax_program **out);
/* The same inside an axis environment: collectives over the axes of `axes` are allowed (a per-device program).
   AX_INVALID_ARGUMENT: also an unsound mesh. */
AX_MUST_USE ax_status ax_trace_on(const ax_mesh *axes, ax_fn function, uint32_t in_count, const ax_type *in_types,
                                  ax_program **out);

ax_program *ax_program_retain(ax_program *program);
void ax_program_release(ax_program *program);

uint32_t ax_program_in_count(const ax_program *program);
uint32_t ax_program_out_count(const ax_program *program);
/* Borrowed; NULL when the index is out of range. */
const ax_type *ax_program_in_type(const ax_program *program, uint32_t index);
const ax_type *ax_program_out_type(const ax_program *program, uint32_t index);
/* The axes this program may name; borrowed. */
const ax_mesh *ax_program_axes(const ax_program *program);

/* The communication of a program, nested programs included. axes: the axes that its collectives name (axis_index and pvary count as
   such), as bits of ax_program_axes, without those that a shard_map or a vmap in it binds. single_sided: whether it has psend or
   precv, which may stand in a conditional whose predicate varies. A plain value. */
typedef struct ax_effects {
  ax_axis_set axes;
  bool single_sided;
} ax_effects;
ax_effects ax_program_effects(const ax_program *program); /* none for NULL */

/* Seconds that tracing it took; 0 for a program that was read from text or made from another. Any thread. */
double ax_program_seconds(const ax_program *program);

/* Prints as text that ax_program_parse reads back to an equal program. `*out` is owned by the caller: ax_string_free. */
AX_MUST_USE ax_status ax_program_print(const ax_program *program, char **out);
/* The same, with the location of the C call that each equation comes from, where it is known: `... @"prog.c:12"`. */
AX_MUST_USE ax_status ax_program_print_locations(const ax_program *program, char **out);
/* As ax_program_print, with each value's layout in its type: b:f32[8@data,16]. If the only reader of a value is a constraint, the
   value's type shows it in place of an equation. The text is for reading; ax_program_parse does not take it. */
AX_MUST_USE ax_status ax_program_print_shardings(const ax_program *program, char **out);
void ax_string_free(char *text);
/* `source` names the text in messages. AX_PARSE_ERROR: with source, line, column and a caret. */
AX_MUST_USE ax_status ax_program_parse(const char *text, size_t bytes, const char *source, ax_program **out);
/* Checks every equation's types again. AX_INTERNAL: the first equation whose types are wrong; no program that Axle made has one. */
AX_MUST_USE ax_status ax_program_verify(const ax_program *program);
/* Same structure, parameters and types; scalar constants count as part of the equations that use them. */
bool ax_program_equal(const ax_program *a, const ax_program *b);

/* Inside a trace: fails it, as a bad step does: AX_INVALID_ARGUMENT with this text, which is copied. For functions of your own that
   check shapes or find other errors. Only a trace's first error is kept. */
void ax_trace_fail(const char *message);
/* Inside a trace: the type of a value (AX_NO_DTYPE for poison). */
ax_type ax_typeof(ax_value value);
/* Inside a trace: runs `program` here, its equations copied into the trace. Operands that vary over fewer axes than an input are
   made to agree. Errors (kept by the trace): counts, shapes or dtypes that do not match; a program over axes that are not in
   scope. */
void ax_call(const ax_program *program, uint32_t in_count, const ax_value *in, uint32_t out_count, ax_value *out);

#pragma GCC visibility pop

#ifndef __cplusplus /* lists, with their counts (axle/type.h) */
#define ax_trace(function, in_types, out) AX_LINED_STATUS(trace, function, AX_COUNTED(ax_type, in_types), out)
#define ax_trace_on(axes, function, in_types, out) AX_LINED_STATUS(trace_on, axes, function, AX_COUNTED(ax_type, in_types), out)
#define ax_call(program, in, out) AX_LINED_VOID(call, program, AX_COUNTED(ax_value, in), AX_COUNTED(ax_value, out))
#endif

#ifndef AXLE_NO_LINES /* axle/line.h */
static inline ax_value ax_itself(ax_value value) { return value; }
static inline ax_value ax_lined_value(ax_value value, const char *call) {
  ax_stamp(call);
  return value;
}
#define ax_program_print(...) AX_LINED_STATUS(program_print, __VA_ARGS__)
#define ax_program_print_locations(...) AX_LINED_STATUS(program_print_locations, __VA_ARGS__)
#define ax_program_print_shardings(...) AX_LINED_STATUS(program_print_shardings, __VA_ARGS__)
#define ax_program_parse(...) AX_LINED_STATUS(program_parse, __VA_ARGS__)
#define ax_program_verify(...) AX_LINED_STATUS(program_verify, __VA_ARGS__)
#define ax_trace_fail(...) AX_LINED_VOID(trace_fail, __VA_ARGS__)
#define ax_typeof(...) AX_LINED_ANY(typeof, __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
