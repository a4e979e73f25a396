#!/bin/sh
# What does not compile in C++, and that the compiler says why: the messages at the head of tests/cxx_refused.cc.
#   AXLE_CXX="g++ clang++" AXLE_INCLUDE=-Ibuild/generated/include sh tests/cxx_refused_test.sh
set -u

said=$(mktemp)
trap 'rm -f "$said"' EXIT
failed=0
for compiler in ${AXLE_CXX:-c++}; do
  # shellcheck disable=SC2086 # a list of flags
  "$compiler" -std=c++17 -Iinclude ${AXLE_INCLUDE:-} -fsyntax-only tests/cxx_refused.cc 2>"$said" && { echo "$compiler takes it"; failed=1; }
  while read -r times wanted; do
    found=$(grep -F "$wanted" "$said" | grep -c 'error: static')
    [ "$found" -eq "$times" ] || { echo "$compiler says $found times, not $times: $wanted"; failed=1; }
  done <<END
$(sed -n 's,^//   \([0-9]\),\1,p' tests/cxx_refused.cc)
END
done
[ $failed = 0 ] || head -60 "$said"
exit $failed
