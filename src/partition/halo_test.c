/* What positions see, brought from blocks, beside what they see of the whole: for windows, paddings, dilations and numbers of
   devices of all kinds. */
#include "partition/halo.h"

#include <stdlib.h>

#include "axle/collectives.h"
#include "axle/ops.h"
#include "partition/partition.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { NOTHING = -7 };

typedef struct bringing {
  ax_halo halo;
  ax_axes names;
  bool whole;
} bringing;

static void bring(const ax_value *in, ax_value *out, void *context) {
  const bringing *b = context;
  ax_value x = b->whole ? ax_all_gather_invariant(in[0], "d", 0, true) : in[0];
  if (b->whole) x = ax_slice_in_dim(x, 0, b->halo.size, 1, 0);
  ax_value fill = b->halo.reach.fill == AX_FILL_ANY ? (ax_value){0}
                                                    : ax_full(AX_S32, AX_DIMS(), b->halo.reach.fill == AX_FILL_ZERO ? 0 : NOTHING);
  out[0] = ax_halo_bring(&b->halo, x, &b->names, 0, b->whole, fill);
}

static void over_devices(const ax_value *in, ax_value *out, void *context) {
  ax_mesh mesh = {.count = 1, .axis = {{"d", ((const bringing *)context)->halo.parts, false, false}}};
  ax_shard_map(&mesh, "d -> d", AX_CLOSURE(bring, 1, 1, context), in, out);
}

static int64_t places(const bringing *b) { return ax_halo_length(&b->halo, b->whole); }

/* The element that stands at a place, or what stands where there is none. Elements are numbered from 100. */
static int32_t wanted(const ax_halo *h, int64_t place) {
  const int64_t none = h->reach.fill == AX_FILL_ZERO ? 0 : NOTHING;
  if (place < 0 || place % h->reach.base != 0 || place / h->reach.base >= h->size) return (int32_t)none;
  return (int32_t)(100 + place / h->reach.base);
}

static void check(const bringing *b, const int32_t *got, uint64_t seed) {
  const ax_halo *h = &b->halo;
  const int64_t step = places(b) < (h->count - 1) * h->reach.stride + h->reach.extent ? 1 : h->reach.stride;
  for (int64_t o = 0; o < h->positions; o++)
    for (int64_t k = 0; k < h->reach.extent; k++) {
      const int64_t device = o / h->count, place = h->reach.first + o * h->reach.stride + k;
      const int32_t here = got[device * places(b) + o % h->count * step + k], want = wanted(h, place);
      const bool looks =
          h->reach.fill != AX_FILL_ANY || (place >= 0 && place % h->reach.base == 0 && place / h->reach.base < h->size);
      if (looks && here != want)
        fail_msg(
            "seed %llu: position %lld, place %lld: %d, not %d; %lld of %lld in %lld parts, first %lld stride %lld extent %lld base %lld fill %d",
            (unsigned long long)seed, (long long)o, (long long)k, here, want, (long long)h->positions, (long long)h->size,
            (long long)h->parts, (long long)h->reach.first, (long long)h->reach.stride, (long long)h->reach.extent,
            (long long)h->reach.base, (int)h->reach.fill);
    }
}

static void one(uint64_t seed, bool show) {
  static const ax_fill fills[] = {AX_FILL_ANY, AX_FILL_ZERO, AX_FILL_OPERAND};
  test_random r = {seed};
  const ax_reach reach = {test_random_below(&r, 12) - 6, 1 + test_random_below(&r, 3), 1 + test_random_below(&r, 6),
                          1 + test_random_below(&r, 3), fills[test_random_below(&r, 3)]};
  const int64_t parts = 1 + test_random_below(&r, 6), size = 1 + test_random_below(&r, 30),
                positions = 1 + test_random_below(&r, 30);
  bringing b = {.halo = ax_halo_of(&reach, size, positions, parts),
                .names = {.count = 1, .name = {"d"}},
                .whole = test_random_below(&r, 3) == 0};
  const ax_type type = ax_array_type(AX_S32, AX_DIMS(b.halo.block * parts));
  ax_tensor *in = test_random_tensor(&r, type, 1000, 2000), *out[1]; /* padding is anything */
  for (int64_t i = 0; i < size; i++) ((int32_t *)in->data)[i] = (int32_t)(100 + i);
  ax_program *program = test_trace(over_devices, &b, &type, 1, 1);
  if (show) test_show_program(program);
  test_run(program, &in, out);
  assert_int_equal(out[0]->dims[0], parts * places(&b));
  check(&b, out[0]->data, seed);
  test_release(out, 1);
  test_release(&in, 1);
  ax_program_release(program);
}

static void windows(void **state) {
  (void)state;
  test_each_seed(400, one);
}

/* How much it says that a device receives is what it does receive: a row from each side. */
static void received(void **state) {
  (void)state;
  int64_t elements, exchanges;
  ax_halo halo = ax_halo_of(&(ax_reach){-1, 1, 3, 1, AX_FILL_ZERO}, 64, 64, 8);
  assert_true(ax_halo_received(&halo, &elements, &exchanges));
  assert_int_equal(elements, 2);
  assert_int_equal(exchanges, 2);
  halo = ax_halo_of(&(ax_reach){0, 2, 2, 1, AX_FILL_LEAST}, 64, 32, 8);
  assert_true(ax_halo_received(&halo, &elements, &exchanges));
  assert_int_equal(elements, 0);
  halo = ax_halo_of(&(ax_reach){-9, 1, 10, 1, AX_FILL_ZERO}, 32, 32, 8); /* two blocks and a row */
  assert_true(ax_halo_received(&halo, &elements, &exchanges));
  assert_int_equal(elements, 9);
  assert_int_equal(exchanges, 3);
  halo = ax_halo_of(&(ax_reach){-500, 1, 501, 1, AX_FILL_ZERO}, 512, 512, 512);
  assert_false(ax_halo_received(&halo, &elements, &exchanges));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(received)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
