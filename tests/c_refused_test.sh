#!/bin/sh
# Operands that are neither values nor numbers of C, host arrays of pointers, heads of blocks without addresses, lists without an end
# and owned structs without a release function do not compile; the first error is a sentence that says what to do, at the line of
# the program.
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
exit $failed
