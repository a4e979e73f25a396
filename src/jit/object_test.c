/* Loading: what is loaded runs and cannot be written; objects that are cut off or damaged anywhere, and such as call what is not
   there, are errors or load all the same, and nothing is read beyond them. */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jit/emit/codegen.h"
#include "jit/emit/generator.h"
#include "jit/jit.h"
#include "jit/object/object.h"
#include "support/cmocka.h"

enum { elems = 37, kernels = 2 };

static unsigned char *object;
static size_t bytes;

static ax_object_function find(const char *name) { return ax_math_find(name); }
static ax_object_function find_nothing(const char *name) {
  (void)name;
  return NULL;
}

/* y = exp(x) + 1, and y = x * 3: one that calls a function and has constants, and one that does not. */
static int make_object(void **state) {
  (void)state;
  static const ax_position at[] = {{.dim = 0, .coef = 1, .dynamic = AX_NONE}};
  const int64_t dims[] = {elems};
  ax_arena arena = {0};
  ax_generator generator = {0};
  ax_unit both[kernels];
  for (int i = 0; i < kernels; i++) {
    ax_loop_kernel *k = ax_kernel_create(&arena, 1, 0, dims);
    ax_ex x = ax_kernel_load(k, ax_kernel_slot(k, AX_F32, 1, dims), at);
    const float three = 3, one = 1;
    int64_t bits = 0;
    memcpy(&bits, i == 0 ? &one : &three, sizeof one);
    ax_ex c = ax_kernel_const(k, AX_F32, bits);
    if (i == 0) x = ax_kernel_op(k, AX_SCALAR_EXP, AX_F32, x, AX_NONE, AX_NONE);
    x = ax_kernel_op(k, i == 0 ? AX_SCALAR_ADD : AX_SCALAR_MUL, AX_F32, x, c, AX_NONE);
    ax_kernel_store(k, ax_kernel_slot(k, AX_F32, 1, dims), at, x, AX_SCALAR_NONE);
    both[i] = (ax_unit){.kernel = k};
  }
  ax_status status = ax_generator_emit(&generator, both, kernels, (void **)&object, &bytes);
  ax_generator_deinit(&generator);
  ax_arena_deinit(&arena);
  return status == AX_OK ? 0 : 1;
}

static int drop_object(void **state) {
  (void)state;
  ax_free(object);
  return 0;
}

static ax_status load(const void *data, size_t length, ax_object_function *functions, ax_object_file *out) {
  return ax_object_load(data, length, find, AX_KERNEL_PREFIX, kernels, functions, out);
}

/* --- Tests --- */

static void runs(void **state) {
  (void)state;
  ax_object_function functions[kernels];
  ax_object_file loaded;
  float x[elems], y[elems];
  assert_int_equal(load(object, bytes, functions, &loaded), AX_OK);
  for (int i = 0; i < elems; i++) x[i] = (float)i;
  ((ax_kernel_code)functions[1])((void *[]){x, y}, NULL, 0, elems);
  for (int i = 0; i < elems; i++) assert_true(y[i] == 3 * x[i]);
  memset(x, 0, sizeof x);
  ((ax_kernel_code)functions[0])((void *[]){x, y}, NULL, 0, elems);
  for (int i = 0; i < elems; i++) assert_true(y[i] == 2);
  ax_object_unload(&loaded);
  assert_null(loaded.memory);
  ax_object_unload(&loaded);
}

/* A pipe's write end takes bytes of memory that can be read only; its read end puts them where memory can be written only. */
static bool writable(void *memory) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  assert_int_equal(write(ends[1], memory, 1), 1);
  const bool written = read(ends[0], memory, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return written;
}

static void cannot_be_written(void **state) {
  (void)state;
  ax_object_function functions[kernels];
  ax_object_file loaded;
  assert_int_equal(load(object, bytes, functions, &loaded), AX_OK);
  for (size_t at = 0; at < loaded.bytes; at += 4096) assert_false(writable((char *)loaded.memory + at));
  ax_object_unload(&loaded);
}

/* Of a block of its own, so that sanitizers see who reads on. */
static void cut_off(void **state) {
  (void)state;
  ax_object_function functions[kernels];
  ax_object_file loaded;
  for (size_t length = 0; length < bytes; length++) {
    unsigned char *copy = ax_alloc(length);
    memcpy(copy, object, length);
    ax_status status = load(copy, length, functions, &loaded);
    assert_int_equal(status, AX_INTERNAL);
    assert_null(loaded.memory);
    ax_free(copy);
  }
}

static void damaged_anywhere(void **state) {
  (void)state;
  static const unsigned char flips[] = {1, 0x80, 0xff};
  ax_object_function functions[kernels];
  ax_object_file loaded;
  uint32_t refused = 0;
  unsigned char *copy = ax_alloc(bytes);
  memcpy(copy, object, bytes);
  for (size_t at = 0; at < bytes; at++) {
    for (size_t f = 0; f < AX_COUNT(flips); f++) {
      copy[at] ^= flips[f];
      ax_status status = load(copy, bytes, functions, &loaded);
      if (status == AX_OK) ax_object_unload(&loaded);
      else refused++;
      assert_true(status == AX_OK || status == AX_INTERNAL);
      copy[at] ^= flips[f];
    }
  }
  assert_true(refused > 100);
  ax_free(copy);
}

/* Another machine's, an executable's, nobody's. */
static void of_another_kind(void **state) {
  (void)state;
  ax_object_function functions[kernels];
  ax_object_file loaded;
  Elf64_Ehdr *header = (Elf64_Ehdr *)object;
  const Elf64_Half machine = header->e_machine;
  header->e_machine = EM_S390;
  assert_int_equal(load(object, bytes, functions, &loaded), AX_INTERNAL);
  header->e_machine = machine;
  header->e_type = ET_DYN;
  assert_int_equal(load(object, bytes, functions, &loaded), AX_INTERNAL);
  header->e_type = ET_REL;
  assert_int_equal(load(object, bytes, functions, &loaded), AX_OK);
  ax_object_unload(&loaded);
}

static void what_is_missing_is_named(void **state) {
  (void)state;
  ax_object_function functions[kernels + 1];
  ax_object_file loaded;
  assert_int_equal(ax_object_load(object, bytes, find_nothing, AX_KERNEL_PREFIX, kernels, functions, &loaded), AX_INTERNAL);
  assert_non_null(strstr(ax_message(), "axle_math_"));
  assert_int_equal(ax_object_load(object, bytes, find, AX_KERNEL_PREFIX, kernels + 1, functions, &loaded), AX_INTERNAL);
  assert_non_null(strstr(ax_message(), "function is missing"));
}

/* --- Objects by number --- */

static void add(ax_objects *objects, ax_object_function *functions) {
  objects->fresh = 0;
  assert_int_equal(ax_objects_load(objects, object, bytes, find, AX_KERNEL_PREFIX, kernels, functions), AX_OK);
}

static void an_object_is_found_by_its_functions(void **state) {
  (void)state;
  ax_objects objects = {0};
  ax_object_function a[kernels], b[kernels];
  assert_true(ax_object_supported());
  add(&objects, a);
  const uint32_t first = ax_objects_of(&objects, a[1]);
  assert_int_equal(ax_objects_of(&objects, a[0]), first);
  assert_true(ax_objects_have(&objects, first));
  add(&objects, b);
  assert_int_not_equal(ax_objects_of(&objects, b[0]), first);
  assert_int_equal(ax_objects_of(&objects, a[0]), AX_NONE); /* it is not among those just loaded */
  ax_objects_deinit(&objects);
}

static void objects_in_use_are_kept(void **state) {
  (void)state;
  ax_objects objects = {0};
  ax_object_function a[kernels], b[kernels];
  add(&objects, a);
  const uint32_t used = ax_objects_of(&objects, a[0]);
  ax_objects_use(&objects, used);
  add(&objects, b);
  const uint32_t idle = ax_objects_of(&objects, b[0]);
  assert_true(objects.idle_bytes == objects.bytes / 2);
  ax_objects_trim_all(&objects);
  assert_true(ax_objects_have(&objects, used) && !ax_objects_have(&objects, idle));
  assert_int_equal(objects.idle_bytes, 0);
  ax_objects_use(&objects, used);
  ax_objects_drop(&objects, used);
  ax_objects_trim_all(&objects);
  assert_true(ax_objects_have(&objects, used)); /* it has another user */
  ax_objects_drop(&objects, used);
  assert_true(objects.idle_bytes == objects.bytes);
  ax_objects_trim_all(&objects);
  assert_false(ax_objects_have(&objects, used));
  assert_int_equal(objects.bytes, 0);
  assert_null(objects.all); /* nothing is left to free */
}

static void what_was_dropped_first_goes_first(void **state) {
  (void)state;
  ax_objects objects = {0};
  ax_object_function functions[kernels];
  uint32_t number[3];
  for (int i = 0; i < 3; i++) {
    add(&objects, functions);
    number[i] = ax_objects_of(&objects, functions[0]);
    ax_objects_use(&objects, number[i]);
  }
  ax_objects_drop(&objects, number[1]);
  ax_objects_drop(&objects, number[0]);
  ax_objects_trim(&objects, objects.idle_bytes);
  assert_true(ax_objects_have(&objects, number[1]));
  ax_objects_trim(&objects, objects.idle_bytes - 1);
  assert_false(ax_objects_have(&objects, number[1]));
  assert_true(ax_objects_have(&objects, number[0]) && ax_objects_have(&objects, number[2]));
  add(&objects, functions);
  assert_int_equal(ax_objects_of(&objects, functions[0]), number[1]); /* its number is given again */
  ax_objects_deinit(&objects);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs),
      cmocka_unit_test(cannot_be_written),
      cmocka_unit_test(cut_off),
      cmocka_unit_test(damaged_anywhere),
      cmocka_unit_test(of_another_kind),
      cmocka_unit_test(what_is_missing_is_named),
      cmocka_unit_test(an_object_is_found_by_its_functions),
      cmocka_unit_test(objects_in_use_are_kept),
      cmocka_unit_test(what_was_dropped_first_goes_first),
  };
  return cmocka_run_group_tests(tests, make_object, drop_object);
}
