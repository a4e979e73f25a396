#!/bin/sh
# The README shows what examples/hello prints.
set -u
shown=$(awk '/^```$/ && inside { exit } inside { print } /^```$/ { getline; if (/^\{ lambda/) { inside = 1; print } }' README.md)
printed=$("$AXLE_BUILD/examples/hello" | sed 's/ *$//')
[ "$shown" = "$printed" ] && exit 0
echo "README.md shows:"
echo "$shown"
echo "examples/hello prints:"
echo "$printed"
exit 1
