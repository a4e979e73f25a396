/* The code inside a kernel's loops: nodes, plain stores, and the accumulators of reductions. */
#include <math.h>

#include "ir/number.h"
#include "jit/emit/nest.h"
#include "plan/contract.h"
#include "plan/kernel_range.h"

/* --- Nodes --- */

static size_t place_of(const ax_nest *nest, ax_ex node, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  if ((schedule->deps[node] & nest->repeated) == 0) instance = 0;
  return (size_t)instance * schedule->kernel->expr_count + node;
}

static LLVMValueRef *value_at(ax_nest *nest, ax_ex node, uint32_t instance) {
  return &nest->values[place_of(nest, node, instance)];
}

uint32_t ax_nest_lanes_of(const ax_nest *nest, ax_ex node) {
  return (nest->schedule->deps[node] & nest->spread) != 0 ? nest->schedule->lanes : 1;
}

/* A number from behind the call's slots. */
static LLVMValueRef emit_given(ax_nest *nest, ax_ex node) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  const ax_dtype dtype = kernel->exprs[node].dtype;
  LLVMValueRef at = ax_cg_i64(&nest->cg, kernel->slot_count + kernel->exprs[node].imm);
  LLVMTypeRef place = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef pointer = LLVMBuildGEP2(nest->cg.builder, place, nest->slots, &at, 1, "");
  LLVMValueRef bits = ax_nest_load_one(nest, ax_cg_memory(&nest->cg, dtype, 1), pointer);
  return ax_cg_to_register(&nest->cg, dtype, bits, 1);
}

/* As a scalar (only where the node is one) or spread over the lanes. */
LLVMValueRef ax_nest_value(ax_nest *nest, ax_ex node, uint32_t instance, uint32_t lanes) {
  if (nest->is_fetched[node] && lanes == nest->schedule->lanes) return ax_cg_broadcast(&nest->cg, emit_given(nest, node), lanes);
  LLVMValueRef value = *value_at(nest, node, instance);
  if (nest->is_spread[node] && lanes == nest->schedule->lanes) return nest->spread_values[node];
  return ax_nest_lanes_of(nest, node) == lanes ? value : ax_cg_broadcast(&nest->cg, value, lanes);
}

LLVMValueRef ax_nest_mask(const ax_nest *nest, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  bool partial = schedule->unrolled != schedule->vector || instance == nest->instances - 1;
  return partial ? nest->mask : NULL;
}

/* The index of lane 0 along kernel dimension `dim`. */
static LLVMValueRef first_index(ax_nest *nest, int dim, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  if (dim < 0 || schedule->loop_of_dim[dim] < 0) return ax_cg_i64(&nest->cg, 0);
  uint32_t loop = (uint32_t)schedule->loop_of_dim[dim];
  int64_t step = loop != schedule->unrolled ? 0 : loop == schedule->vector ? schedule->lanes : 1;
  return LLVMBuildAdd(nest->cg.builder, nest->index[loop], ax_cg_i64(&nest->cg, step * instance), "");
}

/* Indices along the vector loop, one a lane, less what is beyond `bits` bits. Those of a pair alternate (paired.c). */
static LLVMValueRef lane_indices(ax_nest *nest, uint32_t dim, uint32_t instance, uint32_t bits) {
  const uint32_t lanes = nest->schedule->lanes;
  LLVMBuilderRef b = nest->cg.builder;
  const bool pair = ax_nest_makes_pair(nest, instance);
  LLVMValueRef first = first_index(nest, (int)dim, pair ? instance & ~1u : instance);
  if (pair && instance % 2 == 1) first = LLVMBuildAdd(b, first, ax_cg_i64(&nest->cg, 1), "");
  if (bits < 64) first = LLVMBuildTrunc(b, first, ax_cg_int(&nest->cg, bits, 1), "");
  return LLVMBuildAdd(b, ax_cg_broadcast(&nest->cg, first, lanes), ax_cg_iota(&nest->cg, bits, lanes, pair ? 2 : 1), "");
}

static bool is_narrow_index(const ax_nest *nest, uint32_t dim) {
  const int loop = nest->schedule->loop_of_dim[dim];
  return loop >= 0 && nest->narrow && (uint32_t)loop >= nest->schedule->outer;
}

static LLVMValueRef emit_index(ax_nest *nest, uint32_t dim, uint32_t instance) {
  const int loop = nest->schedule->loop_of_dim[dim];
  if (is_narrow_index(nest, dim)) return ax_nest_narrow_index(nest, (uint32_t)loop, instance);
  return loop == (int)nest->schedule->vector ? lane_indices(nest, dim, instance, 64) : first_index(nest, (int)dim, instance);
}

/* Whether the node is an index along the vector loop, converted. Numbers of 64 bits would take two registers or more. */
static bool converts_indices(const ax_nest *nest, const ax_expr *expr) {
  const ax_nest_schedule *s = nest->schedule;
  if (expr->op != AX_SCALAR_CONVERT || expr->dtype == AX_BOOL || s->kernel->exprs[expr->arg[0]].op != AX_LEAF_INDEX) return false;
  const uint32_t dim = (uint32_t)s->kernel->exprs[expr->arg[0]].imm;
  return s->loop_of_dim[dim] == (int)s->vector && !is_narrow_index(nest, dim) && s->kernel->dims[dim] <= INT32_MAX;
}

/* An integer's are as wide as it is. A float's are converted from 32 bits. */
static LLVMValueRef converted_indices(ax_nest *nest, const ax_expr *expr, uint32_t instance) {
  const bool direct = !ax_is_float(expr->dtype);
  const uint32_t dim = (uint32_t)nest->schedule->kernel->exprs[expr->arg[0]].imm,
                 bits = direct ? 8 * (uint32_t)ax_dtype_bytes(expr->dtype) : 32;
  LLVMValueRef indices = lane_indices(nest, dim, instance, bits);
  if (direct && ax_is_short_integer(expr->dtype)) return ax_cg_round(&nest->cg, expr->dtype, indices, nest->schedule->lanes);
  return direct ? indices : ax_cg_convert(&nest->cg, AX_S32, expr->dtype, indices, nest->schedule->lanes);
}

static LLVMValueRef emit_axis(ax_nest *nest, uint32_t axis) {
  LLVMTypeRef i64 = LLVMInt64TypeInContext(nest->cg.context);
  LLVMValueRef offset = ax_cg_i64(&nest->cg, axis);
  LLVMValueRef pointer = LLVMBuildGEP2(nest->cg.builder, i64, nest->coordinates, &offset, 1, "");
  return LLVMBuildLoad2(nest->cg.builder, i64, pointer, "");
}

/* --- One divisor for many --- */

/* A quotient of two bf16, which have 8 digits, is at least 2^-17 of itself away from where rounding to bf16 changes, so that the
   product with the reciprocal in f32 is rounded to the same; subnormal ones are as far away, or exact. What is divided is scaled,
   so that the reciprocal is normal. */
static bool divides_many(const ax_nest_schedule *schedule, ax_ex node) {
  const ax_expr *expr = &schedule->kernel->exprs[node];
  return expr->op == AX_SCALAR_DIV && expr->dtype == AX_BF16 && schedule->shape != AX_NEST_NARROW &&
         ax_nest_schedule_depends(schedule, node, schedule->vector) &&
         !ax_nest_schedule_depends(schedule, expr->arg[1], schedule->vector) && schedule->lanes > 1;
}

/* The f32 next to 1 / x that is not nearer to 0. So the product with what x divides exactly is not below the quotient: where
   that is the least normal number, and subnormal ones are flushed, it stays. */
static LLVMValueRef reciprocal_of(const ax_codegen *cg, LLVMValueRef x) {
  LLVMBuilderRef b = cg->builder;
  LLVMTypeRef f64 = ax_cg_register(cg, AX_F64, 1), word = ax_cg_register(cg, AX_S32, 1);
  LLVMValueRef near = LLVMBuildFDiv(b, ax_cg_number(cg, AX_F32, 1, 1), x, "");
  LLVMValueRef one = LLVMBuildFMul(b, LLVMBuildCast(b, LLVMFPExt, near, f64, ""), LLVMBuildCast(b, LLVMFPExt, x, f64, ""), "");
  LLVMValueRef below = LLVMBuildFCmp(b, LLVMRealOLT, one, ax_cg_number(cg, AX_F64, 1, 1), "");
  LLVMValueRef bits = LLVMBuildCast(b, LLVMBitCast, near, word, "");
  bits = LLVMBuildAdd(b, bits, LLVMBuildCast(b, LLVMZExt, below, word, ""), "");
  return LLVMBuildCast(b, LLVMBitCast, bits, LLVMTypeOf(x), "");
}

/* The scale and the reciprocal, in all lanes. */
static void emit_reciprocal(ax_nest *nest, ax_ex divisor, uint32_t instance) {
  LLVMBuilderRef b = nest->cg.builder;
  const ax_codegen *cg = &nest->cg;
  LLVMValueRef *out = &nest->reciprocals[2 * place_of(nest, divisor, instance)], x = ax_nest_value(nest, divisor, instance, 1);
  LLVMTypeRef type = LLVMTypeOf(x);
  LLVMValueRef size = ax_cg_intrinsic(cg, "llvm.fabs", &type, 1, &x, 1), one = ax_cg_number(cg, AX_F32, 1, 1);
  LLVMValueRef small = LLVMBuildFCmp(b, LLVMRealOLT, size, ax_cg_number(cg, AX_F32, 1, 0x1p-100), "");
  LLVMValueRef large = LLVMBuildFCmp(b, LLVMRealOGT, size, ax_cg_number(cg, AX_F32, 1, 0x1p100), "");
  LLVMValueRef scale = LLVMBuildSelect(b, large, ax_cg_number(cg, AX_F32, 1, 0x1p-64), one, "");
  scale = LLVMBuildSelect(b, small, ax_cg_number(cg, AX_F32, 1, 0x1p64), scale, "");
  LLVMValueRef reciprocal = reciprocal_of(cg, LLVMBuildFMul(b, x, scale, ""));
  out[0] = ax_cg_broadcast(cg, scale, nest->schedule->lanes);
  out[1] = ax_cg_broadcast(cg, reciprocal, nest->schedule->lanes);
}

void ax_nest_find_divisors(ax_nest *nest) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  for (ax_ex node = 0; node < kernel->expr_count; node++)
    if (nest->schedule->live[node] && divides_many(nest->schedule, node)) nest->is_divisor[kernel->exprs[node].arg[1]] = true;
}

static LLVMValueRef divide(ax_nest *nest, const ax_expr *expr, uint32_t instance) {
  const LLVMValueRef *by = &nest->reciprocals[2 * place_of(nest, expr->arg[1], instance)];
  const uint32_t lanes = nest->schedule->lanes;
  LLVMValueRef scaled = LLVMBuildFMul(nest->cg.builder, ax_nest_value(nest, expr->arg[0], instance, lanes), by[0], "");
  return ax_cg_round_arithmetic(&nest->cg, AX_BF16, LLVMBuildFMul(nest->cg.builder, scaled, by[1], ""), lanes);
}

/* --- Operations and leaves --- */

/* Whether the processor has fused multiplication and addition: x86-64 has it with registers of 32 bytes. */
static bool has_fma(uint32_t vector_bytes) {
#if defined(__x86_64__)
  return vector_bytes >= 32;
#else
  return vector_bytes > 0;
#endif
}

static LLVMValueRef negated(ax_nest *nest, LLVMValueRef x, bool negate) {
  return negate ? LLVMBuildFNeg(nest->cg.builder, x, "") : x;
}

/* x y + z, x y - z or z - x y, rounded once; operand `product` is x y. */
static LLVMValueRef fused(ax_nest *nest, const ax_expr *expr, int product, uint32_t instance, uint32_t lanes) {
  const ax_expr *mul = &nest->schedule->kernel->exprs[expr->arg[product]];
  const bool minus = expr->op == AX_SCALAR_SUB;
  LLVMValueRef args[] = {negated(nest, ax_nest_value(nest, mul->arg[0], instance, lanes), minus && product == 1),
                         ax_nest_value(nest, mul->arg[1], instance, lanes),
                         negated(nest, ax_nest_value(nest, expr->arg[1 - product], instance, lanes), minus && product == 0)};
  LLVMTypeRef type = LLVMTypeOf(args[0]);
  return ax_cg_intrinsic(&nest->cg, "llvm.fma", &type, 1, args, 3);
}

static bool divides_integers(const ax_expr *expr) {
  return (expr->op == AX_SCALAR_DIV || expr->op == AX_SCALAR_REM) && ax_is_exact(expr->dtype) && expr->dtype != AX_BOOL;
}

/* A quotient and a remainder of the same two, as JAX's // and % want both, take one division. A divisor that is known to be positive needs
   no test for 0 and -1, where it is one number: lanes beyond the end of a row, which are computed and not stored, are not in its range. */
static LLVMValueRef divide_integers(ax_nest *nest, ax_ex node, uint32_t instance, uint32_t lanes) {
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  const ax_integers by = ax_kernel_range(nest->schedule->kernel, expr->arg[1]);
  const bool positive = lanes == 1 && by.is && by.low > 0;
  LLVMValueRef x = ax_nest_value(nest, expr->arg[0], instance, lanes), y = ax_nest_value(nest, expr->arg[1], instance, lanes);
  const ax_divided *known = NULL;
  for (uint32_t i = 0; i < AX_COUNT(nest->divided); i++) {
    const ax_divided *one = &nest->divided[i];
    if (one->block == LLVMGetInsertBlock(nest->cg.builder) && one->x == x && one->y == y && one->dtype == expr->dtype) known = one;
  }
  if (known == NULL) {
    ax_divided *made = &nest->divided[nest->next_divided++ % AX_COUNT(nest->divided)];
    *made = (ax_divided){.x = x, .y = y, .dtype = expr->dtype};
    ax_cg_integer_divide(&nest->cg, expr->dtype, x, y, positive, lanes, &made->quotient, &made->rest);
    made->block = LLVMGetInsertBlock(nest->cg.builder);
    known = made;
  }
  return expr->op == AX_SCALAR_DIV ? known->quotient : known->rest;
}

/* Whether it is a number, which is the same wherever the kernel runs, to a power. */
static bool raises_number(const ax_nest *nest, const ax_expr *expr) {
  const ax_expr *base = expr->op == AX_SCALAR_POW ? &nest->schedule->kernel->exprs[expr->arg[0]] : NULL;
  return base != NULL && base->op == AX_LEAF_CONST && base->dtype == AX_F32 &&
         ax_cg_raises(&nest->cg, ax_number_load(AX_F32, &base->imm, 0).f);
}

static LLVMValueRef raise_number(ax_nest *nest, const ax_expr *expr, uint32_t instance, uint32_t lanes) {
  const double base = ax_number_load(AX_F32, &nest->schedule->kernel->exprs[expr->arg[0]].imm, 0).f;
  return ax_cg_raise(&nest->cg, base, ax_nest_value(nest, expr->arg[1], instance, lanes), lanes);
}

static LLVMValueRef emit_op(ax_nest *nest, ax_ex node, uint32_t instance) {
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  uint32_t lanes = ax_nest_lanes_of(nest, node);
  LLVMValueRef args[3] = {NULL};
  ax_guard_state decided = expr->op == AX_SCALAR_SELECT ? ax_nest_known(nest, expr->arg[0], instance) : AX_KNOWN_NOT;
  if (decided != AX_KNOWN_NOT) return ax_nest_value(nest, expr->arg[decided == AX_KNOWN_TRUE ? 1 : 2], instance, lanes);
  if (divides_many(nest->schedule, node)) return divide(nest, expr, instance);
  if (divides_integers(expr)) return divide_integers(nest, node, instance, lanes);
  if (raises_number(nest, expr)) return raise_number(nest, expr, instance, lanes);
  if (converts_indices(nest, expr)) return converted_indices(nest, expr, instance);
  const int product = ax_expr_contracted(expr);
  if (product >= 0 && has_fma(nest->cg.vector_bytes)) return fused(nest, expr, product, instance, lanes);
  for (int i = 0; i < ax_scalar_arity(expr->op); i++) args[i] = ax_nest_value(nest, expr->arg[i], instance, lanes);
  ax_ex operand = expr->arg[expr->op == AX_SCALAR_SELECT ? 1 : 0];
  return ax_cg_scalar(&nest->cg, expr, nest->schedule->kernel->exprs[operand].dtype, args, lanes);
}

static LLVMValueRef emit_node(ax_nest *nest, ax_ex node, uint32_t instance) {
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  switch ((int)expr->op) {
    case AX_LEAF_CONST:
      return ax_cg_bits(&nest->cg, expr->dtype, (uint64_t)expr->imm);
    case AX_LEAF_GIVEN:
      return emit_given(nest, node);
    case AX_LEAF_INDEX:
      return emit_index(nest, (uint32_t)expr->imm, instance);
    case AX_LEAF_AXIS:
      return emit_axis(nest, (uint32_t)expr->imm);
    case AX_LEAF_LOAD:
      return ax_nest_load(nest, node, expr->dtype, instance);
    case AX_LEAF_INSIDE:
      return ax_nest_guard(nest, node, first_index(nest, expr->at->dim, instance), ax_nest_lanes_of(nest, node));
    default:
      return emit_op(nest, node, instance);
  }
}

/* Whether all instances go through a node side by side, instruction by instruction. Of exp each is one register. */
static bool goes_abreast(const ax_nest *nest, ax_ex node) {
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  if (expr->op == AX_SCALAR_THREEFRY) return nest->instances <= AX_CG_ABREAST;
  return ax_nest_schedule_in_line(nest->schedule, expr) && ax_nest_lanes_of(nest, node) * 4 == nest->cg.vector_bytes;
}

static void emit_abreast(ax_nest *nest, ax_ex node) {
  const ax_expr *expr = &nest->schedule->kernel->exprs[node];
  const uint32_t lanes = ax_nest_lanes_of(nest, node);
  LLVMValueRef x[2][AX_CG_ABREAST];
  for (uint32_t i = 0; i < nest->instances; i++)
    for (int a = 0; a < ax_scalar_arity(expr->op); a++) x[a][i] = ax_nest_value(nest, expr->arg[a], i, lanes);
  if (expr->op == AX_SCALAR_THREEFRY) ax_cg_threefry(&nest->cg, x[0], x[1], lanes, nest->instances, x[0]);
  else ax_cg_exp(&nest->cg, x[0], nest->instances);
  for (uint32_t i = 0; i < nest->instances; i++) *value_at(nest, node, i) = x[0][i];
}

/* What follows from a node's value. */
static void finish_node(ax_nest *nest, ax_ex node, uint32_t instance) {
  if (nest->is_spread[node]) ax_nest_spread(nest, node, *value_at(nest, node, instance));
  if (nest->is_divisor[node]) emit_reciprocal(nest, node, instance);
}

static void emit_instances(ax_nest *nest, ax_ex node) {
  bool unrolled = ax_nest_schedule_depends(nest->schedule, node, nest->schedule->unrolled);
  if (unrolled && goes_abreast(nest, node)) {
    emit_abreast(nest, node);
    for (uint32_t i = 0; i < nest->instances; i++) finish_node(nest, node, i);
    return;
  }
  for (uint32_t i = 0; i < (unrolled ? nest->instances : 1); i++) {
    *value_at(nest, node, i) = emit_node(nest, node, i);
    finish_node(nest, node, i);
  }
}

void ax_nest_emit_nodes(ax_nest *nest, uint64_t with, uint64_t without, uint32_t instance) {
  const ax_nest_schedule *schedule = nest->schedule;
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++)
    if (schedule->live[node] && (schedule->deps[node] & with) != 0 && (schedule->deps[node] & without) == 0 &&
        !ax_is_guard(schedule, node))
      *value_at(nest, node, instance) = emit_node(nest, node, instance);
}

/* --- Levels --- */

static void emit_level_stores(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  for (uint32_t i = 0; i < schedule->kernel->store_count; i++) {
    const ax_store *store = &schedule->kernel->stores[i];
    uint64_t deps = schedule->deps[store->expr] | ax_access_deps(schedule, ax_nest_schedule_store(schedule, i));
    if (store->reduce != AX_SCALAR_NONE || ax_nest_schedule_level(deps) != nest->level) continue;
    uint32_t lanes = ax_nest_lanes_of(nest, store->expr), instances = deps >> schedule->unrolled & 1 ? nest->instances : 1;
    for (uint32_t k = 0; k < instances; k++)
      if (!ax_nest_store_woven(nest, i, k))
        ax_nest_store(nest, schedule->kernel->expr_count + i, ax_nest_value(nest, store->expr, k, lanes), lanes, k);
  }
}

void ax_nest_enter(ax_nest *nest, uint32_t loop, LLVMValueRef index) {
  const ax_nest_schedule *schedule = nest->schedule;
  nest->index[loop] = index;
  ax_nest_step_pointers(nest, loop, index);
  nest->level++;
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++) {
    if (schedule->accesses[node].live) ax_nest_move_pointer(nest, node);
    if (schedule->live[node] && ax_nest_schedule_level(schedule->deps[node]) == nest->level) emit_instances(nest, node);
  }
  emit_level_stores(nest);
}

/* Pointers need the dynamic starts, which are nodes, which may be loads: so both in the order of the nodes. */
void ax_nest_entry(ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  for (uint32_t i = 0; i < nest->ordered; i++) {
    const ax_ex node = nest->order[i];
    if (schedule->accesses[node].live) ax_nest_base(nest, node);
    if (ax_nest_emit_together(nest, i))
      finish_node(nest, node, 0);
    else
      emit_instances(nest, node);
  }
  for (ax_ex node = 0; node < schedule->kernel->expr_count; node++)
    if (schedule->accesses[node].live && !(schedule->live[node] && schedule->deps[node] == 0)) ax_nest_base(nest, node);
  for (uint32_t i = 0; i < schedule->kernel->store_count; i++) ax_nest_base(nest, schedule->kernel->expr_count + i);
  emit_level_stores(nest);
}

/* --- Reductions --- */

static const ax_store *reduction(const ax_nest *nest, uint32_t store) {
  const ax_store *s = &nest->schedule->kernel->stores[store];
  return s->reduce == AX_SCALAR_NONE ? NULL : s;
}

ax_dtype ax_nest_store_dtype(const ax_nest *nest, uint32_t store) {
  const ax_loop_kernel *kernel = nest->schedule->kernel;
  return kernel->slots[kernel->stores[store].slot].dtype;
}

LLVMValueRef *ax_nest_accumulator(ax_nest *nest, uint32_t store, uint32_t instance) {
  return &nest->accumulators[store * AX_MAX_UNROLL + instance];
}

/* The floats of which the largest or smallest is looked for in their order as integers (order.c); AX_NO_DTYPE: it is none of that.
   Registers of 16 bytes have no such instructions for 32 and 64 bits. */
static ax_dtype ordered(const ax_nest *nest, uint32_t store) {
  ax_scalar reduce = nest->schedule->kernel->stores[store].reduce;
  ax_dtype dtype = ax_nest_store_dtype(nest, store);
  if (reduce != AX_SCALAR_MAX && reduce != AX_SCALAR_MIN) return AX_NO_DTYPE;
  if (dtype == AX_U16 && ax_dtype_bytes(nest->schedule->bits_of) == 2) return nest->schedule->bits_of;
  if (!ax_is_float(dtype) || nest->cg.vector_bytes < 32) return AX_NO_DTYPE;
  return dtype == AX_F64 ? AX_F64 : AX_F32;
}

ax_dtype ax_nest_accumulator_dtype(const ax_nest *nest, uint32_t store) {
  if (ordered(nest, store) != AX_NO_DTYPE) return ax_cg_order(ordered(nest, store));
  bool is_sum = nest->schedule->kernel->stores[store].reduce == AX_SCALAR_ADD;
  return ax_cg_accumulator(ax_nest_store_dtype(nest, store), is_sum && nest->schedule->wide && !nest->adds_few);
}

/* The accumulator is wider than the elements: several of them are added up first, in pairs, and then widened once. */
bool ax_nest_widens(const ax_nest *nest, uint32_t store) {
  return ax_nest_accumulator_dtype(nest, store) == AX_F64 && ax_nest_store_dtype(nest, store) != AX_F64;
}

uint32_t ax_nest_partial_sums(const ax_nest *nest, uint32_t store) {
  if (nest->schedule->running) return ax_nest_running_sums(nest, store);
  return ax_nest_widens(nest, store) || nest->schedule->shape == AX_NEST_RUNS ? 1 : nest->schedule->unroll;
}

/* The carry of a kernel that runs along its lanes is the same for all of them. */
static uint32_t accumulator_lanes(const ax_nest *nest) {
  const ax_nest_schedule *schedule = nest->schedule;
  return schedule->running && schedule->shape == AX_NEST_LANES ? 1 : schedule->lanes;
}

void ax_nest_init(ax_nest *nest) {
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++) {
    const ax_store *store = reduction(nest, s);
    for (uint32_t i = 0; store != NULL && i < AX_MAX_UNROLL; i++)
      *ax_nest_accumulator(nest, s, i) =
          ax_cg_identity(&nest->cg, store->reduce, ax_nest_accumulator_dtype(nest, s), accumulator_lanes(nest));
  }
  nest->accumulating = nest->schedule->reduces;
}

/* The dtype of the values that are added to an accumulator. The accumulator itself may be wider. */
ax_dtype ax_nest_contribution_dtype(const ax_nest *nest, uint32_t store) {
  return ax_nest_widens(nest, store) ? ax_nest_store_dtype(nest, store) : ax_nest_accumulator_dtype(nest, store);
}

/* Lanes that do not exist must not count when lanes are added up; elsewhere they are merely not stored. */
LLVMValueRef ax_nest_contribution(ax_nest *nest, uint32_t store, uint32_t instance) {
  const ax_store *s = reduction(nest, store);
  uint32_t lanes = nest->schedule->lanes;
  LLVMValueRef value = ax_cg_widen_half(&nest->cg, ax_nest_value(nest, s->expr, instance, lanes), lanes);
  LLVMValueRef mask = ax_nest_mask(nest, instance);
  ax_dtype order = ordered(nest, store);
  if (order != AX_NO_DTYPE) value = ax_cg_to_order(&nest->cg, s->reduce, order, value, lanes);
  if (mask == NULL || !nest->schedule->loops[nest->schedule->vector].reduced) return value;
  LLVMValueRef identity = ax_cg_identity(&nest->cg, s->reduce, ax_nest_contribution_dtype(nest, store), lanes);
  return LLVMBuildSelect(nest->cg.builder, mask, value, identity, "");
}

/* Combines two accumulators. */
LLVMValueRef ax_nest_combine(ax_nest *nest, uint32_t store, LLVMValueRef a, LLVMValueRef b, uint32_t lanes) {
  ax_dtype dtype = ax_nest_accumulator_dtype(nest, store);
  return ax_cg_combine(&nest->cg, reduction(nest, store)->reduce, dtype, a, b, lanes);
}

static LLVMValueRef widened(ax_nest *nest, uint32_t store, LLVMValueRef value) {
  if (!ax_nest_widens(nest, store)) return value;
  return LLVMBuildFPExt(nest->cg.builder, value, ax_cg_register(&nest->cg, AX_F64, nest->schedule->lanes), "");
}

void ax_nest_begin_few(ax_nest *nest) {
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++) {
    if (reduction(nest, s) == NULL || !ax_nest_widens(nest, s)) continue;
    LLVMValueRef none = ax_cg_identity(&nest->cg, AX_SCALAR_ADD, ax_nest_contribution_dtype(nest, s), nest->schedule->lanes);
    for (uint32_t i = 0; i < nest->instances; i++) *ax_nest_accumulator(nest, s, i) = none;
  }
  nest->adds_few = true;
}

void ax_nest_end_few(ax_nest *nest, const LLVMValueRef *before) {
  nest->adds_few = false;
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    for (uint32_t i = 0; i < nest->instances && reduction(nest, s) != NULL && ax_nest_widens(nest, s); i++) {
      LLVMValueRef *sum = ax_nest_accumulator(nest, s, i);
      *sum = ax_nest_combine(nest, s, before[sum - nest->accumulators], widened(nest, s, *sum), nest->schedule->lanes);
    }
}

/* Combines the contributions of all instances, as a tree: ((0 1) (2 3)) ((4 5) 6). The result has the accumulator's dtype. */
static LLVMValueRef contributions(ax_nest *nest, uint32_t store) {
  LLVMValueRef values[AX_MAX_UNROLL];
  const ax_store *s = reduction(nest, store);
  for (uint32_t i = 0; i < nest->instances; i++) values[i] = ax_nest_contribution(nest, store, i);
  for (uint32_t half = 1; half < nest->instances; half *= 2)
    for (uint32_t i = 0; i + half < nest->instances; i += 2 * half)
      values[i] =
          ax_cg_combine(&nest->cg, s->reduce, ax_nest_contribution_dtype(nest, store), values[i], values[i + half],
                        nest->schedule->lanes);
  return widened(nest, store, values[0]);
}

static LLVMValueRef tile_pointer(ax_nest *nest, uint32_t store) {
  const ax_nest_schedule *schedule = nest->schedule;
  bool runs = schedule->shape == AX_NEST_RUNS; /* a vector for each of its rows */
  LLVMValueRef offset =
      LLVMBuildSub(nest->cg.builder, nest->index[runs ? schedule->listed : schedule->vector], nest->tile_start, "");
  if (runs) offset = LLVMBuildMul(nest->cg.builder, offset, ax_cg_i64(&nest->cg, schedule->lanes), "");
  LLVMTypeRef element = ax_cg_memory(&nest->cg, ax_nest_accumulator_dtype(nest, store), 1);
  return LLVMBuildGEP2(nest->cg.builder, element, nest->tiles[store], &offset, 1, "");
}

static LLVMValueRef load_tile(ax_nest *nest, uint32_t store) {
  ax_dtype dtype = ax_nest_accumulator_dtype(nest, store);
  LLVMValueRef memory = ax_nest_load_lanes(nest, ax_cg_memory(&nest->cg, dtype, 1), tile_pointer(nest, store), 1, NULL);
  return ax_cg_to_register(&nest->cg, dtype, memory, nest->schedule->lanes);
}

static void store_tile(ax_nest *nest, uint32_t store, LLVMValueRef sum) {
  ax_dtype dtype = ax_nest_accumulator_dtype(nest, store);
  LLVMValueRef memory = ax_cg_to_memory(&nest->cg, dtype, sum, nest->schedule->lanes);
  ax_nest_store_lanes(nest, ax_cg_memory(&nest->cg, dtype, 1), tile_pointer(nest, store), 1, NULL, memory);
}

static void accumulate_instance(ax_nest *nest, uint32_t store, uint32_t i) {
  LLVMValueRef *sum = ax_nest_accumulator(nest, store, i), value = ax_nest_contribution(nest, store, i);
  *sum = ax_nest_combine(nest, store, *sum, widened(nest, store, value), nest->schedule->lanes);
  if (nest->schedule->running) ax_nest_store_sum(nest, store, *sum, i, nest->schedule->lanes);
}

static void accumulate_store(ax_nest *nest, uint32_t store) {
  uint32_t lanes = nest->schedule->lanes;
  if (nest->schedule->running && nest->schedule->shape == AX_NEST_LANES) {
    ax_nest_run_along(nest, store);
    return;
  }
  bool separate = nest->schedule->shape == AX_NEST_BLOCK || (nest->schedule->shape != AX_NEST_RUNS && !ax_nest_widens(nest, store));
  if (nest->schedule->shape == AX_NEST_TILE) {
    LLVMValueRef sum = ax_nest_combine(nest, store, load_tile(nest, store), contributions(nest, store), lanes);
    store_tile(nest, store, sum);
    if (nest->schedule->running) ax_nest_store_sum(nest, store, sum, 0, lanes);
  } else if (separate) {
    for (uint32_t i = 0; i < nest->instances; i++) accumulate_instance(nest, store, i);
  } else {
    LLVMValueRef *sum = ax_nest_accumulator(nest, store, 0);
    *sum = ax_nest_combine(nest, store, *sum, contributions(nest, store), lanes);
  }
}

void ax_nest_accumulate(ax_nest *nest) {
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    if (reduction(nest, s) != NULL) accumulate_store(nest, s);
}

/* A product of one factor is the factor as it came. And where floats are compared as such, an extreme of one number may be that
   number. */
static LLVMValueRef multiplied(const ax_nest *nest, uint32_t store, LLVMValueRef sum, uint32_t lanes) {
  const ax_dtype dtype = ax_nest_accumulator_dtype(nest, store);
  if (reduction(nest, store)->reduce == AX_SCALAR_ADD || !ax_is_float(dtype)) return sum;
  return ax_cg_flushed(&nest->cg, dtype, sum, lanes);
}

static bool extreme_of_none(const ax_nest *nest, uint32_t store) {
  const ax_scalar reduce = reduction(nest, store)->reduce;
  return (reduce == AX_SCALAR_MAX || reduce == AX_SCALAR_MIN) && ax_is_byte_float(ax_nest_store_dtype(nest, store)) &&
         !ax_has_infinity(ax_nest_store_dtype(nest, store));
}

/* An extreme of no numbers, held as f32, is infinite. A dtype without infinities has its least or its largest number instead. */
static LLVMValueRef without_infinity(const ax_nest *nest, uint32_t store, LLVMValueRef sum, uint32_t lanes) {
  const ax_dtype dtype = ax_nest_store_dtype(nest, store);
  const bool max = reduction(nest, store)->reduce == AX_SCALAR_MAX;
  LLVMValueRef none = ax_cg_number(&nest->cg, AX_F32, lanes, max ? -INFINITY : INFINITY);
  LLVMValueRef edge = ax_cg_number(&nest->cg, AX_F32, lanes, max ? ax_float_least(dtype) : ax_float_largest(dtype));
  LLVMValueRef is_none = LLVMBuildFCmp(nest->cg.builder, LLVMRealOEQ, sum, none, "");
  return LLVMBuildSelect(nest->cg.builder, is_none, edge, sum, "");
}

void ax_nest_store_sum(ax_nest *nest, uint32_t store, LLVMValueRef sum, uint32_t instance, uint32_t lanes) {
  ax_dtype dtype = ax_nest_store_dtype(nest, store), order = ordered(nest, store);
  if (order != AX_NO_DTYPE) sum = ax_cg_from_order(&nest->cg, reduction(nest, store)->reduce, order, sum, lanes);
  else sum = multiplied(nest, store, sum, lanes);
  if (extreme_of_none(nest, store)) sum = without_infinity(nest, store, sum, lanes);
  sum = ax_nest_widens(nest, store) ? ax_cg_convert(&nest->cg, AX_F64, dtype, sum, lanes)
                                    : ax_cg_round(&nest->cg, dtype, sum, lanes);
  ax_nest_store(nest, nest->schedule->kernel->expr_count + store, sum, lanes, instance);
}

/* ((0 1) (2 3)) ((4 5) (6 7)), whatever the machine. */
static LLVMValueRef partial_sums(ax_nest *nest, uint32_t store) {
  uint32_t count = ax_nest_partial_sums(nest, store);
  for (uint32_t half = 1; half < count; half *= 2)
    for (uint32_t i = 0; i + half < count; i += 2 * half) {
      LLVMValueRef *sum = ax_nest_accumulator(nest, store, i);
      *sum = ax_nest_combine(nest, store, *sum, *ax_nest_accumulator(nest, store, i + half), nest->schedule->lanes);
    }
  return *ax_nest_accumulator(nest, store, 0);
}

/* The upper half onto the lower half, until two lanes are left. */
static LLVMValueRef two_lanes(ax_nest *nest, uint32_t store, LLVMValueRef sum) {
  for (uint32_t half = nest->schedule->lanes / 2; half > 1; half /= 2)
    sum = ax_nest_combine(nest, store, ax_cg_slice(&nest->cg, sum, 0, half), ax_cg_slice(&nest->cg, sum, half, half), half);
  return sum;
}

static LLVMValueRef lane(ax_nest *nest, LLVMValueRef vector, int64_t which) {
  return LLVMBuildExtractElement(nest->cg.builder, vector, ax_cg_i64(&nest->cg, which), "");
}

/* All lanes to one, which is stored. Floats that are compared as integers stay in vector registers until they are floats again: the
   way to the others and back takes longer than all else here. */
static void store_across(ax_nest *nest, uint32_t store, LLVMValueRef sum) {
  const int64_t swapped[] = {1, 0};
  const ax_dtype order = ordered(nest, store);
  sum = two_lanes(nest, store, sum);
  if (order == AX_NO_DTYPE) {
    ax_nest_store_sum(nest, store, ax_nest_combine(nest, store, lane(nest, sum, 0), lane(nest, sum, 1), 1), 0, 1);
    return;
  }
  sum = ax_nest_combine(nest, store, sum, ax_cg_shuffle(&nest->cg, sum, NULL, swapped, 2), 2);
  sum = lane(nest, ax_cg_from_order(&nest->cg, reduction(nest, store)->reduce, order, sum, 2), 0);
  sum = ax_cg_round(&nest->cg, ax_nest_store_dtype(nest, store), sum, 1);
  ax_nest_store(nest, nest->schedule->kernel->expr_count + store, sum, 1, 0);
}

static void finish_one(ax_nest *nest, uint32_t store) {
  uint32_t lanes = nest->schedule->lanes;
  if (nest->schedule->running) return; /* each step is stored */
  switch (nest->schedule->shape) {
    case AX_NEST_LANES:
    case AX_NEST_TRANSPOSE:
      store_across(nest, store, partial_sums(nest, store));
      break;
    case AX_NEST_RUNS:
      store_across(nest, store, load_tile(nest, store));
      break;
    case AX_NEST_STRIP:
      ax_nest_store_sum(nest, store, partial_sums(nest, store), 0, lanes);
      break;
    case AX_NEST_TILE:
      ax_nest_store_sum(nest, store, load_tile(nest, store), 0, lanes);
      break;
    case AX_NEST_COLUMNS:
    case AX_NEST_NARROW:
      break; /* they have no reductions */
    case AX_NEST_BLOCK:
      for (uint32_t i = 0; i < nest->instances; i++)
        ax_nest_store_sum(nest, store, *ax_nest_accumulator(nest, store, i), i, lanes);
  }
}

void ax_nest_take_up(ax_nest *nest) {
  ax_nest_init(nest);
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    if (reduction(nest, s) != NULL) *ax_nest_accumulator(nest, s, 0) = load_tile(nest, s);
}

void ax_nest_put_down(ax_nest *nest) {
  nest->accumulating = false;
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    if (reduction(nest, s) != NULL) store_tile(nest, s, *ax_nest_accumulator(nest, s, 0));
}

void ax_nest_finish(ax_nest *nest) {
  nest->accumulating = false;
  for (uint32_t s = 0; s < nest->schedule->kernel->store_count; s++)
    if (reduction(nest, s) != NULL) finish_one(nest, s);
}
