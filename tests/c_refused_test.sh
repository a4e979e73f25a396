#!/bin/sh
# Operands that are neither values nor numbers of C, host arrays of pointers, lists without an end, and owned structs without a release
# function do not compile.
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
for operand in '"2"' '&x' p 'made' '(void *)0' '(struct { int a; }){1}'; do
  compiles "$operand" && { echo "ax_add(x, $operand) compiles"; failed=1; }
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
for line in '*host = AX_HOST(p)' '*host = AX_HOST(text)' 'ax_grad(((ax_fn){0}), AX_FIRST(1), 1, in, 1, out)' 'ax_grad(((ax_fn){0}), AX_FIRST(1), in)'; do
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
