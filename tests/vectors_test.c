/* Programs against JAX: values, tangents and gradients, on one device and on meshes, compiled and evaluated by reference.

     vectors_test [FOLDER [EXPORT]]

   FOLDER (tests/vectors) holds what make.py computed. Each case of each table must be there with each of its variants, and nothing
   else. For a case f with inputs x:

     v   f(x) = out
     j   its jvp along weights(.., TANGENT) = jvp, for every float result
     g   its vjp of weights(.., COTANGENT), by linearize and transpose = grad, for every float input

   Integers must be equal; floats within `ulps` epsilons (of the element, or of the largest element where the case says `scaled`), the
   parts of complex numbers of the number's size;
   NaN is NaN; an infinity equals itself; what is below the smallest normal number counts as 0 (XLA flushes it).

   With EXPORT, each program is also written there as a StableHLO module with the devices' inputs and our results, for
   tests/oracle/compare_stablehlo.py. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/exec.h"
#include "axle/npy.h"
#include "axle/stablehlo.h"
#include "support/cmocka.h"
#include "support/run.h"
#include "support/tensor.h"
#include "vectors/vectors.h"

enum { TANGENT = 3, COTANGENT = 5, MOST = 48 /* operands or results of a case */, NAME = 256 };

static struct {
  const char *folder, *exports; /* exports NULL: none */
  ax_runtime *runtime;
  FILE *list; /* of what was exported */
  uint32_t exported;
} run;

/* One variant of one case, with what the file says of it. */
typedef struct subject {
  const vector_case *c;
  vector_variant variant;
  char name[NAME];         /* "add.f32" */
  const ax_npz *vectors;   /* borrowed */
  uint32_t used, failures; /* arrays of `vectors` looked at; differences */
  uint32_t in, out;
  char spec[MOST][64]; /* of the operands, then the results, of a shard_map */
} subject;

static void complain(subject *s, const char *what) {
  print_error("%s: %s\n", s->name, what);
  s->failures++;
}

static bool check(subject *s, ax_status status, const char *what) {
  if (status == AX_OK) return true;
  print_error("%s: %s: %s: %s\n", s->name, what, ax_status_name(status), ax_message());
  s->failures++;
  return false;
}

static const ax_host_array *find(subject *s, const char *kind, uint32_t k) {
  char name[NAME + 32];
  snprintf(name, sizeof name, "%s.%s%u", s->name, kind, k);
  const ax_host_array *array = ax_npz_find(s->vectors, name);
  if (array == NULL) {
    print_error("%s is not among the vectors\n", name);
    s->failures++;
  } else {
    s->used++;
  }
  return array;
}

/* --- Comparing --- */

/* f64's is taken eight times: XLA's functions are that far off (its log1p by 55 epsilons). */
static double epsilon(ax_dtype dtype) {
  return dtype == AX_BF16 ? 0x1p-7 : dtype == AX_F16 ? 0x1p-10 : dtype == AX_F32 ? 0x1p-23 : 0x1p-49;
}
static double smallest(ax_dtype dtype) { return dtype == AX_F64 ? 0x1p-1022 : dtype == AX_F16 ? 0x1p-14 : 0x1p-126; }

/* The distance in epsilons of `scale`, or of the larger one where that is 0. */
static double distance(ax_dtype dtype, double a, double b, double scale) {
  if (a == b || (isnan(a) && isnan(b))) return 0;
  if (fabs(a - b) <= smallest(dtype)) return 0;
  double size = fmax(scale, fmax(fabs(a), fabs(b)));
  double d = fabs(a - b) / (size * epsilon(dtype));
  return isnan(d) || isinf(size) ? INFINITY : d;
}

static bool same_type(const ax_tensor *a, const ax_host_array *b) {
  return a->dtype == b->dtype && a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof a->dims[0]) == 0;
}

static double largest(const ax_tensor *tensor) {
  double most = 0;
  for (int64_t i = 0; i < test_elems(tensor); i++)
    if (isfinite(test_get(tensor, i))) most = fmax(most, fabs(test_get(tensor, i)));
  return most;
}

static double tolerance(const vector_case *c) { return c->ulps > 0 ? c->ulps : 16; }

static void compare(subject *s, const char *who, const ax_tensor *got, const char *kind, uint32_t k) {
  const ax_host_array *array = find(s, kind, k);
  if (array == NULL) return;
  if (!same_type(got, array)) {
    complain(s, "a result of another type than JAX's");
    return;
  }
  ax_tensor want = {.dtype = array->dtype, .rank = array->rank, .data = array->data};
  memcpy(want.dims, array->dims, sizeof want.dims);
  double scale = s->c->scaled ? fmax(1, largest(&want)) : 0, worst = 0;
  int64_t place = 0, size = (int64_t)ax_dtype_bytes(got->dtype);
  const ax_dtype part = ax_part_dtype(got->dtype);
  for (int64_t i = 0; i < test_elems(got); i++) {
    const int64_t first = i - i % 2;
    double own = ax_is_complex(got->dtype) ? hypot(test_get(&want, first), test_get(&want, first + 1)) : 0;
    if (!isfinite(own)) own = 0;
    double d = ax_is_float(part) ? distance(part, test_get(got, i), test_get(&want, i), fmax(scale, own))
               : memcmp((char *)got->data + i * size, (char *)want.data + i * size, (size_t)size) == 0 ? 0
                                                                                                       : INFINITY;
    if (d > worst) worst = d, place = i;
  }
  if (getenv("AXLE_VERBOSE") != NULL) print_message("%-40s %-9s %s%u %.3g\n", s->name, who, kind, k, worst);
  if (worst <= tolerance(s->c)) return;
  print_error("%s: %s: %s%u, element %lld: %.17g is not %.17g: %.3g ulps\n", s->name, who, kind, k, (long long)place,
              test_get(got, place), test_get(&want, place), worst);
  s->failures++;
}

/* --- StableHLO --- */

/* Device by device: the parts of `whole` that lie on `devices` devices, as [devices, part..]. Data: malloc. */
static bool cut(subject *s, const ax_array *array, const ax_tensor *whole, int64_t devices, ax_host_array *out) {
  int64_t start[AX_MAX_RANK], stride[AX_MAX_RANK], place = 0;
  size_t size = ax_dtype_bytes(whole->dtype);
  bool laid_out = ax_mesh_devices(ax_array_mesh(array)) == devices;
  for (int64_t d = 0; d < devices; d++) {
    ax_type part;
    if (!check(s, ax_array_shard(array, laid_out ? d : 0, &part, start), "shard")) return false;
    if (d == 0) {
      *out = (ax_host_array){.dtype = part.dtype, .rank = part.rank + 1, .dims = {devices}};
      memcpy(out->dims + 1, part.dims, part.rank * sizeof part.dims[0]);
      out->data = calloc((size_t)(devices * ax_type_elems(&part)) + 1, size);
      for (int64_t k = (int64_t)part.rank - 1, step = 1; k >= 0; k--) stride[k] = step, step *= whole->dims[k];
    }
    for (int64_t i = 0; i < ax_type_elems(&part); i++, place++) {
      int64_t rest = i, from = 0;
      for (int64_t k = (int64_t)part.rank - 1; k >= 0; k--) {
        from += (start[k] + rest % part.dims[k]) * stride[k];
        rest /= part.dims[k];
      }
      memcpy((char *)out->data + place * (int64_t)size, (char *)whole->data + from * (int64_t)size, size);
    }
  }
  return true;
}

static void write_parts(subject *s, const char *kind, ax_array *const *arrays, ax_tensor *const *wholes, uint32_t count,
                        int64_t devices) {
  static char label[2 * MOST][12];
  const char *labels[2 * MOST];
  ax_host_array parts[2 * MOST] = {0};
  char path[4096];
  for (uint32_t i = 0; i < count; i++) {
    snprintf(label[i], sizeof label[i], "%u", i);
    labels[i] = label[i];
    if (!cut(s, arrays[i], wholes[i], devices, &parts[i])) goto cleanup;
  }
  snprintf(path, sizeof path, "%s/%u.%s.npz", run.exports, run.exported, kind);
  check(s, ax_npz_write(path, AX_LIST(count, labels), parts), path);
cleanup:
  for (uint32_t i = 0; i < count; i++) free(parts[i].data);
}

/* N.mlir, N.in.npz, N.want.npz, and a line of cases.txt. */
static void export_program(subject *s, const char *mode, ax_program *program, ax_array *const *arrays, ax_tensor *const *wholes) {
  uint32_t in = ax_program_in_count(program), out = ax_program_out_count(program);
  char *text, path[4096];
  if (!check(s, ax_program_stablehlo(program, &text), "StableHLO")) return;
  snprintf(path, sizeof path, "%s/%u.mlir", run.exports, run.exported);
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) complain(s, path);
  ax_string_free(text);
  int64_t devices = ax_mesh_devices(&s->variant.mesh);
  write_parts(s, "in", arrays, wholes, in, devices);
  write_parts(s, "want", arrays + in, wholes + in, out, devices);
  fprintf(run.list, "%u %s %s %g %d\n", run.exported++, s->name, mode, tolerance(s->c), s->c->scaled);
}

/* --- Running --- */

/* tensors: the operands; the results are added, new. */
static bool execute(subject *s, const char *mode, ax_program *program, const char *const *specs, ax_tensor **tensors) {
  uint32_t in = ax_program_in_count(program), out = ax_program_out_count(program);
  ax_array *arrays[4 * MOST] = {0};
  ax_executable *executable = NULL;
  bool ok = check(s, ax_compile(run.runtime, program, NULL, &executable), "compile");
  for (uint32_t i = 0; i < in && ok; i++) {
    const ax_mesh *mesh = specs[i] != NULL ? &s->variant.mesh : NULL;
    ok = check(s,
               ax_device_put_data(run.runtime, mesh, mesh != NULL ? specs[i] : "", ax_program_in_type(program, i), tensors[i]->data,
                             &arrays[i]),
               "device_put");
  }
  ok = ok && check(s, ax_run(executable, AX_LIST(in, arrays), AX_LIST(out, arrays + in)), "run");
  for (uint32_t i = in; i < in + out && ok; i++) {
    ok = check(s, ax_tensor_create(ax_program_out_type(program, i - in), &tensors[i]), "create") &&
         check(s, ax_array_read(arrays[i], tensors[i]->data, test_tensor_bytes(tensors[i])),
               "read");
  }
  if (ok && run.exports != NULL && s->c->no_hlo == NULL) export_program(s, mode, program, arrays, tensors);
  for (uint32_t i = 0; i < in + out; i++) ax_array_release(arrays[i]);
  ax_executable_release(executable);
  return ok;
}

/* What a mode's program takes and gives: names and numbers of the vectors, and how they lie on the mesh. */
typedef struct signature {
  const char *kind[2 * MOST];
  uint32_t k[2 * MOST], count;
  const char *spec[2 * MOST];
} signature;

static void add(signature *g, const char *kind, uint32_t k, const char *spec) {
  g->kind[g->count] = kind, g->k[g->count] = k, g->spec[g->count++] = spec;
}

/* Runs and evaluates the program, and compares both. tensors: the operands; room for the results. */
static void run_both(subject *s, const char *mode, ax_program *program, ax_tensor **tensors, const signature *in,
                     const signature *out) {
  uint32_t used = s->used;
  if (!check(s, ax_program_verify(program), mode)) return;
  if (ax_program_in_count(program) != in->count || ax_program_out_count(program) != out->count) {
    complain(s, "a transform gave a program of other operands or results");
    return;
  }
  for (int reference = 0; reference < 2; reference++) {
    ax_tensor **results = tensors + in->count;
    memset(results, 0, out->count * sizeof results[0]);
    s->used = used; /* each is counted once */
    bool ok =
        reference ? check(s, ax_evaluate(program, tensors, results), "evaluate") : execute(s, mode, program, in->spec, tensors);
    for (uint32_t i = 0; i < out->count && ok; i++)
      compare(s, reference ? "evaluated" : "compiled", results[i], out->kind[i], out->k[i]);
    test_release(results, out->count);
    if (!ok) return;
  }
}

/* --- Modes --- */

/* Numbers that every dtype holds; make.py makes the same. */
static ax_tensor *weights(const ax_type *type, uint32_t k, uint32_t salt) {
  ax_tensor *tensor = test_tensor(*type, NULL);
  for (int64_t i = 0; i < test_elems(tensor); i++) test_set(tensor, i, (double)((i * 37 + k * 11 + salt) % 17 - 8) / 8);
  return tensor;
}

static const char *in_spec(const subject *s, uint32_t i) { return s->c->specs != NULL ? s->spec[i] : NULL; }
static const char *out_spec(const subject *s, uint32_t i) { return s->c->specs != NULL ? s->spec[s->in + i] : NULL; }

static void jvp_mode(subject *s, ax_program *program, ax_tensor **tensors, signature in) {
  ax_program *jvp;
  signature out = {0};
  for (uint32_t i = 0; i < s->in; i++) {
    const ax_type *type = ax_program_in_type(program, i);
    if (!ax_is_differentiable(type->dtype)) continue;
    tensors[in.count] = weights(type, i, TANGENT);
    add(&in, "dx", i, in_spec(s, i));
  }
  for (uint32_t i = 0; i < s->out; i++) add(&out, "out", i, NULL);
  for (uint32_t i = 0, t = 0; i < s->out; i++)
    if (ax_is_differentiable(ax_program_out_type(program, i)->dtype)) add(&out, "jvp", t++, NULL);
  s->used -= s->out; /* the results are compared a second time */
  if (check(s, ax_program_jvp(program, AX_ALL_ARGS, &jvp), "jvp")) {
    run_both(s, "jvp", jvp, tensors, &in, &out);
    ax_program_release(jvp);
  }
  test_release(tensors + s->in, in.count - s->in);
}

/* (x.., ct of y..) -> (ct of x..), of a linearized program and the transpose of its linear part. */
typedef struct pullback {
  ax_program *primal, *transposed;
  uint32_t in, out, residuals, cotangents, grads;
} pullback;

BODY(pull_back) {
  const pullback *p = context;
  ax_value values[4096], operands[4096];
  if (p->out + p->residuals + p->cotangents > 4096) return;
  ax_call(p->primal, AX_LIST(p->in, in), AX_LIST(p->out + p->residuals, values));
  memcpy(operands, values + p->out, p->residuals * sizeof values[0]);
  memcpy(operands + p->residuals, in + p->in, p->cotangents * sizeof values[0]);
  ax_call(p->transposed, AX_LIST(p->residuals + p->cotangents, operands), AX_LIST(p->grads, out));
}

static ax_status make_pullback(const ax_program *program, const ax_type *types, pullback *p, ax_program **out) {
  ax_program *tangent;
  *out = NULL;
  ax_status status = ax_program_linearize(program, AX_ALL_ARGS, &p->primal, &tangent, &p->residuals);
  if (status != AX_OK) return status;
  bool *linear = calloc(ax_program_in_count(tangent) + 1, sizeof linear[0]);
  for (uint32_t i = p->residuals; i < ax_program_in_count(tangent); i++) linear[i] = true;
  status = ax_program_transpose(tangent, test_args(linear, ax_program_in_count(tangent)), &p->transposed);
  if (status == AX_OK) status = ax_trace(AX_CLOSURE(pull_back, p->in + p->cotangents, p->grads, p), types, out);
  ax_program_release(tangent), ax_program_release(p->primal), ax_program_release(p->transposed);
  free(linear);
  return status;
}

static void gradient_mode(subject *s, ax_program *program, ax_tensor **tensors, signature in) {
  ax_type types[2 * MOST];
  pullback p = {.in = s->in, .out = s->out};
  signature out = {0};
  ax_program *gradient;
  for (uint32_t i = 0; i < s->in; i++) {
    types[i] = *ax_program_in_type(program, i);
    if (ax_is_differentiable(types[i].dtype)) add(&out, "grad", p.grads++, NULL);
  }
  for (uint32_t i = 0; i < s->out; i++) {
    const ax_type *type = ax_program_out_type(program, i);
    if (!ax_is_differentiable(type->dtype)) continue;
    types[in.count] = *type;
    tensors[in.count] = weights(type, i, COTANGENT);
    p.cotangents++;
    add(&in, "dy", i, out_spec(s, i));
  }
  if (check(s, make_pullback(program, types, &p, &gradient), "gradient")) {
    run_both(s, "gradient", gradient, tensors, &in, &out);
    ax_program_release(gradient);
  }
  test_release(tensors + s->in, in.count - s->in);
}

static bool has_mode(const subject *s, char mode) { return strchr(s->c->modes != NULL ? s->c->modes : "vjg", mode) != NULL; }

static bool differentiable(const ax_program *program) {
  bool in = false, out = false;
  for (uint32_t i = 0; i < ax_program_in_count(program); i++) in |= ax_is_differentiable(ax_program_in_type(program, i)->dtype);
  for (uint32_t i = 0; i < ax_program_out_count(program); i++) out |= ax_is_differentiable(ax_program_out_type(program, i)->dtype);
  return in && out;
}

/* --- Cases --- */

BODY(call_case) {
  const subject *s = context;
  if (s->c->unary != NULL) {
    out[0] = s->c->unary(in[0]);
  } else if (s->c->binary != NULL) {
    out[0] = s->c->binary(in[0], in[1]);
  } else {
    s->c->body(in, out, (void *)&s->variant);
  }
}

BODY(map_case) {
  const subject *s = context;
  const char *specs[2 * MOST];
  for (uint32_t i = 0; i < s->in + s->out; i++) specs[i] = s->spec[i];
  test_shard_map(&s->variant.mesh, specs, specs + s->in, s->c->unchecked, AX_CLOSURE(call_case, s->in, s->out, (void *)s), in, out);
}

static bool names_axis(const vector_variant *v, const char *axis) {
  char padded[80], wanted[AX_MAX_NAME + 4];
  snprintf(padded, sizeof padded, ",%s,", v->axes);
  snprintf(wanted, sizeof wanted, ",%s,", axis);
  return strstr(padded, wanted) != NULL;
}

static void append(char *text, size_t bytes, const char *separator, const char *more) {
  if (text[0] != 0) strncat(text, separator, bytes - strlen(text) - 1);
  strncat(text, more, bytes - strlen(text) - 1);
}

/* All axes of the mesh, or those that the case's collectives do not go over. */
static void join_axes(const vector_variant *v, bool all, char *out, size_t bytes) {
  out[0] = 0;
  for (uint32_t a = 0; a < v->mesh.count; a++)
    if (all || !names_axis(v, v->mesh.axis[a].name)) append(out, bytes, "+", v->mesh.axis[a].name);
}

static void parse_specs(subject *s) {
  uint32_t at = 0;
  for (const char *p = s->c->specs; p != NULL && *p != 0 && at < 2 * MOST;) {
    size_t length = strcspn(p, " ");
    char *spec = s->spec[at];
    if (*p == 'A' || *p == 'R' || *p == 'N') {
      join_axes(&s->variant, *p == 'A', spec, sizeof s->spec[0]), at++;
      if (*p == 'N' && spec[0] != 0) {
        memmove(spec + 2, spec, strlen(spec) + 1);
        memcpy(spec, "_,", 2);
      }
    } else if (*p != '>') {
      snprintf(spec, sizeof s->spec[0], "%.*s", *p == '.' ? 0 : (int)length, p), at++;
      for (char *c = spec; *c != 0; c++) *c = *c == '/' ? ',' : *c;
    }
    p += length;
    p += strspn(p, " ");
  }
  if (s->c->specs != NULL && at != s->in + s->out) complain(s, "not one spec for each operand and result");
}

static bool parse_variant(subject *s, const char *text, size_t length) {
  vector_variant *v = &s->variant;
  char mesh[64];
  size_t colon = 0;
  *v = (vector_variant){.members = 1};
  if (memchr(text, '=', length) != NULL) {
    while (colon < length && text[colon] != ':') colon++;
    snprintf(mesh, sizeof mesh, "%.*s", (int)colon, text);
    if (!check(s, ax_mesh_parse(mesh, &v->mesh), "mesh")) return false;
    if (colon < length) snprintf(v->axes, sizeof v->axes, "%.*s", (int)(length - colon - 1), text + colon + 1);
    for (uint32_t a = 0; a < v->mesh.count; a++) {
      if (colon == length) append(v->axes, sizeof v->axes, ",", v->mesh.axis[a].name);
      if (names_axis(v, v->mesh.axis[a].name)) v->members *= v->mesh.axis[a].size;
    }
  }
  parse_specs(s);
  return s->failures == 0;
}

static void run_case(subject *s) {
  ax_tensor *tensors[4 * MOST] = {0};
  ax_type types[MOST];
  ax_program *program;
  signature in = {0}, out = {0};
  for (uint32_t i = 0; i < s->in; i++) {
    const ax_host_array *array = find(s, "in", i);
    if (array == NULL) {
      test_release(tensors, i);
      return;
    }
    types[i] = ax_array_type(array->dtype, AX_LIST(array->rank, array->dims));
    tensors[i] = test_tensor(types[i], NULL);
    memcpy(tensors[i]->data, array->data, (size_t)ax_type_elems(&types[i]) * ax_dtype_bytes(array->dtype));
    add(&in, "in", i, in_spec(s, i));
  }
  for (uint32_t i = 0; i < s->out; i++) add(&out, "out", i, NULL);
  if (check(s, ax_trace(AX_CLOSURE(s->c->specs != NULL ? map_case : call_case, s->in, s->out, s), types, &program), "trace")) {
    run_both(s, "values", program, tensors, &in, &out);
    if (differentiable(program) && has_mode(s, 'j')) jvp_mode(s, program, tensors, in);
    if (differentiable(program) && has_mode(s, 'g')) gradient_mode(s, program, tensors, in);
    ax_program_release(program);
  }
  test_release(tensors, s->in);
}

/* --- Groups --- */

static void run_group(const vector_group *group) {
  enum { share = AX_HOSTILE ? 3 : 1 }; /* with sanitizers every third case: all take five minutes there */
  char path[4096];
  ax_npz *vectors;
  uint32_t used = 0, failures = 0, variants = 0;
  snprintf(path, sizeof path, "%s/%s.npz", run.folder, group->name);
  TEST_OK(ax_npz_read(path, &vectors));
  for (size_t i = 0; i < group->count; i += share) {
    const vector_case *c = &group->cases[i];
    for (const char *p = c->variants; *p != 0; p += strspn(p, " "), variants++) {
      size_t length = strcspn(p, " ");
      subject s = {.c = c, .vectors = vectors, .in = c->in, .out = c->out > 0 ? c->out : 1};
      if (s.in == 0) s.in = c->binary != NULL ? 2 : 1;
      snprintf(s.name, sizeof s.name, "%s.%.*s", c->name, (int)length, p);
      if (parse_variant(&s, p, length)) run_case(&s);
      used += s.used, failures += s.failures;
      p += length;
    }
  }
  print_message("%s: %u variants of %zu cases, %u arrays, %u differences\n", group->name, variants, group->count, used, failures);
  if (share == 1 && failures == 0 && used != ax_npz_count(vectors)) {
    print_error("%s has %u arrays, of which the cases in C use %u\n", path, ax_npz_count(vectors), used);
    failures++;
  }
  ax_npz_release(vectors);
  assert_int_equal(failures, 0);
}

static void group_test(void **state) { run_group(*state); }

static int set_up(void **state) {
  (void)state;
  char path[4096];
  if (ax_runtime_create(NULL, &run.runtime) != AX_OK) return 1;
  if (run.exports == NULL) return 0;
  snprintf(path, sizeof path, "%s/cases.txt", run.exports);
  run.list = fopen(path, "w");
  return run.list == NULL;
}

static int tear_down(void **state) {
  (void)state;
  ax_runtime_release(run.runtime);
  return run.list != NULL && fclose(run.list) != 0;
}

#define GROUP_TEST(group) \
  { #group, group_test, NULL, NULL, (void *)&vectors_##group }

int main(int argc, char **argv) {
  run.folder = argc > 1 ? argv[1] : "tests/vectors";
  run.exports = argc > 2 ? argv[2] : NULL;
  const struct CMUnitTest tests[] = {
      GROUP_TEST(pointwise),   GROUP_TEST(arrays),
      GROUP_TEST(parts),       GROUP_TEST(windows),
      GROUP_TEST(indexing),    GROUP_TEST(einsum),      GROUP_TEST(linalg),
      GROUP_TEST(complex_numbers),
      GROUP_TEST(composites),  GROUP_TEST(transforms),
      GROUP_TEST(derivatives), GROUP_TEST(custom),
      GROUP_TEST(checkpoint),  GROUP_TEST(collectives),
      GROUP_TEST(groups),      GROUP_TEST(ragged),
      GROUP_TEST(nn),          GROUP_TEST(numpy_functions),
      GROUP_TEST(reduced),     GROUP_TEST(mesh),
      GROUP_TEST(partial),     GROUP_TEST(pmap),
      GROUP_TEST(control),     GROUP_TEST(mlp),
      GROUP_TEST(kernels),     GROUP_TEST(kernel_transforms),
      GROUP_TEST(reductions),
      GROUP_TEST(cumulative),
      GROUP_TEST(special),
      GROUP_TEST(solvers),
      GROUP_TEST(fft),
      GROUP_TEST(incomplete),
      GROUP_TEST(random_draws),
      GROUP_TEST(keys),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
