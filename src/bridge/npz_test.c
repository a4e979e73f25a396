/* .npz: round trips, archives that NumPy wrote, and archives that lie. */
#include "bridge/files_test.h"

/* NumPy 2.4: savez(a=arange(6, '<f4').reshape(2, 3)) */
static const char stored_hex[] =
    "504b03042d0000000000000021004fe9002affffffffffffffff05001400612e6e70790100100098000000000000009800000000000000"
    "934e554d5059010076007b276465736372273a20273c6634272c2027666f727472616e5f6f72646572273a2046616c73652c2027736861"
    "7065273a2028322c2033292c207d2020202020202020202020202020202020202020202020202020202020202020202020202020202020"
    "20202020202020202020202020202020200a000000000000803f0000004000004040000080400000a040504b01022d032d000000000000"
    "0021004fe9002a9800000098000000050000000000000000000000800100000000612e6e7079504b0506000000000100010033000000cf"
    "0000000000";
/* NumPy 2.4: savez_compressed(w=asfortranarray(the same), zeros=299 zeros and -2 as '>i2') */
static const char deflated_hex[] =
    "504b03042d000000080000002100ce2ce0d3ffffffffffffffff05001400772e6e70790100100098000000000000005600000000000000"
    "9bec17ea1b10c9c850c650ad9e925a9c5ca46ea5a06e9366a2aea3a09e965f54529498179f5f94920a120f292a4d050a17672416a402b9"
    "1a463a0ac69a3a0ab50ae4032e06307070606068b007620710878161810300504b03042d000000080000002100cd22acc2ffffffffffff"
    "ffff090014007a65726f732e6e707901001000d8020000000000004f000000000000009bec17ea1b10c9c850c650ad9e925a9c5ca46ea5"
    "a06e9769a4aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402f91ac606063a9a3a0ab50a64032e8651300aa80e"
    "feff0300504b01022d032d000000080000002100ce2ce0d35600000098000000050000000000000000000000800100000000772e6e7079"
    "504b01022d032d000000080000002100cd22acc24f000000d802000009000000000000000000000080018d0000007a65726f732e6e7079"
    "504b050600000000020002006a000000170100000000";
/* A member of 270 bytes, deflated (stored), that claims in directory, zip64 field and npy header to hold u8[2^40]. */
static const char lying_deflated_hex[] =
    "504b03042d00000008000000210045827162ffffffffffffffff05001400612e6e70790100100050000000000100005100000000000000"
    "9bec17ea1b10c9c8e0c650ad9e925a9c5ca46ea5a05e536aa8aea3a09e965f54529498179f5f94920a12774bcc294e058a17672416a402"
    "f91a86069696a686866646e6e6e6663a9a3a0ab55cecc3040000504b01022d002d00000008000000210045827162ffffffffffffffff05"
    "0014000000000000000000000000000000612e6e70790100100050000000000100005100000000000000504b0506000000000100010047"
    "000000880000000000";
static const char lying_stored_hex[] =
    "504b03042d00000000000000210045827162ffffffffffffffff05001400612e6e70790100100050000000000100005000000000010000"
    "934e554d5059010046007b276465736372273a20277c7531272c2027666f727472616e5f6f72646572273a2046616c73652c2027736861"
    "7065273a2028313039393531313632373737362c292c207d0a070707070707070707070707070707070707070707070707070707070707"
    "07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707"
    "07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707"
    "07070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707070707"
    "0707070707504b01022d002d00000000000000210045827162ffffffffffffffff050014000000000000000000000000000000612e6e70"
    "790100100050000000000100005000000000010000504b05060000000001000100470000004f0100000000";

/* malloc'd */
static unsigned char *from_hex(const char *hex, size_t *count) {
  *count = strlen(hex) / 2;
  unsigned char *bytes = malloc(*count);
  for (size_t i = 0; i < *count; i++) {
    unsigned byte;
    assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
    bytes[i] = (unsigned char)byte;
  }
  return bytes;
}

static void test_round_trip(void **state) {
  (void)state;
  enum { count = AX_KEY - 1 }; /* all others have names in files */
  char names[count][16];
  const char *pointers[count];
  ax_host_array arrays[count];
  for (int i = 0; i < count; i++) {
    snprintf(names[i], sizeof names[i], "%s%d.x", ax_dtype_name((ax_dtype)(i + 1)), i);
    pointers[i] = names[i];
    arrays[i] = patterned((ax_dtype)(i + 1), (uint32_t)i % 4, (int64_t[]){i % 3, i + 1, 2});
  }
  assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(count, pointers), arrays), AX_OK);
  assert_int_equal(folder_entries(), 1);
  ax_npz *npz;
  assert_int_equal(ax_npz_read(in_folder("a.npz"), &npz), AX_OK);
  assert_int_equal(ax_npz_count(npz), count);
  for (uint32_t i = 0; i < count; i++) {
    assert_string_equal(ax_npz_name(npz, i), names[i]);
    assert_array_equal(&arrays[i], ax_npz_array(npz, i));
    assert_ptr_equal(ax_npz_find(npz, names[i]), ax_npz_array(npz, i));
    ax_host_array_release(&arrays[i]);
  }
  assert_null(ax_npz_name(npz, count));
  assert_null(ax_npz_array(npz, count));
  assert_null(ax_npz_find(npz, "absent"));
  ax_npz_release(npz);
  ax_npz_release(NULL);
}

static void test_numpys_stored(void **state) {
  (void)state;
  size_t count;
  unsigned char *bytes = from_hex(stored_hex, &count);
  ax_npz *npz;
  assert_int_equal(ax_npz_decode(bytes, count, "t.npz", &npz), AX_OK);
  assert_int_equal(ax_npz_count(npz), 1);
  assert_array_equal(&(ax_host_array){AX_F32, 2, {2, 3}, (float[]){0, 1, 2, 3, 4, 5}, false, {0}}, ax_npz_find(npz, "a"));
  ax_npz_release(npz);
  free(bytes);
}

static void test_numpys_deflated(void **state) {
  (void)state;
  size_t count;
  unsigned char *bytes = from_hex(deflated_hex, &count);
  file_put(in_folder("a.npz"), bytes, count);
  ax_npz *npz;
  int16_t zeros[300] = {[299] = -2};
  assert_int_equal(ax_npz_read(in_folder("a.npz"), &npz), AX_OK);
  assert_int_equal(ax_npz_count(npz), 2);
  assert_array_equal(&(ax_host_array){AX_F32, 2, {2, 3}, (float[]){0, 1, 2, 3, 4, 5}, false, {0}}, ax_npz_find(npz, "w"));
  assert_array_equal(&(ax_host_array){AX_S16, 1, {300}, zeros, false, {0}}, ax_npz_find(npz, "zeros"));
  ax_npz_release(npz);
  free(bytes);
}

static void test_no_arrays(void **state) {
  (void)state;
  ax_npz *npz;
  assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(0, NULL), NULL), AX_OK);
  assert_int_equal(ax_npz_read(in_folder("a.npz"), &npz), AX_OK);
  assert_int_equal(ax_npz_count(npz), 0);
  ax_npz_release(npz);
}

static void test_equal_arrays_make_equal_files(void **state) {
  (void)state;
  ax_host_array array = patterned(AX_S32, 2, (int64_t[]){3, 4});
  size_t counts[2];
  unsigned char *bytes[2];
  for (int i = 0; i < 2; i++) {
    assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(1, &(const char *){"w"}), &array), AX_OK);
    bytes[i] = file_get(in_folder("a.npz"), &counts[i]);
  }
  assert_int_equal(counts[0], counts[1]);
  assert_memory_equal(bytes[0], bytes[1], counts[0]);
  free(bytes[0]);
  free(bytes[1]);
  ax_host_array_release(&array);
}

static void expect_bad(const unsigned char *bytes, size_t count, const char *message) {
  unsigned char *copy = exact_copy(bytes, count);
  ax_npz *npz = (ax_npz *)&npz;
  assert_int_equal(ax_npz_decode(copy, count, "t.npz", &npz), AX_IO_ERROR);
  assert_null(npz);
  assert_message("t.npz: ");
  assert_message(message);
  free(copy);
}

static void test_lying_sizes_take_no_memory(void **state) {
  (void)state;
  size_t count;
  unsigned char *bytes = from_hex(lying_deflated_hex, &count);
  expect_bad(bytes, count, "a.npy");
  free(bytes);
  bytes = from_hex(lying_stored_hex, &count);
  expect_bad(bytes, count, "a.npy");
  free(bytes);
  assert_true(heap.largest < 1 << 20);
}

static size_t find_bytes(const unsigned char *bytes, size_t count, const char *what) {
  size_t length = strlen(what), at = count - length;
  while (at > 0 && memcmp(bytes + at, what, length) != 0) at--;
  return at;
}

static void test_damage(void **state) {
  (void)state;
  size_t count;
  unsigned char *bytes = from_hex(stored_hex, &count);
  size_t data = 30 + 5 + 20 + 128; /* local header, name, zip64 field, npy header */
  bytes[data + 5] ^= 1;
  expect_bad(bytes, count, "member 'a.npy': cannot read: CRC error");
  bytes[data + 5] ^= 1;
  size_t name = find_bytes(bytes, count, "a.npy");
  memcpy(bytes + 30, "a.txt", 5);
  memcpy(bytes + name, "a.txt", 5);
  expect_bad(bytes, count, "without a .npy member");
  free(bytes);
  bytes = from_hex(deflated_hex, &count);
  expect_bad(bytes, 0, "is empty");
  expect_bad((const unsigned char *)"no archive at all, only words", 29, "Not a zip archive");
  free(bytes);
}

/* Two members renamed to the same name. */
static void test_a_name_twice(void **state) {
  (void)state;
  const char *names[] = {"left_name", "right_one"};
  float one = 1;
  ax_host_array arrays[] = {{AX_F32, 0, {0}, &one, false, {0}}, {AX_F32, 0, {0}, &one, false, {0}}};
  assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(2, names), arrays), AX_OK);
  size_t count;
  unsigned char *bytes = file_get(in_folder("a.npz"), &count);
  for (int i = 0; i < 2; i++) memcpy(bytes + find_bytes(bytes, count, "right_one"), "left_name", 9);
  expect_bad(bytes, count, "has member 'left_name.npy' twice");
  free(bytes);
}

/* The second member's entry in the archive's directory made to claim the bytes of all the file. */
static void test_overlapping_members(void **state) {
  (void)state;
  const char *names[] = {"left_name", "right_one"};
  float many[100] = {1};
  ax_host_array arrays[] = {{AX_F32, 1, {100}, many, false, {0}}, {AX_F32, 1, {100}, many, false, {0}}};
  assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(2, names), arrays), AX_OK);
  size_t count;
  unsigned char *bytes = file_get(in_folder("a.npz"), &count), *entry = bytes + find_bytes(bytes, count, "right_one") - 46;
  assert_memory_equal(entry, "PK\1\2", 4);
  uint32_t claimed = (uint32_t)count;
  memcpy(entry + 20, &claimed, sizeof claimed); /* stored: both sizes are the same */
  memcpy(entry + 24, &claimed, sizeof claimed);
  expect_bad(bytes, count, "member 'right_one.npy' claims");
  free(bytes);
}

static void test_truncation_everywhere(void **state) {
  (void)state;
  size_t count;
  unsigned char *bytes = from_hex(deflated_hex, &count);
  for (size_t cut = 0; cut < count; cut++) {
    expect_bad(bytes, cut, "");
    file_put(in_folder("a.npz"), bytes, cut);
    ax_npz *npz;
    assert_int_equal(ax_npz_read(in_folder("a.npz"), &npz), AX_IO_ERROR);
    assert_null(npz);
  }
  free(bytes);
}

/* Returns how many of the mutated archives could still be read. */
static size_t check_mutations(const char *hex, uint64_t seed) {
  enum { capacity = 600 };
  size_t count, read = 0;
  unsigned char *bytes = from_hex(hex, &count), changed[capacity];
  for (int round = 0; round < 4000; round++) {
    memcpy(changed, bytes, count);
    size_t length = mutate(changed, count, capacity, &seed);
    unsigned char *copy = exact_copy(changed, length);
    ax_npz *npz;
    ax_status status = ax_npz_decode(copy, length, "t.npz", &npz);
    assert_true(status == AX_OK || status == AX_IO_ERROR);
    assert_true((status == AX_OK) == (npz != NULL));
    read += status == AX_OK;
    ax_npz_release(npz);
    assert_int_equal(heap.live, 0);
    free(copy);
  }
  assert_true(heap.largest < 1 << 20);
  free(bytes);
  return read;
}

static void test_mutations(void **state) {
  (void)state;
  assert_in_range(check_mutations(stored_hex, 1), 1, 3999);
  assert_in_range(check_mutations(deflated_hex, 2), 1, 3999);
  assert_int_equal(check_mutations(lying_deflated_hex, 3), 0);
}

static void test_out_of_memory(void **state) {
  (void)state;
  const char *names[] = {"a", "b"};
  ax_host_array arrays[] = {patterned(AX_F32, 1, (int64_t[]){3}), patterned(AX_F64, 0, NULL)};
  ax_status status = AX_OUT_OF_MEMORY;
  for (long fail_at = 1; status != AX_OK; fail_at++) {
    heap_reset(fail_at);
    status = ax_npz_write(in_folder("a.npz"), AX_LIST(2, names), arrays);
    assert_int_equal(status, heap.calls >= fail_at ? AX_OUT_OF_MEMORY : AX_OK);
    assert_int_equal(folder_entries(), status == AX_OK);
    assert_int_equal(heap.live, 2);
  }
  status = AX_OUT_OF_MEMORY;
  for (long fail_at = 1; status != AX_OK; fail_at++) {
    ax_npz *npz;
    heap_reset(fail_at);
    status = ax_npz_read(in_folder("a.npz"), &npz);
    assert_int_equal(status, heap.calls >= fail_at ? AX_OUT_OF_MEMORY : AX_OK);
    ax_npz_release(npz);
    assert_int_equal(heap.live, 2);
  }
  ax_host_array_release(&arrays[0]);
  ax_host_array_release(&arrays[1]);
}

static void refuse(const char *first, const char *second, const ax_host_array *array, const char *message) {
  const char *names[] = {first, second};
  ax_host_array arrays[] = {*array, *array};
  assert_int_equal(ax_npz_write(in_folder("a.npz"), AX_LIST(2, names), arrays), AX_INVALID_ARGUMENT);
  assert_message(in_folder("a.npz"));
  assert_message(message);
  assert_int_equal(folder_entries(), 0);
}

static void test_bad_arguments(void **state) {
  (void)state;
  float one = 1;
  ax_host_array good = {AX_F32, 0, {0}, &one, false, {0}}, bad = {AX_F32, 1, {4}, NULL, false, {0}};
  refuse("a", "a", &good, "'a' is given twice");
  refuse("a", "", &good, "has 0 bytes");
  refuse("a", "\xff\xfe", &good, "cannot be a name");
  refuse("a", "b", &bad, "no data");
  char *name = malloc(70000);
  memset(name, 'n', 69999);
  name[69999] = '\0';
  refuse("a", name, &good, "has 69999 bytes");
  free(name);
}

static void test_failed_writes_leave_the_old_file(void **state) {
  (void)state;
  const char *path = in_folder("a.npz");
  ax_host_array old = patterned(AX_S8, 1, (int64_t[]){5}), big = patterned(AX_U8, 1, (int64_t[]){8 << 20});
  assert_int_equal(ax_npz_write(path, AX_LIST(1, &(const char *){"old"}), &old), AX_OK);
  limit_file_size(4 << 20);
  ax_status status = ax_npz_write(path, AX_LIST(1, &(const char *){"big"}), &big);
  limit_file_size(RLIM_INFINITY);
  assert_int_equal(status, AX_IO_ERROR);
  assert_message("File too large");
  assert_int_equal(folder_entries(), 1);
  ax_npz *npz;
  assert_int_equal(ax_npz_read(path, &npz), AX_OK);
  assert_array_equal(&old, ax_npz_find(npz, "old"));
  ax_npz_release(npz);
  ax_host_array_release(&old);
  ax_host_array_release(&big);
}

static ax_status write_ones(void) {
  static float ones[4000];
  const ax_host_array array = {AX_F32, 1, {4000}, ones, false, {0}};
  return ax_npz_write(in_folder("a.npz"), AX_LIST(2, ((const char *const[]){"a", "b\xc3\xa9"})), ((ax_host_array[]){array, array}));
}
static bool is_written(void) { return write_ones() == AX_OK; }
static bool is_refused(void) { return write_ones() == AX_IO_ERROR && strstr(ax_message(), "cannot write: File too large") != NULL; }
static bool empty_is_refused(void) { return ax_npz_write(in_folder("a.npz"), AX_LIST(0, NULL), NULL) == AX_IO_ERROR; }

static void test_limited_files(void **state) {
  (void)state;
  assert_true(is_written());
  const size_t bytes = file_bytes(in_folder("a.npz"));
  folder_clear();
  assert_true(within_file_size(bytes - 1, is_refused));
  assert_true(within_file_size(100, is_refused));
  assert_true(within_file_size(21, empty_is_refused));
  assert_int_equal(folder_entries(), 0);
  assert_true(within_file_size(bytes, is_written));
  assert_int_equal(folder_entries(), 1);
}

static void test_places(void **state) {
  (void)state;
  float one = 1;
  ax_host_array array = {AX_F32, 0, {0}, &one, false, {0}};
  ax_npz *npz;
  assert_int_equal(ax_npz_read(in_folder("absent.npz"), &npz), AX_IO_ERROR);
  assert_message("No such file");
  assert_int_equal(ax_npz_read(folder, &npz), AX_IO_ERROR);
  assert_null(npz);
  assert_int_equal(ax_npz_write(folder, AX_LIST(1, &(const char *){"a"}), &array), AX_IO_ERROR);
  assert_int_equal(ax_npz_write(in_folder("no/such.npz"), AX_LIST(1, &(const char *){"a"}), &array), AX_IO_ERROR);
  assert_message("No such file");
  file_put(in_folder("old.npz"), "what was no archive", 19);
  assert_int_equal(ax_npz_write(in_folder("old.npz"), AX_LIST(1, &(const char *){"a"}), &array), AX_OK);
  assert_int_equal(ax_npz_read(in_folder("old.npz"), &npz), AX_OK);
  assert_array_equal(&array, ax_npz_find(npz, "a"));
  ax_npz_release(npz);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_before, files_after)
int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_round_trip),
      TEST(test_numpys_stored),
      TEST(test_numpys_deflated),
      TEST(test_no_arrays),
      TEST(test_equal_arrays_make_equal_files),
      TEST(test_lying_sizes_take_no_memory),
      TEST(test_damage),
      TEST(test_a_name_twice),
      TEST(test_overlapping_members),
      TEST(test_truncation_everywhere),
      TEST(test_mutations),
      TEST(test_out_of_memory),
      TEST(test_bad_arguments),
      TEST(test_failed_writes_leave_the_old_file),
      TEST(test_limited_files),
      TEST(test_places),
  };
  return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
