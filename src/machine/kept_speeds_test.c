/* Speeds that processes keep for each other: read back where they are of this machine and make sense, replaced otherwise. */
#include "machine/kept_speeds.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/system.h"
#include "support/cmocka.h"

static char root[64], file[80];

static int begin(void **state) {
  (void)state;
  strcpy(root, "/tmp/axle_speeds_XXXXXX");
  if (mkdtemp(root) == NULL) return 1;
  snprintf(file, sizeof file, "%s/speeds", root);
  unsetenv("AXLE_MACHINE"); /* tests run with one, whose speeds are given */
  ax_machine_pretend(NULL);
  return 0;
}

static int end(void **state) {
  (void)state;
  ax_machine_pretend(NULL);
  (void)chmod(root, 0700);
  (void)unlink(file);
  return rmdir(root);
}

/* This machine, with speeds that are not its own: 10, 11, .. times a number of their size. */
static ax_description machine(void) {
  ax_description m;
  for (int f = 0; f < AX_FACT_COUNT; f++) {
    const char *unit = ax_machine_record((ax_fact)f)->unit;
    m.facts[f] = f < AX_FACT_READ ? ax_machine_know((ax_fact)f)
                                  : (ax_known){f * (strcmp(unit, "s") == 0 ? 1e-8 : 1e9), AX_SOURCE_MEASURED};
  }
  return m;
}

static bool is_found(const ax_description *m) {
  ax_description found = *m;
  for (int f = AX_FACT_READ; f < AX_FACT_MESSAGE; f++) found.facts[f] = (ax_known){1, AX_SOURCE_ASSUMED};
  const bool is = ax_kept_speeds_find(root, &found);
  for (int f = AX_FACT_READ; f < AX_FACT_MESSAGE; f++) {
    assert_int_equal(found.facts[f].source, is ? AX_SOURCE_KEPT : AX_SOURCE_ASSUMED);
    assert_true(found.facts[f].value == (is ? m->facts[f].value : 1));
  }
  return is;
}

static char *read_file(size_t *length) {
  static char text[8192];
  FILE *from = fopen(file, "r");
  assert_non_null(from);
  *length = fread(text, 1, sizeof text - 1, from);
  text[*length] = '\0';
  fclose(from);
  return text;
}

static void write_file(const char *text, size_t length) {
  FILE *to = fopen(file, "w");
  assert_non_null(to);
  assert_int_equal(fwrite(text, 1, length, to), length);
  fclose(to);
  assert_int_equal(chmod(file, 0600), 0);
}

static void read_back(void **state) {
  (void)state;
  const ax_description m = machine();
  struct stat s;
  assert_false(is_found(&m));
  ax_kept_speeds_put(root, &m);
  assert_true(is_found(&m));
  assert_int_equal(stat(file, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0600);
}

/* Facts that were not measured are not kept, and stay what they are. */
static void assumed_ones_stay(void **state) {
  (void)state;
  ax_description m = machine(), found;
  m.facts[AX_FACT_EXCHANGE].source = AX_SOURCE_ASSUMED;
  ax_kept_speeds_put(root, &m);
  found = m;
  assert_true(ax_kept_speeds_find(root, &found));
  assert_int_equal(found.facts[AX_FACT_EXCHANGE].source, AX_SOURCE_ASSUMED);
  assert_int_equal(found.facts[AX_FACT_READ].source, AX_SOURCE_KEPT);
}

/* Each fact that says which machine it is, and which share of it this process has. */
static void of_another_machine(void **state) {
  (void)state;
  static const ax_fact facts[] = {AX_FACT_L1,    AX_FACT_L3,    AX_FACT_USABLE, AX_FACT_QUOTA,
                                  AX_FACT_CORES, AX_FACT_NODES, AX_FACT_VECTOR};
  const ax_description m = machine();
  ax_kept_speeds_put(root, &m);
  for (size_t i = 0; i < AX_COUNT(facts); i++) {
    ax_description other = m;
    other.facts[facts[i]].value += 0.5;
    assert_false(is_found(&other));
  }
  ax_description slower = m;
  slower.facts[AX_FACT_QUOTA].value = 1.5;
  ax_kept_speeds_put(root, &slower); /* replaces the other's */
  assert_true(is_found(&slower));
  assert_false(is_found(&m));
}

/* Cut off anywhere, or changed in any byte. */
static void damaged(void **state) {
  (void)state;
  const ax_description m = machine();
  size_t length;
  char whole[8192];
  ax_kept_speeds_put(root, &m);
  strcpy(whole, read_file(&length));
  for (size_t i = 0; i < length; i++) {
    write_file(whole, i);
    assert_false(is_found(&m));
    char changed[8192];
    memcpy(changed, whole, length);
    changed[i] ^= 1;
    write_file(changed, length);
    assert_false(is_found(&m));
  }
  ax_kept_speeds_put(root, &m);
  assert_true(is_found(&m));
}

static void no_machine_has_them(void **state) {
  (void)state;
  static const struct {
    ax_fact fact;
    double value;
  } cases[] = {{AX_FACT_READ, 0},         {AX_FACT_READ, 1e30}, {AX_FACT_EXCHANGE, 1},
               {AX_FACT_EXCHANGE, -1e-7}, {AX_FACT_F32, 1},     {AX_FACT_S8, NAN}};
  for (size_t i = 0; i < AX_COUNT(cases); i++) {
    ax_description m = machine();
    m.facts[cases[i].fact].value = cases[i].value;
    ax_kept_speeds_put(root, &m);
    assert_false(is_found(&m));
  }
}

/* A file that others could have written, or that is none, is not read; a folder that others can write in is not used. */
static void not_the_users_own(void **state) {
  (void)state;
  const ax_description m = machine();
  ax_kept_speeds_put(root, &m);
  assert_int_equal(chmod(file, 0666), 0);
  assert_false(is_found(&m));
  assert_int_equal(unlink(file), 0);
  assert_int_equal(symlink("/etc/passwd", file), 0);
  assert_false(is_found(&m));
  ax_kept_speeds_put(root, &m); /* replaces the link, not what it leads to */
  assert_true(is_found(&m));
  assert_int_equal(chmod(root, 0777), 0);
  assert_false(is_found(&m));
  assert_int_equal(unlink(file), 0);
  ax_kept_speeds_put(root, &m);
  assert_int_equal(access(file, F_OK), -1);
}

/* Failures change no message, since the call that wanted a fact succeeds. */
static void message_stays(void **state) {
  (void)state;
  const ax_description m = machine();
  assert_int_equal(ax_require(NULL, "thing"), AX_INVALID_ARGUMENT);
  ax_description found = m;
  assert_false(ax_kept_speeds_find("/dev/null/none", &found));
  ax_kept_speeds_put("/dev/null/none", &m);
  assert_string_equal(ax_message(), "there is no thing");
}

/* What axle devices says: given before kept, kept before measured. */
static void where_facts_are_from(void **state) {
  (void)state;
  const ax_description m = machine();
  ax_kept_speeds_put(root, &m);
  ax_machine_pretend(NULL);
  ax_machine_keep(root);
  assert_int_equal(ax_machine_know(AX_FACT_READ).source, AX_SOURCE_KEPT);
  assert_true(ax_machine_know(AX_FACT_F64).value == m.facts[AX_FACT_F64].value);
  assert_string_equal(ax_fact_source_name(AX_SOURCE_KEPT), "kept");
  assert_int_equal(ax_machine_expect(AX_FACT_READ).source, AX_SOURCE_ASSUMED); /* plans do not change with it */

  ax_machine_pretend(NULL);
  assert_int_equal(setenv("AXLE_MACHINE", "zen-4", 1), 0);
  ax_machine_keep(root);
  assert_int_equal(ax_machine_know(AX_FACT_READ).source, AX_SOURCE_GIVEN);
  assert_int_equal(unsetenv("AXLE_MACHINE"), 0);

  write_file("axle speeds 1\n", 14); /* damaged: measured again */
  ax_machine_pretend(NULL);
  ax_machine_keep(root);
  assert_int_equal(ax_machine_know(AX_FACT_READ).source, AX_SOURCE_MEASURED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(read_back), TEST(assumed_ones_stay), TEST(of_another_machine), TEST(damaged), TEST(no_machine_has_them),
      TEST(not_the_users_own), TEST(message_stays), TEST(where_facts_are_from),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
