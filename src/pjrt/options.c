/* XLA's compile options, read by protobuf-c (messages.proto), and device assignments, written by it. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "client/messages.pb-c.h"
#include "pjrt/pjrt.h"

typedef AxPjrtProto__DeviceAssignmentProto assignment_message;
typedef AxPjrtProto__ComputationDevice computation_message;

/* context: set where there is no memory, which protobuf-c does not tell from bytes that are no message. */
static void *allocate(void *context, size_t bytes) {
  void *memory = ax_alloc(bytes);
  if (memory == NULL) *(bool *)context = true;
  return memory;
}
static void give_back(void *context, void *memory) { (void)context, ax_free(memory); }

/* The ids of all replicas' partitions; of a table that is not replicas by partitions nothing is taken. */
static ax_pjrt_error *read_assignment(const assignment_message *from, ax_pjrt_options *out) {
  const int64_t replicas = from->replica_count, partitions = from->computation_count;
  if (replicas != out->replicas || partitions != out->partitions || from->n_computation_devices != (size_t)partitions)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the device assignment is %" PRId64 " x %" PRId64 ", and there are %" PRId64
                        " replicas of %" PRId64 " partitions", replicas, partitions, out->replicas, out->partitions);
  out->devices = ax_alloc((size_t)(replicas * partitions) * sizeof out->devices[0]);
  if (out->devices == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a device assignment");
  for (int64_t p = 0; p < partitions; p++) {
    const computation_message *column = from->computation_devices[p];
    if (column->n_replica_device_ids != (size_t)replicas)
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the device assignment lacks replicas of partition %" PRId64, p);
    for (int64_t r = 0; r < replicas; r++) out->devices[r * partitions + p] = column->replica_device_ids[r];
  }
  return NULL;
}

static ax_pjrt_error *read_build(const AxPjrtProto__ExecutableBuildOptionsProto *from, ax_pjrt_options *out) {
  enum { most = 65536 };
  out->replicas = from->num_replicas > 0 ? from->num_replicas : 1;
  out->partitions = from->num_partitions > 0 ? from->num_partitions : 1;
  if (out->replicas > most || out->partitions > most || out->replicas * out->partitions > most)
    return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "%" PRId64 " replicas of %" PRId64 " partitions are too many", out->replicas,
                        out->partitions);
  return from->device_assignment != NULL ? read_assignment(from->device_assignment, out) : NULL;
}

/* Options of XLA's compiler mean nothing here, but one that XLA has not is a slip of the caller's, as is a text for a truth value: of the
   options that scripts set most the kind is known. */
static ax_pjrt_error *check_override(const AxPjrtProto__CompileOptionsProto__EnvOptionOverridesEntry *entry) {
  static const char *const truths[] = {"xla_embed_ir_in_executable", "xla_allow_excess_precision", "xla_cpu_enable_fast_math",
                                       "xla_cpu_enable_fast_min_max", "xla_cpu_enable_concurrency_optimized_scheduler"};
  const AxPjrtProto__OptionOverrideProto *value = entry->value;
  const char *text = value != NULL && value->value_case == AX_PJRT_PROTO__OPTION_OVERRIDE_PROTO__VALUE_STRING_FIELD ? value->string_field : NULL;
  if (strncmp(entry->key, "xla_", 4) != 0) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "No such compile option: '%s'", entry->key);
  for (size_t i = 0; text != NULL && i < sizeof truths / sizeof truths[0]; i++)
    if (strcmp(entry->key, truths[i]) == 0 && strcasecmp(text, "true") != 0 && strcasecmp(text, "false") != 0)
      return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "While setting option %s, '%s' is not a valid bool value.", entry->key, text);
  return NULL;
}

ax_pjrt_error *ax_pjrt_options_read(const char *bytes, size_t count, ax_pjrt_options *out) {
  bool lacking = false;
  ProtobufCAllocator allocator = {allocate, give_back, &lacking};
  *out = (ax_pjrt_options){.replicas = 1, .partitions = 1};
  AxPjrtProto__CompileOptionsProto *read = ax_pjrt_proto__compile_options_proto__unpack(&allocator, count, (const uint8_t *)bytes);
  if (read == NULL && lacking) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for compile options");
  if (read == NULL) return ax_pjrt_fail(AX_PJRT_INVALID_ARGUMENT, "the compile options are no CompileOptionsProto");
  ax_pjrt_error *error = NULL;
  if (read->parameter_is_tupled_arguments) error = ax_pjrt_fail(AX_PJRT_UNIMPLEMENTED, "arguments in one tuple");
  if (error == NULL && read->executable_build_options != NULL) error = read_build(read->executable_build_options, out);
  for (size_t i = 0; error == NULL && i < read->n_env_option_overrides; i++) error = check_override(read->env_option_overrides[i]);
  out->portable = read->compile_portable_executable;
  ax_pjrt_proto__compile_options_proto__free_unpacked(read, &allocator);
  if (error != NULL) ax_pjrt_options_free(out);
  return error;
}

void ax_pjrt_options_free(ax_pjrt_options *options) {
  ax_free(options->devices);
  options->devices = NULL;
}

/* --- A device assignment as bytes --- */

ax_pjrt_error *ax_pjrt_do_loaded_device_assignment(ax_pjrt_loaded_device_assignment_args *args) {
  const ax_pjrt_options *options = &args->of->executable->options;
  const size_t replicas = (size_t)options->replicas, partitions = (size_t)options->partitions;
  if (args->of->devices == NULL) { /* a portable executable has none, which no bytes say */
    ax_pjrt_held *none = ax_pjrt_held_of(0);
    if (none == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a device assignment");
    args->bytes = none->bytes, args->count = 0;
    args->held = none, args->release = ax_pjrt_held_release;
    return NULL;
  }
  assignment_message message = AX_PJRT_PROTO__DEVICE_ASSIGNMENT_PROTO__INIT;
  char *memory = ax_alloc(partitions * (sizeof(computation_message) + sizeof(void *) + replicas * sizeof(int64_t)) + 1);
  if (memory == NULL) return ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a device assignment");
  int64_t *ids = (int64_t *)(void *)memory;
  computation_message *columns = (computation_message *)(void *)(ids + partitions * replicas);
  computation_message **list = (computation_message **)(void *)(columns + partitions);
  for (size_t p = 0; p < partitions; p++) {
    ax_pjrt_proto__computation_device__init(&columns[p]);
    columns[p].n_replica_device_ids = replicas;
    columns[p].replica_device_ids = &ids[p * replicas];
    for (size_t r = 0; r < replicas; r++) {
      const size_t at = r * partitions + p;
      ids[p * replicas + r] = args->of->devices[at]->description.id;
    }
    list[p] = &columns[p];
  }
  message.replica_count = (int32_t)replicas, message.computation_count = (int32_t)partitions;
  message.n_computation_devices = partitions, message.computation_devices = list;
  const size_t count = ax_pjrt_proto__device_assignment_proto__get_packed_size(&message);
  ax_pjrt_held *held = ax_pjrt_held_of(count);
  if (held != NULL) {
    held->count = ax_pjrt_proto__device_assignment_proto__pack(&message, (uint8_t *)held->bytes);
    args->bytes = held->bytes, args->count = held->count;
    args->held = held, args->release = ax_pjrt_held_release;
  }
  ax_free(memory);
  return held != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a device assignment");
}
