#!/bin/sh
# Every macro of the C headers that C++ sees is used in tests/cxx/macros.cc, so that each compiles. The others are C's (docs/cxx.md).
#   AXLE_CXX="g++ clang++" sh tests/cxx_macros_test.sh
set -u

inner="AX_STARTED AX_SHARDED_AT AX_PMAPPED_AT AX_TRANSFORM_AT AX_CALL AX_LINED AX_LINED_STATUS AX_LINED_VOID AX_LINED_ANY AX_X" # what other macros are made of
failed=0
for compiler in ${AXLE_CXX:-c++}; do
  macros=$(echo '#include "axle/axle.h"' | "$compiler" -std=c++17 -Iinclude -dM -E -x c++ - | sed -n 's/^#define \(\(AX\|ax\)_[A-Za-z0-9_]*\).*/\1/p')
  [ -n "$macros" ] || { echo "$compiler names no macros"; failed=1; }
  for macro in $macros; do
    case " $inner " in *" $macro "*) continue ;; esac
    case $macro in AX_BLOCK_* | AX_*_) continue ;; esac
    grep -qw "$macro" tests/cxx/macros.cc || { echo "not used in tests/cxx/macros.cc: $macro"; failed=1; }
  done
done
exit $failed
