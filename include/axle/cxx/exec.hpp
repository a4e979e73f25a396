/* Running programs: runtimes, arrays, executables. See axle/axle.hpp and axle/exec.h. */
#ifndef AXLE_CXX_EXEC_HPP
#define AXLE_CXX_EXEC_HPP

#include <optional>

#include "axle/cxx/callback.hpp"
#include "axle/cxx/host.hpp"
#include "axle/cxx/program.hpp"

namespace axle {
inline namespace AXLE_ERRORS_ {

/* How jax.pmap's arrays lie: mesh, spec, and which dimensions parts do not have. See axle/pmap.h. */
struct pmap_sharding : ax_pmap_sharding {
  pmap_sharding() : ax_pmap_sharding() {}
  static may<pmap_sharding> parse(const std::string &text, location at = location::here()) {
    pmap_sharding made;
    ax_status status = ax_pmap_sharding_parse(text.c_str(), &made);
    return detail::give(status, std::move(made), at, "pmap_sharding_parse");
  }
  /* Of an operand or result of a pmap: `axis` of its dimensions is mapped, -1 none. */
  static may<pmap_sharding> of(std::int64_t devices, std::int64_t axis_size, std::uint32_t rank, int axis, location at = location::here()) {
    pmap_sharding made;
    ax_status status = ax_pmap_sharding_of(devices, axis_size, rank, axis, &made);
    return detail::give(status, std::move(made), at, "pmap_sharding_of");
  }
  may<std::string> text(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_pmap_sharding_print(this, &text);
    return detail::give(status, detail::taken(text), at, "pmap_sharding_print");
  }
  /* What a device has of an array of this type, and where in the whole that begins. */
  struct part_place {
    axle::type type{};
    std::vector<std::int64_t> start;
  };
  may<part_place> part(const axle::type &whole, std::int64_t device, location at = location::here()) const {
    std::int64_t start[AX_MAX_RANK] = {};
    part_place found;
    ax_status status = ax_pmap_sharding_part(this, &whole, device, &found.type, start);
    if (status == AX_OK) found.start.assign(start, start + whole.rank);
    return detail::give(status, std::move(found), at, "pmap_sharding_part");
  }
};

/* A reference to an array laid over a mesh, ready or to be made by a run that is not over. */
class array : public handle<ax_array, ax_array_retain, ax_array_release> {
 public:
  using handle::handle;
  axle::type type() const { return get() != nullptr ? *ax_array_typeof(get()) : axle::type{}; }
  axle::mesh mesh() const { return get() != nullptr ? axle::mesh(*ax_array_mesh(get())) : axle::mesh(); }
  ax_spec spec() const { return get() != nullptr ? *ax_array_spec(get()) : ax_spec{}; }

  /* The elements of the whole array, row-major, of the C++ type that its dtype is. */
  template <class T>
  may<std::vector<element<T>>> read(location at = location::here()) const {
    static_assert(dtype_of<T> != AX_NO_DTYPE, "axle: no dtype has elements of this C++ type");
    axle::type own = type();
    if (get() != nullptr && own.dtype != dtype_of<T>)
      return detail::refuse<std::vector<element<T>>>(detail::wrong(at, "array_read", std::string("the array is of ") +
          ax_dtype_name(own.dtype) + ", not of " + ax_dtype_name(dtype_of<T>)));
    std::vector<element<T>> data(get() != nullptr ? static_cast<std::size_t>(ax_type_elems(&own)) : 0);
    ax_status status = ax_array_read(get(), dtype_of<T>, data.data(), data.size() * sizeof(T));
    return detail::give(status, std::move(data), at, "array_read");
  }
  /* The one element of an array of one. */
  template <class T>
  may<T> item(location at = location::here()) const {
    axle::type own = type();
    if (get() != nullptr && (own.dtype != dtype_of<T> || ax_type_elems(&own) != 1))
      return detail::refuse<T>(detail::wrong(at, "array_read", std::string("the array is not one element of ") + ax_dtype_name(dtype_of<T>)));
    T one{};
    ax_status status = ax_array_read(get(), dtype_of<T>, &one, sizeof one);
    return detail::give(status, std::move(one), at, "array_read");
  }
  may<host_array> to_host(location at = location::here()) const {
    ax_host_array made{};
    ax_status status = ax_array_to_host(get(), &made);
    return detail::give(status, host_array(made), at, "array_to_host");
  }
  may<void> wait(location at = location::here()) const { return detail::give(ax_array_wait(get()), at, "array_wait"); }
  bool is_ready() const { return ax_array_is_ready(get()); }
  may<std::string> picture(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_array_picture(get(), &text);
    return detail::give(status, detail::taken(text), at, "array_picture");
  }

  /* The part on one device: its type, and where it begins in the whole. */
  struct shard_place {
    axle::type type{};
    std::vector<std::int64_t> start;
  };
  may<shard_place> shard(std::int64_t device, location at = location::here()) const {
    std::int64_t start[AX_MAX_RANK] = {};
    shard_place found;
    ax_status status = ax_array_shard(get(), device, &found.type, start);
    if (status == AX_OK) found.start.assign(start, start + found.type.rank);
    return detail::give(status, std::move(found), at, "array_shard");
  }
  /* A part where it lies: to be read as long as the array lives and is not donated. */
  struct part_place {
    const void *data = nullptr;
    std::size_t bytes = 0;
    std::int64_t device = 0; /* the first that holds it */
  };
  bool is_committed() const { return ax_array_is_committed(get()); }
  std::uint32_t part_count() const { return ax_array_part_count(get()); }
  may<part_place> part(std::uint32_t index, location at = location::here()) const {
    part_place found;
    ax_status status = ax_array_part(get(), index, &found.data, &found.bytes, &found.device);
    return detail::give(status, std::move(found), at, "array_part");
  }
};

namespace detail {
inline std::vector<ax_array *> raw(const list<array> &given) {
  std::vector<ax_array *> made;
  for (const array &one : given) made.push_back(one.get());
  return made;
}
}  // namespace detail

/* A reference to a compiled program. */
class executable : public handle<ax_executable, ax_executable_retain, ax_executable_release> {
  using run_function = ax_status (*)(ax_executable *, std::uint32_t, ax_array *const *, std::uint32_t, ax_array **);
  may<std::vector<array>> run_by(run_function function, const list<array> &in, location at, const char *name) const {
    std::vector<ax_array *> out(out_count());
    ax_status status = function(get(), in.count(), detail::raw(in).data(), static_cast<std::uint32_t>(out.size()), out.data());
    return detail::give(status, detail::owned<array>(out), at, name);
  }

 public:
  using handle::handle;
  axle::mesh mesh() const { return get() != nullptr ? axle::mesh(*ax_executable_mesh(get())) : axle::mesh(); }
  /* NULL: there is no such input or result. */
  const ax_spec *in_spec(std::uint32_t index) const { return ax_executable_in_spec(get(), index); }
  const ax_spec *out_spec(std::uint32_t index) const { return ax_executable_out_spec(get(), index); }
  std::uint32_t out_count() const {
    std::uint32_t count = 0;
    while (out_spec(count) != nullptr) count++;
    return count;
  }
  /* Waits; run_start does not. As many arrays as there are results. */
  may<std::vector<array>> run(const list<array> &in = {}, location at = location::here()) const { return run_by(ax_run, in, at, "run"); }
  may<std::vector<array>> run_start(const list<array> &in = {}, location at = location::here()) const {
    return run_by(ax_run_start, in, at, "run_start");
  }
  /* A copy on the devices, as input `index` wants to lie. */
  may<array> put(std::uint32_t index, const host_view &data, location at = location::here()) const {
    const axle::type own = data.type();
    ax_array *made = nullptr;
    ax_status status = ax_executable_put(get(), index, own.dtype, data.get().data,
                                         static_cast<std::size_t>(ax_type_elems(&own)) * ax_dtype_bytes(own.dtype), &made);
    return detail::give(status, array(made), at, "executable_put");
  }
  /* From host arrays to host arrays: run_host({x, view(w, {8, 4})}). */
  may<std::vector<host_array>> run_host(const list<host_view> &in = {}, location at = location::here()) const {
    std::vector<ax_host_array> raw(in.begin(), in.end()), out(out_count());
    ax_status status = ax_run_host(get(), in.count(), raw.data(), static_cast<std::uint32_t>(out.size()), out.data());
    return detail::give(status, detail::owned<host_array>(out), at, "run_host");
  }
  may<std::string> text(location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_executable_text(get(), &text);
    return detail::give(status, detail::taken(text), at, "executable_text");
  }
  may<axle::cost> cost(location at = location::here()) const {
    ax_cost raw;
    ax_status status = ax_executable_cost(get(), &raw);
    return detail::given_cost(status, raw, at, "executable_cost");
  }
  may<ax_memory> memory(location at = location::here()) const {
    ax_memory made;
    ax_status status = ax_executable_memory(get(), &made);
    return detail::give(status, std::move(made), at, "executable_memory");
  }
  double lower_seconds() const { return ax_executable_lower_seconds(get()); }
  double compile_seconds() const { return ax_executable_compile_seconds(get()); }
  /* The result in the memory of this donated input; -1: none. */
  std::int64_t donated(std::uint32_t index) const { return ax_executable_donated(get(), index); }
  /* Whether devices compute with this input; the input that this result is, -1: it is made. */
  bool keeps(std::uint32_t index) const { return ax_executable_is_kept(get(), index); }
  std::int64_t passed(std::uint32_t index) const { return ax_executable_passed(get(), index); }
  may<std::string> timeline(ax_timeline_form form = AX_TIMELINE_TEXT, location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_executable_timeline(get(), form, &text);
    return detail::give(status, detail::taken(text), at, "executable_timeline");
  }
  /* Calls see(span) for each span, an ax_timeline_span. */
  template <class See>
  may<void> visit_timeline(See &&see, location at = location::here()) const {
    auto call = [](const ax_timeline_span *span, void *context) { (*static_cast<std::remove_reference_t<See> *>(context))(*span); };
    return detail::give(ax_executable_visit_timeline(get(), call, &see), at, "executable_visit_timeline");
  }
  /* Of all processes, in process 0; axle/processes.h. Empty in the others. */
  may<std::string> gather_timeline(ax_timeline_form form = AX_TIMELINE_TEXT, location at = location::here()) const {
    char *text = nullptr;
    ax_status status = ax_executable_gather_timeline(get(), form, &text);
    return detail::give(status, detail::taken(text), at, "executable_gather_timeline");
  }
};

/* Arrays that inputs are to lie as, one for each input: compile_options::like = {x, w}. An empty one says nothing. */
class likeness {
  std::vector<array> held_;
  std::vector<ax_array *> raw_;

 public:
  likeness() = default;
  likeness(std::vector<array> arrays) : held_(std::move(arrays)) {
    for (const array &one : held_) raw_.push_back(one.get());
  }
  likeness(std::initializer_list<array> arrays) : likeness(std::vector<array>(arrays)) {}
  ax_array_list list() const { return {static_cast<std::uint32_t>(raw_.size()), raw_.data()}; } /* borrows */
};

/* As ax_compile_options: runtime.compile(program, {axle::first(4)}) donates four arguments. */
struct compile_options {
  args donate = {};
  bool keep_unused = false;
  std::vector<const char *> names = {}; /* of the inputs, for messages */
  bool reference = false;
  std::uint32_t check_numerics = 0; /* AX_CHECK_* */
  ax_subnormals subnormals = AX_SUBNORMALS_DEFAULT;
  ax_contraction contraction = AX_CONTRACTION_DEFAULT;
  bool timeline = false;
  std::optional<mesh> over = {}; /* with `shardings` */
  std::string shardings = {};    /* "data; ? -> ?"; "": as the program says */
  likeness like = {};            /* such as runs will be given: inputs of which the shardings say nothing lie as these */

  ax_compile_options raw() const { /* borrows donate's list, the names, the mesh, the text and the arrays */
    ax_compile_options made{};
    made.donate = donate;
    made.keep_unused = keep_unused;
    made.names = {static_cast<std::uint32_t>(names.size()), names.data()};
    made.reference = reference;
    made.check_numerics = check_numerics;
    made.subnormals = subnormals;
    made.contraction = contraction;
    made.timeline = timeline;
    made.mesh = over ? &*over : nullptr;
    made.shardings = shardings.empty() ? nullptr : shardings.c_str();
    made.like = like.list();
    return made;
  }
};

/* A reference to a program that is laid over its mesh, and not yet compiled. */
class lowered : public handle<ax_lowered, ax_lowered_retain, ax_lowered_release> {
 public:
  using handle::handle;
  static may<lowered> of(const program &given, const compile_options &options = {}, location at = location::here()) {
    ax_compile_options raw = options.raw();
    ax_lowered *made;
    ax_status status = ax_program_lower(given.get(), &raw, &made);
    return detail::give(status, lowered(made), at, "program_lower");
  }
  axle::program program() const { return axle::program(ax_program_retain(ax_lowered_program(get()))); }
  axle::mesh mesh() const { return get() != nullptr ? axle::mesh(*ax_lowered_mesh(get())) : axle::mesh(); }
  const ax_spec *in_spec(std::uint32_t index) const { return ax_lowered_in_spec(get(), index); }
  const ax_spec *out_spec(std::uint32_t index) const { return ax_lowered_out_spec(get(), index); }
  bool keeps(std::uint32_t index) const { return ax_lowered_is_kept(get(), index); }
  double seconds() const { return ax_lowered_seconds(get()); }
};

/* A reference to a runtime. */
class runtime : public handle<ax_runtime, ax_runtime_retain, ax_runtime_release> {
  template <class Closure>
  may<executable> jitted(Closure &&function, std::uint32_t count, const type *types, const compile_options &options, location at) const {
    if (!function.suits()) return detail::refuse<executable>(detail::wrong(at, "jit", function.mismatch()));
    ax_compile_options raw = options.raw();
    ax_executable *made;
    ax_status status = ax_jit(get(), function.fn(), count, types, &raw, &made);
    executable owned(made);
    function.rethrow();
    return detail::give(status, std::move(owned), at, "jit");
  }

 public:
  using handle::handle;
  static may<runtime> create(const ax_runtime_options &options = {}, location at = location::here()) {
    ax_runtime *made;
    ax_status status = ax_runtime_create(&options, &made);
    return detail::give(status, runtime(made), at, "runtime_create");
  }
  may<executable> compile_lowered(const lowered &given, location at = location::here()) const {
    ax_executable *made;
    ax_status status = ax_lowered_compile(get(), given.get(), &made);
    return detail::give(status, executable(made), at, "lowered_compile");
  }
  may<ax_memory> memory(const lowered &given, location at = location::here()) const {
    ax_memory made;
    ax_status status = ax_lowered_memory(get(), given.get(), &made);
    return detail::give(status, std::move(made), at, "lowered_memory");
  }
  ax_counters counters() const { return ax_runtime_counters(get()); }
  may<executable> compile(const program &compiled, const compile_options &options = {}, location at = location::here()) const {
    ax_compile_options raw = options.raw();
    ax_executable *made;
    ax_status status = ax_compile(get(), compiled.get(), &raw, &made);
    return detail::give(status, executable(made), at, "compile");
  }
  /* trace and compile in one. */
  template <class F, std::size_t N>
  may<executable> jit(F &&function, const type (&types)[N], const compile_options &options = {}, location at = location::here()) const {
    return jitted(detail::closure<std::remove_reference_t<F>, N>(function, N), N, types, options, at);
  }
  template <class F>
  may<executable> jit(F &&function, const std::vector<type> &types = {}, const compile_options &options = {},
                      location at = location::here()) const {
    auto count = static_cast<std::uint32_t>(types.size());
    return jitted(detail::closure<std::remove_reference_t<F>, detail::unknown>(function, count), count, types.data(), options, at);
  }
  /* The same for operands with the types of these: jit_host(f, {view(x, {8, 4})}). */
  template <class F>
  may<executable> jit_host(F &&function, const list<host_view> &in, const compile_options &options = {}, location at = location::here()) const {
    detail::closure<std::remove_reference_t<F>, detail::unknown> closure(function, in.count());
    if (!closure.suits()) return detail::refuse<executable>(detail::wrong(at, "jit_host", closure.mismatch()));
    const std::vector<ax_host_array> types(in.begin(), in.end());
    const ax_compile_options raw = options.raw();
    ax_executable *made;
    ax_status status = ax_jit_host(get(), closure.fn(), in.count(), types.data(), &raw, &made);
    executable owned(made);
    closure.rethrow();
    return detail::give(status, std::move(owned), at, "jit_host");
  }
  /* trace, compile and run in one, once: apply(f, {x, y}). */
  template <class F>
  may<std::vector<host_array>> apply(F &&function, const list<host_view> &in = {}, location at = location::here()) const {
    using result = std::vector<host_array>;
    detail::closure<std::remove_reference_t<F>, detail::unknown> closure(function, in.count());
    if (!closure.suits()) return detail::refuse<result>(detail::wrong(at, "apply", closure.mismatch()));
    std::vector<ax_host_array> raw(in.begin(), in.end()), out(closure.out_count());
    ax_status status = ax_apply(get(), closure.fn(), in.count(), raw.data(), closure.out_count(), out.data());
    result made = detail::owned<host_array>(out);
    closure.rethrow();
    return detail::give(status, std::move(made), at, "apply");
  }
  /* A copy on the devices of the mesh, laid out by the spec: put(mesh, "data", view(x, {8, 4})). */
  may<array> put(const mesh &mesh, const std::string &spec, const host_view &data, location at = location::here()) const {
    ax_array *made;
    ax_status status = ax_device_put(get(), &mesh, spec.c_str(), &data.get(), &made);
    return detail::give(status, array(made), at, "device_put");
  }
  /* A further dimension in front, every slice of which is the data; see ax_replicate. */
  may<array> replicate(const mesh &mesh, const std::string &spec, const host_view &data, location at = location::here()) const {
    ax_array *made;
    ax_status status = ax_replicate(get(), &mesh, spec.c_str(), &data.get(), &made);
    return detail::give(status, array(made), at, "replicate");
  }
  /* Parts that lie where they are; see ax_array_from_parts. */
  may<array> from_parts(const mesh &mesh, const std::string &spec, const type &whole, const list<ax_part> &parts,
                        location at = location::here()) const {
    ax_array *made;
    ax_status status = ax_array_from_parts(get(), &mesh, spec.c_str(), &whole, parts.count(), parts.data(), &made);
    return detail::give(status, array(made), at, "array_from_parts");
  }
  struct memory_use {
    std::size_t now = 0, peak = 0; /* bytes */
  };
  memory_use memory() const {
    memory_use use;
    ax_runtime_memory(get(), &use.now, &use.peak);
    return use;
  }
  void trim() const { ax_runtime_trim(get()); }
  /* Programs from texts find it by its name. */
  may<void> register_callback(const callback &named, location at = location::here()) const {
    return detail::give(ax_runtime_register(get(), named.get()), at, "runtime_register");
  }
  void wait() const { ax_runtime_wait(get()); }
};

}  // namespace AXLE_ERRORS_
}  // namespace axle

#endif
