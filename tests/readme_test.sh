#!/bin/sh
# The README shows what examples/hello prints, and its program is that one's lines, in order.
set -u
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md |
  awk 'NR == FNR { have[++count] = $0; next }
       { while (at < count && have[++at] != $0) continue
         if (have[at] != $0) { print "README.md: this line is not in examples/hello.c, or not here: " $0; exit 1 } }' examples/hello.c - || exit 1
shown=$(awk '/^```$/ && inside { exit } inside { print } /^```$/ { getline; if (/^\{ lambda/) { inside = 1; print } }' README.md)
printed=$("$AXLE_BUILD/examples/hello" | sed 's/ *$//')
[ "$shown" = "$printed" ] && exit 0
echo "README.md shows:"
echo "$shown"
echo "examples/hello prints:"
echo "$printed"
exit 1
