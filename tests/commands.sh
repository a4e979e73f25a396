#!/bin/sh
# What the Makefile starts can be started: each command of cmake/ that it names is a file that may be executed.
#   sh tests/commands.sh Makefile
set -u

found=0 failed=0
for command in $(sed -n 's/^\t@*\(.*\)/\1/p' "$1" | tr ' ;&|' '\n' | grep '^cmake/' | grep -v '\.txt$' | sort -u); do
  found=$((found + 1))
  [ -f "$command" ] && [ -x "$command" ] || { echo "$command cannot be executed"; failed=1; }
done
[ "$found" -ge 6 ] || { echo "only $found commands were found"; failed=1; }
exit "$failed"
