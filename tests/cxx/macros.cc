/* Every macro of the C headers that C++ sees, used once. tests/cxx_macros_test.sh looks that none is missing. */
#include "check.hpp"

namespace {

AX_BODY(twice) { out[0] = ax_add(in[0], in[0]); }
static AX_BODY_OF(times, const int, factor) { out[0] = ax_mul(in[0], ax_integer(*factor)); }

/* What a body gives for 1, 2. */
std::vector<float> macro_computed(ax_fn body) {
  axle::runtime runtime = axle::runtime::create();
  const axle::type type = f32({2});
  ax_program *traced;
  CHECK(ax_trace(body, 1, &type, &traced) == AX_OK);
  axle::executable executable = runtime.compile(axle::program(traced));
  std::vector<axle::host_array> made = executable.run_host({std::vector<float>{1, 2}});
  return made[0].elements<float>();
}

void less_by(const ax_value *in, ax_value *out, void *by) { out[0] = ax_sub(ax_square(in[0]), ax_real(*static_cast<const double *>(by))); }
void two(const ax_value *in, ax_value *out, void *) { out[0] = ax_full_like(in[0], 2); }
void over(ax_fn, const ax_value *b, ax_value *out, void *by) { out[0] = ax_div(b[0], ax_real(*static_cast<const double *>(by))); }
void root(const ax_value *in, ax_value *out, void *) {
  const double four = 4;
  ax_custom_root(AX_CLOSURE(less_by, 1, 1, &four), AX_FN(two, 1, 1), AX_TANGENT_SOLVE(over, &four), 1, in, 1, out);
}

void macro_functions() {
  CHECK(macro_computed(AX_FN(root, 1, 1)) == std::vector<float>{2, 2});
  const int by = 5;
  CHECK(macro_computed(AX_FN(twice, 1, 1)) == std::vector<float>{2, 4});
  CHECK(macro_computed(AX_CLOSURE(times, 1, 1, &by)) == std::vector<float>{5, 10});
}

void macro_sets() {
  ax_args some = AX_RANGE(1, 3), first = AX_FIRST(2), all = AX_ALL_ARGS;
  CHECK(some.first == 1 && some.count == 3 && some.list == nullptr);
  CHECK(first.first == 0 && first.count == 2 && all.count == UINT32_MAX);
  ax_program *traced;
  const axle::type types[] = {f32({2}), f32({2})}; /* of which the first is used */
  CHECK(ax_trace(AX_FN(twice, 1, 1), AX_ROOM(2), types, &traced) == AX_OK);
  ax_program_release(traced);
  CHECK(ax_trace(AX_FN(twice, 1, 1), AX_ANY_ROOM, types, &traced) == AX_OK);
  ax_program_release(traced);
  unsigned many = 4;
  CHECK(ax_args(AX_FIRST(many + 1)).count == 5);
}

void macro_constants() {
  axle::program reduced = axle::trace([](axle::value x) {
    return axle::value(ax_slice_in_dim(ax_reduce_sum(x.get(), AX_ALL_DIMS, true), 0, AX_END, 1, 0));
  }, {f32({3})});
  CHECK(reduced.out_type(0).rank == 1);
  CHECK(AX_SPACE_GMEM == AX_SPACE_HBM && axle::hbm(axle::f32, {2}).space == AX_SPACE_GMEM);
  CHECK(axle::vmem(axle::s32, {2, 3}).space == AX_SPACE_VMEM && axle::vmem(axle::s32, {2, 3}).rank == 2);
  CHECK(axle::smem(axle::s32).space == AX_SPACE_SMEM && axle::smem(axle::s32).rank == 0);
}

/* Collectives in two parts, as C says them. */
void macro_starts() {
  axle::mesh mesh = axle::mesh::parse("d=4");
  axle::program program = axle::trace([&](axle::value whole) {
    return axle::shard_map(mesh, "d -> d", [](axle::value given) {
      const ax_value x = given.get();
      const int64_t round[][2] = {{0, 1}, {1, 0}};
      ax_value sum = ax_done(ax_start(ax_psum(x, "d")));
      sum = ax_add(sum, ax_done(ax_psum_start(x, "d")));
      sum = ax_add(sum, ax_done(ax_pbroadcast_start(x, "d", 0)));
      sum = ax_add(sum, ax_done(ax_ppermute_start(x, "d", 2, round)));
      ax_value rows = ax_done(ax_all_gather_start(x, "d", 0, true));
      sum = ax_add(sum, ax_done(ax_psum_scatter_start(rows, "d", 0, true)));
      sum = ax_add(sum, ax_slice_in_dim(ax_done(ax_all_to_all_start(rows, "d", 0, 0, true)), 0, 1, 1, 0));
      return axle::value(sum);
    }, {whole});
  }, {f32({4})});
  std::string text = program.print();
  for (const char *part : {"psum", "pbroadcast", "ppermute", "all_gather", "psum_scatter", "all_to_all", "done"}) check_has(text, part);
}

/* Blocks, as C says them. */
void macro_blocks() {
  axle::program program = axle::trace([](axle::value given) {
    ax_value x = given.get(), rows;
    AX_LOOP (i, 0, 2, &x) AX_SCAN (row, x) ax_collect(&rows, ax_neg(ax_each(x)));
    AX_SCAN_REVERSED (row, x) ax_collect(&rows, row.get());
    ax_value first = ax_reduce_max(x, AX_ALL_DIMS, false);
    AX_WHILE (ax_lt(first, ax_real(3)), &first) first = ax_add(first, ax_real(1));
    AX_IF (ax_gt(first, ax_real(3)), &rows) rows = ax_neg(rows);
    AX_ELSE rows = ax_exp(rows);
    return axle::value(rows);
  }, {f32({4})});
  std::string text = program.print();
  for (const char *part : {"scan", "while", "cond", "reverse=true"}) check_has(text, part);
}

void macro_attributes() {
  AX_UNUSED int nothing;
  struct local {
    static AX_MUST_USE int wanted() { return 1; }
    static AX_PRINTF(1, 2) int print(const char *format, ...) { return format != nullptr; }
  };
  CHECK(local::wanted() == 1 && local::print("%d", 1) == 1);
}

}  // namespace

void macros_test() {
  macro_functions();
  macro_sets();
  macro_constants();
  macro_starts();
  macro_blocks();
  macro_attributes();
}
