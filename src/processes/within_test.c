/* The transport inside one program: order, short and long payloads, forgotten sends, a process that is gone. */
#include "processes/within.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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

static ax_delivery *make_of_kind(uint32_t kind) {
  ax_delivery *one;
  assert_int_equal(ax_delivery_make(&(ax_envelope){.kind = kind}, 0, true, NULL, &one), AX_OK);
  return one;
}

static void check_kinds(const ax_deliveries *list, uint32_t count, const uint32_t *kinds) {
  const ax_delivery *one = list->first;
  for (uint32_t i = 0; i < count; i++, one = one->next) {
    assert_non_null(one);
    assert_int_equal(one->envelope.kind, kinds[i]);
  }
  assert_null(one);
}

static void deliveries_are_listed_in_order(void **state) {
  (void)state;
  ax_deliveries list = {0};
  for (uint32_t kind = 0; kind < 3; kind++) ax_deliveries_add(&list, make_of_kind(kind));
  check_kinds(&list, 3, (uint32_t[]){0, 1, 2});
  ax_delivery_free(ax_deliveries_take(&list, list.first->next)); /* the last, and then others behind what is the last now */
  ax_deliveries_add(&list, make_of_kind(3));
  ax_deliveries_insert(&list, list.last, make_of_kind(4));
  ax_deliveries_insert(&list, NULL, make_of_kind(5));
  ax_deliveries_add(&list, make_of_kind(6));
  check_kinds(&list, 6, (uint32_t[]){5, 0, 1, 3, 4, 6});
  for (uint32_t i = 0; i < 5; i++) ax_delivery_free(ax_deliveries_take(&list, NULL));
  check_kinds(&list, 1, (uint32_t[]){6});
  ax_deliveries_free(&list);
  check_kinds(&list, 0, NULL);
  assert_null(ax_deliveries_take(&list, NULL));
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

/* Reads half of a payload, and lets its owner wait for the rest. */
typedef struct reader {
  ax_transport *transport;
  ax_delivery *delivery;
  char *into;
  _Atomic bool begun;
  bool sees;
} reader;

static void *read_slowly(void *context) {
  reader *r = context;
  const size_t half = r->delivery->envelope.bytes / 2;
  const char *seen = r->transport->functions->see(r->transport, r->delivery);
  if (seen != NULL) memcpy(r->into, seen, half);
  else assert_int_equal(r->transport->functions->read(r->transport, r->delivery, 0, r->into, half), AX_OK);
  r->sees = seen != NULL;
  atomic_store(&r->begun, true);
  for (int i = 0; i < 200; i++) sched_yield();
  if (seen != NULL) memcpy(r->into + half, seen + half, half);
  else assert_int_equal(r->transport->functions->read(r->transport, r->delivery, half, r->into + half, half), AX_OK);
  assert_int_equal(r->transport->functions->release(r->transport, r->delivery), AX_OK);
  return NULL;
}

static ax_delivery *next_that_can_be_read(ax_transport *two[2], const ax_envelope *envelope, const char *payload, ax_loan *loan) {
  for (;;) {
    assert_int_equal(two[0]->functions->lend(two[0], 1, envelope, payload, loan), AX_OK);
    while (came_count == 0) poll(two[1]);
    ax_delivery *one = came[--came_count];
    if (one->address != 0) return one;
    assert_int_equal(two[1]->functions->release(two[1], one), AX_OK);
    ax_delivery_free(one);
  }
}

static void a_loan_that_is_read_is_awaited(void **state) {
  (void)state;
  ax_transport *two[2];
  static char lent[3 * AX_SHORT_PAYLOAD], got[sizeof lent];
  const ax_envelope envelope = {.run = 3, .bytes = sizeof lent};
  pthread_t thread;
  int seen = 0;
  make(two);
  for (char turn = 0; turn < 2; turn++) { /* it is read, and it is seen */
    ax_loan loan;
    memset(lent, 9 + turn, sizeof lent);
    reader r = {two[1], next_that_can_be_read(two, &envelope, lent, &loan), got, false, false};
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &r), 0);
    while (!atomic_load(&r.begun)) sched_yield();
    assert_int_equal(two[0]->functions->settle(two[0], &loan), AX_OK);
    assert_true(two[0]->functions->is_returned(two[0], &loan));
    memset(lent, 1, sizeof lent);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], 9 + turn);
    ax_delivery_free(r.delivery);
    seen += r.sees;
  }
  assert_int_equal(seen, 1);
  destroy(two);
}

/* One that has begun to read and is gone is not awaited. */
static void a_lost_reader_returns_loans(void **state) {
  (void)state;
  ax_transport *two[2];
  static char lent[3 * AX_SHORT_PAYLOAD], got[sizeof lent];
  const ax_envelope envelope = {.run = 3, .bytes = sizeof lent};
  ax_loan loan;
  make(two);
  ax_delivery *one = next_that_can_be_read(two, &envelope, lent, &loan);
  assert_int_equal(two[1]->functions->read(two[1], one, 0, got, 8), AX_OK);
  ax_within_lose(two[0], 1);
  assert_int_equal(two[0]->functions->settle(two[0], &loan), AX_OK);
  ax_delivery_free(one);
  destroy(two);
}

/* What finds no room among loans is copied. */
static void many_loans(void **state) {
  (void)state;
  ax_transport *two[2];
  static char lent[3 * AX_SHORT_PAYLOAD], got[sizeof lent];
  const ax_envelope envelope = {.run = 3, .bytes = sizeof lent};
  ax_loan loans[4];
  make(two);
  for (int turn = 0; turn < 2; turn++) { /* what has been read makes room */
    memset(lent, 20 + turn, sizeof lent);
    for (int i = 0; i < 4; i++) {
      assert_int_equal(two[0]->functions->lend(two[0], 1, &envelope, lent, &loans[i]), AX_OK);
      assert_int_equal(loans[i].ticket != 0, i < 2);
      if (loans[i].ticket == 0) assert_true(two[0]->functions->is_returned(two[0], &loans[i]));
    }
    for (int i = 0; i < 4; i++) assert_int_equal(two[0]->functions->settle(two[0], &loans[i]), AX_OK);
    memset(lent, 1, sizeof lent);
    while (came_count < 4) poll(two[1]);
    while (came_count > 0) {
      ax_delivery *one = came[--came_count];
      assert_int_equal(two[1]->functions->read(two[1], one, 0, got, sizeof got), AX_OK);
      assert_int_equal(two[1]->functions->release(two[1], one), AX_OK);
      for (size_t i = 0; i < sizeof got; i++) assert_int_equal(got[i], 20 + turn);
      ax_delivery_free(one);
    }
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
  const ax_delivery *longer = other;
  ax_delivery_free(other);
  assert_int_equal(ax_delivery_make(&(ax_envelope){.bytes = 6000}, 0, true, NULL, &other), AX_OK);
  assert_ptr_equal(other, longer);
  ax_deliveries_leave();
  ax_delivery_free(other);
  ax_delivery_free(one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_deliveries_are_used_again), cmocka_unit_test(lent_payloads),
      cmocka_unit_test(a_loan_that_is_read_is_awaited), cmocka_unit_test(a_lost_reader_returns_loans), cmocka_unit_test(many_loans),
      cmocka_unit_test(short_payloads_come_in_order),
      cmocka_unit_test(long_payloads_are_fetched),
      cmocka_unit_test(forgotten_sends_end),
      cmocka_unit_test(deliveries_are_listed_in_order),
      cmocka_unit_test(a_lost_process_is_named),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
