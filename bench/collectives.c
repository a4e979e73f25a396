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
  ax_type type = ax_array_type(AX_F32, 1, (int64_t[]){devices * elems});
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

static void mean_body(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  out[0] = ax_mul(ax_psum(in[0], "d"), ax_full_like(in[0], 1 / (double)ax_axis_size("d")));
}

static void means(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_scan(AX_FN(mean_body, 1, 1), 1, scan_length, false, in, out);
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
