#!/bin/sh
# Refuses a struct, union or enum name that two files under ROOT's src and include define: one name, one meaning.
#   tests/names.sh ROOT
set -eu

cd "${1:?which tree}"
find include src -type f \( -name '*.c' -o -name '*.h' \) | sort | xargs awk '
    FNR == 1 { files++; in_comment = 0 }

    {
      line = $0 # without comments
      if (in_comment) {
        if (!match(line, /\*\//)) next
        line = substr(line, RSTART + 2)
        in_comment = 0
      }
      while ((begin = index(line, "/*")) > 0) {
        rest = substr(line, begin + 2)
        end = index(rest, "*/")
        if (end == 0) { line = substr(line, 1, begin - 1); in_comment = 1; break }
        line = substr(line, 1, begin - 1) " " substr(rest, end + 2)
      }
      while (match(line, /(struct|union|enum)[ \t]+ax_[a-z0-9_]+[ \t]*\{/)) {
        name = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/^[a-z]+[ \t]+/, "", name)
        sub(/[ \t]*\{$/, "", name)
        names++
        if (name in home && home[name] != FILENAME) {
          printf "%s:%d: %s is defined in %s too\n", FILENAME, FNR, name, home[name]
          breaches++
        }
        home[name] = FILENAME
      }
    }

    END {
      if (breaches > 0) { printf "names: %d defined twice\n", breaches; exit 1 }
      if (names < 100) { printf "names: only %d were found in %d files\n", names, files; exit 1 }
      printf "names: %d in %d files, each defined once\n", names, files
    }'
