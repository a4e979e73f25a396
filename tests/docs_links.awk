# The links of Markdown pages: prints "PAGE: LINK" for an anchor that its page has not, and "PAGE<tab>LINK<tab>FILE" for each
# file that a link leads to, whose existence the caller checks. From the source root.
#   awk -f tests/docs_links.awk README.md docs/a.md docs/reference/b.md ..
#
# Anchors are <a id="..">, and headings as GitHub names them.

FNR == 1 {
  inside = 0
  known[FILENAME] = 1
}
/^ *```/ {
  inside = !inside
  next
}
inside { next }
{
  rest = $0
  while (match(rest, /<a id="[^"]*"/)) {
    anchors[FILENAME "#" substr(rest, RSTART + 7, RLENGTH - 8)] = 1
    rest = substr(rest, RSTART + RLENGTH)
  }
}
/^#+ / { anchors[FILENAME "#" slug($0)] = 1 }
{
  rest = $0
  gsub(/`[^`]*`/, "code", rest)
  while (match(rest, /\]\([^) ]*\)/)) {
    link = substr(rest, RSTART + 2, RLENGTH - 3)
    rest = substr(rest, RSTART + RLENGTH)
    if (link !~ /^[a-z]+:/) links[++count] = FILENAME "\t" link
  }
}
END {
  for (i = 1; i <= count; i++) {
    split(links[i], part, "\t")
    split(part[2], place, "#")
    file = place[1] == "" ? part[1] : resolved(part[1], place[1])
    print part[1] "\t" part[2] "\t" file
    if (file in known && place[2] != "" && !((file "#" place[2]) in anchors)) print part[1] ": " part[2]
  }
}

function slug(heading) {
  sub(/^#+ /, "", heading)
  while (match(heading, /\]\([^)]*\)/)) heading = substr(heading, 1, RSTART - 1) substr(heading, RSTART + RLENGTH)
  heading = tolower(heading)
  gsub(/[^a-z0-9_ -]/, "", heading)
  gsub(/ /, "-", heading)
  return heading
}

function resolved(page, link) {
  sub(/[^\/]*$/, "", page)
  link = page link
  while (match(link, /[^\/.][^\/]*\/\.\.\//)) link = substr(link, 1, RSTART - 1) substr(link, RSTART + RLENGTH)
  return link
}
