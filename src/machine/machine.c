/* The kept description, and its texts. See machine.h. */
#include "machine/machine.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/caches.h"
#include "machine/features.h"
#include "machine/kept_speeds.h"
#include "machine/rates.h"
#include "machine/speeds.h"
#include "machine/system.h"

/* --- Facts --- */

typedef enum group { INSTRUCTIONS, CACHES, LIMITS, PROCESSORS, SPEEDS, MESSAGES, GROUPS } group;

static const struct fact_row {
  ax_fact_record record;
  group group;
  double least, most; /* that a text may give */
} rows[] = {
    [AX_FACT_VECTOR] = {{"vector", "B", "registers that code is made for", 16, false}, INSTRUCTIONS, 0, 0},
    [AX_FACT_TILE] = {{"tile", "B", "registers of tiles", 0, false}, INSTRUCTIONS, 0, 0},
    [AX_FACT_LINE] = {{"line", "B", "a line of the caches", 64, true}, CACHES, 16, 4096},
    [AX_FACT_L1] = {{"l1", "B", "a core's first cache", 48 << 10, true}, CACHES, 4096, 0x1p30},
    [AX_FACT_L2] = {{"l2", "B", "a second cache", 1 << 20, true}, CACHES, 4096, 0x1p40},
    [AX_FACT_L2_CORES] = {{"l2_cores", "", "cores that share a second cache", 1, true}, CACHES, 1, AX_MOST_PROCESSORS},
    [AX_FACT_L3] = {{"l3", "B", "a third cache", 32 << 20, true}, CACHES, 0, 0x1p40},
    [AX_FACT_L3_CORES] = {{"l3_cores", "", "cores that share a third cache", 8, true}, CACHES, 1, AX_MOST_PROCESSORS},
    [AX_FACT_THREADS] = {{"threads", "", "processors that are one core", 1, true}, CACHES, 1, 64},
    [AX_FACT_USABLE] = {{"usable", "", "processors that this process may run on", 1, false}, LIMITS, 0, 0},
    [AX_FACT_QUOTA] = {{"quota", "", "processors whose time it gets; 0: no limit", 0, false}, LIMITS, 0, 0},
    [AX_FACT_PROCESSORS] = {{"processors", "", "processors at work", 1, false}, PROCESSORS, 0, 0},
    [AX_FACT_CORES] = {{"cores", "", "cores", 1, false}, PROCESSORS, 0, 0},
    [AX_FACT_PACKAGES] = {{"packages", "", "packages of cores", 1, false}, PROCESSORS, 0, 0},
    [AX_FACT_NODES] = {{"nodes", "", "NUMA nodes", 1, false}, PROCESSORS, 0, 0},
    [AX_FACT_USABLE_CORES] = {{"usable_cores", "", "cores that this process may run on", 1, false}, PROCESSORS, 0, 0},
    [AX_FACT_READ] = {{"read", "B/s", "what one core reads from memory", 5e10, true}, SPEEDS, 1, 1e18},
    [AX_FACT_WRITE] = {{"write", "B/s", "what it writes to memory", 5e10, true}, SPEEDS, 1, 1e18},
    [AX_FACT_READ_ALL] = {{"read_all", "B/s", "what all cores together read", 5e10, true}, SPEEDS, 1, 1e18},
    [AX_FACT_WRITE_ALL] = {{"write_all", "B/s", "what they write", 5e10, true}, SPEEDS, 1, 1e18},
    [AX_FACT_L2_READ] = {{"l2_read", "B/s", "what one core reads from a second cache", 2e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_L3_READ] = {{"l3_read", "B/s", "what one core reads from the last cache", 1e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_L3_HOLDS] = {{"l3_holds", "B", "of so much at most", 24 << 20, true}, SPEEDS, 4096, 0x1p40},
    [AX_FACT_EXCHANGE] = {{"exchange", "s", "a line of one core read by another", 1e-7, true}, SPEEDS, 1e-12, 1},
    [AX_FACT_F32] = {{"f32", "flop/s", "products of f32 on one core", 2e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_F64] = {{"f64", "flop/s", "the same of f64", 1e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_F16] = {{"f16", "flop/s", "arithmetic of f16", 2e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_BF16] = {{"bf16", "flop/s", "products of bf16", 4e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_S8] = {{"s8", "flop/s", "products of s8", 8e11, true}, SPEEDS, 1, 1e18},
    [AX_FACT_MIXED] = {{"mixed", "flop/s", "sums, products, comparisons in turns", 8e10, true}, SPEEDS, 1, 1e18},
    [AX_FACT_QUOTIENTS] = {{"quotients", "flop/s", "quotients and roots of f32", 5.5e9, true}, SPEEDS, 1, 1e18},
    /* On one host: round figures of two processes on a Zen 4, by MPICH 4 and Open MPI 4.1. Between hosts: of a network of
       100 Gb/s, whose messages take 1 to 2 us by themselves. */
    [AX_FACT_MESSAGE] = {{"message", "s", "a message between processes of a host", 8e-7, true}, MESSAGES, 1e-9, 1},
    [AX_FACT_MESSAGE_BYTES] = {{"message_bytes", "B/s", "what short ones carry", 2.5e9, true}, MESSAGES, 1, 1e18},
    [AX_FACT_HANDSHAKE] = {{"handshake", "s", "a long one, besides its bytes", 5e-6, true}, MESSAGES, 1e-9, 1},
    [AX_FACT_TRANSFER] = {{"transfer", "B/s", "what long ones carry", 1e10, true}, MESSAGES, 1, 1e18},
    [AX_FACT_NETWORK_MESSAGE] = {{"network_message", "s", "a message between hosts", 2e-6, true}, MESSAGES, 1e-9, 1},
    [AX_FACT_NETWORK_MESSAGE_BYTES] = {{"network_message_bytes", "B/s", "what short ones carry", 2.5e9, true}, MESSAGES, 1, 1e18},
    [AX_FACT_NETWORK_HANDSHAKE] = {{"network_handshake", "s", "a long one, besides its bytes", 1e-5, true}, MESSAGES, 1e-9, 1},
    [AX_FACT_NETWORK_TRANSFER] = {{"network_transfer", "B/s", "what long ones carry", 1.2e10, true}, MESSAGES, 1, 1e18},
};

const ax_fact_record *ax_machine_record(ax_fact fact) { return fact < AX_FACT_COUNT ? &rows[fact].record : NULL; }

const char *ax_fact_source_name(ax_fact_source source) {
  static const char *const names[] = {"assumed", "asked", "measured", "kept", "given"};
  return names[source];
}

ax_description ax_machine_assumed(ax_fact_source source) {
  ax_description m;
  for (int f = 0; f < AX_FACT_COUNT; f++) m.facts[f] = (ax_known){rows[f].record.assumed, source};
  return m;
}

/* --- Texts --- */

static const struct {
  const char *name, *text;
} named[] = {
    {"reference", "# The machine that tests and pages are made for: all facts are the assumed ones.\n"},
    {"zen-4", "l1 32 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\nthreads 2\n"},
    {"zen-5", "l1 48 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 8\nthreads 2\n"},
    {"sapphire-rapids", "l1 48 KiB\nl2 2 MiB\nl3 105 MiB\nl3_cores 56\nthreads 2\n"},
    {"neoverse-v1", "l1 64 KiB\nl2 1 MiB\nl3 32 MiB\nl3_cores 64\n"},
    {"cortex-a72", "l1 32 KiB\nl2 1 MiB\nl2_cores 4\nl3 0 B\nl3_cores 1\n"},
};

const char *ax_machine_named(uint32_t index, const char **text) {
  if (text != NULL) *text = index < AX_COUNT(named) ? named[index].text : NULL;
  return index < AX_COUNT(named) ? named[index].name : NULL;
}

static const struct unit {
  const char *name, *of;
  double value;
} units[] = {{"GiB", "B", 0x1p30},       {"MiB", "B", 0x1p20},   {"KiB", "B", 0x1p10}, {"B", "B", 1},
             {"GB/s", "B/s", 1e9},       {"B/s", "B/s", 1},      {"us", "s", 1e-6},    {"ns", "s", 1e-9},    {"s", "s", 1},
             {"Gflop/s", "flop/s", 1e9}, {"flop/s", "flop/s", 1}};

static int find_fact(const char *name) {
  for (int f = 0; f < AX_FACT_COUNT; f++)
    if (strcmp(rows[f].record.name, name) == 0) return f;
  return AX_FACT_COUNT;
}

/* The word in the fact's own unit; 0: it is no such unit. A fact without a unit has no word. */
static double unit_value(const ax_fact_record *record, const char *word) {
  if (word[0] == '\0') return record->unit[0] == '\0';
  for (size_t i = 0; i < AX_COUNT(units); i++)
    if (strcmp(units[i].name, word) == 0 && strcmp(units[i].of, record->unit) == 0) return units[i].value;
  return 0;
}

static ax_status parse_line(const char *line, uint32_t number, ax_description *out) {
  char name[32] = "", unit[16] = "", more[2] = "";
  double value;
  const int words = sscanf(line, "%31s %lf %15s %1s", name, &value, unit, more);
  const int fact = find_fact(name);
  if (words < 1) return AX_OK;
  if (fact == AX_FACT_COUNT) return ax_error(AX_INVALID_ARGUMENT, "line %u: a machine has no '%s'", number, name);
  const struct fact_row *row = &rows[fact];
  if (!row->record.given)
    return ax_error(AX_INVALID_ARGUMENT, "line %u: '%s' cannot be given: programs run on this machine's processors", number, name);
  if (words < 2 || words > 3 || unit_value(&row->record, unit) == 0)
    return ax_error(AX_INVALID_ARGUMENT, "line %u: expected '%s', a number%s%s", number, name,
                    row->record.unit[0] == '\0' ? "" : " and its unit, as ", row->record.unit);
  value *= unit_value(&row->record, unit);
  const bool whole = strchr(row->record.unit, '/') == NULL && strcmp(row->record.unit, "s") != 0;
  if (!(value >= row->least && value <= row->most) || (whole && value != floor(value)))
    return ax_error(AX_INVALID_ARGUMENT, "line %u: '%s' is a%s number from %g to %g%s%s", number, name, whole ? " whole" : "",
                    row->least, row->most, row->record.unit[0] == '\0' ? "" : " ", row->record.unit);
  out->facts[fact].value = value;
  return AX_OK;
}

static ax_status parse_lines(const char *text, ax_description *out) {
  for (uint32_t number = 1; *text != '\0'; number++) {
    char line[128];
    const size_t length = strcspn(text, "\n"), said = strcspn(text, "#\n");
    if (said >= sizeof line) return ax_error(AX_INVALID_ARGUMENT, "line %u: longer than any fact", number);
    memcpy(line, text, said);
    line[said] = '\0';
    AX_TRY(parse_line(line, number, out));
    text += length + (text[length] == '\n');
  }
  return AX_OK;
}

ax_status ax_machine_parse(const char *text, ax_description *out) {
  locale_t saved;
  *out = ax_machine_assumed(AX_SOURCE_GIVEN);
  out->facts[AX_FACT_L3_HOLDS].source = AX_SOURCE_ASSUMED; /* unless it is said: as much as the caches that are (caches.h) */
  AX_TRY(ax_text_locale_enter(&saved));
  const ax_status status = parse_lines(text, out);
  ax_text_locale_leave(saved);
  return status;
}

void ax_machine_add_text(ax_text *text, ax_fact fact, ax_known known) {
  const ax_fact_record *record = &rows[fact].record;
  const struct unit *best = NULL;
  ax_text said = {0};
  for (size_t i = 0; i < AX_COUNT(units); i++) {
    const bool fits = strcmp(units[i].of, "B") != 0 || floor(known.value / units[i].value) == known.value / units[i].value;
    if (best == NULL && strcmp(units[i].of, record->unit) == 0 && fits && known.value >= units[i].value) best = &units[i];
  }
  ax_text_add(&said, "%s %.4g%s%s", record->name, known.value / (best != NULL ? best->value : 1),
              record->unit[0] == '\0' ? "" : " ", best != NULL ? best->name : record->unit);
  text->failed = text->failed || said.failed;
  if (!said.failed) ax_text_add(text, "%-22s # %s: %s\n", said.data, ax_fact_source_name(known.source), record->meaning);
  ax_text_deinit(&said);
}

/* --- What is given --- */

static ax_status read_file(const char *path, ax_description *out) {
  char *text = ax_alloc(1 << 16);
  if (text == NULL) return ax_out_of_memory(1 << 16);
  errno = 0;
  ax_status status = ax_system_file("", path, text, 1 << 16)
                         ? ax_machine_parse(text, out)
                         : ax_error(AX_INVALID_ARGUMENT, "no machine is called so, and it is no file: %s", strerror(errno));
  ax_free(text);
  return status;
}

/* AXLE_MACHINE is read once for the process: facts read before it changes and facts read afterwards would be of no
   machine. */
static struct {
  pthread_mutex_t lock;
  bool settled, valid, says; /* valid: AXLE_MACHINE could be read. says: it is set */
  ax_description machine;
} given = {.lock = PTHREAD_MUTEX_INITIALIZER};

static ax_status read_given(ax_description *out, bool *says) {
  const char *said = secure_getenv("AXLE_MACHINE"), *text = NULL;
  *says = said != NULL && said[0] != '\0';
  if (!*says) return AX_OK;
  for (uint32_t i = 0; i < AX_COUNT(named) && text == NULL; i++)
    if (strcmp(named[i].name, said) == 0) text = named[i].text;
  const ax_status status = text != NULL ? ax_machine_parse(text, out) : read_file(said, out);
  return status == AX_OK ? AX_OK : ax_error_context(status, "AXLE_MACHINE '%s': ", said);
}

/* Reads it, if no reading has succeeded yet. A failure settles it only for facts that are needed now: they are this machine's own
   from then on. */
static ax_status settle(bool needed) { /* with its lock held */
  ax_description machine;
  bool says;
  if (given.settled && given.valid) return AX_OK;
  const ax_status status = read_given(&machine, &says);
  if (given.settled || (status != AX_OK && !needed)) return status;
  given.settled = true;
  given.valid = status == AX_OK;
  given.says = given.valid && says;
  if (given.says) given.machine = machine;
  return status;
}

ax_status ax_machine_check(void) {
  pthread_mutex_lock(&given.lock);
  const ax_status status = settle(false);
  pthread_mutex_unlock(&given.lock);
  return status;
}

/* Whether the machine is given. A description that cannot be read is reported by ax_machine_check alone: the call that needs a fact
   succeeds, so its caller's message stays. */
static bool find_given(ax_description *out) {
  ax_message_copy before;
  pthread_mutex_lock(&given.lock);
  if (!given.settled) {
    ax_message_keep(&before);
    if (settle(true) != AX_OK) ax_message_put_back(&before);
  }
  const bool says = given.says;
  if (says) *out = given.machine;
  pthread_mutex_unlock(&given.lock);
  return says;
}

/* --- What is kept --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ax_description here; /* each group is written once, before it is ready */
static _Atomic bool ready[GROUPS], pretends;

static void ask_instructions(ax_description *m) {
  m->facts[AX_FACT_VECTOR] = (ax_known){ax_machine_register_bytes(), AX_SOURCE_ASKED};
  m->facts[AX_FACT_TILE] = (ax_known){ax_machine_tile_bytes(), AX_SOURCE_ASKED};
}

static char kept_in[PATH_MAX]; /* the folder that speeds are kept in; "": nowhere */

/* A busy machine's speeds serve this process alone. */
static void ask_speeds(ax_description *m) {
  const bool keeps = kept_in[0] != '\0';
  if (keeps && ax_kept_speeds_find(kept_in, m)) return;
  if (ax_speeds_measure(m) && keeps) ax_kept_speeds_put(kept_in, m);
}

static void ask(group g, ax_description *m) {
  ax_description said;
  if (g == INSTRUCTIONS) ask_instructions(m);
  if (g == LIMITS) ax_system_read_limits("", m);
  if (g == PROCESSORS) ax_system_read_processors("", m);
  if (g != CACHES && g != SPEEDS && g != MESSAGES) return;
  if (find_given(&said)) {
    for (int f = 0; f < AX_FACT_COUNT; f++)
      if (rows[f].group == g) m->facts[f] = said.facts[f];
  } else if (g == CACHES) {
    ax_system_read_caches("", m);
  } else if (g == SPEEDS) {
    ask_speeds(m);
  }
}

static void fill(group g) {
  for (int before = 0; g == SPEEDS && before < SPEEDS; before++) fill((group)before); /* they decide how speeds are measured */
  pthread_mutex_lock(&lock);
  if (!atomic_load(&ready[g])) {
    const ax_description plain = ax_machine_assumed(AX_SOURCE_ASSUMED);
    for (int f = 0; f < AX_FACT_COUNT; f++)
      if (rows[f].group == g) here.facts[f] = plain.facts[f];
    ask(g, &here);
    atomic_store(&ready[g], true);
  }
  pthread_mutex_unlock(&lock);
}

ax_known ax_machine_know(ax_fact fact) {
  const group g = rows[fact].group;
  if (!atomic_load_explicit(&ready[g], memory_order_acquire)) fill(g);
  return here.facts[fact];
}

ax_known ax_machine_expect(ax_fact fact) {
  ax_description said;
  if (rows[fact].group != SPEEDS) return ax_machine_know(fact);
  if (atomic_load_explicit(&pretends, memory_order_acquire)) return here.facts[fact];
  if (find_given(&said)) return said.facts[fact];
  const double widest = AX_REGISTER_BYTES, narrower = ax_machine_know(AX_FACT_VECTOR).value / widest;
  double value = rows[fact].record.assumed;
  if (fact >= AX_FACT_F32 && fact <= AX_FACT_S8) value = rows[AX_FACT_F32].record.assumed * ax_speeds_beside_f32(fact);
  if (fact >= AX_FACT_F32 && fact <= AX_FACT_MIXED) value *= narrower; /* registers of any width are divided by one unit */
  return (ax_known){value, AX_SOURCE_ASSUMED};
}

void ax_machine_keep(const char *folder) {
  pthread_mutex_lock(&lock);
  if (folder != NULL && strlen(folder) < sizeof kept_in && kept_in[0] == '\0') strcpy(kept_in, folder);
  pthread_mutex_unlock(&lock);
}

uint32_t ax_machine_threads(void) {
  const double usable = ax_machine_know(AX_FACT_USABLE).value, quota = ceil(ax_machine_know(AX_FACT_QUOTA).value);
  return (uint32_t)(quota > 0 && quota < usable ? quota : usable);
}

void ax_machine_pretend(const ax_description *machine) {
  if (machine != NULL) here = *machine;
  given.settled = false;
  kept_in[0] = '\0';
  atomic_store(&pretends, machine != NULL);
  ax_caches_forget();
  ax_rates_forget();
  for (int g = 0; g < GROUPS; g++) atomic_store(&ready[g], machine != NULL);
}
