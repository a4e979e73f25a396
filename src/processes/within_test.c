/* The transport inside one program: order, short and long payloads, forgotten sends, a process that is gone. */
#include "processes/within.h"

#include <string.h>

#include "base/base.h"
#include "support/cmocka.h"

static ax_delivery *came[16];
static uint32_t came_count;
static int ended;

static void keep(void *context, ax_delivery *delivery) {
  (void)context;
  came[came_count++] = delivery;
}
static void end(void *context) { ended += *(int *)context; }

static void make(ax_transport *two[2]) {
  came_count = 0;
  ended = 0;
  assert_int_equal(ax_within_create(2, two), AX_OK);
  two[0]->deliver = two[1]->deliver = keep;
}
static void destroy(ax_transport *two[2]) {
  for (uint32_t i = 0; i < came_count; i++) ax_delivery_free(came[i]);
  for (int p = 0; p < 2; p++) two[p]->functions->destroy(two[p]);
}
static bool poll(ax_transport *t) {
  bool any;
  assert_int_equal(t->functions->poll(t, &any), AX_OK);
  return any;
}

static void short_payloads_come_in_order(void **state) {
  (void)state;
  ax_transport *two[2];
  make(two);
  for (uint32_t i = 0; i < 5; i++) {
    ax_envelope envelope = {.run = 7, .bytes = sizeof i, .kind = i};
    assert_int_equal(two[0]->functions->send(two[0], 1, &envelope, &i, NULL, NULL), AX_OK);
  }
  assert_true(poll(two[1]));
  assert_false(poll(two[1]));
  assert_int_equal(came_count, 5);
  for (uint32_t i = 0; i < 5; i++) {
    assert_int_equal(came[i]->envelope.kind, i);
    assert_int_equal(came[i]->from, 0);
    assert_memory_equal(came[i]->payload, &i, sizeof i);
  }
  destroy(two);
}

static void long_payloads_are_fetched(void **state) {
  (void)state;
  ax_transport *two[2];
  static char data[3 * AX_SHORT_PAYLOAD], got[sizeof data];
  int one = 1, ten = 10;
  make(two);
  memset(data, 5, sizeof data);
  ax_envelope envelope = {.run = 7, .bytes = sizeof data};
  assert_int_equal(two[1]->functions->send(two[1], 0, &envelope, data, end, &one), AX_OK);
  assert_int_equal(two[1]->functions->send(two[1], 0, &envelope, data, NULL, NULL), AX_OK); /* a copy of its own */
  poll(two[0]);
  poll(two[1]);
  assert_int_equal(came_count, 2);
  assert_int_equal(ended, 0);
  assert_null(came[0]->payload);
  memset(data, 6, sizeof data);
  assert_int_equal(two[0]->functions->fetch(two[0], came[0], got, end, &ten), AX_OK);
  poll(two[0]);
  assert_int_equal(ended, 10);
  assert_int_equal(got[sizeof got - 1], 6);
  poll(two[1]);
  assert_int_equal(ended, 11);
  assert_int_equal(two[0]->functions->fetch(two[0], came[1], got, end, &ten), AX_OK);
  assert_int_equal(got[0], 5);
  destroy(two);
}

static void forgotten_sends_end(void **state) {
  (void)state;
  ax_transport *two[2];
  static char data[2 * AX_SHORT_PAYLOAD];
  int one = 1, ten = 10;
  make(two);
  ax_envelope envelope = {.run = 7, .bytes = sizeof data};
  assert_int_equal(two[0]->functions->send(two[0], 1, &envelope, data, end, &one), AX_OK);
  envelope.run = 8;
  assert_int_equal(two[0]->functions->send(two[0], 1, &envelope, data, end, &ten), AX_OK);
  two[0]->functions->forget(two[0], 7);
  assert_int_equal(ended, 1);
  destroy(two);
}

static void deliveries_are_listed_in_order(void **state) {
  (void)state;
  ax_delivery *list = NULL, *one;
  for (uint32_t kind = 0; kind < 3; kind++) {
    assert_int_equal(ax_delivery_make(&(ax_envelope){.kind = kind}, 0, true, NULL, &one), AX_OK);
    ax_deliveries_add(&list, one);
  }
  one = list;
  for (uint32_t kind = 0; kind < 3; kind++, one = one->next) assert_int_equal(one->envelope.kind, kind);
  assert_null(one);
  ax_deliveries_free(&list);
  assert_null(list);
}

static void a_lost_process_is_named(void **state) {
  (void)state;
  ax_transport *two[2];
  bool any;
  make(two);
  ax_within_lose(two[0], 1);
  ax_envelope envelope = {.run = 7};
  assert_int_equal(two[0]->functions->send(two[0], 1, &envelope, NULL, NULL, NULL), AX_UNAVAILABLE);
  assert_int_equal(two[0]->functions->poll(two[0], &any), AX_UNAVAILABLE);
  assert_non_null(strstr(ax_message(), "process 1"));
  destroy(two);
}

/* A payload that is lent is read where it lies, or copied when it is settled, which ever comes first. */
static void lent_payloads(void **state) {
  (void)state;
  ax_transport *two[2];
  static char lent[3 * AX_SHORT_PAYLOAD], got[sizeof lent];
  const ax_envelope envelope = {.run = 3, .bytes = sizeof lent};
  make(two);
  for (int turn = 0; turn < 4; turn++) { /* payloads that can be read in their place, and others */
    const ax_transport_functions *from = two[0]->functions, *to = two[1]->functions;
    const bool settled_first = turn / 2 == 0;
    ax_loan loan;
    memset(lent, 40 + turn, sizeof lent);
    assert_int_equal(from->lend(two[0], 1, &envelope, lent, &loan), AX_OK);
    while (came_count == 0) poll(two[1]);
    assert_false(from->is_returned(two[0], &loan));
    if (settled_first) {
      assert_int_equal(from->settle(two[0], &loan), AX_OK);
      memset(lent, 1, sizeof lent);
    }
    ax_delivery *one = came[--came_count];
    if (one->address != 0) {
      assert_int_equal(to->read(two[1], one, 0, got, sizeof got / 2), AX_OK);
      assert_int_equal(to->read(two[1], one, sizeof got / 2, got + sizeof got / 2, sizeof got - sizeof got / 2), AX_OK);
      assert_int_equal(to->release(two[1], one), AX_OK);
    } else {
      int ends = 1, before = ended;
      assert_int_equal(to->fetch(two[1], one, got, end, &ends), AX_OK);
      while (ended == before) poll(two[1]);
    }
    for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], 40 + turn);
    assert_true(from->is_returned(two[0], &loan));
    if (!settled_first) assert_int_equal(from->settle(two[0], &loan), AX_OK);
    ax_delivery_free(one);
    poll(two[0]);
  }
  destroy(two);
}

/* Their memory is kept while some transport uses it. */
static void small_deliveries_are_used_again(void **state) {
  (void)state;
  const ax_envelope envelope = {.bytes = 4};
  ax_delivery *one, *other;
  ax_deliveries_use();
  assert_int_equal(ax_delivery_make(&envelope, 3, true, "abc", &one), AX_OK);
  const ax_delivery *place = one;
  ax_delivery_free(one);
  assert_int_equal(ax_delivery_make(&envelope, 4, true, "xyz", &one), AX_OK);
  assert_ptr_equal(one, place);
  assert_int_equal(one->from, 4);
  assert_string_equal(one->payload, "xyz");
  assert_int_equal(ax_delivery_make(&(ax_envelope){.bytes = 5000}, 0, true, NULL, &other), AX_OK);
  ax_deliveries_leave();
  ax_delivery_free(other);
  ax_delivery_free(one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_deliveries_are_used_again), cmocka_unit_test(lent_payloads), cmocka_unit_test(short_payloads_come_in_order),
      cmocka_unit_test(long_payloads_are_fetched),
      cmocka_unit_test(forgotten_sends_end),
      cmocka_unit_test(deliveries_are_listed_in_order),
      cmocka_unit_test(a_lost_process_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
