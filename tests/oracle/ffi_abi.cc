// What src/ffi/abi.h says of XLA's interface, held against the header that jaxlib brings: it compiles, or says what differs.
#include <cstddef>

#include "xla/ffi/api/c_api.h"

extern "C" {
#include "ffi/abi.h"
}

#define SAME(a, b) static_assert((a) == (b), #a " is not " #b)
#define SIZE(ours, theirs) SAME(sizeof(ours), sizeof(theirs))
#define FIELD(ours, field, theirs, name) SAME(offsetof(ours, field), offsetof(theirs, name))

SAME(AX_FFI_MAJOR, XLA_FFI_API_MAJOR);
SAME(AX_FFI_MINOR, XLA_FFI_API_MINOR);
SAME(AX_FFI_METADATA, static_cast<int>(XLA_FFI_Extension_Metadata));
SAME(AX_FFI_UNAUTHENTICATED, static_cast<int>(XLA_FFI_Error_Code_UNAUTHENTICATED));
SAME(AX_FFI_RESOURCE_EXHAUSTED, static_cast<int>(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED));
SAME(AX_FFI_BUFFER, static_cast<int>(XLA_FFI_ArgType_BUFFER));
SAME(AX_FFI_BUFFER, static_cast<int>(XLA_FFI_RetType_BUFFER));
SAME(AX_FFI_ATTRIBUTE_ARRAY, static_cast<int>(XLA_FFI_AttrType_ARRAY));
SAME(AX_FFI_ATTRIBUTE_DICTIONARY, static_cast<int>(XLA_FFI_AttrType_DICTIONARY));
SAME(AX_FFI_ATTRIBUTE_SCALAR, static_cast<int>(XLA_FFI_AttrType_SCALAR));
SAME(AX_FFI_ATTRIBUTE_STRING, static_cast<int>(XLA_FFI_AttrType_STRING));
SAME(AX_FFI_INSTANTIATE, static_cast<int>(XLA_FFI_ExecutionStage_INSTANTIATE));
SAME(AX_FFI_PREPARE, static_cast<int>(XLA_FFI_ExecutionStage_PREPARE));
SAME(AX_FFI_INITIALIZE, static_cast<int>(XLA_FFI_ExecutionStage_INITIALIZE));
SAME(AX_FFI_EXECUTE, static_cast<int>(XLA_FFI_ExecutionStage_EXECUTE));
SIZE(ax_ffi_extension, XLA_FFI_Extension_Base);
FIELD(ax_ffi_extension, next, XLA_FFI_Extension_Base, next);
SIZE(ax_ffi_version, XLA_FFI_Api_Version);
FIELD(ax_ffi_version, minor, XLA_FFI_Api_Version, minor_version);
SIZE(ax_ffi_bytes, XLA_FFI_ByteSpan);
FIELD(ax_ffi_bytes, count, XLA_FFI_ByteSpan, len);
SIZE(ax_ffi_scalar, XLA_FFI_Scalar);
FIELD(ax_ffi_scalar, data, XLA_FFI_Scalar, value);
SIZE(ax_ffi_array, XLA_FFI_Array);
FIELD(ax_ffi_array, count, XLA_FFI_Array, size);
FIELD(ax_ffi_array, data, XLA_FFI_Array, data);
SIZE(ax_ffi_buffer, XLA_FFI_Buffer);
SAME(sizeof(ax_ffi_buffer), XLA_FFI_Buffer_STRUCT_SIZE);
FIELD(ax_ffi_buffer, dtype, XLA_FFI_Buffer, dtype);
FIELD(ax_ffi_buffer, data, XLA_FFI_Buffer, data);
FIELD(ax_ffi_buffer, rank, XLA_FFI_Buffer, rank);
FIELD(ax_ffi_buffer, dims, XLA_FFI_Buffer, dims);
SIZE(ax_ffi_values, XLA_FFI_Args);
SIZE(ax_ffi_values, XLA_FFI_Rets);
FIELD(ax_ffi_values, count, XLA_FFI_Args, size);
FIELD(ax_ffi_values, kinds, XLA_FFI_Args, types);
FIELD(ax_ffi_values, values, XLA_FFI_Args, args);
FIELD(ax_ffi_values, values, XLA_FFI_Rets, rets);
SIZE(ax_ffi_attributes, XLA_FFI_Attrs);
FIELD(ax_ffi_attributes, kinds, XLA_FFI_Attrs, types);
FIELD(ax_ffi_attributes, names, XLA_FFI_Attrs, names);
FIELD(ax_ffi_attributes, values, XLA_FFI_Attrs, attrs);
SIZE(ax_ffi_frame, XLA_FFI_CallFrame);
SAME(static_cast<int>(AX_FFI_FRAME_BYTES), static_cast<int>(XLA_FFI_CallFrame_STRUCT_SIZE));
FIELD(ax_ffi_frame, api, XLA_FFI_CallFrame, api);
FIELD(ax_ffi_frame, context, XLA_FFI_CallFrame, ctx);
FIELD(ax_ffi_frame, stage, XLA_FFI_CallFrame, stage);
FIELD(ax_ffi_frame, in, XLA_FFI_CallFrame, args);
FIELD(ax_ffi_frame, out, XLA_FFI_CallFrame, rets);
FIELD(ax_ffi_frame, attributes, XLA_FFI_CallFrame, attrs);
FIELD(ax_ffi_frame, future, XLA_FFI_CallFrame, future);
SIZE(ax_ffi_type_id, XLA_FFI_TypeId);
SIZE(ax_ffi_type_info, XLA_FFI_TypeInfo);
FIELD(ax_ffi_type_info, deleter, XLA_FFI_TypeInfo, deleter);
SIZE(ax_ffi_metadata, XLA_FFI_Metadata);
SAME(static_cast<int>(AX_FFI_METADATA_BYTES), static_cast<int>(XLA_FFI_Metadata_STRUCT_SIZE));
FIELD(ax_ffi_metadata, version, XLA_FFI_Metadata, api_version);
FIELD(ax_ffi_metadata, traits, XLA_FFI_Metadata, traits);
FIELD(ax_ffi_metadata, state_type, XLA_FFI_Metadata, state_type_id);
SIZE(ax_ffi_metadata_extension, XLA_FFI_Metadata_Extension);
FIELD(ax_ffi_metadata_extension, metadata, XLA_FFI_Metadata_Extension, metadata);
SIZE(ax_ffi_error_create, XLA_FFI_Error_Create_Args);
FIELD(ax_ffi_error_create, code, XLA_FFI_Error_Create_Args, errc);
SIZE(ax_ffi_error_message, XLA_FFI_Error_GetMessage_Args);
FIELD(ax_ffi_error_message, message, XLA_FFI_Error_GetMessage_Args, message);
SIZE(ax_ffi_error_destroy, XLA_FFI_Error_Destroy_Args);
SIZE(ax_ffi_register, XLA_FFI_Handler_Register_Args);
FIELD(ax_ffi_register, stages, XLA_FFI_Handler_Register_Args, bundle);
FIELD(ax_ffi_register, traits, XLA_FFI_Handler_Register_Args, traits);
SIZE(ax_ffi_stream, XLA_FFI_Stream_Get_Args);
SIZE(ax_ffi_type_register, XLA_FFI_Type_Register_Args);
FIELD(ax_ffi_type_register, id, XLA_FFI_Type_Register_Args, type_id);
FIELD(ax_ffi_type_register, info, XLA_FFI_Type_Register_Args, type_info);
SIZE(ax_ffi_user_data, XLA_FFI_ExecutionContext_Get_Args);
FIELD(ax_ffi_user_data, data, XLA_FFI_ExecutionContext_Get_Args, data);
SIZE(ax_ffi_state, XLA_FFI_State_Set_Args);
SIZE(ax_ffi_state, XLA_FFI_State_Get_Args);
FIELD(ax_ffi_state, stage, XLA_FFI_State_Get_Args, stage);
FIELD(ax_ffi_state, id, XLA_FFI_State_Set_Args, type_id);
FIELD(ax_ffi_state, state, XLA_FFI_State_Set_Args, state);
SIZE(ax_ffi_allocate, XLA_FFI_DeviceMemory_Allocate_Args);
FIELD(ax_ffi_allocate, bytes, XLA_FFI_DeviceMemory_Allocate_Args, size);
FIELD(ax_ffi_allocate, alignment, XLA_FFI_DeviceMemory_Allocate_Args, alignment);
FIELD(ax_ffi_allocate, data, XLA_FFI_DeviceMemory_Allocate_Args, data);
SIZE(ax_ffi_release, XLA_FFI_DeviceMemory_Free_Args);
FIELD(ax_ffi_release, data, XLA_FFI_DeviceMemory_Free_Args, data);
SIZE(ax_ffi_schedule, XLA_FFI_ThreadPool_Schedule_Args);
FIELD(ax_ffi_schedule, task, XLA_FFI_ThreadPool_Schedule_Args, task);
FIELD(ax_ffi_schedule, data, XLA_FFI_ThreadPool_Schedule_Args, data);
SIZE(ax_ffi_threads, XLA_FFI_ThreadPool_NumThreads_Args);
FIELD(ax_ffi_threads, count, XLA_FFI_ThreadPool_NumThreads_Args, num_threads);
SIZE(ax_ffi_future_create, XLA_FFI_Future_Create_Args);
SAME(static_cast<int>(AX_FFI_FUTURE_CREATE_BYTES), static_cast<int>(XLA_FFI_Future_Create_Args_STRUCT_SIZE));
SIZE(ax_ffi_future_available, XLA_FFI_Future_SetAvailable_Args);
SIZE(ax_ffi_future_error, XLA_FFI_Future_SetError_Args);
FIELD(ax_ffi_future_error, error, XLA_FFI_Future_SetError_Args, error);
SIZE(ax_ffi_run_id, XLA_FFI_RunId_Get_Args);
SIZE(ax_ffi_device, XLA_FFI_DeviceOrdinal_Get_Args);
FIELD(ax_ffi_device, device, XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
SIZE(ax_ffi_api, XLA_FFI_Api);
FIELD(ax_ffi_api, internal, XLA_FFI_Api, internal_api);
#define FUNCTION(ours, theirs) FIELD(ax_ffi_api, ours, XLA_FFI_Api, XLA_FFI_##theirs)
FUNCTION(error_create, Error_Create);
FUNCTION(error_message, Error_GetMessage);
FUNCTION(error_destroy, Error_Destroy);
FUNCTION(register_handler, Handler_Register);
FUNCTION(stream, Stream_Get);
FUNCTION(register_type, Type_Register);
FUNCTION(user_data, ExecutionContext_Get);
FUNCTION(state_set, State_Set);
FUNCTION(state_get, State_Get);
FUNCTION(allocate, DeviceMemory_Allocate);
FUNCTION(release, DeviceMemory_Free);
FUNCTION(schedule, ThreadPool_Schedule);
FUNCTION(threads, ThreadPool_NumThreads);
FUNCTION(future_create, Future_Create);
FUNCTION(future_available, Future_SetAvailable);
FUNCTION(future_error, Future_SetError);
FUNCTION(run_id, RunId_Get);
FUNCTION(device, DeviceOrdinal_Get);
