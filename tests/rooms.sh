#!/bin/sh
# Checks that each room of ROOT/src includes only what tests/rooms.txt allows it, and names every line that breaks it.
#   tests/rooms.sh ROOT
set -eu

list=$(dirname "$0")/rooms.txt
cd "${1:?which tree}"
case $list in /*) ;; *) list=$OLDPWD/$list ;; esac

find src -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cc' -o -name '*.cpp' -o -name '*.cu' \) |
  sort | xargs awk '
    function folder(path) { sub(/\/[^\/]*$/, "", path); return path }
    function breach(text) { printf "%s:%d: %s\n", FILENAME, FNR, text; breaches++ }

    NR == FNR { # the list
      sub(/#.*/, "")
      if (NF == 0) next
      depth[$1] = ++rooms
      for (i = 2; i <= NF; i++) keeper[$i] = $1
      next
    }

    FNR == 1 {
      files++
      room = folder(substr(FILENAME, 5)) # without src/
      if (!(room in depth)) breach("src/" room " is not a room of rooms.txt")
    }

    /^[ \t]*#[ \t]*include/ && room in depth {
      line = $0
      sub(/^[ \t]*#[ \t]*include[ \t]*/, "", line)
      quoted = line ~ /^"/
      header = substr(line, 2)
      sub(/[">].*/, "", header)

      for (prefix in keeper)
        if (index(header, prefix) == 1 && keeper[prefix] != room) {
          breach("only src/" keeper[prefix] " may include " header)
          next
        }
      if (!quoted || header ~ /^axle\//) next
      if (header ~ /^support\// && FILENAME ~ /_test\.c$/) next # tests/support

      home = folder(header)
      if (home == header || header ~ /\.\./ || !(home in depth))
        breach("write \"room/header\", with a room of rooms.txt: " header)
      else if (depth[home] > depth[room])
        breach("src/" room " includes " header ", from a room below it")
    }

    END {
      if (breaches > 0) { printf "rooms: %d breaches\n", breaches; exit 1 }
      printf "rooms: %d files, no breach\n", files
    }' "$list"
