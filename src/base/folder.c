/* All files are opened relative to the folder's descriptor, so that the folder that was checked is the one that is used. */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { only_mine = 0600, others_write = 022, an_hour = 3600 };

/* --- The folder --- */

static void make_folders(const char *path) {
  char part[PATH_MAX];
  const size_t length = strlen(path);
  if (length >= sizeof part) return;
  for (size_t i = 1; i <= length; i++) {
    if (path[i] != '/' && path[i] != '\0') continue;
    memcpy(part, path, i);
    part[i] = '\0';
    (void)mkdir(part, 0700); /* whether it is there now is seen when it is opened */
  }
}

ax_status ax_folder_open(const char *path, ax_folder *out) {
  struct stat s;
  const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  out->fd = open(path, flags);
  if (out->fd < 0 && errno == ENOENT) {
    make_folders(path);
    out->fd = open(path, flags);
  }
  if (out->fd < 0) return ax_error(AX_INVALID_ARGUMENT, "%s: %s", path, strerror(errno));
  const char *why = fstat(out->fd, &s) != 0                ? "it cannot be looked at"
                    : s.st_uid != geteuid()                ? "it belongs to another user"
                    : (s.st_mode & others_write) != 0      ? "others can write in it"
                                                           : NULL;
  if (why == NULL) return AX_OK;
  ax_folder_close(out);
  return ax_error(AX_INVALID_ARGUMENT, "%s: %s", path, why);
}

void ax_folder_close(ax_folder *folder) {
  if (folder->fd >= 0) close(folder->fd);
  folder->fd = -1;
}

/* --- Files --- */

/* O_NONBLOCK: a pipe of that name must not keep us. */
static int open_mine(const ax_folder *folder, const char *name, int flags, struct stat *s) {
  const int fd = openat(folder->fd, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, only_mine);
  if (fd < 0) return -1;
  if (fstat(fd, s) == 0 && S_ISREG(s->st_mode) && s->st_uid == geteuid() && (s->st_mode & others_write) == 0) return fd;
  close(fd);
  return -1;
}

static size_t read_all(int fd, unsigned char *data, size_t bytes) {
  size_t done = 0;
  while (done < bytes) {
    const ssize_t some = read(fd, data + done, bytes - done);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    done += (size_t)some;
  }
  return done;
}

void *ax_folder_read(const ax_folder *folder, const char *name, size_t most, bool use, size_t *bytes) {
  struct stat s;
  const int fd = open_mine(folder, name, O_RDONLY, &s);
  if (fd < 0) return NULL;
  *bytes = (size_t)s.st_size;
  void *data = s.st_size > 0 && (uint64_t)s.st_size <= most ? ax_alloc(*bytes) : NULL;
  if (data != NULL && read_all(fd, data, *bytes) != *bytes) {
    ax_free(data);
    data = NULL;
  }
  if (data != NULL && use && time(NULL) - s.st_mtime > an_hour) (void)futimens(fd, NULL);
  close(fd);
  return data;
}

static bool write_all(int fd, const void *data, size_t bytes) {
  const unsigned char *from = data;
  while (bytes > 0) {
    const ssize_t some = write(fd, from, bytes);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    from += some;
    bytes -= (size_t)some;
  }
  return true;
}

/* A name that no other process, and no other runtime of this one, has. */
static void temporary_name(char *name, size_t bytes) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t state = (uint64_t)now.tv_sec * 1000000007u ^ (uint64_t)now.tv_nsec << 20 ^ (uint64_t)(uintptr_t)name;
  snprintf(name, bytes, AX_FOLDER_TEMPORARY "%ld-%016llx", (long)getpid(), (unsigned long long)ax_next_random(&state));
}

bool ax_folder_write(const ax_folder *folder, const char *name, const struct iovec *parts, int count) {
  char temporary[64];
  uint64_t bytes = 0;
  for (int i = 0; i < count; i++) bytes += parts[i].iov_len;
  if (!ax_file_may_hold(bytes)) return false;
  temporary_name(temporary, sizeof temporary);
  const int fd = openat(folder->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, only_mine);
  if (fd < 0) return false;
  bool written = true;
  for (int i = 0; i < count && written; i++) written = write_all(fd, parts[i].iov_base, parts[i].iov_len);
  written = close(fd) == 0 && written;
  written = written && renameat(folder->fd, temporary, folder->fd, name) == 0;
  if (!written) ax_folder_remove(folder, temporary);
  return written;
}

bool ax_folder_append(const ax_folder *folder, const char *name, const void *data, size_t bytes) {
  struct stat s;
  const int fd = open_mine(folder, name, O_WRONLY | O_APPEND | O_CREAT, &s);
  if (fd < 0) return false;
  const bool written = ax_file_may_hold((uint64_t)s.st_size + bytes) && write(fd, data, bytes) == (ssize_t)bytes;
  return close(fd) == 0 && written;
}

void ax_folder_remove(const ax_folder *folder, const char *name) { (void)unlinkat(folder->fd, name, 0); }

/* --- Locks --- */

int ax_folder_lock(const ax_folder *folder, const char *name) {
  struct stat s;
  const int fd = open_mine(folder, name, O_WRONLY | O_CREAT, &s);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

void ax_folder_unlock(int lock) { close(lock); }

/* --- All files --- */

ax_status ax_folder_list(const ax_folder *folder, ax_folder_file **files, uint32_t *count) {
  uint32_t capacity = 0;
  ax_status status = AX_OK;
  *files = NULL;
  *count = 0;
  const int fd = openat(folder->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
  if (all == NULL) {
    if (fd >= 0) close(fd);
    return ax_error(AX_INTERNAL, "a folder cannot be listed: %s", strerror(errno));
  }
  for (struct dirent *entry = readdir(all); entry != NULL && status == AX_OK; entry = readdir(all)) {
    struct stat s;
    if (strlen(entry->d_name) >= sizeof files[0][0].name) continue;
    if (fstatat(folder->fd, entry->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(s.st_mode)) continue;
    status = ax_grow(files, sizeof files[0][0], *count, 1, &capacity);
    if (status != AX_OK) break;
    ax_folder_file *file = &(*files)[(*count)++];
    *file = (ax_folder_file){.bytes = (uint64_t)s.st_size, .seconds = s.st_mtim.tv_sec, .nanoseconds = s.st_mtim.tv_nsec};
    strcpy(file->name, entry->d_name);
  }
  closedir(all);
  if (status != AX_OK) {
    ax_free(*files);
    *files = NULL;
    *count = 0;
  }
  return status;
}
