/* Targets: how much there is of each memory space, as data, and what a kernel takes of it.

   What is alive at once is found in the text of a body: scratch of the kernel and blocks (twice, as one is fetched while the other
   is worked on) all the time, and of each path into nested scopes what these have. Each ref is rounded up to the space's alignment.
   Where several cores are threads of one, what they have together counts once, and what each opens for itself as often as there are
   threads. */
#include "kernel/target.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/path.h"
#include "kernel/step.h"

/* --- Targets that are known by name. Sizes are those that makers publish; they are data, and another text serves as well. --- */

static const struct {
  const char *name, *text;
} known[] = {
    {"tpu-like",
     "hbm called=HBM bytes=95GiB align=512 direct=no; vmem called=VMEM bytes=64MiB align=4096; smem called=SMEM bytes=1MiB align=4;"
     "registers called=VREG bytes=256KiB align=4096; semaphores count=2048"},
    {"h200",
     "hbm called=GMEM bytes=141GB align=16; vmem called=SMEM bytes=227KiB align=128; smem called=SMEM align=16 within=vmem;"
     "registers called=registers bytes=256KiB align=4; semaphores count=29056 bytes=8 within=vmem"},
};

static const char *const space_words[AX_SPACE_COUNT] = {[AX_SPACE_ANY] = "any",
                                                        [AX_SPACE_HBM] = "hbm",
                                                        [AX_SPACE_VMEM] = "vmem",
                                                        [AX_SPACE_SMEM] = "smem",
                                                        [AX_SPACE_REGISTERS] = "registers"};

static ax_space space_of(const char *word, size_t length) {
  for (ax_space s = AX_SPACE_ANY; s < AX_SPACE_COUNT; s++)
    if (strlen(space_words[s]) == length && memcmp(space_words[s], word, length) == 0) return s;
  return AX_SPACE_NONE;
}

/* --- Reading --- */

typedef struct reader {
  const char *at;
  uint32_t entry;
} reader;

static ax_status bad(const reader *r, const char *what, const char *word, size_t length) {
  return ax_error(AX_INVALID_ARGUMENT, "target, entry %u: %s \"%.*s\"", r->entry, what, (int)(length < 64 ? length : 64), word);
}

static size_t word_length(const char *at) { return strcspn(at, " \t\n;="); }

static ax_status read_number(const reader *r, const char *word, size_t length, int64_t *out) {
  static const struct {
    const char *unit;
    int64_t times;
  } units[] = {{"", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}};
  char *end;
  long long number = strtoll(word, &end, 10);
  size_t rest = length - (size_t)(end - word);
  if (end == word || end > word + length || number < 0) return bad(r, "not a size:", word, length);
  for (size_t u = 0; u < AX_COUNT(units); u++)
    if (strlen(units[u].unit) == rest && memcmp(units[u].unit, end, rest) == 0 && ax_mul_i64(number, units[u].times, out))
      return AX_OK;
  return bad(r, "not a size:", word, length);
}

static ax_status read_value(const reader *r, ax_target_space *space, const char *key, size_t key_length, const char *word,
                            size_t length) {
  int64_t number;
  if (key_length == 6 && memcmp(key, "called", 6) == 0) {
    if (length >= sizeof space->called) return bad(r, "too long a name:", word, length);
    memcpy(space->called, word, length);
    space->called[length] = '\0';
    return AX_OK;
  }
  if (key_length == 6 && memcmp(key, "within", 6) == 0) {
    space->within = space_of(word, length);
    return space->within != AX_SPACE_NONE ? AX_OK : bad(r, "no memory space:", word, length);
  }
  if (key_length == 6 && memcmp(key, "direct", 6) == 0) {
    space->indirect = length == 2 && memcmp(word, "no", 2) == 0;
    return space->indirect || (length == 3 && memcmp(word, "yes", 3) == 0) ? AX_OK
                                                                           : bad(r, "direct is yes or no, not", word, length);
  }
  AX_TRY(read_number(r, word, length, &number));
  if (key_length == 5 && memcmp(key, "bytes", 5) == 0) space->bytes = number;
  else if (key_length == 5 && memcmp(key, "align", 5) == 0 && number > 0) space->align = number;
  else if (key_length == 5 && memcmp(key, "count", 5) == 0) space->count = number;
  else return bad(r, "unknown, or not sensible:", key, key_length);
  return AX_OK;
}

static ax_status read_entry(reader *r, ax_target *target) {
  size_t length = word_length(r->at);
  bool semaphores = length == 10 && memcmp(r->at, "semaphores", 10) == 0;
  ax_space which = semaphores ? AX_SPACE_NONE : space_of(r->at, length);
  if (!semaphores && which == AX_SPACE_NONE) return bad(r, "no memory space:", r->at, length);
  ax_target_space *space = &target->space[which]; /* semaphores stand where no space does */
  *space = (ax_target_space){.bytes = semaphores ? 0 : -1, .align = 1, .count = -1};
  memcpy(space->called, r->at, length);
  r->at += length;
  for (;;) {
    r->at += strspn(r->at, " \t\n");
    if (*r->at == '\0' || *r->at == ';') return AX_OK;
    const char *key = r->at;
    size_t key_length = word_length(key);
    if (key[key_length] != '=') return bad(r, "expected KEY=VALUE at", key, key_length + 1);
    const char *word = key + key_length + 1;
    length = word_length(word);
    AX_TRY(read_value(r, space, key, key_length, word, length));
    r->at = word + length;
  }
}

ax_status(ax_target_parse)(const char *text, ax_target *out) {
  *out = (ax_target){0};
  AX_TRY(ax_require(text, "text"));
  for (ax_space s = AX_SPACE_NONE; s < AX_SPACE_COUNT; s++) {
    out->space[s] = (ax_target_space){.bytes = -1, .align = 1, .count = -1};
    strcpy(out->space[s].called, s == AX_SPACE_NONE ? "semaphores" : space_words[s]);
  }
  out->space[AX_SPACE_NONE].bytes = 0;
  for (size_t k = 0; k < AX_COUNT(known); k++)
    if (strcmp(known[k].name, text) == 0) text = known[k].text;
  reader r = {.at = text, .entry = 1};
  for (;;) {
    r.at += strspn(r.at, " \t\n");
    if (*r.at == '\0') return AX_OK;
    if (*r.at != ';') AX_TRY(read_entry(&r, out));
    if (*r.at == ';') r.at++;
    r.entry++;
  }
}

/* --- What a kernel takes --- */

typedef struct taken {
  const struct taken *around;
  const ax_type *type;
  ax_space pool; /* whose memory it is */
  int64_t bytes, semaphores, times;
  const char *what, *location;
  uint32_t number;
} taken;

typedef struct account {
  const ax_kernel_params *params;
  const ax_target *target;
  const ax_program *body;
  uint32_t core_axes;
} account;

static int64_t round_up(int64_t bytes, int64_t align) { return (bytes + align - 1) / align * align; }

static taken take(const account *a, const taken *around, const ax_type *type, int64_t times, const char *what, uint32_t number) {
  const ax_target_space *space = &a->target->space[type->form == AX_REF ? type->space : AX_SPACE_NONE];
  int64_t elems = ax_type_elems(type);
  taken t = {.around = around,
             .type = type,
             .times = times,
             .what = what,
             .number = number,
             .semaphores = type->form == AX_REF ? 0 : elems * times};
  t.pool = space->within != AX_SPACE_NONE ? space->within : type->space;
  t.bytes = times * round_up(elems * (type->form == AX_REF ? (int64_t)ax_dtype_bytes(type->dtype) : space->bytes), space->align);
  return t;
}

static ax_status exceeded(const account *a, const taken *top, ax_space pool, int64_t used, int64_t limit) {
  ax_text text = {0};
  const ax_target_space *space = &a->target->space[pool];
  ax_text_add(&text, "it takes %" PRId64 " %s %s, of %" PRId64 " that the target has:", used,
              pool == AX_SPACE_NONE ? "of" : "bytes of", space->called, limit);
  for (const taken *t = top; t != NULL; t = t->around) {
    int64_t amount = pool == AX_SPACE_NONE ? t->semaphores : t->pool == pool ? t->bytes : 0;
    if (amount == 0) continue;
    ax_text_add(&text, "\n  %" PRId64 "  %s %u, %s", amount, t->what, t->number, ax_type_string(t->type, NULL));
    if (t->times > 1) ax_text_add(&text, ", %" PRId64 " times", t->times);
    if (t->location != NULL) ax_text_add(&text, ", %s", t->location);
  }
  ax_status status = text.failed ? ax_out_of_memory(0) : ax_error(AX_INVALID_ARGUMENT, "%s", text.data);
  ax_text_deinit(&text);
  return status;
}

static ax_status check_stack(const account *a, const taken *top) {
  int64_t used[AX_SPACE_COUNT] = {0}, semaphores = 0;
  for (const taken *t = top; t != NULL; t = t->around) {
    used[t->pool] += t->bytes;
    semaphores += t->semaphores;
  }
  for (ax_space s = AX_SPACE_HBM; s < AX_SPACE_COUNT; s++)
    if (a->target->space[s].bytes >= 0 && used[s] > a->target->space[s].bytes)
      return exceeded(a, top, s, used[s], a->target->space[s].bytes);
  int64_t most = a->target->space[AX_SPACE_NONE].count;
  return most >= 0 && semaphores > most ? exceeded(a, top, AX_SPACE_NONE, semaphores, most) : AX_OK;
}

/* How many threads of a core open a scope each for itself. */
static int64_t apart(const account *a, const ax_axes *along) {
  int64_t times = 1;
  for (uint32_t m = a->body->axes.count - a->core_axes; m < a->body->axes.count; m++) {
    const char *name = a->body->axes.axis[m].name;
    bool thread = false, together = false;
    for (uint32_t i = 0; i < a->params->threads.count; i++) thread = thread || strcmp(a->params->threads.name[i], name) == 0;
    for (uint32_t i = 0; i < along->count; i++) together = together || strcmp(along->name[i], name) == 0;
    if (thread && !together) times *= a->body->axes.axis[m].size;
  }
  return times;
}

static ax_status check_reach(const account *a, const ax_program *program, const ax_eqn *eqn) {
  if (ax_step_access_of(eqn) == NULL) return AX_OK;
  const ax_type *ref = &program->types[eqn->in[0]];
  const ax_target_space *space = &a->target->space[ref->space == AX_SPACE_ANY ? AX_SPACE_HBM : ref->space];
  if (!space->indirect) return AX_OK;
  return ax_error(AX_INVALID_ARGUMENT, "%s of %s%s%s: the target's cores reach %s by copies alone", eqn->prim->name,
                  ax_type_string(ref, NULL), eqn->location != NULL ? ", " : "", eqn->location != NULL ? eqn->location : "",
                  space->called);
}

static ax_status check_program(const account *a, const ax_program *program, const taken *around);

static ax_status check_scope(const account *a, const ax_eqn *eqn, const taken *around) {
  const ax_run_scoped_params *params = eqn->params;
  taken *all = ax_alloc((params->scratch.count + 1) * sizeof all[0]);
  if (all == NULL) return ax_out_of_memory(params->scratch.count * sizeof all[0]);
  for (uint32_t k = 0; k < params->scratch.count; k++) {
    all[k] = take(a, around, &params->scratch.v[k], apart(a, &params->along), "scoped", k);
    all[k].location = eqn->location;
    around = &all[k];
  }
  ax_status status = check_stack(a, around);
  if (status == AX_OK) status = check_program(a, params->body, around);
  ax_free(all);
  return status;
}

static ax_status check_program(const account *a, const ax_program *program, const taken *around) {
  for (uint32_t i = 0; i < program->eqn_count; i++) {
    const ax_eqn *eqn = &program->eqns[i];
    AX_TRY(check_reach(a, program, eqn));
    if (ax_step_scope(eqn) != NULL) {
      AX_TRY(check_scope(a, eqn, around));
      continue;
    }
    const ax_program *held;
    for (uint32_t k = 0; (held = ax_eqn_program(eqn, k)) != NULL; k++) AX_TRY(check_program(a, held, around));
  }
  return AX_OK;
}

static bool is_blocked(const ax_kernel_params *params, uint32_t number) {
  for (uint32_t i = 0; i < params->blocked.count; i++)
    if (params->blocked.v[i][0] == number) return true;
  return false;
}

static ax_status check_body(const account *a) {
  const ax_kernel_params *params = a->params;
  uint32_t io = params->blocks.count, count = io + params->scratch.count;
  taken *all = ax_alloc((count + 1) * sizeof all[0]);
  const taken *around = NULL;
  if (all == NULL) return ax_out_of_memory(count * sizeof all[0]);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t outs = params->outs.count;
    const char *what = i >= io ? "scratch" : i < io - outs ? "operand" : "result";
    uint32_t number = i >= io ? i - io : i < io - outs ? i : i - (io - outs);
    all[i] = take(a, around, i < io ? &params->blocks.v[i] : &params->scratch.v[i - io], i < io && is_blocked(params, i) ? 2 : 1,
                  what, number);
    around = &all[i];
  }
  ax_status status = check_stack(a, around);
  if (status == AX_OK) status = check_program(a, a->body, around);
  ax_free(all);
  return status;
}

ax_status ax_target_check(const ax_kernel_params *params) {
  if (params->target == NULL || params->target[0] == '\0') return AX_OK;
  ax_target target;
  AX_TRY((ax_target_parse)(params->target, &target));
  for (uint32_t b = 0; b < params->bodies.count; b++) {
    const account a = {params, &target, params->bodies.v[b], (uint32_t)params->core_axes.v[b]};
    AX_TRY(check_body(&a));
  }
  return AX_OK;
}
