# What `axle help` finds in pages: their headings and passages, the first comments of examples, and the tables of what others call what.
#   awk -f cmake/search.awk docs/a.md .. examples/a.c ..        generated/cli/pages.h
#
# A passage is a paragraph, an item or a row of a table; code is none. A row of a table in terms.md, jax.md or mpi.md whose second column
# is headed "Axle" also says what words mean: those of its first column, each with the names of the second that stand at its place or, where
# there are not as many, that end in it, else with all of them. The first column of terms.md has words between commas, not code: each
# is all the names.

FNR == 1 {
  end_passage()
  page = FILENAME
  sub(/^.*\/docs\//, "docs/", page)
  sub(/^.*\/examples\//, "examples/", page)
  inside = in_table = 0
  is_code = page !~ /\.md$/
  in_head = is_code
}
is_code {
  if (!in_head) next
  line = $0
  sub(/^\/\* ?/, "", line)
  if (sub(/ *\*\/.*$/, "", line)) in_head = 0
  add(line)
  if (!in_head) end_passage()
  next
}
/^```/ { # also behind blanks, in an item
  end_passage()
  inside = !inside
  next
}
inside { next }
/^ *$/ || /^<!--/ {
  end_passage()
  in_table = 0
  next
}
/^#+ / {
  end_passage()
  sub(/^#+ /, "")
  put(FNR, 1, $0)
  next
}
/^\|/ {
  end_passage()
  take_row($0)
  next
}
/^ *[-*0-9.]+ / { end_passage() }
{ add($0) }
END {
  end_passage()
  print "/* Made by cmake/search.awk. */"
  print "const passage passages[] = {\n" passages "};\nconst unsigned passage_count = sizeof passages / sizeof passages[0];"
  print "const known_row known_rows[] = {\n" rows "};"
  print "const known_word known_words[] = {\n" words "};\nconst unsigned known_count = sizeof known_words / sizeof known_words[0];"
}

function add(line) {
  if (text == "") from = FNR
  text = text (text == "" ? "" : "\n") line
}

function end_passage() {
  if (text != "") put(from, 0, text)
  text = ""
}

function put(line, heading, text) { passages = passages "  {\"" page "\", " line ", " heading ", " quoted(plain(text)) "},\n" }

# Without Markdown's signs: [text](link) is its text.
function plain(text,    made, link) {
  while (match(text, /\[[^]]*\]\([^)]*\)/)) {
    link = substr(text, RSTART + 1, RLENGTH - 1)
    sub(/\]\(.*/, "", link)
    made = made substr(text, 1, RSTART - 1) link
    text = substr(text, RSTART + RLENGTH)
  }
  text = made text
  gsub(/`|\*\*/, "", text)
  gsub(/\\\|/, "|", text)
  return text
}

function quoted(text) {
  gsub(/\\/, "&&", text)
  gsub(/"/, "\\\"", text)
  gsub(/\n/, "\\n", text)
  gsub(/\?/, "\\?", text) # no trigraphs
  return "\"" text "\""
}

# --- Tables ---

function take_row(row,    cells, count, i, rest) {
  gsub(/\\\|/, "\001", row)
  count = split(row, cells, "|")
  for (i = 1; i <= count; i++) {
    gsub(/^ +| +$/, "", cells[i])
    gsub(/\001/, "|", cells[i])
  }
  if (cells[2] ~ /^-+$/) return
  if (!in_table) {
    in_table = 1
    speaks_of_axle = page ~ /^docs\/(terms|jax|mpi)\.md$/ && cells[3] == "Axle"
    return
  }
  for (i = 3; i < count; i++) if (cells[i] != "") rest = rest (i > 3 ? " | " : "") cells[i]
  if (page != "docs/terms.md") put(FNR, 0, cells[2] " | " rest)
  if (!speaks_of_axle) return
  gsub(/\]\(/, "] (", rest) # where a link leads to
  gsub(/[][]/, "", rest)
  rows = rows "  {\"" page "\", " FNR ", " quoted(plain(cells[2])) ", " quoted(plain(rest)) "},\n"
  take_words(cells[2], cells[3])
  row_count++
}

# The code in a cell, each in its place; of a cell without code what stands between commas.
function spans_of(cell, spans,    parts, count, i, n) {
  split("", spans)
  if (cell !~ /`/) return split(cell, spans, /, */)
  count = split(cell, parts, "`")
  for (i = 2; i <= count; i += 2) spans[++n] = parts[i]
  return n
}

function take_words(left, right,    ours, theirs, count, n, i, word, bare, module) {
  n = spans_of(left, theirs)
  count = spans_of(right, ours)
  if (right !~ /`/) count = split("", ours)
  if (left !~ /`/) {
    for (i = 1; i <= n && page ~ /terms/; i++) put_word(theirs[i], names_for("", ours, count))
    return
  }
  for (i = 1; i <= n; i++) {
    word = theirs[i]
    take_options(word, names_for(word, ours, count))
    if (!match(word, /^[A-Za-z_][A-Za-z0-9_.]*/)) continue
    word = substr(word, RSTART, RLENGTH)
    bare = word
    sub(/^.*\./, "", bare)
    if (bare != word) module = substr(word, 1, length(word) - length(bare))
    else if (word !~ /^MPI_/) word = module word
    if (length(bare) > 2 || bare != word) put_word(word, n == count ? name_in(ours[i]) : names_for(bare, ours, count))
  }
}

# jax.jit(f, donate_argnums=0): also donate_argnums.
function take_options(call, names,    option) {
  while (match(call, /[a-z]+_[a-z_]+=/)) {
    option = substr(call, RSTART, RLENGTH - 1)
    call = substr(call, RSTART + RLENGTH)
    put_word(option, names)
  }
}

function put_word(word, names) { words = words "  {" quoted(word) ", " quoted(names) ", " row_count + 0 "},\n" }

function name_in(span) { return match(span, /(ax|AX)_[A-Za-z0-9_]+/) ? substr(span, RSTART, RLENGTH) : "" }

function names_for(bare, ours, count,    i, all, some, name) {
  for (i = 1; i <= count; i++) {
    name = name_in(ours[i])
    if (name == "" || index(", " all ",", ", " name ",") > 0) continue
    all = all (all == "" ? "" : ", ") name
    if (bare != "" && tolower(name) ~ ("_" tolower(bare) "$")) some = some (some == "" ? "" : ", ") name
  }
  return some != "" ? some : all
}
