/* Machines that are not here: folders with the files that Linux would have on them. */
#include "machine/system.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cmocka.h"

/* --- Folders --- */

static char root[] = "/tmp/axle_machine_XXXXXX";

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place) {
  (void)status, (void)kind, (void)place;
  return remove(path);
}

static int begin(void **state) {
  (void)state;
  strcpy(root + strlen(root) - 6, "XXXXXX");
  return mkdtemp(root) == NULL;
}

static int end(void **state) {
  (void)state;
  return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file under the root, with the folders that it lies in. */
static void put(const char *path, const char *text) {
  char whole[PATH_MAX];
  snprintf(whole, sizeof whole, "%s%s", root, path);
  for (char *slash = whole + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
    *slash = '\0';
    mkdir(whole, 0700);
  }
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void put_of(uint32_t processor, const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/%s", processor, name);
  put(path, text);
}

static void put_cache(uint32_t processor, uint32_t index, const char *level, const char *type, const char *size, const char *shared) {
  const struct {
    const char *name, *text;
  } files[] = {{"level", level}, {"type", type}, {"size", size}, {"coherency_line_size", "64\n"}, {"shared_cpu_list", shared}};
  char name[64];
  for (size_t i = 0; i < AX_COUNT(files); i++) {
    snprintf(name, sizeof name, "cache/index%u/%s", index, files[i].name);
    if (files[i].text != NULL) put_of(processor, name, files[i].text);
  }
}

static void put_status(const char *allowed) {
  char text[256];
  snprintf(text, sizeof text, "Name:\taxle\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed:\t1\n", allowed);
  put("/proc/self/status", text);
}

static ax_description read_all(void) {
  ax_description m = {{{0}}};
  ax_system_read_caches(root, &m);
  ax_system_read_limits(root, &m);
  ax_system_read_processors(root, &m);
  return m;
}

static void expect(const ax_description *m, ax_fact fact, double value) {
  assert_int_equal(m->facts[fact].source, AX_SOURCE_ASKED);
  if (m->facts[fact].value != value)
    fail_msg("%s is %g, not %g", ax_machine_record(fact)->name, m->facts[fact].value, value);
}

static void expect_unknown(const ax_description *m, ax_fact fact) { assert_int_equal(m->facts[fact].source, AX_SOURCE_ASSUMED); }

/* --- Machines --- */

/* Two packages of 64 cores; the second hyper-threads have the numbers from 128 on. */
static void two_packages_with_hyper_threads(void **state) {
  (void)state;
  char cores[32], packages[64];
  put("/sys/devices/system/cpu/online", "0-255\n");
  put("/sys/devices/system/node/online", "0-1\n");
  put_status("0-255");
  for (uint32_t p = 0; p < 256; p++) {
    const uint32_t core = p % 128, first = core / 64 * 64;
    snprintf(cores, sizeof cores, "%u,%u\n", core, core + 128);
    snprintf(packages, sizeof packages, "%u-%u,%u-%u\n", first, first + 63, first + 128, first + 191);
    put_of(p, "topology/core_cpus_list", cores);
    put_of(p, "topology/package_cpus_list", packages);
  }
  put_cache(0, 0, "1\n", "Data\n", "48K\n", "0,128\n");
  put_cache(0, 1, "1\n", "Instruction\n", "32K\n", "0,128\n");
  put_cache(0, 2, "2\n", "Unified\n", "2048K\n", "0,128\n");
  put_cache(0, 3, "3\n", "Unified\n", "107520K\n", "0-63,128-191\n");
  const ax_description m = read_all();
  expect(&m, AX_FACT_PROCESSORS, 256), expect(&m, AX_FACT_CORES, 128), expect(&m, AX_FACT_PACKAGES, 2);
  expect(&m, AX_FACT_NODES, 2), expect(&m, AX_FACT_THREADS, 2), expect(&m, AX_FACT_USABLE, 256), expect(&m, AX_FACT_QUOTA, 0);
  expect(&m, AX_FACT_USABLE_CORES, 128);
  expect(&m, AX_FACT_L1, 48 << 10), expect(&m, AX_FACT_L2, 2 << 20), expect(&m, AX_FACT_L3, 105 << 20);
  expect(&m, AX_FACT_L2_CORES, 1), expect(&m, AX_FACT_L3_CORES, 64), expect(&m, AX_FACT_LINE, 64);
}

/* Of that machine a process has one thread of each core of the second package, and both threads of one. */
static void some_hyper_threads(void **state) {
  (void)state;
  char cores[32];
  put("/sys/devices/system/cpu/online", "0-255\n");
  put_status("64-127,192");
  for (uint32_t p = 0; p < 256; p++) {
    snprintf(cores, sizeof cores, "%u,%u\n", p % 128, p % 128 + 128);
    put_of(p, "topology/core_cpus_list", cores);
  }
  const ax_description m = read_all();
  expect(&m, AX_FACT_USABLE, 65), expect(&m, AX_FACT_USABLE_CORES, 64), expect(&m, AX_FACT_CORES, 128);
}

/* 128 cores, of which eight share each of 16 third caches; one package, four nodes; files of an older kernel. */
static void many_third_caches(void **state) {
  (void)state;
  char core[16];
  put("/sys/devices/system/cpu/online", "0-127\n");
  put("/sys/devices/system/node/online", "0-3\n");
  put_status("0-127");
  for (uint32_t p = 0; p < 128; p++) {
    snprintf(core, sizeof core, "%u\n", p);
    put_of(p, "topology/thread_siblings_list", core);
    put_of(p, "topology/core_siblings_list", "0-127\n");
  }
  put_cache(0, 0, "1", "Data", "32K", "0");
  put_cache(0, 1, "2", "Unified", "1M", "0");
  put_cache(0, 2, "3", "Unified", "32768K", "0-7");
  const ax_description m = read_all();
  expect(&m, AX_FACT_CORES, 128), expect(&m, AX_FACT_PACKAGES, 1), expect(&m, AX_FACT_NODES, 4), expect(&m, AX_FACT_THREADS, 1);
  expect(&m, AX_FACT_L2, 1 << 20), expect(&m, AX_FACT_L3, 32 << 20), expect(&m, AX_FACT_L3_CORES, 8);
}

static void processors_that_are_off(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/online", "0-3,8-11\n");
  put_status("2-9");
  put_cache(2, 0, "1", "Data", "32K", "2");
  put_cache(2, 1, "2", "Unified", "512K", "2-3"); /* of four, of which two are off */
  const ax_description m = read_all();
  expect(&m, AX_FACT_PROCESSORS, 8), expect(&m, AX_FACT_USABLE, 4);
  expect(&m, AX_FACT_L1, 32 << 10), expect(&m, AX_FACT_L2, 512 << 10), expect(&m, AX_FACT_L2_CORES, 2);
  expect(&m, AX_FACT_L3, 0); /* a machine that tells two levels has no third */
  expect_unknown(&m, AX_FACT_CORES);
}

static void more_than_1024_processors(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/online", "0-2047\n");
  put_status("1000-1919,2040-2047");
  put_of(1000, "topology/core_cpus_list", "1000-1007\n");
  put_cache(1000, 0, "1", "Data", "32K", "1000-1007");
  put_cache(1000, 1, "2", "Unified", "2M", "1000-1007");
  put_cache(1000, 2, "3", "Unified", "120M", "960-1055");
  const ax_description m = read_all();
  expect(&m, AX_FACT_PROCESSORS, 2048), expect(&m, AX_FACT_USABLE, 928), expect(&m, AX_FACT_THREADS, 8);
  expect(&m, AX_FACT_L2_CORES, 1), expect(&m, AX_FACT_L3_CORES, 12), expect(&m, AX_FACT_L3, 120 << 20);
}

/* Eight cores of two threads, and sixteen smaller ones without, of which four share a second cache. */
static void two_kinds_of_cores(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/online", "0-31\n");
  put("/sys/devices/cpu_core/cpus", "0-15\n");
  put("/sys/devices/cpu_atom/cpus", "16-31\n");
  put_of(0, "topology/core_cpus_list", "0-1\n");
  put_of(16, "topology/core_cpus_list", "16\n");
  put_cache(0, 0, "1", "Data", "48K", "0-1");
  put_cache(0, 1, "2", "Unified", "2048K", "0-1");
  put_cache(0, 2, "3", "Unified", "36864K", "0-31");
  put_cache(16, 0, "1", "Data", "32K", "16");
  put_cache(16, 1, "2", "Unified", "4096K", "16-19");
  put_cache(16, 2, "3", "Unified", "36864K", "0-31");
  put_status("0-31");
  ax_description m = read_all();
  expect(&m, AX_FACT_L1, 32 << 10), expect(&m, AX_FACT_L2, 4 << 20), expect(&m, AX_FACT_L2_CORES, 4);
  expect(&m, AX_FACT_L3, 36 << 20), expect(&m, AX_FACT_THREADS, 2);
  put_status("0-15"); /* bound to the large ones, it has their caches */
  m = read_all();
  expect(&m, AX_FACT_L1, 48 << 10), expect(&m, AX_FACT_L2, 2 << 20), expect(&m, AX_FACT_L2_CORES, 1);
  put_status("16-31");
  m = read_all();
  expect(&m, AX_FACT_L1, 32 << 10), expect(&m, AX_FACT_L2, 4 << 20), expect(&m, AX_FACT_THREADS, 1);
}

/* The same on ARM, whose small cores come first. */
static void two_capacities(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/online", "0-7\n");
  put_status("0-7");
  for (uint32_t p = 0; p < 8; p++) {
    const bool large = p >= 4;
    put_of(p, "cpu_capacity", large ? "1024\n" : "402\n");
    put_cache(p, 0, "1", "Data", large ? "64K" : "32K", "0");
    put_cache(p, 1, "2", "Unified", large ? "1024K" : "128K", "0");
    put_cache(p, 2, "3", "Unified", "8192K", "0-7");
  }
  ax_description m = read_all();
  expect(&m, AX_FACT_L1, 32 << 10), expect(&m, AX_FACT_L2, 128 << 10), expect(&m, AX_FACT_L3, 8 << 20);
  put_status("4-7");
  m = read_all();
  expect(&m, AX_FACT_L1, 64 << 10), expect(&m, AX_FACT_L2, 1 << 20);
  put_of(5, "cpu_capacity", "500\n");
  put_cache(5, 0, "1", "Data", "16K", "5");
  m = read_all();
  expect(&m, AX_FACT_L1, 16 << 10); /* whichever kind has the least */
}

/* Kernels for ARM whose firmware says nothing of caches have their folders, without sizes. */
static void caches_without_sizes(void **state) {
  (void)state;
  put("/sys/devices/system/cpu/online", "0-3\n");
  put_cache(0, 0, "1\n", "Data\n", NULL, "0\n");
  put_cache(0, 1, "2\n", "Unified\n", NULL, "0-3\n");
  const ax_description m = read_all();
  expect(&m, AX_FACT_USABLE, 4);
  expect_unknown(&m, AX_FACT_L1), expect_unknown(&m, AX_FACT_L2), expect_unknown(&m, AX_FACT_L3);
}

static void no_files_at_all(void **state) {
  (void)state;
  const ax_description m = read_all();
  for (int f = 0; f < AX_FACT_COUNT; f++)
    if (f != AX_FACT_QUOTA) expect_unknown(&m, (ax_fact)f);
  expect(&m, AX_FACT_QUOTA, 0);
}

static void files_with_nonsense(void **state) {
  (void)state;
  static const char *const lists[] = {"",      "\n",   "-",  "0-",     "3-1",        "0,,1",  "0-3 and more", "none", "-1",
                                      "99999", "0x10", "0-", "0-3,\n", "4294967296", "1-99999999999999999999"};
  for (size_t i = 0; i < AX_COUNT(lists); i++) {
    put("/sys/devices/system/cpu/online", lists[i]);
    put("/sys/devices/system/node/online", lists[i]);
    put_status(lists[i]);
    put_of(0, "topology/core_cpus_list", lists[i]);
    put_cache(0, 0, "1\n", "Data\n", "a lot\n", lists[i]);
    put_cache(0, 1, "9\n", "Unified\n", "1M\n", lists[i]);
    put_cache(0, 2, "2\n", "Unified\n", "-5K\n", lists[i]);
    put_cache(0, 3, "3\n", "Unified\n", "1e300G\n", lists[i]);
    const ax_description m = read_all();
    for (int f = 0; f < AX_FACT_COUNT; f++)
      if (f != AX_FACT_QUOTA) expect_unknown(&m, (ax_fact)f);
  }
  put("/sys/devices/system/cpu/online", "0-1\n");
  put_of(0, "topology/core_cpus_list", "5\n"); /* a core that it is no part of */
  const ax_description m = read_all();
  expect(&m, AX_FACT_PROCESSORS, 2), expect_unknown(&m, AX_FACT_CORES);
}

/* --- Quotas --- */

static const char second_mount[] = "25 1 0:22 / / rw - ext4 /dev/vda rw\n30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

static void expect_quota(double quota) { assert_true(ax_system_quota(root) == quota); }

static void quota_of_version_2(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/system.slice/axle.service\n");
  put("/proc/self/mountinfo", second_mount);
  expect_quota(0); /* its controller is off: no files */
  put("/sys/fs/cgroup/system.slice/axle.service/cpu.max", "max 100000\n");
  expect_quota(0);
  put("/sys/fs/cgroup/system.slice/axle.service/cpu.max", "150000 100000\n");
  expect_quota(1.5);
  put("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000\n"); /* a group around it has less */
  expect_quota(0.5);
  put("/sys/fs/cgroup/system.slice/cpu.max", "400000 100000\n");
  expect_quota(1.5);
}

/* A container has a namespace of its own, or sees its outer path and its own group mounted. */
static void quota_of_a_container(void **state) {
  (void)state;
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo", second_mount);
  put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
  expect_quota(1.5);
  put("/proc/self/cgroup", "0::/../outside\n");
  expect_quota(1.5);
  put("/proc/self/cgroup", "0::/docker/0123/child\n");
  put("/proc/self/mountinfo", "30 25 0:26 /docker/0123 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/child/cpu.max", "25000 100000\n");
  expect_quota(0.25);
  put("/proc/self/cgroup", "0::/docker/01234\n"); /* not below the mounted one, though it begins alike */
  expect_quota(1.5);
}

static void quota_of_version_1(void **state) {
  (void)state;
  put("/proc/self/cgroup", "9:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/docker/0123\n0::/\n");
  put("/proc/self/mountinfo", "31 25 0:27 / /sys/fs/cgroup/cpuset rw shared:9 - cgroup cgroup rw,cpuset\n"
                              "32 25 0:28 /docker/0123 /sys/fs/cgroup/cpu,cpuacct ro shared:10 - cgroup cgroup rw,cpu,cpuacct\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  expect_quota(0);
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "75000\n");
  put("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "50000\n");
  expect_quota(1.5);
}

static void quotas_with_nonsense(void **state) {
  (void)state;
  static const char *const texts[] = {"", "\n", "fast\n", "150000\n", "150000 0\n", "-1 100000\n", "0 100000\n", "1e30 1\n", "nan nan\n"};
  static const char *const tables[] = {"", "0\n", "0::\n", ":::\n", "0:\n::\n", "no end"};
  put("/proc/self/cgroup", "0::/\n");
  put("/proc/self/mountinfo", second_mount);
  for (size_t i = 0; i < AX_COUNT(texts); i++) {
    put("/sys/fs/cgroup/cpu.max", texts[i]);
    expect_quota(0);
  }
  for (size_t i = 0; i < AX_COUNT(tables); i++) {
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/proc/self/cgroup", tables[i]);
    expect_quota(0);
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", tables[i]);
    expect_quota(0);
    put("/proc/self/mountinfo", second_mount);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(two_packages_with_hyper_threads), TEST(some_hyper_threads), TEST(many_third_caches),   TEST(processors_that_are_off), TEST(more_than_1024_processors),
      TEST(two_kinds_of_cores), TEST(two_capacities),
      TEST(caches_without_sizes),            TEST(no_files_at_all),     TEST(files_with_nonsense),     TEST(quota_of_version_2),
      TEST(quota_of_a_container),            TEST(quota_of_version_1), TEST(quotas_with_nonsense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
