/* Descriptions of machines are read, and those that are there by name. */
#include "sim/cluster.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/lex.h"
#include "ir/text.h"
#include "machine/rates.h"
#include "processes/ways.h"

static const struct {
  const char *name, *text;
} builtins[] = {
#define AX_MACHINE(name, text) {name, text},
#include "sim/machines.def"
#undef AX_MACHINE
    {"cpu", NULL}, /* of this machine's description */
};

/* --- This machine --- */

static char own_text[1024];
static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;

/* A device is so many cores. What one sends another is copied: read and written once. A line that goes to and fro some times hands a
   message over (latency), and others tell the sender and the operation to begin (overhead, launch), or cores that they are to share it. */
enum { lines_of_a_message = 10, lines_of_a_start = 2, lines_of_a_share = 40 };

/* The rates say how much of a cache is at hand; a description, as levels.h has it, how large the cache is. */
static double cache_of(double held) { return held * 4 / 3; }

static void make_own_text(uint32_t wanted, char *out, size_t size) {
  const double usable = fmax(1, ax_machine_know(AX_FACT_USABLE_CORES).value);
  const uint32_t cores = (double)wanted < usable ? wanted : (uint32_t)usable;
  const ax_rates r = ax_rates_measured(cores);
  const double start = lines_of_a_start * r.exchange;
  ax_text text = {0};
  ax_text_add(&text, "# %s of this machine (axle devices), which share its memory: what they send one another is copied.\n",
              cores > 1 ? "Groups of cores" : "Cores");
  ax_text_add(&text, "machine \"cpu\"\ndevice flops f32 %.3g flops f64 %.3g flops f16 %.3g flops bf16 %.3g flops s8 %.3g\n",
              r.flops[AX_F32], r.flops[AX_F64], r.flops[AX_F32], r.flops[AX_BF16], r.flops[AX_S8]);
  ax_text_add(&text, "  memory %.3g write %.3g cache %.0f %.3g ", r.read, r.write, r.near_bytes, r.near);
  if (cache_of(r.shared_bytes) > r.near_bytes) ax_text_add(&text, "cache %.0f %.3g ", cache_of(r.shared_bytes), r.shared);
  ax_text_add(&text, "launch %.3g core %.3g quotients %.3g", start, r.computing, r.dividing);
  if (cores > 1)
    ax_text_add(&text, " cores %u core_memory %.3g share %.3g", cores, ax_rates_measured(1).read, lines_of_a_share * r.exchange);
  ax_text_add(&text, "\nswitch latency %.3g bandwidth %.3g overhead %.3g\n", lines_of_a_message * r.exchange,
              1 / (1 / r.read + 1 / r.write), start);
  out[0] = '\0'; /* without memory */
  if (!text.failed && text.length < size) memcpy(out, text.data, text.length + 1);
  ax_text_deinit(&text);
}

static const char *text_of(uint32_t index) {
  if (builtins[index].text != NULL) return builtins[index].text;
  pthread_mutex_lock(&own_lock);
  if (own_text[0] == '\0') make_own_text(1, own_text, sizeof own_text); /* without memory it is made by the next call */
  pthread_mutex_unlock(&own_lock);
  return own_text;
}

/* "cpu:4" is this machine with devices of four cores. 0: it is no such name. */
static uint32_t cores_of(const char *name) {
  const char *digits = strncmp(name, "cpu:", 4) == 0 ? name + 4 : "";
  char *end;
  const long cores = strtol(digits, &end, 10);
  return *digits >= '1' && *digits <= '9' && *end == '\0' && cores <= 65536 ? (uint32_t)cores : 0;
}

static ax_status parse(const char *text, size_t bytes, const char *source, ax_cluster **out);

static ax_status read_own(uint32_t cores, const char *name, ax_cluster **out) {
  char text[sizeof own_text];
  make_own_text(cores, text, sizeof text);
  return text[0] != '\0' ? parse(text, strlen(text), name, out) : ax_out_of_memory(0);
}

const char *ax_cluster_builtin(uint32_t index, const char **text) {
  if (text != NULL) *text = index < AX_COUNT(builtins) ? text_of(index) : NULL;
  return index < AX_COUNT(builtins) ? builtins[index].name : NULL;
}

bool ax_cluster_is_here(const ax_cluster *machine) { return strcmp(machine->name, "cpu") == 0; }

double ax_cluster_flops(const ax_cluster *machine, ax_dtype dtype) {
  double least = 0;
  if (machine->flops[dtype] > 0) return machine->flops[dtype];
  if (machine->flops[AX_F32] > 0) return machine->flops[AX_F32];
  for (int d = 0; d < AX_DTYPE_COUNT; d++)
    if (machine->flops[d] > 0 && (least == 0 || machine->flops[d] < least)) least = machine->flops[d];
  return least;
}

/* --- Reading --- */

typedef struct reader {
  ax_lexer lexer;
  ax_cluster *machine;
  bool device, network;
  const void *given[256]; /* what was said so far, by where it is kept: each is one field of the machine, of which there are fewer */
  uint32_t given_count;
} reader;

static const ax_lexeme *at(const reader *r) { return &r->lexer.token; }
static bool is(const reader *r, const char *word) { return ax_token_is(at(r), word); }
static ax_status next(reader *r) { return ax_lexer_next(&r->lexer); }

/* Notes that a field is said by `word`: a slip of whoever copies a line would otherwise go unseen. */
static ax_status once(reader *r, const ax_lexeme *word, const void *field) {
  for (uint32_t i = 0; i < r->given_count; i++)
    if (r->given[i] == field)
      return ax_lexer_error(&r->lexer, word, "'%.*s' is given twice", ax_token_shown(word), word->start);
  assert(r->given_count < AX_COUNT(r->given));
  r->given[r->given_count++] = field;
  return AX_OK;
}

/* The number at hand, which is said of `word`: not below 0, or above it. */
static ax_status value(reader *r, const ax_lexeme *word, bool above_zero, double *out) {
  char digits[64] = {0}, *end;
  if (at(r)->kind != AX_TOKEN_NUMBER || at(r)->length >= sizeof digits)
    return ax_lexer_error(&r->lexer, at(r), "expected a number for '%.*s'", ax_token_shown(word), word->start);
  memcpy(digits, at(r)->start, at(r)->length);
  *out = strtod(digits, &end);
  if (*end != '\0' || !isfinite(*out)) return ax_lexer_error(&r->lexer, at(r), "'%s' is no number", digits);
  if (fabs(*out) > 1e30 || (*out != 0 && fabs(*out) < 1e-30))
    return ax_lexer_error(&r->lexer, at(r), "'%.*s' must be between 1e-30 and 1e30", ax_token_shown(word), word->start);
  if (*out < 0 || (above_zero && *out == 0))
    return ax_lexer_error(&r->lexer, at(r), "'%.*s' must %s", ax_token_shown(word), word->start,
                          above_zero ? "be a number above 0" : "not be below 0");
  return next(r);
}

/* The same of the word at hand and the number after it. */
static ax_status number(reader *r, bool above_zero, double *out) {
  const ax_lexeme word = *at(r);
  AX_TRY(once(r, &word, out));
  AX_TRY(next(r));
  return value(r, &word, above_zero, out);
}

static ax_status whole(reader *r, const ax_lexeme *word, int64_t most, int64_t *out) {
  const ax_lexeme digits = *at(r);
  double number;
  AX_TRY(value(r, word, true, &number));
  if (number != floor(number) || number > (double)most)
    return ax_lexer_error(&r->lexer, &digits, "'%.*s' must be a whole number from 1 to %lld", ax_token_shown(word), word->start,
                          (long long)most);
  *out = (int64_t)number;
  return AX_OK;
}

static ax_status count(reader *r, int64_t most, int64_t *out) {
  const ax_lexeme word = *at(r);
  AX_TRY(once(r, &word, out));
  AX_TRY(next(r));
  return whole(r, &word, most, out);
}

static ax_status unknown(const reader *r, const char *section, const char *words) {
  return ax_lexer_error(&r->lexer, at(r),
                        "'%.*s' is nothing that is said of a %s: %s; and no section: machine, device, torus, switch, node, network",
                        ax_token_shown(at(r)), at(r)->start, section, words);
}

static bool begins_section(const reader *r) {
  static const char *const words[] = {"machine", "device", "torus", "switch", "node", "network"};
  for (size_t i = 0; i < AX_COUNT(words); i++)
    if (is(r, words[i])) return true;
  return at(r)->kind == AX_TOKEN_END;
}

/* The dtype at hand, which stays at hand. */
static ax_status read_dtype(const reader *r, ax_dtype *out) {
  const int dtype = at(r)->kind == AX_TOKEN_NAME ? ax_dtype_find(at(r)->start, at(r)->length) : AX_NO_DTYPE;
  *out = (ax_dtype)dtype;
  if (dtype != AX_NO_DTYPE) return AX_OK;
  return ax_lexer_error(&r->lexer, at(r), "expected a dtype, got '%.*s'", ax_token_shown(at(r)), at(r)->start);
}

static ax_status read_flops(reader *r) {
  ax_dtype dtype;
  AX_TRY(next(r));
  AX_TRY(read_dtype(r, &dtype));
  return number(r, true, &r->machine->flops[dtype]);
}

/* cache BYTES BANDWIDTH: each holds more than the one before. */
static ax_status read_cache(reader *r) {
  const ax_lexeme word = *at(r);
  ax_cluster *m = r->machine;
  ax_sim_cache cache;
  if (m->cache_count == AX_MAX_CACHES) return ax_lexer_error(&r->lexer, at(r), "a device has %d caches at most", AX_MAX_CACHES);
  AX_TRY(next(r));
  AX_TRY(value(r, &word, true, &cache.bytes));
  AX_TRY(value(r, &word, true, &cache.bandwidth));
  if (m->cache_count > 0 && cache.bytes <= m->caches[m->cache_count - 1].bytes)
    return ax_lexer_error(&r->lexer, &word, "a cache of no more bytes than the one before it");
  m->caches[m->cache_count++] = cache;
  return AX_OK;
}

static ax_status read_device(reader *r) {
  r->device = true;
  AX_TRY(next(r));
  while (!begins_section(r)) {
    ax_status status = is(r, "flops")    ? read_flops(r)
                       : is(r, "memory") ? number(r, true, &r->machine->memory)
                       : is(r, "write")    ? number(r, true, &r->machine->write)
                       : is(r, "cache")    ? read_cache(r)
                       : is(r, "core")     ? number(r, true, &r->machine->core)
                       : is(r, "quotients") ? number(r, true, &r->machine->quotients)
                       : is(r, "cores")    ? count(r, 65536, &r->machine->cores)
                       : is(r, "core_memory") ? number(r, true, &r->machine->core_memory)
                       : is(r, "share")    ? number(r, false, &r->machine->share)
                       : is(r, "capacity") ? number(r, true, &r->machine->capacity)
                       : is(r, "failures") ? number(r, false, &r->machine->failures)
                       : is(r, "restart")  ? number(r, false, &r->machine->restart)
                       : is(r, "store")    ? number(r, true, &r->machine->store)
                       : is(r, "watts")    ? number(r, true, &r->machine->watts)
                       : is(r, "price")    ? number(r, true, &r->machine->price)
                       : is(r, "scratch")  ? number(r, true, &r->machine->scratch)
                       : is(r, "launch") ? number(r, false, &r->machine->launch)
                                         : unknown(r, "device", "flops DTYPE, memory, write, cache, core, quotients, cores, core_memory, share, capacity, watts, price, failures, restart, store, scratch, launch");
    if (status != AX_OK) return status;
  }
  return AX_OK;
}

/* reduces DTYPE.. RATE: of each of these dtypes. */
static ax_status read_reduces(reader *r, double *rates) {
  const ax_lexeme word = *at(r);
  double rate;
  bool of[AX_DTYPE_COUNT] = {false};
  AX_TRY(next(r));
  do {
    ax_dtype dtype;
    AX_TRY(read_dtype(r, &dtype));
    AX_TRY(once(r, at(r), &rates[dtype]));
    of[dtype] = true;
    AX_TRY(next(r));
  } while (at(r)->kind == AX_TOKEN_NAME);
  AX_TRY(value(r, &word, true, &rate));
  for (int d = 0; d < AX_DTYPE_COUNT; d++) rates[d] = of[d] ? rate : rates[d];
  return AX_OK;
}

static ax_status read_radix(reader *r, ax_sim_wire *wire) {
  const ax_lexeme word = *at(r);
  AX_TRY(count(r, INT32_MAX, &wire->radix));
  return wire->radix > 1 ? AX_OK : ax_lexer_error(&r->lexer, &word, "'radix' is how many members are at one such switch, at least 2");
}

/* Reads a field of a link. *known: the word was one of a link's fields. */
static ax_status read_wire(reader *r, ax_sim_wire *wire, bool *known) {
  *known = true;
  if (is(r, "latency")) return number(r, false, &wire->latency);
  if (is(r, "bandwidth")) return number(r, true, &wire->bandwidth);
  if (is(r, "overhead")) return number(r, false, &wire->overhead);
  if (wire == &r->machine->network) {
    if (is(r, "short")) return number(r, false, &wire->short_bytes);
    if (is(r, "short_bandwidth")) return number(r, true, &wire->short_bandwidth);
    if (is(r, "handshake")) return number(r, false, &wire->handshake);
  }
  if (wire == &r->machine->network || r->machine->topology != AX_TOPOLOGY_TORUS) {
    if (is(r, "reduces")) return read_reduces(r, wire->reduces);
    if (is(r, "multicast")) return number(r, true, &wire->multicast);
    if (is(r, "radix")) return read_radix(r, wire);
  }
  *known = false;
  return AX_OK;
}

static ax_status read_sides(reader *r) {
  const ax_lexeme word = *at(r);
  ax_cluster *m = r->machine;
  AX_TRY(next(r));
  do {
    if (m->rank == AX_MAX_SIDES) return ax_lexer_error(&r->lexer, at(r), "a torus has %d sides at most", AX_MAX_SIDES);
    AX_TRY(whole(r, &word, INT32_MAX, &m->side[m->rank++]));
  } while (at(r)->kind == AX_TOKEN_NUMBER);
  return AX_OK;
}

static ax_status read_torus(reader *r) {
  int64_t rank;
  bool known;
  AX_TRY(next(r));
  while (!begins_section(r)) {
    AX_TRY(read_wire(r, &r->machine->wire, &known));
    if (known) continue;
    const bool shape = is(r, "sides") || is(r, "dimensions") || is(r, "cube");
    if (shape && r->machine->rank > 0)
      return ax_lexer_error(&r->lexer, at(r), "a torus has either sides, or dimensions, or a cube of some, once");
    if (is(r, "sides")) {
      AX_TRY(read_sides(r));
    } else if (is(r, "dimensions") || is(r, "cube")) {
      r->machine->cube = is(r, "cube");
      AX_TRY(count(r, AX_MAX_SIDES, &rank));
      r->machine->rank = (uint32_t)rank;
      r->machine->side[0] = 0;
    } else return unknown(r, "torus", "sides, dimensions, cube, latency, bandwidth, overhead");
  }
  return AX_OK;
}

static ax_status read_switch(reader *r) {
  bool known;
  AX_TRY(next(r));
  while (!begins_section(r)) {
    AX_TRY(read_wire(r, &r->machine->wire, &known));
    if (known) continue;
    if (!is(r, "ports")) return unknown(r, "switch", "ports, latency, bandwidth, overhead, reduces DTYPE, multicast, radix");
    AX_TRY(count(r, INT32_MAX, &r->machine->ports));
  }
  return AX_OK;
}

static ax_status read_node(reader *r) {
  bool known;
  AX_TRY(next(r));
  while (!begins_section(r)) {
    AX_TRY(read_wire(r, &r->machine->wire, &known));
    if (known) continue;
    if (!is(r, "devices")) return unknown(r, "node", "devices, latency, bandwidth, overhead, reduces DTYPE, multicast, radix");
    AX_TRY(count(r, 65536, &r->machine->per_node));
  }
  return AX_OK;
}

static ax_status read_network(reader *r) {
  bool known;
  r->network = true;
  AX_TRY(next(r));
  while (!begins_section(r)) {
    AX_TRY(read_wire(r, &r->machine->network, &known));
    if (known) continue;
    if (is(r, "ports")) {
      AX_TRY(count(r, INT32_MAX, &r->machine->ports));
    } else if (is(r, "links")) {
      AX_TRY(once(r, at(r), &r->machine->by_node));
      AX_TRY(next(r));
      if (!is(r, "device") && !is(r, "node"))
        return ax_lexer_error(&r->lexer, at(r), "expected 'device' or 'node', whose links they are");
      r->machine->by_node = is(r, "node");
      AX_TRY(next(r));
    } else return unknown(r, "network",
                          "links, ports, latency, bandwidth, overhead, short, short_bandwidth, handshake, reduces DTYPE, multicast, radix");
  }
  return AX_OK;
}

static ax_status read_name(reader *r) {
  AX_TRY(once(r, at(r), r->machine->name));
  AX_TRY(next(r));
  const bool quoted = at(r)->kind == AX_TOKEN_STRING;
  const size_t length = at(r)->length - (quoted ? 2 : 0);
  if (!quoted && at(r)->kind != AX_TOKEN_NAME) return ax_lexer_error(&r->lexer, at(r), "expected the machine's name");
  if (length >= sizeof r->machine->name)
    return ax_lexer_error(&r->lexer, at(r), "the name is longer than %zu bytes", sizeof r->machine->name - 1);
  memcpy(r->machine->name, at(r)->start + quoted, length);
  return next(r);
}

static ax_status read_topology(reader *r) {
  ax_cluster *m = r->machine;
  if (m->topology != AX_TOPOLOGY_NONE)
    return ax_lexer_error(&r->lexer, at(r), "a machine has one topology: a torus, a switch, or nodes and a network");
  m->topology = is(r, "torus") ? AX_TOPOLOGY_TORUS : is(r, "switch") ? AX_TOPOLOGY_SWITCH : AX_TOPOLOGY_NODES;
  return m->topology == AX_TOPOLOGY_TORUS ? read_torus(r) : m->topology == AX_TOPOLOGY_SWITCH ? read_switch(r) : read_node(r);
}

/* All that a simulation divides by. */
static ax_status check(const reader *r) {
  const ax_cluster *m = r->machine;
  const char *missing = m->name[0] == '\0'                      ? "its name: machine NAME"
                        : !r->device                            ? "a device"
                        : ax_cluster_flops(m, AX_F32) == 0      ? "the device's flops"
                        : m->memory == 0                        ? "the device's memory, in bytes a second"
                        : m->topology == AX_TOPOLOGY_NONE       ? "a torus, a switch, or nodes and a network"
                        : m->wire.bandwidth == 0                ? "the bandwidth of its links"
                        : m->topology == AX_TOPOLOGY_TORUS && m->rank == 0 ? "the torus's dimensions, or its sides"
                        : m->topology != AX_TOPOLOGY_NODES      ? (r->network ? "nodes for its network" : NULL)
                        : m->per_node == 0                      ? "the devices of a node"
                        : !r->network || m->network.bandwidth == 0 ? "a network, and its bandwidth"
                                                                : NULL;
  return missing == NULL ? AX_OK : ax_lexer_error(&r->lexer, at(r), "the machine ends without %s", missing);
}

static ax_status read_all(reader *r) {
  while (at(r)->kind != AX_TOKEN_END) {
    ax_status status = is(r, "machine")    ? read_name(r)
                       : is(r, "device")   ? read_device(r)
                       : is(r, "network")  ? read_network(r)
                       : begins_section(r) ? read_topology(r)
                                           : ax_lexer_error(&r->lexer, at(r),
                                                            "expected machine, device, torus, switch, node or network, got '%.*s'",
                                                            ax_token_shown(at(r)), at(r)->start);
    if (status != AX_OK) return status;
  }
  return check(r);
}

static ax_status parse(const char *text, size_t bytes, const char *source, ax_cluster **out) {
  reader r = {.machine = ax_calloc(1, sizeof *r.machine)};
  locale_t saved;
  *out = NULL;
  if (r.machine == NULL) return ax_out_of_memory(sizeof *r.machine);
  ax_status status = ax_text_locale_enter(&saved);
  if (status == AX_OK) {
    status = ax_lexer_init(&r.lexer, text, bytes, source);
    if (status == AX_OK) status = read_all(&r);
    ax_text_locale_leave(saved);
  }
  if (status == AX_OK && (r.machine->text = ax_alloc(bytes + 1)) == NULL) status = ax_out_of_memory(bytes);
  if (status == AX_OK) {
    memcpy(r.machine->text, text, bytes);
    r.machine->text[bytes] = '\0';
    r.machine->one_memory = r.machine->core > 0;
    *out = r.machine;
  } else ax_free(r.machine);
  return status;
}

ax_status ax_cluster_parse(const char *text, const char *source, ax_cluster **out) {
  *out = NULL;
  AX_TRY(ax_require(text, "text"));
  return parse(text, strlen(text), source != NULL ? source : "(machine)", out);
}

/* Half of a message's time is its sender's, so that messages of one sender follow one another faster than they arrive. A long one takes
   its handshake instead of the message. */
static void add_network_text(ax_text *text, const ax_link_rates *link) {
  ax_text_add(text, "network links node latency %.6g bandwidth %.6g overhead %.6g short %d short_bandwidth %.6g handshake %.6g\n",
              link->message / 2, link->transfer, link->message / 2, (int)link->most_short, link->message_bytes,
              fmax(0, link->handshake - link->message));
}

ax_status ax_cluster_over(const ax_process_layout *processes, int64_t devices, ax_cluster **out) {
  const uint32_t count = processes->processes > 0 ? processes->processes : 1;
  const ax_rates *r = ax_rates_planned();
  const double start = lines_of_a_start * r->exchange;
  ax_text text = {0};
  char *made = NULL;
  *out = NULL;
  if (processes->process_of_count > 0 || devices % count != 0)
    return ax_error(AX_INVALID_ARGUMENT, "simulate: %lld devices are not in %u equal blocks, one for each process", (long long)devices, count);
  ax_text_add(&text, "machine \"%u processes\"\ndevice flops f32 %.6g flops f64 %.6g flops f16 %.6g flops bf16 %.6g flops s8 %.6g ", count,
              r->flops[AX_F32], r->flops[AX_F64], r->flops[AX_F16], r->flops[AX_BF16], r->flops[AX_S8]);
  ax_text_add(&text, "memory %.6g launch %.6g\nnode devices %lld latency %.6g bandwidth %.6g overhead %.6g\n", r->read, start,
              (long long)(devices / count), lines_of_a_message * r->exchange, 1 / (1 / r->read + 1 / r->write), start);
  add_network_text(&text, processes->per_host > 0 && processes->per_host < count ? &r->network : &r->host);
  ax_status status = ax_text_finish(&text, &made);
  if (status == AX_OK) status = parse(made, strlen(made), "(processes)", out);
  if (status == AX_OK) (*out)->one_memory = true;
  ax_string_free(made);
  return status;
}

static ax_status read_file(const char *path, ax_cluster **out) {
  static const size_t most = 1 << 20;
  ax_text text = {0};
  char block[4096];
  size_t length;
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    ax_text_add(&text, "%s", "");
    for (size_t i = 0; i < AX_COUNT(builtins); i++) ax_text_add(&text, "%s%s", i > 0 ? ", " : "", builtins[i].name);
    ax_status status = ax_error(AX_IO_ERROR, "%s: no file (%s), and no machine of that name; there are %s", path, strerror(errno),
                                text.data != NULL ? text.data : "?");
    ax_text_deinit(&text);
    return status;
  }
  while ((length = fread(block, 1, sizeof block, file)) > 0 && text.length <= most) ax_text_add_bytes(&text, block, length);
  ax_status status = ferror(file) ? ax_error(AX_IO_ERROR, "%s: %s", path, strerror(errno))
                     : text.length > most ? ax_error(AX_IO_ERROR, "%s: is longer than 1 MiB, which no machine is", path)
                     : text.failed        ? ax_out_of_memory(0)
                                          : AX_OK;
  fclose(file);
  if (status == AX_OK) status = parse(text.data != NULL ? text.data : "", text.length, path, out);
  ax_text_deinit(&text);
  return status;
}

ax_status ax_cluster_read(const char *name, ax_cluster **out) {
  *out = NULL;
  AX_TRY(ax_require(name, "name"));
  const uint32_t cores = cores_of(name);
  if (cores > 0) return read_own(cores, name, out);
  for (uint32_t i = 0; i < AX_COUNT(builtins); i++) {
    if (strcmp(builtins[i].name, name) != 0) continue;
    const char *text = text_of(i);
    return text[0] != '\0' ? parse(text, strlen(text), name, out) : ax_out_of_memory(0);
  }
  return read_file(name, out);
}

void ax_cluster_release(ax_cluster *machine) {
  if (machine != NULL) ax_free(machine->text);
  ax_free(machine);
}

const char *ax_cluster_name(const ax_cluster *machine) { return machine != NULL ? machine->name : NULL; }

const char *ax_cluster_text(const ax_cluster *machine) { return machine != NULL ? machine->text : NULL; }
