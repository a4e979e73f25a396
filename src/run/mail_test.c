/* Messages over one link, from device 0 to device 2, by hand: none is lost, none is read before it is there, and none is left. */
#include "run/mail.h"

#include "run/stage_test.h"
#include "support/tensor.h"

enum { elems = 2 };

static stage s;
static float sent[elems], received[devices][elems];
static const uint32_t from[] = {0, AX_NONE, AX_NONE}, to[] = {AX_NONE, AX_NONE, 0}, own[devices] = {0, 1, 2};
static ax_link links[] = {{0, 2}};
static unsigned char *parts[1 + devices]; /* what is sent; then what each device receives into */
static ax_ref sends, receives;
static ax_side send_side, receive_side;
static ax_instr send, receive;

static int set_up(void **state) {
  (void)state;
  stage_set_up(&s, false);
  s.compiled.link_count = 1;
  s.compiled.links = links;
  s.compiled.first_link = 1;
  parts[0] = (unsigned char *)sent;
  memset(received, 0, sizeof received);
  for (int f = 0; f < devices; f++) parts[1 + f] = (unsigned char *)received[f], s.activations[f].part = parts;
  sends = (ax_ref){.first = 0, .place = (const uint32_t[]){0, 0, 0}};
  receives = (ax_ref){.first = 1, .place = own};
  const ax_type type = TEST_TYPE(AX_F32, elems);
  send_side = (ax_side){.link = from, .type = type, .bytes = sizeof sent};
  receive_side = (ax_side){.link = to, .type = type, .bytes = sizeof sent};
  static const uint32_t nowhere[] = {0, 0, 0};
  sends.place = nowhere;
  send = (ax_instr){.kind = AX_INSTR_SEND, .refs = &sends, .ref_count = 1, .side = &send_side};
  receive = (ax_instr){.kind = AX_INSTR_RECEIVE, .refs = &receives, .ref_count = 1, .side = &receive_side};
  TEST_OK(ax_mail_init(&s.run));
  for (uint32_t f = 0; f < devices; f++) assert_int_equal(ax_scheduler_take(&s.run, &s.slots[0]), f);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  ax_mail_deinit(&s.run);
  stage_tear_down(&s);
  return 0;
}

static void put(float value) {
  for (int i = 0; i < elems; i++) sent[i] = value + (float)i;
  TEST_OK(ax_mail_send(&s.run, &s.activations[0], &send));
}

/* Whether it had to wait. */
static bool take(uint32_t f) {
  bool parked;
  TEST_OK(ax_mail_receive(&s.run, &s.slots[0], &s.activations[f], &receive, f, &parked));
  return parked;
}

static void messages_come_in_order(void **state) {
  (void)state;
  put(1);
  put(5);
  assert_false(take(2));
  assert_true(received[2][0] == 1 && received[2][1] == 2);
  assert_false(take(2));
  assert_true(received[2][0] == 5 && received[2][1] == 6);
  TEST_OK(ax_mail_check(&s.run));
}

static void who_receives_first_is_parked(void **state) {
  (void)state;
  assert_true(take(2));
  assert_int_equal(s.activations[2].state, ACTIVATION_PARKED);
  put(3);
  assert_int_equal(ax_scheduler_take(&s.run, &s.slots[0]), 2);
  assert_false(take(2));
  assert_true(received[2][0] == 3);
}

static void who_has_no_source_gets_zeros(void **state) {
  (void)state;
  received[1][0] = received[1][1] = 7;
  assert_false(take(1));
  assert_true(received[1][0] == 0 && received[1][1] == 0);
}

static void who_has_no_target_sends_nothing(void **state) {
  (void)state;
  TEST_OK(ax_mail_send(&s.run, &s.activations[1], &send));
  TEST_OK(ax_mail_check(&s.run));
}

static void a_message_that_nobody_receives(void **state) {
  (void)state;
  put(1);
  put(2);
  assert_false(take(2));
  TEST_FAILS(ax_mail_check(&s.run), AX_INVALID_ARGUMENT, "message 2 of device 0 (d=0) to device 2 (d=2) is never received");
  ax_mail_empty(&s.run); /* for the next call */
  TEST_OK(ax_mail_check(&s.run));
  ax_counter_reset(&s.counters[1]);
  put(9);
  assert_false(take(2));
  assert_true(received[2][0] == 9);
}

static void a_message_of_another_type(void **state) {
  (void)state;
  bool parked;
  put(1);
  receive_side.type = TEST_TYPE(AX_S32, elems);
  TEST_FAILS(ax_mail_receive(&s.run, &s.slots[0], &s.activations[2], &receive, 2, &parked), AX_INVALID_ARGUMENT,
             "receives s32[2], but message 1 of device 0 (d=0) is f32[2]");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(messages_come_in_order, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_receives_first_is_parked, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_has_no_source_gets_zeros, set_up, tear_down),
      cmocka_unit_test_setup_teardown(who_has_no_target_sends_nothing, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_message_that_nobody_receives, set_up, tear_down),
      cmocka_unit_test_setup_teardown(a_message_of_another_type, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
