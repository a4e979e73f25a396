#!/bin/sh
# Operands that are neither values nor numbers of C, host arrays of pointers, heads of blocks without addresses, lists without an end
# or a count, and owned structs without a release function do not compile; the first error is a sentence that says what to do, at
# the line of the program. Then: what the macros know of the lengths of lists, under each compiler that there is, with optimisation
# and without.
set -u

failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
compiles() {
  printf '#include <axle/axle.h>\nenum colour { RED, GREEN };\nax_value made(ax_value x, int *p) { (void)p; return ax_add(x, %s); }\n' "$1" >"$folder/program.c"
  ${CC:-cc} -std=gnu11 -Iinclude -fsyntax-only "$folder/program.c" 2>"$folder/errors"
}
for operand in x 2 2u '2ll' 2.5f 2.5 "'c'" '(_Bool)1' '(short)3' '(unsigned char)3' GREEN '(enum colour)1' 'sizeof x'; do
  compiles "$operand" || { echo "ax_add(x, $operand) does not compile:"; cat "$folder/errors"; failed=1; }
done
# says SENTENCE LINE WHAT: the first error of what did not compile, and how long all of them are.
says() {
  grep -m 1 -E 'error:|macro .* requires' "$folder/errors" | grep -q "program.c:$2:.*$1" && [ "$(wc -l <"$folder/errors")" -le "${3:-20}" ] && return
  echo "not \"$1\" at line $2, or too long:"
  cat "$folder/errors"
  failed=1
}
for operand in '"2"' '&x' p 'made' '(void *)0' '(struct { int a; }){1}'; do
  compiles "$operand" && { echo "ax_add(x, $operand) compiles"; failed=1; }
  says 'an operand is an ax_value or a number of C' 3
done

# A line in a function with an array of C, a pointer to what is not known, and the operands of a body.
line_compiles() {
  printf '#include <axle/axle.h>\nvoid made(const ax_value *in, ax_value *out, float *p, ax_host_array *host, ax_runtime *r, ax_array **a);\nvoid made(const ax_value *in, ax_value *out, float *p, ax_host_array *host, ax_runtime *r, ax_array **a) {\n  float x[4] = {0};\n  char text[4] = {0};\n  (void)in, (void)out, (void)p, (void)host, (void)r, (void)a, (void)x, (void)text;\n  %s;\n}\nvoid body(const ax_value *in, ax_value *out, void *context);\n' "$1" >"$folder/program.c"
  ${CC:-cc} -std=gnu11 -Iinclude -fsyntax-only "$folder/program.c" 2>"$folder/errors"
}
for line in '*host = AX_HOST(x)' '*host = AX_HOST(x[1])' '*host = AX_HOST_AT(p, 2, 2)' 'ax_grad(((ax_fn){0}), AX_FIRST(1), in, out)' \
  'ax_grad(((ax_fn){0}), AX_FIRST(1), AX_VALUES(in[0]), out)' 'ax_grad(((ax_fn){0}), AX_FIRST(1), AX_LIST(1, in), AX_LIST(1, out))'; do
  line_compiles "$line" || { echo "$line does not compile:"; cat "$folder/errors"; failed=1; }
done
for line in '*host = AX_HOST(p)' '*host = AX_HOST(text)' '*host = AX_HOST(p + 1)' '*host = AX_HOST(*a)' '*host = AX_HOST(struct_of_c)'; do
  line_compiles "struct { float x, y; } struct_of_c = {0, 0}; (void)struct_of_c; $line" && { echo "$line compiles"; failed=1; }
  says 'AX_HOST(x) takes an array of numbers, or a number; for what a pointer points to there is AX_HOST_AT(pointer, dimensions)' 7 10
done
line_compiles '*host = AX_HOST_AT((void *)p, 4)' && { echo "AX_HOST_AT of void compiles"; failed=1; }
says 'AX_HOST_AT takes a pointer to numbers of a dtype' 7
line_compiles 'AX_OWNED(ax_mesh, mesh)' && { echo "AX_OWNED(ax_mesh, mesh) compiles"; failed=1; }
says 'AX_OWNED_which_takes_objects_that_are_released' 7

# Heads of blocks: conditions and variables of C, values without their address.
for head in 'AX_LOOP (i, 0, 3, v) {}' 'AX_LOOP (i, 0, 3, &k) {}' 'AX_LOOP (i, 0, 3, &v, &v, &v, &v, &v, &v, &v, k) {}' \
  'AX_SCAN (row, v, v) {}' 'AX_IF (v, v) {}' 'AX_WHILE (k < 10, &k) {}' 'AX_WHILE (v, &k) {}'; do
  line_compiles "int k = 0; ax_value v = in[0]; (void)k, (void)v; $head" && { echo "$head compiles"; failed=1; }
  says 'the head of a block ends with the addresses of the ax_value variables that it sets: &x, &y' 7 30
done
for head in 'AX_WHILE (k < 10, &v) {}' 'AX_IF (k) {}' 'AX_IF (k == 1, &v) {} AX_ELSE {}'; do
  line_compiles "int k = 0; ax_value v = in[0]; (void)k, (void)v; $head" && { echo "$head compiles"; failed=1; }
  says 'AX_WHILE and AX_IF take a condition of the trace, as ax_lt(x, 10); for one of C there are while and if' 7
done
for head in 'AX_LOOP (i, 0, 3) {}' 'AX_LOOP (i, 0, 3, &v, &v, &v, &v, &v, &v, &v, &v, &v, &v) {}' 'AX_IF (v, &v) {}' 'AX_WHILE (v, &out[0], at) {}'; do
  line_compiles "ax_value v = in[0], *const at = &v; (void)v, (void)at; $head" || { echo "$head does not compile:"; cat "$folder/errors"; failed=1; }
done

# Warnings that remain: a status that is not looked at, and, by gcc, an owned object that is returned.
for line in 'ax_array_wait(*a)' 'ax_runtime_create(NULL, &r)' 'ax_trace(((ax_fn){0}), NULL, NULL)'; do
  printf '#include <axle/axle.h>\nvoid made(ax_array **a, ax_runtime *r);\nvoid made(ax_array **a, ax_runtime *r) {\n  (void)a, (void)r;\n  %s;\n}\n' "$line" >"$folder/program.c"
  ${CC:-cc} -std=gnu11 -Wall -Iinclude -c -o "$folder/program.o" "$folder/program.c" 2>"$folder/errors"
  grep -q 'unused-result' "$folder/errors" || { echo "$line: no warning"; failed=1; }
done
if ! ${CC:-cc} --version | grep -q clang && [ "$(${CC:-cc} -dumpversion | cut -d. -f1)" -ge 12 ]; then
  printf '#include <axle/axle.h>\nvoid fill(ax_array **out);\nax_array *made(void);\nax_array *made(void) {\n  AX_OWNED(ax_array, y);\n  fill(&y);\n  return %s;\n}\n' y >"$folder/program.c"
  ${CC:-cc} -std=gnu11 -O2 -Wall -Iinclude -c -o "$folder/program.o" "$folder/program.c" 2>"$folder/errors"
  grep -q 'program.c:.*use-after-free' "$folder/errors" || { echo "an owned object is returned: no warning"; cat "$folder/errors"; failed=1; }
  sed -i 's/return y/return ax_array_retain(y)/' "$folder/program.c"
  ${CC:-cc} -std=gnu11 -O2 -Wall -Werror -Iinclude -c -o "$folder/program.o" "$folder/program.c" || failed=1
fi

for line in 'ax_grad(((ax_fn){0}), AX_FIRST(1), 1, in, 1, out)' 'ax_grad(((ax_fn){0}), AX_FIRST(1), in)'; do
  line_compiles "$line" && { echo "$line compiles"; failed=1; }
done

# Structs that end by a function of their own.
struct_compiles() {
  printf '#include <axle/axle.h>\ntypedef struct table { ax_host_array x, y; } table;\ntypedef struct bare { int a; } bare;\nvoid table_release(table *t);\n%s\nvoid made(void);\nvoid made(void) { %s; }\n' "$1" "$2" >"$folder/program.c"
  ${CC:-cc} -std=gnu11 -Iinclude -fsyntax-only "$folder/program.c" 2>"$folder/errors"
}
struct_compiles '' 'AX_OWNED_STRUCT(table, a, b); a.x = b.y' || { echo "AX_OWNED_STRUCT(table, a, b) does not compile:"; cat "$folder/errors"; failed=1; }
struct_compiles '' 'AX_OWNED_STRUCT(bare, a)' && { echo "a struct without a release function compiles"; failed=1; }
struct_compiles 'void bare_release(bare b);' 'AX_OWNED_STRUCT(bare, a)' && { echo "a release function of a copy compiles"; failed=1; }
struct_compiles 'void bare_release(table *t);' 'AX_OWNED_STRUCT(bare, a)' && { echo "a release function of another type compiles"; failed=1; }
struct_compiles '' 'AX_OWNED_STRUCT(ax_tree, a)' && { echo "AX_OWNED_STRUCT of an object of the library compiles"; failed=1; }

limit= # clang gives up after 20 errors
${CC:-cc} -ferror-limit=0 -x c -fsyntax-only /dev/null 2>/dev/null && limit=-ferror-limit=0
# Each line of $1 in a function of its own, each with an error of its own; $2 are further flags.
none_compiles() {
  {
    echo '#include <axle/axle.h>'
    printf '%s\n' "$1" | awk '{ printf "void f%d(ax_value x, ax_value *v, ax_value *out, int64_t *d, ax_type *t, ax_callback *c, ax_runtime *r, ax_array **a, ax_scratch *s, ax_core_mesh *m, ax_fn *fn, ax_kernel *k, ax_part *p, ax_sharding *h, const ax_sharding **hs, ax_host_array *hosts, const char **n, ax_treedef **defs, ax_schedule *all, double *scales, ax_value (*g)(ax_value), ax_value (*gg)(ax_value, ax_value)) { %s; }\n", NR, $0 }'
  } >"$folder/program.c"
  # shellcheck disable=SC2086 # a list of flags
  ${CC:-cc} -std=gnu11 $limit -Iinclude $2 -fsyntax-only "$folder/program.c" 2>"$folder/errors"
  sed -n 's/.*program\.c:\([0-9]*\):[0-9]*: error.*/\1/p' "$folder/errors" | sort -u >"$folder/refused"
  printf '%s\n' "$1" | awk '{ print NR + 1 }' | sort -u | comm -23 - "$folder/refused" | while read -r at; do
    echo "this compiles $2: $(printf '%s\n' "$1" | sed -n "$((at - 1))p")"
  done >"$folder/compiled"
  [ -s "$folder/compiled" ] && { cat "$folder/compiled"; failed=1; }
  return 0
}
# Counts and lists as two arguments, and lists that nothing says the length of.
lists='ax_full(AX_F32, 2, d, 0)
ax_full(AX_F32, d, 0)
ax_full_i64(AX_S32, 2, d, 0)
ax_iota(AX_S32, 2, d, 0)
ax_reshape(x, 2, 2)
ax_reshape(x, 2, d)
ax_reshape(x, d)
ax_broadcast_to(x, 2, d)
ax_squeeze(x, 1, d)
ax_rev(x, 1, d)
ax_rev(x, d)
ax_concatenate(2, v, 0)
ax_concatenate(v, 0)
ax_stack(2, v, 0)
ax_split(x, 2, d, 0, out)
ax_split(x, d, 0, out)
ax_sort_together(2, v, 0, 1, out)
ax_reduce_sum(x, 1, d, false)
ax_reduce_sum(x, d, false)
ax_reduce_mean(x, 1, d, false)
ax_reduce_max(x, 1, d, false)
ax_reduce_min(x, 1, d, false)
ax_reduce_or(x, 1, d, false)
ax_reduce_and(x, 1, d, false)
ax_logsumexp(x, 1, d, false)
ax_einsum("i,i", 2, v)
ax_pure_callback(c, false, 1, v, 1, t, out)
ax_pure_callback(c, false, v, t, out)
ax_io_callback(c, false, 1, v, 1, t, out)
ax_debug_print("{}", false, 1, v)
ax_debug_print("{}", false, v)
ax_pshuffle(x, "d", 2, d)
(void)ax_array_from_parts(r, NULL, "", t, 1, p, a)
ax_array_type(AX_F32, 2, d)
ax_array_type(AX_F32, d)
ax_ref_type(AX_SPACE_VMEM, AX_F32, 2, d)
ax_semaphore_type(1, d)
ax_dma_semaphore_type(1, d)
ax_barrier_type(1, d)
ax_ref_transpose(x, 2, d)
ax_ref_reshape(x, 2, d)
ax_ref_reshape(x, d)
ax_run_scoped(1, s, NULL, *fn, out)
ax_kernel_call(k, *fn, 1, v, out)
ax_mpmd_map(1, m, fn, NULL, 1, v, 1, t, out)
ax_mpmd_map(m, fn, NULL, v, AX_LIST(1, t), out)
(void)ax_npz_write("", 1, n, hosts)
(void)ax_npz_write("", n, hosts)
(void)ax_device_put_many(r, 1, hs, hosts, a)
(void)ax_array_reshard_many(1, a, hs, a)
(void)ax_array_from_device_parts(r, h, t, 1, p, a)
(void)ax_array_from_device_arrays(r, h, t, 1, a, a)
(void)ax_treedef_create(1, n, t, NULL, defs)
(void)ax_treedef_create(n, t, NULL, defs)
(void)ax_treedef_join("", 1, defs, defs)
ax_tree_map(g, 1, v, out)
ax_tree_map(g, v, out)
ax_tree_zip(gg, 1, v, v, out)
ax_tree_scale(x, 1, v, out)
ax_tree_reduce(gg, 1, v)
ax_tree_ravel(1, v)
ax_tree_ravel(v)
ax_tree_unravel(x, 1, v, out)
ax_global_norm(1, v)
ax_piecewise_constant_schedule(1, 1, d, scales)
ax_piecewise_constant_schedule(1, d, scales)
ax_join_schedules(1, all, d)
ax_join_schedules(all, d)'
none_compiles "$lists" ''
none_compiles "$lists" -DAXLE_NO_LINES
line_compiles 'ax_reshape(in[0], 2, 2)' && failed=1
grep -q 'macro "ax_reshape" passed 3 arguments, but takes just 2\|too many arguments provided to function-like macro' "$folder/errors" ||
  { echo "ax_reshape(x, 2, 2) has another error:"; cat "$folder/errors"; failed=1; }

cat >"$folder/program.c" <<'END'
#include <axle/axle.h>
#include <stdio.h>
#define UNKNOWN SIZE_MAX
static int failed;
static void expect(size_t wanted, size_t found, const char *what) {
  if (wanted == found) return;
  printf("%s: %zu, not %zu\n", what, found, wanted);
  failed = 1;
}
static size_t room(uint32_t count, const void *list) {
  (void)list;
  return count == AX_ANY_ROOM ? UNKNOWN : count & AX_ROOM(0) ? count ^ AX_ROOM(0) : 100 + count;
}
static size_t bytes(ax_dtype element, const void *data, size_t count) {
  (void)data;
  return element == AX_NO_DTYPE ? 0 : count;
}
#define ROOM(wanted, list) expect(wanted, room(AX_COUNTED(ax_value, list)), #list)
#define BYTES(wanted, data) expect(wanted, bytes(AX_MEMORY(data)), #data)
#ifdef __clang__
#pragma clang optimize off
#else
__attribute__((noipa))
#endif
static const ax_value *given(const ax_value *list) { return list; }
int main(int count, char **arguments) { /* three arguments, with the program's name */
  (void)arguments;
  struct { ax_value three[3], one; } members = {0};
  ax_value fixed[3] = {{0}}, measured[count], one = {0};
  float rows[2][4] = {{0}}, found[count];
  measured[0] = fixed[0], found[0] = rows[0][0];
  ROOM(3, fixed);
  ROOM(3, measured);
  ROOM(3, members.three);
  ROOM(1, &members.one);
  ROOM(1, &one);
  ROOM(2, &fixed[1]);
  ROOM(UNKNOWN, NULL);
  ROOM(UNKNOWN, given(fixed));
  ROOM(102, AX_VALUES(one, one));
  ROOM(100, AX_VALUES());
  ROOM(105, AX_LIST(5, given(fixed)));
  BYTES(32, rows);
  BYTES(32, rows[0]);
  BYTES(12, found);
  BYTES(4, &rows[1][3]);
  expect(7, AX_WITHIN(found, 7), "7 bytes of 12");
  expect(12, AX_WITHIN(found, 13), "13 bytes of 12");
  return failed;
}
END
for cc in "${CC:-cc}" clang; do
  command -v "$cc" >/dev/null || continue
  for flags in -O0 -O2 '-O0 -DAXLE_NO_LINES'; do
    # shellcheck disable=SC2086 # a list of flags
    { "$cc" -std=c17 -Wall -Wextra -Wpedantic -Werror -Iinclude $flags "$folder/program.c" -o "$folder/program" && "$folder/program" a b; } ||
      { echo "lists are not measured: $cc $flags"; failed=1; }
  done
done
exit $failed
