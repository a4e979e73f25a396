#include "processes/watch.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "machine/system.h"

struct ax_node_watch {
  uint32_t count;
  struct pollfd *files; /* in one allocation with the rest; fd -1: not watched any more */
  uint32_t *processes;
  int32_t *pids;
};

ax_node_watch_name ax_node_watch_name_of_me(uint32_t process) {
  struct stat space;
  const bool known = stat("/proc/self/ns/pid", &space) == 0;
  return (ax_node_watch_name){.space = known ? space.st_ino : 0, .pid = getpid(), .process = process};
}

static int open_process(int32_t pid) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, pid, 0);
#else
  (void)pid;
  return -1;
#endif
}

static void add(ax_node_watch *watch, const ax_node_watch_name *name) {
  const int fd = open_process(name->pid);
  if (fd < 0) return;
  watch->files[watch->count] = (struct pollfd){.fd = fd, .events = POLLIN};
  watch->pids[watch->count] = name->pid;
  watch->processes[watch->count++] = name->process;
}

ax_status ax_node_watch_create(const ax_node_watch_name *all, uint32_t count, uint32_t me, ax_node_watch **out) {
  const uint64_t space = ax_node_watch_name_of_me(me).space;
  const size_t bytes = sizeof(ax_node_watch) + count * (sizeof(struct pollfd) + 2 * sizeof(uint32_t));
  ax_node_watch *watch = *out = ax_alloc(bytes);
  if (watch == NULL) return ax_out_of_memory(bytes);
  watch->count = 0;
  watch->files = (struct pollfd *)(watch + 1);
  watch->processes = (uint32_t *)(watch->files + count);
  watch->pids = (int32_t *)(watch->processes + count);
  for (uint32_t i = 0; i < count; i++)
    if (all[i].process != me && all[i].space == space && space != 0) add(watch, &all[i]);
  return AX_OK;
}

static void stop_watching(ax_node_watch *watch, uint32_t i) {
  if (watch->files[i].fd >= 0) close(watch->files[i].fd);
  watch->files[i].fd = -1;
}

void ax_node_watch_destroy(ax_node_watch *watch) {
  if (watch == NULL) return;
  for (uint32_t i = 0; i < watch->count; i++) stop_watching(watch, i);
  ax_free(watch);
}

uint32_t ax_node_watch_ended(ax_node_watch *watch) {
  if (watch->count == 0 || poll(watch->files, watch->count, 0) <= 0) return AX_NONE;
  for (uint32_t i = 0; i < watch->count; i++) {
    if (watch->files[i].fd < 0 || watch->files[i].revents == 0) continue;
    stop_watching(watch, i);
    return watch->processes[i];
  }
  return AX_NONE;
}

int32_t ax_node_watch_pid(const ax_node_watch *watch, uint32_t process, bool *stopped) {
  *stopped = false;
  for (uint32_t i = 0; i < watch->count; i++) {
    if (watch->files[i].fd < 0 || watch->processes[i] != process) continue;
    ax_system_process found;
    *stopped = ax_system_find_process("", watch->pids[i], &found) && found.stopped;
    return watch->pids[i];
  }
  return 0;
}
