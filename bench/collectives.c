/* Calls and collectives over a mesh d=N. */
#include "axle/collectives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { scan_length = 200 };

/* Over `devices`, from f32[elems] a device. */
static void serve(ax_function body, void *context, int64_t devices, int64_t elems, const char *out_spec, double parts) {
  char mesh[32];
  snprintf(mesh, sizeof mesh, "d=%lld", (long long)devices);
  ax_type type = ax_array_type(AX_F32, AX_DIMS(devices * elems));
  job j = job_create(&(job_function){body, context, mesh, 1, 1, &type, (const char *[]){"d"}, &out_spec}, 0);
  bench_serve(job_run, &j, parts);
}

static void one_more(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_add(in[0], ax_full_like(in[0], 1));
}

void add_one(char **arguments) { serve(one_more, NULL, atoll(arguments[0]), 1, "d", 1); }

static void sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum(in[0], "d");
}

void psum(char **arguments) { serve(sum, NULL, atoll(arguments[0]), 1, "", 1); }

/* The mean of what the others have: an operand that differs between devices in each step. */
static void mean_of_others(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_sub(ax_psum(in[0], "d"), in[0]), 1 / (double)(ax_axis_size("d") - 1));
}

static void means(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(mean_of_others, 1, 1), 1, scan_length, false, in, out);
}

void psum_in_scan(char **arguments) { serve(means, NULL, atoll(arguments[0]), 1, "d", scan_length); }

/* --- Large ones, 8 devices --- */

enum { many = 8 };

static void gather(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_all_gather(in[0], "d", 0, true);
}

static void exchange(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_all_to_all(in[0], "d", 0, 0, true);
}

static void scatter(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_psum_scatter(in[0], "d", 0, true);
}

static void pass_on(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  int64_t ring[many][2];
  for (int i = 0; i < many; i++) ring[i][0] = i, ring[i][1] = (i + 1) % many;
  out[0] = ax_ppermute(in[0], "d", many, (const int64_t(*)[2])ring);
}

/* all_gather's result has the size that the operands of the others have. */
void collective(char **arguments) {
  static const struct {
    const char *name;
    ax_function body;
    const char *out_spec;
    int64_t share;
  } all[] = {{"psum", sum, "", 1},
             {"all_gather", gather, "d", many},
             {"all_to_all", exchange, "d", 1},
             {"ppermute", pass_on, "d", 1},
             {"psum_scatter", scatter, "d", 1}};
  int64_t elems = (atoll(arguments[1]) << 20) / (int64_t)sizeof(float);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
    if (strcmp(arguments[0], all[i].name) == 0)
      serve(all[i].body, NULL, many, elems / all[i].share, all[i].out_spec, 1);
  fprintf(stderr, "no collective is called %s\n", arguments[0]);
  exit(1);
}

/* --- Each collective in a scan, its result made the next operand --- */

static void halve_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(in[0], "d"), 1.0 / many);
}
static void repeat_mean(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pmean(in[0], "d");
}
static void repeat_max(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pmax(in[0], "d");
}
static void repeat_min(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pmin(in[0], "d");
}
static void first_of_gathered(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_slice_in_dim(ax_all_gather(in[0], "d", 0, true), 0, ax_typeof(in[0]).dims[0], 1, 0);
}
static void parts_of_sum(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t elems = ax_typeof(in[0]).dims[0];
  ax_value part = ax_mul(ax_psum_scatter(in[0], "d", 0, true), 1.0 / many);
  out[0] = ax_reshape(ax_broadcast_to(part, AX_DIMS(many, elems / many)), AX_DIMS(elems));
}
static void repeat_broadcast(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_pbroadcast(in[0], "d", 0);
}
/* all_to_all's bytes: to each member an equal part, which it has already. */
static void exchange_ragged(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  const int64_t slices = many, rows = ax_typeof(in[0]).dims[0] / many;
  ax_value from = ax_mul(ax_iota(AX_S32, AX_LIST(1, &slices), 0), (double)rows),
           size = ax_full(AX_S32, AX_LIST(1, &slices), (double)rows);
  ax_value to = ax_broadcast_to(ax_mul(ax_axis_index("d"), (double)rows), AX_DIMS(many));
  out[0] = ax_ragged_all_to_all(in[0], in[0], from, size, to, size, "d");
}
/* The results of both are made the next operands by a pass over them, which both need. */
static void negate_exchanged(const ax_value *in, ax_value *out, void *context) {
  exchange(in, out, context);
  out[0] = ax_neg(out[0]);
}
static void negate_ragged(const ax_value *in, ax_value *out, void *context) {
  exchange_ragged(in, out, context);
  out[0] = ax_neg(out[0]);
}
static void sum_of_pairs(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sub(ax_psum(in[0], "d {0,1} {2,3} {4,5} {6,7}"), in[0]);
}

typedef struct repetition {
  ax_function body;
  int64_t length;
} repetition;

static void repeated_body(const ax_value *in, ax_value *out, void *context) {
  const repetition *r = context;
  ax_scan(AX_FN(r->body, 1, 1), 1, r->length, false, in, out);
}

void repeated(char **arguments) {
  static const struct {
    const char *name;
    ax_function body;
  } all[] = {{"psum", halve_sum},         {"pmean", repeat_mean}, {"pmax", repeat_max},   {"pmin", repeat_min},
             {"all_gather", first_of_gathered}, {"all_to_all", exchange}, {"ppermute", pass_on}, {"psum_scatter", parts_of_sum},
             {"psum_of_pairs", sum_of_pairs}, {"ragged_all_to_all", exchange_ragged}, {"pbroadcast", repeat_broadcast},
             {"psum_of_others", mean_of_others}, {"all_to_all_negated", negate_exchanged}, {"ragged_negated", negate_ragged}};
  int64_t bytes = atoll(arguments[1]);
  repetition r = {.length = bytes < 1 << 16 ? scan_length : scan_length / 10};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (strcmp(arguments[0], all[i].name) != 0) continue;
    r.body = all[i].body;
    serve(repeated_body, &r, many, bytes / (int64_t)sizeof(float), "d", (double)r.length);
  }
  fprintf(stderr, "no collective is called %s\n", arguments[0]);
  exit(1);
}

/* psum over the second axis of 4x2 devices. */
static void sum_of_columns(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_sub(ax_psum(in[0], "b"), in[0]);
}

void repeated_on_grid(char **arguments) {
  int64_t bytes = atoll(arguments[0]);
  repetition r = {sum_of_columns, bytes < 1 << 16 ? scan_length : scan_length / 10};
  ax_type type = ax_array_type(AX_F32, AX_DIMS(many * bytes / (int64_t)sizeof(float)));
  job j =
      job_create(&(job_function){repeated_body, &r, "a=4,b=2", 1, 1, &type, (const char *[]){"a+b"}, (const char *[]){"a+b"}}, 0);
  bench_serve(job_run, &j, (double)r.length);
}

/* --- Collectives beside products --- */

enum { side = 512, exchanged = 1 << 18 };

static ax_value products(ax_value a) {
  for (int i = 0; i < 2; i++) a = ax_mul(ax_matmul(a, a), 1.0 / side);
  return a;
}
static ax_value exchanges(ax_value x) {
  ax_value part = ax_mul(ax_psum_scatter(x, "d", 0, true), 1.0 / many);
  return ax_all_gather(part, "d", 0, true);
}

typedef struct parts {
  bool products, exchanges;
} parts;

static void beside_body(const ax_value *in, ax_value *out, void *context) {
  const parts *p = context;
  if (p->exchanges && p->products) {
    ax_value scattering = ax_psum_scatter_start(in[1], "d", 0, true), a = in[0];
    a = ax_mul(ax_matmul(a, a), 1.0 / side);
    ax_value gathering = ax_all_gather_start(ax_mul(ax_done(scattering), 1.0 / many), "d", 0, true);
    out[0] = ax_mul(ax_matmul(a, a), 1.0 / side);
    out[1] = ax_done(gathering);
    return;
  }
  out[0] = p->products ? products(in[0]) : in[0];
  out[1] = p->exchanges ? exchanges(in[1]) : in[1];
}

static void beside_steps(const ax_value *in, ax_value *out, void *context) {
  ax_value x[2] = {in[0], in[1]};
  ax_scan(AX_CLOSURE(beside_body, 2, 2, context), 2, 4, false, x, out);
}

/* A step of both, or one part of it. */
void beside(char **arguments) {
  parts p = {strcmp(arguments[0], "exchanges") != 0, strcmp(arguments[0], "products") != 0};
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(many * side, side)),
                           ax_array_type(AX_F32, AX_DIMS(many * exchanged))};
  job j =
      job_create(&(job_function){beside_steps, &p, "d=8", 2, 2, types, (const char *[]){"d", "d"}, (const char *[]){"d", "d"}}, 0);
  bench_serve(job_run, &j, 4);
}
