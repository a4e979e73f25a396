# The API reference, docs/reference.md, from the public headers:   awk -f cmake/reference.awk include/axle/a.h ...
#
# A header is its head comment, then groups: a comment and the declarations under it, up to an empty line or the next comment. A group
# becomes a heading of its names, its declarations as they stand and its comment as prose; "/* --- x --- */" becomes a heading. What
# compilers alone need is left out: guards, visibility, AX_MUST_USE, and what stands between #ifndef AXLE_NO_LINES and #endif: the
# macros that stamp a call's line, which are called as the functions of their names; and what C++ has in the place of C's macros.
#
# state: head (of the file), between, comment, declaration. A declaration ends with the line where its brackets are closed and a ; stands
# at the end; a macro with the first line that does not end in \.

function escaped(text,    parts, count, i, made) { # for Markdown, outside of `..`
  count = split(text, parts, "`")
  for (i = 1; i <= count; i++) {
    if (i % 2 == 1) {
      gsub(/\*/, "\\*", parts[i])
      gsub(/</, "\\<", parts[i])
    }
    made = made (i > 1 ? "`" : "") parts[i]
  }
  return made
}

function prose(text) {
  sub(/^\/\* ?/, "", text)
  sub(/ *\*\/ *$/, "", text)
  return text
}

function add_name(name) {
  if (name in seen) return
  seen[name] = header
  names[++name_count] = name
  group_names[++group_name_count] = name
}

# The names that a declaration makes: a macro's, an enumeration's and its constants, a type's, a function's.
function add_names(text,    body, parts, count, i, name) {
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", text)
  gsub(/\n/, " ", text)
  if (text ~ /^#define /) {
    sub(/^#define +/, "", text)
    match(text, /^[A-Za-z0-9_]+/)
    add_name(substr(text, RSTART, RLENGTH))
    return
  }
  if (text ~ /^(typedef )?enum/) {
    body = text
    sub(/^[^{]*\{/, "", body)
    sub(/\}.*$/, "", body)
    count = split(body, parts, ",")
    if (text ~ /^typedef/) add_last(text)
    for (i = 1; i <= count; i++)
      if (match(parts[i], /AX_[A-Z0-9_]+/)) add_name(substr(parts[i], RSTART, RLENGTH))
    return
  }
  if (text ~ /^typedef/) {
    if (text ~ /\(\*ax_[a-z0-9_]+\)/) {
      match(text, /\(\*ax_[a-z0-9_]+\)/)
      add_name(substr(text, RSTART + 2, RLENGTH - 3))
    } else
      add_last(text)
    return
  }
  if (match(text, /ax_[a-z0-9_]+\(/)) add_name(substr(text, RSTART, RLENGTH - 1))
}

function add_last(text,    name) { # typedef ... name;
  match(text, /ax_[a-z0-9_]+ *;[^;]*$/)
  name = substr(text, RSTART, RLENGTH)
  sub(/ *;.*$/, "", name)
  add_name(name)
}

function hidden(text) { return text ~ /^static inline .*ax_lined_|^#define (AX_MUST_USE|AX_PRINTF|AXLE_)/ }

function end_declaration() {
  if (!hidden(declaration)) {
    sub(/^AX_MUST_USE /, "", declaration)
    if (sub(/^static inline /, "", declaration)) sub(/ \{\n.*$/, ";", declaration)
    code = code declaration "\n"
    add_names(declaration)
  }
  declaration = ""
  state = "between"
}

function end_group(    i) {
  if (code != "") {
    for (i = 1; i <= group_name_count; i++) body = body "<a id=\"" group_names[i] "\"></a>"
    keep("\n\n```c\n" code "```\n")
    if (comment != "") keep_prose(comment)
    comment = ""
  }
  if (comment != "") keep_prose(comment)
  comment = code = ""
  group_name_count = 0
}

function keep(text) { body = body text "\n" }

function keep_prose(text,    lines, count, i, example, gap) { # lines that are indented further than the rest are an example
  count = split(prose(text), lines, "\n")
  for (i = 1; i <= count; i++) {
    sub(/^   /, "", lines[i])
    if (lines[i] == "") {
      gap = 1
      continue
    }
    if (example && lines[i] !~ /^  /) keep("```\n")
    else if (!example && lines[i] ~ /^  /) keep("\n```text")
    else if (gap) keep("")
    example = lines[i] ~ /^  /
    gap = 0
    keep(example ? lines[i] : escaped(lines[i]))
  }
  keep(example ? "```\n" : "")
}

# "/* --- Shape; any T --- */": what is longer than a heading goes below it.
function keep_section(text,    at) {
  gsub(/^\/\* --- | --- \*\/$/, "", text)
  gsub(/\n */, " ", text)
  sub(/\.$/, "", text)
  at = length(text) > 60 ? match(text, /[.:;] /) : 0
  if (at == 0) {
    keep("### " escaped(text) "\n")
    return
  }
  keep("### " escaped(substr(text, 1, at - 1)) "\n")
  text = substr(text, at + 2)
  keep(escaped(toupper(substr(text, 1, 1)) substr(text, 2)) ".\n")
}

function end_comment() {
  end_group()
  if (current ~ /^\/\* --- .* --- \*\/$/) keep_section(current)
  else comment = current
  current = ""
  state = "between"
}

FNR == 1 {
  end_group()
  header = FILENAME
  sub(/^.*include\//, "", header)
  keep("## " header "\n")
  headers[++header_count] = header
  state = "between"
  depth = 0
}

state == "between" && /^#ifndef AXLE_NO_LINES/ { hidden_lines = 1 }
hidden_lines {
  if (/^#endif/) hidden_lines = 0
  next
}
state == "between" && /^#ifdef __cplusplus/ { only_cxx = 1 }
only_cxx {
  if (/^#(else|endif)/) only_cxx = 0
  next
}
/^\/\// && state == "between" { # a comment of // lines, because */ stands in it
  sub(/^\/\/ ?/, "   ")
  current = current (current == "" ? "" : "\n") $0
  next
}
state == "between" && current != "" {
  sub(/^   /, "", current)
  end_comment()
}
state == "between" && /^\/\*/ { state = "comment" }
state == "comment" {
  current = current (current == "" ? "" : "\n") $0
  if (/\*\/ *$/) end_comment()
  next
}
state == "between" && /^ *$/ { end_group(); next }
state == "between" && (/^#(if|else|elif|endif|include|pragma|undef)/ || /^extern "C" \{$/ || /^\}$/ || /^#define AXLE_[A-Z_]*$/) { next }
state == "between" { state = "declaration" }
state == "declaration" {
  line = $0
  if (declaration ~ /^AX_MUST_USE /) sub(/^            /, "", line)
  declaration = declaration (declaration == "" ? "" : "\n") line
  if (declaration ~ /^#define/) {
    if (!/\\$/) end_declaration()
    next
  }
  bare = declaration # without comments, which may hold brackets
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", bare)
  opened = gsub(/[({]/, "&", bare)
  closed = gsub(/[)}]/, "&", bare)
  if (opened == closed && bare ~ (bare ~ /^static inline/ ? "} *$" : "; *$") && bare !~ /\/\*/) end_declaration()
}

END {
  end_group()
  print "<!-- Made of include/axle/*.h by cmake/reference.awk; tests/docs_test.sh says how. -->"
  print "# Reference\n"
  print "Everything that `#include <axle/axle.h>` declares, by header, in the headers' own words. An `ax_status` that a function returns has"
  print "to be looked at. What is said at the head of a header holds for all that it declares.\n"
  for (i = 1; i <= header_count; i++) {
    anchor = headers[i]
    gsub(/[\/.]/, "", anchor)
    printf "%s[%s](#%s)", (i > 1 ? ", " : ""), headers[i], anchor
  }
  print ".\n\n## Index\n"
  for (i = 2; i <= name_count; i++) { # sorted by insertion: they are few
    name = names[i]
    for (k = i - 1; k >= 1 && tolower(names[k]) > tolower(name); k--) names[k + 1] = names[k]
    names[k + 1] = name
  }
  for (i = 1; i <= name_count; i++) printf "[`%s`](#%s)%s\n", names[i], names[i], (i < name_count ? "," : ".")
  printf "\n%s", body
}
