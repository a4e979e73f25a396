#!/bin/sh
# Every public function of C is there in C++: made by cmake/cxx.awk, called by a header of axle/cxx that is written by hand, or named by
# cmake/cxx.awk among those that have no place there. And functions that are new get theirs: tests/cxx_forms has one of each form.
#   AXLE_CXX="g++ clang++" sh tests/cxx_functions_test.sh
set -u

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
wrong() {
  echo "$*"
  failed=1
}

sh cmake/cxx . "$work/plain/axle/cxx/functions.hpp" || wrong "cmake/cxx fails"
sed -e ':join' -e '/\\$/{N; s/\\\n//; t join' -e '}' -e 's,//.*,,' -e '/^static inline/d' -e '/^#define/d' -e '/^ /d' include/axle/*.h |
  grep -o '\bax_[a-z0-9_]*(' | tr -d '(' | sort -u >"$work/declared"
cat include/axle/cxx/*.hpp "$work/plain/axle/cxx/functions.hpp" | sed -e 's,/\*.*\*/,,g' -e '/\/\*/,/\*\//d' |
  grep -o '\bax_[a-z0-9_]*' | sort -u >"$work/reached"
awk -v listed=1 -f cmake/cxx.awk include/axle/cxx/*.hpp | sort >"$work/passed_over"
[ "$(wc -l <"$work/declared")" -gt 400 ] || wrong "the headers are said to declare $(wc -l <"$work/declared") functions"
for name in $(cat "$work/reached" "$work/passed_over" | sort -u | comm -23 "$work/declared" -); do
  wrong "no way to $name from C++: write it by hand in include/axle/cxx, or say in cmake/cxx.awk why not"
done
for name in $(comm -13 "$work/declared" "$work/passed_over"); do wrong "cmake/cxx.awk passes over $name, which there is not"; done

sh cmake/cxx . "$work/forms/axle/cxx/functions.hpp" tests/cxx_forms/forms.h || wrong "cmake/cxx fails"
for compiler in ${AXLE_CXX:-c++}; do
  "$compiler" -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Werror "-I$work/forms" -Iinclude \
    -fsyntax-only tests/cxx_forms/forms.cc || wrong "$compiler does not take what is made of tests/cxx_forms/forms.h"
done
grep -q ax_forms_printed "$work/forms/axle/cxx/functions.hpp" && wrong "a function with ... is to be written by hand"
exit $failed
