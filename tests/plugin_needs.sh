#!/bin/sh
# The plugin is one file that a process with other compilers and languages in it can load: it shows one symbol, and needs neither LLVM, C++,
# Python nor protobuf.
#   tests/plugin_needs.sh PLUGIN
set -eu
shown=$(nm -D --defined-only "$1" | awk '{ print $3 }' | grep -vx -e __bss_start -e _edata -e _end)
[ "$shown" = GetPjrtApi ] || { echo "plugin: it shows $shown" && exit 1; }
needed=$(ldd "$1" | awk '{ print $1 }')
for library in LLVM stdc++ python protobuf mpi openblas gfortran; do
  ! echo "$needed" | grep -i -- "lib$library" || { echo "plugin: it needs that library" && exit 1; }
done
