/* Whether some numbers cost more than others: every function of one or two arrays, on one thread, over arrays that hold one kind of
   number each. A row for what takes more than 1.5 times as long as plain numbers do; no other program takes part. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/axle.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { elements = 1 << 14, rounds = 5 };

#define ONE(name) {#name, (ax_##name), NULL}
#define TWO(name) {#name, NULL, (ax_##name)}
typedef struct function {
  const char *name;
  ax_value (*of_one)(ax_value);
  ax_value (*of_two)(ax_value, ax_value);
} function;

static const function functions[] = {
    ONE(neg),   ONE(abs),      ONE(sign),  ONE(floor),  ONE(ceil),  ONE(round), ONE(exp),     ONE(log),     ONE(log1p),      ONE(expm1),
    ONE(sin),   ONE(cos),      ONE(tan),   ONE(tanh),   ONE(sqrt),  ONE(rsqrt), ONE(erf),     ONE(erfc),    ONE(erf_inv),    ONE(exp2),
    ONE(cbrt),  ONE(asin),     ONE(acos),  ONE(atan),   ONE(sinh),  ONE(cosh),  ONE(asinh),   ONE(acosh),   ONE(atanh),      ONE(lgamma),
    ONE(digamma), ONE(logistic), ONE(bessel_i0e), ONE(bessel_i1e), ONE(relu), ONE(gelu), ONE(silu), ONE(softplus),
    TWO(add),   TWO(mul),      TWO(div),   TWO(max),    TWO(min),   TWO(pow),   TWO(rem),     TWO(atan2)};

static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_BF16, AX_F16};

/* The i-th number of each kind; the first kind is plain. */
static double plain(int i) { return 0.25 + (i * 37 % 64) / 64.0; }
static double zero(int i) { return 0 * i; }
static double negative(int i) { return -plain(i); }
static double small(int i) { return 1e-4 * plain(i); }
static double tiny(int i) { return 1e-30 * plain(i); }
static double subnormal(int i) { return 1e-40 * plain(i); }
static double tens(int i) { return 60 * plain(i); }
static double minus_hundreds(int i) { return -100 * (1 + plain(i)); }
static double thousands(int i) { return 2000 * plain(i); }
static double millions(int i) { return 1e6 * plain(i); }
static double vast(int i) { return 1e30 * plain(i); }
static double infinite(int i) { return i % 2 ? INFINITY : -INFINITY; }
static double not_a_number(int i) { return i % 2 ? (double)NAN : -(double)NAN; }
static double masked(int i) { return i * 7 % 16 < 8 ? -1e9 : plain(i); }
static double mixed(int i) { return ldexp(plain(i), i * 29 % 61 - 30); }

static const struct {
  const char *name;
  double (*number)(int);
} kinds[] = {{"plain", plain}, {"0", zero}, {"-0.25 to -1.25", negative}, {"1e-4", small}, {"1e-30", tiny}, {"1e-40", subnormal}, {"60", tens},
             {"-100 to -200", minus_hundreds}, {"2,000", thousands}, {"1e6", millions}, {"1e30", vast}, {"infinite", infinite},
             {"NaN", not_a_number}, {"half of them -1e9", masked}, {"2^-30 to 2^30", mixed}};
enum { kind_count = sizeof kinds / sizeof kinds[0] };

static AX_BODY(call) {
  const function *f = context;
  out[0] = f->of_one != NULL ? f->of_one(in[0]) : f->of_two(in[0], in[1]);
}

static AX_BODY(narrow) { out[0] = ax_convert_element_type(in[0], *(const ax_dtype *)context); }

/* Subnormal numbers stay what they are. */
static ax_array *put(ax_runtime *runtime, ax_dtype dtype, int kind) {
  static double numbers[elements];
  const ax_type type = AX_TYPE(AX_F64, elements);
  const ax_jitted_options kept = {.compile = {.subnormals = AX_SUBNORMALS_KEEP}};
  ax_array *wide, *out;
  ax_jitted *jitted;
  for (int i = 0; i < elements; i++) numbers[i] = kinds[kind].number(i);
  check(ax_device_put_data(runtime, NULL, "", &type, numbers, &wide));
  check(ax_jitted_create(runtime, AX_CLOSURE(narrow, 1, 1, &dtype), &kept, &jitted));
  check(ax_jitted_run(jitted, AX_ARRAYS(wide), &out));
  ax_jitted_release(jitted);
  ax_array_release(wide);
  return out;
}

/* Seconds for the function of these numbers: the least of some rounds. */
static double time_of(ax_jitted *jitted, bool two, ax_array *x) {
  enum { runs = 20 };
  double best = INFINITY;
  for (int r = 0; r < rounds; r++) {
    const double begin = bench_seconds();
    for (int i = 0; i < runs; i++) {
      ax_array *y;
      if (two) check(ax_jitted_run(jitted, AX_ARRAYS(x, x), &y));
      else check(ax_jitted_run(jitted, AX_ARRAYS(x), &y));
      ax_array_release(y);
    }
    const double took = (bench_seconds() - begin) / runs;
    if (took < best) best = took;
  }
  return best;
}

/* Prints what of one function and dtype costs more than plain numbers. */
static void measure(ax_runtime *runtime, const function *f, ax_dtype dtype, ax_array *const *arrays, const ax_jitted_options *options) {
  static const double much = 1.5;
  const bool two = f->of_two != NULL;
  double plain_time = 0;
  bool any = false;
  ax_jitted *jitted;
  check(ax_jitted_create(runtime, AX_CLOSURE(call, two ? 2 : 1, 1, (void *)(uintptr_t)f), options, &jitted));
  for (int kind = 0; kind < kind_count; kind++) {
    const double took = time_of(jitted, two, arrays[kind]);
    if (kind == 0) plain_time = took;
    if (took < much * plain_time) continue;
    if (!any) printf("| %s of %s | %.2f |", f->name, ax_dtype_name(dtype), plain_time / elements * 1e9);
    printf("%s %s: %.1f", any ? "," : "", kinds[kind].name, took / plain_time);
    any = true;
  }
  if (any) printf(" |\n");
  fflush(stdout);
  ax_jitted_release(jitted);
}

/* MODE: flush, as runs do unless they are told otherwise, or keep. */
void strange_numbers(char **arguments) {
  const bool keeps = strcmp(arguments[0], "keep") == 0;
  const ax_jitted_options options = {.compile = {.subnormals = keeps ? AX_SUBNORMALS_KEEP : AX_SUBNORMALS_FLUSH}};
  ax_runtime *runtime;
  check(ax_runtime_create(&(ax_runtime_options){.workers = 1}, &runtime));
  printf("| function | plain numbers, ns each | others take so many times as long |\n|---|---|---|\n");
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
    ax_array *arrays[kind_count];
    for (int kind = 0; kind < kind_count; kind++) arrays[kind] = put(runtime, dtypes[d], kind);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) measure(runtime, &functions[i], dtypes[d], arrays, &options);
    for (int kind = 0; kind < kind_count; kind++) ax_array_release(arrays[kind]);
  }
  ax_runtime_release(runtime);
}
