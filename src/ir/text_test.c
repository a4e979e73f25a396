/* The text form: print and parse are each other's inverse, errors show their place, and no text does harm. */
#include "ir/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/ops.h"
#include "support/cmocka.h"
#include "support/oom.h"
#include "support/random.h"

/* A copy of exactly `bytes` bytes, so that a sanitizer sees a read beyond them. */
static ax_status parse_bytes(const char *text, size_t bytes, ax_program **out) {
  char *copy = malloc(bytes > 0 ? bytes : 1);
  if (bytes > 0) memcpy(copy, text, bytes);
  ax_status status = ax_program_parse(copy, bytes, "t.axle", out);
  free(copy);
  return status;
}

static ax_program *parse_ok(const char *text) {
  ax_program *program;
  if (parse_bytes(text, strlen(text), &program) != AX_OK) fail_msg("%s", ax_message());
  if (ax_program_verify(program) != AX_OK) fail_msg("%s", ax_message());
  return program;
}

static char *print_ok(const ax_program *program) {
  char *text;
  assert_int_equal(ax_program_print(program, &text), AX_OK);
  return text;
}

static void check_round_trip(const ax_program *program) {
  char *text = print_ok(program);
  ax_program *back = parse_ok(text);
  char *again = print_ok(back);
  assert_string_equal(text, again);
  assert_true(ax_program_equal(program, back));
  ax_program_release(back);
  ax_string_free(text);
  ax_string_free(again);
}

/* --- Texts as print writes them --- */

static const char *const canonical[] = {
    "{ lambda . let in () }\n",
    "{ lambda a:f32[]. let in (a,) }\n",
    "{ lambda a:f32[8,4] b:f32[0,3]. let in (b, a, b, 1.0:f32[]) }\n",
    "{ axes data=4 model=2 ; lambda a:f32[8,4]{V:data} b:f32[4]. let\n"
    "    c:f32[8,4] = broadcast_in_dim[shape=(8, 4) broadcast_dimensions=(1,)] b\n"
    "    d:f32[8,4]{V:data} = pvary[axes=(data,)] c\n"
    "    e:f32[8,4]{V:data} = mul a d\n"
    "    f:f32[8,4] = psum[axes=(data,)] e\n"
    "  in (e, f) }\n",
    "{ axes data=4? ; lambda a:f32[8]. let\n"
    "    b:f32[8] = psum[axes=(data,)] a\n"
    "  in (b,) }\n",
    "{ axes data=2 model=2 ; lambda a:f32[]{V:data,model} b:f32[]{V:data R:model}. let in (a, b) }\n",
    "{ axes a=2 b=2 c=2 ; lambda a:f32[]{V:a R:b U:c} b:f32[]{R:a Umax:b,c}. let in (a, b) }\n",
    "{ axes a=2 ; lambda a:f32[2]{Umin:a}. let in (a,) }\n",
    "{ axes d=2 ; lambda a:f32[4]{V:d}. let\n"
    "    b:future<f32[4]> = start[\n"
    "      body={ lambda a:f32[4]{V:d}. let\n"
    "          b:f32[4] = psum[axes=(d,)] a\n"
    "        in (b,) }\n"
    "    ] a\n"
    "    c:f32[4]{V:d} = neg a\n"
    "    d:f32[4] = done b\n"
    "  in (c, d) }\n",
    "{ lambda a:f32[] b:s32[]. let\n"
    "    c:f32[] = cond[\n"
    "      branches=(\n"
    "        { lambda a:f32[]. let\n"
    "            b:f32[] = neg a\n"
    "          in (b,) },\n"
    "        { lambda a:f32[]. let in (0.1:f32[],) },\n"
    "      )\n"
    "    ] b a\n"
    "  in (c,) }\n",
    "{ axes data=4 ; lambda a:f32[] b:s32[]. let\n"
    "    c:f32[] = cond[\n"
    "      branches=(\n"
    "        { axes ; lambda a:f32[]. let in (a,) },\n"
    "      )\n"
    "    ] b a\n"
    "  in (c,) }\n",
    "{ lambda a:f32[2]. let\n"
    "    b:f32[2] = constant[value=[1.0, -inf]:f32[2]]\n"
    "    c:f32[2] = mul a b\n"
    "    d:s32[2,2] = constant[value=[[1, 2], [3, -4]]:s32[2,2]]\n"
    "    e:f32[3,5] = constant[value=0.0:f32[3,5]]\n"
    "    f:bool[2,0] = constant[value=[]:bool[2,0]]\n"
    "    g:f32[2] = integer_pow[y=-3] c\n"
    "    h:s32[3,4] = iota[dtype=s32 shape=(3, 4) dimension=1]\n"
    "  in (g, d, e, f, h) }\n",
    "{ lambda a:f32[8,4]. let\n"
    "    b:f32[8,4] = shard_map[\n"
    "      mesh=(data=4, model=2)\n"
    "      unchecked=false\n"
    "      in_specs=(P(data, _),)\n"
    "      out_specs=(P(data),)\n"
    "      body={ axes data=4 model=2 ; lambda a:f32[2,4]{V:data}. let\n"
    "          b:f32[2,4]{V:data} = exp a\n"
    "        in (b,) }\n"
    "    ] a\n"
    "  in (b,) }\n",
};

static void test_canonical(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(canonical); i++) {
    ax_program *program = parse_ok(canonical[i]);
    char *text = print_ok(program);
    assert_string_equal(text, canonical[i]);
    ax_string_free(text);
    ax_program_release(program);
  }
}

static void test_free_form(void **state) {
  (void)state;
  ax_program *free_form = parse_ok(
      "# before\n{lambda x:f32[ 8 , 4, ]\ty:f32[] .let z:f32[]=add y 0.10:f32[]#mid } ] \r\n _:f32[8,4] = neg x "
      "_:f32[]\n"
      "= neg y in(z)}# after");
  ax_program *written = parse_ok(
      "{ lambda a:f32[8,4] b:f32[]. let c:f32[] = add b 1e-1:f32[] d:f32[8,4] = neg a e:f32[] = neg b in (c,) }");
  assert_true(ax_program_equal(free_form, written));
  ax_program_release(free_form);
  ax_program_release(written);
}

/* --- Traced programs --- */

static void traced(const ax_value *in, ax_value *out, void *context) {
  (void)context;
  ax_value x = ax_mul(in[0], ax_full(AX_F32, AX_DIMS(), 0.1));
  ax_value half = ax_full(AX_F32, AX_DIMS(), 0.5), unused = ax_full(AX_F32, AX_DIMS(), 7);
  (void)unused;
  out[0] = ax_add(ax_exp(ax_neg(x)), half);
  out[1] = half;
  out[2] = ax_full(AX_F32, AX_DIMS(), 0.5);
  out[3] = ax_add(out[0], half);
}

/* Where a constant was made, how often and whether it is used is not part of a program. */
static void test_traced(void **state) {
  (void)state;
  ax_program *program;
  ax_type scalar = ax_array_type(AX_F32, AX_DIMS());
  assert_int_equal(ax_trace(AX_FN(traced, 1, 4), &scalar, &program), AX_OK);
  char *text = print_ok(program);
  assert_string_equal(text,
                      "{ lambda a:f32[]. let\n"
                      "    b:f32[] = mul a 0.1:f32[]\n"
                      "    c:f32[] = neg b\n"
                      "    d:f32[] = exp c\n"
                      "    e:f32[] = add d 0.5:f32[]\n"
                      "    f:f32[] = add e 0.5:f32[]\n"
                      "  in (e, 0.5:f32[], 0.5:f32[], f) }\n");
  ax_string_free(text);
  check_round_trip(program);
  ax_program_release(program);
}

/* More values than names of two letters, among them `in` and, much later, `let`. */
static void long_chain(const ax_value *in, ax_value *out, void *context) {
  out[0] = in[0];
  for (int i = 0; i < *(const int *)context; i++) out[0] = ax_neg(out[0]);
}

static void test_names(void **state) {
  (void)state;
  ax_program *program;
  int length = 9000;
  ax_type scalar = ax_array_type(AX_F32, AX_DIMS());
  assert_int_equal(ax_trace(AX_CLOSURE(long_chain, 1, 1, &length), &scalar, &program), AX_OK);
  check_round_trip(program);
  ax_program_release(program);
  static const struct {
    uint32_t label;
    const char *name;
  } names[] = {{0, "a"}, {25, "z"}, {26, "aa"}, {26 + 26 * 8 + 12, "im"}, {26 + 26 * 8 + 13, "io"}};
  for (size_t i = 0; i < AX_COUNT(names); i++) {
    char name[16];
    ax_label_name(names[i].label, name);
    assert_string_equal(name, names[i].name);
  }
  char name[16], before[16] = "";
  for (uint32_t label = 0; label < 500000; label++) {
    ax_label_name(label, name);
    assert_false(ax_is_reserved(name, strlen(name)));
    assert_true(strlen(name) > strlen(before) || strcmp(name, before) > 0);
    memcpy(before, name, sizeof name);
  }
}

/* --- Numbers --- */

/* Literals of complex numbers: both parts, or the real one alone; what is no such number is refused. */
static void test_complex_numbers(void **state) {
  (void)state;
  static const char *const printed[] = {
      "{ lambda a:c64[2]. let\n    b:c64[2] = constant[value=[(1.0,-0.0), (nan,-inf)]:c64[2]]\n    c:c64[2] = add a b\n  in (c, (0.5,1e-30):c64[]) }\n",
      "{ lambda . let\n    a:c128[3] = broadcast_in_dim[shape=(3,) broadcast_dimensions=()] (0.1,-2.5):c128[]\n  in (a,) }\n",
  };
  for (size_t i = 0; i < AX_COUNT(printed); i++) {
    ax_program *program;
    char *text;
    TEST_OK(ax_program_parse(printed[i], strlen(printed[i]), NULL, &program));
    TEST_OK(ax_program_print(program, &text));
    assert_string_equal(text, printed[i]);
    ax_string_free(text);
    ax_program_release(program);
  }
  static const struct {
    const char *text, *error; /* NULL: none */
  } literals[] = {
      {"3:c64[]", NULL},          {"[1, (2,3)]:c128[2]", NULL},      {"(1,2):f32[]", "a number"},
      {"(1,):c64[]", "a number"}, {"(1,2,3):c64[]", "')'"},          {"(true,0):c64[]", "is not a number of dtype f32"},
      {"(1:c64[]", "expected ','"},   {"[(1,2)]:c64[2]", "1 numbers are given"},
  };
  for (size_t i = 0; i < AX_COUNT(literals); i++) {
    char text[96];
    ax_program *program;
    snprintf(text, sizeof text, "{ lambda . let a:f32[0] = constant[value=[]:f32[0]] in (a, %s) }", literals[i].text);
    if (strchr(literals[i].text, '[') == literals[i].text)
      snprintf(text, sizeof text, "{ lambda . let a:c128[2] = constant[value=%s] in (a,) }", literals[i].text);
    ax_status status = ax_program_parse(text, strlen(text), NULL, &program);
    if (literals[i].error == NULL) TEST_OK(status);
    else TEST_FAILS(status, AX_PARSE_ERROR, literals[i].error);
    ax_program_release(program);
  }
}

static void check_element(ax_dtype dtype, uint64_t bits) {
  ax_text text = {0};
  uint64_t back = 0;
  ax_element_text(&text, dtype, &bits, 0);
  if (!ax_element_parse(text.data, dtype, &back, 0) || memcmp(&back, &bits, ax_dtype_bytes(dtype)) != 0)
    fail_msg("%s %llx is written %s and read back as %llx", ax_dtype_name(dtype), (unsigned long long)bits, text.data,
             (unsigned long long)back);
  ax_text_deinit(&text);
}

static void test_numbers(void **state) {
  (void)state;
  test_random random = {1};
  for (int dtype = AX_NO_DTYPE + 1; dtype < AX_DTYPE_COUNT; dtype++) {
    size_t bytes = ax_dtype_bytes((ax_dtype)dtype);
    if (ax_is_complex((ax_dtype)dtype)) continue; /* their parts are words of their own: test_complex_numbers */
    const uint64_t mask = UINT64_MAX >> (64 - ax_dtype_get((ax_dtype)dtype)->bits);
    for (uint64_t i = 0; i < 70000; i++)
      check_element((ax_dtype)dtype, (bytes <= 2 ? i : test_random_bits(&random)) & mask);
  }
}

static void check_spelling(ax_dtype dtype, double value, const char *expected) {
  ax_text text = {0};
  uint64_t element = 0;
  if (dtype == AX_F64) memcpy(&element, &value, 8);
  float narrow = (float)value;
  if (dtype == AX_F32) memcpy(&element, &narrow, 4);
  ax_element_text(&text, dtype, &element, 0);
  assert_string_equal(text.data, expected);
  ax_text_deinit(&text);
}

static void test_spellings(void **state) {
  (void)state;
  check_spelling(AX_F32, 0.1, "0.1");
  check_spelling(AX_F32, -0.0, "-0.0");
  check_spelling(AX_F32, 360, "360.0");
  check_spelling(AX_F32, 1e-4, "0.0001");
  check_spelling(AX_F32, 1e-5, "1e-05");
  check_spelling(AX_F32, 16777216, "16777216.0");
  check_spelling(AX_F32, (double)FLT_MAX, "3.4028235e+38");
  check_spelling(AX_F64, 1.0 / 3, "0.3333333333333333");
  check_spelling(AX_F64, 1e300, "1e+300");
  check_spelling(AX_F64, (double)INFINITY, "inf");
  check_spelling(AX_F64, (double)NAN, "nan");
}

/* --- Errors --- */

static const struct {
  const char *text, *message;
} bad[] = {
    {"", "t.axle:1:1: expected '{', got the end of the text"},
    {"   \n # only a comment\n", "t.axle:3:1: expected '{', got the end of the text"},
    {"{ lambda a:f32[]. let in (a) } }", "t.axle:1:32: expected the end of the text, got '}'"},
    {"{ lambda a:f32[]. let in (b) }",
     "t.axle:1:27: 'b' is not defined here\n  { lambda a:f32[]. let in (b) }\n"
     "                            ^"},
    {"{ lambda a:f32[] a:f32[]. let in (a) }", ":1:18: 'a' is defined twice"},
    {"{ lambda in:f32[]. let in (a) }", ":1:10: 'in' is a word of the language"},
    {"{ lambda a:f33[]. let in (a) }", ":1:12: unknown dtype \"f33\""},
    {"{ lambda a:f32[-1]. let in (a) }", ":1:16: a dimension is negative"},
    {"{ lambda a:f32[99999999999999999999]. let in (a) }", ":1:16: expected an integer, got '99999999999999999999'"},
    {"{ lambda a:f32[9999999999,9999999999]. let in (a) }", ":1:27: the array is too large"},
    {"{ lambda a:f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]. let in (a) }", ": more than 16 dimensions"},
    {"{ lambda a:f32[]{V:data}. let in (a) }", ":1:20: axis \"data\" is not bound; bound are none"},
    {"{ axes d=2? ; lambda a:f32[]{V:d}. let in (a) }", ": axis \"d\" is unchecked"},
    {"{ axes d=2 ; lambda a:f32[]{V:d,d}. let in (a) }", ": axis \"d\" is named twice"},
    {"{ axes d=2 d=3 ; lambda . let in () }", ":1:12: axis \"d\" is named twice"},
    {"{ axes d=0 ; lambda . let in () }", ": axis \"d\" needs a size of at least 1"},
    {"{ axes a=99999 b=99999 ; lambda . let in () }", ":1:16: more than 2^31 devices"},
    {"{ lambda a:f32[]. let b:f32[] = frob a in (b) }", ":1:33: there is no primitive \"frob\""},
    {"{ lambda a:f32[]. let b:f32[] = neg a a in (b) }", ":1:33: neg f32[] f32[]: takes 1 operands, got 2"},
    {"{ lambda a:f32[]. let b:f32[] c:f32[] = neg a in (b) }", ":1:41: neg gives 1 results, but 2 are named"},
    {"{ lambda a:f32[3].\n let b:f32[4] = neg a\n in (b) }",
     "t.axle:2:8: neg gives f32[3] here\n   let b:f32[4] = neg a\n"
     "         ^"},
    {"{ lambda a:f32[3] b:f32[4].\n let c:f32[4] = add a b in (c) }", ":2:17: add f32[3] f32[4]: operand shapes differ"},
    {"{ lambda a:f32[]. let b:f32[] = neg[y=1] a in (b) }", ":1:37: neg has no parameter \"y\""},
    {"{ lambda a:f32[]. let b:f32[] = integer_pow a in (b) }", ":1:45: integer_pow needs its parameter \"y\""},
    {"{ lambda a:f32[]. let b:f32[] = integer_pow[y=1 y=2] a in (b) }", ":1:49: \"y\" is given twice"},
    {"{ lambda a:f32[]. let b:f32[] = integer_pow[y=1.5] a in (b) }", ": expected an integer, got '1.5'"},
    {"{ lambda . let in (1e39:f32[]) }", ":1:20: \"1e39\" is not a number of dtype f32"},
    {"{ lambda . let in (256:u8[]) }", ":1:20: \"256\" is not a number of dtype u8"},
    {"{ lambda . let in (-1:u8[]) }", ": \"-1\" is not a number of dtype u8"},
    {"{ lambda . let in (1:f32[2]) }", ":1:20: only scalars are written as operands"},
    {"{ lambda . let a:f32[2] = constant[value=[1, 2, 3]:f32[2]] in (a) }", ": 3 numbers are given for f32[2]"},
    {"{ lambda . let a:f32[2,2] = constant[value=[1, 2, 3, 4]:f32[2,2]] in (a) }", ":1:45: expected '[', got '1'"},
    {"{ lambda . let a:f32[9] = constant[value=0:f32[9999999999]] in (a) }", ": too large to be a literal"},
    {"{ lambda . let in () } \x01", ":1:24: the byte 0x01 has no meaning here"},
    {"{ lambda . let in () } $", ":1:24: '$' has no meaning here"},
    {"{ axes d=2 ; lambda a:f32[2]{V:d}. let\n f:future<f32[2]> = start[body={ lambda a:f32[2]{V:d}. let b:f32[2] = psum[axes=(d,)] a in (b,) }] a\n in (a,) }",
     "the future<f32[2]> of psum, start in line 2, is never done"},
    {"{ axes d=2 ; lambda a:f32[2]{V:d}. let\n f:future<f32[2]> = start[body={ lambda a:f32[2]{V:d}. let b:f32[2] = psum[axes=(d,)] a in (b,) }] a\n in (f,) }",
     "the future<f32[2]> of psum, start in line 2, is a result of its program"},
    {"{ axes d=2 ; lambda a:f32[2]{V:d}. let\n f:future<f32[2]> = start[body={ lambda a:f32[2]{V:d}. let b:f32[2] = psum[axes=(d,)] a in (b,) }] a\n b:f32[2] = done f c:f32[2] = done f in (b, c) }",
     "the future<f32[2]> of psum, start in line 2, is done twice"},
    {"{ axes d=2 ; lambda a:f32[2]{V:d}. let\n f:future<f32[2]> = start[body={ lambda a:f32[2]{V:d}. let b:f32[2] = psum[axes=(d,)] a in (b,) }] a\n b:f32[2] = exp f in (b,) }",
     "exp future<f32[2]>: operand 0 is future<f32[2]>, which done must end first"},
    {"{ lambda a:f32[]. let b:f32[] = done a in (b,) }", "done f32[]: operand 0 is f32[], no future"},
    {"{ lambda a:future<f32[]>. let in () }", "input 0: future<f32[]> cannot come from outside"},
    {"{ lambda . let in (1.0:future<f32[]>,) }", "a literal is an array"},
    {"{ lambda a:future<f32[]. let in () }", "expected '>'"},
    {"{ axes d=2 ; lambda a:f32[]. let\n b:f32[] = psum[axes=(d {0,4294967296})] a in (b,) }",
     "t.axle:2:28: member 4294967296 of a group: there is none"},
    {"{ axes d=2 ; lambda a:f32[]. let f:future<f32[]> = start[body={ lambda a:f32[]. let b:f32[] = scan[length=1 reverse=false num_consts=0 num_carry=1 body={ lambda a:f32[]. let v:f32[]{V:d} = pvary[axes=(d,)] a s:f32[] = psum[axes=(d,)] v in (s,) }] a in (b,) }] a b:f32[] = done f in (b,) }",
     "start f32[]: the body holds a scan with collectives in it"},
    {"{ lambda a:f32[]. let f:future<f32[]> = start[body={ lambda a:f32[2]. let b:f32[] = reduce_sum[axes=(0,)] a in (b,) }] a b:f32[] = done f in (b,) }",
     "operand 0 is f32[], but the body takes f32[2]"},
};

static void test_errors(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(bad); i++) {
    ax_program *program;
    ax_status status = parse_bytes(bad[i].text, strlen(bad[i].text), &program);
    assert_null(program);
    if (status != AX_PARSE_ERROR || strstr(ax_message(), bad[i].message) == NULL)
      fail_msg("%s\ngave %s: %s\nnot %s", bad[i].text, ax_status_name(status), ax_message(), bad[i].message);
  }
}

static void test_nesting_limit(void **state) {
  (void)state;
  ax_text text = {0};
  ax_program *program;
  for (int i = 0; i < 10000; i++) ax_text_add(&text, "{ lambda a:s32[]. let b:s32[] = cond[branches=(");
  assert_int_equal(parse_bytes(text.data, text.length, &program), AX_PARSE_ERROR);
  assert_non_null(strstr(ax_message(), "no deeper nesting"));
  ax_text_deinit(&text);
}

/* The line of an equation is kept. */
static void test_lines(void **state) {
  (void)state;
  ax_program *program =
      parse_ok("{ lambda a:f32[]. let\n\n  b:f32[] = neg a\n  c:f32[]\n  = exp 1.0:f32[]\n in (b, c) }");
  assert_int_equal(program->eqns[0].line, 3);
  assert_int_equal(program->eqns[1].line, 5); /* the constant */
  assert_int_equal(program->eqns[2].line, 5);
  ax_program_release(program);
}

static void test_named(void **state) {
  (void)state;
  static const char text[] = "{ lambda x:f32[] y:f32[]. let loss:f32[] = add x y in (loss, 1.0:f32[], x) }";
  ax_program_names names;
  ax_program *program;
  assert_int_equal(ax_program_parse_named(text, strlen(text), "t", NULL, &names, &program), AX_OK);
  assert_string_equal(names.in[0], "x");
  assert_string_equal(names.in[1], "y");
  assert_string_equal(names.out[0], "loss");
  assert_string_equal(names.out[1], "");
  assert_string_equal(names.out[2], "x");
  ax_program_names_deinit(&names);
  ax_program_release(program);
}

/* --- The verifier --- */

/* However long a name is, a message says all else. */
static void long_names(void **state) {
  (void)state;
  static const struct {
    const char *before, *after, *message;
  } rows[] = {
      {"{ axes d=2 ; lambda a:f32[]{V:", "}. let in (a) }", "is not bound; bound are d (2)"},
      {"{ lambda a:", "[]. let in (a) }", "unknown dtype \"nnn"},
      {"{ lambda a:f32[]. let b:f32[] = neg[", "=1] a in (b) }", "neg has no parameter \"nnn"},
      {"{ lambda a:f32[]. let in (", ") }", "' is not defined here"},
      {"{ lambda a:f32[]. let b:f32[] = ", " a in (b) }", "there is no primitive \"nnn"},
  };
  enum { most = 200000 };
  char *text = malloc(most + 200), *name = malloc(most + 1);
  memset(name, 'n', most);
  name[most] = '\0';
  for (size_t i = 0; i < AX_COUNT(rows); i++) {
    ax_program *program;
    int bytes = snprintf(text, most + 200, "%s%s%s", rows[i].before, name, rows[i].after);
    TEST_FAILS(ax_program_parse(text, (size_t)bytes, "t", &program), AX_PARSE_ERROR, rows[i].message);
    assert_true(strlen(ax_message()) < 600);
  }
  free(text), free(name);
}

static void check_broken(const ax_program *program, const char *message) {
  assert_int_equal(ax_program_verify(program), AX_INTERNAL);
  if (strstr(ax_message(), message) == NULL) fail_msg("%s\nnot %s", ax_message(), message);
}

static void test_verify(void **state) {
  (void)state;
  ax_program *program = parse_ok("{ lambda a:f32[3]. let b:f32[3] = neg a c:f32[3] = add a b in (c) }");
  ax_type *types = (ax_type *)program->types;
  uint32_t *operands = (uint32_t *)program->eqns[0].in, *outs = (uint32_t *)program->outs;
  types[1].dims[0] = 4;
  check_broken(program, "verify: equation 0 (line 1), neg: result 0 is f32[3] by inference");
  types[1].dims[0] = 3;
  operands[0] = 1;
  check_broken(program, "operand 0 is used before it is defined");
  operands[0] = 0;
  outs[0] = 3;
  check_broken(program, "output 0 is not a value");
  outs[0] = 2;
  types[0].spread.varying = 1;
  check_broken(program, "input 0");
  types[0].spread.varying = 0;
  types[0].dims[0] = -1;
  check_broken(program, "negative dimension");
  types[0].dims[0] = 3;
  assert_int_equal(ax_program_verify(program), AX_OK);
  ax_program_release(program);
  program = parse_ok("{ axes d=2 ; lambda a:f32[]{V:d}. let\n"
                     "f:future<f32[]> = start[body={ lambda a:f32[]{V:d}. let b:f32[] = psum[axes=(d,)] a in (b,) }] a\n"
                     "b:f32[] = done f in (b,) }");
  ((uint32_t *)program->outs)[0] = 1;
  check_broken(program, "verify: the future<f32[]> of psum, start in line 2, is a result of its program");
  ((uint32_t *)program->outs)[0] = 2;
  ((ax_type *)program->types)[0].form = AX_FUTURE;
  check_broken(program, "verify: equation 0 (line 2), start: ");
  ax_program_release(program);
}

/* --- No memory --- */

static ax_status whole_way(void *context) {
  const char *text = context;
  ax_program *program;
  char *printed;
  AX_TRY(ax_program_parse(text, strlen(text), "t", &program));
  ax_status status = ax_program_verify(program);
  if (status == AX_OK) status = ax_program_print(program, &printed);
  if (status == AX_OK) ax_string_free(printed);
  ax_program_release(program);
  return status;
}

static void test_out_of_memory(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(canonical); i++)
    assert_true(test_each_allocation(whole_way, (void *)canonical[i]) > 2);
}

/* --- Any bytes --- */

static void parse_anything(const char *text, size_t bytes) {
  ax_program *program;
  ax_status status = parse_bytes(text, bytes, &program);
  assert_true((status == AX_OK) == (program != NULL));
  if (status == AX_OK) {
    if (ax_program_verify(program) != AX_OK) fail_msg("%s\n%.*s", ax_message(), (int)bytes, text);
    check_round_trip(program);
    ax_program_release(program);
  } else if (status != AX_PARSE_ERROR) {
    assert_int_equal(status, AX_OUT_OF_MEMORY);
  }
}

static void test_cuts(void **state) {
  (void)state;
  for (size_t i = 0; i < AX_COUNT(canonical); i++)
    for (size_t cut = 0; cut <= strlen(canonical[i]); cut++) {
      parse_anything(canonical[i], cut);
      parse_anything(canonical[i] + cut, strlen(canonical[i]) - cut);
    }
}

/* One change: a byte replaced, removed or doubled; a piece copied elsewhere, from this text or another. */
static size_t mutate(char *text, size_t length, size_t room, test_random *random) {
  static const char alphabet[] = "abc{}[]():;,.=?+-0123456789 \n#VRU_PEfinluo\x80";
  size_t at = length > 0 ? test_random_bits(random) % length : 0;
  const char *from = canonical[test_random_bits(random) % AX_COUNT(canonical)];
  size_t piece = test_random_bits(random) % 24, start = test_random_bits(random) % strlen(from);
  if (piece > strlen(from) - start) piece = strlen(from) - start;
  switch (test_random_bits(random) % 4) {
    case 0:
      if (length > 0) text[at] = alphabet[test_random_bits(random) % (sizeof alphabet - 1)];
      return length;
    case 1:
      if (piece > length - at) piece = length - at;
      memmove(text + at, text + at + piece, length - at - piece);
      return length - piece;
    case 2:
      if (length + piece > room) return length;
      memmove(text + at + piece, text + at, length - at);
      memcpy(text + at, from + start, piece);
      return length + piece;
    default:
      if (piece > length - at) piece = length - at;
      memcpy(text + at, from + start, piece);
      return length;
  }
}

static void test_mutations(void **state) {
  (void)state;
  test_random random = {20240607};
  static char text[4096];
  for (int i = 0; i < 20000; i++) {
    const char *from = canonical[test_random_bits(&random) % AX_COUNT(canonical)];
    size_t length = strlen(from);
    memcpy(text, from, length);
    for (uint64_t changes = test_random_bits(&random) % 3 + 1; changes > 0; changes--)
      length = mutate(text, length, sizeof text, &random);
    parse_anything(text, length);
  }
}

static void test_random_bytes(void **state) {
  (void)state;
  test_random random = {7};
  char text[64];
  for (int i = 0; i < 2000; i++) {
    size_t length = test_random_bits(&random) % sizeof text;
    for (size_t k = 0; k < length; k++) text[k] = (char)test_random_bits(&random);
    parse_anything(text, length);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(long_names),         cmocka_unit_test(test_canonical), cmocka_unit_test(test_free_form),
      cmocka_unit_test(test_traced),        cmocka_unit_test(test_names),     cmocka_unit_test(test_numbers), cmocka_unit_test(test_complex_numbers),
      cmocka_unit_test(test_spellings),     cmocka_unit_test(test_errors),    cmocka_unit_test(test_nesting_limit),
      cmocka_unit_test(test_lines),         cmocka_unit_test(test_named),     cmocka_unit_test(test_verify),
      cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_cuts),      cmocka_unit_test(test_mutations),
      cmocka_unit_test(test_random_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
