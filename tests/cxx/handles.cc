/* Handles: copied, moved, assigned, empty; arrays, files and trees through them. */
#include "check.hpp"

#include <type_traits>

using axle::value;

namespace {

template <class Handle>
void references(Handle held) {
  auto *object = held.get();
  CHECK(object != nullptr && held);
  Handle copy = held, none;
  CHECK(copy.get() == object && held.get() == object && !none);
  Handle moved = std::move(copy);
  CHECK(moved.get() == object && !copy);
  Handle &self = moved;
  moved = self;
  CHECK(moved.get() == object);
  moved = std::move(self);
  CHECK(moved.get() == object);
  none = moved;
  moved = std::move(copy); /* nothing */
  CHECK(none.get() == object && !moved);
  Handle again = copy; /* a copy of nothing */
  CHECK(!again);
  Handle owned(none.release());
  CHECK(owned.get() == object && !none);
  static_assert(std::is_nothrow_move_constructible<Handle>::value && std::is_nothrow_move_assignable<Handle>::value, "in vectors");
}

/* Those that have one owner. */
template <class Owner>
void owners(Owner held) {
  static_assert(!std::is_copy_constructible<Owner>::value && std::is_nothrow_move_constructible<Owner>::value, "one owner");
  auto *object = held.get();
  Owner moved = std::move(held);
  CHECK(moved.get() == object && !held);
  Owner &self = moved;
  moved = std::move(self);
  CHECK(moved.get() == object);
  held = std::move(moved);
  CHECK(held.get() == object && !moved);
}

template <class Call>
void refused(Call call, ax_status status, const std::string &part, axle::location at = axle::location::here()) {
  try {
    call();
    check(false, "the call fails", at);
  } catch (const axle::error &failed) {
    check(failed.status() == status, ax_status_name(failed.status()), at);
    check_has(failed.what(), "handles.cc:" + std::to_string(at.line) + ": " + part, at);
  }
}

void nothing_held() {
  refused([] { return axle::array().read<float>(); }, AX_INVALID_ARGUMENT, "array_read");
  refused([] { return axle::array().to_host(); }, AX_INVALID_ARGUMENT, "array_to_host");
  refused([] { return axle::program().print(); }, AX_INVALID_ARGUMENT, "program_print");
  refused([] { return axle::program().linearize({0}); }, AX_INVALID_ARGUMENT, "program_linearize");
  refused([] { return axle::runtime().compile({}); }, AX_INVALID_ARGUMENT, "compile");
  refused([] { return axle::executable().run(); }, AX_INVALID_ARGUMENT, "run");
  refused([] { return axle::executable().run_host(); }, AX_INVALID_ARGUMENT, "run_host");
  refused([] { return axle::treedef().text(); }, AX_INVALID_ARGUMENT, "treedef_text");
  refused([] { axle::tree().init("*: zeros", 0); }, AX_INVALID_ARGUMENT, "tree_init");
  axle::array none;
  CHECK(none.type().dtype == AX_NO_DTYPE && none.mesh().devices() == 1 && none.part_count() == 0);
  CHECK(axle::program().in_count() == 0 && axle::program().in_type(3).dtype == AX_NO_DTYPE && axle::executable().out_count() == 0);
  CHECK(axle::npz().count() == 0 && axle::npz().name(1).empty() && axle::npz().find("x").get().data == nullptr);
  CHECK(axle::treedef().count() == 0 && axle::treedef().find("x") == -1 && axle::treedef().types().empty() && axle::treedef().specs().empty());
  CHECK(axle::host_array().size() == 0 && axle::host_array().elements<float>().empty());
}

/* One axis by hand, the other not. */
void by_hand() {
  axle::mesh mesh = axle::mesh::parse("d=2,e=3"), of_d = mesh.manual("d");
  CHECK(!of_d.axis[0].automatic && of_d.axis[1].automatic);
  auto sums = [](value a) { return psum(a, "d"); };
  axle::program one = axle::trace([&](value x) { return axle::shard_map_manual(mesh, "d", "d -> ", sums, {x}); }, {f32({4})});
  axle::program other = axle::trace([&](value x) { return axle::shard_map(of_d, "d -> ", sums, {x}); }, {f32({4})});
  CHECK(one == other);
  refused([&] { return mesh.manual("f"); }, AX_INVALID_ARGUMENT, "mesh_manual: axis \"f\" is not bound");
}

void runs() {
  axle::mesh mesh = axle::mesh::parse("d=2");
  CHECK(mesh.devices() == 2 && mesh.find("d") == 0 && mesh.find("e") == -1);
  axle::runtime runtime = axle::runtime::create({2, 0, 0, AX_POLICY_PARALLEL, 0, nullptr, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, AX_PROCESSES_DEFAULT, nullptr, nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr, false});
  axle::program program = axle::trace([&](value x, value y) {
    return axle::shard_map(mesh, "d; -> d; ", [](value a, value b) { return std::tuple(a * b, psum(a, "d")); }, {x, y});
  }, {f32({4}), f32()});
  axle::executable executable = runtime.compile(program, {{0}});
  references(runtime);
  references(program);
  references(executable);
  CHECK(executable.out_count() == 2 && executable.mesh().devices() == 2 && executable.in_spec(0)->count[0] == 1 && !executable.in_spec(2));
  check_has(executable.text(), "f32");

  std::vector<float> x = {1, 2, 3, 4};
  const std::vector<float> ten = {10};
  axle::array in = runtime.put(mesh, "d", x), by = runtime.put(mesh, "", axle::view(ten, {}));
  references(in);
  CHECK(in.type().dims[0] == 4 && in.mesh().devices() == 2 && in.spec().count[0] == 1 && in.part_count() == 2);
  CHECK(in.part(1).device == 1 && in.shard(1).start.at(0) == 2 && in.shard(1).type.dims[0] == 2);
  check_has(in.picture(), "P(d)");
  CHECK(in.read<float>() == x && by.item<float>() == 10);
  refused([&] { return in.read<std::int32_t>(); }, AX_INVALID_ARGUMENT, "array_read: the array is of f32, not of s32");
  refused([&] { return in.item<float>(); }, AX_INVALID_ARGUMENT, "array_read: the array is not one element of f32");
  refused([&] { return in.part(2); }, AX_INVALID_ARGUMENT, "array_part");
  refused([&] { return runtime.put(mesh, "nowhere", x); }, AX_INVALID_ARGUMENT, "device_put");
  refused([&] { return runtime.put(mesh, "d", axle::view(x, {5})); }, AX_INVALID_ARGUMENT, "device_put");
  axle::pmap_sharding rows = axle::pmap_sharding::parse("ShardingSpec((Unstacked(2), NoSharding()), (ShardedAxis(axis=0),))");
  CHECK(axle::pmap_sharding::of(2, 2, 2, 0).text() == std::string(rows.text()) && rows.mesh.count == 1);
  CHECK(rows.part(f32({2, 3}), 1).type.rank == 1 && rows.part(f32({2, 3}), 1).start.at(0) == 1);
  refused([&] { return rows.part(f32({2, 3}), 2); }, AX_INVALID_ARGUMENT, "pmap_sharding_part");
  refused([] { return axle::pmap_sharding::parse("x"); }, AX_INVALID_ARGUMENT, "pmap_sharding_parse");
  refused([] { return axle::pmap_sharding::of(3, 2, 1, 0); }, AX_INVALID_ARGUMENT, "pmap_sharding_of");

  axle::mesh grid = axle::mesh::parse("a=2,b=2");
  axle::sharding turned = axle::sharding::named(grid, "b,a", {0, 2, 1, 3}), same = axle::sharding::tiled("{devices=[2,2]<=[4]}");
  references(turned);
  CHECK(turned.equals(same) && turned.device_count() == 4 && turned.block_count() == 4 && turned.device(1) == 2 && turned.place(2) == 1);
  CHECK(turned.mesh().count == 2 && turned.spec().rank == 2 && turned.in_order().mesh.count == 2);
  CHECK(turned.block(f32({4, 6})).dims[1] == 3 && turned.start(f32({4, 6}), 1).at(1) == 3 && turned.starts(f32({4, 6})).at(3).at(0) == 2);
  CHECK(turned.text() == std::string("P(b, a) over (a=2, b=2), devices 0 2 1 3") && turned.tiles(2) == std::string("{devices=[2,2]<=[4]}"));
  CHECK(std::string(turned.picture(f32({4, 6}))).find("f32[2,3]") != std::string::npos);
  CHECK(axle::sharding::single(3).place(3) == 0 && axle::sharding::replicated(3).is_replicated() && axle::sharding::replicated({5, 6}).device(1) == 6);
  CHECK(axle::sharding::pmap(rows).equals(axle::sharding::named(axle::mesh::parse("i=2"), "i")));
  std::vector<float> eight{0, 1, 2, 3, 4, 5, 6, 7};
  axle::array placed = axle::put(runtime, turned, axle::view(eight, {2, 4})), moved = axle::put(placed, axle::sharding::replicated(4));
  CHECK(axle::lies(placed, same) && axle::sharding_of(placed).equals(turned) && moved.part_count() == 1);
  CHECK(axle::copy_to(placed, same).read<float>() == eight && axle::put_many({placed, moved}, {same, same}).at(1).read<float>() == eight);
  CHECK(axle::put_many(runtime, {turned}, {axle::view(eight, {2, 4})}).at(0).read<float>() == eight);
  CHECK((axle::read_slice<float>(placed, {0, 1}, {2, 2}) == std::vector<float>{1, 2, 5, 6}));
  axle::array low = axle::on_device(placed, 0), high = axle::on_device(placed, 1);
  CHECK((high.read<float>() == std::vector<float>{2, 3}) && axle::device_count(runtime) > 0 && axle::device_of(runtime, 1).id == 1);
  axle::sharding columns = axle::sharding::named(axle::mesh::parse("a=2"), "_,a");
  CHECK((axle::from_device_arrays(runtime, columns, f32({1, 4}), {low, high}).read<float>() == std::vector<float>{0, 1, 2, 3}));
  ax_part halves[2] = {};
  halves[0].data = eight.data();
  halves[1].data = eight.data() + 4;
  halves[0].bytes = halves[1].bytes = 16;
  CHECK(axle::from_device_parts(runtime, axle::sharding::named(axle::mesh::parse("a=2"), "a"), f32({8}), {halves[0], halves[1]}).read<float>() == eight);
  refused([&] { return axle::put(runtime, turned, axle::view(eight, {8})); }, AX_INVALID_ARGUMENT, "device_put_as");
  refused([&] { return axle::put(axle::array(), turned); }, AX_INVALID_ARGUMENT, "array_reshard");
  refused([&] { return axle::put_many({placed}, {}); }, AX_INVALID_ARGUMENT, "array_reshard_many");
  refused([&] { return axle::copy_to(placed, axle::sharding::named(axle::mesh::parse("a=3"), "a")); }, AX_INVALID_ARGUMENT, "array_copy_to");
  refused([&] { return axle::on_device(placed, 4); }, AX_INVALID_ARGUMENT, "array_on_device");
  refused([&] { return axle::read_slice<float>(placed, {0}, {1}); }, AX_INVALID_ARGUMENT, "array_read_slice");
  refused([&] { return axle::read_slice<float>(placed, {0, 2}, {1, 3}); }, AX_INVALID_ARGUMENT, "array_read_slice");
  refused([&] { return axle::from_device_arrays(runtime, columns, f32({1, 4}), {low}); }, AX_INVALID_ARGUMENT, "array_from_device_arrays");
  refused([&] { return axle::from_device_parts(runtime, columns, f32({1, 4}), {halves[0]}); }, AX_INVALID_ARGUMENT, "array_from_device_parts");
  refused([&] { return axle::device_of(runtime, -1); }, AX_INVALID_ARGUMENT, "runtime_device");
  refused([&] { return axle::sharding::named(grid, "c"); }, AX_INVALID_ARGUMENT, "sharding_named");
  refused([] { return axle::sharding::tiled("{"); }, AX_INVALID_ARGUMENT, "sharding_tiled");
  refused([] { return axle::sharding().text(); }, AX_INVALID_ARGUMENT, "sharding_print");
  refused([&] { return turned.block(f32({3, 6})); }, AX_INVALID_ARGUMENT, "sharding_block");
  CHECK((runtime.replicate(mesh, "d", axle::view(x, {4})).read<float>() == std::vector<float>{1, 2, 3, 4, 1, 2, 3, 4}));
  refused([&] { return runtime.replicate(mesh, "_,d", x); }, AX_INVALID_ARGUMENT, "replicate");
  refused([&] { return executable.run({in}); }, AX_INVALID_ARGUMENT, "run");

  std::vector<axle::array> out = executable.run({in, by});
  CHECK(out.at(0).read<float>() == std::vector<float>{10, 20, 30, 40} && out.at(1).read<float>() == std::vector<float>{4, 6});
  refused([&] { return in.read<float>(); }, AX_INVALID_ARGUMENT, "array_read"); /* it was donated */
  out = executable.run_start({runtime.put(mesh, "d", x), by});
  out.at(0).wait();
  CHECK(out.at(0).is_ready());
  axle::host_array host = out.at(0).to_host();
  CHECK(host.elements<float>() == std::vector<float>{10, 20, 30, 40} && host.dim(0) == 4 && host.rank() == 1);
  std::vector<axle::host_array> hosts = executable.run_host({x, axle::view(ten, {})});
  CHECK(hosts.at(1).elements<float>() == std::vector<float>{4, 6} && hosts.at(0).elements<double>().empty());
  CHECK(runtime.memory().peak >= runtime.memory().now);
  runtime.trim();

  float lent[] = {5, 6};
  axle::array parts = runtime.from_parts({}, "", f32({2}), {ax_part{lent, sizeof lent, nullptr, nullptr, true}});
  CHECK(parts.read<float>() == std::vector<float>{5, 6});
}

void host_arrays() {
  axle::host_array zeros(f32({2, 3}));
  CHECK(zeros.size() == 6 && zeros.elements<float>() == std::vector<float>(6, 0.0f) && zeros.data<double>() == nullptr);
  zeros.data<float>()[5] = 7;
  axle::host_array copy = zeros, empty;
  copy.data<float>()[0] = 1;
  CHECK(zeros.data<float>()[0] == 0 && copy.data<float>()[5] == 7);
  axle::host_array moved = std::move(copy);
  CHECK(moved.size() == 6 && copy.size() == 0 && copy.raw() == nullptr);
  axle::host_array &self = moved;
  moved = self;
  CHECK(moved.data<float>()[0] == 1 && moved.data<float>()[5] == 7);
  empty = moved;
  moved = axle::host_array();
  CHECK(empty.size() == 6 && moved.size() == 0);
  copy = empty; /* into one that was moved from */
  CHECK(copy.elements<float>() == empty.elements<float>());
  axle::host_array none(f32({0, 4}));
  CHECK(none.size() == 0 && none.dim(1) == 4 && axle::host_array(none).raw() != nullptr);
  std::vector<std::uint16_t> halves = {0x3f80, 0x4000};
  CHECK(axle::view(halves, axle::bf16, {2}).type().dtype == AX_BF16 && axle::view(halves, axle::f32, {2}).type().dtype == AX_NO_DTYPE);

  axle::runtime runtime = axle::runtime::create();
  axle::executable executable = runtime.jit([](value x) { return x > 1; }, {axle::array_type(axle::bf16, {2})});
  std::vector<axle::array> out = executable.run({runtime.put({}, "", axle::view(halves, axle::bf16, {2}))});
  CHECK(out.at(0).read<bool>() == std::vector<unsigned char>{0, 1});
}

void files(const std::string &folder) {
  std::string path = folder + "/cxx.npz";
  axle::host_array matrix(f32({2, 2}));
  matrix.data<float>()[3] = 9;
  const std::vector<std::int64_t> numbers = {1, 2, 3};
  axle::npz_write(path, {{"matrix", matrix}, {"numbers", numbers}});
  axle::npz read = axle::npz::read(path);
  CHECK(read.count() == 2 && read.name(1) == "numbers" && read.array(0).type().rank == 2 && read.array(2).get().data == nullptr);
  CHECK(static_cast<const std::int64_t *>(read.find("numbers").get().data)[2] == 3);
  owners(axle::npz::read(path));
  axle::npy_write(folder + "/cxx.npy", matrix);
  axle::host_array again = axle::npy_read(folder + "/cxx.npy");
  CHECK(again.elements<float>() == matrix.elements<float>());
  CHECK(axle::csv_read("data/digits.csv.gz").dim(1) == 65);
  refused([&] { return axle::npz::read(folder + "/none.npz"); }, AX_IO_ERROR, "npz_read");
  refused([&] { return axle::csv_read(folder + "/none.csv"); }, AX_IO_ERROR, "csv_read");
}

void trees(const std::string &folder) {
  axle::runtime runtime = axle::runtime::create();
  axle::mesh mesh = axle::mesh::parse("d=2");
  axle::treedef params = axle::treedef::parse("w: f32[2,4] @ _,d; b: f32[4] @ d");
  axle::treedef batch = axle::treedef::create({{"x", f32({2, 2}), ""}});
  axle::treedef all = axle::treedef::join({{"params", params}, {"batch", batch}});
  references(all);
  CHECK(all.count() == 3 && all.name(0) == "params/w" && all.find("batch/x") == 2 && all.spec(1) == "d" && all.type(2).rank == 2);
  CHECK(all.specs() == "_,d; d; " && params.with_specs("*: ").spec(0).empty());
  check_has(all.text(), "params/b: f32[4] @ d");
  refused([] { return axle::treedef::parse("w f32"); }, AX_PARSE_ERROR, "treedef_parse");

  axle::tree weights = axle::tree::create(runtime, mesh, params), input = axle::tree::create(runtime, mesh, batch);
  weights.init("w: ones; b: constant(2)", 1);
  input.put("x", axle::view(std::vector<float>{1, 2, 3, 4}, {2, 2}));
  auto step = [&](const std::vector<value> &in) {
    auto loss = [](value w, value b, value x) { return reduce_sum(matmul(x, w) + b); };
    auto gradients = axle::grad(loss, all.select("params"), in);
    return std::array{in[0] - gradients.at(0), in[1] - gradients.at(1)};
  };
  axle::executable executable = runtime.jit(step, all.types(), {all.select("params")});
  axle::tree_run(executable, {&weights, &input}, {&weights});
  CHECK(weights.at("w").read<float>() == std::vector<float>{-3, -3, -3, -3, -5, -5, -5, -5});
  CHECK(weights.to_host("b").elements<float>() == std::vector<float>{0, 0, 0, 0});
  CHECK(!weights.at("nothing") && weights.def().get() == params.get());
  refused([&] { weights.put("nothing", std::vector<float>(4)); }, AX_INVALID_ARGUMENT, "tree_put_host");

  axle::tree other = axle::tree::create(runtime, {}, params.with_specs("*: "));
  weights.copy_to(other);
  CHECK(other.at("w").read<float>() == weights.at("w").read<float>());
  other.write_npz(folder + "/cxx_tree.npz");
  weights.init("*: zeros", 0);
  weights.read_npz(folder + "/cxx_tree.npz");
  CHECK(weights.at("w").read<float>()[0] == -3);
  weights.set("b", runtime.put(mesh, "d", std::vector<float>{1, 2, 3, 4}));
  axle::tree_run_start(executable, {&weights, &input}, {&other});
  CHECK(other.at("b").read<float>() == std::vector<float>{-1, 0, 1, 2});
  axle::tree table = axle::tree::create(runtime, {}, axle::treedef::parse("x: f32[1797,64]; y: s32[3]"));
  table.read_csv("data/digits.csv.gz", "x: :, :-1; y: :3, -1");
  CHECK(table.at("y").read<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2} && table.at("x").read<float>()[2] == 5);
  refused([&] { table.read_csv("data/digits.csv.gz", "y: :, -1"); }, AX_INVALID_ARGUMENT, "tree_read_csv");
  owners(std::move(other));
}

/* A step of adam over leaves, on a mesh. */
void optimisers() {
  axle::runtime runtime = axle::runtime::create();
  axle::mesh mesh = axle::mesh::parse("d=2");
  axle::treedef params = axle::treedef::parse("w: f32[4]; b: f32[2]"), batch = axle::treedef::parse("x: f32[4] @ d");
  ax_optimizer adam = ax_adam(ax_constant_schedule(0.5));
  axle::treedef state = axle::optimizer_state(adam, params);
  axle::treedef in = axle::treedef::join({{"params", params}, {"state", state}, {"batch", batch}});
  axle::treedef out = axle::treedef::join({{"state", state}, {"params", params}});
  auto step = [&](const std::vector<value> &all) {
    std::vector<value> own = leaves(in, all, "params");
    value x = axle::all_gather_invariant(leaf(in, all, "batch/x"), "d", 0, true);
    auto loss = [&](value w, value b) { return reduce_sum(w * x) + reduce_sum(b); };
    auto gradients = axle::tree_scale(2, axle::grad(loss, axle::first(2), own));
    CHECK(axle::tree_unravel(axle::tree_ravel(own), own).size() == 2 && axle::global_norm(own).rank() == 0);
    auto [made, moved] = axle::optimizer_update(adam, params, gradients, leaves(in, all, "state"), own);
    made.insert(made.end(), moved.begin(), moved.end());
    return made;
  };
  axle::executable executable = axle::tree_jit(runtime, mesh, in, out, step);
  axle::tree weights = axle::tree::create(runtime, mesh, params), moments = axle::tree::create(runtime, mesh, state),
             rows = axle::tree::create(runtime, mesh, batch);
  weights.init("*: zeros", 0), moments.init("*: zeros", 0), rows.init("*: ones", 0);
  axle::tree_run(executable, {&weights, &moments, &rows}, {&moments, &weights});
  CHECK(moments.at("count").item<std::int32_t>() == 1 && std::fabs(weights.at("w").read<float>()[3] + 0.5f) < 1e-5f);
  refused([&] { return axle::tree_jit(runtime, mesh, in, out, [&](const std::vector<value> &all) { return leaves(in, all, "nowhere"); }); },
          AX_INVALID_ARGUMENT, "tree_jit");
  std::vector<axle::host_array> applied = runtime.apply([](value x) { return 2 * x; }, {std::vector<float>{1, 2}});
  CHECK(applied.at(0).elements<float>() == std::vector<float>{2, 4});
}

void programs() {
  axle::program product = axle::trace([](value x, value y) { return reduce_sum(x * y); }, {f32({2}), f32({2})});
  axle::program parsed = axle::program::parse(product.print());
  CHECK(parsed == product && !(parsed != product));
  product.verify();
  CHECK(product.grad({0, 1}).out_count() == 2 && product.grad().out_count() == 1 && product.value_and_grad().out_count() == 2);
  CHECK(product.jvp(axle::all_args).in_count() == 4 && product.vmap({{}, {}, 3}).in_type(0).rank == 2);
  CHECK(product.vmap({{0, AX_NOT_MAPPED}, {}, 3}).in_type(1).rank == 1);
  axle::linearized split = product.linearize({0});
  CHECK(split.primal.out_count() == 1 + split.residual_count);
  std::uint32_t first = split.residual_count;
  CHECK(split.tangent.transpose(axle::range(first, 1)).out_count() == 1);
  CHECK(product.dce() == product && product.cse() == product && product.simplify() == product && product.partition() == product);
  axle::cost counted = product.cost();
  CHECK(counted.devices == 1 && counted.flops > 0 && counted.bytes > 0 && counted.received == 0 && counted.collectives.empty() && !counted.at_least);
  check_has(counted.text, "on each of 1 device, a run:");
  axle::runtime runtime = axle::runtime::create();
  axle::lowered low = axle::lowered::of(product);
  references(low);
  CHECK(low.program().in_count() == 2 && low.mesh().devices() == 1 && low.in_spec(1) != nullptr && low.out_spec(1) == nullptr && low.seconds() > 0);
  axle::executable made = runtime.compile_lowered(low);
  CHECK(made.cost().flops == counted.flops && made.memory().all.arguments == runtime.memory(low).all.arguments && made.donated(0) == -1);
  CHECK(made.lower_seconds() > 0 && made.compile_seconds() > 0 && product.seconds() > 0 && runtime.counters().programs_compiled == 1);
  check_has(product.stablehlo(), "stablehlo.multiply");
  axle::cluster machine = axle::cluster::read("cpu");
  axle::simulation simulated = axle::simulation::of(low, machine);
  CHECK(machine.name() == "cpu" && simulated->seconds > 0 && simulated->devices == 1 && simulated->op_count > 0);
  check_has(simulated.print(), "1 device of the machine cpu");
  refused([&] { return axle::cluster::parse("machine m", "m.txt"); }, AX_PARSE_ERROR, "cluster_parse: m.txt:1:10: the machine ends without a device");
  refused([&] { return axle::simulation::of(low, axle::cluster()); }, AX_INVALID_ARGUMENT, "simulate");
  axle::check_report nothing = axle::check_report::of(product);
  CHECK(nothing.proved() && nothing->kernel_count == 0 && nothing->stopped == nullptr);
  refused([&] { return axle::check_report::of(axle::program()); }, AX_INVALID_ARGUMENT, "check");
  refused([&] { return product.vmap({{0}, {}, 3}); }, AX_INVALID_ARGUMENT, "program_vmap: vmap: in_axes has 1 entry, but there are 2 inputs");
  refused([&] { return product.grad({7}); }, AX_INVALID_ARGUMENT, "program_grad");
  refused([&] { return axle::program::parse("nothing"); }, AX_PARSE_ERROR, "program_parse");
  axle::program on = axle::trace_on(axle::mesh::parse("d=4"), [](value x) { return psum(x, "d"); }, {f32()});
  CHECK(on.axes().devices() == 4);
}

/* Inputs that lie as arrays do. */
void like_arrays() {
  axle::runtime runtime = axle::runtime::create();
  axle::mesh mesh = axle::mesh::parse("i=4");
  std::vector<float> rows(32, 1.0f);
  axle::array x = runtime.put(mesh, "i", axle::view(rows, {8, 4}));
  axle::compile_options options;
  options.like = {x, axle::array()};
  auto sum = [](value a, value b) { return a + b; };
  axle::executable followed = runtime.jit(sum, {f32({8, 4}), f32({4})}, options), whole = runtime.jit(sum, {f32({8, 4}), f32({4})});
  axle::array b = runtime.put(axle::mesh(), "", std::vector<float>(4, 2));
  const auto before = runtime.counters().arguments_copied;
  axle::array made = followed.run({x, b}).at(0);
  CHECK(made.part_count() == 4 && made.read<float>() == std::vector<float>(32, 3) && runtime.counters().arguments_copied == before);
  CHECK(whole.run({x, b}).at(0).part_count() == 1 && runtime.counters().arguments_copied > before);
  options.like = {b, x};
  refused([&] { return runtime.jit(sum, {f32({8, 4}), f32({4})}, options); }, AX_INVALID_ARGUMENT, "jit: compile: like: input 0 is f32[8,4]");
}

/* Functions compiled by their calls. */
void jitted_functions() {
  axle::runtime runtime = axle::runtime::create();
  axle::array x = runtime.put({}, "", std::vector<float>{1, 2}), w = runtime.put({}, "", std::vector<float>{3, 4});
  int traced = 0;
  axle::jitted both;
  {
    axle::jitted made = axle::jitted::of(runtime, [&traced](value a, value b) {
      traced++;
      return std::pair(a + b, a * b);
    });
    both = made;
  }
  for (int i = 0; i < 3; i++) {
    auto out = both.run({x, w});
    CHECK(out.size() == 2 && out[0].read<float>() == std::vector<float>{4, 6} && out[1].read<float>() == std::vector<float>{3, 8});
  }
  CHECK(traced == 1 && both.counters().found == 2 && both.counters().compiled == 1);
  CHECK(both.run_start({w, w}).at(0).read<float>() == std::vector<float>{6, 8} && traced == 1);
  CHECK(both.run_host({axle::view(std::vector<float>{5}, {1}), axle::view(std::vector<float>{6}, {1})}).at(1).elements<float>()[0] == 30);
  CHECK(both.executable({x, w}).run({x, w}).at(0).read<float>() == std::vector<float>{4, 6} && traced == 2);
  both.clear();
  CHECK(both.counters().kept == 0);
  refused([&] { return both.run({x}); }, AX_INVALID_ARGUMENT, "jitted_run: the function takes 2 arguments, but the list has 1");

  axle::compile_options donating;
  donating.donate = {0};
  axle::jitted all = axle::jitted::of(runtime, axle::returning(2, [](const std::vector<value> &in) { return std::vector{in[1], in[0] + 1}; }),
                                      donating, 1, 2);
  axle::array gone = runtime.put({}, "", std::vector<float>{7, 8});
  CHECK(all.run({gone, x}).at(1).read<float>() == std::vector<float>{8, 9});
  refused([&] { return all.run({gone, x}); }, AX_INVALID_ARGUMENT, "jitted_run: run: 1 of 2 arguments do not match");

  struct scaling {
    int times;
    float by;
  };
  axle::jitted scaled = axle::jitted::of_static<scaling>(runtime, [](scaling s) {
    return [s](value a) {
      for (int i = 0; i < s.times; i++) a = a * s.by;
      return a;
    };
  });
  for (int i = 0; i < 2; i++)
    for (int times = 1; times < 4; times++)
      CHECK(scaled.run_static(scaling{times, 2}, {x}).at(0).read<float>() == std::vector<float>{float(1 << times), float(2 << times)});
  CHECK(scaled.counters().compiled == 3 && scaled.counters().found == 3);
  CHECK(scaled.executable_static(scaling{3, 2}, {x}).run({x}).at(0).read<float>()[0] == 8);

  axle::jitted throws = axle::jitted::of(runtime, [](value a) -> value { return a.dtype() == axle::f32 ? throw 7 : a; });
  for (int i = 0; i < 2; i++) {
    try {
      (void)throws.run({x});
      CHECK(false);
    } catch (int thrown) {
      CHECK(thrown == 7);
    }
  }
  CHECK(throws.counters().kept == 0);
}

}  // namespace

void handles_test() {
  const char *folder = std::getenv("CXX_FOLDER");
  nothing_held();
  by_hand();
  runs();
  host_arrays();
  files(folder != nullptr ? folder : "/tmp");
  trees(folder != nullptr ? folder : "/tmp");
  optimisers();
  programs();
  like_arrays();
  jitted_functions();
}
