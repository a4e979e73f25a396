# The API reference from the public headers.
#
#   awk -v folder=DIR -f cmake/reference.awk cmake/reference.txt USES FORMS include/axle/a.h ..     DIR/README.md and a page for each header
#   awk -v form=c -f cmake/reference.awk cmake/reference.txt FORMS include/axle/a.h ..              what `axle help NAME` is made of
#
# USES is what cmake/uses.awk prints, FORMS what cmake/cxx-forms.awk does. cmake/reference.txt has the order of the pages and the index by
# task.
#
# A header is its head comment, then groups: a comment and the declarations under it, up to an empty line or the next comment. A group
# becomes its declarations as they stand, its comment as prose and its uses; "/* --- x --- */" becomes a heading. What
# compilers alone need is left out: guards, visibility, AX_MUST_USE, and what stands between #ifndef AXLE_NO_LINES and #endif: the
# macros that stamp a call's line, which are called as the functions of their names; and what C++ has in the place of C's macros. Macros
# over functions that take a list in one piece are not shown either: they make the group's calls (take_call).
#
# state: head (of the file), between, comment, declaration. A declaration ends with the line where its brackets are closed and a ; stands
# at the end; a macro with the first line that does not end in \.

# --- The order of the pages, the tasks, and the uses ---

FILENAME ~ /reference\.txt$/ {
  if (/^ /) {
    tasks[order_count] = tasks[order_count] $0 "\n"
  } else if (/^[a-z]/) {
    ordered[++order_count] = $1
    sub(/:$/, "", ordered[order_count])
    title[ordered[order_count]] = substr($0, length($1) + 2)
    sub(/^ /, "", title[ordered[order_count]])
  }
  next
}
FILENAME !~ /\.h$/ {
  if (split($0, field, "\t") == 2) {
    cxx_forms[field[1]] = cxx_forms[field[1]] field[2] ";\n"
    next
  }
  use_place[field[1]] = field[2]
  use_line[field[1]] = field[3]
  use_text[field[1]] = field[4]
  next
}

# --- Headers ---

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

# shown: whether a use of it is shown below the declaration: of functions, macros with arguments and structs.
function add_name(name, shown) {
  if (name in home) return
  home[name] = header
  names[++name_count] = name
  group_names[++group_name_count] = name
  used[name] = shown
}

# The names that a declaration makes: a macro's, an enumeration's and its constants, a type's, a function's.
function add_names(text,    body, parts, count, i, name) {
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", text)
  gsub(/\n/, " ", text)
  if (text ~ /^#define /) {
    sub(/^#define +/, "", text)
    match(text, /^[A-Za-z0-9_]+/)
    add_name(substr(text, RSTART, RLENGTH), text ~ /^[A-Za-z0-9_]+\(/)
    return
  }
  if (text ~ /^(typedef )?enum/) {
    body = text
    sub(/^[^{]*\{/, "", body)
    sub(/\}.*$/, "", body)
    count = split(body, parts, ",")
    if (text ~ /^typedef/) add_last(text)
    for (i = 1; i <= count; i++)
      if (match(parts[i], /AX_[A-Z0-9_]+/)) {
        is_constant[substr(parts[i], RSTART, RLENGTH)] = 1
        add_name(substr(parts[i], RSTART, RLENGTH), 0)
      }
    return
  }
  if (text ~ /^typedef/) {
    if (text ~ /\(\*ax_[a-z0-9_]+\)/) {
      match(text, /\(\*ax_[a-z0-9_]+\)/)
      add_name(substr(text, RSTART + 2, RLENGTH - 3), 0)
    } else
      add_last(text)
    return
  }
  if (match(text, /ax_[a-z0-9_]+\(/)) add_name(substr(text, RSTART, RLENGTH - 1), 1)
}

function add_last(text,    name) { # typedef ... name;
  match(text, /ax_[a-z0-9_]+ *;[^;]*$/)
  name = substr(text, RSTART, RLENGTH)
  sub(/ *;.*$/, "", name)
  add_name(name, text ~ /\{/)
}

# Names that end in _ are parts of macros.
function hidden(text) {
  if (text ~ /^static inline .*ax_lined_|^#define (AX_MUST_USE|AX_PRINTF|AXLE_)/) return 1
  if (match(text, /^#define ax_[a-z0-9_]+\(/)) return substr(text, 9, RLENGTH - 9) in macro_body
  if (text ~ /^#define/) return text ~ /^#define [A-Za-z0-9_]*_[( ]/
  return text ~ /^typedef/ ? text ~ /ax_[a-z0-9_]*_ *;$/ : text ~ /ax_[a-z0-9_]*_\(/
}

function end_declaration() {
  if (!hidden(declaration)) {
    sub(/^AX_MUST_USE /, "", declaration)
    if (sub(/^static inline /, "", declaration)) sub(/ \{\n.*$/, ";", declaration)
    code = code declaration "\n"
    add_names(declaration)
    if (declaration !~ /^(#|typedef|enum)/) take_function(declaration)
  }
  declaration = ""
  state = "between"
}

function indented(lines) {
  gsub(/\n/, "\n  ", lines)
  return "  " substr(lines, 1, length(lines) - 2)
}

function end_group(    i) {
  if (code != "") {
    end_head()
    calls = note_count > 0 ? all_calls : ""
    group_count++
    group_calls[group_count] = calls == "" ? "" : indented(calls) note_lines("    ", ": ")
    gsub(/`/, "", group_calls[group_count])
    group_code[group_count] = code
    group_forms[group_count] = forms == "" ? "" : indented(forms)
    group_comment[group_count] = comment == "" ? "" : plain(comment) "\n"
    group_header[group_count] = header
    for (i = 1; i <= group_name_count; i++) {
      group[group_names[i]] = group_count
      page = page "<a id=\"" group_names[i] "\"></a>"
      if (!is_constant[group_names[i]]) section_names[section] = section_names[section] " " group_names[i]
    }
    keep("\n")
    if (calls != "") keep("Called:\n\n```c\n" calls "```\n\n" note_lines("- ", ": "))
    keep("```c\n" code "```\n")
    if (forms != "") keep("C++:\n\n```cpp\n" forms "```\n")
    if (comment != "") keep_prose(comment)
    comment = ""
    keep_uses()
  }
  if (comment != "") keep_prose(comment)
  comment = code = all_calls = forms = ""
  group_name_count = note_count = 0
  split("", noted)
}

# --- How a function is called: in C with lists in one piece, and in C++ ---

BEGIN {
  for (i = 1; i < ARGC; i++)
    if (ARGV[i] ~ /\.h$/) read_macros(ARGV[i])
}

# Macros that make lists, by the type of an entry, and macros of functions that take one in one piece.
function read_macros(file,    line, text, name) {
  while ((getline line < file) > 0) {
    text = text line
    if (sub(/ *\\$/, " ", text)) continue
    if (match(text, /^#define AX_[A-Z_]+\(\.\.\.\) \(uint32_t\)\(sizeof\(\([^[]*\[\](\[2\])?/)) {
      text = substr(text, 9, RLENGTH - 8)
      name = text
      sub(/\(.*/, "", name)
      sub(/^.*sizeof\(\(/, "", text)
      sub(/\[\]/, "", text)
      list_macro[text] = name
    } else if (text ~ /^#define ax_.*AX_(COUNTED|MEMORY|ELEMENT)\(/) {
      match(text, /ax_[a-z0-9_]+\([^)]*\)/)
      name = substr(text, RSTART, RLENGTH)
      macro_parameters[substr(name, 1, index(name, "(") - 1)] = substr(name, index(name, "(") + 1, length(name) - index(name, "(") - 1)
      text = substr(text, RSTART + RLENGTH)
      sub(/^[^(]*\((ax_[a-z0-9_]+\)\(|[a-z0-9_]+, *)/, "", text) # AX_LINED(name,   or   (ax_name)(
      sub(/\) *$/, "", text)
      macro_body[substr(name, 1, index(name, "(") - 1)] = text
    }
    text = ""
  }
  close(file)
}

# Splits at the commas that stand in no brackets.
function split_list(text, parts,    i, c, depth, count) {
  split("", parts)
  count = text != ""
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    depth += (c == "(") - (c == ")")
    if (c == "," && depth == 0) count++
    else parts[count] = parts[count] c
  }
  for (i = 1; i <= count; i++) gsub(/^ +| +$/, "", parts[i])
  return count
}

function parameter_name(text) {
  if (match(text, /\(\*[a-z0-9_]+\)/)) return substr(text, RSTART + 2, RLENGTH - 3)
  return match(text, /[a-z0-9_]+$/) ? substr(text, RSTART, RLENGTH) : text # ...
}

# The type of an entry of the list that a parameter points to, as the macros of lists know it; "" where it is none.
function entry_type(text) {
  if (text ~ /^const int64_t \(\*[a-z_]+\)\[2\]$/) return "int64_t[2]"
  if (!sub(/ \*const \*[a-z0-9_]+$/, " *", text) && !sub(/ \*[a-z0-9_]+$/, "", text)) return ""
  sub(/^const /, "", text)
  return (text in list_macro) ? text : ""
}

function add_note(name, text) {
  if (!(text in noted)) note_order[++note_count] = text
  if (index(noted[text], "`" name "`") == 0) noted[text] = noted[text] (noted[text] == "" ? "" : ", ") "`" name "`"
}

# What stands for the lists among the operands: start before each, between the names and the text, at the end.
function note_lines(start, between,    i, made) {
  for (i = 1; i <= note_count; i++) made = made start noted[note_order[i]] between note_order[i] "\n"
  return made
}

function note_list(parameter, sized) {
  if (parameter !~ /const/)
    add_note(parameter_name(parameter), "a C array, or &y of one variable; AX_LIST(n, p)")
  else
    add_note(parameter_name(parameter), list_macro[entry_type(parameter)] "(..)" (sized ? ", a C array, or &x of one variable; " : " or ") "AX_LIST(n, p)")
}

function take_function(text,    name, parts, count, call) {
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", text)
  gsub(/ AX_PRINTF\([^)]*\)/, "", text)
  gsub(/[ \n]+/, " ", text)
  if (!match(text, /ax_[a-z0-9_]+\(/)) return
  name = substr(text, RSTART, RLENGTH - 1)
  forms = forms cxx_forms[name]
  text = substr(text, RSTART + RLENGTH)
  sub(/\) ?;.*$/, "", text)
  if (text == "void") text = ""
  count = split_list(text, parts)
  call = (name in macro_body) ? macro_call(name, parts, count) : counted_call(parts, count)
  all_calls = all_calls name "(" call ");\n"
}

# By its macro: the operands, of which those in AX_COUNTED are lists and those in AX_MEMORY memory. ... are the rest of the function's.
function macro_call(name, parts, count,    made, given, i, k, n) {
  made = macro_parameters[name]
  n = split_list(macro_body[name], given)
  k = 1
  for (i = 1; i <= n; i++) {
    if (given[i] ~ /^AX_COUNTED\(/) {
      note_list(parts[k + 1], 1)
      k += 2
    } else if (given[i] ~ /^AX_(MEMORY|ELEMENT)\(/) {
      sub(/^[A-Z_]*\(/, "", given[i])
      sub(/\)$/, "", given[i])
      add_note(given[i], "a C array or a pointer, whose dtype and bytes the compiler knows")
      k += macro_body[name] ~ /AX_MEMORY/ ? 3 : 1
    } else
      k++
  }
  if (sub(/, *\.\.\.$/, "", made))
    for (k--; k <= count; k++) made = made ", " parameter_name(parts[k])
  return made
}

# Without one: a count and a list of no other's length are one argument.
function counted_call(parts, count,    made, i) {
  for (i = 1; i <= count; i++) {
    if (parts[i] ~ /^uint32_t [a-z_]+$/ && i < count && parts[i + 1] ~ /^const |\*const / && entry_type(parts[i + 1]) != "" && \
        (i + 1 == count || entry_type(parts[i + 2]) == "")) {
      note_list(parts[++i], 0)
    }
    made = made (made == "" ? "" : ", ") parameter_name(parts[i])
  }
  return made
}

# The names on the page are listed behind the header's first comment.
function end_head() {
  if (!(header in head_length)) head_length[header] = length(page)
}

function plain(text) {
  text = prose(text)
  gsub(/\n   /, "\n", text)
  return text
}

function keep(text) { page = page text "\n" }

# The uses of the group's names, each statement once: a line, or a block of a few lines.
function keep_uses(    i, name, lines, count, at, shown, some) {
  for (i = 1; i <= group_name_count; i++) {
    name = group_names[i]
    if (!used[name] || !(name in use_place)) continue
    at = use_place[name] "#L" use_line[name]
    if (at in shown) continue
    shown[at] = 1
    count = split(use_text[name], lines, "\001")
    if (count > 8) continue
    some = 1
    page = page "- [" use_place[name] ":" use_line[name] "](../../" at "): "
    keep_use(lines, count)
  }
  if (some) keep("")
}

function keep_use(lines, count,    i, margin) {
  match(lines[1], /^ */)
  margin = RLENGTH
  if (count == 1) {
    sub(/ +$/, "", lines[1])
    keep("`" substr(lines[1], margin + 1) "`")
    return
  }
  keep("\n  ```c")
  for (i = 1; i <= count; i++) {
    match(lines[i], /^ */)
    keep("  " substr(lines[i], (RLENGTH < margin ? RLENGTH : margin) + 1))
  }
  keep("  ```")
}

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
function keep_section(text,    at, heading) {
  gsub(/^\/\* --- | --- \*\/$/, "", text)
  gsub(/\n */, " ", text)
  sub(/\.$/, "", text)
  at = length(text) > 60 ? match(text, /[.:;] /) : 0
  heading = at == 0 ? text : substr(text, 1, at - 1)
  end_head()
  section_title[++section] = heading
  section_names[section] = ""
  keep("## " escaped(heading) "\n")
  if (at == 0) return
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

# Ends the page of the header before this one.
function end_page() {
  if (header == "") return
  end_group()
  sub(/## [^\n]*\n*$/, "", page) # a heading over nothing but hidden names
  end_head()
  pages[header] = page
  contents[header] = ""
  for (; first_section <= section; first_section++)
    if (section_names[first_section] != "") contents[header] = contents[header] section_title[first_section] "\t" section_names[first_section] "\n"
}

FNR == 1 {
  end_page()
  header = FILENAME
  sub(/^.*include\/axle\//, "", header)
  page = ""
  first_section = ++section
  section_title[section] = ""
  section_names[section] = ""
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
  end_page()
  sort_names()
  check_order()
  if (failed) exit 1
  if (form == "c") print_c()
  else print_pages()
}

function fail(message) {
  print "reference: " message > "/dev/stderr"
  failed = 1
}

function check_order(    i, k, count, lines, words, at) {
  for (i = 1; i <= order_count; i++) {
    if (!(ordered[i] in pages)) fail("cmake/reference.txt: there is no header axle/" ordered[i])
    placed[ordered[i]] = i
    count = split(tasks[i], lines, "\n")
    for (k = 1; k < count; k++) {
      at = match(lines[k], /: [^:]*$/)
      if (at == 0) fail("cmake/reference.txt: a task without names:" lines[k])
      split(substr(lines[k], at + 2), words, " ")
      check_task(lines[k], words)
      for (at in words) if (!(words[at] in home)) fail("cmake/reference.txt: no header declares " words[at])
    }
  }
  for (at in pages) if (!(at in placed)) fail("cmake/reference.txt has no line for axle/" at ": add HEADER: TITLE where a user meets it")
}

# Two tasks that several names do, all of them names of the other, are the same task.
function check_task(line, words,    task, i, count, shared, is_word) {
  for (i in words) {
    is_word[words[i]] = 1
    count++
  }
  for (task in task_words) {
    shared = split(task_words[task], words_before, " ")
    for (i in words_before) shared -= !(words_before[i] in is_word)
    if (shared > 1 && (shared == count || shared == split(task_words[task], words_before, " ")))
      fail("cmake/reference.txt: the same task twice:" line ", and" task)
  }
  task_words[line] = substr(line, match(line, /: [^:]*$/) + 2)
}

function sort_names(    i, k, name, key) { # by insertion: they are few; ax_psum stands at p
  for (i = 1; i <= name_count; i++) {
    name = names[i]
    key = tolower(name)
    for (k = i - 1; k >= 1 && tolower(names[k]) > key; k--) names[k + 1] = names[k]
    names[k + 1] = name
  }
}

# --- Pages ---

function page_of(header_) {
  sub(/\.h$/, ".md", header_)
  return header_
}

function link(name) { return "[`" name "`](" (home[name] == header ? "" : page_of(home[name])) "#" name ")" }

function links(text,    words, count, i, made) {
  count = split(text, words, " ")
  for (i = 1; i <= count; i++) made = made (i > 1 ? ", " : "") link(words[i])
  return made
}

function print_pages(    i) {
  for (i = 1; i <= order_count; i++) print_page(i, folder "/" page_of(ordered[i]))
  header = ""
  print_index(folder "/README.md")
}

function print_page(i, file,    lines, count, k, parts) {
  header = ordered[i]
  print "<!-- Made of include/axle/" header " by cmake/reference.awk; tests/docs_test.sh says how. -->" > file
  print "# axle/" header ": " tolower(substr(title[header], 1, 1)) substr(title[header], 2) "\n" > file
  printf "[All pages](README.md)" > file
  if (i > 1) printf ". Before: [axle/%s](%s)", ordered[i - 1], page_of(ordered[i - 1]) > file
  if (i < order_count) printf ". Next: [axle/%s](%s)", ordered[i + 1], page_of(ordered[i + 1]) > file
  print ".\n" > file
  printf "%s", substr(pages[header], 1, head_length[header]) > file
  count = split(contents[header], lines, "\n")
  for (k = 1; k < count; k++) {
    split(lines[k], parts, "\t")
    print (parts[1] == "" ? "" : escaped(parts[1]) ": ") links(parts[2]) ".\n" > file
  }
  printf "%s", substr(pages[header], head_length[header] + 1) > file
  close(file)
}

function print_index(file,    i, k, count, lines, at, letter, before) {
  print "<!-- Made of include/axle/*.h and cmake/reference.txt by cmake/reference.awk; tests/docs_test.sh says how. -->" > file
  print "# Reference\n" > file
  print "Everything that `#include <axle/axle.h>` declares, a page for each header, in the headers' own words, with a use from" > file
  print "the examples or the tests where there is one. `axle help NAME` prints the same for one name, and `axle help --search WORD`" > file
  print "finds names by text. *Called* says how a function that takes lists is called in C, where a macro of its name takes a list as one" > file
  print "argument; below it stands the function itself, and then what C++ has in its place ([C++](../cxx.md)). An `ax_status` that a function returns has to be looked at. What is said at the head of a page holds for" > file
  print "all that it declares.\n" > file
  print "## By task\n" > file
  for (i = 1; i <= order_count; i++) {
    print "### [" title[ordered[i]] "](" page_of(ordered[i]) ")\n" > file
    if (tasks[i] == "") print "Includes all others.\n" > file
    else print "| to | use |\n| --- | --- |" > file
    count = split(tasks[i], lines, "\n")
    for (k = 1; k < count; k++) {
      at = match(lines[k], /: [^:]*$/)
      print "| " tolower(substr(lines[k], 3, 1)) substr(lines[k], 4, at - 4) " | " links(substr(lines[k], at + 2)) " |" > file
    }
    if (tasks[i] != "") print "" > file
  }
  print "## By name" > file
  for (i = 1; i <= name_count; i++) {
    letter = toupper(substr(names[i], 4, 1))
    if (letter != before) printf "\n### %s\n\n", letter > file
    before = letter
    print link(names[i]) (i < name_count && toupper(substr(names[i + 1], 4, 1)) == letter ? "," : ".") > file
  }
  close(file)
}

# --- The table of `axle help` ---

function quoted(text) {
  gsub(/\\/, "&&", text)
  gsub(/"/, "\\\"", text)
  gsub(/\n/, "\\n\"\n    \"", text)
  return "\"" text "\""
}

function print_c(    i) {
  print "/* Made by cmake/reference.awk. */"
  print "const contract contracts[] = {"
  for (i = 1; i <= group_count; i++)
    print "    {\"" group_header[i] "\", " quoted(group_calls[i]) ", " quoted(group_code[i]) ", " quoted(group_forms[i]) ", " quoted(group_comment[i]) "},"
  print "};\nconst unsigned contract_count = sizeof contracts / sizeof contracts[0];"
  print "const public_name public_names[] = {"
  for (i = 1; i <= name_count; i++) print "    {\"" names[i] "\", " group[names[i]] - 1 "},"
  print "};\nconst unsigned public_count = sizeof public_names / sizeof public_names[0];"
}
