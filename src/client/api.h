/* PJRT's C interface, in our own words: what a plugin and those who load it agree on, as far as memory goes. The names of functions are
   PJRT's; a struct stands for what a function is given and gives back. tests/oracle/pjrt_abi.py holds sizes and offsets against the
   header that is published.

     api.h             errors, events, what has names; the table of functions
     api_client.h      clients, devices, memories, topologies
     api_buffer.h      buffers, and how they are made and read
     api_executable.h  compiling and running
     api_extensions.h  what a plugin may have besides

   Each call has one struct, whose first member is its size as the caller knows it: callers and plugins of other versions have more
   members at its end or fewer. So a plugin reads and writes a member only if the size reaches it (AX_PJRT_HAS). What stands behind
   the mark -> is the plugin's to fill in.

   Four shapes of calls are so common that they have members with the same names everywhere: something is done with an object
   (AX_PJRT_OF), and an object has a value (AX_PJRT_GET), a text (AX_PJRT_TEXT), or a list of things (AX_PJRT_LIST). */
#ifndef AX_CLIENT_API_H
#define AX_CLIENT_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AX_PJRT_MAJOR = 0, AX_PJRT_MINOR = 114 }; /* of the interface that is described here */

typedef struct ax_pjrt_extension { /* more functions, in a list */
  size_t struct_size;
  int type; /* AX_PJRT_SHARDINGS, .. */
  struct ax_pjrt_extension *next;
} ax_pjrt_extension;

#define AX_PJRT_HEAD   \
  size_t struct_size; \
  ax_pjrt_extension *extensions
#define AX_PJRT_ARGS(name, ...) \
  typedef struct ax_pjrt_##name##_args { \
    AX_PJRT_HEAD;                        \
    __VA_ARGS__                          \
  } ax_pjrt_##name##_args
#define AX_PJRT_OF(name, object) AX_PJRT_ARGS(name, object *of;)
#define AX_PJRT_GET(name, object, type) AX_PJRT_ARGS(name, object *of; /* -> */ type value;)
#define AX_PJRT_TEXT(name, object) AX_PJRT_ARGS(name, object *of; /* -> */ const char *text; size_t length;)
#define AX_PJRT_LIST(name, object, type) AX_PJRT_ARGS(name, object *of; /* -> */ type *items; size_t count;)

/* Whether the caller's struct has the member. */
#define AX_PJRT_HAS(args, member) \
  ((args)->struct_size >= (size_t)((const char *)(&(args)->member + 1) - (const char *)(args)))

typedef struct ax_pjrt_error ax_pjrt_error; /* NULL: there is none */
typedef struct ax_pjrt_event ax_pjrt_event;
typedef struct ax_pjrt_client ax_pjrt_client;
typedef struct ax_pjrt_device ax_pjrt_device;
typedef struct ax_pjrt_device_description ax_pjrt_device_description;
typedef struct ax_pjrt_memory ax_pjrt_memory;
typedef struct ax_pjrt_topology ax_pjrt_topology;
typedef struct ax_pjrt_buffer ax_pjrt_buffer;
typedef struct ax_pjrt_executable ax_pjrt_executable;
typedef struct ax_pjrt_loaded_executable ax_pjrt_loaded_executable;
typedef struct ax_pjrt_execute_context ax_pjrt_execute_context;

/* --- Errors --- */

typedef enum ax_pjrt_code { /* as absl's status codes */
  AX_PJRT_OK = 0,
  AX_PJRT_CANCELLED = 1,
  AX_PJRT_UNKNOWN = 2,
  AX_PJRT_INVALID_ARGUMENT = 3,
  AX_PJRT_DEADLINE_EXCEEDED = 4,
  AX_PJRT_NOT_FOUND = 5,
  AX_PJRT_ALREADY_EXISTS = 6,
  AX_PJRT_PERMISSION_DENIED = 7,
  AX_PJRT_RESOURCE_EXHAUSTED = 8,
  AX_PJRT_FAILED_PRECONDITION = 9,
  AX_PJRT_ABORTED = 10,
  AX_PJRT_OUT_OF_RANGE = 11,
  AX_PJRT_UNIMPLEMENTED = 12,
  AX_PJRT_INTERNAL = 13,
  AX_PJRT_UNAVAILABLE = 14,
  AX_PJRT_DATA_LOSS = 15,
  AX_PJRT_UNAUTHENTICATED = 16
} ax_pjrt_code;

typedef void (*ax_pjrt_payload_visitor)(const char *key, size_t key_length, const char *value, size_t value_length, void *context);

/* What an error object begins with: callers since 0.110 ask it without the table of functions. */
typedef struct ax_pjrt_error_functions {
  size_t struct_size;
  size_t instance_size;
  ax_pjrt_extension *extensions;
  void (*destroy)(ax_pjrt_error *error);
  void (*message)(const ax_pjrt_error *error, const char **text, size_t *length);
  ax_pjrt_code (*code)(const ax_pjrt_error *error);
  void (*for_each_payload)(const ax_pjrt_error *error, ax_pjrt_payload_visitor visitor, void *context);
} ax_pjrt_error_functions;

AX_PJRT_OF(error_destroy, ax_pjrt_error);
AX_PJRT_TEXT(error_message, const ax_pjrt_error);
AX_PJRT_GET(error_code, const ax_pjrt_error, ax_pjrt_code);
AX_PJRT_ARGS(error_payloads, const ax_pjrt_error *of; ax_pjrt_payload_visitor visitor; void *context;);

/* --- Values with names --- */

typedef enum ax_pjrt_kind { AX_PJRT_STRING, AX_PJRT_INTEGER, AX_PJRT_INTEGERS, AX_PJRT_FLOAT, AX_PJRT_BOOL } ax_pjrt_kind;

typedef struct ax_pjrt_named {
  AX_PJRT_HEAD;
  const char *name;
  size_t name_length;
  ax_pjrt_kind kind;
  union {
    const char *string;
    int64_t integer;
    const int64_t *integers;
    float number;
    bool truth;
  };
  size_t count; /* of a string its length, of integers how many; else 1 */
} ax_pjrt_named;

/* --- The plugin, and events --- */

typedef struct ax_pjrt_plugin_initialize_args {
  AX_PJRT_HEAD;
} ax_pjrt_plugin_initialize_args;
AX_PJRT_ARGS(plugin_attributes, /* -> */ const ax_pjrt_named *items; size_t count;);

AX_PJRT_OF(event_destroy, ax_pjrt_event);
AX_PJRT_GET(event_is_ready, ax_pjrt_event, bool);
AX_PJRT_OF(event_error, ax_pjrt_event);
AX_PJRT_OF(event_await, ax_pjrt_event);
/* The callback is called once, on any thread, and owns the error it gets. */
AX_PJRT_ARGS(event_on_ready, ax_pjrt_event *of; void (*callback)(ax_pjrt_error *error, void *context); void *context;);
AX_PJRT_ARGS(event_create, /* -> */ ax_pjrt_event *value;);
AX_PJRT_ARGS(event_set, ax_pjrt_event *of; ax_pjrt_code code; const char *message; size_t message_length;);

#include "client/api_buffer.h"
#include "client/api_client.h"
#include "client/api_executable.h"
#include "client/api_extensions.h"

/* --- The table, in its order: X(what it is given, PJRT's name) --- */

#define AX_PJRT_QUIET(X) /* those that cannot fail */ \
  X(error_destroy, "PJRT_Error_Destroy")               \
  X(error_message, "PJRT_Error_Message")

#define AX_PJRT_FUNCTIONS(X)                                                               \
  X(error_code, "PJRT_Error_GetCode")                                                      \
  X(plugin_initialize, "PJRT_Plugin_Initialize")                                           \
  X(plugin_attributes, "PJRT_Plugin_Attributes")                                           \
  X(event_destroy, "PJRT_Event_Destroy")                                                   \
  X(event_is_ready, "PJRT_Event_IsReady")                                                  \
  X(event_error, "PJRT_Event_Error")                                                       \
  X(event_await, "PJRT_Event_Await")                                                       \
  X(event_on_ready, "PJRT_Event_OnReady")                                                  \
  X(client_create, "PJRT_Client_Create")                                                   \
  X(client_destroy, "PJRT_Client_Destroy")                                                 \
  X(client_platform_name, "PJRT_Client_PlatformName")                                      \
  X(client_process_index, "PJRT_Client_ProcessIndex")                                      \
  X(client_platform_version, "PJRT_Client_PlatformVersion")                                \
  X(client_devices, "PJRT_Client_Devices")                                                 \
  X(client_addressable_devices, "PJRT_Client_AddressableDevices")                          \
  X(client_lookup_device, "PJRT_Client_LookupDevice")                                      \
  X(client_lookup_addressable_device, "PJRT_Client_LookupAddressableDevice")               \
  X(client_addressable_memories, "PJRT_Client_AddressableMemories")                        \
  X(client_compile, "PJRT_Client_Compile")                                                 \
  X(client_default_assignment, "PJRT_Client_DefaultDeviceAssignment")                      \
  X(client_buffer_from_host_buffer, "PJRT_Client_BufferFromHostBuffer")                    \
  X(device_description_id, "PJRT_DeviceDescription_Id")                                    \
  X(device_description_process_index, "PJRT_DeviceDescription_ProcessIndex")               \
  X(device_description_attributes, "PJRT_DeviceDescription_Attributes")                    \
  X(device_description_kind, "PJRT_DeviceDescription_Kind")                                \
  X(device_description_debug_string, "PJRT_DeviceDescription_DebugString")                 \
  X(device_description_to_string, "PJRT_DeviceDescription_ToString")                       \
  X(device_description, "PJRT_Device_GetDescription")                                      \
  X(device_is_addressable, "PJRT_Device_IsAddressable")                                    \
  X(device_local_hardware_id, "PJRT_Device_LocalHardwareId")                               \
  X(device_addressable_memories, "PJRT_Device_AddressableMemories")                        \
  X(device_default_memory, "PJRT_Device_DefaultMemory")                                    \
  X(device_memory_stats, "PJRT_Device_MemoryStats")                                        \
  X(memory_id, "PJRT_Memory_Id")                                                           \
  X(memory_kind, "PJRT_Memory_Kind")                                                       \
  X(memory_debug_string, "PJRT_Memory_DebugString")                                        \
  X(memory_to_string, "PJRT_Memory_ToString")                                              \
  X(memory_addressable_by_devices, "PJRT_Memory_AddressableByDevices")                     \
  X(executable_destroy, "PJRT_Executable_Destroy")                                         \
  X(executable_name, "PJRT_Executable_Name")                                               \
  X(executable_replicas, "PJRT_Executable_NumReplicas")                                    \
  X(executable_partitions, "PJRT_Executable_NumPartitions")                                \
  X(executable_outputs, "PJRT_Executable_NumOutputs")                                      \
  X(executable_code_bytes, "PJRT_Executable_SizeOfGeneratedCodeInBytes")                   \
  X(executable_cost_analysis, "PJRT_Executable_GetCostAnalysis")                           \
  X(executable_output_memory_kinds, "PJRT_Executable_OutputMemoryKinds")                   \
  X(executable_optimized_program, "PJRT_Executable_OptimizedProgram")                      \
  X(executable_serialize, "PJRT_Executable_Serialize")                                     \
  X(loaded_destroy, "PJRT_LoadedExecutable_Destroy")                                       \
  X(loaded_executable, "PJRT_LoadedExecutable_GetExecutable")                              \
  X(loaded_addressable_devices, "PJRT_LoadedExecutable_AddressableDevices")                \
  X(loaded_delete, "PJRT_LoadedExecutable_Delete")                                         \
  X(loaded_is_deleted, "PJRT_LoadedExecutable_IsDeleted")                                  \
  X(loaded_execute, "PJRT_LoadedExecutable_Execute")                                       \
  X(executable_deserialize_and_load, "PJRT_Executable_DeserializeAndLoad")                 \
  X(loaded_fingerprint, "PJRT_LoadedExecutable_Fingerprint")                               \
  X(buffer_destroy, "PJRT_Buffer_Destroy")                                                 \
  X(buffer_element_type, "PJRT_Buffer_ElementType")                                        \
  X(buffer_dimensions, "PJRT_Buffer_Dimensions")                                           \
  X(buffer_unpadded_dimensions, "PJRT_Buffer_UnpaddedDimensions")                          \
  X(buffer_dynamic_dimensions, "PJRT_Buffer_DynamicDimensionIndices")                      \
  X(buffer_memory_layout, "PJRT_Buffer_GetMemoryLayout")                                   \
  X(buffer_on_device_bytes, "PJRT_Buffer_OnDeviceSizeInBytes")                             \
  X(buffer_device, "PJRT_Buffer_Device")                                                   \
  X(buffer_memory, "PJRT_Buffer_Memory")                                                   \
  X(buffer_delete, "PJRT_Buffer_Delete")                                                   \
  X(buffer_is_deleted, "PJRT_Buffer_IsDeleted")                                            \
  X(buffer_copy_to_device, "PJRT_Buffer_CopyToDevice")                                     \
  X(buffer_to_host_buffer, "PJRT_Buffer_ToHostBuffer")                                     \
  X(buffer_is_on_cpu, "PJRT_Buffer_IsOnCpu")                                               \
  X(buffer_ready_event, "PJRT_Buffer_ReadyEvent")                                          \
  X(buffer_unsafe_pointer, "PJRT_Buffer_UnsafePointer")                                    \
  X(buffer_increase_references, "PJRT_Buffer_IncreaseExternalReferenceCount")              \
  X(buffer_decrease_references, "PJRT_Buffer_DecreaseExternalReferenceCount")              \
  X(buffer_device_pointer, "PJRT_Buffer_OpaqueDeviceMemoryDataPointer")                    \
  X(stream_destroy, "PJRT_CopyToDeviceStream_Destroy")                                     \
  X(stream_add_chunk, "PJRT_CopyToDeviceStream_AddChunk")                                  \
  X(stream_total_bytes, "PJRT_CopyToDeviceStream_TotalBytes")                              \
  X(stream_granule_size, "PJRT_CopyToDeviceStream_GranuleSize")                            \
  X(stream_current_bytes, "PJRT_CopyToDeviceStream_CurrentBytes")                          \
  X(topology_create, "PJRT_TopologyDescription_Create")                                    \
  X(topology_destroy, "PJRT_TopologyDescription_Destroy")                                  \
  X(topology_platform_name, "PJRT_TopologyDescription_PlatformName")                       \
  X(topology_platform_version, "PJRT_TopologyDescription_PlatformVersion")                 \
  X(topology_device_descriptions, "PJRT_TopologyDescription_GetDeviceDescriptions")        \
  X(topology_serialize, "PJRT_TopologyDescription_Serialize")                              \
  X(topology_attributes, "PJRT_TopologyDescription_Attributes")                            \
  X(compile, "PJRT_Compile")                                                               \
  X(executable_output_element_types, "PJRT_Executable_OutputElementTypes")                 \
  X(executable_output_dimensions, "PJRT_Executable_OutputDimensions")                      \
  X(buffer_copy_to_memory, "PJRT_Buffer_CopyToMemory")                                     \
  X(client_create_view_of_device_buffer, "PJRT_Client_CreateViewOfDeviceBuffer")           \
  X(executable_fingerprint, "PJRT_Executable_Fingerprint")                                 \
  X(client_topology, "PJRT_Client_TopologyDescription")                                    \
  X(executable_memory_stats, "PJRT_Executable_GetCompiledMemoryStats")                     \
  X(memory_kind_id, "PJRT_Memory_Kind_Id")                                                 \
  X(context_create, "PJRT_ExecuteContext_Create")                                          \
  X(context_destroy, "PJRT_ExecuteContext_Destroy")                                        \
  X(buffer_copy_raw_to_host, "PJRT_Buffer_CopyRawToHost")                                  \
  X(transfer_destroy, "PJRT_AsyncHostToDeviceTransferManager_Destroy")                     \
  X(transfer_transfer_data, "PJRT_AsyncHostToDeviceTransferManager_TransferData")          \
  X(client_create_transfer, "PJRT_Client_CreateBuffersForAsyncHostToDevice")               \
  X(transfer_retrieve_buffer, "PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer")      \
  X(transfer_device, "PJRT_AsyncHostToDeviceTransferManager_Device")                       \
  X(transfer_buffer_count, "PJRT_AsyncHostToDeviceTransferManager_BufferCount")            \
  X(transfer_buffer_size, "PJRT_AsyncHostToDeviceTransferManager_BufferSize")              \
  X(transfer_set_buffer_error, "PJRT_AsyncHostToDeviceTransferManager_SetBufferError")     \
  X(transfer_add_metadata, "PJRT_AsyncHostToDeviceTransferManager_AddMetadata")            \
  X(client_dma_map, "PJRT_Client_DmaMap")                                                  \
  X(client_dma_unmap, "PJRT_Client_DmaUnmap")                                              \
  X(client_create_uninitialized_buffer, "PJRT_Client_CreateUninitializedBuffer")           \
  X(client_update_global_process_info, "PJRT_Client_UpdateGlobalProcessInfo")              \
  X(topology_deserialize, "PJRT_TopologyDescription_Deserialize")                          \
  X(client_create_alias_buffer, "PJRT_Client_CreateAliasBuffer")                           \
  X(client_fulfill_alias_buffer, "PJRT_Client_FulfillAliasBuffer")                         \
  X(loaded_device_assignment, "PJRT_LoadedExecutable_GetDeviceAssignment")                 \
  X(client_create_error_buffer, "PJRT_Client_CreateErrorBuffer")                           \
  X(transfer_transfer_literal, "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral")    \
  X(buffer_copy_raw_to_host_future, "PJRT_Buffer_CopyRawToHostFuture")                     \
  X(device_poison_execution, "PJRT_Device_PoisonExecution")                                \
  X(device_create_async_tracking_event, "PJRT_Device_CreateAsyncTrackingEvent")            \
  X(async_tracking_event_destroy, "PJRT_AsyncTrackingEvent_Destroy")                       \
  X(executable_compile_options, "PJRT_Executable_GetCompileOptions")                       \
  X(buffer_donate_with_control_dependency, "PJRT_Buffer_DonateWithControlDependency")      \
  X(event_create, "PJRT_Event_Create")                                                     \
  X(event_set, "PJRT_Event_Set")                                                           \
  X(device_attributes, "PJRT_Device_GetAttributes")                                        \
  X(client_load, "PJRT_Client_Load")                                                       \
  X(loaded_logical_ids, "PJRT_LoadedExecutable_AddressableDeviceLogicalIds")               \
  X(buffer_bitcast, "PJRT_Buffer_Bitcast")                                                 \
  X(error_payloads, "PJRT_Error_ForEachPayload")                                           \
  X(topology_fingerprint, "PJRT_TopologyDescription_Fingerprint")                          \
  X(executable_parameter_memory_kinds, "PJRT_Executable_ParameterMemoryKinds")             \
  X(device_clear_memory_stats, "PJRT_Device_ClearMemoryStats")                             \
  X(topology_canonical_shape, "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace") \
  X(topology_memory_kind_ids, "PJRT_TopologyDescription_GetMemorySpaceKindIds")

typedef struct ax_pjrt_version {
  AX_PJRT_HEAD;
  int major, minor;
} ax_pjrt_version;

typedef struct ax_pjrt_api {
  AX_PJRT_HEAD;
  ax_pjrt_version version;
#define AX_PJRT_POINTER(name, known_as) void (*name)(ax_pjrt_##name##_args *args);
  AX_PJRT_QUIET(AX_PJRT_POINTER)
#undef AX_PJRT_POINTER
#define AX_PJRT_POINTER(name, known_as) ax_pjrt_error *(*name)(ax_pjrt_##name##_args *args);
  AX_PJRT_FUNCTIONS(AX_PJRT_POINTER)
#undef AX_PJRT_POINTER
} ax_pjrt_api;

#endif
