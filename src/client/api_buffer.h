/* PJRT's interface: buffers, which are arrays on one device, and how they are made and read. Included by client/api.h. */
#ifndef AX_CLIENT_API_BUFFER_H
#define AX_CLIENT_API_BUFFER_H

#include "client/api.h"

typedef enum ax_pjrt_element { /* types of elements, in PJRT's order */
  AX_PJRT_NO_ELEMENT,
  AX_PJRT_PRED,
  AX_PJRT_S8,
  AX_PJRT_S16,
  AX_PJRT_S32,
  AX_PJRT_S64,
  AX_PJRT_U8,
  AX_PJRT_U16,
  AX_PJRT_U32,
  AX_PJRT_U64,
  AX_PJRT_F16,
  AX_PJRT_F32,
  AX_PJRT_F64,
  AX_PJRT_BF16,
  AX_PJRT_C64,
  AX_PJRT_C128,
  AX_PJRT_F8E5M2,
  AX_PJRT_F8E4M3FN,
  AX_PJRT_F8E4M3B11FNUZ,
  AX_PJRT_F8E5M2FNUZ,
  AX_PJRT_F8E4M3FNUZ,
  AX_PJRT_S4,
  AX_PJRT_U4,
  AX_PJRT_TOKEN,
  AX_PJRT_S2,
  AX_PJRT_U2,
  AX_PJRT_F8E4M3,
  AX_PJRT_F8E3M4,
  AX_PJRT_F8E8M0FNU,
  AX_PJRT_F4E2M1FN,
  AX_PJRT_S1,
  AX_PJRT_U1,
  AX_PJRT_F6E2M3FN,
  AX_PJRT_F6E3M2FN,
} ax_pjrt_element;

typedef enum ax_pjrt_host_semantics { /* how long host memory that is given stays, and stays as it is */
  AX_PJRT_DURING_CALL,
  AX_PJRT_UNTIL_COPIED,
  AX_PJRT_SHARED,         /* until the buffer is gone */
  AX_PJRT_SHARED_MUTABLE, /* likewise, and the buffer may change it */
} ax_pjrt_host_semantics;

typedef struct ax_pjrt_tiled { /* a permutation, and tiles inside it */
  AX_PJRT_HEAD;
  const int64_t *minor_to_major;
  size_t rank;
  const int64_t *tile_dims;
  const size_t *tile_ranks;
  size_t tile_count;
} ax_pjrt_tiled;
typedef struct ax_pjrt_strides {
  AX_PJRT_HEAD;
  const int64_t *strides; /* bytes */
  size_t rank;
} ax_pjrt_strides;
typedef struct ax_pjrt_memory_layout {
  AX_PJRT_HEAD;
  union {
    ax_pjrt_tiled tiled;
    ax_pjrt_strides strides;
  };
  int kind; /* 0: tiled, 1: strides */
} ax_pjrt_memory_layout;

/* --- Made --- */

AX_PJRT_ARGS(client_buffer_from_host_buffer, ax_pjrt_client *of; const void *data; ax_pjrt_element element; const int64_t *dims;
             size_t rank; const int64_t *strides; size_t stride_count; ax_pjrt_host_semantics semantics; ax_pjrt_device *device;
             ax_pjrt_memory *memory; ax_pjrt_memory_layout *layout; /* -> */ ax_pjrt_event *done; ax_pjrt_buffer *value;);
AX_PJRT_ARGS(client_create_uninitialized_buffer, ax_pjrt_client *of; const int64_t *dims; size_t rank; ax_pjrt_element element;
             ax_pjrt_memory_layout *layout; ax_pjrt_device *device; ax_pjrt_memory *memory; /* -> */ ax_pjrt_buffer *value;);
AX_PJRT_ARGS(client_create_error_buffer, ax_pjrt_client *of; ax_pjrt_code code; const char *message; size_t message_length;
             const int64_t *dims; size_t rank; ax_pjrt_element element; ax_pjrt_memory_layout *layout; ax_pjrt_memory *memory;
             /* -> */ ax_pjrt_buffer *value; /* more of the caller's */ const ax_pjrt_named *payload; size_t payload_count;);
AX_PJRT_ARGS(client_create_alias_buffer, ax_pjrt_client *of; ax_pjrt_memory *memory; const int64_t *dims; size_t rank;
             ax_pjrt_element element; ax_pjrt_memory_layout *layout; /* -> */ ax_pjrt_buffer *value; void *fulfill;);
AX_PJRT_ARGS(client_fulfill_alias_buffer, ax_pjrt_client *of; ax_pjrt_buffer *buffer; ax_pjrt_code code; const char *message;
             size_t message_length; void *fulfill;);
/* A buffer over memory that is there already. */
AX_PJRT_ARGS(client_create_view_of_device_buffer, ax_pjrt_client *of; void *data; const int64_t *dims; size_t rank;
             ax_pjrt_element element; ax_pjrt_memory_layout *layout; ax_pjrt_device *device;
             void (*release)(void *data, void *context); void *context; intptr_t stream; /* -> */ ax_pjrt_buffer *value;
             /* more of the caller's */ ax_pjrt_memory *memory;);

/* Several buffers that are filled piece by piece. */
typedef struct ax_pjrt_transfer ax_pjrt_transfer;
typedef struct ax_pjrt_shape {
  AX_PJRT_HEAD;
  const int64_t *dims;
  size_t rank;
  ax_pjrt_element element;
} ax_pjrt_shape;
AX_PJRT_ARGS(client_create_transfer, ax_pjrt_client *of; ax_pjrt_shape *shapes; size_t count; ax_pjrt_memory_layout **layouts;
             size_t layout_count; ax_pjrt_memory *memory; /* -> */ ax_pjrt_transfer *value;);
AX_PJRT_OF(transfer_destroy, ax_pjrt_transfer);
AX_PJRT_ARGS(transfer_transfer_data, ax_pjrt_transfer *of; int index; const void *data; int64_t offset; int64_t bytes; bool is_last;
             /* -> */ ax_pjrt_event *done;);
AX_PJRT_ARGS(transfer_transfer_literal, ax_pjrt_transfer *of; int index; const void *data; const int64_t *dims; size_t rank;
             ax_pjrt_element element; ax_pjrt_memory_layout *layout; /* -> */ ax_pjrt_event *done;);
AX_PJRT_ARGS(transfer_retrieve_buffer, ax_pjrt_transfer *of; int index; /* -> */ ax_pjrt_buffer *value;);
AX_PJRT_GET(transfer_device, ax_pjrt_transfer, ax_pjrt_device *);
AX_PJRT_GET(transfer_buffer_count, ax_pjrt_transfer, size_t);
AX_PJRT_ARGS(transfer_buffer_size, ax_pjrt_transfer *of; int index; /* -> */ size_t value;);
AX_PJRT_ARGS(transfer_set_buffer_error, ax_pjrt_transfer *of; int index; ax_pjrt_code code; const char *message;
             size_t message_length;);
AX_PJRT_ARGS(transfer_add_metadata, ax_pjrt_transfer *of; const ax_pjrt_named *items; size_t count;);

/* --- Asked, copied, gone --- */

AX_PJRT_OF(buffer_destroy, ax_pjrt_buffer);
AX_PJRT_GET(buffer_element_type, ax_pjrt_buffer, ax_pjrt_element);
AX_PJRT_LIST(buffer_dimensions, ax_pjrt_buffer, const int64_t);
AX_PJRT_LIST(buffer_unpadded_dimensions, ax_pjrt_buffer, const int64_t);
AX_PJRT_LIST(buffer_dynamic_dimensions, ax_pjrt_buffer, const size_t);
AX_PJRT_GET(buffer_memory_layout, ax_pjrt_buffer, ax_pjrt_memory_layout);
AX_PJRT_GET(buffer_on_device_bytes, ax_pjrt_buffer, size_t);
AX_PJRT_GET(buffer_device, ax_pjrt_buffer, ax_pjrt_device *);
AX_PJRT_GET(buffer_memory, ax_pjrt_buffer, ax_pjrt_memory *);
AX_PJRT_OF(buffer_delete, ax_pjrt_buffer);
AX_PJRT_GET(buffer_is_deleted, ax_pjrt_buffer, bool);
AX_PJRT_GET(buffer_is_on_cpu, ax_pjrt_buffer, bool);
AX_PJRT_GET(buffer_ready_event, ax_pjrt_buffer, ax_pjrt_event *);
AX_PJRT_GET(buffer_unsafe_pointer, ax_pjrt_buffer, uintptr_t);
AX_PJRT_GET(buffer_device_pointer, ax_pjrt_buffer, void *);
AX_PJRT_OF(buffer_increase_references, ax_pjrt_buffer);
AX_PJRT_OF(buffer_decrease_references, ax_pjrt_buffer);
/* data NULL: `bytes` is the plugin's to fill in. */
AX_PJRT_ARGS(buffer_to_host_buffer, ax_pjrt_buffer *of; ax_pjrt_memory_layout *layout; void *data; size_t bytes;
             /* -> */ ax_pjrt_event *done;);
AX_PJRT_ARGS(buffer_copy_raw_to_host, ax_pjrt_buffer *of; void *data; int64_t offset; int64_t bytes; /* -> */ ax_pjrt_event *done;);
typedef struct ax_pjrt_raw_ready {
  size_t struct_size;
  void *context;
  ax_pjrt_code code;
  const char *message;
  size_t message_length;
  void *data;
} ax_pjrt_raw_ready;
AX_PJRT_ARGS(buffer_copy_raw_to_host_future, ax_pjrt_buffer *of; int64_t offset; int64_t bytes;
             /* -> */ ax_pjrt_event *done; void *context; void (*ready)(ax_pjrt_raw_ready *args););
AX_PJRT_ARGS(buffer_copy_to_device, ax_pjrt_buffer *of; ax_pjrt_device *device; /* -> */ ax_pjrt_buffer *value;);
AX_PJRT_ARGS(buffer_copy_to_memory, ax_pjrt_buffer *of; ax_pjrt_memory *memory; /* -> */ ax_pjrt_buffer *value;);
AX_PJRT_ARGS(buffer_bitcast, ax_pjrt_buffer *of; ax_pjrt_element element; const int64_t *dims; size_t rank;
             ax_pjrt_memory_layout *layout; /* -> */ ax_pjrt_buffer *value;);
AX_PJRT_ARGS(buffer_donate_with_control_dependency, ax_pjrt_buffer *of; /* -> */ void *context; void (*ready)(void *args);
             ax_pjrt_buffer *value;);

/* --- Streams of chunks to a device --- */

typedef struct ax_pjrt_stream ax_pjrt_stream;
typedef struct ax_pjrt_chunk {
  void *data;
  size_t bytes;
  void (*release)(void *data, void *context);
  void *context;
} ax_pjrt_chunk;
AX_PJRT_OF(stream_destroy, ax_pjrt_stream);
AX_PJRT_ARGS(stream_add_chunk, ax_pjrt_stream *of; ax_pjrt_chunk *chunk; /* -> */ ax_pjrt_event *done;);
AX_PJRT_GET(stream_total_bytes, ax_pjrt_stream, int64_t);
AX_PJRT_GET(stream_granule_size, ax_pjrt_stream, int64_t);
AX_PJRT_GET(stream_current_bytes, ax_pjrt_stream, int64_t);

#endif
