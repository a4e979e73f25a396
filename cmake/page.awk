# A page of docs/ as it ought to be: each transcript with what its commands print now, all else as it stands.
#   awk -v work=FOLDER -v blocks=FOLDER -f cmake/page.awk docs/page.md
#
# Transcripts are blocks marked `console`: a line "$ command" is run by sh in the folder `work`, and what it prints on both outputs, and
# "exit N" when it fails, stands below it. A block under the line "<!-- file: NAME -->" is written to that file there. Blocks marked `c`
# are written to blocks/1.c and so on, and those marked `cpp` and `axle` to blocks/1.cpp and blocks/1.axle.

function run(command,    line, shell) {
  shell = "cd " work " && { " command "\n} 2>&1 </dev/null || echo \"exit $?\""
  while ((shell | getline line) > 0) print line
  close(shell)
}

/^<!-- file: .* -->$/ {
  file = work "/" $3
  print
  next
}
/^```/ && !inside {
  inside = 1
  kind = substr($0, 4)
  if (kind == "c" || kind == "cpp" || kind == "axle") target = blocks "/" ++block "." kind
  else target = ""
  print
  next
}
/^```$/ && inside {
  if (target != "") close(target)
  if (file != "") close(file)
  inside = 0
  file = ""
  print
  next
}
inside && kind == "console" {
  if (/^\$ /) {
    print
    run(substr($0, 3))
  }
  next
}
inside {
  if (target != "") print > target
  if (file != "") print > file
}
{ print }
