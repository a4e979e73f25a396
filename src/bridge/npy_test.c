/* .npy: round trips, NumPy's own spellings, and files that are not what they say. */
#include "bridge/files_test.h"

enum { buffer_bytes = 4096 };

static const int64_t shape_dims[][3] = {{0}, {0}, {1}, {7}, {0, 3}, {3, 5}, {4, 1}, {2, 3, 4}, {2, 0, 4}};
static const uint32_t shape_ranks[] = {0, 1, 1, 1, 2, 2, 2, 3, 3};

/* An .npy file of version `major` made by hand; returns its size. */
static size_t make_npy(unsigned char *into, int major, const char *dict, const void *data, size_t bytes) {
  size_t length = strlen(dict), at = 8;
  memcpy(into, "\x93NUMPY", 6);
  into[6] = (unsigned char)major;
  into[7] = 0;
  for (int i = 0; i < (major == 1 ? 2 : 4); i++) into[at++] = (unsigned char)(length >> 8 * i);
  memcpy(into + at, dict, length);
  if (bytes > 0) memcpy(into + at + length, data, bytes);
  return at + length + bytes;
}

static ax_status decode(int major, const char *dict, const void *data, size_t bytes, ax_host_array *out) {
  unsigned char buffer[buffer_bytes];
  size_t count = make_npy(buffer, major, dict, data, bytes);
  unsigned char *copy = exact_copy(buffer, count);
  memset(out, 0xff, sizeof *out);
  ax_status status = ax_npy_decode(copy, count, "t.npy", out);
  free(copy);
  return status;
}

static void expect_bad(const char *dict, size_t bytes, const char *message) {
  static const char zeros[64];
  ax_host_array array;
  if (decode(1, dict, zeros, bytes, &array) != AX_IO_ERROR) fail_msg("accepted: %s", dict);
  assert_cleared(&array);
  assert_message("t.npy: ");
  assert_message(message);
}

static void test_round_trips(void **state) {
  (void)state;
  for (int dtype = AX_NO_DTYPE + 1; dtype < AX_KEY; dtype++)
    for (size_t shape = 0; shape < AX_COUNT(shape_ranks); shape++) {
      ax_host_array array = patterned((ax_dtype)dtype, shape_ranks[shape], shape_dims[shape]), back;
      assert_int_equal(ax_npy_write(in_folder("a.npy"), &array), AX_OK);
      assert_int_equal(folder_entries(), 1);
      assert_int_equal(ax_npy_read(in_folder("a.npy"), &back), AX_OK);
      assert_array_equal(&array, &back);
      ax_host_array_release(&array);
      ax_host_array_release(&back);
    }
}

static void test_highest_rank(void **state) {
  (void)state;
  int64_t dims[AX_MAX_RANK];
  for (int i = 0; i < AX_MAX_RANK; i++) dims[i] = i % 5 == 0 ? 2 : 1;
  ax_host_array array = patterned(AX_U16, AX_MAX_RANK, dims), back;
  assert_int_equal(ax_npy_write(in_folder("a.npy"), &array), AX_OK);
  assert_int_equal(ax_npy_read(in_folder("a.npy"), &back), AX_OK);
  assert_array_equal(&array, &back);
  ax_host_array_release(&array);
  ax_host_array_release(&back);
}

/* What np.save(np.arange(6, dtype='<f4').reshape(2, 3)) writes. */
static void test_bytes_are_numpys(void **state) {
  (void)state;
  float values[] = {0, 1, 2, 3, 4, 5};
  ax_host_array array = {AX_F32, 2, {2, 3}, values, false, {0}};
  assert_int_equal(ax_npy_write(in_folder("a.npy"), &array), AX_OK);
  size_t count;
  unsigned char *bytes = file_get(in_folder("a.npy"), &count);
  static const char head[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  assert_int_equal(count, 128 + sizeof values);
  assert_memory_equal(bytes, head, sizeof head - 1);
  for (size_t i = sizeof head - 1; i < 127; i++) assert_int_equal(bytes[i], ' ');
  assert_int_equal(bytes[127], '\n');
  assert_memory_equal(bytes + 128, values, sizeof values);
  free(bytes);
}

static void test_versions_and_spellings(void **state) {
  (void)state;
  static const char *const dicts[] = {
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }   \n",
      "{'shape':(2,),'fortran_order':False,'descr':'<i2'}",
      " \n{ \"fortran_order\" : False ,\t'shape' : ( 2 , ) ,\n 'descr' : \"=i2\" } \n",
      "{'descr': 'i2', 'fortran_order': True, 'shape': (2L,)}",
  };
  int16_t values[] = {258, -2};
  for (int major = 1; major <= 3; major++)
    for (size_t i = 0; i < AX_COUNT(dicts); i++) {
      ax_host_array array;
      assert_int_equal(decode(major, dicts[i], values, sizeof values, &array), AX_OK);
      assert_array_equal(&(ax_host_array){AX_S16, 1, {2}, values, false, {0}}, &array);
      ax_host_array_release(&array);
    }
}

static void test_big_endian(void **state) {
  (void)state;
  ax_host_array array;
  assert_int_equal(decode(1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }",
                          "\x01\x02\xff\xfe", 4, &array), AX_OK);
  assert_array_equal(&(ax_host_array){AX_S16, 1, {2}, (int16_t[]){258, -2}, false, {0}}, &array);
  ax_host_array_release(&array);
  assert_int_equal(decode(1, "{'descr': '>f4', 'fortran_order': False, 'shape': (), }",
                          "\x3f\x80\0\0", 4, &array), AX_OK);
  assert_array_equal(&(ax_host_array){AX_F32, 0, {0}, (float[]){1}, false, {0}}, &array);
  ax_host_array_release(&array);
  assert_int_equal(decode(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (1,), }",
                          "\xc0\x04\0\0\0\0\0\0", 8, &array), AX_OK);
  assert_array_equal(&(ax_host_array){AX_F64, 1, {1}, (double[]){-2.5}, false, {0}}, &array);
  ax_host_array_release(&array);
}

static void test_bools_become_0_or_1(void **state) {
  (void)state;
  ax_host_array array;
  assert_int_equal(decode(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }",
                          "\0\1\2\xff", 4, &array), AX_OK);
  assert_array_equal(&(ax_host_array){AX_BOOL, 1, {4}, "\0\1\1\1", false, {0}}, &array);
  ax_host_array_release(&array);
}

static void test_bf16(void **state) {
  (void)state;
  ax_host_array array;
  const uint16_t one = 0x3f80;
  static const char *const dicts[] = {"{'descr': '<V2', 'fortran_order': False, 'shape': (1,), }",
                                      "{'descr': '|V2', 'fortran_order': False, 'shape': (1,), }"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(decode(1, dicts[i], &one, 2, &array), AX_OK);
    assert_array_equal(&(ax_host_array){AX_BF16, 1, {1}, (void *)&one, false, {0}}, &array);
    ax_host_array_release(&array);
  }
}

/* A byte that NumPy has no word for is named by a field. */
static void test_named_bytes(void **state) {
  (void)state;
  ax_host_array array;
  static const char *const dicts[] = {"{'descr': [('f8e4m3fn', '|V1')], 'fortran_order': False, 'shape': (2,), }",
                                      "{'descr': [(\"f8e4m3fn\", '<V1'),], 'fortran_order': False, 'shape': (2,), }"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(decode(1, dicts[i], "\x38\xc0", 2, &array), AX_OK);
    assert_array_equal(&(ax_host_array){AX_F8E4M3FN, 1, {2}, "\x38\xc0", false, {0}}, &array);
    ax_host_array_release(&array);
  }
  assert_int_equal(decode(1, "{'descr': '<f1', 'fortran_order': False, 'shape': (2,), }", "\x38\xc0", 2, &array), AX_OK);
  assert_int_equal(array.dtype, AX_F8E5M2);
  ax_host_array_release(&array);
  expect_bad("{'descr': '|V1', 'fortran_order': False, 'shape': (2,), }", 2, "does not say which numbers of a byte");
  expect_bad("{'descr': [('f32', '|V1')], 'fortran_order': False, 'shape': (2,), }", 2, "structured");
  expect_bad("{'descr': [('s4', '|V2')], 'fortran_order': False, 'shape': (2,), }", 4, "structured");
}

/* Element [i, j, ...] of an array of these dims, in column-major order, holds its own row-major index. */
static void check_fortran(const char *descr, ax_dtype dtype, uint32_t rank, const int64_t *dims) {
  size_t width = ax_dtype_bytes(dtype), elems = (size_t)dims[0], place = 0;
  for (uint32_t d = 1; d < rank; d++) elems *= (size_t)dims[d];
  unsigned char *data = calloc(elems, width), *file = malloc(elems * width + 512);
  for (size_t index = 0; index < elems; index++) {
    size_t rest = index, stride = elems;
    place = 0;
    for (uint32_t d = rank; d-- > 0; rest /= (size_t)dims[d]) place += rest % (size_t)dims[d] * (stride /= (size_t)dims[d]);
    memcpy(data + place * width, &index, width);
  }
  char dict[256], shape[128] = "";
  for (uint32_t d = 0; d < rank; d++) snprintf(shape + strlen(shape), 16, "%d, ", (int)dims[d]);
  snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': True, 'shape': (%s), }", descr, shape);
  ax_host_array array;
  size_t count = make_npy(file, 1, dict, data, elems * width);
  assert_int_equal(ax_npy_decode(file, count, "t.npy", &array), AX_OK);
  for (size_t index = 0; index < elems; index++) assert_memory_equal((char *)array.data + index * width, &index, width);
  ax_host_array_release(&array);
  free(data);
  free(file);
}

static void test_fortran_order(void **state) {
  (void)state;
  check_fortran("|u1", AX_U8, 1, (int64_t[]){9});
  check_fortran("|u1", AX_U8, 2, (int64_t[]){3, 5});
  check_fortran("<u2", AX_U16, 2, (int64_t[]){70, 33});
  check_fortran("<u4", AX_U32, 2, (int64_t[]){33, 100});
  check_fortran("<u8", AX_U64, 2, (int64_t[]){64, 1});
  check_fortran("<u4", AX_U32, 3, (int64_t[]){2, 3, 4});
  check_fortran("<u8", AX_U64, 4, (int64_t[]){3, 4, 5, 6});
  check_fortran("<u2", AX_U16, 5, (int64_t[]){2, 3, 1, 5, 4});
}

static void test_bad_dicts(void **state) {
  (void)state;
  expect_bad("", 0, "expected '{'");
  expect_bad("{", 0, "expected a string");
  expect_bad("{}", 0, "no 'descr'");
  expect_bad("{'descr': '<f4', 'shape': (1,)}", 4, "no 'fortran_order'");
  expect_bad("{'descr': '<f4', 'fortran_order': False}", 4, "no 'shape'");
  expect_bad("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "each key once");
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}", 4, "expected 'descr'");
  expect_bad("{'descr' '<f4'}", 4, "expected ':'");
  expect_bad("{'descr': '<f4' 'shape': (1,)}", 4, "',' or '}'");
  expect_bad("{'descr': '<f4}", 4, "string that is closed");
  expect_bad("{'descr': 4}", 4, "expected a string");
  expect_bad("{'fortran_order': 0}", 4, "True or False");
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", 4, "nothing after");
  expect_bad("{'shape': 3}", 4, "tuple");
  expect_bad("{'shape': (3)}", 4, "','");
  expect_bad("{'shape': (3 4)}", 4, "','");
  expect_bad("{'shape': (,)}", 4, "dimension");
  expect_bad("{'shape': (3,", 4, "dimension");
  expect_bad("{'shape': (-1,)}", 4, "dimension");
  expect_bad("{'shape': (9223372036854775808,)}", 4, "below 2^63");
  expect_bad("{'shape': (99999999999999999999999,)}", 4, "below 2^63");
  expect_bad("{'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", 4, "16 dimensions");
}

static void test_bad_dtypes(void **state) {
  (void)state;
  expect_bad("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", 8, "pickled");
  expect_bad("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", 4, "structured");
  static const char *const unknown[] = {"", "<", "<c4", "<U5", "|S3", "<f16", "<M8[ns]", "<f44", "V3", "<<f4", "<i3"};
  for (size_t i = 0; i < AX_COUNT(unknown); i++) {
    char dict[128];
    snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }", unknown[i]);
    expect_bad(dict, 4, "none that Axle has");
  }
}

static void test_bad_sizes(void **state) {
  (void)state;
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 44, "cut short: f32[3,4] is 48 bytes, 44 are left");
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", 49, "1 bytes follow its f32[3,4]");
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", 64, "cut short");
  expect_bad("{'descr': '<f8', 'fortran_order': False, 'shape': (1152921504606846976,), }", 64, "larger than 2^63");
  expect_bad("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", 0, "larger than 2^63");
  expect_bad("{'descr': '<f4', 'fortran_order': True, 'shape': (4294967296, 4294967296, 0), }", 0, "larger than 2^63");
  assert_true(heap.largest < 4096);
}

static void test_bad_preambles(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t count;
    const char *message;
  } cases[] = {
      {"", 0, "is empty"},
      {"\x93NUMPY", 6, "cut short"},
      {"PK\3\4 not this one", 17, "is no npy file"},
      {"\x93NUMPY\0\0\0\0", 10, "version 0.0"},
      {"\x93NUMPY\4\0\0\0\0\0", 12, "version 4.0"},
      {"\x93NUMPY\2\0\0\0\0", 11, "cut short"},
      {"\x93NUMPY\1\0\xff\xff{}", 12, "its header says 65535 bytes, 2 are left"},
      {"\x93NUMPY\2\0\xff\xff\xff\xff{}", 14, "its header says 4294967295 bytes, 2 are left"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_host_array array;
    unsigned char *copy = exact_copy(cases[i].bytes, cases[i].count);
    assert_int_equal(ax_npy_decode(copy, cases[i].count, "t.npy", &array), AX_IO_ERROR);
    assert_cleared(&array);
    assert_message(cases[i].message);
    free(copy);
  }
  enum { long_bytes = 70000 };
  unsigned char *bytes = calloc(1, long_bytes + 12);
  ax_host_array array;
  memcpy(bytes, "\x93NUMPY\2\0\x70\x11\1\0", 12); /* 70000 */
  assert_int_equal(ax_npy_decode(bytes, long_bytes + 12, "t.npy", &array), AX_IO_ERROR);
  assert_message("70000 bytes, more than 65535");
  free(bytes);
}

static void test_truncation_everywhere(void **state) {
  (void)state;
  unsigned char file[buffer_bytes];
  size_t count = make_npy(file, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n", "0123456789abcdef", 16);
  for (size_t cut = 0; cut <= count; cut++) {
    ax_host_array array;
    unsigned char *copy = exact_copy(file, cut);
    assert_int_equal(ax_npy_decode(copy, cut, "t.npy", &array), cut == count ? AX_OK : AX_IO_ERROR);
    free(copy);
    file_put(in_folder("cut.npy"), file, cut);
    ax_host_array again;
    assert_int_equal(ax_npy_read(in_folder("cut.npy"), &again), cut == count ? AX_OK : AX_IO_ERROR);
    if (cut < count) assert_cleared(&again);
    ax_host_array_release(&array);
    ax_host_array_release(&again);
  }
}

static void test_mutations(void **state) {
  (void)state;
  unsigned char file[buffer_bytes], changed[buffer_bytes];
  uint64_t seed = 20240607;
  size_t read = 0;
  for (int round = 0; round < 6000; round++) {
    size_t count = make_npy(file, 1 + round % 3, "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 3), }\n",
                            "0123456789abcdefghijklmn", 24);
    memcpy(changed, file, count);
    size_t length = mutate(changed, count, 200, &seed);
    unsigned char *copy = exact_copy(changed, length);
    ax_host_array array;
    ax_status status = ax_npy_decode(copy, length, "t.npy", &array);
    assert_true(status == AX_OK || status == AX_IO_ERROR);
    if (status != AX_OK) assert_cleared(&array);
    read += status == AX_OK;
    ax_host_array_release(&array);
    free(copy);
  }
  assert_in_range(read, 1, 5999);
  assert_true(heap.largest < 70000);
}

static void test_random_bytes(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int round = 0; round < 2000; round++) {
    size_t count = next_random(&seed) % 100;
    unsigned char *bytes = exact_copy("", 0);
    bytes = realloc(bytes, count + 1);
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)next_random(&seed);
    ax_host_array array;
    assert_int_equal(ax_npy_decode(bytes, count, "t.npy", &array), AX_IO_ERROR);
    free(bytes);
  }
}

static void test_out_of_memory(void **state) {
  (void)state;
  const char *dict = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }";
  ax_status status = AX_OUT_OF_MEMORY;
  for (long fail_at = 1; status != AX_OK; fail_at++) {
    ax_host_array array;
    heap_reset(fail_at);
    status = decode(1, dict, "0123456789abcdef", 16, &array);
    assert_int_equal(status, heap.calls >= fail_at ? AX_OUT_OF_MEMORY : AX_OK);
    ax_host_array_release(&array);
    assert_int_equal(heap.live, 0);
  }
}

static void test_bad_arrays_are_not_written(void **state) {
  (void)state;
  const char *path = in_folder("a.npy");
  const ax_host_array bad[] = {
      {AX_NO_DTYPE, 0, {0}, "x", false, {0}},
      {AX_DTYPE_COUNT, 0, {0}, "x", false, {0}},
      {AX_F32, AX_MAX_RANK + 1, {0}, "x", false, {0}},
      {AX_F32, 1, {-1}, "x", false, {0}},
      {AX_F32, 1, {1}, NULL, false, {0}},
      {AX_F32, 2, {INT64_MAX, 2}, "x", false, {0}},
      {AX_F64, 1, {INT64_MAX / 4}, "x", false, {0}},
  };
  for (size_t i = 0; i < AX_COUNT(bad); i++) {
    assert_int_equal(ax_npy_write(path, &bad[i]), AX_INVALID_ARGUMENT);
    assert_message(path);
  }
  assert_int_equal(folder_entries(), 0);
  assert_int_equal(ax_npy_write(path, &(ax_host_array){AX_F32, 1, {0}, NULL, false, {0}}), AX_OK);
}

static void test_failed_writes_leave_the_old_file(void **state) {
  (void)state;
  const char *path = in_folder("a.npy");
  float one = 1;
  ax_host_array old = {AX_F32, 0, {0}, &one, false, {0}}, back, big = patterned(AX_U8, 1, (int64_t[]){8 << 20});
  assert_int_equal(ax_npy_write(path, &old), AX_OK);
  limit_file_size(4 << 20);
  ax_status status = ax_npy_write(path, &big);
  limit_file_size(RLIM_INFINITY);
  assert_int_equal(status, AX_IO_ERROR);
  assert_message("cannot write: File too large");
  assert_int_equal(folder_entries(), 1);
  assert_int_equal(ax_npy_read(path, &back), AX_OK);
  assert_array_equal(&old, &back);
  ax_host_array_release(&back);
  ax_host_array_release(&big);
}

static ax_status write_ones(void) {
  static float ones[4000];
  return ax_npy_write(in_folder("a.npy"), &(ax_host_array){AX_F32, 1, {4000}, ones, false, {0}});
}
static bool is_written(void) { return write_ones() == AX_OK; }
static bool is_refused(void) { return write_ones() == AX_IO_ERROR && strstr(ax_message(), "cannot write: File too large") != NULL; }

static void test_limited_files(void **state) {
  (void)state;
  assert_true(is_written());
  const size_t bytes = file_bytes(in_folder("a.npy"));
  folder_clear();
  assert_true(within_file_size(bytes - 1, is_refused));
  assert_true(within_file_size(100, is_refused));
  assert_int_equal(folder_entries(), 0);
  assert_true(within_file_size(bytes, is_written));
  assert_int_equal(folder_entries(), 1);
}

static void test_places_that_are_not_files(void **state) {
  (void)state;
  float one = 1;
  ax_host_array array = {AX_F32, 0, {0}, &one, false, {0}}, back;
  assert_int_equal(ax_npy_write(folder, &array), AX_IO_ERROR);
  assert_int_equal(ax_npy_write("/dev/null", &array), AX_IO_ERROR);
  assert_message("not a file");
  assert_int_equal(ax_npy_write(in_folder("no/such/folder.npy"), &array), AX_IO_ERROR);
  assert_message("No such file");
  assert_int_equal(ax_npy_read(folder, &back), AX_IO_ERROR);
  assert_int_equal(ax_npy_read(in_folder("absent.npy"), &back), AX_IO_ERROR);
  assert_message("absent.npy: cannot open: No such file");
  assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
  assert_int_equal(ax_npy_read(in_folder("pipe"), &back), AX_IO_ERROR);
  assert_int_equal(folder_entries(), 1);
}

static void test_links_stay_links(void **state) {
  (void)state;
  float one = 1;
  ax_host_array array = {AX_F32, 0, {0}, &one, false, {0}}, back;
  file_put(in_folder("real.npy"), "old", 3);
  assert_int_equal(symlink("real.npy", in_folder("link.npy")), 0);
  assert_int_equal(ax_npy_write(in_folder("link.npy"), &array), AX_OK);
  struct stat info;
  assert_int_equal(lstat(in_folder("link.npy"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(ax_npy_read(in_folder("real.npy"), &back), AX_OK);
  ax_host_array_release(&back);
}

/* Links to nothing, and to each other. */
static void test_dangling_links(void **state) {
  (void)state;
  float one = 1;
  ax_host_array array = {AX_F32, 0, {0}, &one, false, {0}}, back;
  struct stat info;
  assert_int_equal(symlink("second.npy", in_folder("first.npy")), 0);
  assert_int_equal(symlink(in_folder("made.npy"), in_folder("second.npy")), 0);
  assert_int_equal(ax_npy_write(in_folder("first.npy"), &array), AX_OK);
  assert_int_equal(lstat(in_folder("first.npy"), &info), 0);
  assert_true(S_ISLNK(info.st_mode));
  assert_int_equal(lstat(in_folder("made.npy"), &info), 0);
  assert_true(S_ISREG(info.st_mode));
  assert_int_equal(ax_npy_read(in_folder("first.npy"), &back), AX_OK);
  ax_host_array_release(&back);
  assert_int_equal(symlink("b.npy", in_folder("a.npy")), 0);
  assert_int_equal(symlink("a.npy", in_folder("b.npy")), 0);
  assert_int_equal(ax_npy_write(in_folder("a.npy"), &array), AX_IO_ERROR);
  assert_message("a.npy: cannot write: Too many levels");
}

static void test_permissions_stay(void **state) {
  (void)state;
  float one = 1;
  ax_host_array array = {AX_F32, 0, {0}, &one, false, {0}};
  const char *const names[] = {"one"};
  struct stat info;
  file_put(in_folder("mine.npy"), "old", 3);
  assert_int_equal(chmod(in_folder("mine.npy"), 0600), 0);
  assert_int_equal(ax_npy_write(in_folder("mine.npy"), &array), AX_OK);
  assert_int_equal(stat(in_folder("mine.npy"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0600);
  file_put(in_folder("mine.npz"), "old", 3);
  assert_int_equal(chmod(in_folder("mine.npz"), 0640), 0);
  assert_int_equal(ax_npz_write(in_folder("mine.npz"), AX_LIST(1, names), &array), AX_OK);
  assert_int_equal(stat(in_folder("mine.npz"), &info), 0);
  assert_int_equal(info.st_mode & 07777, 0640);
}

static void test_release(void **state) {
  (void)state;
  ax_host_array array = patterned(AX_F32, 1, (int64_t[]){3});
  ax_host_array_release(&array);
  assert_cleared(&array);
  ax_host_array_release(&array);
  ax_host_array_release(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_before, files_after)
static void test_headers(void **state) {
  (void)state;
  char header[AX_NPY_HEADER_BYTES];
  const ax_host_array vector = {AX_F32, 1, {7}, NULL, false, {0}}, scalar = {AX_BF16, 0, {0}, NULL, false, {0}};
  assert_int_equal(ax_npy_header(&vector, header), 128);
  assert_memory_equal(header, "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }  ", 69);
  assert_int_equal(header[127], '\n');
  (void)ax_npy_header(&scalar, header);
  assert_memory_equal(header + 10, "{'descr': '<V2', 'fortran_order': False, 'shape': (), }", 55);
}

static void test_arrays_are_checked(void **state) {
  (void)state;
  float one = 1;
  size_t bytes;
  const ax_host_array good = {AX_F32, 2, {3, 5}, &one, false, {0}}, empty = {AX_F32, 1, {0}, NULL, false, {0}};
  ax_host_array bad = good;
  assert_int_equal(ax_host_array_check(&good, "f", &bytes), AX_OK);
  assert_int_equal(bytes, 60);
  assert_int_equal(ax_host_array_check(&empty, "f", &bytes), AX_OK);
  bad.data = NULL;
  assert_int_equal(ax_host_array_check(&bad, "f", &bytes), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "f: the f32[3,5] to write has no data");
  bad = good, bad.dims[1] = -5;
  assert_int_equal(ax_host_array_check(&bad, "f", &bytes), AX_INVALID_ARGUMENT);
  assert_string_equal(ax_message(), "f: the array to write has dimension 1 of -5");
}

/* What a write to a path replaces. */
static void test_targets(void **state) {
  (void)state;
  char target[PATH_MAX], wanted[PATH_MAX];
  file_put(in_folder("real"), "1", 1);
  assert_non_null(realpath(in_folder("real"), wanted));
  assert_int_equal(symlink("real", in_folder("link")), 0);
  assert_int_equal(ax_file_target(in_folder("link"), target), AX_OK);
  assert_string_equal(target, wanted);
  assert_int_equal(symlink("later", in_folder("to_nothing")), 0);
  assert_int_equal(ax_file_target(in_folder("to_nothing"), target), AX_OK);
  assert_string_equal(target, in_folder("later"));
  assert_int_equal(ax_file_target(folder, target), AX_IO_ERROR);
  const ax_byte_span parts[] = {{"ab", 2}, {"c", 1}};
  assert_int_equal(ax_file_write(in_folder("link"), parts, 2), AX_OK);
  struct stat info;
  assert_int_equal(stat(in_folder("real"), &info), 0);
  assert_int_equal(info.st_size, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_round_trips),
      TEST(test_highest_rank),
      TEST(test_bytes_are_numpys),
      TEST(test_versions_and_spellings),
      TEST(test_big_endian),
      TEST(test_bools_become_0_or_1),
      TEST(test_bf16),
      TEST(test_named_bytes),
      TEST(test_fortran_order),
      TEST(test_bad_dicts),
      TEST(test_bad_dtypes),
      TEST(test_bad_sizes),
      TEST(test_bad_preambles),
      TEST(test_truncation_everywhere),
      TEST(test_mutations),
      TEST(test_random_bytes),
      TEST(test_out_of_memory),
      TEST(test_bad_arrays_are_not_written),
      TEST(test_failed_writes_leave_the_old_file),
      TEST(test_limited_files),
      TEST(test_places_that_are_not_files),
      TEST(test_links_stay_links),
      TEST(test_dangling_links),
      TEST(test_permissions_stay),
      TEST(test_release),
      TEST(test_headers),
      TEST(test_arrays_are_checked),
      TEST(test_targets),
  };
  return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
