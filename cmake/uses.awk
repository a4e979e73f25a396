# One use of each public function, macro and struct in C that is compiled: the shortest statement that has it.
#   awk -f cmake/uses.awk examples/a.c ..        NAME, FILE, LINE and TEXT, a tab between; between lines of TEXT is the character 1
#
# A statement ends at a ; { or } outside of brackets; braces behind = and ) or inside of brackets are brackets. Of equally short ones
# the first counts, so the order of the files decides; those in files from one named "later" on are for names without any other use.

FNR == 1 {
  end_file()
  if (FILENAME ~ /^tests\//) later = 1
  path = FILENAME
}
{ line[FNR] = $0; line_count = FNR }
END {
  end_file()
  for (name in text) printf "%s\t%s\t%d\t%s\n", name, place[name], at[name], text[name]
}

function end_file(    i) {
  in_comment = directive = depth = 0
  statement = ""
  for (i = 1; i <= line_count; i++) take_line(line[i], i)
  line_count = 0
}

# Adds a line to the statement under way, and ends statements where they end.
function take_line(whole, number,    rest, character, i, length_, quote, kept) {
  if (directive || whole ~ /^ *#/) {
    directive = whole ~ /\\$/
    return
  }
  length_ = length(whole)
  for (i = 1; i <= length_; i++) {
    character = substr(whole, i, 1)
    rest = substr(whole, i, 2)
    if (in_comment) {
      if (rest == "*/") {
        in_comment = 0
        i++
      }
      continue
    }
    if (quote != "") {
      kept = kept character
      if (character == "\\") kept = kept substr(whole, ++i, 1)
      else if (character == quote) quote = ""
      continue
    }
    if (rest == "/*") {
      in_comment = 1
      i++
      continue
    }
    if (rest == "//") break
    if (character == "\"" || character == "'") quote = character
    if ((character == "{" && depth == 0 && (statement kept) !~ /= *$/) || (character == "}" && depth == 0)) {
      end_statement(kept, number)
      kept = ""
      continue
    }
    kept = kept character
    if (character ~ /[({[]/) depth++
    else if (character ~ /[])}]/) depth--
    else if (character == ";" && depth == 0) {
      end_statement(kept, number)
      kept = ""
    }
  }
  sub(/[ \t]+$/, "", kept)
  if (statement == "") first = number
  if (statement != "" || kept !~ /^[ \t]*$/) statement = statement (statement == "" ? "" : "\001") kept
}

function end_statement(kept, number,    whole, rest, name, next_) {
  if (statement == "") first = number
  whole = statement (statement == "" ? "" : "\001") kept
  statement = ""
  rest = whole
  gsub(/"([^"\\]|\\.)*"/, "\"\"", rest)
  while (match(rest, /[Aa][Xx]_[A-Za-z0-9_]+/)) {
    name = substr(rest, RSTART, RLENGTH)
    rest = substr(rest, RSTART + RLENGTH)
    next_ = rest
    if (next_ ~ /^ *\(/ || next_ ~ /^\)\{/ || next_ ~ /^ [a-z_]+(\[[^]]*\])? = *\{/ || (name ~ /^AX_[A-Z0-9_]*$/)) keep(name, whole)
  }
}

function keep(name, whole) {
  if (name in text && (later && !was_later[name] || length(text[name]) <= length(whole))) return
  text[name] = whole
  place[name] = path
  at[name] = first
  was_later[name] = later
}
