/* The code cache on disk: what a second compiler finds there, whatever happened to the files, to the folder and to the processes
   meanwhile. A damaged cache may cost a compile, never a result. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jit/jit.h"
#include "support/cmocka.h"

enum { elems = 37, most_kernels = 64, most_path = 512 };

static char folder[most_path];

/* --- Kernels by number: y = exp(x) * number --- */

static const ax_loop_kernel *make_kernel(ax_arena *arena, int number) {
  static const ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  const int64_t dims[] = {elems};
  const float by = (float)number;
  int64_t bits = 0;
  memcpy(&bits, &by, sizeof by);
  ax_loop_kernel *k = ax_kernel_create(arena, 1, 0, dims);
  ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), at);
  x = ax_kernel_op(k, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE);
  x = ax_kernel_op(k, AX_SCALAR_MUL, AX_F32, x, ax_kernel_const(k, AX_F32, bits), AX_NONE);
  ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), at, x, AX_SCALAR_NONE);
  return k;
}

static bool runs_right(ax_kernel_code code, int number) {
  float x[elems] = {0}, y[elems];
  code((void *[]){x, y}, NULL, 0, elems);
  for (int i = 0; i < elems; i++)
    if (y[i] != (float)number) return false;
  return true;
}

/* The kernels from..to - 1 by a new compiler, as one call; what it counted. All of it is checked. */
static bool try_compile(const ax_jit_options *options, int from, int to, ax_jit_counts *counts) {
  ax_compiler *jit;
  ax_arena arena = {0};
  const ax_loop_kernel *kernels[most_kernels];
  ax_kernel_code code[most_kernels];
  for (int i = from; i < to; i++) kernels[i - from] = make_kernel(&arena, i);
  if (ax_jit_create(options, &jit) != AX_OK) return false;
  bool right = ax_jit_compile(jit, kernels, (uint32_t)(to - from), code) == AX_OK;
  for (int i = from; i < to && right; i++) right = runs_right(code[i - from], i);
  *counts = ax_jit_count(jit);
  ax_jit_destroy(jit);
  ax_arena_deinit(&arena);
  return right;
}

static ax_jit_counts compile(int from, int to) {
  ax_jit_counts counts;
  assert_true(try_compile(&(ax_jit_options){.folder = folder}, from, to, &counts));
  assert_int_equal(counts.compiled + counts.loaded, to - from);
  return counts;
}

/* --- The folder --- */

static bool is_batch(const char *name) { return strlen(name) == 32; }

/* How many batches there are; their bytes; the path of the last that was come to. */
static int batches(uint64_t *bytes, char *path) {
  int count = 0;
  DIR *all = opendir(folder);
  *bytes = 0;
  for (struct dirent *entry = all != NULL ? readdir(all) : NULL; entry != NULL; entry = readdir(all)) {
    struct stat s;
    char file[most_path + 300];
    snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
    if (!is_batch(entry->d_name) || lstat(file, &s) != 0) continue;
    count++;
    *bytes += (uint64_t)s.st_size;
    if (path != NULL) snprintf(path, most_path, "%.500s", file);
  }
  if (all != NULL) closedir(all);
  return count;
}

static void empty_folder(void) {
  DIR *all = opendir(folder);
  for (struct dirent *entry = all != NULL ? readdir(all) : NULL; entry != NULL; entry = readdir(all)) {
    char file[most_path + 300];
    snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
    (void)unlink(file);
  }
  if (all != NULL) closedir(all);
  (void)rmdir(folder);
}

static int fresh(void **state) {
  (void)state;
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/axle_kept_%ld/a/b", temporary != NULL ? temporary : "/tmp", (long)getpid());
  return 0;
}

static int drop(void **state) {
  (void)state;
  fresh(NULL);
  empty_folder();
  for (int i = 0; i < 2; i++) {
    *strrchr(folder, '/') = '\0';
    (void)rmdir(folder);
  }
  return 0;
}

static size_t read_file(const char *path, unsigned char *data, size_t most) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t bytes = fread(data, 1, most, file);
  assert_true(bytes < most);
  fclose(file);
  return bytes;
}

static void write_file(const char *path, const unsigned char *data, size_t bytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, bytes, file), bytes);
  fclose(file);
}

/* --- What is found --- */

static void second_start(void **state) {
  (void)state;
  uint64_t bytes;
  struct stat s;
  char path[most_path];
  assert_int_equal(compile(1, 9).compiled, 8);
  assert_int_equal(compile(1, 9).loaded, 8);
  assert_int_equal(batches(&bytes, path), 1);
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0600);
  assert_int_equal(stat(folder, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0700);
}

/* Programs that share some of their kernels compile the others only; batches are put together by the index. */
static void kernels_of_several_batches(void **state) {
  (void)state;
  assert_int_equal(compile(1, 5).compiled, 4);
  assert_int_equal(compile(3, 9).compiled, 4);
  assert_int_equal(compile(1, 9).loaded, 8);
  assert_int_equal(compile(2, 4).loaded, 2);
  assert_int_equal(compile(8, 10).compiled, 1);
}

static void of_another_machine(void **state) {
  (void)state;
  ax_jit_counts counts;
  assert_int_equal(compile(1, 5).compiled, 4);
  assert_true(try_compile(&(ax_jit_options){.folder = folder, .processor = "another"}, 1, 5, &counts));
  assert_int_equal(counts.compiled, 4);
  assert_true(try_compile(&(ax_jit_options){.folder = folder, .most_vector_bytes = 16}, 1, 5, &counts));
  assert_int_equal(counts.compiled, 4);
  assert_true(try_compile(&(ax_jit_options){.folder = folder, .processor = "another"}, 1, 5, &counts));
  assert_int_equal(counts.loaded, 4);
  assert_int_equal(compile(1, 5).loaded, 4);
}

static void off(void **state) {
  (void)state;
  ax_jit_counts counts;
  struct stat s;
  assert_true(try_compile(NULL, 1, 3, &counts));
  assert_int_equal(counts.compiled, 2);
  assert_true(stat(folder, &s) != 0);
}

/* --- Damage --- */

/* Each place that is written over is found out, and the batch is there again afterwards. Every byte of the header and of the keys,
   some of the rest. */
static void damaged_batches(void **state) {
  (void)state;
  enum { most = 1 << 16, header_and_keys = 64 + 2 * 32 };
  static unsigned char whole[most], damaged[most];
  static const unsigned char flips[] = {1, 0x80, 0xff};
  uint64_t total;
  char path[most_path];
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(batches(&total, path), 1);
  const size_t bytes = read_file(path, whole, most);
  for (size_t at = 0; at < bytes; at += at < header_and_keys ? 1 : 97) {
    memcpy(damaged, whole, bytes);
    damaged[at] ^= flips[at % sizeof flips];
    write_file(path, damaged, bytes);
    assert_int_equal(compile(1, 3).compiled, 2);
    assert_int_equal(compile(1, 3).loaded, 2);
  }
}

static void cut_off_batches(void **state) {
  (void)state;
  enum { most = 1 << 16 };
  static unsigned char whole[most];
  uint64_t total;
  char path[most_path];
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(batches(&total, path), 1);
  const size_t bytes = read_file(path, whole, most);
  for (size_t length = 0; length < bytes; length += length < 130 ? 1 : 211) {
    write_file(path, whole, length);
    assert_int_equal(compile(1, 3).compiled, 2);
  }
  whole[bytes] = 0;
  write_file(path, whole, bytes + 1);
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(compile(1, 3).loaded, 2);
}

/* A batch under another's name is whole and has other kernels. */
static void exchanged_batches(void **state) {
  (void)state;
  enum { most = 1 << 16 };
  static unsigned char other[most];
  uint64_t total;
  char path[most_path], first[most_path];
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(batches(&total, first), 1);
  const size_t bytes = read_file(first, other, most);
  assert_int_equal(unlink(first), 0);
  assert_int_equal(compile(5, 7).compiled, 2);
  assert_int_equal(batches(&total, path), 1);
  write_file(path, other, bytes);
  assert_int_equal(compile(5, 7).compiled, 2);
}

static void damaged_index(void **state) {
  (void)state;
  unsigned char garbage[1000];
  char path[most_path + 8];
  for (size_t i = 0; i < sizeof garbage; i++) garbage[i] = (unsigned char)(i * 37);
  assert_int_equal(compile(1, 5).compiled, 4);
  assert_int_equal(compile(5, 9).compiled, 4);
  snprintf(path, sizeof path, "%s/index", folder);
  static const size_t lengths[] = {0, 31, 32, 33, 999, 960};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    write_file(path, garbage, lengths[i]);
    assert_int_equal(compile(1, 5).loaded, 4); /* by its name alone */
    (void)compile(3, 7);                     /* found or not, it is right */
    (void)compile(20 + (int)i, 21 + (int)i);  /* the index is made again with what is kept next */
  }
  assert_int_equal(unlink(path), 0);
  assert_int_equal(compile(30, 31).compiled, 1);
  assert_int_equal(compile(1, 9).loaded, 8);
}

/* What is no file of ours is not opened: a pipe would keep us for ever. */
static void strange_files(void **state) {
  (void)state;
  uint64_t total;
  char path[most_path];
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(batches(&total, path), 1);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("/dev/zero", path), 0);
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(chmod(path, 0666), 0);
  assert_int_equal(compile(1, 3).compiled, 2);
  assert_int_equal(compile(1, 3).loaded, 2);
}

/* --- Folders that are not to be used, and no room --- */

static void refused(const char *path, const char *why) {
  ax_compiler *jit;
  ax_arena arena = {0};
  ax_kernel_code code;
  char trouble[256];
  const ax_loop_kernel *kernel = make_kernel(&arena, 3);
  assert_int_equal(ax_jit_create(&(ax_jit_options){.folder = path}, &jit), AX_OK);
  assert_false(ax_jit_trouble(jit, trouble, sizeof trouble));
  assert_int_equal(ax_jit_compile(jit, &kernel, 1, &code), AX_OK);
  assert_true(runs_right(code, 3));
  assert_int_equal(ax_jit_count(jit).compiled, 1);
  assert_true(ax_jit_trouble(jit, trouble, sizeof trouble));
  if (strstr(trouble, why) == NULL) fail_msg("\"%s\" does not say \"%s\"", trouble, why);
  assert_false(ax_jit_trouble(jit, trouble, sizeof trouble));
  ax_jit_destroy(jit);
  ax_arena_deinit(&arena);
}

static void folders_of_others(void **state) {
  (void)state;
  char path[most_path + 8];
  uint64_t bytes;
  (void)compile(1, 2);
  assert_int_equal(chmod(folder, 0777), 0);
  refused(folder, "others can write");
  assert_int_equal(chmod(folder, 0700), 0);
  if (geteuid() == 0) {
    assert_int_equal(chown(folder, 12345, 12345), 0);
    refused(folder, "another user");
    assert_int_equal(chown(folder, 0, 0), 0);
  } else {
    assert_int_equal(chmod(folder, 0500), 0); /* usable, and nothing can be kept */
    assert_int_equal(compile(7, 8).compiled, 1);
    assert_int_equal(compile(7, 8).compiled, 1);
    assert_int_equal(chmod(folder, 0700), 0);
  }
  snprintf(path, sizeof path, "%s/link", folder);
  assert_int_equal(symlink("/tmp", path), 0);
  refused(path, "link");
  assert_int_equal(unlink(path), 0);
  snprintf(path, sizeof path, "%s/index", folder);
  refused(path, "Not a directory");
  refused("/proc/no/such/folder", "No such file");
  assert_int_equal(batches(&bytes, NULL), 1);
}

/* Runs in a process of its own; true: it came to its end with 0. */
static bool in_process(void (*work)(void *), void *context) {
  int status;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    work(context);
    _exit(0);
  }
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* No file may grow beyond a few bytes: writing on would end the process by a signal. */
static void without_room(void *unused) {
  (void)unused;
  ax_jit_counts counts;
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){200, 200});
  if (!try_compile(&(ax_jit_options){.folder = folder}, 1, 9, &counts) || counts.compiled != 8) _exit(1);
  if (!try_compile(&(ax_jit_options){.folder = folder}, 1, 9, &counts) || counts.compiled != 8) _exit(2);
}

static void no_room(void **state) {
  (void)state;
  uint64_t bytes;
  assert_true(in_process(without_room, NULL));
  assert_int_equal(batches(&bytes, NULL), 0);
  assert_int_equal(compile(1, 9).compiled, 8);
  assert_int_equal(compile(1, 9).loaded, 8);
}

/* --- Several at once --- */

static void overlapping(void *number) {
  const int n = *(int *)number;
  ax_jit_counts counts;
  for (int round = 0; round < 12; round++) {
    const int from = 1 + (n + round) % 4;
    if (!try_compile(&(ax_jit_options){.folder = folder, .folder_bytes = 20000}, from, from + 6, &counts)) _exit(1);
  }
}

static void processes_at_once(void **state) {
  (void)state;
  enum { processes = 8 };
  pid_t children[processes];
  int status;
  fflush(NULL);
  for (int i = 0; i < processes; i++) {
    children[i] = fork();
    if (children[i] != 0) continue;
    overlapping(&i);
    _exit(0);
  }
  for (int i = 0; i < processes; i++) {
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  (void)compile(1, 10);
  assert_int_equal(compile(1, 10).loaded, 9);
}

/* --- What it holds --- */

static void set_age(const char *path, int seconds) {
  const struct timespec then = {.tv_sec = time(NULL) - seconds};
  assert_int_equal(utimensat(AT_FDCWD, path, (struct timespec[]){then, then}, 0), 0);
}

/* Of more than there is room for, those that were used last stay. */
static void oldest_go(void **state) {
  (void)state;
  enum { programs = 30, each = 2 };
  uint64_t one, bytes;
  char path[most_path];
  ax_jit_counts counts;
  assert_int_equal(compile(1, 1 + each).compiled, each);
  assert_int_equal(batches(&one, path), 1);
  const ax_jit_options options = {.folder = folder, .folder_bytes = 10 * one};
  for (int i = 1; i < programs; i++) {
    set_age(path, 2 * 3600); /* the first is used all the time */
    assert_true(try_compile(&options, 1, 1 + each, &counts));
    assert_int_equal(counts.loaded, each);
    assert_true(try_compile(&options, 1 + i * each, 1 + (i + 1) * each, &counts));
    assert_int_equal(counts.compiled, each);
    assert_true(batches(&bytes, NULL) <= 11);
    assert_true(bytes <= options.folder_bytes);
  }
  assert_true(batches(&bytes, NULL) >= 5);
  assert_true(try_compile(&options, 1 + (programs - 1) * each, 1 + programs * each, &counts));
  assert_int_equal(counts.loaded, each);
  assert_true(try_compile(&options, 1 + 2 * each, 1 + 3 * each, &counts));
  assert_int_equal(counts.compiled, each);
}

/* One that a process left behind goes with the next sweep, a new one stays: it may be in the making. */
static void temporaries_go(void **state) {
  (void)state;
  char old[most_path + 16], young[most_path + 16];
  struct stat s;
  assert_int_equal(compile(1, 2).compiled, 1);
  snprintf(old, sizeof old, "%s/new-1-2", folder);
  snprintf(young, sizeof young, "%s/new-1-3", folder);
  write_file(old, (const unsigned char *)"x", 1);
  write_file(young, (const unsigned char *)"x", 1);
  set_age(old, 7200);
  snprintf(folder + strlen(folder), 8, "/index");
  assert_int_equal(unlink(folder), 0); /* so that the next looks through the folder */
  *strrchr(folder, '/') = '\0';
  assert_int_equal(compile(2, 3).compiled, 1);
  assert_true(stat(old, &s) != 0);
  assert_int_equal(stat(young, &s), 0);
}

int main(void) {
  signal(SIGXFSZ, SIG_DFL);
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, drop)
  const struct CMUnitTest tests[] = {
      TEST(second_start),
      TEST(kernels_of_several_batches),
      TEST(of_another_machine),
      TEST(off),
      TEST(damaged_batches),
      TEST(cut_off_batches),
      TEST(exchanged_batches),
      TEST(damaged_index),
      TEST(strange_files),
      TEST(folders_of_others),
      TEST(no_room),
      TEST(processes_at_once),
      TEST(oldest_go),
      TEST(temporaries_go),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
