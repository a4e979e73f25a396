/* The types as a proof, the other way round. Programs that are well typed but for one thing: done wrong in one of the ways of a
   table, each of which must be refused with the axis named; done without regard to types, or in a text that one place is changed
   in, which must be refused or keep what the types say. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/program.h"
#include "support/cmocka.h"
#include "support/lanes.h"
#include "support/run.h"
#include "support/typed.h"

static bool tells(bool show) { return show || getenv("AXLE_TYPED_TELL") != NULL; }

/* --- One thing wrong --- */

typedef struct wrong {
  char axes[TYPED_TEXT]; /* along which it is wrong: the message names one of them; "": none */
  const char *words;     /* and has in it; NULL: nothing */
  bool done;
  const typed_maker *maker;
  ax_value value, other;
} wrong;

/* Axes along which something may be exchanged, at least `count` of them. */
static ax_axis_set free_axes(typed_maker *m, wrong *w, int count) {
  ax_axis_set set = 0;
  for (int i = 0; i < 8 && __builtin_popcountll(set) < count; i++) set = typed_axes(m, ~(ax_axis_set)0);
  if (__builtin_popcountll(set) < count) return 0;
  typed_names(m, set, w->axes);
  return set;
}

static ax_value varying(typed_maker *m, ax_axis_set set) { return typed_vary(m, typed_some(m, set).own, set); }
static ax_value invariant(typed_maker *m) { return ax_full(m->dtype, AX_DIMS(TYPED_LENGTH), (double)typed_below(m, 4)); }
static ax_unreduced_kind some_kind(typed_maker *m) { return (ax_unreduced_kind)typed_below(m, 3); }
static ax_value parts(typed_maker *m, ax_axis_set set, ax_unreduced_kind kind) {
  char text[TYPED_TEXT];
  ax_value x = ax_typeof(varying(m, set)).spread.unreduced == 0 ? varying(m, set) : typed_vary(m, invariant(m), set);
  if (ax_typeof(x).spread.unreduced != 0) x = typed_vary(m, invariant(m), set);
  return ax_vary_unreduced_cast(x, typed_names(m, set, text), kind);
}
static ax_value reduced(typed_maker *m, ax_axis_set set) {
  char text[TYPED_TEXT];
  return ax_preduced(invariant(m), typed_names(m, set, text));
}

/* Some collective that takes what varies, over the axes. */
static ax_value collective(typed_maker *m, ax_value x, const char *axes) {
  switch (typed_below(m, 7)) {
    case 0: return ax_psum(x, axes);
    case 1: return ax_pmax(x, axes);
    case 2: return ax_all_gather(x, axes, 0, true);
    case 3: return ax_all_gather_invariant(x, axes, 0, true);
    case 4: return ax_all_gather_reduced(x, axes, 0, true);
    case 5: return ax_pbroadcast(x, axes, 0);
    default: return ax_ppermute(x, axes, AX_PAIRS({0, 1}));
  }
}

static bool varies_already(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set != 0) ax_pvary(varying(m, set), w->axes);
  return set != 0;
}

static bool collective_of_reduced(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  w->words = "reduced_vary_cast";
  if (set != 0) collective(m, reduced(m, set), w->axes);
  return set != 0;
}

static bool collective_of_unreduced(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_unreduced_kind kind = some_kind(m);
  ax_value x = parts(m, set, kind);
  w->words = "unreduced";
  switch (typed_below(m, 4)) {
    case 0: ax_all_gather(x, w->axes, 0, true); break;
    case 1: ax_pshift(x, w->axes, 1, true); break;
    case 2: ax_psum_invariant(x, w->axes); break;
    default:
      if (kind == AX_UNREDUCED_SUM) ax_pmax(x, w->axes);
      else ax_psum(x, w->axes);
      break;
  }
  return true;
}

static bool unreduced_of_varying(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = typed_below(m, 2) != 0 ? varying(m, set) : reduced(m, set);
  switch (typed_below(m, 4)) {
    case 0: ax_unreduced_psum(x, w->axes); break;
    case 1: ax_unreduced_pmax(x, w->axes); break;
    case 2: ax_unreduced_pmin(x, w->axes); break;
    default: ax_unreduced_psum_scatter(ax_concatenate(AX_VALUES(x, x), 0), w->axes, 0, true); break;
  }
  return true;
}

static bool mixed_states(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 2), low = set & -set;
  if (set == 0) return false;
  ax_value x = typed_vary(m, invariant(m), low);
  char text[TYPED_TEXT];
  x = typed_below(m, 2) != 0 ? ax_preduced(x, typed_names(m, set & ~low, text))
                             : ax_vary_unreduced_cast(typed_vary(m, x, set), typed_names(m, set & ~low, text), some_kind(m));
  w->words = "one state";
  collective(m, x, w->axes);
  return true;
}

static bool not_linear(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = parts(m, set, AX_UNREDUCED_SUM), one = reduced(m, set);
  w->words = "unreduced";
  switch (typed_below(m, 9)) {
    case 0: ax_abs(x); break;
    case 1: ax_mul(x, x); break;
    case 2: ax_max(x, one); break;
    case 3: ax_reduce_max(x, AX_ALL_DIMS, false); break;
    case 4: ax_lt(x, one); break;
    case 5: ax_square(x); break;
    case 6: ax_div(one, x); break;
    case 7: ax_argmax(x, 0, AX_S32); break;
    default: ax_sign(x); break;
  }
  return true;
}

static bool not_ordered(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_unreduced_kind kind = typed_below(m, 2) != 0 ? AX_UNREDUCED_MAX : AX_UNREDUCED_MIN;
  ax_value x = parts(m, set, kind), one = reduced(m, set);
  w->words = "unreduced";
  switch (typed_below(m, 6)) {
    case 0: ax_neg(x); break;
    case 1: ax_add(x, x); break;
    case 2: ax_mul(x, one); break;
    case 3: ax_reduce_sum(x, AX_ALL_DIMS, false); break;
    case 4: kind == AX_UNREDUCED_MAX ? ax_min(x, one) : ax_max(x, one); break;
    default: ax_sub(x, one); break;
  }
  return true;
}

static bool unreduced_and_others(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = parts(m, set, AX_UNREDUCED_SUM);
  ax_value y = typed_below(m, 3) == 0 ? invariant(m) : typed_below(m, 2) != 0 ? reduced(m, set) : typed_vary(m, invariant(m), set);
  switch (typed_below(m, 4)) {
    case 0: ax_add(x, y); break;
    case 1: ax_sub(y, x); break;
    case 2: ax_concatenate(AX_VALUES(x, y), 0); break;
    default: ax_where(ax_lt(ax_full(AX_S32, AX_DIMS(), 0), ax_full(AX_S32, AX_DIMS(), 1)), x, y); break;
  }
  return true;
}

static bool kinds_differ(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  ax_unreduced_kind kind = some_kind(m), other = (ax_unreduced_kind)((kind + 1 + typed_below(m, 2)) % 3);
  ax_value x = parts(m, set, kind), y = parts(m, set, other);
  w->words = "unreduced by";
  typed_below(m, 2) != 0 ? ax_concatenate(AX_VALUES(x, y), 0) : ax_add(x, y);
  return true;
}

static bool no_such_cast(typed_maker *m, wrong *w) {
  ax_axis_set set = free_axes(m, w, 1);
  if (set == 0) return false;
  switch (typed_below(m, 8)) {
    case 0: ax_pcast(typed_vary(m, invariant(m), set), w->axes, "invariant"); break;
    case 1: ax_pcast(typed_vary(m, invariant(m), set), w->axes, "reduced"); break;
    case 2: ax_pcast(invariant(m), w->axes, "unreduced"); break;
    case 3: ax_vary_unreduced_cast(invariant(m), w->axes, some_kind(m)); break;
    case 4: ax_pcast(parts(m, set, AX_UNREDUCED_SUM), w->axes, typed_below(m, 2) != 0 ? "varying" : "reduced"); break;
    case 5: ax_pcast(parts(m, set, AX_UNREDUCED_MAX), w->axes, typed_below(m, 2) != 0 ? "invariant" : "unreduced_min"); break;
    case 6: ax_reduced_vary_cast(typed_below(m, 2) != 0 ? invariant(m) : typed_vary(m, invariant(m), set), w->axes); break;
    default: ax_preduced(typed_below(m, 2) != 0 ? reduced(m, set) : typed_vary(m, invariant(m), set), w->axes); break;
  }
  return true;
}

/* --- Regions --- */

static void exchanging(const ax_value *in, ax_value *out, void *context) {
  const wrong *w = context;
  typed_maker m = *w->maker;
  out[0] = in[0];
  collective(&m, typed_vary(&m, in[0], ax_typeof(w->value).spread.varying), w->axes);
}
static AX_BODY(still) { out[0] = in[0]; }

static bool branch_apart(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = varying(m, set), out;
  w->maker = m, w->value = ax_axis_index(w->axes);
  w->words = "devices may differ";
  ax_fn exchanges = AX_CLOSURE(exchanging, 1, 1, w), silent = AX_CLOSURE(still, 1, 1, w);
  ax_fn branches[] = {exchanges, silent};
  if (typed_below(m, 2) == 0) branches[0] = silent, branches[1] = exchanges;
  ax_switch(w->value, branches, &x, &out);
  return true;
}

static void below_index(const ax_value *in, ax_value *out, void *context) {
  const wrong *w = context;
  typed_maker m = *w->maker;
  if (w->other.trace != 0) collective(&m, typed_vary(&m, in[1], ax_typeof(w->value).spread.varying), w->axes);
  out[0] = ax_lt(in[0], w->value);
}
static void next(const ax_value *in, ax_value *out, void *context) {
  out[0] = ax_add(in[0], ax_full(AX_S32, AX_DIMS(), 1));
  if (((const wrong *)context)->other.trace == 0) exchanging(in + 1, out + 1, context);
  else out[1] = in[1];
}

static bool loop_apart(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value in[] = {ax_full(AX_S32, AX_DIMS(), 0), varying(m, set)}, out[2];
  w->maker = m, w->value = ax_axis_index(w->axes);
  w->other.trace = (uint64_t)typed_below(m, 2); /* in the condition, or in the body */
  w->words = "devices may differ";
  ax_while(AX_CLOSURE(below_index, 2, 1, w), AX_CLOSURE(next, 2, 2, w), in, out);
  return true;
}

static AX_BODY(gives_other) { out[0] = ((const wrong *)context)->other; }

static bool carry_changes(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value out;
  bool begins = typed_below(m, 2) != 0;
  w->value = begins ? parts(m, set, some_kind(m)) : invariant(m);
  w->other = !begins ? parts(m, set, some_kind(m)) : typed_below(m, 2) != 0 ? invariant(m) : reduced(m, set);
  ax_scan(AX_CLOSURE(gives_other, 1, 1, w), 1, 3, false, &w->value, &out);
  return true;
}

static bool branches_differ(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value out;
  w->other = parts(m, set, some_kind(m)), w->value = typed_below(m, 2) != 0 ? invariant(m) : typed_vary(m, invariant(m), set);
  ax_switch(typed_index(m, ~(ax_axis_set)0), AX_FNS(AX_CLOSURE(gives_other, 1, 1, w), AX_CLOSURE(still, 1, 1, w)), &w->value, &out);
  return true;
}

static bool unreduced_goes_apart(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = parts(m, set, some_kind(m)), out;
  ax_switch(ax_axis_index(w->axes), AX_FNS(AX_CLOSURE(still, 1, 1, w)), &x, &out);
  return true;
}

static bool index_unreduced(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = invariant(m), out, index = ax_vary_unreduced_cast(ax_axis_index(w->axes), w->axes, some_kind(m));
  ax_switch(index, AX_FNS(AX_CLOSURE(still, 1, 1, w), AX_CLOSURE(still, 1, 1, w)), &x, &out);
  return true;
}

/* --- Names, groups, futures --- */

static bool unbound(typed_maker *m, wrong *w) {
  w->words = "axis \"w\" is not bound; bound are x";
  collective(m, invariant(m), typed_below(m, 2) != 0 ? "w" : "x,w");
  return true;
}

static bool named_twice(typed_maker *m, wrong *w) {
  strcpy(w->axes, "x");
  collective(m, invariant(m), "x,x");
  return true;
}

static bool bad_groups(typed_maker *m, wrong *w) {
  static const char *const groups[][2] = {
      {" {0,1} {1}", "overlap"}, {" {0}", "leave out"}, {" {0,0} {1}", "twice"}, {" {0,1,9}", "member 9"}, {" {0} {-1}", "-1"}};
  char text[64] = "x";
  int64_t which = typed_below(m, AX_COUNT(groups));
  if (m->mesh.axis[0].size > 2 && which == 0) return false; /* others are left out as well */
  strcat(text, groups[which][0]);
  w->words = groups[which][1];
  ax_psum(typed_some(m, 1).own, text);
  return true;
}

static bool bad_future(typed_maker *m, wrong *w) {
  ax_axis_set set = m->started || m->future_count == TYPED_FUTURES ? 0 : free_axes(m, w, 1);
  if (set == 0) return false;
  ax_value x = typed_vary(m, invariant(m), set), future = ax_start(ax_psum(x, w->axes));
  *w->axes = 0;
  w->words = "future";
  switch (typed_below(m, 4)) {
    case 0: ax_add(future, future); break;
    case 1: ax_add(ax_done(future), ax_done(future)); break;
    case 2: ax_psum(future, "x"); break;
    default: break;
  }
  return true;
}

static const struct {
  const char *name;
  bool (*make)(typed_maker *m, wrong *w);
} wrongs[] = {
    {"varies already", varies_already},       {"collective of reduced", collective_of_reduced},
    {"collective of unreduced", collective_of_unreduced}, {"unreduced_ of varying", unreduced_of_varying},
    {"mixed states", mixed_states},           {"not linear", not_linear},
    {"not ordered", not_ordered},             {"unreduced and others", unreduced_and_others},
    {"kinds differ", kinds_differ},           {"no such cast", no_such_cast},
    {"branch apart", branch_apart},           {"loop apart", loop_apart},
    {"carry changes", carry_changes},         {"branches differ", branches_differ},
    {"unreduced goes apart", unreduced_goes_apart}, {"index unreduced", index_unreduced},
    {"unbound", unbound},                     {"named twice", named_twice},
    {"bad groups", bad_groups},               {"bad future", bad_future},
};

/* Whether the message names the axis by itself, "x" or {x,y}, not only as a part of a type. */
static bool names_axis(const char *message, const char *axis) {
  size_t length = strlen(axis);
  for (const char *at = strstr(message, axis); at != NULL; at = strstr(at + 1, axis)) {
    if (at > message && at[-1] == '"' && at[length] == '"') return true;
    if (at == message || isalnum((unsigned char)at[-1]) || isalnum((unsigned char)at[length])) continue;
    const char *open = at;
    while (open > message && (isalnum((unsigned char)open[-1]) || strchr("_, \"", open[-1]) != NULL)) open--;
    if (open > message + 1 && open[-1] == '{' && open[-2] != ']') return true;
  }
  return false;
}

static bool one_wrong(typed_maker *m, void *context) {
  wrong *w = context;
  if (ax_failed()) return false; /* the steps before were not quite well typed */
  int64_t which = typed_below(m, AX_COUNT(wrongs));
  *w = (wrong){.words = NULL};
  w->done = wrongs[which].make(m, w);
  return w->done;
}

static struct {
  uint64_t tried, refused;
} wrong_tally, reckless_tally, text_tally;

static void check_wrong(uint64_t seed, bool show) {
  typed_making made = typed_making_of(seed);
  wrong w = {.done = false};
  typed_slip slip = {.countdown = typed_below(&made.maker, 8), .make = one_wrong, .context = &w};
  ax_program *program;
  made.maker.slip = &slip;
  ax_status status = typed_trace(&made, true, &program);
  if (status != AX_OK && tells(show)) print_message("seed %llu: %s\n", (unsigned long long)seed, ax_message());
  if (!w.done) { /* it never came to it */
    ax_program_release(program);
    return;
  }
  wrong_tally.tried++;
  if (status == AX_OK) {
    test_show_program(program);
    fail_msg("seed %llu: accepted", (unsigned long long)seed);
  }
  assert_int_equal(status, AX_INVALID_ARGUMENT);
  bool named = *w.axes == 0;
  for (uint32_t a = 0; a < made.maker.mesh.count; a++)
    named =
        named || (strstr(w.axes, made.maker.mesh.axis[a].name) != NULL && names_axis(ax_message(), made.maker.mesh.axis[a].name));
  if (!named) fail_msg("seed %llu: no axis of \"%s\" is named: %s", (unsigned long long)seed, w.axes, ax_message());
  if (w.words != NULL && strstr(ax_message(), w.words) == NULL)
    fail_msg("seed %llu: no \"%s\": %s", (unsigned long long)seed, w.words, ax_message());
}

/* --- Without regard to types --- */

static bool reckless(typed_maker *m, void *context) { return (void)context, typed_reckless(m), true; }

static void check_reckless(uint64_t seed, bool show) {
  typed_making made = typed_making_of(seed);
  typed_slip slip = {.countdown = typed_below(&made.maker, 9), .make = reckless};
  ax_program *program;
  made.maker.slip = &slip;
  ax_status status = typed_trace(&made, true, &program);
  if (status != AX_OK && tells(show)) print_message("seed %llu: %s\n", (unsigned long long)seed, ax_message());
  reckless_tally.tried++;
  reckless_tally.refused += status != AX_OK;
  if (status != AX_OK) {
    assert_true(status == AX_INVALID_ARGUMENT || status == AX_ABSENT);
    return;
  }
  if (show) test_show_program(program);
  typed_check(program, seed, made.maker.unreduced, false);
  ax_program_release(program);
}

/* --- Texts --- */

typedef struct place { /* in a text: what stands there goes */
  size_t at, length;
} place;

/* Types' spreads, empty where a type has none: what stands behind "f32[..]". */
static uint32_t spreads_in(const char *text, place *places, uint32_t most) {
  uint32_t count = 0;
  for (const char *at = strchr(text, ']'); at != NULL && count < most; at = strchr(at + 1, ']')) {
    const char *open = at;
    while (open > text && (isdigit((unsigned char)open[-1]) || open[-1] == ',')) open--;
    if (open - text < 4 || open[-1] != '[' || !isalnum((unsigned char)open[-2])) continue;
    const char *end = at[1] == '{' ? strchr(at, '}') + 1 : at + 1;
    places[count++] = (place){(size_t)(at + 1 - text), (size_t)(end - at - 1)};
  }
  return count;
}

static uint32_t words_in(const char *text, const char *word, place *places, uint32_t most) {
  uint32_t count = 0;
  for (const char *at = strstr(text, word); at != NULL && count < most; at = strstr(at + 1, word))
    if ((at == text || strchr(" \n[", at[-1]) != NULL) && strchr(" [,)]", at[strlen(word)]) != NULL)
      places[count++] = (place){(size_t)(at - text), strlen(word)};
  return count;
}

static void draw_spread(typed_maker *m, char *out) {
  static const char *const states[] = {"V", "R", "U", "Umax", "Umin"};
  char set[3][32] = {"", "", ""};
  int64_t unreduced = 2 + typed_below(m, 3);
  for (uint32_t a = 0; a < m->mesh.count; a++) {
    int64_t state = typed_below(m, 4);
    if (state == 3) continue;
    if (*set[state] != 0) strcat(set[state], ",");
    strcat(set[state], m->mesh.axis[a].name);
  }
  *out = 0;
  for (int64_t s = 0; s < 3; s++)
    if (*set[s] != 0) sprintf(out + strlen(out), "%s%s:%s", *out == 0 ? "{" : " ", states[s < 2 ? s : unreduced], set[s]);
  if (*out != 0) strcat(out, "}");
}

/* The text with one place changed; free. */
static char *damaged(typed_maker *m, const char *text, bool *only_types) {
  enum { most = 512 };
  static const char *const names[] = {"pvary",
                                      "preduced",
                                      "reduced_vary_cast",
                                      "reduced_invariant_cast",
                                      "unreduced_vary_cast",
                                      "psum",
                                      "pmax",
                                      "pmin",
                                      "kind=sum",
                                      "kind=max",
                                      "kind=min",
                                      "all_gather",
                                      "all_gather_invariant",
                                      "all_gather_reduced",
                                      "psum_scatter",
                                      "axes=(x,)",
                                      "axes=(y,)",
                                      "axes=(x, y)",
                                      "axes=(y, x)"};
  static const int group_of[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  place places[most];
  char change[TYPED_TEXT] = "";
  uint32_t count = 0;
  *only_types = typed_below(m, 2) == 0;
  for (int tries = 0; tries < 20 && count == 0 && !*only_types; tries++) {
    int64_t from = typed_below(m, AX_COUNT(names)), to = typed_below(m, AX_COUNT(names));
    if (from == to || group_of[from] != group_of[to]) continue;
    count = words_in(text, names[from], places, most);
    strcpy(change, names[to]);
  }
  if (count == 0) {
    *only_types = true;
    count = spreads_in(text, places, most);
    draw_spread(m, change);
  }
  place where = places[typed_below(m, count)];
  char *made = malloc(strlen(text) + sizeof change);
  assert_non_null(made);
  sprintf(made, "%.*s%s%s", (int)where.at, text, change, text + where.at + where.length);
  return made;
}

/* --- What leaves a shard_map --- */

typedef struct leaving {
  ax_program *program;
  uint32_t result;
} leaving;

static void leave(const ax_value *in, ax_value *out, void *context) {
  const leaving *l = context;
  const ax_program *program = l->program;
  ax_value blocks[TYPED_INPUTS], *results = calloc(program->out_count, sizeof results[0]);
  for (uint32_t i = 0; i < program->in_count; i++)
    blocks[i] = ax_reshape(in[i], AX_LIST(program->types[i].rank, program->types[i].dims));
  ax_call(program, blocks, results);
  out[0] = results[l->result];
  free(results);
}

/* The result comes out as if it were the same along the axes that it is not: `spec` names the others. */
typedef struct on_mesh {
  leaving leaving;
  const char *in_specs[TYPED_INPUTS], *spec;
} on_mesh;

static void leave_mesh(const ax_value *in, ax_value *out, void *context) {
  const on_mesh *o = context;
  ax_mesh mesh = o->leaving.program->axes;
  test_shard_map(&mesh, o->in_specs, &o->spec, false, AX_CLOSURE(leave, o->leaving.program->in_count, 1, &o->leaving), in, out);
}

static void plus_names(const typed_maker *m, ax_axis_set set, char *text) {
  typed_names(m, set, text);
  for (char *at = text; *at != 0; at++)
    if (*at == ',') *at = '+';
}

/* Result k of an accepted program leaves a shard_map whose spec keeps silent about one of the axes it differs along. */
static void check_leaving(typed_maker *m, ax_program *program, uint32_t k, uint64_t seed) {
  ax_spread on = program->types[program->outs[k]].spread;
  ax_axis_set differs = on.varying | on.unreduced;
  if (differs == 0) return;
  ax_axis_set left_out = on.unreduced != 0 ? on.unreduced : on.varying & -on.varying;
  on_mesh o = {.leaving = {program, k}};
  char specs[TYPED_INPUTS + 1][TYPED_TEXT];
  ax_type types[TYPED_INPUTS];
  for (uint32_t i = 0; i < program->in_count; i++) {
    const ax_type *type = &program->types[i];
    plus_names(m, type->spread.varying, specs[i]);
    o.in_specs[i] = specs[i];
    int64_t size = type->rank == 0 ? 1 : type->dims[0];
    for (uint32_t a = 0; a < m->mesh.count; a++) size *= (type->spread.varying >> a & 1) ? m->mesh.axis[a].size : 1;
    types[i] = ax_array_type(type->dtype, AX_LIST(1, &size));
  }
  plus_names(m, on.varying & ~left_out, specs[TYPED_INPUTS]);
  o.spec = specs[TYPED_INPUTS];
  ax_program *made;
  ax_status status = ax_trace(AX_CLOSURE(leave_mesh, program->in_count, 1, &o), types, &made);
  if (status == AX_OK) fail_msg("seed %llu: result %u left, %s, with the spec \"%s\"", (unsigned long long)seed, k,
                                ax_type_string(&program->types[program->outs[k]], &program->axes), o.spec);
  bool named = false;
  for (uint32_t a = 0; a < m->mesh.count; a++)
    named = named || ((left_out >> a & 1) && names_axis(ax_message(), m->mesh.axis[a].name));
  if (status != AX_INVALID_ARGUMENT || !named) fail_msg("seed %llu: no axis is named: %s", (unsigned long long)seed, ax_message());
}

static void check_text(uint64_t seed, bool show) {
  typed_making made = typed_making_of(seed);
  ax_program *program, *parsed;
  char *text;
  if (typed_trace(&made, true, &program) != AX_OK) return;
  TEST_OK(ax_program_print(program, &text));
  for (int i = 0; i < 4; i++) {
    bool only_types;
    char *changed = damaged(&made.maker, text, &only_types);
    ax_status status = ax_program_parse(changed, strlen(changed), "text", &parsed);
    if (show) print_message("%s\n", changed);
    if (status != AX_OK && tells(show)) print_message("seed %llu: %s\n", (unsigned long long)seed, ax_message());
    text_tally.tried++;
    text_tally.refused += status != AX_OK;
    if (status == AX_OK) typed_check(parsed, seed, only_types && made.maker.unreduced, true);
    else assert_int_equal(status, AX_PARSE_ERROR);
    if (status == AX_OK) ax_program_release(parsed);
    free(changed);
  }
  for (uint32_t k = 0; k < 12; k++) check_leaving(&made.maker, program, k, seed);
  ax_string_free(text);
  ax_program_release(program);
}

static void one_program(uint64_t seed, bool show) {
  switch (seed % 4) {
    case 0:
    case 1: check_wrong(seed, show); break;
    case 2: check_reckless(seed, show); break;
    default: check_text(seed, show); break;
  }
}

static void programs(void **state) {
  (void)state;
  test_each_seed(160, one_program);
  if (tells(false))
    print_message("wrong: %llu; reckless: %llu, refused %llu; texts: %llu, refused %llu\n", (unsigned long long)wrong_tally.tried,
                  (unsigned long long)reckless_tally.tried, (unsigned long long)reckless_tally.refused,
                  (unsigned long long)text_tally.tried, (unsigned long long)text_tally.refused);
}

/* Tracing the body again and again would not make it one type. */
static AX_BODY(parts_or_reduced) {
  wrong w = {.value = ax_vary_unreduced_cast(in[0], "x", AX_UNREDUCED_SUM), .other = ax_preduced(ax_full_like(in[0], 1), "x")};
  ax_scan(AX_CLOSURE(gives_other, 1, 1, &w), 1, 3, false, &w.value, out);
}

static void parts_that_come_reduced(void **state) {
  (void)state;
  ax_mesh mesh;
  ax_program *program;
  ax_type type = TEST_TYPE(AX_F32, 4);
  type.spread.varying = 1;
  TEST_OK(ax_mesh_parse("x=2", &mesh));
  TEST_FAILS(ax_trace_on(&mesh, AX_CLOSURE(parts_or_reduced, 1, 1, NULL), &type, &program), AX_INVALID_ARGUMENT,
             "along \"x\" the one is unreduced and the other reduced");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(programs), cmocka_unit_test(parts_that_come_reduced)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
