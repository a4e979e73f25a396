#include "support/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

typedef struct parser {
  test_script *out;
  int64_t awaited[64][64];
} parser;

/* Numbers by name; fails when there is none. */
#define FIND(list, count, wanted)                                 \
  uint32_t k = 0;                                                 \
  while (k < (count) && strcmp((list)[k].name, wanted) != 0) k++; \
  if (k == (count)) fail_msg("there is no %s", wanted);           \
  return k

static uint32_t agent_of(const parser *p, const char *name) {
  FIND(p->out->script.objects.agents, p->out->script.objects.agent_count, name);
}
static uint32_t semaphore_of(const parser *p, const char *name) {
  FIND(p->out->script.objects.semaphores, p->out->script.objects.semaphore_count, name);
}
static uint32_t barrier_of(const parser *p, const char *name) {
  FIND(p->out->script.objects.barriers, p->out->script.objects.barrier_count, name);
}
static uint32_t region_of(const parser *p, const char *name) {
  FIND(p->out->script.objects.regions, p->out->script.objects.region_count, name);
}

static void touch(parser *p, ax_act *act, const char *region, bool write, bool scope, long long begin, long long end) {
  ax_script *s = &p->out->script;
  uint32_t r = region_of(p, region);
  if (act->touch_count++ == 0) act->touch_first = s->touches.touch_count;
  if (scope) end = (long long)s->objects.regions[r].bytes;
  ax_bytes bytes = {(uint64_t)begin, (uint64_t)end};
  assert_true(begin < end && bytes.end <= s->objects.regions[r].bytes);
  assert_int_equal(ax_touches_add(&s->touches, r, write, scope, 1, &bytes), AX_OK);
}

/* The last touch is part of an addition, or of what else the verb's sign says. */
static void sum(parser *p, const char *verb) {
  static const char signs[] = {[AX_UPDATE_ADD] = '+', [AX_UPDATE_MUL] = '*', [AX_UPDATE_MAX] = '>', [AX_UPDATE_MIN] = '<',
                               [AX_UPDATE_AND] = '&', [AX_UPDATE_OR] = '|',  [AX_UPDATE_XOR] = '^'};
  ax_touches *touches = &p->out->script.touches;
  uint8_t update = AX_UPDATE_ADD;
  for (uint8_t k = 0; k < AX_COUNT(signs); k++)
    if (strchr(verb, signs[k]) != NULL) update = k;
  touches->touches[touches->touch_count - 1].sum = (ax_touch_sum){.bits = AX_SUM_WRAPS, .update = update};
}

/* "load+", "load>" .. */
static bool is_part(const char *verb, const char *name) {
  const size_t length = strlen(name);
  return strncmp(verb, name, length) == 0 && verb[length] != 0 && verb[length + 1] == 0;
}

static void add_act(parser *p, uint32_t agent, const char *text) {
  char verb[16] = "", object[32] = "";
  long long m = -1, n = -1, times = 1;
  const char *star = strstr(text, " *");
  if (star != NULL) times = atoll(star + 2);
  if (sscanf(text, "%15s %31s %lld %lld", verb, object, &m, &n) < 1) return;
  for (; times > 0; times--) {
    ax_act act = {.kind = AX_ACT_LOCAL, .amount = m < 0 ? 1 : m};
    bool is_load = strcmp(verb, "load") == 0, is_store = strcmp(verb, "store") == 0, is_update = strcmp(verb, "update") == 0;
    bool is_add = strcmp(verb, "add") == 0 || is_part(verb, "add"), loads_sum = is_add || is_part(verb, "load"),
         stores_sum = is_add || is_part(verb, "store");
    if (is_load || is_update) touch(p, &act, object, false, false, m, n);
    if (is_store || is_update) touch(p, &act, object, true, false, m, n);
    if (loads_sum) touch(p, &act, object, false, false, m, n), sum(p, verb);
    if (stores_sum) touch(p, &act, object, true, false, m, n), sum(p, verb);
    if (is_load || is_store || is_update || loads_sum || stores_sum)
      act.amount = 0;
    else if (strcmp(verb, "scope") == 0)
      touch(p, &act, object, true, true, 0, 0);
    else if (strcmp(verb, "signal") == 0)
      act.kind = AX_ACT_SIGNAL, act.object = semaphore_of(p, object);
    else if (strcmp(verb, "wait") == 0)
      act.kind = AX_ACT_WAIT, act.object = semaphore_of(p, object);
    else if (strcmp(verb, "read") == 0)
      act.kind = AX_ACT_READ, act.object = semaphore_of(p, object);
    else if (strcmp(verb, "arrive") == 0)
      act.kind = AX_ACT_ARRIVE, act.object = barrier_of(p, object);
    else if (strcmp(verb, "start") == 0)
      act.kind = AX_ACT_START, act.object = agent_of(p, object);
    else if (strcmp(verb, "join") == 0) {
      act.kind = AX_ACT_JOIN, act.object = agent_of(p, object);
      if (m < 0) act.amount = p->out->script.agents[act.object].count;
    } else if (strcmp(verb, "await") == 0) {
      act.kind = AX_ACT_AWAIT, act.object = barrier_of(p, object);
      act.amount = ++p->awaited[agent][act.object];
    } else if (strcmp(verb, "nothing") != 0) {
      fail_msg("no act: %s", text);
    }
    assert_int_equal(ax_script_add(&p->out->script, agent, act, 0), AX_OK);
  }
}

/* Objects in the first pass, copies' acts in the second, cores' in the third, so that names are known where they are used. */
static void take_line(parser *p, char *line, int pass) {
  char word[16] = "", *rest, *name;
  if (sscanf(line, "%15s", word) < 1) return;
  ax_act_objects *o = &p->out->script.objects;
  name = strstr(line, word) + strlen(word);
  name += strspn(name, " ");
  rest = name + strcspn(name, " :=");
  long long number = 0;
  if (*rest != 0) {
    char separator = *rest;
    *rest++ = 0;
    if (separator != ':') rest += strspn(rest, " =");
    rest += separator == ':' ? 0 : strspn(rest, ":");
  }
  bool core = strcmp(word, "core") == 0, copy = strcmp(word, "copy") == 0;
  if (!core && !copy) sscanf(rest, "%lld", &number);
  ax_status status = AX_OK;
  if (pass == 0 && (core || copy))
    status = ax_act_objects_add_agent(o, (ax_act_agent){.name = name, .initial = core});
  else if (pass == 0 && strcmp(word, "sem") == 0)
    status = ax_act_objects_add_semaphore(o, (ax_act_semaphore){name, 0, number});
  else if (pass == 0 && strcmp(word, "barrier") == 0)
    status = ax_act_objects_add_barrier(o, (ax_act_barrier){name, 0, (uint32_t)number});
  else if (pass == 0 && strcmp(word, "region") == 0)
    status = ax_act_objects_add_region(
        o, (ax_act_region){.name = name, .bytes = (uint64_t)number, .elem_bytes = 1, .rank = 1, .dims = {number}});
  else if (pass == 0)
    fail_msg("no such line: %s", word);
  assert_int_equal(status, AX_OK);
  if ((pass == 1 && copy) || (pass == 2 && core)) {
    uint32_t agent = agent_of(p, name);
    for (char *act = rest, *next; act != NULL; act = next) {
      next = strchr(act, ';');
      if (next != NULL) *next++ = 0;
      add_act(p, agent, act);
    }
  }
}

void test_script_parse(const char *text, test_script *out) {
  parser *p = calloc(1, sizeof *p);
  *out = (test_script){0};
  p->out = out;
  out->names = strdup(text);
  assert_true(p != NULL && out->names != NULL);
  for (int pass = 0; pass < 3; pass++) {
    char *copy = pass == 0 ? out->names : strdup(text);
    for (char *line = copy, *next; line != NULL; line = next) {
      next = strchr(line, '\n');
      if (next != NULL) *next++ = 0;
      take_line(p, line, pass);
    }
    if (pass > 0) free(copy);
  }
  assert_int_equal(ax_script_system(&out->script, &out->system), AX_OK);
  free(p);
}

void test_script_free(test_script *s) {
  ax_script_deinit(&s->script);
  free(s->names);
}
