/* Host arrays: put on devices, read back, and handed to a run whole. */
#include "axle/host.h"

#include <math.h>

#include "array/call.h"
#include "array/executable.h"
#include "array/joint.h"
#include "axle/processes.h"
#include "ir/number.h"

static ax_type type_of(const ax_host_array *host) { return ax_array_type(host->dtype, AX_LIST(host->rank, host->dims)); }

ax_host_array (ax_host_view)(ax_dtype dtype, uint32_t rank, const int64_t *dims, ax_dtype element, const void *data, size_t bytes) {
  ax_host_array host = {.dtype = dtype, .rank = rank, .data = (void *)data, .view = true};
  host.refused = (ax_refused_view){"host_view", dtype, element, bytes};
  if (rank != AX_ANY_ROOM) host.rank = rank = ax_list_entries(rank, AX_ROOM(0));
  for (uint32_t d = 0; rank != AX_ANY_ROOM && d < rank && d < AX_MAX_RANK; d++) host.dims[d] = dims[d];
  if (ax_view_check(&host) != AX_OK) host.dtype = AX_NO_DTYPE;
  else host.refused = (ax_refused_view){0};
  return host;
}

double ax_host_at(const ax_host_array *array, int64_t index) {
  if (array == NULL || array->data == NULL || ax_dtype_bytes(array->dtype) == 0 || ax_is_key(array->dtype)) return NAN;
  const ax_type type = type_of(array);
  if (type.dtype == AX_NO_DTYPE || index < 0 || index >= ax_type_elems(&type)) return NAN;
  return ax_number_convert(array->dtype, AX_F64, ax_number_load(array->dtype, array->data, index)).f;
}

void ax_host_array_release(ax_host_array *array) {
  if (array == NULL) return;
  if (!array->view) ax_free(array->data);
  *array = (ax_host_array){0};
}

ax_status ax_device_put(ax_runtime *runtime, const ax_mesh *mesh, const char *spec, const ax_host_array *host, ax_array **out) {
  ax_layout *layout;
  *out = NULL;
  AX_TRY(ax_require(host, "host array"));
  ax_status status = ax_view_check(host);
  if (status != AX_OK) return ax_error_context(status, "device_put: ");
  ax_type type = type_of(host);
  AX_TRY(ax_layout_describe("device_put", runtime, mesh, spec, &type, &layout));
  status = ax_array_of_data(runtime, layout, host->data, out);
  ax_layout_release(layout);
  return status;
}

ax_status ax_array_to_host(const ax_array *array, ax_host_array *out) {
  *out = (ax_host_array){0};
  AX_TRY(ax_require(array, "array"));
  const ax_type *type = &array->layout->type;
  size_t bytes = array->layout->block_bytes * array->layout->blocks;
  void *data = ax_alloc(bytes);
  if (data == NULL) return ax_out_of_memory(bytes);
  ax_status status = ax_array_read(array, data, bytes);
  if (status != AX_OK) {
    ax_free(data);
    return status;
  }
  *out = (ax_host_view)(type->dtype, type->rank, type->dims, AX_NO_DTYPE, data, bytes);
  out->view = false;
  return AX_OK;
}

/* --- Runs --- */

static ax_status check_views(const char *who, uint32_t count, const ax_host_array *in) {
  for (uint32_t i = 0; in != NULL && i < count; i++) {
    ax_status status = ax_view_check(&in[i]);
    if (status != AX_OK) return ax_error_context(status, "%s: argument %u: ", who, i);
  }
  return AX_OK;
}

static ax_status check_hosts(const ax_executable *e, const ax_host_array *in) {
  ax_mismatches wrong = {0};
  for (uint32_t i = 0; i < e->signature.in_count; i++) {
    const ax_type *want = ax_program_in_type(e->program, i);
    ax_type got = in != NULL ? type_of(&in[i]) : (ax_type){0};
    bool empty = in != NULL && in[i].data == NULL && e->wanted[i]->block_bytes > 0;
    if (in != NULL && got.dtype == want->dtype && ax_same_shape(&got, want) && !empty) continue;
    ax_mismatch(&wrong, e, i, want, got.dtype != AX_NO_DTYPE ? &got : NULL,
                got.dtype != AX_NO_DTYPE && empty ? " without data" : "");
  }
  return ax_mismatches_report(&wrong, "run_host", e->signature.in_count);
}

/* Puts the arguments. An unused input gets an array without parts, which no run reads. */
static ax_status put_all(const ax_executable *e, const ax_host_array *in, ax_array **arrays) {
  for (uint32_t i = 0; i < e->signature.in_count; i++) {
    if (ax_signature_uses(&e->signature, i)) AX_TRY(ax_array_of_data(e->runtime, e->wanted[i], in[i].data, &arrays[i]));
    else AX_TRY(ax_array_create(e->wanted[i], NULL, &arrays[i]));
  }
  return AX_OK;
}

/* All processes make the run, so all can gather its results. */
static ax_status read_all(ax_array *const *arrays, uint32_t count, ax_host_array *out) {
  for (uint32_t k = 0; k < count; k++) AX_TRY(ax_array_gather(arrays[k], AX_EVERY_PROCESS, &out[k]));
  return AX_OK;
}

/* What is wrong in one process alone is wrong in all: they make the run, and would take this process's next one for it. *arrays: room
   for the arguments, then the results, which the caller frees. */
static ax_status run(ax_executable *e, uint32_t in_count, const ax_host_array *in, uint32_t out_count, ax_array ***arrays) {
  AX_TRY(ax_call_check_counts(e, "run_host", in_count, out_count));
  in_count = e->signature.in_count;
  out_count = e->signature.out_count;
  AX_TRY(check_views("run_host", in_count, in));
  AX_TRY(check_hosts(e, in));
  const size_t count = (size_t)in_count + out_count;
  *arrays = ax_calloc(count, sizeof arrays[0][0]);
  if (*arrays == NULL) return ax_out_of_memory(count * sizeof arrays[0][0]);
  AX_TRY(put_all(e, in, *arrays));
  return (ax_run)(e, in_count, *arrays, out_count, *arrays + in_count);
}

static ax_status run_together(ax_executable *e, uint32_t in_count, const ax_host_array *in, uint32_t out_count, ax_array ***arrays) {
  ax_joint joint;
  const ax_doing doing = ax_call_doing(e);
  ax_joint_begin(&joint, e->runtime, e->compiled.map != NULL, &doing);
  return ax_joint_end_run(&joint, run(e, in_count, in, out_count, arrays));
}

static void clear(uint32_t count, uint32_t needed, ax_host_array *out) {
  for (uint32_t k = 0; k < ax_list_entries(count, needed); k++) out[k] = (ax_host_array){0};
}

ax_status (ax_run_host)(ax_executable *e, uint32_t in_count, const ax_host_array *in, uint32_t out_count, ax_host_array *out) {
  clear(out_count, e != NULL ? e->signature.out_count : 0, out);
  AX_TRY(ax_require(e, "executable"));
  ax_array **arrays = NULL;
  const uint32_t takes = e->signature.in_count, gives = e->signature.out_count;
  ax_executable_retain(e); /* a callback may release it */
  ax_status status = run_together(e, in_count, in, out_count, &arrays);
  if (status == AX_OK) status = read_all(arrays + takes, gives, out);
  for (size_t i = 0; arrays != NULL && i < (size_t)takes + gives; i++) ax_array_release(arrays[i]);
  for (uint32_t k = 0; arrays != NULL && k < gives && status != AX_OK; k++) ax_host_array_release(&out[k]);
  ax_free(arrays);
  ax_executable_release(e);
  return status;
}

ax_status (ax_jit_host)(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_host_array *in,
                        const ax_compile_options *options, ax_executable **out) {
  *out = NULL;
  AX_TRY(ax_list_check("jit_host", "the function takes", "input", in_count, function.in_count));
  if (function.in_count > 0) AX_TRY(ax_require(in, "host array"));
  AX_TRY(check_views("jit_host", function.in_count, in));
  ax_type *types = ax_calloc((size_t)function.in_count + 1, sizeof types[0]);
  if (types == NULL) return ax_out_of_memory(function.in_count * sizeof types[0]);
  for (uint32_t i = 0; i < function.in_count; i++) types[i] = type_of(&in[i]);
  ax_status status = ax_jit(runtime, function, types, options, out);
  ax_free(types);
  return status;
}

ax_status (ax_apply)(ax_runtime *runtime, ax_fn function, uint32_t in_count, const ax_host_array *in, uint32_t out_count,
                     ax_host_array *out) {
  ax_executable *executable = NULL;
  ax_runtime *own = NULL;
  clear(out_count, function.out_count, out);
  ax_status status = ax_list_check("apply", "the function takes", "operand", in_count, function.in_count);
  if (status == AX_OK) status = ax_list_check("apply", "the function gives", "result", out_count, function.out_count);
  if (status == AX_OK && runtime == NULL) status = ax_runtime_create(NULL, &own);
  if (status == AX_OK) status = check_views("apply", function.in_count, in);
  if (status == AX_OK) status = ax_jit_host(own != NULL ? own : runtime, function, in, NULL, &executable);
  if (status == AX_OK) status = ax_run_host(executable, in, out);
  ax_executable_release(executable);
  ax_runtime_release(own);
  return status;
}
