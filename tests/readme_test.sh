#!/bin/sh
# The README's program has the lines of examples/hello.c, in order, and the block below it is what examples/hello prints.
set -u
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md |
  awk 'NR == FNR { have[++count] = $0; next }
       { while (at < count && have[++at] != $0) continue
         if (have[at] != $0) { print "README.md: this line is not in examples/hello.c, or not here: " $0; exit 1 } }' examples/hello.c - || exit 1
shown=$(awk '/^```c$/ { program = 1; next } /^```$/ && program { if (++fences == 3) exit; next } fences == 2' README.md)
printed=$("$AXLE_BUILD/examples/hello" | sed 's/ *$//')
[ -n "$shown" ] && [ "$shown" = "$printed" ] && exit 0
echo "README.md shows:"
echo "$shown"
echo "examples/hello prints:"
echo "$printed"
exit 1
