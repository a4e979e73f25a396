/* What sub-commands do in several processes: the option, the table of them, and a number that all take from the first. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "array/runtime.h"
#include "axle/processes.h"
#include "cli.h"
#include "machine/machine.h"
#include "machine/system.h"
#include "processes/collect.h"

ax_status take_processes(const char *argument, ax_processes_by *out) {
  const bool mpi = strcmp(argument, "mpi") == 0;
  if (!mpi && strcmp(argument, "one") != 0)
    return ax_error(AX_INVALID_ARGUMENT, "--processes: expected mpi or one, got \"%s\"", argument);
  *out = mpi ? AX_MPI : AX_ONE_PROCESS;
  return AX_OK;
}

double memory_gibibytes(int pages) { return (double)sysconf(pages) * (double)sysconf(_SC_PAGESIZE) / (1 << 30); }

static void describe(const void *context, ax_text *text) { ax_text_add(text, "%s", (const char *)context); }

/* out: by process; ax_collected_deinit, and ax_free. */
static ax_status collect(const ax_runtime *runtime, const char *what, uint32_t root, const void *data, size_t bytes,
                         ax_collected **out) {
  ax_processes *processes = runtime->executor.processes;
  const ax_doing doing = {ax_hash_bytes(15, what, strlen(what)) | 1, describe, what, what};
  const uint32_t count = ax_process_count(runtime);
  *out = ax_calloc(count, sizeof **out);
  if (*out == NULL) return ax_agree(processes, &(ax_doing){0, describe, what, what}, ax_out_of_memory(count * sizeof **out));
  ax_status status = ax_collect_bytes(processes, &doing, AX_OK, root, data, bytes, *out);
  if (status == AX_OK) return AX_OK;
  ax_free(*out);
  *out = NULL;
  return status;
}

ax_status processes_take_first(const ax_runtime *runtime, int64_t *number) {
  ax_collected *numbers;
  if (ax_process_count(runtime) == 1) return AX_OK;
  AX_TRY(collect(runtime, "takes a number of process 0", AX_NONE, number, sizeof *number, &numbers));
  memcpy(number, numbers[0].data, sizeof *number);
  ax_collected_deinit(numbers, ax_process_count(runtime));
  ax_free(numbers);
  return AX_OK;
}

/* --- The table --- */

/* Adds this process's devices of the mesh, as "0 to 3, 8". */
static ax_status add_devices(ax_text *text, const ax_runtime *runtime, const ax_mesh *mesh) {
  const int64_t devices = ax_mesh_devices(mesh);
  const uint32_t own = ax_process_index(runtime);
  int64_t first = -1;
  bool any = false;
  for (int64_t d = 0; d <= devices; d++) {
    uint32_t process = own + 1;
    if (d < devices) AX_TRY(ax_runtime_process_of(runtime, mesh, d, &process));
    if (process == own && first < 0) first = d;
    if (process == own || first < 0) continue;
    ax_text_add(text, any ? ", %lld" : "%lld", (long long)first);
    if (d - first > 1) ax_text_add(text, " to %lld", (long long)(d - 1));
    any = true;
    first = -1;
  }
  ax_text_add(text, any ? "" : "none");
  return AX_OK;
}

static const char columns[] = "  %-7s  %-16s %7s %10s %8s  %-12s %s\n";

static ax_status own_line(const ax_runtime *runtime, const ax_mesh *mesh, ax_text *text) {
  char host[256] = "?", model[256] = "", number[16], threads[16], memory[32], left[32];
  ax_text devices = {0};
  ax_status status = mesh != NULL ? add_devices(&devices, runtime, mesh) : AX_OK;
  (void)gethostname(host, sizeof host - 1);
  ax_system_model("", model, sizeof model);
  snprintf(number, sizeof number, "%u", ax_process_index(runtime));
  snprintf(threads, sizeof threads, "%u", runtime->options.workers);
  snprintf(memory, sizeof memory, "%.1f GiB", memory_gibibytes(_SC_PHYS_PAGES));
  snprintf(left, sizeof left, "%.1f GiB", memory_gibibytes(_SC_AVPHYS_PAGES));
  ax_text_add(text, columns, number, host, threads, memory, left, devices.data != NULL ? devices.data : "", model);
  ax_text_deinit(&devices);
  return status;
}

ax_status processes_print(const ax_runtime *runtime, const ax_mesh *mesh) {
  ax_text line = {0};
  ax_collected *lines;
  char *own = NULL;
  const uint32_t count = ax_process_count(runtime);
  ax_status status = own_line(runtime, mesh, &line);
  if (status == AX_OK) status = ax_text_finish(&line, &own);
  else ax_text_deinit(&line);
  if (status != AX_OK) return status;
  if (count > 1) status = collect(runtime, "lists processes", 0, own, strlen(own), &lines);
  if (status == AX_OK && ax_process_index(runtime) == 0) {
    printf("processes  %u\n", count);
    printf(columns, "process", "machine", "threads", "memory", "free", mesh != NULL ? "devices" : "", "processor");
    for (uint32_t p = 0; p < count; p++) fputs(count > 1 ? lines[p].data : own, stdout);
  }
  if (status == AX_OK && count > 1) {
    ax_collected_deinit(lines, count);
    ax_free(lines);
  }
  ax_string_free(own);
  return status;
}
