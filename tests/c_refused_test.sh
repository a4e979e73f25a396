#!/bin/sh
# Operands that are neither values nor numbers of C do not compile.
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
exit $failed
