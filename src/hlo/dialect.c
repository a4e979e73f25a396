#include "hlo/dialect.h"

#include <string.h>

/* --- Enumerations --- */

static const ax_hlo_words directions = {"comparison_direction", {"EQ", "NE", "GE", "GT", "LE", "LT"}, 6, 2, 3};
static const ax_hlo_words comparisons = {"comparison_type", {"NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"}, 5, 3, 4};
static const ax_hlo_words fft_types = {"fft_type", {"FFT", "IFFT", "RFFT", "IRFFT"}, 4, 6, 7};
static const ax_hlo_words precisions = {"precision", {"DEFAULT", "HIGH", "HIGHEST"}, 3, 8, 11};
static const ax_hlo_words algorithms = {"rng_algorithm", {"DEFAULT", "THREE_FRY", "PHILOX"}, 3, 9, 12};
static const ax_hlo_words distributions = {"rng_distribution", {"", "UNIFORM", "NORMAL"}, 3, 10, 13};
static const ax_hlo_words transposes = {"transpose", {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"}, 4, 12, 16};
const ax_hlo_words ax_hlo_accuracy_modes = {"result_accuracy_mode", {"DEFAULT", "HIGHEST", "TOLERANCE"}, 3, 16, 19};
static const ax_hlo_words api_versions = {"api_version",
                                          {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
                                           "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"},
                                          5,
                                          0,
                                          5};

static const ax_hlo_words *const all_words[] = {&directions,  &comparisons,   &fft_types,  &precisions,
                                                &algorithms,  &distributions, &transposes, &ax_hlo_accuracy_modes,
                                                &api_versions};

const ax_hlo_words *ax_hlo_find_words(bool vhlo, uint64_t code) {
  for (size_t i = 0; i < AX_COUNT(all_words) && code != 0; i++)
    if ((vhlo ? all_words[i]->vhlo : all_words[i]->code) == code) return all_words[i];
  return NULL;
}

/* --- Groups --- */

#define INTEGER(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGER }
#define INTEGERS(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGERS }
/* Lists that texts leave out if they are empty. */
#define BATCHING(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGERS, .optional = true, .first = 2 }
#define LISTED(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGERS, .optional = true }
#define COUNTED(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGER, .first = 2 }
#define TYPED(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_TYPE, .first = 2 }

static const ax_hlo_slot gather_slots[] = {LISTED("offset_dims"),
                                           LISTED("collapsed_slice_dims"),
                                           BATCHING("operand_batching_dims"),
                                           BATCHING("start_indices_batching_dims"),
                                           LISTED("start_index_map"),
                                           {.name = "index_vector_dim", .kind = AX_HLO_SLOT_INTEGER, .optional = true}};
static const ax_hlo_slot scatter_slots[] = {
    LISTED("update_window_dims"),           LISTED("inserted_window_dims"),
    BATCHING("input_batching_dims"),        BATCHING("scatter_indices_batching_dims"),
    LISTED("scatter_dims_to_operand_dims"), {.name = "index_vector_dim", .kind = AX_HLO_SLOT_INTEGER, .optional = true}};
static const ax_hlo_slot dot_slots[] = {LISTED("lhs_batching_dimensions"), LISTED("rhs_batching_dimensions"),
                                        LISTED("lhs_contracting_dimensions"), LISTED("rhs_contracting_dimensions")};
static const ax_hlo_slot conv_slots[] = {
    INTEGER("input_batch_dimension"),          INTEGER("input_feature_dimension"),         INTEGERS("input_spatial_dimensions"),
    INTEGER("kernel_input_feature_dimension"), INTEGER("kernel_output_feature_dimension"), INTEGERS("kernel_spatial_dimensions"),
    INTEGER("output_batch_dimension"),         INTEGER("output_feature_dimension"),        INTEGERS("output_spatial_dimensions")};
static const ax_hlo_slot algorithm_slots[] = {TYPED("lhs_precision_type"),
                                              TYPED("rhs_precision_type"),
                                              TYPED("accumulation_type"),
                                              COUNTED("lhs_component_count"),
                                              COUNTED("rhs_component_count"),
                                              COUNTED("num_primitive_operations"),
                                              {.name = "allow_imprecise_accumulation", .kind = AX_HLO_SLOT_BOOL, .first = 2}};
static const ax_hlo_slot channel_slots[] = {{.name = "handle", .vhlo_name = "channel_id", .kind = AX_HLO_SLOT_INTEGER},
                                            {.name = "type", .vhlo_name = "channel_type", .kind = AX_HLO_SLOT_INTEGER}};
/* Collectives have the number of the channel alone. */
static const ax_hlo_slot collective_slots[] = {{.name = "handle", .vhlo_name = "channel_id", .kind = AX_HLO_SLOT_INTEGER},
                                               {.name = "type", .vhlo_name = "", .kind = AX_HLO_SLOT_INTEGER}};
static const ax_hlo_slot alias_slots[] = {LISTED("output_tuple_indices"), INTEGER("operand_index"),
                                          LISTED("operand_tuple_indices")};

#define SLOTS(list) list, AX_COUNT(list)
static const ax_hlo_group gather_group = {"stablehlo.gather", 7, SLOTS(gather_slots)};
static const ax_hlo_group scatter_group = {"stablehlo.scatter", 11, SLOTS(scatter_slots)};
static const ax_hlo_group dot_group = {"stablehlo.dot", 5, SLOTS(dot_slots)};
static const ax_hlo_group conv_group = {"stablehlo.conv", 4, SLOTS(conv_slots)};
static const ax_hlo_group algorithm_group = {"stablehlo.dot_algorithm", 15, SLOTS(algorithm_slots)};
static const ax_hlo_group channel_group = {"stablehlo.channel_handle", 1, SLOTS(channel_slots)};
static const ax_hlo_group collective_group = {"stablehlo.channel_handle", 1, SLOTS(collective_slots)};
static const ax_hlo_group alias_group = {"stablehlo.output_operand_alias", 14, SLOTS(alias_slots)};

static const ax_hlo_group *const all_groups[] = {&gather_group,    &scatter_group, &dot_group,  &conv_group,
                                                 &algorithm_group, &channel_group, &alias_group};

const ax_hlo_group *ax_hlo_find_group(uint64_t code) {
  for (size_t i = 0; i < AX_COUNT(all_groups); i++)
    if (all_groups[i]->code == code) return all_groups[i];
  return NULL;
}

const ax_hlo_group *ax_hlo_find_named_group(ax_hlo_slice name) {
  for (size_t i = 0; i < AX_COUNT(all_groups); i++)
    if (ax_hlo_slice_is(name, all_groups[i]->name)) return all_groups[i];
  return NULL;
}

/* --- Attributes that several operations have --- */

#define ANY(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_ANY }
#define TRUTH(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_BOOL }
#define MAYBE(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_BOOL, .optional = true }
#define UNIT(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_UNIT, .optional = true }
#define STRING(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_STRING }
#define SYMBOL(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_SYMBOL }
#define WORD(NAME, WORDS) \
  { .name = NAME, .kind = AX_HLO_SLOT_WORD, .words = &(WORDS) }
#define ARRAY(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_ARRAY, .optional = true }
#define GROUP(NAME, GROUP) \
  { .name = NAME, .kind = AX_HLO_SLOT_GROUP, .group = &(GROUP) }
#define MAYBE_GROUP(NAME, GROUP) \
  { .name = NAME, .kind = AX_HLO_SLOT_GROUP, .optional = true, .group = &(GROUP) }
/* Lists with an entry for each dimension, 1 or false. */
#define ONES(NAME, LIKE) \
  { .name = NAME, .kind = AX_HLO_SLOT_INTEGERS, .optional = true, .otherwise = 1, .like = LIKE }
#define NEVER(NAME, LIKE) \
  { .name = NAME, .kind = AX_HLO_SLOT_TRUTHS, .optional = true, .like = LIKE }
#define PADDING(LIKE) \
  { .name = "padding", .kind = AX_HLO_SLOT_PAIRS, .optional = true, .like = LIKE }
#define GROUPS \
  { .name = "replica_groups", .kind = AX_HLO_SLOT_PAIRS }
#define PRECISIONS \
  { .name = "precision_config", .kind = AX_HLO_SLOT_WORDS, .optional = true, .words = &precisions }
#define EPSILON \
  { .name = "epsilon", .kind = AX_HLO_SLOT_FLOAT }
#define SPATIAL "input_spatial_dimensions"
#define WINDOW "window_dimensions"

/* --- Operations --- */

static const ax_hlo_slot constant_slots[] = {ANY("value")};
static const ax_hlo_slot iota_slots[] = {INTEGER("iota_dimension")};
static const ax_hlo_slot accuracy_slots[] = {
    {.name = "result_accuracy", .kind = AX_HLO_SLOT_ACCURACY, .optional = true, .first = 2}};
static const ax_hlo_slot infeed_slots[] = {{.name = "infeed_config", .kind = AX_HLO_SLOT_STRING, .optional = true},
                                           ARRAY("layout")};
static const ax_hlo_slot outfeed_slots[] = {{.name = "outfeed_config", .kind = AX_HLO_SLOT_STRING, .optional = true}};
static const ax_hlo_slot send_slots[] = {GROUP("channel_handle", channel_group),
                                         MAYBE("is_host_transfer"),
                                         {.name = "source_target_pairs", .kind = AX_HLO_SLOT_PAIRS, .optional = true, .first = 2}};
static const ax_hlo_slot all_gather_slots[] = {INTEGER("all_gather_dim"), GROUPS, MAYBE_GROUP("channel_handle", collective_group),
                                               UNIT("use_global_device_ids")};
static const ax_hlo_slot all_reduce_slots[] = {GROUPS, MAYBE_GROUP("channel_handle", collective_group),
                                               UNIT("use_global_device_ids")};
static const ax_hlo_slot reduce_scatter_slots[] = {INTEGER("scatter_dimension"), GROUPS,
                                                   MAYBE_GROUP("channel_handle", collective_group), UNIT("use_global_device_ids")};
static const ax_hlo_slot all_to_all_slots[] = {INTEGER("split_dimension"), INTEGER("concat_dimension"), INTEGER("split_count"),
                                               GROUPS, MAYBE_GROUP("channel_handle", collective_group)};
static const ax_hlo_slot collective_broadcast_slots[] = {
    GROUPS,
    MAYBE_GROUP("channel_handle", collective_group),
    {.name = "has_dynamic_root", .kind = AX_HLO_SLOT_UNIT, .optional = true, .first = 2}};
static const ax_hlo_slot collective_reduce_slots[] = {GROUPS, MAYBE_GROUP("channel_handle", collective_group),
                                                      UNIT("use_global_device_ids"), UNIT("has_dynamic_root")};
static const ax_hlo_slot collective_permute_slots[] = {{.name = "source_target_pairs", .kind = AX_HLO_SLOT_PAIRS},
                                                       MAYBE_GROUP("channel_handle", collective_group)};
static const ax_hlo_slot groups_slots[] = {GROUPS};
static const ax_hlo_slot dimensions_slots[] = {INTEGERS("dimensions")};
static const ax_hlo_slot index_slots[] = {{.name = "index", .kind = AX_HLO_SLOT_INTEGER32}};
static const ax_hlo_slot compare_slots[] = {
    WORD("comparison_direction", directions),
    {.name = "compare_type", .kind = AX_HLO_SLOT_WORD, .optional = true, .words = &comparisons}};
static const ax_hlo_slot slice_slots[] = {INTEGERS("start_indices"), INTEGERS("limit_indices"), INTEGERS("strides")};
static const ax_hlo_slot dynamic_slice_slots[] = {INTEGERS("slice_sizes")};
static const ax_hlo_slot normal_slots[] = {EPSILON, INTEGER("feature_index")};
static const ax_hlo_slot broadcast_slots[] = {INTEGERS("broadcast_sizes")};
static const ax_hlo_slot broadcast_in_dim_slots[] = {INTEGERS("broadcast_dimensions")};
static const ax_hlo_slot dynamic_broadcast_slots[] = {INTEGERS("broadcast_dimensions"), LISTED("known_expanding_dimensions"),
                                                      LISTED("known_nonexpanding_dimensions")};
static const ax_hlo_slot cholesky_slots[] = {MAYBE("lower")};
static const ax_hlo_slot dimension_slots[] = {INTEGER("dimension")};
static const ax_hlo_slot composite_slots[] = {STRING("name"),
                                              {.name = "composite_attributes", .kind = AX_HLO_SLOT_DICTIONARY, .optional = true},
                                              SYMBOL("decomposition"),
                                              {.name = "version", .kind = AX_HLO_SLOT_INTEGER32, .optional = true}};
static const ax_hlo_slot convolution_slots[] = {ONES("window_strides", SPATIAL),
                                                PADDING(SPATIAL),
                                                ONES("lhs_dilation", SPATIAL),
                                                ONES("rhs_dilation", SPATIAL),
                                                NEVER("window_reversal", SPATIAL),
                                                GROUP("dimension_numbers", conv_group),
                                                INTEGER("feature_group_count"),
                                                INTEGER("batch_group_count"),
                                                PRECISIONS};
/* The first form has padding besides, which nothing reads: the operand says it. */
static const ax_hlo_slot dynamic_conv_slots[] = {
    ONES("window_strides", SPATIAL),
    {.name = "padding", .kind = AX_HLO_SLOT_PAIRS, .optional = true, .like = SPATIAL, .last = 1},
    ONES("lhs_dilation", SPATIAL),
    ONES("rhs_dilation", SPATIAL),
    NEVER("window_reversal", SPATIAL),
    GROUP("dimension_numbers", conv_group),
    INTEGER("feature_group_count"),
    INTEGER("batch_group_count"),
    PRECISIONS};
static const ax_hlo_slot custom_call_slots[] = {
    STRING("call_target_name"),
    MAYBE("has_side_effect"),
    {.name = "backend_config", .kind = AX_HLO_SLOT_ANY, .optional = true},
    {.name = "api_version", .kind = AX_HLO_SLOT_NUMBER, .optional = true, .otherwise = 1, .words = &api_versions},
    {.name = "called_computations", .kind = AX_HLO_SLOT_SYMBOLS, .optional = true},
    ARRAY("operand_layouts"),
    ARRAY("result_layouts"),
    ARRAY("output_operand_aliases"),
    {.name = "result_tilings", .kind = AX_HLO_SLOT_ARRAY, .optional = true, .first = 2}};
static const ax_hlo_slot dot_general_slots[] = {GROUP("dot_dimension_numbers", dot_group), PRECISIONS,
                                                MAYBE_GROUP("algorithm", algorithm_group)};
static const ax_hlo_slot dot_op_slots[] = {PRECISIONS};
static const ax_hlo_slot einsum_slots[] = {STRING("einsum_config")};
static const ax_hlo_slot fft_slots[] = {WORD("fft_type", fft_types), INTEGERS("fft_length")};
static const ax_hlo_slot gather_op_slots[] = {GROUP("dimension_numbers", gather_group), INTEGERS("slice_sizes"),
                                              MAYBE("indices_are_sorted")};
static const ax_hlo_slot dynamic_gather_slots[] = {GROUP("dimension_numbers", gather_group), MAYBE("indices_are_sorted")};
static const ax_hlo_slot scatter_op_slots[] = {GROUP("scatter_dimension_numbers", scatter_group), MAYBE("indices_are_sorted"),
                                               MAYBE("unique_indices")};
static const ax_hlo_slot select_and_scatter_slots[] = {
    {.name = WINDOW, .kind = AX_HLO_SLOT_INTEGERS, .optional = true, .otherwise = 1},
    ONES("window_strides", WINDOW),
    PADDING(WINDOW)};
static const ax_hlo_slot sort_slots[] = {{.name = "dimension", .kind = AX_HLO_SLOT_INTEGER, .optional = true, .otherwise = -1},
                                         MAYBE("is_stable")};
static const ax_hlo_slot pad_slots[] = {INTEGERS("edge_padding_low"), INTEGERS("edge_padding_high"), INTEGERS("interior_padding")};
static const ax_hlo_slot transpose_slots[] = {INTEGERS("permutation")};
static const ax_hlo_slot triangular_slots[] = {TRUTH("left_side"), TRUTH("lower"), TRUTH("unit_diagonal"),
                                               WORD("transpose_a", transposes)};
static const ax_hlo_slot reduce_window_slots[] = {INTEGERS(WINDOW), ONES("window_strides", WINDOW), ONES("base_dilations", WINDOW),
                                                  ONES("window_dilations", WINDOW), PADDING(WINDOW)};
static const ax_hlo_slot index_select_slots[] = {INTEGER("dim"), INTEGER("batch_dims")};
static const ax_hlo_slot rng_slots[] = {WORD("rng_distribution", distributions)};
static const ax_hlo_slot rng_bits_slots[] = {WORD("rng_algorithm", algorithms)};
static const ax_hlo_slot precision_slots[] = {{.name = "exponent_bits", .kind = AX_HLO_SLOT_INTEGER32},
                                              {.name = "mantissa_bits", .kind = AX_HLO_SLOT_INTEGER32}};
static const ax_hlo_slot func_slots[] = {STRING("sym_name"),
                                         {.name = "function_type", .kind = AX_HLO_SLOT_TYPE},
                                         {.name = "sym_visibility", .kind = AX_HLO_SLOT_STRING, .optional = true},
                                         ARRAY("arg_attrs"),
                                         ARRAY("res_attrs"),
                                         {.name = "no_inline", .kind = AX_HLO_SLOT_UNIT, .optional = true, .first = 9}};
static const ax_hlo_slot call_slots[] = {SYMBOL("callee"),
                                         {.name = "arg_attrs", .kind = AX_HLO_SLOT_ARRAY, .optional = true, .first = 9},
                                         {.name = "res_attrs", .kind = AX_HLO_SLOT_ARRAY, .optional = true, .first = 9},
                                         {.name = "no_inline", .kind = AX_HLO_SLOT_UNIT, .optional = true, .first = 9}};

/* Operations of dialects that VHLO does not have stand in plain bytecode alone. */
static const ax_hlo_slot module_slots[] = {{.name = "sym_name", .kind = AX_HLO_SLOT_STRING, .optional = true},
                                           {.name = "sym_visibility", .kind = AX_HLO_SLOT_STRING, .optional = true}};
static const ax_hlo_slot binary_slots[] = {LISTED("broadcast_dimensions")};
static const ax_hlo_slot broadcast_compare_slots[] = {
    LISTED("broadcast_dimensions"),
    WORD("comparison_direction", directions),
    {.name = "compare_type", .kind = AX_HLO_SLOT_WORD, .optional = true, .words = &comparisons}};
static const ax_hlo_slot top_k_slots[] = {
    INTEGER("k"), {.name = "is_stable", .kind = AX_HLO_SLOT_BOOL, .optional = true, .otherwise = 1, .first = 2}};
#define SEGMENTS(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_SEGMENTS, .optional = true }
/* No value stands for what is left out, other than is_reverse; and the rule says which dimensions there are. */
static const ax_hlo_slot scan_slots[] = {
    {.name = "dimension", .kind = AX_HLO_SLOT_INTEGER, .otherwise = -1},
    {.name = "is_reverse", .kind = AX_HLO_SLOT_BOOL, .optional = true},
    {.name = "is_associative", .kind = AX_HLO_SLOT_BOOL, .optional = true, .otherwise = -1},
    {.name = "scan_dim_size", .kind = AX_HLO_SLOT_INTEGER, .optional = true, .otherwise = -1},
    SEGMENTS("operandSegmentSizes"),
    SEGMENTS("resultSegmentSizes")};
static const ax_hlo_slot ragged_dot_slots[] = {ANY("ragged_dot_dimension_numbers"), PRECISIONS};
#define SHARDING(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_ANY, .before = "#sdy.sharding", .behind = "" }
#define SHARDINGS(NAME) \
  { .name = NAME, .kind = AX_HLO_SLOT_ANY, .before = "#sdy.sharding_per_value<", .behind = ">" }
static const ax_hlo_slot mesh_slots[] = {STRING("sym_name"),
                                         {.name = "mesh", .kind = AX_HLO_SLOT_ANY, .before = "#sdy.mesh", .behind = ""}};
static const ax_hlo_slot sharding_slots[] = {SHARDING("sharding")};
static const ax_hlo_slot manual_slots[] = {
    SHARDINGS("in_shardings"),
    SHARDINGS("out_shardings"),
    {.name = "manual_axes", .kind = AX_HLO_SLOT_ANY, .before = "#sdy<manual_axes", .behind = ">"}};
static const ax_hlo_slot group_id_slots[] = {INTEGER("group_id")};
static const ax_hlo_slot all_gather_axes_slots[] = {ANY("gathering_axes"), SHARDING("out_sharding")};
static const ax_hlo_slot all_slice_axes_slots[] = {ANY("slicing_axes"), SHARDING("out_sharding")};
static const ax_hlo_slot reduction_axes_slots[] = {ANY("reduction_axes"), SHARDING("out_sharding")};
static const ax_hlo_slot scattered_axes_slots[] = {ANY("reduce_scatter_axes"), SHARDING("out_sharding")};
static const ax_hlo_slot unreduced_axes_slots[] = {ANY("axes"), SHARDING("out_sharding")};
static const ax_hlo_slot direction_slots[] = {ANY("allowed_direction")};
static const ax_hlo_slot named_slots[] = {STRING("name"),
                                          {.name = "in_shardings", .kind = AX_HLO_SLOT_ANY, .optional = true, .before = "#sdy.sharding_per_value<", .behind = ">"},
                                          {.name = "out_shardings", .kind = AX_HLO_SLOT_ANY, .optional = true, .before = "#sdy.sharding_per_value<", .behind = ">"}};
static const ax_hlo_slot exchange_slots[] = {ANY("params"), SHARDING("out_sharding")};
static const ax_hlo_slot out_sharding_slots[] = {SHARDING("out_sharding")};

#define SINCE(first, second) \
  { first, second }
#define V AX_HLO_VERSION
static const ax_hlo_listed operations[] = {
    {"all_gather", SLOTS(all_gather_slots), SINCE(0, V(1, 5)), true},
    {"all_reduce", SLOTS(all_reduce_slots), SINCE(0, V(1, 5)), true},
    {"all_to_all", SLOTS(all_to_all_slots), SINCE(0, V(1, 5)), true},
    {"async_start", NULL, 0, SINCE(V(1, 15), 0), false},
    {"async_done", NULL, 0, SINCE(V(1, 15), 0), false},
    {"batch_norm_grad", SLOTS(normal_slots), {0}, false},
    {"batch_norm_inference", SLOTS(normal_slots), {0}, false},
    {"batch_norm_training", SLOTS(normal_slots), {0}, false},
    {"broadcast_in_dim", SLOTS(broadcast_in_dim_slots), {0}, false},
    {"broadcast", SLOTS(broadcast_slots), {0}, false},
    {"cbrt", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"cholesky", SLOTS(cholesky_slots), {0}, false},
    {"collective_broadcast", SLOTS(collective_broadcast_slots), SINCE(V(0, 16), V(1, 20)), true},
    {"collective_reduce", SLOTS(collective_reduce_slots), SINCE(V(1, 19), 0), false},
    {"collective_permute", SLOTS(collective_permute_slots), {0}, false},
    {"compare", SLOTS(compare_slots), {0}, false},
    {"composite", SLOTS(composite_slots), SINCE(V(0, 19), V(1, 14)), false},
    {"concatenate", SLOTS(dimension_slots), {0}, false},
    {"constant", SLOTS(constant_slots), {0}, false},
    {"convolution", SLOTS(convolution_slots), {0}, false},
    {"cosine", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"cross-replica-sum", SLOTS(groups_slots), {0}, false},
    {"custom_call", SLOTS(custom_call_slots), SINCE(0, V(1, 18)), false},
    {"dot_general", SLOTS(dot_general_slots), SINCE(0, V(1, 6)), false},
    {"dot", SLOTS(dot_op_slots), {0}, false},
    {"dynamic_broadcast_in_dim", SLOTS(dynamic_broadcast_slots), {0}, false},
    {"dynamic_conv", SLOTS(dynamic_conv_slots), SINCE(0, V(0, 20)), false},
    {"dynamic_gather", SLOTS(dynamic_gather_slots), SINCE(0, V(1, 1)), false},
    {"dynamic_iota", SLOTS(iota_slots), {0}, false},
    {"dynamic_slice", SLOTS(dynamic_slice_slots), {0}, false},
    {"einsum", SLOTS(einsum_slots), {0}, false},
    {"exponential_minus_one", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"exponential", SLOTS(accuracy_slots), SINCE(0, V(1, 9)), false},
    {"fft", SLOTS(fft_slots), {0}, false},
    {"gather", SLOTS(gather_op_slots), SINCE(0, V(1, 1)), false},
    {"get_dimension_size", SLOTS(dimension_slots), {0}, false},
    {"get_tuple_element", SLOTS(index_slots), {0}, false},
    {"infeed", SLOTS(infeed_slots), {0}, false},
    {"iota", SLOTS(iota_slots), {0}, false},
    {"log_plus_one", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"logistic", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"log", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"map", SLOTS(dimensions_slots), {0}, false},
    {"outfeed", SLOTS(outfeed_slots), {0}, false},
    {"pad", SLOTS(pad_slots), {0}, false},
    {"recv", SLOTS(send_slots), SINCE(0, V(1, 12)), false},
    {"reduce", SLOTS(dimensions_slots), {0}, false},
    {"reduce_precision", SLOTS(precision_slots), {0}, false},
    {"reduce_scatter", SLOTS(reduce_scatter_slots), {0}, false},
    {"reduce_window", SLOTS(reduce_window_slots), {0}, false},
    {"reverse", SLOTS(dimensions_slots), {0}, false},
    {"rng_bit_generator", SLOTS(rng_bits_slots), {0}, false},
    {"rng", SLOTS(rng_slots), {0}, false},
    {"rsqrt", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"scatter", SLOTS(scatter_op_slots), SINCE(0, V(1, 1)), false},
    {"select_and_scatter", SLOTS(select_and_scatter_slots), {0}, false},
    {"send", SLOTS(send_slots), SINCE(0, V(1, 12)), false},
    {"set_dimension_size", SLOTS(dimension_slots), {0}, false},
    {"sine", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"slice", SLOTS(slice_slots), {0}, false},
    {"sort", SLOTS(sort_slots), {0}, false},
    {"sqrt", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"tan", SLOTS(accuracy_slots), SINCE(V(1, 4), V(1, 10)), false},
    {"tanh", SLOTS(accuracy_slots), SINCE(0, V(1, 10)), false},
    {"torch_index_select", SLOTS(index_select_slots), {0}, false},
    {"transpose", SLOTS(transpose_slots), {0}, false},
    {"triangular_solve", SLOTS(triangular_slots), {0}, false},
    {"unary_einsum", SLOTS(einsum_slots), {0}, false},
    {"func.func", SLOTS(func_slots), {0}, false},
    {"func.call", SLOTS(call_slots), {0}, false},
    {"builtin.module", SLOTS(module_slots), {0}, false},
    {"chlo.constant", SLOTS(constant_slots), {0}, false},
    {"chlo.constant_like", SLOTS(constant_slots), {0}, false},
    {"chlo.broadcast_compare", SLOTS(broadcast_compare_slots), {0}, false},
    {"chlo.top_k", SLOTS(top_k_slots), {0}, false},
    {"chlo.ragged_dot", SLOTS(ragged_dot_slots), {0}, false},
    {"chlo.scan", SLOTS(scan_slots), {0}, false},
    {"sdy.mesh", SLOTS(mesh_slots), {0}, false},
    {"sdy.sharding_constraint", SLOTS(sharding_slots), {0}, false},
    {"sdy.reshard", SLOTS(sharding_slots), {0}, false},
    {"sdy.manual_computation", SLOTS(manual_slots), {0}, false},
    {"sdy.constant", SLOTS(constant_slots), {0}, false},
    {"sdy.all_gather", SLOTS(all_gather_axes_slots), {0}, false},
    {"sdy.all_slice", SLOTS(all_slice_axes_slots), {0}, false},
    {"sdy.all_to_all", SLOTS(exchange_slots), {0}, false},
    {"sdy.collective_permute", SLOTS(out_sharding_slots), {0}, false},
    {"sdy.sharding_group", SLOTS(group_id_slots), {0}, false},
    {"sdy.all_reduce", SLOTS(reduction_axes_slots), {0}, false},
    {"sdy.reduce_scatter", SLOTS(scattered_axes_slots), {0}, false},
    {"sdy.sharded_to_unreduced", SLOTS(unreduced_axes_slots), {0}, false},
    {"sdy.replicated_to_unreduced", SLOTS(unreduced_axes_slots), {0}, false},
    {"sdy.propagation_barrier", SLOTS(direction_slots), {0}, false},
    {"sdy.named_computation", SLOTS(named_slots), {0}, false},
};
static const ax_hlo_listed broadcasting = {"chlo.broadcast_", SLOTS(binary_slots), {0}, false};

static bool begins(ax_hlo_slice name, const char *word) {
  return name.length >= strlen(word) && memcmp(name.start, word, strlen(word)) == 0;
}

const ax_hlo_listed *ax_hlo_find_known(ax_hlo_slice name) {
  const size_t dialect = begins(name, "stablehlo.") ? strlen("stablehlo.") : 0;
  const ax_hlo_slice rest = {name.start + dialect, name.length - dialect};
  for (size_t i = 0; i < AX_COUNT(operations); i++)
    if (ax_hlo_slice_is(rest, operations[i].name) && (dialect > 0 || strchr(operations[i].name, '.') != NULL))
      return &operations[i];
  return begins(name, broadcasting.name) ? &broadcasting : NULL;
}

/* --- Orders --- */

static void insert(const ax_hlo_slot *slot, bool vhlo, const ax_hlo_slot **out, uint32_t *count) {
  const char *name = vhlo ? ax_hlo_vhlo_name(slot) : slot->name;
  uint32_t at = *count;
  if (name[0] == '\0' || *count == AX_HLO_MOST_SLOTS) return;
  for (; at > 0 && strcmp(vhlo ? ax_hlo_vhlo_name(out[at - 1]) : out[at - 1]->name, name) > 0; at--) out[at] = out[at - 1];
  out[at] = slot;
  (*count)++;
}

static void insert_all(const ax_hlo_slot *slots, uint32_t slot_count, uint32_t form, const ax_hlo_slot **out, uint32_t *count) {
  for (uint32_t i = 0; i < slot_count; i++) {
    const ax_hlo_slot *slot = &slots[i];
    if (form == 0 ? slot->last > 0 : form < slot->first || (slot->last > 0 && form > slot->last)) continue;
    if (form > 0 && slot->group != NULL)
      insert_all(slot->group->slots, slot->group->count, form, out, count);
    else
      insert(slot, form > 0, out, count);
  }
}

uint32_t ax_hlo_order_slots(const ax_hlo_listed *known, uint32_t form, const ax_hlo_slot *out[AX_HLO_MOST_SLOTS]) {
  uint32_t count = 0;
  if (known != NULL) insert_all(known->slots, known->count, form, out, &count);
  return count;
}

/* --- Types --- */

static const ax_hlo_simple_type simple_types[] = {
    [0] = {"i1", 0},
    [2] = {"bf16", 0},
    [3] = {"f16", 0},
    [4] = {"f32", 0},
    [5] = {"f64", 0},
    [6] = {"f8E4M3FN", 0},
    [7] = {"f8E5M2", 0},
    [9] = {"index", 0},
    [10] = {"i4", 0},
    [11] = {"i8", 0},
    [12] = {"i16", 0},
    [13] = {"i32", 0},
    [14] = {"i64", 0},
    [15] = {"ui4", 0},
    [16] = {"ui8", 0},
    [17] = {"ui16", 0},
    [18] = {"ui32", 0},
    [19] = {"ui64", 0},
    [22] = {"!stablehlo.token", 0},
    [26] = {"!shape.witness", 0},
    [27] = {"f8E4M3FNUZ", V(0, 10)},
    [28] = {"f8E5M2FNUZ", V(0, 10)},
    [29] = {"f8E4M3B11FNUZ", V(0, 11)},
    [31] = {"i2", V(1, 2)},
    [32] = {"ui2", V(1, 2)},
    [33] = {"none", V(1, 6)},
    [34] = {"tf32", V(1, 6)},
    [35] = {"f8E4M3", V(1, 7)},
    [36] = {"f8E3M4", V(1, 7)},
    [37] = {"f4E2M1FN", V(1, 8)},
    [38] = {"f6E2M3FN", V(1, 8)},
    [39] = {"f6E3M2FN", V(1, 8)},
    [40] = {"f8E8M0FNU", V(1, 8)},
};

const ax_hlo_simple_type *ax_hlo_simple_type_of(uint64_t code) {
  return code < AX_COUNT(simple_types) && simple_types[code].text != NULL ? &simple_types[code] : NULL;
}

uint32_t ax_hlo_simple_code(ax_hlo_slice text) {
  for (uint32_t code = 0; code < AX_COUNT(simple_types); code++)
    if (simple_types[code].text != NULL && ax_hlo_slice_is(text, simple_types[code].text)) return code;
  return AX_NONE;
}
