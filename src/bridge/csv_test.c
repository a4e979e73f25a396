/* CSV: numbers as people write them, plain and gzipped, and the place of what is wrong. */
#include <locale.h>
#include <math.h>
#include <zlib.h>

#include "bridge/files_test.h"

static ax_status decode(const char *text, size_t count, ax_host_array *out) {
  unsigned char *copy = exact_copy(text, count);
  memset(out, 0xff, sizeof *out);
  ax_status status = ax_csv_decode(copy, count, "t.csv", out);
  free(copy);
  return status;
}

static void expect(const char *text, int64_t rows, int64_t columns, const double *values) {
  ax_host_array array;
  if (decode(text, strlen(text), &array) != AX_OK) fail_msg("%s", ax_message());
  assert_array_equal(&(ax_host_array){AX_F64, 2, {rows, columns}, (void *)values, false, {0}}, &array);
  ax_host_array_release(&array);
}

static void expect_bad(const char *text, size_t count, const char *message) {
  ax_host_array array;
  assert_int_equal(decode(text, count, &array), AX_IO_ERROR);
  assert_cleared(&array);
  assert_message(message);
}

static void test_tables(void **state) {
  (void)state;
  expect("1,2\n3,4\n", 2, 2, (double[]){1, 2, 3, 4});
  expect("1,2\n3,4", 2, 2, (double[]){1, 2, 3, 4});
  expect("1,2\r\n3,4\r\n\r\n\n", 2, 2, (double[]){1, 2, 3, 4});
  expect(" 1 ,\t2 \n", 1, 2, (double[]){1, 2});
  expect("\xEF\xBB\xBF" "7", 1, 1, (double[]){7});
  expect("-1.5e3,+.5,5.,1e-3\n", 1, 4, (double[]){-1500, .5, 5, 1e-3});
  expect("inf,-Infinity,1e-400\n", 1, 3, (double[]){INFINITY, -INFINITY, 0});
  ax_host_array array;
  assert_int_equal(decode("nan", 3, &array), AX_OK);
  assert_true(isnan(*(double *)array.data));
  ax_host_array_release(&array);
}

static void test_places_of_errors(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } cases[] = {
      {"x,y\n1,2\n", "t.csv:1:1: field 1 'x' is not a number (a header line cannot be read)"},
      {"1,2\n3, 4z\n", "t.csv:2:4: field 2 '4z' is not a number"},
      {"1,2\n3,\n", "t.csv:2:3: field 2 '' is empty"},
      {"1,2\n3,  \n", "t.csv:2:5: field 2 '' is empty"},
      {",1\n", "t.csv:1:1: field 1 '' is empty"},
      {"1,2\n3\n", "t.csv:2:1: a row of 1 fields; the first row has 2"},
      {"1,2\n3,4,5\n", "t.csv:2:5: a row of 3 fields"},
      {"1\n\n\n2\n", "t.csv:2:1: an empty line between rows"},
      {"\n1\n", "t.csv:1:1: an empty line"},
      {"0x10\n", "'0x10' is not a number"},
      {"nan(1)\n", "is not a number"},
      {"1\n\v2\n", "t.csv:2:1: field 1 '?2' is not a number"},
      {"1\n1e999\n", "t.csv:2:1: field 1 '1e999' is beyond the range of f64"},
      {"1\n\"2\"\n", "is not a number"},
      {"1\n2 3\n", "'2 3' is not a number"},
      {"1;2\n", "is not a number"},
      {"", "t.csv: has no rows"},
      {"\n \r\n", "t.csv: has no rows"},
  };
  for (size_t i = 0; i < AX_COUNT(cases); i++) expect_bad(cases[i].text, strlen(cases[i].text), cases[i].message);
  expect_bad("1\n2\0\n", 5, "t.csv:2:1: field 1 '2?' is not a number");
  char many[400];
  memset(many, '1', sizeof many);
  expect_bad(many, sizeof many, "is too long for a number");
}

static void test_other_locales(void **state) {
  (void)state;
  static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"}; /* decimal commas, where installed */
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    setlocale(LC_ALL, names[i]);
    expect("1.5\n", 1, 1, (double[]){1.5});
  }
  setlocale(LC_ALL, "C");
}

/* Rows enough to cross every buffer between the file and the parser. */
static void check_file(const char *path, const char *mode) {
  enum { rows = 20000 };
  gzFile file = gzopen(path, mode);
  for (int i = 0; i < rows; i++) gzprintf(file, "%d,%d.5,-%d\n", i, i, i * 3);
  assert_int_equal(gzclose(file), Z_OK);
  ax_host_array array;
  assert_int_equal(ax_csv_read(path, &array), AX_OK);
  assert_int_equal(array.dims[0], rows);
  assert_int_equal(array.dims[1], 3);
  const double *data = array.data;
  for (int i = 0; i < rows; i++)
    assert_true(data[3 * i] == i && data[3 * i + 1] == i + .5 && data[3 * i + 2] == -3 * i);
  ax_host_array_release(&array);
}

static void expect_part(const char *part, ax_dtype dtype, uint32_t rank, int64_t rows, int64_t columns, int64_t count,
                        const double *wanted) {
  ax_host_array array;
  if (ax_csv_read_part(in_folder("part.csv"), part, dtype, &array) != AX_OK) fail_msg("%s", ax_message());
  assert_true(array.dtype == dtype && array.rank == rank && array.dims[0] == rows && (rank < 2 || array.dims[1] == columns));
  for (int64_t i = 0; i < count; i++) assert_true(ax_host_at(&array, i) == wanted[i]);
  assert_true(isnan(ax_host_at(&array, count)));
  ax_host_array_release(&array);
}

static void refuse_part(const char *part, ax_dtype dtype, ax_status status, const char *message) {
  ax_host_array array;
  assert_int_equal(ax_csv_read_part(in_folder("part.csv"), part, dtype, &array), status);
  assert_cleared(&array);
  assert_message(message);
}

static void test_parts(void **state) {
  (void)state;
  static const char text[] = "1,2.5,3\n-4,0.1,6\n7,1e39,300\n";
  file_put(in_folder("part.csv"), text, sizeof text - 1);
  expect_part("...", AX_F64, 2, 3, 3, 9, (double[]){1, 2.5, 3, -4, 0.1, 6, 7, 1e39, 300});
  expect_part(":2, :-1", AX_F32, 2, 2, 2, 4, (double[]){1, 2.5, -4, 0.1f});
  expect_part(":, -1", AX_S32, 1, 3, 0, 3, (double[]){3, 6, 300});
  expect_part("::-2, ::2", AX_S64, 2, 2, 2, 4, (double[]){7, 300, 1, 3});
  expect_part("1, 1", AX_BF16, 0, 0, 0, 1, (double[]){0.10009765625});
  expect_part("3:", AX_U8, 2, 0, 3, 0, NULL);
  refuse_part(":, 1", AX_F32, AX_IO_ERROR, "row 2, column 1: 1e+39 is no number of f32");
  refuse_part(":, 1", AX_S32, AX_IO_ERROR, "row 0, column 1: 2.5 is no number of s32");
  refuse_part(":, 0", AX_U32, AX_IO_ERROR, "row 1, column 0: -4 is no number of u32");
  refuse_part(":, 2", AX_U8, AX_IO_ERROR, "row 2, column 2: 300 is no number of u8");
  refuse_part(":, 3", AX_F32, AX_INVALID_ARGUMENT, "\":, 3\", character 4: 3 is outside of dimension 1, of 3");
  refuse_part("...", AX_NO_DTYPE, AX_INVALID_ARGUMENT, "no dtype");
}

static void test_files(void **state) {
  (void)state;
  check_file(in_folder("plain.csv"), "wT");
  check_file(in_folder("packed.csv.gz"), "w6");
}

static void expect_bad_file(const char *path, const char *message) {
  ax_host_array array;
  assert_int_equal(ax_csv_read(path, &array), AX_IO_ERROR);
  assert_cleared(&array);
  assert_message(path);
  assert_message(message);
}

static void test_bad_files(void **state) {
  (void)state;
  const char *path = in_folder("t.csv.gz");
  expect_bad_file(in_folder("absent.csv"), "No such file");
  expect_bad_file(folder, "is not a file");
  assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
  expect_bad_file(in_folder("pipe"), "is not a file");
  file_put(path, "", 0);
  expect_bad_file(path, "has no rows");
  file_put(path, "\x1f\x8b garbage that is no gzip", 20);
  expect_bad_file(path, "cannot read");
}

static void test_gzip_cut_everywhere(void **state) {
  (void)state;
  const char *path = in_folder("t.csv.gz");
  gzFile file = gzopen(path, "wb");
  for (int i = 0; i < 10; i++) gzprintf(file, "%d,%d\n", i, i * i);
  gzclose(file);
  size_t count;
  unsigned char *bytes = file_get(path, &count);
  for (size_t cut = 0; cut < count; cut++) {
    file_put(path, bytes, cut);
    expect_bad_file(path, "");
  }
  file_put(path, bytes, count - 1);
  expect_bad_file(path, "cut short");
  bytes[count - 6] ^= 1; /* checksum */
  file_put(path, bytes, count);
  expect_bad_file(path, "cannot read");
  free(bytes);
}

static void test_mutations(void **state) {
  (void)state;
  static const char text[] = "1.5,2,-3e4\r\n4,inf,6\n7,8.25,9\n";
  enum { length = sizeof text - 1, capacity = 100 };
  uint64_t seed = 99;
  int read = 0;
  for (int round = 0; round < 5000; round++) {
    unsigned char changed[capacity];
    memcpy(changed, text, length);
    size_t count = mutate(changed, length, capacity, &seed);
    ax_host_array array;
    ax_status status = decode((const char *)changed, count, &array);
    assert_true(status == AX_OK || status == AX_IO_ERROR);
    if (status != AX_OK) assert_cleared(&array);
    read += status == AX_OK;
    ax_host_array_release(&array);
    assert_int_equal(heap.live, 0);
  }
  assert_in_range(read, 1, 4999);
}

static void test_out_of_memory(void **state) {
  (void)state;
  ax_status status = AX_OUT_OF_MEMORY;
  for (long fail_at = 1; status != AX_OK; fail_at++) {
    ax_host_array array;
    heap_reset(fail_at);
    status = decode("1,2,3\n4,5,6\n7,8,9\n1,1,1\n", 24, &array);
    assert_int_equal(status, heap.calls >= fail_at ? AX_OUT_OF_MEMORY : AX_OK);
    ax_host_array_release(&array);
    assert_int_equal(heap.live, 0);
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_before, files_after)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_tables),
      TEST(test_places_of_errors),
      TEST(test_other_locales),
      TEST(test_parts),
      TEST(test_files),
      TEST(test_bad_files),
      TEST(test_gzip_cut_everywhere),
      TEST(test_mutations),
      TEST(test_out_of_memory),
  };
  return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
