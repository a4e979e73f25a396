# A file as a page, with an anchor L1, L2, .. for each line:   awk -v name=examples/a.c -f cmake/html/source.awk examples/a.c
BEGIN { print "<h1>" name "</h1>\n<pre class=\"source\"><code>" }
{
  gsub(/&/, "\\&amp;")
  gsub(/</, "\\&lt;")
  printf "<span id=\"L%d\"><a href=\"#L%d\">%4d</a>  %s</span>\n", FNR, FNR, FNR, $0
}
END { print "</code></pre>" }
