/* Buffers: arrays on one device. A buffer that was deleted or given to a run has its type still, and no array. */
#include <inttypes.h>
#include <string.h>

#include "base/strided.h"
#include "machine/caches.h"
#include "pjrt/layouts.h"

/* --- Types --- */

static ax_pjrt_error *type_of(ax_pjrt_element element, const int64_t *dims, size_t rank, ax_type *out) {
  const ax_dtype dtype = ax_pjrt_dtype_of(element);
  if (dtype == AX_NO_DTYPE) return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "Axle has no arrays of PJRT's element type %d", (int)element);
  if (rank > AX_MAX_RANK) return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "%zu dimensions are more than Axle's %d", rank, AX_MAX_RANK);
  *out = (ax_type){.dtype = dtype, .rank = (uint32_t)rank};
  int64_t bytes = (int64_t)ax_dtype_bytes(dtype);
  for (size_t d = 0; d < rank; d++) {
    if (!ax_mul_i64(bytes, dims[d] > 0 ? dims[d] : 1, &bytes))
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "an array of more bytes than there are addresses");
    if (dims[d] < 0) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "dimension %zu is %" PRId64, d, dims[d]);
    out->dims[d] = dims[d];
  }
  return NULL;
}

static size_t bytes_of(const ax_type *type) { return (size_t)ax_type_elems(type) * ax_dtype_bytes(type->dtype); }

/* --- Objects --- */

static ax_pjrt_error *create(const ax_type *type, ax_pjrt_memory *memory, ax_pjrt_buffer **out) {
  ax_pjrt_buffer *buffer = *out = ax_calloc_plain(sizeof *buffer);
  if (buffer == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a buffer");
  buffer->client = memory->device->client;
  buffer->memory = memory;
  buffer->type = *type;
  pthread_mutex_init(&buffer->lock, NULL);
  atomic_fetch_add(&buffer->client->references, 1);
  return NULL;
}

ax_pjrt_error *ax_pjrt_buffer_of(ax_array *array, ax_pjrt_memory *memory, ax_pjrt_buffer **out) {
  ax_pjrt_error *error = create(ax_array_typeof(array), memory, out);
  if (error == NULL) (*out)->array = array;
  else ax_array_release(array);
  return error;
}

ax_pjrt_error *ax_pjrt_buffer_of_whole(ax_array *whole, bool is_there, const ax_type *type, ax_pjrt_memory *memory, ax_pjrt_buffer **out) {
  AX_PJRT_TRY(create(type, memory, out));
  (*out)->whole = ax_array_retain(whole);
  (*out)->is_there = is_there;
  return NULL;
}

static void release_array(void *array) { ax_array_release(array); }

ax_status ax_pjrt_array_as(ax_array *array, const ax_type *type, int device, ax_runtime *runtime, ax_array **out) {
  ax_part part = {.release = release_array, .context = array, .read_only = true};
  const void *data;
  ax_sharding *where;
  *out = NULL;
  AX_TRY(ax_array_part(array, 0, &data, &part.bytes, NULL));
  AX_TRY(ax_sharding_single(device, &where));
  part.data = (void *)(uintptr_t)data;
  ax_array_retain(array);
  const ax_status status = (ax_array_from_device_parts)(runtime, where, type, 1, &part, out);
  if (status != AX_OK) ax_array_release(array);
  ax_sharding_release(where);
  return status;
}

/* Somebody asks for what a run made, or whether it is there. */
static void note_waited(const ax_pjrt_buffer *buffer) {
  if (buffer->run > atomic_load(&buffer->client->waited)) atomic_store(&buffer->client->waited, buffer->run);
}

/* Where a buffer's elements are, good also when the buffer is gone. */
typedef struct source {
  ax_array *array; /* retained: the buffer's own, or the whole that it is a part of */
  bool is_own, is_there;
  int device;
  ax_type type;
  ax_runtime *runtime;
} source;

static ax_pjrt_error *source_of(ax_pjrt_buffer *buffer, source *out) {
  pthread_mutex_lock(&buffer->lock);
  *out = (source){.array = ax_array_retain(buffer->array != NULL ? buffer->array : buffer->whole), .is_own = buffer->array != NULL};
  pthread_mutex_unlock(&buffer->lock);
  out->is_there = buffer->is_there;
  out->device = buffer->memory->device->description.id;
  out->type = buffer->type;
  out->runtime = buffer->client->runtime;
  return out->array != NULL ? NULL : ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the buffer was deleted, or donated to a run");
}

/* The array that a device has of its own. Waits. */
static ax_status open_source(const source *s, ax_array **out) {
  ax_array *own = NULL;
  *out = NULL;
  if (s->is_own) {
    *out = ax_array_retain(s->array);
    return AX_OK;
  }
  if (s->is_there) {
    AX_TRY(ax_array_on_device(s->array, s->device, &own));
  } else {
    ax_sharding *where;
    AX_TRY(ax_sharding_single(s->device, &where));
    const ax_status status = ax_array_reshard(s->array, where, &own);
    ax_sharding_release(where);
    AX_TRY(status);
  }
  *out = own;
  if (ax_type_equal(ax_array_typeof(own), &s->type)) return AX_OK;
  const ax_status status = ax_pjrt_array_as(own, &s->type, s->device, s->runtime, out);
  ax_array_release(own);
  return status;
}

ax_pjrt_error *ax_pjrt_buffer_array(ax_pjrt_buffer *buffer, ax_array **out) {
  source s;
  *out = NULL;
  AX_PJRT_TRY(source_of(buffer, &s));
  const ax_status status = open_source(&s, out); /* no lock is held */
  ax_array_release(s.array);
  AX_PJRT_TRY(ax_pjrt_status(status));
  if (s.is_own) return NULL;
  pthread_mutex_lock(&buffer->lock);
  ax_array *first = ax_array_retain(buffer->array); /* another thread's */
  if (first == NULL && buffer->whole != NULL) buffer->array = ax_array_retain(*out);
  pthread_mutex_unlock(&buffer->lock);
  if (first == NULL) return NULL;
  ax_array_release(*out);
  *out = first;
  return NULL;
}

/* --- Moved to whole lines of the cache --- */

static bool may_move(const ax_pjrt_buffer *buffer) { return buffer->may_move && buffer->held == 0 && buffer->array != NULL; }

/* Counts an argument. It is worth it once: of threads that come together one copies, and without memory for a copy all stays. */
static bool is_worth_moving(ax_pjrt_buffer *buffer) {
  enum { enough = 8 };
  pthread_mutex_lock(&buffer->lock);
  const bool worth = may_move(buffer) && ++buffer->runs == enough;
  pthread_mutex_unlock(&buffer->lock);
  return worth;
}

/* Takes the array's place, unless somebody was told meanwhile where it lies; then later runs count again. */
static void move_to(ax_pjrt_buffer *buffer, ax_array **array, ax_array *copy) {
  pthread_mutex_lock(&buffer->lock);
  const bool moves = may_move(buffer) && buffer->array == *array;
  ax_array *rest = copy;
  if (moves) {
    rest = buffer->array;
    buffer->array = ax_array_retain(copy);
    buffer->may_move = false;
  } else {
    buffer->runs = 0;
  }
  pthread_mutex_unlock(&buffer->lock);
  if (moves) {
    ax_array_release(*array);
    *array = copy;
  }
  ax_array_release(rest);
}

/* Memory of NumPy's begins 16 bytes behind a line. Products of matrices and vectors, transposes, look-ups and scatters take up to 1.4 times
   as long there, others up to 1.1 times. A copy costs what some runs lose; to an array that few runs have it is not worth it. */
ax_pjrt_error *ax_pjrt_buffer_argument(ax_pjrt_buffer *buffer, ax_array **out) {
  ax_array *copy;
  ax_sharding *where;
  AX_PJRT_TRY(ax_pjrt_buffer_array(buffer, out));
  if (!is_worth_moving(buffer) || ax_array_sharding(*out, &where) != AX_OK) return NULL;
  if (ax_array_copy_to(*out, where, &copy) == AX_OK) move_to(buffer, out, copy); /* without memory for it, all stays */
  ax_sharding_release(where);
  return NULL;
}

ax_array *ax_pjrt_buffer_whole(ax_pjrt_buffer *buffer) {
  pthread_mutex_lock(&buffer->lock);
  ax_array *whole = ax_array_retain(buffer->whole);
  pthread_mutex_unlock(&buffer->lock);
  return whole;
}

bool ax_pjrt_buffer_is_held(ax_pjrt_buffer *buffer) {
  pthread_mutex_lock(&buffer->lock);
  const bool held = buffer->held > 0;
  pthread_mutex_unlock(&buffer->lock);
  return held;
}

/* --- Put together with those of other devices --- */

ax_pjrt_joined *ax_pjrt_joined_create(ax_array *whole) {
  ax_pjrt_joined *joined = ax_alloc_plain(sizeof *joined);
  if (joined == NULL) return NULL;
  atomic_init(&joined->references, 1);
  pthread_mutex_init(&joined->lock, NULL);
  joined->whole = ax_array_retain(whole);
  return joined;
}

void ax_pjrt_joined_release(ax_pjrt_joined *joined) {
  if (joined == NULL || atomic_fetch_sub(&joined->references, 1) > 1) return;
  ax_array_release(joined->whole);
  pthread_mutex_destroy(&joined->lock);
  ax_free(joined);
}

static ax_pjrt_joined *retain_joined(ax_pjrt_joined *joined) {
  if (joined != NULL) atomic_fetch_add_explicit(&joined->references, 1, memory_order_relaxed);
  return joined;
}

ax_array *ax_pjrt_joined_whole(ax_pjrt_joined *joined) {
  pthread_mutex_lock(&joined->lock);
  ax_array *whole = ax_array_retain(joined->whole);
  pthread_mutex_unlock(&joined->lock);
  return whole;
}

void ax_pjrt_joined_dissolve(ax_pjrt_joined *joined) {
  if (joined == NULL) return;
  pthread_mutex_lock(&joined->lock);
  ax_array *whole = joined->whole;
  joined->whole = NULL;
  pthread_mutex_unlock(&joined->lock);
  ax_array_release(whole);
}

bool ax_pjrt_buffer_join(ax_pjrt_buffer *buffer, ax_pjrt_joined *joined) {
  ax_pjrt_joined *before = NULL;
  pthread_mutex_lock(&buffer->lock);
  const bool joins = buffer->array != NULL && buffer->whole == NULL && !buffer->may_move;
  if (joins) {
    before = buffer->joined;
    buffer->joined = retain_joined(joined);
  }
  pthread_mutex_unlock(&buffer->lock);
  ax_pjrt_joined_dissolve(before); /* nobody will find it whole again */
  ax_pjrt_joined_release(before);
  return joins;
}

ax_pjrt_joined *ax_pjrt_buffer_joined(ax_pjrt_buffer *buffer) {
  pthread_mutex_lock(&buffer->lock);
  ax_pjrt_joined *joined = retain_joined(buffer->joined);
  pthread_mutex_unlock(&buffer->lock);
  return joined;
}

void ax_pjrt_buffer_forget(ax_pjrt_buffer *buffer) {
  pthread_mutex_lock(&buffer->lock);
  ax_array *array = buffer->array, *whole = buffer->whole;
  ax_pjrt_joined *joined = buffer->joined;
  buffer->array = buffer->whole = NULL;
  buffer->joined = NULL;
  if (buffer->held > 0 && buffer->kept == NULL) buffer->kept = array, array = NULL;
  pthread_mutex_unlock(&buffer->lock);
  ax_pjrt_joined_dissolve(joined);
  ax_pjrt_joined_release(joined);
  ax_array_release(array);
  ax_array_release(whole);
}

ax_pjrt_error *ax_pjrt_do_buffer_destroy(ax_pjrt_buffer_destroy_args *args) {
  ax_pjrt_buffer *buffer = args->of;
  if (buffer == NULL) return NULL;
  ax_pjrt_client *client = buffer->client;
  ax_pjrt_buffer_forget(buffer);
  ax_array_release(buffer->kept);
  pthread_mutex_destroy(&buffer->lock);
  ax_free(buffer);
  ax_pjrt_client_release(client);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_delete(ax_pjrt_buffer_delete_args *args) {
  ax_pjrt_buffer_forget(args->of);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_is_deleted(ax_pjrt_buffer_is_deleted_args *args) {
  pthread_mutex_lock(&args->of->lock);
  args->value = args->of->array == NULL && args->of->whole == NULL;
  pthread_mutex_unlock(&args->of->lock);
  return NULL;
}

/* --- From the host --- */

/* The memory and the device that the caller names: one of them is enough. */
static ax_pjrt_error *place_of(const ax_pjrt_client *client, ax_pjrt_device *device, ax_pjrt_memory *memory, ax_pjrt_memory **out) {
  *out = memory != NULL ? memory : device != NULL ? &device->memory[0] : NULL;
  if (*out == NULL) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "neither a device nor a memory is given");
  if ((*out)->device->client != client) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the device is another client's");
  return NULL;
}

/* Whether the strides, in bytes, are those of a dense row-major array. */
static bool is_dense(const ax_type *type, const int64_t *strides, size_t count) {
  int64_t expected = (int64_t)ax_dtype_bytes(type->dtype);
  for (size_t d = count; d-- > 0;) {
    if (type->dims[d] != 1 && strides[d] != expected) return false;
    expected *= type->dims[d];
  }
  return true;
}

/* The strides of an array with the dimensions in this order, the one that changes fastest first. */
static ax_pjrt_error *strides_of(const ax_type *type, const ax_pjrt_memory_layout *layout, int64_t strides[AX_MAX_RANK]) {
  int64_t next = (int64_t)ax_dtype_bytes(type->dtype);
  const size_t rank = layout == NULL ? type->rank : layout->kind == 0 ? layout->tiled.rank : layout->strides.rank;
  if (rank != type->rank || (layout != NULL && layout->kind == 0 && layout->tiled.tile_count > 0))
    return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "the layout on the host is tiled, or not of %u dimensions", type->rank);
  if (layout != NULL && layout->kind == 0) {
    ax_pjrt_order order;
    AX_PJRT_TRY(ax_pjrt_order_of(layout->tiled.minor_to_major, type->rank, &order)); /* each dimension once */
  }
  for (uint32_t i = 0; i < type->rank; i++) {
    const int64_t d = layout == NULL ? (int64_t)type->rank - 1 - i : layout->kind == 0 ? layout->tiled.minor_to_major[i] : i;
    strides[d] = layout != NULL && layout->kind == 1 ? layout->strides.strides[i] : next;
    next *= type->dims[d];
  }
  return NULL;
}

/* The bytes from the first element to the end of the last. Negative strides would lead before the first. */
static ax_pjrt_error *extent_of(const ax_type *type, const int64_t *strides, size_t *out) {
  int64_t extent = (int64_t)ax_dtype_bytes(type->dtype), far;
  *out = 0;
  if (bytes_of(type) == 0) return NULL;
  for (uint32_t d = 0; d < type->rank; d++)
    if (strides[d] < 0 || !ax_mul_i64(type->dims[d] - 1, strides[d], &far) || far > INT64_MAX - extent)
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the stride of dimension %u on the host is %" PRId64, d, strides[d]);
    else extent += far;
  *out = (size_t)extent;
  return NULL;
}

/* Copies elements from where the strides have them to a dense row-major array, or, if `back`, the other way. */
static void copy_strided(const ax_type *type, char *dense, char *far, const int64_t *strides, bool back) {
  int64_t rows[AX_MAX_RANK], next = (int64_t)ax_dtype_bytes(type->dtype);
  for (uint32_t d = type->rank; d-- > 0; next *= type->dims[d]) rows[d] = next;
  const ax_strided_place here = {dense, rows}, there = {far, strides};
  ax_strided_move(type->rank, type->dims, ax_dtype_bytes(type->dtype), back ? there : here, back ? here : there);
}

static ax_pjrt_error *put(ax_pjrt_client *client, const ax_sharding *where, const ax_type *type, const void *data, ax_array **out) {
  ax_host_array host = {.dtype = type->dtype, .rank = type->rank, .data = (void *)(uintptr_t)data, .view = true};
  memcpy(host.dims, type->dims, type->rank * sizeof host.dims[0]);
  return ax_pjrt_status(ax_device_put_as(client->runtime, where, &host, out));
}

/* Memory of the caller's that a buffer lies in. */
typedef struct lent {
  ax_pjrt_event *done; /* comes about when it is given back; NULL: `release` is called instead */
  void (*release)(void *data, void *context);
  void *data, *context;
} lent;

static void give_back(void *context) {
  lent *l = context;
  if (l->release != NULL) l->release(l->data, l->context);
  if (l->done != NULL) ax_pjrt_event_end(l->done, AX_OK, NULL);
  ax_free(l);
}

static ax_pjrt_error *lend(ax_pjrt_client *client, const ax_sharding *where, const ax_type *type, const lent *l, bool read_only,
                           ax_array **out) {
  lent *own = ax_alloc_plain(sizeof *own);
  if (own == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a buffer");
  *own = *l;
  const ax_part part = {l->data, bytes_of(type), give_back, own, read_only};
  const ax_status status = (ax_array_from_device_parts)(client->runtime, where, type, 1, &part, out);
  if (status != AX_OK) ax_free(own);
  return ax_pjrt_status(status);
}

static void free_copy(void *data, void *context) {
  (void)context;
  ax_free(data);
}

/* The buffer lies in the dense copy. */
static ax_pjrt_error *put_strided(ax_pjrt_client *client, const ax_sharding *where, const ax_type *type, const void *data,
                                  const int64_t *strides, ax_array **out) {
  if (bytes_of(type) == 0) return put(client, where, type, data, out);
  char *dense = ax_alloc(bytes_of(type));
  if (dense == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for %zu bytes", bytes_of(type));
  copy_strided(type, dense, (char *)(uintptr_t)data, strides, false);
  ax_pjrt_error *error = lend(client, where, type, &(lent){.release = free_copy, .data = dense}, false, out);
  if (error != NULL) ax_free(dense);
  return error;
}

static bool comes_dense(const ax_pjrt_client_buffer_from_host_buffer_args *args, const ax_type *type) {
  return args->stride_count == 0 || is_dense(type, args->strides, args->stride_count);
}

/* Whether the memory stays, and the buffer can lie in it. */
static bool is_lent(const ax_pjrt_client_buffer_from_host_buffer_args *args, const ax_type *type) {
  const bool stays = args->semantics == AX_PJRT_SHARED || args->semantics == AX_PJRT_SHARED_MUTABLE;
  return stays && comes_dense(args, type) && bytes_of(type) > 0 && (uintptr_t)args->data % ax_dtype_bytes(type->dtype) == 0;
}

/* Copies, unless the memory is lent: then `done` comes about when it is given back. */
static ax_pjrt_error *from_host(ax_pjrt_client_buffer_from_host_buffer_args *args, const ax_sharding *where, const ax_type *type,
                                ax_array **out) {
  if (is_lent(args, type)) {
    ax_pjrt_event_create_args create = {.struct_size = sizeof create};
    AX_PJRT_TRY(ax_pjrt_do_event_create(&create));
    ax_pjrt_event *given = ax_pjrt_event_retain(create.value);
    ax_pjrt_error *error = lend(args->of, where, type, &(lent){.done = given, .data = (void *)(uintptr_t)args->data},
                                args->semantics == AX_PJRT_SHARED, out);
    args->done = create.value;
    if (error == NULL) return NULL;
    (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = given});
    (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = args->done});
    args->done = NULL;
    return error;
  }
  AX_PJRT_TRY(comes_dense(args, type) ? put(args->of, where, type, args->data, out)
                                      : put_strided(args->of, where, type, args->data, args->strides, out));
  args->done = ax_pjrt_event_now(NULL);
  if (args->done != NULL) return NULL;
  ax_array_release(*out);
  return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an event");
}

/* Short arrays gain too little. */
static bool gains_by_moving(const ax_pjrt_client_buffer_from_host_buffer_args *args, const ax_type *type) {
  enum { least = 4096 };
  return args->semantics == AX_PJRT_SHARED && is_lent(args, type) && (uintptr_t)args->data % AX_LINE_BYTES != 0 && bytes_of(type) >= least;
}

/* The order that a caller wants of a buffer. */
static ax_pjrt_error *read_layout(const ax_pjrt_memory_layout *layout, const ax_type *type, ax_pjrt_order *out) {
  *out = (ax_pjrt_order){0};
  if (layout == NULL) return NULL;
  if (layout->kind == 0 && layout->tiled.tile_count == 0 && layout->tiled.rank == type->rank)
    return ax_pjrt_order_of(layout->tiled.minor_to_major, type->rank, out);
  if (layout->kind != 0 && layout->strides.rank == type->rank && is_dense(type, layout->strides.strides, layout->strides.rank)) return NULL;
  return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "on devices arrays are dense, without tiles");
}

ax_pjrt_error *ax_pjrt_do_client_buffer_from_host_buffer(ax_pjrt_client_buffer_from_host_buffer_args *args) {
  ax_type type;
  ax_pjrt_memory *memory;
  ax_sharding *where;
  ax_pjrt_order order;
  ax_array *array = NULL;
  args->value = NULL, args->done = NULL;
  AX_PJRT_TRY(type_of(args->element, args->dims, args->rank, &type));
  AX_PJRT_TRY(place_of(args->of, args->device, args->memory, &memory));
  AX_PJRT_TRY(read_layout(args->layout, &type, &order));
  if (args->stride_count != 0 && args->stride_count != args->rank)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%zu strides for %zu dimensions", args->stride_count, args->rank);
  AX_PJRT_TRY(ax_pjrt_alone(memory->device, &where));
  ax_pjrt_error *error = from_host(args, where, &type, &array);
  ax_sharding_release(where);
  if (error == NULL) error = ax_pjrt_buffer_of(array, memory, &args->value);
  if (error == NULL) {
    args->value->order = order;
    args->value->may_move = gains_by_moving(args, &type);
    return NULL;
  }
  if (args->done != NULL) (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = args->done});
  args->done = NULL;
  return error;
}

/* A view where the elements lie as Axle has them; else a copy, and the memory is given back at once. What is not aligned is refused: callers that
   XLA refuses it, too, then say that a copy is wanted. */
static ax_pjrt_error *view(ax_pjrt_client_create_view_of_device_buffer_args *args, const ax_sharding *where, const ax_type *type, ax_array **out) {
  const size_t size = ax_dtype_bytes(type->dtype), alignment = size > 4 ? size : 4;
  int64_t strides[AX_MAX_RANK];
  const bool some = bytes_of(type) > 0;
  AX_PJRT_TRY(strides_of(type, args->layout, strides));
  if (some && !is_dense(type, strides, type->rank)) {
    AX_PJRT_TRY(put_strided(args->of, where, type, args->data, strides, out));
    if (args->release != NULL) args->release(args->data, args->context);
    return NULL;
  }
  if (some && (uintptr_t)args->data % alignment != 0)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "there is no view of memory at %p, which is not aligned to %zu bytes", args->data, alignment);
  return lend(args->of, where, type, &(lent){.release = args->release, .data = args->data, .context = args->context}, true, out);
}

ax_pjrt_error *ax_pjrt_do_client_create_view_of_device_buffer(ax_pjrt_client_create_view_of_device_buffer_args *args) {
  ax_type type;
  ax_pjrt_memory *memory;
  ax_sharding *where;
  ax_array *array = NULL;
  args->value = NULL;
  AX_PJRT_TRY(type_of(args->element, args->dims, args->rank, &type));
  AX_PJRT_TRY(place_of(args->of, args->device, AX_PJRT_HAS(args, memory) ? args->memory : NULL, &memory));
  AX_PJRT_TRY(ax_pjrt_alone(memory->device, &where));
  ax_pjrt_error *error = view(args, where, &type, &array);
  ax_sharding_release(where);
  if (error == NULL) error = ax_pjrt_buffer_of(array, memory, &args->value);
  return error;
}

/* --- To the host --- */

typedef struct reading { /* of an array, into memory of the host */
  source from;
  ax_pjrt_event *done;
  char *data;
  int64_t strides[AX_MAX_RANK];
} reading;

static ax_status read_strided(const reading *r, const ax_array *array, const ax_type *type) {
  const size_t bytes = bytes_of(type);
  if (bytes == 0 || is_dense(type, r->strides, type->rank)) return (ax_array_read)(array, type->dtype, r->data, bytes);
  const void *part;
  size_t part_bytes;
  AX_TRY(ax_array_part(array, 0, &part, &part_bytes, NULL));
  copy_strided(type, (char *)(uintptr_t)part, r->data, r->strides, true);
  return AX_OK;
}

static void read_now(ax_status status, const char *message, void *context) {
  reading *r = context;
  ax_array *array = NULL;
  if (status == AX_OK) {
    status = open_source(&r->from, &array);
    if (status == AX_OK) status = read_strided(r, array, &r->from.type);
    message = ax_message();
  }
  ax_pjrt_event_end(r->done, status, message);
  ax_array_release(array);
  ax_array_release(r->from.array);
  ax_free(r);
}

ax_pjrt_error *ax_pjrt_do_buffer_to_host_buffer(ax_pjrt_buffer_to_host_buffer_args *args) {
  const ax_type *type = &args->of->type;
  const size_t bytes = bytes_of(type);
  int64_t strides[AX_MAX_RANK];
  args->done = NULL;
  size_t extent;
  if (args->data == NULL) {
    args->bytes = bytes;
    return NULL;
  }
  const ax_pjrt_memory_layout own = {.tiled = {.minor_to_major = args->of->order.minor_to_major, .rank = type->rank}};
  AX_PJRT_TRY(strides_of(type, args->layout != NULL || !args->of->order.said ? args->layout : &own, strides));
  AX_PJRT_TRY(extent_of(type, strides, &extent));
  if (args->bytes < extent) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%zu bytes are too few for %zu", args->bytes, extent);
  note_waited(args->of);
  reading *r = ax_calloc(1, sizeof *r);
  ax_pjrt_event_create_args create = {.struct_size = sizeof create};
  ax_pjrt_error *error = r != NULL ? ax_pjrt_do_event_create(&create) : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory");
  if (error == NULL) error = source_of(args->of, &r->from);
  if (error == NULL) {
    args->done = create.value;
    r->done = ax_pjrt_event_retain(create.value);
    r->data = args->data;
    memcpy(r->strides, strides, sizeof strides);
    ax_pjrt_event_awaits(create.value, r->from.array);
    const ax_status status = ax_array_when_ready(r->from.array, read_now, r);
    if (status == AX_OK) return NULL;
    error = ax_pjrt_status(status);
    ax_array_release(r->from.array);
    (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = r->done});
  }
  (void)ax_pjrt_do_event_destroy(&(ax_pjrt_event_destroy_args){.of = create.value});
  args->done = NULL;
  ax_free(r);
  return error;
}

/* --- Asked --- */

static size_t shown_rank(const ax_pjrt_buffer *buffer) { return buffer->is_token ? 0 : buffer->type.rank; }
AX_PJRT_GIVE_VALUE(buffer_element_type, args->of->is_token ? AX_PJRT_TOKEN : ax_pjrt_element_of(args->of->type.dtype))
AX_PJRT_GIVE_LIST(buffer_dimensions, args->of->type.dims, shown_rank(args->of))
AX_PJRT_GIVE_LIST(buffer_unpadded_dimensions, args->of->type.dims, shown_rank(args->of))
AX_PJRT_GIVE_LIST(buffer_dynamic_dimensions, NULL, 0)
AX_PJRT_GIVE_VALUE(buffer_on_device_bytes, bytes_of(&args->of->type))
AX_PJRT_GIVE_VALUE(buffer_device, args->of->memory->device)
AX_PJRT_GIVE_VALUE(buffer_memory, args->of->memory)
AX_PJRT_GIVE_VALUE(buffer_is_on_cpu, true)

/* Row-major, if nothing else was said: the last dimension changes fastest. */
ax_pjrt_error *ax_pjrt_do_buffer_memory_layout(ax_pjrt_buffer_memory_layout_args *args) {
  static const int64_t order[] = {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  _Static_assert(sizeof order / sizeof order[0] == AX_MAX_RANK, "an entry for each dimension that there may be");
  const uint32_t rank = args->of->type.rank;
  const int64_t *own = args->of->order.said ? args->of->order.minor_to_major : order + (AX_MAX_RANK - rank);
  args->value.kind = 0;
  args->value.tiled = (ax_pjrt_tiled){.struct_size = sizeof args->value.tiled, .minor_to_major = own, .rank = rank};
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_ready_event(ax_pjrt_buffer_ready_event_args *args) {
  source s;
  args->value = NULL;
  note_waited(args->of);
  ax_pjrt_error *error = source_of(args->of, &s);
  if (error != NULL) { /* another thread may have deleted the buffer: the event says so */
    args->value = ax_pjrt_event_now(error);
    return args->value != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for an event");
  }
  error = ax_pjrt_event_of(s.array, &args->value);
  ax_array_release(s.array);
  return error;
}

static ax_pjrt_error *address_of(ax_pjrt_buffer *buffer, const void **out) {
  ax_array *array;
  size_t bytes;
  if (buffer->order.said) return ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "there is no memory in the layout that the buffer has by name");
  pthread_mutex_lock(&buffer->lock);
  if (buffer->held == 0) buffer->may_move = false; /* who holds it says when the address is no longer needed */
  pthread_mutex_unlock(&buffer->lock);
  AX_PJRT_TRY(ax_pjrt_buffer_array(buffer, &array));
  ax_pjrt_error *error = ax_pjrt_status(ax_array_part(array, 0, out, &bytes, NULL));
  ax_array_release(array); /* the buffer holds it still */
  return error;
}

ax_pjrt_error *ax_pjrt_do_buffer_unsafe_pointer(ax_pjrt_buffer_unsafe_pointer_args *args) {
  const void *data = NULL;
  AX_PJRT_TRY(address_of(args->of, &data));
  args->value = (uintptr_t)data;
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_device_pointer(ax_pjrt_buffer_device_pointer_args *args) {
  const void *data = NULL;
  AX_PJRT_TRY(address_of(args->of, &data));
  args->value = (void *)(uintptr_t)data;
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_increase_references(ax_pjrt_buffer_increase_references_args *args) {
  pthread_mutex_lock(&args->of->lock);
  args->of->held++;
  pthread_mutex_unlock(&args->of->lock);
  return NULL;
}

ax_pjrt_error *ax_pjrt_do_buffer_decrease_references(ax_pjrt_buffer_decrease_references_args *args) {
  pthread_mutex_lock(&args->of->lock);
  const bool held = args->of->held > 0;
  ax_array *kept = NULL;
  if (held && --args->of->held == 0) kept = args->of->kept, args->of->kept = NULL;
  pthread_mutex_unlock(&args->of->lock);
  ax_array_release(kept);
  return held ? NULL : ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the buffer has no external references");
}

/* --- Copied --- */

static ax_pjrt_error *copy_to(ax_pjrt_buffer *from, ax_pjrt_memory *memory, ax_pjrt_buffer **out) {
  ax_array *array, *copy = NULL;
  ax_sharding *where;
  *out = NULL;
  AX_PJRT_TRY(ax_pjrt_buffer_array(from, &array));
  ax_pjrt_error *error = ax_pjrt_alone(memory->device, &where);
  if (error == NULL) {
    error = ax_pjrt_status(ax_array_copy_to(array, where, &copy));
    ax_sharding_release(where);
  }
  ax_array_release(array);
  if (error == NULL) error = ax_pjrt_buffer_of(copy, memory, out);
  if (error == NULL) (*out)->order = from->order;
  return error;
}

ax_pjrt_error *ax_pjrt_do_buffer_copy_to_device(ax_pjrt_buffer_copy_to_device_args *args) {
  return copy_to(args->of, &args->device->memory[0], &args->value);
}

ax_pjrt_error *ax_pjrt_do_buffer_copy_to_memory(ax_pjrt_buffer_copy_to_memory_args *args) {
  return copy_to(args->of, args->memory, &args->value);
}
