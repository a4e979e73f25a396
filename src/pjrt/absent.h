/* What the plugin has not: X(function, PJRT's name). */
#ifndef AX_PJRT_ABSENT_H
#define AX_PJRT_ABSENT_H

#define AX_PJRT_ABSENT_FUNCTIONS(X)                                                        \
  X(stream_destroy, "PJRT_CopyToDeviceStream_Destroy")                                     \
  X(stream_add_chunk, "PJRT_CopyToDeviceStream_AddChunk")                                  \
  X(stream_total_bytes, "PJRT_CopyToDeviceStream_TotalBytes")                              \
  X(stream_granule_size, "PJRT_CopyToDeviceStream_GranuleSize")                            \
  X(stream_current_bytes, "PJRT_CopyToDeviceStream_CurrentBytes")                          \
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
  X(client_create_alias_buffer, "PJRT_Client_CreateAliasBuffer")                           \
  X(client_fulfill_alias_buffer, "PJRT_Client_FulfillAliasBuffer")                         \
  X(client_create_error_buffer, "PJRT_Client_CreateErrorBuffer")                           \
  X(transfer_transfer_literal, "PJRT_AsyncHostToDeviceTransferManager_TransferLiteral")    \
  X(buffer_copy_raw_to_host_future, "PJRT_Buffer_CopyRawToHostFuture")                     \
  X(device_poison_execution, "PJRT_Device_PoisonExecution")                                \
  X(device_create_async_tracking_event, "PJRT_Device_CreateAsyncTrackingEvent")            \
  X(async_tracking_event_destroy, "PJRT_AsyncTrackingEvent_Destroy")                       \
  X(buffer_donate_with_control_dependency, "PJRT_Buffer_DonateWithControlDependency")      \
  X(buffer_bitcast, "PJRT_Buffer_Bitcast")                                                 \
  X(device_clear_memory_stats, "PJRT_Device_ClearMemoryStats")                             \
  X(topology_canonical_shape, "PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace") \
  X(topology_memory_kind_ids, "PJRT_TopologyDescription_GetMemorySpaceKindIds")

#endif
