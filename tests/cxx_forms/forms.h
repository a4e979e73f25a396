/* Functions as a public header may come to declare them, in each form that cmake/cxx.awk knows: tests/cxx_functions_test.sh. */
#ifndef FORMS_H
#define FORMS_H

#include "axle/axle.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ax_forms_options {
  int64_t depth;
} ax_forms_options;

ax_value ax_forms_one(ax_value x);
ax_value ax_forms_two(ax_value x, ax_value y); /* y may be a number */
ax_value ax_forms_none(void);
ax_value ax_forms_dims(ax_value x, uint32_t rank, const int64_t *dims);
ax_value ax_forms_dims_twice(ax_value x, uint32_t count, const int64_t *dimensions, uint32_t rank, const int64_t *dims, bool tiled);
ax_value ax_forms_values(uint32_t count, const ax_value *xs, int64_t dimension);
ax_value ax_forms_pairs(ax_value x, const char *axes, uint32_t count, const int64_t (*pairs)[2]);
ax_value ax_forms_shared(ax_value x, uint32_t count, const int64_t *lows,
                         const int64_t *highs); /* two lists of one length, as C has them */
ax_value ax_forms_options_last(ax_value x, const char *axes,
                               const ax_forms_options *options);
ax_value ax_forms_mesh(ax_value x, const ax_mesh *mesh, ax_dtype dtype);
void ax_forms_nothing(void);
void ax_forms_effect(ax_value ref, ax_value value, const ax_target_core *to);
int64_t ax_forms_count(const ax_program *program, uint32_t index);
const char *ax_forms_name(ax_dtype dtype);
bool ax_forms_same(const ax_type *a, const ax_type *b);
double ax_forms_first(const ax_host_array *array);
AX_MUST_USE ax_status ax_forms_text(const ax_executable *executable, char **out);
AX_MUST_USE ax_status ax_forms_handle(ax_runtime *runtime, ax_program *program, const ax_compile_options *options,
                                      ax_executable **out);
AX_MUST_USE ax_status ax_forms_struct(const char *text, ax_target *out);
AX_MUST_USE ax_status ax_forms_mesh_out(const char *text, ax_mesh *out);
AX_MUST_USE ax_status ax_forms_array(const char *path, ax_host_array *out);
AX_MUST_USE ax_status ax_forms_check(const ax_tree *tree);
ax_value ax_forms_raw(ax_value x, ax_fn body, void *context, int64_t (*function)(int64_t, void *));
ax_value ax_delete(ax_value type, ax_value text); /* a word of C++ */
ax_value ax_forms_printed(const char *format, ...); /* by hand alone */

#ifndef AXLE_NO_LINES /* axle/line.h */
#define ax_forms_one(...) AX_LINED(forms_one, __VA_ARGS__)
#define ax_forms_two(x, y) AX_LINED(forms_two, x, AX_X(y))
#define ax_forms_none() ax_lined_value((ax_forms_none)(), AX_CALL("forms_none"))
#define ax_forms_nothing() ((ax_forms_nothing)(), ax_stamp(AX_CALL("forms_nothing")))
#define ax_forms_effect(ref, value, ...) \
  AX_LINED_VOID(forms_effect, ref, AX_X(value), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
