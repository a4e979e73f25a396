# The functions of C in C++, axle/cxx/functions.hpp:   awk -f cmake/cxx.awk include/axle/cxx/a.hpp ... include/axle/a.h ...
#
# Every function that the C headers declare and that no header of C++ calls by hand becomes an inline function of its name without ax_. What C
# says with a count and a list, a text, an object or a last `out` is said as C++ does (take_parameter, end_function); what this knows no better
# form for is handed on as C has it. So a new function of C is there in C++ at once, and one that deserves more is written by hand.
# With -v listed=1 it prints the functions that have no place in C++; why is said below.
#
# Default arguments are those that JAX has:
BEGIN {
  split("reduce_sum.axes=all_dims reduce_sum.keepdims=false reduce_mean.axes=all_dims reduce_mean.keepdims=false reduce_max.axes=all_dims " \
        "reduce_max.keepdims=false reduce_min.axes=all_dims reduce_min.keepdims=false reduce_or.axes=all_dims reduce_or.keepdims=false " \
        "reduce_and.axes=all_dims reduce_and.keepdims=false logsumexp.axes=all_dims logsumexp.keepdims=false squeeze.dimensions=all_dims " \
        "cumsum.axis=0 cumsum.reverse=false argmax.index_dtype=AX_S32 softmax.axis=-1 log_softmax.axis=-1 one_hot.dtype=AX_F32 sort.dimension=-1 " \
        "argmin.index_dtype=AX_S32 reduce_prod.axes=all_dims reduce_prod.keepdims=false reduce_xor.axes=all_dims reduce_xor.keepdims=false " \
        "cumprod.axis=0 cumprod.reverse=false cummax.axis=0 cummax.reverse=false cummin.axis=0 cummin.reverse=false " \
        "cumlogsumexp.axis=0 cumlogsumexp.reverse=false " \
        "elu.alpha=1.0 celu.alpha=1.0 leaky_relu.negative_slope=0.01 squareplus.b=4.0 glu.axis=-1 layer_norm.axes={-1} " \
        "layer_norm.epsilon=1e-6 rms_norm.axes={-1} rms_norm.epsilon=1e-6 softmax_where.axes={-1} log_softmax_where.axes={-1} " \
        "logsumexp_where.axes=all_dims logsumexp_where.keepdims=false " \
        "linspace.endpoint=true arange.step=1.0 tri.k=0 eye.k=0 tril.k=0 triu.k=0 diag.k=0 diagonal.offset=0 diagonal.axis1=0 " \
        "diagonal.axis2=1 matrix_trace.offset=0 matrix_trace.axis1=0 matrix_trace.axis2=1 meshgrid.ij=false flip.axes=all_dims rot90.k=1 " \
        "rot90.axis1=0 rot90.axis2=1 array_split.axis=0 isclose.rtol=1e-5 isclose.atol=1e-8 isclose.equal_nan=false diff.n=1 diff.axis=-1 " \
        "cross.axis=-1 cov.rowvar=true cov.ddof=1.0 corrcoef.rowvar=true searchsorted.right=false digitize.right=false " \
        "image_resize.antialias=true var.axes=all_dims var.ddof=0.0 var.keepdims=false std.axes=all_dims std.ddof=0.0 std.keepdims=false " \
        "nanvar.axes=all_dims nanvar.ddof=0.0 nanvar.keepdims=false nanstd.axes=all_dims nanstd.ddof=0.0 nanstd.keepdims=false " \
        "var_where.axes=all_dims var_where.ddof=0.0 var_where.keepdims=false nansum.axes=all_dims nansum.keepdims=false " \
        "nanmean.axes=all_dims nanmean.keepdims=false nanmax.axes=all_dims nanmax.keepdims=false nanmin.axes=all_dims " \
        "nanmin.keepdims=false ptp.axes=all_dims ptp.keepdims=false median.axes=all_dims median.keepdims=false nanmedian.axes=all_dims " \
        "nanmedian.keepdims=false average.axes=all_dims average.keepdims=false reduce_sum_where.axes=all_dims " \
        "reduce_sum_where.keepdims=false reduce_mean_where.axes=all_dims reduce_mean_where.keepdims=false reduce_max_where.axes=all_dims " \
        "reduce_max_where.keepdims=false reduce_min_where.axes=all_dims reduce_min_where.keepdims=false quantile.axes=all_dims " \
        "quantile.method=nullptr quantile.keepdims=false percentile.axes=all_dims percentile.method=nullptr percentile.keepdims=false " \
        "nanquantile.axes=all_dims nanquantile.method=nullptr nanquantile.keepdims=false " \
        "argsort.dimension=-1 allclose.rtol=1e-5 allclose.atol=1e-8 concatenate.dimension=0 stack.dimension=0 iota.dimension=0 at.dimension=0 " \
        "dynamic_at.dimension=0 dynamic_at_set.dimension=0 slice_in_dim.stride=1 slice_in_dim.dimension=0 dynamic_slice_in_dim.dimension=0 " \
        "dynamic_update_slice_in_dim.dimension=0 take.axis=0 take_with.axis=0 at_set.axis=0 at_add.axis=0 at_mul.axis=0 at_min.axis=0 at_max.axis=0 " \
        "all_gather.dimension=0 all_gather.tiled=false all_gather_invariant.dimension=0 all_gather_invariant.tiled=false " \
        "all_gather_reduced.dimension=0 all_gather_reduced.tiled=false psum_scatter.dimension=0 psum_scatter.tiled=false all_to_all.tiled=false " \
        "unreduced_psum_scatter.dimension=0 unreduced_psum_scatter.tiled=false vary_unreduced_cast.kind=AX_UNREDUCED_SUM " \
        "semaphore_type.dims={} dma_semaphore_type.dims={} barrier_type.dims={} semaphore_signal.to=nullptr " \
        "fft.axis=-1 ifft.axis=-1 rfft.axis=-1 irfft.n=0 irfft.axis=-1 fftn.axes=all_dims ifftn.axes=all_dims rfftn.axes=all_dims " \
        "irfftn.n=0 irfftn.axes=all_dims fftfreq.spacing=1.0 rfftfreq.spacing=1.0 fftshift.axes=all_dims ifftshift.axes=all_dims " \
        "cholesky.symmetrize_input=true triangular_solve.left_side=false triangular_solve.lower=false triangular_solve.transpose_a=false " \
        "triangular_solve.conjugate_a=false triangular_solve.unit_diagonal=false " \
        "random_bernoulli.mode=AX_RANDOM_LOW random_gumbel.mode=AX_RANDOM_LOW random_categorical.axis=-1 random_categorical.dims={} " \
        "random_categorical.replace=true random_categorical.mode=AX_RANDOM_LOW random_choice.axis=0 random_choice.mode=AX_RANDOM_LOW " \
        "random_permutation.axis=0 random_permutation.independent=false random_multivariate_normal.method=AX_RANDOM_CHOLESKY random_orthogonal.m=0 " \
        "linear_solve.transpose_a=false ormqr.left=true ormqr.transpose=false " \
        "cholesky_solve.lower=false lu_solve.transpose_a=false pinv.rtol=-1 pinvh.rtol=-1 tensorinv.ind=2 cond.ord=nullptr vecdot.axis=-1 matrix_rank.tolerance=-1 norm.axes=all_dims norm.keepdims=false " \
        "vector_norm.ord=2 vector_norm.axes=all_dims vector_norm.keepdims=false matrix_norm.ord=nullptr matrix_norm.keepdims=false", pairs, " ")
  for (i in pairs) {
    at = index(pairs[i], "=")
    default_of[substr(pairs[i], 1, at - 1)] = substr(pairs[i], at + 1)
  }
  split("and and_eq asm auto bool break case catch class compl const continue default delete do double else enum explicit export extern false float for " \
        "friend goto if inline int long mutable namespace new not operator or private protected public register return short signed sizeof static " \
        "struct switch template this throw true try typedef typename union unsigned using virtual void volatile while xor", pairs, " ")
  for (i in pairs) reserved[pairs[i]] = 1

  reason["ax_call_sharded"] = "what AX_SHARDED of C calls: a lambda that calls shard_map takes its place"
  reason["ax_call_differentiated"] = "what AX_GRAD of C calls: a lambda that calls grad takes its place"
  reason["ax_call_vmapped"] = "what AX_VMAPPED of C calls: a lambda that calls vmap takes its place"
  reason["ax_call_pmapped"] = "what AX_PMAPPED of C calls: a lambda that calls pmap takes its place"
  split("ax_loop_block ax_scan_block ax_while_block ax_if_block ax_block_next ax_block_enter ax_block_test ax_block_left", pairs, " ")
  for (i in pairs) reason[pairs[i]] = "AX_LOOP and the like, which C++ has too, call it"
  reason["ax_start_with"] = "psum_start and the like begin with it"
  reason["ax_print_to"] = "it is handed on by its address, as ax_runtime_options.print"
  reason["ax_device_put_data"] = "runtime.put takes a view of the data"
  reason["ax_tree_map"] = reason["ax_tree_zip"] = reason["ax_tree_reduce"] = "leaves are a std::vector: loops go over it"
}

function is_by_hand(name) { return name in by_hand }
function standard(function_name, name) { # the default of a parameter
  sub(/_$/, "", name)
  return default_of[function_name "." name]
}
function named(name) { return name in reserved ? name "_" : name }

# --- Reading ---

FNR == 1 {
  text = ""
  commented = in_type = in_body = 0
  is_cxx = FILENAME ~ /\.hpp$/
  header = FILENAME
  sub(/^.*axle\//, "axle/", header)
}

{ # without comments
  line = $0
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
  sub(/ \/\/ .*$/, "", line)
  if (commented) {
    if (!sub(/^.*\*\//, "", line)) next
    commented = 0
  }
  if (line ~ /\/\*/) {
    sub(/\/\*.*$/, "", line)
    commented = 1
  }
  sub(/ +$/, "", line)
}

is_cxx { # what is written by hand: calls, handles with .get(), options with .raw(), names of types
  if (match(line, /^(class|struct|using) (\[\[nodiscard\]\] )?[a-z_]+/)) {
    word = substr(line, RSTART, RLENGTH)
    sub(/^.* /, "", word)
    reserved[word] = 1
  }
  while (match(line, /ax_[a-z0-9_]+ \*get\(\)/) || match(line, /(handle|unique)<ax_[a-z0-9_]+/)) {
    word = substr(line, RSTART, RLENGTH)
    match(word, /ax_[a-z0-9_]+/)
    is_handle[substr(word, RSTART, RLENGTH)] = 1
    sub(/ax_[a-z0-9_]+ \*get\(\)|(handle|unique)</, "", line)
  }
  if (match(line, /ax_[a-z0-9_]+ raw\(\) const/)) {
    word = substr(line, RSTART, RLENGTH)
    sub(/ .*/, "", word)
    has_raw[word] = 1
  }
  while (match(line, /ax_[a-z0-9_]+/)) {
    by_hand[substr(line, RSTART, RLENGTH)] = 1
    line = substr(line, RSTART + RLENGTH)
  }
  next
}

text ~ /^#define/ || (text == "" && line ~ /^#define ax_/) { # which operands may be numbers, and which calls say their line
  text = text line
  if (sub(/ *\\$/, " ", text)) next
  read_macro(text)
  text = ""
  next
}
/^#/ {
  while (/\\$/ && (getline) > 0) continue
  next
}
line ~ /^static inline/ { in_body = 1 }
in_body {
  if (line ~ /^\}/ || line ~ /\} *$/) in_body = 0
  next
}
line ~ /^(typedef|enum|struct|extern|\})/ {
  in_type = line ~ /\{[^}]*$/ && line !~ /^extern/
  if (line ~ /\(\*/ && line !~ /; *$/) in_type = 1
  next
}
in_type { next }
text == "" && line !~ /^[A-Za-z].*\(/ { next }
{
  sub(/^ +/, "", line)
  text = text (text == "" ? "" : " ") line
  if (text !~ /; *$/) next
  sub(/ *; *$/, "", text)
  gsub(/AX_MUST_USE |AX_PRINTF\([^)]*\)/, "", text)
  sub(/ +$/, "", text)
  read_prototype(text)
  text = ""
}

function read_prototype(text,    name, at) {
  match(text, /ax_[a-z0-9_]+\(/)
  name = substr(text, RSTART, RLENGTH - 1)
  result_of[name] = substr(text, 1, RSTART - 1)
  sub(/ +$/, "", result_of[name])
  text = substr(text, RSTART + RLENGTH)
  sub(/\)$/, "", text)
  parameters_of[name] = text == "void" ? "" : text
  header_of[name] = header
  names[++name_count] = name
}

# Splits at the commas that stand in no brackets.
function split_list(text, parts,    i, c, depth, count, from) {
  if (text == "") return 0
  from = 1
  for (i = 1; i <= length(text); i++) {
    c = substr(text, i, 1)
    depth += (c == "(") - (c == ")")
    if (c == "," && depth == 0) {
      parts[++count] = substr(text, from, i - from)
      from = i + 1
    }
  }
  parts[++count] = substr(text, from)
  for (i = 1; i <= count; i++) gsub(/^ +| +$/, "", parts[i])
  return count
}

function read_macro(text,    name, parts, count, i) {
  match(text, /ax_[a-z0-9_]+/)
  name = substr(text, RSTART, RLENGTH)
  if (match(text, /AX_STARTED\("[a-z_]+", ax_[a-z0-9_]+\(ax_start_with/)) { # of a collective: it begins, and another ends it
    text = substr(text, RSTART, RLENGTH)
    sub(/^.*", /, "", text)
    sub(/\(.*/, "", text)
    started_of[name] = text
    return
  }
  if (text !~ /AX_LINED|AX_CALL/) return
  is_lined[name] = 1
  if (!match(text, /AX_LINED[A-Z_]*\([a-z0-9_]+, /)) return
  text = substr(text, RSTART + RLENGTH)
  sub(/\) *$/, "", text)
  count = split_list(text, parts)
  for (i = 1; i <= count; i++)
    if (parts[i] ~ /^AX_X\(/) is_number[name, i] = 1
}

# --- Writing ---

function add_parameter(type, name, given) {
  cxx_types[++cxx_count] = type
  cxx_names[cxx_count] = name
  cxx_defaults[cxx_count] = given
}
function pass(argument) { passed = passed (passed == "" ? "" : ", ") argument }

# Takes parameter i of `count`; gives how many of C's it was.
function take_parameter(function_name, parts, i, count,    type, name, bare, next_name, next_type) {
  name = parts[i]
  if (name ~ /\(\*/) { # the pairs of a count come with it
    add_parameter("", name, "")
    match(name, /\(\*[a-z0-9_]+\)/)
    pass(substr(name, RSTART + 2, RLENGTH - 3))
    return 1
  }
  match(name, /[a-z0-9_]+$/)
  type = substr(name, 1, RSTART - 1)
  name = named(substr(name, RSTART))
  sub(/ +$/, "", type)
  bare = bare_name = substr(function_name, 4)
  if (type == "uint32_t" && i < count && (i + 1 == count || parts[i + 2] !~ /^const [^*]*\*[a-z]|\(\*/ || parts[i + 2] ~ /^const (char|ax_[a-z_]*options) /)) {
    next_name = parts[i + 1] # a list, and no other of its length after it
    match(next_name, /[a-z0-9_]+\)?(\[2\])?$/)
    next_type = substr(next_name, 1, RSTART - 1)
    next_name = named(substr(next_name, RSTART))
    if (next_type == "const int64_t *") {
      add_parameter("const axle::dims &", next_name, standard(bare, next_name))
      pass(next_name ".count()")
      pass(next_name ".data()")
      return 2
    }
    if (next_type == "const ax_value *") {
      add_parameter("const axle::list<axle::value> &", next_name, "")
      locals = locals "  const axle::values " next_name "_(" next_name ".data(), " next_name ".size());\n"
      pass(next_name "_.count()")
      pass(next_name "_.data()")
      return 2
    }
    if (next_type == "const int64_t (*") {
      sub(/\).*/, "", next_name)
      next_name = named(next_name)
      add_parameter("const axle::pairs &", next_name, "")
      pass(next_name ".count()")
      pass("axle::detail::raw(" next_name ")")
      return 2
    }
  }
  if (type == "uint32_t" && i < count && name ~ /count$|rank$/ && parts[i + 1] ~ /\*/) counted_to = i + 1 # lists of one length, as C has them
  else if (counted_to == i && i < count && parts[i + 1] ~ /\*/) counted_to = i + 1
  if (counted_to == i) {
    add_parameter(type, name, "")
    pass(name)
  } else if (type == "ax_value") {
    add_parameter((function_name, i) in is_number ? "axle::operand " : "axle::input ", name, "")
    if (first == "") first = name
    pass(name)
  } else if (type == "const char *") {
    add_parameter("const axle::detail::text &", name, "")
    pass(name)
  } else if (type ~ /^(const )?ax_[a-z0-9_]+ \*$/) {
    sub(/^const /, "", type)
    sub(/ \*$/, "", type)
    take_pointer(type, name, parts[i] ~ /^const /)
  } else {
    add_parameter(type (type ~ /\*$/ ? "" : " "), name, standard(bare, name))
    pass(name)
  }
  return 1
}

function take_pointer(type, name, is_const) {
  if (type in is_handle) {
    add_parameter("const axle::" substr(type, 4) " &", name, "")
    pass(name ".get()")
  } else if (type in has_raw) {
    add_parameter("const axle::" substr(type, 4) " &", name, "{}")
    locals = locals "  const " type " " name "_ = " name ".raw();\n"
    pass("&" name "_")
  } else if (is_const && type == "ax_host_array") {
    add_parameter("const axle::host_view &", name, "")
    pass("&" name ".get()")
  } else if (is_const && name == "options") {
    add_parameter("const " type " &", name, "{}")
    pass("&" name)
  } else if (is_const && (type == "ax_type" || type == "ax_mesh" || type == "ax_schedule" || type == "ax_optimizer")) {
    add_parameter("const " type " &", name, "")
    pass("&" name)
  } else {
    add_parameter((is_const ? "const " : "") type " *", name, standard(bare_name, name))
    pass(name)
  }
}

# The parameters in C++: defaults stand at the end alone.
function parameter_text(    i, from, made) {
  for (from = cxx_count + 1; from > 1 && cxx_defaults[from - 1] != ""; from--) continue
  for (i = 1; i <= cxx_count; i++)
    made = made (i > 1 ? ", " : "") cxx_types[i] cxx_names[i] (i >= from ? " = " cxx_defaults[i] : "")
  return made
}

function write_function(name, cxx, base,    parts, count, i, out, result, call, place, parameters) {
  count = split_list(parameters_of[base], parts)
  cxx_count = 0
  counted_to = 0
  passed = locals = first = out = ""
  result = result_of[base]
  if (result == "ax_status" && count > 0 && parts[count] ~ /^(ax_[a-z0-9_]+|char) \*\*?out$/) {
    out = parts[count--]
    sub(/ \*\*?out$/, "", out)
    if (parts[count + 1] ~ /\*\*/ && out != "char" && !(out in is_handle)) {
      out = ""
      count++
    }
  }
  for (i = 1; i <= count; ) i += take_parameter(base, parts, i, count)
  if (name != base) {
    sub(/^[a-z0-9_]+/, "ax_start_with(&)", passed)
    first = cxx_names[1]
    cxx_types[1] = "axle::input "
  }
  parameters = parameter_text()
  place = first
  if (result == "ax_status" || ((name in is_lined || name != base || result == "ax_value") && first == "")) {
    parameters = parameters (parameters == "" ? "" : ", ") "axle::location where = axle::location::here()"
    place = "where"
  }
  call = "::" base "(" passed (out == "" ? "" : (passed == "" ? "" : ", ") "&made") ")"
  printf "inline %s%s(%s) {\n%s", spaced(cxx_result(result, out)), cxx, parameters, locals
  if (result == "ax_status") write_status(name, out, call)
  else if (name != base) printf "  const axle::value made = axle::detail::lined(%s, %s, \"%s\");\n  return axle::detail::started(made, %s, \"%s\");\n", call, place, cxx, place, cxx
  else if (result == "ax_value") printf "  return axle::detail::lined(%s, %s, \"%s\");\n", call, place, substr(name, 4)
  else if (!(name in is_lined)) printf "  %s%s;\n", result == "void" ? "" : "return ", call
  else {
    printf "  %s%s;\n", result == "void" ? "" : "const auto made = ", call
    printf "  axle::detail::stamp(%s, \"%s\");\n", place == "where" ? place : place ".at()", substr(name, 4)
    if (result != "void") print "  return made;"
  }
  print "}"
}

function spaced(type) { return type (type ~ /\*$/ ? "" : " ") }
function cxx_result(result, out) {
  if (result == "ax_value") return "axle::value"
  if (result != "ax_status") return result
  if (out == "") return "axle::may<void>"
  return "axle::may<" cxx_out(out) ">"
}
function cxx_out(out) {
  if (out == "char") return "std::string"
  if (out in is_handle || out == "ax_mesh" || out == "ax_host_array") return "axle::" substr(out, 4)
  return out
}

function write_status(name, out, call,    made) {
  if (out == "") {
    printf "  return axle::detail::give(%s, where, \"%s\");\n", call, substr(name, 4)
    return
  }
  if (out == "char" || out in is_handle) printf "  %s *made = nullptr;\n", out
  else printf "  %s made{};\n", out
  printf "  const ax_status status = %s;\n", call
  made = out == "char" ? "axle::detail::taken(made)" : cxx_out(out) == out ? "std::move(made)" : cxx_out(out) "(made)"
  printf "  return axle::detail::give(status, %s, where, \"%s\");\n", made, substr(name, 4)
}

function write_all(    i, name, last, starts, cxx) {
  print "/* The functions of the C headers that need nothing but other names and lists. Made by cmake/cxx.awk; see axle/axle.hpp. */"
  print "#ifndef AXLE_CXX_FUNCTIONS_HPP\n#define AXLE_CXX_FUNCTIONS_HPP\n"
  for (i = 1; i <= include_count; i++) print "#include \"" includes[i] "\""
  print "\nnamespace axle {\ninline namespace AXLE_ERRORS_ {"
  for (i = 1; i <= name_count; i++) {
    name = names[i]
    for (starts in started_of) {
      if (started_of[starts] != name) continue
      section(name)
      write_function(starts, substr(starts, 4), name)
    }
    if (is_by_hand(name) || name in reason || parameters_of[name] ~ /\.\.\.$/) continue
    section(name)
    cxx = named(substr(name, 4))
    write_function(name, cxx, name)
  }
  print "\n}  // namespace AXLE_ERRORS_\n}  // namespace axle\n\n#endif"
}
function section(name) {
  if (header_of[name] != last_header) printf "\n/* --- %s --- */\n\n", header_of[name]
  last_header = header_of[name]
}

END {
  if (listed) {
    for (name in reason) print name
    exit
  }
  for (i = 1; i < ARGC; i++) {
    if (ARGV[i] !~ /\.hpp$/) continue
    file = ARGV[i]
    sub(/^.*axle\//, "axle/", file)
    includes[++include_count] = file
  }
  write_all()
}
