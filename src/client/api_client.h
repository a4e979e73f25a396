/* PJRT's interface: clients, devices, memories and topologies. Included by client/api.h. */
#ifndef AX_CLIENT_API_CLIENT_H
#define AX_CLIENT_API_CLIENT_H

#include "client/api.h"

/* Stores that processes share, by which they find each other. */
typedef ax_pjrt_error *(*ax_pjrt_callback_error)(ax_pjrt_code code, const char *message, size_t message_length);
AX_PJRT_ARGS(store_get, const char *key; size_t key_length; int timeout_ms; ax_pjrt_callback_error *error; void *context;
             /* -> */ char *value; size_t value_length; void (*free_value)(char *value););
AX_PJRT_ARGS(store_try_get, const char *key; size_t key_length; ax_pjrt_callback_error *error; void *context;
             /* -> */ char *value; size_t value_length; void (*free_value)(char *value););
AX_PJRT_ARGS(store_put, const char *key; size_t key_length; const char *value; size_t value_length; ax_pjrt_callback_error *error;
             void *context;);

AX_PJRT_ARGS(client_create, const ax_pjrt_named *options; size_t option_count;
             ax_pjrt_error *(*get)(ax_pjrt_store_get_args *args); void *get_context;
             ax_pjrt_error *(*put)(ax_pjrt_store_put_args *args); void *put_context;
             /* -> */ ax_pjrt_client *client;
             /* more of the caller's */ ax_pjrt_error *(*try_get)(ax_pjrt_store_try_get_args *args); void *try_get_context;);
AX_PJRT_OF(client_destroy, ax_pjrt_client);
AX_PJRT_TEXT(client_platform_name, ax_pjrt_client);
AX_PJRT_TEXT(client_platform_version, ax_pjrt_client);
AX_PJRT_GET(client_process_index, ax_pjrt_client, int);
AX_PJRT_GET(client_topology, ax_pjrt_client, ax_pjrt_topology *);
AX_PJRT_LIST(client_devices, ax_pjrt_client, ax_pjrt_device *const);
AX_PJRT_LIST(client_addressable_devices, ax_pjrt_client, ax_pjrt_device *const);
AX_PJRT_LIST(client_addressable_memories, ax_pjrt_client, ax_pjrt_memory *const);
AX_PJRT_ARGS(client_lookup_device, ax_pjrt_client *of; int id; /* -> */ ax_pjrt_device *value;);
AX_PJRT_ARGS(client_lookup_addressable_device, ax_pjrt_client *of; int id; /* -> */ ax_pjrt_device *value;);
/* assignment: room for replicas * partitions ids, which are filled in. */
AX_PJRT_ARGS(client_default_assignment, ax_pjrt_client *of; int replicas; int partitions; size_t count; int *assignment;);
AX_PJRT_ARGS(client_dma_map, ax_pjrt_client *of; void *data; size_t bytes;);
AX_PJRT_ARGS(client_dma_unmap, ax_pjrt_client *of; void *data;);
typedef struct ax_pjrt_process_info {
  size_t struct_size;
  int task;
  uint64_t incarnation;
  int state;
  int code;
  const char *message;
  size_t message_length;
} ax_pjrt_process_info;
AX_PJRT_ARGS(client_update_global_process_info, ax_pjrt_client *of; ax_pjrt_process_info *infos; size_t count;);

/* --- Devices --- */

AX_PJRT_GET(device_description_id, ax_pjrt_device_description, int);
AX_PJRT_GET(device_description_process_index, ax_pjrt_device_description, int);
AX_PJRT_ARGS(device_description_attributes, ax_pjrt_device_description *of; /* -> */ size_t count; const ax_pjrt_named *items;);
AX_PJRT_TEXT(device_description_kind, ax_pjrt_device_description);
AX_PJRT_TEXT(device_description_debug_string, ax_pjrt_device_description);
AX_PJRT_TEXT(device_description_to_string, ax_pjrt_device_description);
AX_PJRT_GET(device_description, ax_pjrt_device, ax_pjrt_device_description *);
AX_PJRT_GET(device_is_addressable, ax_pjrt_device, bool);
AX_PJRT_GET(device_local_hardware_id, ax_pjrt_device, int);
AX_PJRT_LIST(device_addressable_memories, ax_pjrt_device, ax_pjrt_memory *const);
AX_PJRT_GET(device_default_memory, ax_pjrt_device, ax_pjrt_memory *);
typedef struct ax_pjrt_statistic { /* a number that need not be known */
  int64_t value;
  bool is_set;
} ax_pjrt_statistic;
AX_PJRT_ARGS(device_memory_stats, ax_pjrt_device *of; /* -> */ int64_t bytes_in_use; ax_pjrt_statistic peak_bytes_in_use, allocations,
             largest_allocation, bytes_limit, bytes_reserved, peak_bytes_reserved, reservable_limit, largest_free_block, pool_bytes,
             peak_pool_bytes, peak_allocated_bytes;);
AX_PJRT_OF(device_clear_memory_stats, ax_pjrt_device);
AX_PJRT_ARGS(device_poison_execution, ax_pjrt_device *of; int32_t launch_id; ax_pjrt_code code; const char *message;
             size_t message_length; /* -> */ bool poisoned; /* more of the caller's */ const ax_pjrt_named *payload;
             size_t payload_count;);
typedef struct ax_pjrt_held ax_pjrt_held; /* what keeps a result alive until its `release` is called with it */
AX_PJRT_ARGS(device_attributes, ax_pjrt_device *of; /* -> */ const ax_pjrt_named *items; size_t count; ax_pjrt_held *held;
             void (*release)(ax_pjrt_held *held););
AX_PJRT_ARGS(device_create_async_tracking_event, ax_pjrt_device *of; const char *text; size_t length; /* -> */ void *event;);
AX_PJRT_OF(async_tracking_event_destroy, void);

/* --- Memories --- */

/* What a memory object begins with: callers hang data of theirs on it, by keys. */
typedef struct ax_pjrt_memory_functions {
  AX_PJRT_HEAD;
  size_t instance_size;
  void *(*get_data)(ax_pjrt_memory *memory, const void *key);
  void (*set_data)(ax_pjrt_memory *memory, const void *key, void *data, void (*release)(void *data));
} ax_pjrt_memory_functions;

AX_PJRT_GET(memory_id, ax_pjrt_memory, int);
AX_PJRT_TEXT(memory_kind, ax_pjrt_memory);
AX_PJRT_GET(memory_kind_id, ax_pjrt_memory, int);
AX_PJRT_TEXT(memory_debug_string, ax_pjrt_memory);
AX_PJRT_TEXT(memory_to_string, ax_pjrt_memory);
AX_PJRT_LIST(memory_addressable_by_devices, ax_pjrt_memory, ax_pjrt_device *const);

/* --- Topologies --- */

AX_PJRT_ARGS(topology_create, const char *name; size_t name_length; const ax_pjrt_named *options; size_t option_count;
             /* -> */ ax_pjrt_topology *value;);
AX_PJRT_OF(topology_destroy, ax_pjrt_topology);
AX_PJRT_TEXT(topology_platform_name, const ax_pjrt_topology);
AX_PJRT_TEXT(topology_platform_version, ax_pjrt_topology);
AX_PJRT_LIST(topology_device_descriptions, const ax_pjrt_topology, ax_pjrt_device_description *const);
AX_PJRT_ARGS(topology_serialize, ax_pjrt_topology *of; /* -> */ const char *bytes; size_t count; ax_pjrt_held *held;
             void (*release)(ax_pjrt_held *held););
AX_PJRT_ARGS(topology_deserialize, const char *bytes; size_t count; /* -> */ ax_pjrt_topology *value;);
AX_PJRT_LIST(topology_attributes, ax_pjrt_topology, const ax_pjrt_named);
AX_PJRT_GET(topology_fingerprint, const ax_pjrt_topology, uint64_t);
AX_PJRT_ARGS(topology_canonical_shape, const ax_pjrt_topology *of; int memory_kind; const int64_t *dims; size_t rank;
             ax_pjrt_element element; const ax_pjrt_memory_layout *layout; /* -> */ const char *bytes; size_t count;
             void (*release)(const char *bytes););
AX_PJRT_LIST(topology_memory_kind_ids, const ax_pjrt_topology, const int);

#endif
