#!/bin/sh
# Counts, by room, the functions that headers of ROOT/src declare, and how many of them some *_test.c names.
#   tests/named.sh ROOT           the counts
#   tests/named.sh ROOT ROOM      the functions of that room that no test names
#   tests/named.sh ROOT PERCENT   fails where fewer than so many of all are named
set -eu

cd "${1:?which tree}"
{
  find src -name '*.h' ! -name '*_test.h' | sort | xargs awk '
    /^[A-Za-z].*[ *]ax_[a-z0-9_]+\(/ && !/^typedef/ {
      match($0, /[ *]ax_[a-z0-9_]+\(/)
      room = FILENAME; sub(/^src\//, "", room); sub(/\/[^\/]*$/, "", room)
      print "declared", room, substr($0, RSTART + 1, RLENGTH - 2)
    }'
  find src tests -name '*_test.c' | xargs grep -oh 'ax_[a-z0-9_]*' | sort -u | sed 's/^/named - /'
} | awk -v asked="${2:-}" '
  $1 == "declared" { room[$3] = $2 }
  $1 == "named" { tested[$3] = 1 }
  END {
    for (name in room) {
      if (room[name] == asked && !(name in tested)) print name | "sort"
      declared[room[name]]++; all++
      if (name in tested) { named[room[name]]++; all_named++ }
    }
    if (asked in declared) exit
    for (r in declared) printf "%4d of %4d functions are named in a test  %s\n", named[r], declared[r], r | "sort -k 9"
    close("sort -k 9")
    printf "%4d of %4d functions are named in a test, %.1f%%\n", all_named, all, 100 * all_named / all
    if (asked !~ /^[0-9]+$/ || 100 * all_named >= asked * all) exit
    print "named: fewer than " asked "%: a new function wants a test that names it"
    exit 1
  }'
