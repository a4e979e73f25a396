# The navigation of all HTML pages, of docs/README.md and docs/reference/README.md; ROOT/ is where the tree begins.
function row(page, name) {
  sub(/README\.md$/, "index.html", page)
  sub(/\.md$/, ".html", page)
  print "<li><a href=\"ROOT/" page "\">" name "</a></li>"
}
function title(page,    line) { # its first heading
  while ((getline line < page) > 0)
    if (line ~ /^# /) {
      close(page)
      gsub(/`/, "", line)
      gsub(/&/, "\\&amp;", line)
      return substr(line, 3)
    }
}
BEGIN {
  print "<ul>"
  row("README.md", "Axle")
  row("docs/README.md", "All documents")
}
FILENAME ~ /reference/ && !reference {
  reference = 1
  print "</ul>\n<h2>Reference</h2>\n<ul>"
  row("docs/reference/README.md", "By task and by name")
}
!reference && /^[A-Z][^.]*:$/ { print "</ul>\n<h2>" substr($0, 1, length($0) - 1) "</h2>\n<ul>" }
!reference && match($0, /^\| \[[^]]*\]\([a-z0-9_-]+\.md\)/) {
  page = substr($0, RSTART, RLENGTH)
  sub(/^.*\(/, "docs/", page)
  sub(/\)$/, "", page)
  row(page, title(page))
}
reference && match($0, /^### \[[^]]*\]\([a-z0-9_]+\.md\)/) {
  page = name = $0
  sub(/^.*\(/, "docs/reference/", page)
  sub(/\)$/, "", page)
  sub(/^### \[/, "", name)
  sub(/\].*$/, "", name)
  row(page, name)
}
END {
  print "</ul>\n<h2>Examples</h2>\n<ul>"
  row("examples/README.md", "Examples")
  row("examples/jax/README.md", "Beside JAX")
  print "</ul>\n<h2>How it is made</h2>\n<ul>"
  row("docs/design.md", "Design")
  row("docs/passes.md", "Passes")
  row("docs/performance.md", "Performance")
  print "</ul>"
}
