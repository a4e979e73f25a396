# The spec comments of the primitives, from the comment at the head of the file in which each one's record stands.
#
#   awk -v form=page -f cmake/specs.awk src/prim/prims.def src/ir/accuracy.def src/ops/*.c src/linalg/*.c src/fourier/*.c src/random/*.c src/collectives/*.c src/control/*.c src/mesh/*.c src/kernel/steps/*.c src/kernel/*.c src/kernels/*.c      docs/primitives.md
#   awk -v form=c ..                                                                      what `axle help` is made of
#
# A record is `const ax_prim ax_prim_NAME = {`, or a line of a family's macro, `..RECORD(NAME, ..`. Fails when a primitive has no record, or
# when the comment over it does not name it.

FNR == 1 {
  file++
  in_head = 1
}
FILENAME ~ /accuracy\.def$/ {
  if (match($0, /^AX_ACCURACY\(.*\)/)) {
    split(substr($0, 13, RLENGTH - 13), field, /, */)
    accuracy[++accuracies] = sprintf("| %s | %s | %s | %s | %s |", tolower(field[1]), field[2], field[3], field[4], field[5])
  }
  next
}
FILENAME ~ /\.def$/ {
  if (match($0, /^AX_PRIM\([a-z0-9_]+\)/)) names[++count] = substr($0, 9, RLENGTH - 9)
  next
}
in_head {
  spec[file] = spec[file] (spec[file] == "" ? "" : "\n") $0
  if (/\*\//) in_head = 0
  next
}
match($0, /^const ax_prim ax_prim_[a-z0-9_]+ = \{/) { home[substr($0, 23, RLENGTH - 26)] = file }
match($0, /^[A-Z_]+\([a-z0-9_]+,/) {
  name = substr($0, RSTART, RLENGTH - 1)
  sub(/^.*\(/, "", name)
  home[name] = file
}

function quoted(text) {
  gsub(/\\/, "&&", text)
  gsub(/"/, "\\\"", text)
  gsub(/\n/, "\\n\"\n    \"", text)
  return "\"" text "\\n\""
}

function fail(name, what) {
  print "specs: the primitive " name " (src/prim/prims.def): " what > "/dev/stderr"
  failed = 1
}

END {
  for (i = 1; i <= count; i++) {
    name = names[i]
    if (!(name in home))
      fail(name, "no file in the rooms of primitives has its record")
    else if ((" " spec[home[name]]) !~ ("[^a-z0-9_]" name "[^a-z0-9_]"))
      fail(name, "the comment at the head of the file with its record does not name it")
    else {
      if (!(home[name] in members)) order[++homes] = home[name]
      members[home[name]] = members[home[name]] (members[home[name]] == "" ? "" : ", ") name
    }
  }
  if (failed) exit 1
  for (i = 1; i <= homes; i++) {
    number[order[i]] = i - 1
    text = spec[order[i]]
    sub(/^\/\* */, "", text)
    sub(/ *\*\/ *$/, "", text)
    gsub(/\n   /, "\n", text)
    spec[order[i]] = text
  }
  if (form == "c") print_c()
  else print_page()
}

function print_c() {
  print "/* Made by cmake/specs.awk. */"
  print "const char *const spec_texts[] = {"
  for (i = 1; i <= homes; i++) print "    " quoted(spec[order[i]]) ","
  print "};\nconst named_spec specs[] = {"
  for (i = 1; i <= count; i++) print "    {\"" names[i] "\", " number[home[names[i]]] "},"
  print "};\nconst unsigned spec_count = sizeof specs / sizeof specs[0];"
}

function print_page() {
  print "<!-- Made of the comments over the primitives' records by cmake/specs.awk; tests/docs_test.sh says how. -->"
  print "# Primitives\n"
  print "What programs are made of: each primitive's operands and results, parameters, errors, mathematics and derivatives. The functions"
  print "of the [reference](reference/README.md) make equations of these, one or several a call; printed programs name them. `axle help NAME`"
  print "prints the same.\n"
  print "`T[d..]` is an array of any dtype and shape, `{V: axes}` what it varies over; a primitive that is linear in an operand has a"
  print "transpose, from which reverse derivatives are made.\n"
  for (i = 1; i <= homes; i++) print "## " members[order[i]] "\n\n```text\n" spec[order[i]] "\n```\n"
  print "## How accurate functions are\n"
  print "Largest errors, in units of the last place of the result: by default, and with `accuracy=highest` (`ax_accurate`). bf16 and f16 are"
  print "computed in f32 and rounded: 0.51. `axle help NAME` says what the others are; their results are the exact ones, rounded once, but"
  print "for powers of integers, which are rounded after every product. Registers of 64 and of 32 bytes give the same bits; those of 16"
  print "bytes, and other processors, other ones within the same bounds.\n"
  print "| function | f32 | f64 | f32, highest | f64, highest |\n| --- | --- | --- | --- | --- |"
  for (i = 1; i <= accuracies; i++) print accuracy[i]
}
