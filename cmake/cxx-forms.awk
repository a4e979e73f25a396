# How C++ calls what C has: a line "ax_name<TAB>declaration" for each, at most two a name.
#   awk -f cmake/cxx-forms.awk include/axle/cxx/a.hpp .. functions.hpp        functions.hpp is what cmake/cxx makes
#
# A declaration stands at the left margin, or in a class behind two blanks, up to its body. ax_grad is axle::grad or, where the name is
# a word of C++, axle::grad_; ax_program_grad is axle::program::grad; ax_jit is axle::runtime::jit; and ax_device_put, which has no such
# name, is the first that has a part of it and calls it in its body, axle::runtime::put.
# Left out are the namespace `detail`, a last parameter `location` and, of two forms, the one for a list that is written out.

FNR == 1 {
  class = ""
  in_detail = hidden = open = 0
}
/^\}?namespace detail \{/ { in_detail = 1 }
/^\}  \/\/ namespace detail/ { in_detail = 0 }
/^(class|struct) .*\{/ && !/;/ {
  sub(/\[\[nodiscard\]\] /, "")
  class = $2
  hidden = 0
}
/^\};/ { class = "" }
/^ *(public|private|protected):/ { hidden = !/public/ }
in_detail || (class != "" && hidden) { next }

!open && (class == "" ? /^[A-Za-z]/ : /^  [A-Za-z]/) && /\(/ {
  if (/^ *(template|class|struct|using|namespace|friend|static_assert|return|explicit|extern|if|for|public|private)[ :(<]/ || /= delete|^#/) next
  text = ""
  open = 1
}
open {
  line = $0
  sub(/^ +/, "", line)
  text = text (text == "" ? "" : " ") line
  bare = text
  opened = gsub(/[{(]/, "&", bare)
  closed = gsub(/[})]/, "&", bare)
  if (opened != closed || text !~ /[;}]$/) next
  open = 0
  take(text)
}

function declared(text,    i, c, depth) { # up to the body: a { outside of brackets
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    depth += (c == "(") - (c == ")")
    if (depth == 0 && (c == "{" || c == ";" || substr(text, i, 3) == " : ")) return substr(text, 1, i - 1)
  }
  return text
}

function take(text,    form, name, body, word) {
  form = declared(text)
  body = substr(text, length(form) + 1)
  if (form ~ /\(&[a-z]+\)\[/) return
  gsub(/,? ?(axle::)?location [a-z]+( = [^()]*\(\))?/, "", form)
  gsub(/(axle::)?detail::text &/, "std::string \\&", form)
  gsub(/axle::/, "", form)
  if (!match(form, /(operator[^a-z(]+|[a-z][a-z0-9_]*)\(/)) return
  name = substr(form, RSTART, RLENGTH - 1)
  form = result(substr(form, 1, RSTART - 1)) "axle::" (class == "" || name ~ /^operator/ ? "" : class "::") substr(form, RSTART)
  sub(/ +$/, "", form)
  if (form ~ /^axle::[a-z_]+::[a-z_]+\(/) return # a constructor
  sub(/_$/, "", name)
  keep("ax_" (class == "" ? "" : class "_") name, form, 1)
  if (class == "runtime" || class == "executable") keep("ax_" name, form, 0)
  while (match(body, /ax_[a-z0-9_]+/)) {
    word = substr(body, RSTART, RLENGTH)
    body = substr(body, RSTART + RLENGTH)
    if ((word "_") ~ ("_" name "_")) keep(word, form, 0)
  }
}

function result(type) { # may<T> is T, or axle::result<T> where there are no exceptions
  sub(/^(inline |static )*/, "", type)
  if (sub(/^may</, "", type)) sub(/> $/, " ", type)
  return type
}

function keep(name, form, by_name) {
  if (form ~ /(^| )_|detail::/ || (name, form) in had) return
  had[name, form] = 1
  if (by_name && count[name, 1]++ < 2) forms[name, 1] = forms[name, 1] name "\t" form "\n"
  if (!by_name && count[name, 0]++ < 1) forms[name, 0] = name "\t" form "\n"
  if (!(name in seen)) order[++names] = name
  seen[name] = 1
}

END { for (i = 1; i <= names; i++) printf "%s", ((order[i], 1) in forms) ? forms[order[i], 1] : forms[order[i], 0] }
