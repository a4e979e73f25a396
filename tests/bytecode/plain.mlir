#loc1 = loc("model.py":7:3)
module @plain attributes {mhlo.num_partitions = 16 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=4]>
  func.func public @main(%x: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}p1]>}, %u: tensor<8xf8E4M3FN>, %t: !stablehlo.token) -> (tensor<8x2xf32>, tensor<8x2xi32>) {
    %0 = sdy.sharding_constraint %x <@mesh, [{"data", "model":(1)2}, {}], replicated={"model":(2)2}> : tensor<8x6xf32>
    %1 = stablehlo.constant dense_resource<weights> : tensor<6xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<6xf32>) -> tensor<8x6xf32> loc("mul"(#loc1))
    %3 = stablehlo.multiply %0, %2 : tensor<8x6xf32> loc(callsite("f"("lib.py":3:1) at #loc1))
    %4:2 = chlo.top_k(%3, k = 2) : tensor<8x6xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
    %5 = "stablehlo.all_reduce"(%4#0) <{replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %7 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }) : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %6 = "stablehlo.exponential"(%5) <{result_accuracy = #stablehlo.result_accuracy<atol = 0.5, rtol = 0.0, ulps = 10, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<8x2xf32>) -> tensor<8x2xf32>
    %8 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], algorithm = #stablehlo.dot_algorithm<lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, allow_imprecise_accumulation = false>}> : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x8xf32>
    %9 = chlo.broadcast_compare %x, %x {comparison_direction = #chlo<comparison_direction GE>} : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xi1>
    %10 = stablehlo.custom_call @f(%x) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([i, k]) {i=8, j=2, k=3} reduction={j} blocked_propagation={i}, custom>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
    return %6, %4#1 : tensor<8x2xf32>, tensor<8x2xi32>
  }
  func.func private @scans(%x: tensor<8x6xf32>, %c: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>, tensor<8x6xf32>) {
    %0:3 = chlo.scan(%x) inits(%c) dimension = 0 attributes {is_reverse = true} {
    ^bb0(%a: tensor<6xf32>, %b: tensor<6xf32>):
      %2 = stablehlo.add %a, %b : tensor<6xf32>
      stablehlo.return %2, %a, %b : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
    } : (tensor<8x6xf32>, tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>)
    %1 = chlo.scan(%x) inits() dimension = 1 attributes {is_associative = false, scan_dim_size = 6 : i64} {
    ^bb0(%a: tensor<8xf32>):
      stablehlo.return %a : tensor<8xf32>
    } : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0#0, %0#1, %0#2, %1 : tensor<8x6xf32>, tensor<8x6xf32>, tensor<6xf32>, tensor<8x6xf32>
  }
  func.func private @declared(tensor<?xf32, #stablehlo.bounds<4>>, tensor<*xf32>) -> tuple<tensor<f32>, tensor<i1>>
}
{-# dialect_resources: { builtin: { weights: "0x040000000000803F0000004000004040000080400000A0400000C040" } } #-}
