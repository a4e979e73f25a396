#!/bin/sh
# What the pages of docs/ say is so.
#
#   reference/*.md, primitives.md  are what cmake/docs makes of the sources; every exported function is in the first
#   a transcript (```console)      has what its commands print now (cmake/page.awk); of a page with <!-- not hostile --> only where plans
#                                  are the usual ones
#   C and C++ (```c, ```cpp)       stand in a file of examples/, tests/docs/ or tests/cxx/, which are compiled and run
#   a program's text (```axle)     parses
#   a link                         leads to a file that is there, and to an anchor that its page has (docs_links.awk)
#   text.md                        has a text for each production of its grammar
#   jax.md                         names every exported function, and no page one that there is not
#   reference/README.md            has no task twice
#   design.md                      has a row for each public header, and names each room
#   axle.1                         names the commands and options that `axle --help` does, and no others
#
# AXLE_GOLDEN_UPDATE=1 makes the first two so; cmake/docs docs alone makes the first.
#   AXLE=build/axle AXLE_BUILD=build sh tests/docs_test.sh
set -u

: "${AXLE:?the axle command}" "${AXLE_BUILD:?the build folder}"
case $AXLE_BUILD in /*) ;; *) AXLE_BUILD=$PWD/$AXLE_BUILD ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/made" "$work/here" "$work/blocks"
ln -s "$AXLE_BUILD" "$work/here/build"
ln -s "$PWD/examples" "$PWD/tests" "$PWD/data" "$work/here"
PATH=$AXLE_BUILD:$PATH
failed=0

wrong() {
  echo "docs: $*"
  failed=$((failed + 1))
}

# same PAGE FRESH: the page is what it should be, or is made so.
same() {
  cmp -s "$1" "$2" && return
  if [ "${AXLE_GOLDEN_UPDATE:-}" = 1 ]; then
    cp "$2" "$1"
    echo "updated $1"
  else
    diff -u "$1" "$2" | head -40
    wrong "$1 is not up to date; AXLE_GOLDEN_UPDATE=1 AXLE=$AXLE AXLE_BUILD=$AXLE_BUILD sh tests/docs_test.sh mends it"
  fi
}

# A block of C, its indentation left out, stands somewhere in the C that is compiled.
stands() {
  cat examples/*.c examples/*/*.c tests/docs/*.c examples/*.cc tests/cxx/*.cc 2>/dev/null | awk -v block="$1" '
    function bare(line) { gsub(/^[ \t]+|[ \t]+$/, "", line); return line }
    BEGIN { while ((getline line < block) > 0) wanted[++count] = bare(line) }
    { have[NR] = bare($0) }
    END {
      for (i = 1; i <= NR - count + 1; i++) {
        for (k = 1; k <= count && have[i + k - 1] == wanted[k]; k++) continue
        if (k > count) exit 0
      }
      exit 1
    }'
}

is_hostile() { grep -q '^AXLE_HOSTILE:BOOL=ON' "$AXLE_BUILD/CMakeCache.txt" 2>/dev/null; }

check_page() {
  rm -f "$work"/blocks/*
  awk -v work="$work/here" -v blocks="$work/blocks" -f cmake/page.awk "$1" >"$work/fresh"
  # Plans of a command built with AXLE_HOSTILE are others, and their times.
  if ! is_hostile || ! grep -q '^<!-- not hostile -->' "$1"; then same "$1" "$work/fresh"; fi
  for block in "$work"/blocks/*.c "$work"/blocks/*.cpp; do
    [ ! -f "$block" ] || stands "$block" || { cat "$block"; wrong "$1: this C is in no file that is compiled"; }
  done
  for block in "$work"/blocks/*.axle; do
    [ ! -f "$block" ] || "$AXLE" show "$block" >/dev/null || wrong "$1: a program's text does not parse"
  done
}

# Links of all pages, also those that are made, and those of the examples.
check_links() {
  awk -f tests/docs_links.awk README.md docs/*.md docs/reference/*.md examples/README.md examples/jax/README.md >"$work/links"
  grep -q '	docs/reference/ops.md$' "$work/links" || wrong "tests/docs_links.awk finds no links"
  while IFS='	' read -r page link file; do
    if [ -z "$link" ]; then wrong "no such anchor: $page"; else [ -e "$file" ] || wrong "$page: no such file: $link"; fi
  done <"$work/links"
}

# The manual has a section for each command, and in it the options of the command's help, each at the beginning of a paragraph.
check_manual() {
  sed 's/\\-/-/g' docs/axle.1 >"$work/manual"
  sed -n 's/^\.SS axle \([a-z]*\).*/\1/p' "$work/manual" | sort >"$work/described"
  "$AXLE" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p' | sort >"$work/commands"
  diff "$work/commands" "$work/described" || wrong "axle.1 has other sections than 'axle --help' has commands"
  while read -r command; do
    "$AXLE" "$command" --help | sed -n 's/^  \(-[a-z],\|   \) \(--[a-z-]*\).*/\2/p' | sort >"$work/options"
    awk -v command="$command" '/^\.S[SH] / { inside = $0 ~ "^.SS axle " command "( |$)" } inside' "$work/manual" |
      sed -n '/^\.TP/{n;s/^[^-]*\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p}' | sort >"$work/described"
    diff "$work/options" "$work/described" || wrong "axle.1 has other options of axle $command than its help"
  done <"$work/commands"
}

# Each function that the library exports has its place in the reference.
check_reference() {
  nm -D --defined-only "$AXLE_BUILD/libaxle.so" | awk '$3 ~ /^ax_/ { print $3 }' | sort >"$work/exported"
  cat "$work"/made/reference/*.md | grep -o '<a id="ax_[a-z0-9_]*"' | sed 's/.*"\(.*\)"/\1/' | sort >"$work/described"
  [ -s "$work/exported" ] || wrong "nm finds no functions in $AXLE_BUILD/libaxle.so"
  comm -23 "$work/exported" "$work/described" >"$work/missing"
  [ ! -s "$work/missing" ] || wrong "cmake/reference.awk passes over" $(cat "$work/missing")
}

# What pages for users call ax_.. or AX_.. is in the reference; `ax_name_` and `AX_NAME_` stand for several.
check_names() {
  cat "$work"/made/reference/*.md | grep -o '<a id="[A-Za-z0-9_]*"' | sed 's/.*"\(.*\)"/\1/' | sort -u >"$work/described"
  for page in docs/*.md docs/axle.1; do
    case $page in docs/design.md | docs/passes.md | docs/performance.md | docs/primitives.md) continue ;; esac
    grep -o '\b\(ax\|AX\)_[A-Za-z0-9_]*[A-Za-z0-9]\b' "$page" | sort -u | comm -23 - "$work/described" >"$work/unknown"
    [ ! -s "$work/unknown" ] || wrong "$page: in no public header:" $(cat "$work/unknown")
  done
}

# The table for those who come from JAX has every function.
check_jax() {
  grep -o '\bax_[a-z0-9_]*' docs/jax.md | sort -u | comm -23 "$work/exported" - >"$work/missing"
  [ ! -s "$work/missing" ] || wrong "docs/jax.md has no row for" $(cat "$work/missing")
}

# Each production is named, as **name**, in a paragraph that a program's text follows.
check_grammar() {
  sed -n 's/^\([a-z-]*\)  *= .*/\1/p' docs/text.md | sort >"$work/productions"
  awk '/^\*\*/ { named = $0 } /^```axle/ { print named }' docs/text.md | grep -o '\*\*[a-z-]*\*\*' | tr -d '*' | sort -u >"$work/shown"
  diff "$work/productions" "$work/shown" || wrong "text.md: not every production has a text, or one has that is none"
}

# The way to a function: design.md has a row for each public header, and names each room that there is.
check_design() {
  for header in include/axle/*.h; do
    grep -q "\`axle/${header##*/}\`" docs/design.md || wrong "design.md does not say in which room $header is defined"
  done
  grep -o '^[a-z][a-z/]*' tests/rooms.txt | while read -r room; do
    [ ! -d "src/$room" ] || grep -qw "$room" docs/design.md || echo "$room"
  done >"$work/missing"
  [ ! -s "$work/missing" ] || wrong "design.md says nothing of the rooms" $(cat "$work/missing")
}

# The index by task says no task twice.
check_tasks() {
  sed '/^ops\.h:/a\  Round and divide with a remainder: ax_round ax_rem ax_mod' cmake/reference.txt >"$work/twice-reference.txt"
  awk -v form=c -f cmake/reference.awk "$work/twice-reference.txt" include/axle/*.h 2>&1 >/dev/null | grep -q 'the same task twice' ||
    wrong "cmake/reference.awk lets a task stand twice"
}

cmake/docs "$work/made" || wrong "cmake/docs fails"
for page in "$work"/made/*.md "$work"/made/reference/*.md; do same "docs/${page#"$work/made/"}" "$page"; done
for page in docs/reference/*.md; do
  [ -f "$work/made/${page#docs/}" ] || wrong "$page: no header makes this page; cmake/docs docs removes it"
done
for page in docs/*.md; do
  [ -f "$work/made/${page#docs/}" ] || check_page "$page"
done
check_links
check_reference
check_names
check_jax
check_grammar
check_manual
check_design
check_tasks
[ $failed -eq 0 ] && echo "docs: all as they say"
