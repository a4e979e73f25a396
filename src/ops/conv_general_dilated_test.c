/* Convolutions of one to three dimensions against their definition, exactly: of small whole numbers no sum is rounded. Sizes,
   orders of dimensions, groups, paddings, strides and dilations at random, so that all ways of computing them are taken: rows as
   they lie, rows unfolded, few positions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/ops.h"
#include "ir/number.h"
#include "support/cmocka.h"
#include "support/random.h"
#include "support/run.h"
#include "support/tensor.h"

enum { most_places = 3, most_rank = most_places + 2 };

typedef struct example {
  char lhs[most_rank + 1], rhs[most_rank + 1], out[most_rank + 1];
  char places[most_places + 1]; /* the letters that strides and the like are of, in rhs's order */
  int64_t size[128], rhs_size[128], out_size[128]; /* by letter: N C D H W, O I D H W, N C D H W */
  int64_t strides[most_places], low[most_places], high[most_places], base[most_places], dilation[most_places];
  int64_t feature_groups, batch_groups;
  ax_dtype dtype;
} example;

static uint32_t rank_of(const example *x) { return (uint32_t)strlen(x->lhs); }
static int places_of(const example *x) { return (int)strlen(x->places); }

static void shuffle(test_random *random, const char *first, const char *letters, char *to) {
  snprintf(to, most_rank + 1, "%s%s", first, letters);
  for (int k = (int)strlen(to); k > 1; k--) {
    int with = (int)test_random_below(random, k);
    char kept = to[k - 1];
    to[k - 1] = to[with], to[with] = kept;
  }
}

/* Of sizes from 1 on, now and then a long one. */
static int64_t some(test_random *random, int64_t few, int64_t many) {
  return 1 + test_random_below(random, test_random_below(random, 3) > 0 ? few : many);
}

static void order_dimensions(example *x, test_random *random, bool few_positions) {
  static const char *const letters[] = {"W", "HW", "HW", "DHW"};
  const char *spatial = letters[test_random_below(random, 4)];
  shuffle(random, "NC", spatial, x->lhs);
  shuffle(random, "OI", spatial, x->rhs);
  shuffle(random, "NC", spatial, x->out);
  if (test_random_below(random, 2)) {
    snprintf(x->lhs, sizeof x->lhs, few_positions ? "C%sN" : "N%sC", spatial);
    snprintf(x->rhs, sizeof x->rhs, few_positions ? "I%sO" : "%sIO", spatial);
  }
  for (const char *at = x->rhs; *at != '\0'; at++)
    if (*at != 'O' && *at != 'I') x->places[strlen(x->places)] = *at;
}

/* The sizes along place i, an image of up to 45 where there are few dimensions. False: nothing would fit. */
static bool set_place(example *x, test_random *random, int i, bool few_positions) {
  const int64_t image = some(random, 8, places_of(x) < 3 ? 45 : 20),
                kernel = few_positions ? some(random, image, image) : some(random, 4, 7);
  const bool plain = test_random_below(random, 2);
  x->size[(int)x->places[i]] = image, x->rhs_size[(int)x->places[i]] = kernel;
  x->strides[i] = plain ? 1 : some(random, 3, 3), x->base[i] = plain ? 1 : some(random, 2, 3),
  x->dilation[i] = plain ? 1 : some(random, 2, 3);
  x->low[i] = test_random_below(random, 6) - 1, x->high[i] = test_random_below(random, 6) - 1;
  const int64_t padded = (image - 1) * x->base[i] + 1 + x->low[i] + x->high[i], reach = (kernel - 1) * x->dilation[i] + 1;
  if (padded < reach) return false;
  x->out_size[(int)x->places[i]] = (padded - reach) / x->strides[i] + 1;
  return true;
}

static bool make_example(example *x, test_random *random) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F32, AX_F64, AX_S32, AX_BF16};
  const bool few_positions = test_random_below(random, 3) == 0, grouped = test_random_below(random, 3) == 0;
  *x = (example){.dtype = dtypes[test_random_below(random, AX_COUNT(dtypes))], .feature_groups = 1, .batch_groups = 1};
  if (grouped) *(test_random_below(random, 2) ? &x->feature_groups : &x->batch_groups) = some(random, 3, 3);
  order_dimensions(x, random, few_positions);
  const int64_t groups = x->feature_groups * x->batch_groups;
  x->rhs_size['I'] = some(random, 3, 40), x->rhs_size['O'] = groups * some(random, 5, 40 / groups);
  x->out_size['N'] = some(random, 3, 9), x->out_size['C'] = x->rhs_size['O'];
  x->size['N'] = x->out_size['N'] * x->batch_groups, x->size['C'] = x->rhs_size['I'] * x->feature_groups;
  int64_t work = x->size['N'] * x->size['C'] * x->rhs_size['O'];
  for (int i = 0; i < places_of(x); i++) {
    if (!set_place(x, random, i, few_positions)) return false;
    work *= x->out_size[(int)x->places[i]] * x->rhs_size[(int)x->places[i]];
  }
  return work < 4000000;
}

static ax_type type_of(ax_dtype dtype, const char *letters, const int64_t *size) {
  int64_t dims[most_rank];
  const uint32_t rank = (uint32_t)strlen(letters);
  for (uint32_t d = 0; d < rank; d++) dims[d] = size[(int)letters[d]];
  return ax_array_type(dtype, AX_LIST(rank, dims));
}

static int64_t place_of(const char *letters, const int64_t *size, const int64_t *at) {
  int64_t place = 0;
  for (; *letters != '\0'; letters++) place = place * size[(int)*letters] + at[(int)*letters];
  return place;
}

/* The letters' indices from 0 on, the last letter fastest. False: all have been. */
static bool next_place(const char *letters, const int64_t *size, int64_t *at) {
  for (int d = (int)strlen(letters); d-- > 0; at[(int)letters[d]] = 0)
    if (++at[(int)letters[d]] < size[(int)letters[d]]) return true;
  return false;
}

/* lhs's element for an element of the result and a place of the kernel; -1: none. */
static int64_t lhs_place(const example *x, const int64_t *out, const int64_t *kernel) {
  const int64_t each = x->rhs_size['O'] / (x->feature_groups * x->batch_groups), group = out['C'] / each;
  int64_t at[128] = {['N'] = out['N'] + (x->batch_groups > 1 ? group * x->out_size['N'] : 0),
                     ['C'] = kernel['I'] + (x->feature_groups > 1 ? group * x->rhs_size['I'] : 0)};
  for (int i = 0; i < places_of(x); i++) {
    const int p = x->places[i];
    const int64_t dilated = out[p] * x->strides[i] + kernel[p] * x->dilation[i] - x->low[i];
    if (dilated < 0 || dilated % x->base[i] != 0 || dilated / x->base[i] >= x->size[p]) return -1;
    at[p] = dilated / x->base[i];
  }
  return place_of(x->lhs, x->size, at);
}

/* Numbers are small integers, so sums are exact until they are rounded to the dtype. */
static double rounded(ax_dtype dtype, double sum) {
  char number[8];
  ax_number_store(dtype, number, 0, (ax_number){.f = sum});
  return ax_number_load(dtype, number, 0).f;
}

static double sum_at(const example *x, ax_tensor *const *in, const int64_t *out) {
  int64_t kernel[128] = {['O'] = out['C']};
  double sum = 0;
  char summed[most_rank + 1] = "I";
  strcat(summed, x->places);
  do {
    const int64_t left = lhs_place(x, out, kernel);
    if (left >= 0) sum += test_get(in[0], left) * test_get(in[1], place_of(x->rhs, x->rhs_size, kernel));
  } while (next_place(summed, x->rhs_size, kernel));
  return x->dtype == AX_BF16 ? rounded(x->dtype, sum) : sum;
}

static void call(const ax_value *in, ax_value *out, void *context) {
  const example *x = context;
  const uint32_t n = rank_of(x) - 2;
  const ax_conv_options options = {.lhs = x->lhs,
                                   .rhs = x->rhs,
                                   .out = x->out,
                                   .strides = {n, x->strides},
                                   .low = {n, x->low},
                                   .high = {n, x->high},
                                   .lhs_dilation = {n, x->base},
                                   .rhs_dilation = {n, x->dilation},
                                   .feature_group_count = x->feature_groups,
                                   .batch_group_count = x->batch_groups};
  out[0] = ax_conv_general_dilated(in[0], in[1], &options);
}

static void compare(const example *x, uint64_t seed, ax_tensor *const *in, const ax_tensor *out) {
  int64_t at[128] = {0};
  do {
    const double wanted = sum_at(x, in, at), found = test_get(out, place_of(x->out, x->out_size, at));
    if (found != wanted)
      fail_msg("seed %llu: %s %s -> %s at N %lld C %lld D %lld H %lld W %lld: %g, not %g", (unsigned long long)seed, x->lhs, x->rhs,
               x->out, (long long)at['N'], (long long)at['C'], (long long)at['D'], (long long)at['H'], (long long)at['W'], found,
               wanted);
  } while (next_place(x->out, x->out_size, at));
}

/* By reference evaluation, or compiled on two threads. */
static ax_tensor *result_of(ax_program *program, ax_tensor *const *in, bool compiled) {
  ax_runtime *runtime;
  ax_tensor *out;
  if (!compiled) {
    test_run(program, in, &out);
    return out;
  }
  TEST_OK(ax_runtime_create(&(ax_runtime_options){.workers = 2}, &runtime));
  test_execute(runtime, program, in, &out);
  ax_runtime_release(runtime);
  return out;
}

static void check_example(example x, test_random random, uint64_t seed, bool show) {
  ax_type types[] = {type_of(x.dtype, x.lhs, x.size), type_of(x.dtype, x.rhs, x.rhs_size)};
  const ax_type type = type_of(x.dtype, x.out, x.out_size);
  ax_tensor *in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, (double)test_random_below(&random, 9) - 4);
  }
  ax_program *program = test_trace(call, &x, types, 2, 1);
  if (show) test_show_program(program);
  if (!ax_type_equal(&type, ax_program_out_type(program, 0)))
    fail_msg("seed %llu: %s, not %s", (unsigned long long)seed, ax_type_string(ax_program_out_type(program, 0), NULL),
             ax_type_string(&type, NULL));
  for (int compiled = 0; compiled < 2; compiled++) {
    ax_tensor *out = result_of(program, in, compiled);
    compare(&x, seed, in, out);
    test_release(&out, 1);
  }
  if (seed % 32 == 1) TEST_EVERY_WAY(program, in, 0);
  test_release(in, 2);
  ax_program_release(program);
}

static void one_example(uint64_t seed, bool show) {
  test_random random = {seed};
  example x;
  while (!make_example(&x, &random)) {}
  check_example(x, random, seed, show);
}

static void at_random(void **state) {
  (void)state;
  test_each_seed(300, one_example);
}

/* A filter or a few of an image of one feature; along a line it may be so long that its places are gone through in steps. */
static bool make_filter(example *x, test_random *random) {
  static const ax_dtype dtypes[] = {AX_F32, AX_F64, AX_S32, AX_BF16};
  *x = (example){.dtype = dtypes[test_random_below(random, AX_COUNT(dtypes))], .feature_groups = 1, .batch_groups = 1};
  order_dimensions(x, random, false);
  x->rhs_size['I'] = x->size['C'] = 1;
  x->rhs_size['O'] = x->out_size['C'] = some(random, 2, 5);
  x->out_size['N'] = x->size['N'] = some(random, 3, 3);
  for (int i = 0; i < places_of(x); i++)
    if (!set_place(x, random, i, false)) return false;
  if (places_of(x) > 1 || test_random_below(random, 2)) return true;
  const int p = x->places[0];
  x->rhs_size[p] = some(random, 129, 300), x->out_size[p] = x->rhs_size[p] + some(random, 20, 40);
  x->low[0] = x->high[0] = 0, x->base[0] = 1;
  x->size[p] = (x->out_size[p] - 1) * x->strides[0] + (x->rhs_size[p] - 1) * x->dilation[0] + 1;
  return true;
}

static void one_filter(uint64_t seed, bool show) {
  test_random random = {seed};
  example x;
  while (!make_filter(&x, &random)) {}
  check_example(x, random, seed, show);
}

static void filters_at_random(void **state) {
  (void)state;
  test_each_seed(150, one_filter);
}

/* A kernel's gradient of many images, all the same: sums of 32,768 are made of 1,024 terms, and no worse for it. */
static void many_terms(void **state) {
  example x = {.lhs = "CHWN", .rhs = "IHWO", .out = "HWNC", .strides = {1, 1}, .base = {1, 1}, .dilation = {1, 1},
               .feature_groups = 1, .batch_groups = 1};
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(32, 34, 34, 4)),
                           ax_array_type(AX_F32, AX_DIMS(32, 32, 32, 4))};
  (void)state;
  ax_tensor *in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, 0.1);
  }
  ax_program *program = test_trace(call, &x, types, 2, 1);
  ax_tensor *out = result_of(program, in, true);
  const double wanted = 32768.0 * (double)0.1f * (double)0.1f;
  for (int64_t k = 0; k < test_elems(out); k++)
    if (fabs(test_get(out, k) - wanted) > 25 * ldexp(wanted, -24)) fail_msg("%.9g, not %.9g", test_get(out, k), wanted);
  TEST_EVERY_WAY(program, in, 1e-6);
  test_release(in, 2);
  test_release(&out, 1);
  ax_program_release(program);
}

/* Many features, everywhere the same, and of one sign: what each of the kernel's places or rows adds is a long sum itself. */
static void many_features(void **state) {
  enum { features = 40011, outs = 3 };
  static const int64_t widths[] = {5, 20}; /* unfolded, and as it lies */
  example x = {.lhs = "NHWC", .rhs = "HWIO", .out = "NHWC", .strides = {1, 1}, .base = {1, 1}, .dilation = {1, 1},
               .feature_groups = 1, .batch_groups = 1};
  (void)state;
  for (size_t c = 0; c < 2 * AX_COUNT(widths); c++) {
    const ax_dtype t = c % 2 ? AX_F64 : AX_F32;
    const ax_type types[] = {ax_array_type(t, AX_DIMS(1, 6, widths[c / 2] + 2, features)),
                             ax_array_type(t, AX_DIMS(3, 3, features, outs))};
    ax_tensor *in[2];
    test_random random = {7};
    for (int i = 0; i < 2; i++) {
      in[i] = test_random_tensor(&random, types[i], 0.5, 1.5);
      const int64_t same = i == 0 ? features : features * outs;
      for (int64_t k = same; k < test_elems(in[i]); k++) test_set(in[i], k, test_get(in[i], k % same));
    }
    long double wanted[outs] = {0};
    for (int64_t k = 0; k < features * outs; k++)
      wanted[k % outs] += 9 * (long double)test_get(in[0], k / outs) * (long double)test_get(in[1], k);
    ax_program *program = test_trace(call, &x, types, 2, 1);
    ax_tensor *out = result_of(program, in, true);
    for (int64_t k = 0; k < test_elems(out); k++) {
      const double off =
          fabs((double)(test_get(out, k) - wanted[k % outs]) / (double)wanted[k % outs]) * ldexp(1, t == AX_F64 ? 53 : 24);
      if (off > 5) fail_msg("%s, images %lld wide: off by %.3g units", ax_dtype_name(t), (long long)widths[c / 2], off);
    }
    if (c == 2) TEST_EVERY_WAY(program, in, 1e-5);
    test_release(in, 2);
    test_release(&out, 1);
    ax_program_release(program);
  }
}

/* A batch whose copied rows are more than a piece has: made in two, the second of two images. */
static void pieces_of_a_batch(void **state) {
  (void)state;
  example x = {.lhs = "NHWC", .rhs = "HWIO", .out = "NHWC", .places = "HW", .feature_groups = 1, .batch_groups = 1, .dtype = AX_F32,
               .size = {['N'] = 3, ['H'] = 170, ['W'] = 16, ['C'] = 16}, .rhs_size = {['H'] = 5, ['W'] = 5, ['I'] = 16, ['O'] = 2},
               .out_size = {['N'] = 3, ['H'] = 85, ['W'] = 14, ['C'] = 2}, .strides = {2, 1}, .base = {1, 1}, .dilation = {1, 1}, .low = {2, 1},
               .high = {1, 1}};
  const ax_type types[] = {type_of(x.dtype, x.lhs, x.size), type_of(x.dtype, x.rhs, x.rhs_size)};
  test_random random = {7};
  ax_tensor *in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, (double)test_random_below(&random, 9) - 4);
  }
  ax_program *program = test_trace(call, &x, types, 2, 1);
  ax_plan *plan = test_plan(program);
  uint32_t products = 0;
  for (uint32_t i = 0; i < plan->block.count; i++) products += plan->block.ops[i].kind == AX_OP_GEMM;
  assert_int_equal(products, 2 * 5);
  ax_plan_destroy(plan);
  ax_tensor *out = result_of(program, in, true);
  compare(&x, 0, in, out);
  test_release(&out, 1);
  test_release(in, 2);
  ax_program_release(program);
}

static AX_BODY(plain) { out[0] = ax_conv(in[0], in[1], NULL, "VALID"); }

/* A long window of one feature, gone through place by place; everything the same, so that each addition errs to the same side. */
static void long_window(void **state) {
  enum { places = 5000, positions = 6000 };
  const ax_type types[] = {ax_array_type(AX_F32, AX_DIMS(1, 1, places + positions - 1)),
                           ax_array_type(AX_F32, AX_DIMS(1, 1, places))};
  (void)state;
  ax_tensor *in[2];
  for (int i = 0; i < 2; i++) {
    in[i] = test_tensor(types[i], NULL);
    for (int64_t k = 0; k < test_elems(in[i]); k++) test_set(in[i], k, 0.1);
  }
  const double wanted = places * (double)0.1f * (double)0.1f;
  for (int infinite = 0; infinite < 2; infinite++) {
    if (infinite) test_set(in[0], 0, INFINITY); /* in the first position only */
    ax_program *program = test_trace(plain, NULL, types, 2, 1);
    ax_tensor *out = result_of(program, in, true);
    for (int64_t k = 0; k < positions; k++) {
      const double found = test_get(out, k);
      if (infinite && k == 0 ? found != INFINITY : fabs(found - wanted) > 4 * ldexp(wanted, -24))
        fail_msg("%.9g, not %.9g", found, wanted);
    }
    test_release(&out, 1);
    ax_program_release(program);
  }
  test_release(in, 2);
}

/* One convolution of each kind: how it is computed is seen in the plan. */
static void ways(void **state) {
  static const struct {
    ax_dims lhs, rhs;
    int64_t dilation, groups;
    const char *specs[3], *way;
  } all[] = {
      /* rows as they lie */
      {{4, {2, 20, 20, 3}}, {4, {3, 3, 3, 4}}, 1, 1, {"NHWC", "HWIO", "NHWC"}, "m=18 n=4 k=9 terms=3 batch=2 batch=18"},
      {{3, {2, 40, 3}}, {3, {5, 3, 4}}, 1, 1, {"NWC", "WIO", "NWC"}, "m=36 n=4 k=15 terms=1 batch=2\n"},
      {{3, {2, 40, 32}}, {3, {5, 32, 4}}, 2, 1, {"NWC", "WIO", "NWC"}, "m=32 n=4 k=32 terms=5 batch=2\n"},
      {{3, {2, 40, 6}}, {3, {5, 2, 9}}, 1, 3, {"NWC", "WIO", "NWC"}, "m=36 n=3 k=10 terms=1 batch=3 batch=2\n"},
      {{5, {2, 5, 6, 20, 3}}, {5, {2, 3, 4, 3, 4}}, 1, 1, {"NDHWC", "DHWIO", "NDHWC"},
       "m=17 n=4 k=12 terms=2 terms=3 batch=2 batch=4 batch=4\n"},
      /* unfolded */
      {{4, {2, 10, 10, 3}}, {4, {3, 3, 3, 4}}, 1, 1, {"NHWC", "HWIO", "NHWC"}, "m=64 n=4 k=9 batch=2"},
      {{3, {8, 10, 3}}, {3, {3, 3, 4}}, 1, 1, {"NWC", "WIO", "NWC"}, "m=64 n=4 k=9\n"},
      {{5, {2, 5, 6, 7, 3}}, {5, {2, 3, 4, 3, 4}}, 1, 1, {"NDHWC", "DHWIO", "NDHWC"}, "m=16 n=4 k=12 terms=2 batch=2 batch=4\n"},
      /* few positions */
      {{4, {3, 20, 20, 2}}, {4, {3, 18, 18, 4}}, 1, 1, {"CHWN", "IHWO", "HWNC"}, "m=6 n=4 k=18 terms=3 terms=18 batch=3"},
      {{3, {3, 20, 2}}, {3, {3, 18, 4}}, 1, 1, {"CWN", "IWO", "WNC"}, "m=6 n=4 k=18 terms=3\n"},
      {{5, {3, 5, 6, 20, 2}}, {5, {3, 4, 5, 18, 4}}, 1, 1, {"CDHWN", "IDHWO", "DHWNC"},
       "m=6 n=4 k=18 terms=3 terms=4 terms=5 batch=2 batch=2\n"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    example x = {.feature_groups = all[i].groups, .batch_groups = 1};
    for (int k = 0; k < most_places; k++) x.strides[k] = x.base[k] = 1, x.dilation[k] = all[i].dilation;
    strcpy(x.lhs, all[i].specs[0]), strcpy(x.rhs, all[i].specs[1]), strcpy(x.out, all[i].specs[2]);
    const ax_type types[] = {ax_array_type(AX_F32, AX_LIST(all[i].lhs.count, all[i].lhs.v)),
                             ax_array_type(AX_F32, AX_LIST(all[i].rhs.count, all[i].rhs.v))};
    ax_program *program = test_trace(call, &x, types, 2, 1);
    ax_plan *plan = test_plan(program);
    ax_text text = {0};
    char *shown;
    ax_plan_text(&text, plan);
    TEST_OK(ax_text_finish(&text, &shown));
    if (strstr(shown, all[i].way) == NULL) fail_msg("no %s in\n%s", all[i].way, shown);
    ax_free(shown);
    ax_plan_destroy(plan);
    ax_program_release(program);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(filters_at_random), cmocka_unit_test(many_terms),
                                     cmocka_unit_test(many_features),
                                     cmocka_unit_test(long_window), cmocka_unit_test(pieces_of_a_batch), cmocka_unit_test(ways)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
