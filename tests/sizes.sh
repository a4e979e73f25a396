#!/bin/sh
# Refuses files of more than 1 MiB under version control in ROOT: packages and data sets are fetched, not kept here.
#   tests/sizes.sh ROOT
set -eu

cd "${1:?which tree}"
if ! git rev-parse --git-dir >/dev/null 2>&1; then
  echo "sizes: not a git checkout, nothing to look at"
  exit 0
fi
large=$(git ls-files -z | { xargs -0 stat -c '%s %n' 2>/dev/null || true; } | awk '$1 > 1048576')
if [ -n "$large" ]; then
  echo "sizes: larger than 1 MiB:"
  echo "$large"
  exit 1
fi
echo "sizes: $(git ls-files | wc -l) files, none larger than 1 MiB"
