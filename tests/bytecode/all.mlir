module @all attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%a: tensor<4x6xf32> {mhlo.layout_mode = "default"}, %b: tensor<6x5xf32>, %n: tensor<4x1xi32>, %z: tensor<4xcomplex<f32>>) -> (tensor<4x5xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<4x6xf32>, tensor<6x5xf32>) -> tensor<4x5xf32>
    %1 = stablehlo.constant dense<[true, false, true, true, false]> : tensor<5xi1>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<5xi1>) -> tensor<4x5xi1>
    %3 = stablehlo.constant dense<-1.500000e+00> : tensor<4x5xf32>
    %4 = stablehlo.select %2, %0, %3 : tensor<4x5xi1>, tensor<4x5xf32>
    %5 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %6 = stablehlo.reduce(%4 init: %5) applies stablehlo.maximum across dimensions = [1] : (tensor<4x5xf32>, tensor<f32>) -> tensor<4xf32>
    %7 = "stablehlo.gather"(%a, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 6>, indices_are_sorted = true}> : (tensor<4x6xf32>, tensor<4x1xi32>) -> tensor<4x6xf32>
    %8 = "stablehlo.scatter"(%a, %n, %7) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %9 = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %10 = "stablehlo.sort"(%8) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %9 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %9 : tensor<i1>
    }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %11 = stablehlo.reshape %10 : (tensor<4x6xf32>) -> tensor<1x4x6x1xf32>
    %12 = stablehlo.constant dense<0.25> : tensor<2x3x1x2xf32>
    %13 = stablehlo.convolution(%11, %12) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[0, 1], [1, 1]], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x6x1xf32>, tensor<2x3x1x2xf32>) -> tensor<1x4x3x2xf32>
    %14 = "stablehlo.reduce_window"(%13, %5) <{window_dimensions = array<i64: 1, 2, 1, 1>, window_strides = array<i64: 1, 2, 1, 1>, padding = dense<[[0, 0], [0, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %9 = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %9 : tensor<f32>
    }) : (tensor<1x4x3x2xf32>, tensor<f32>) -> tensor<1x2x3x2xf32>
    %15 = stablehlo.slice %14 [0:1, 0:2:1, 0:3:2, 1:2] : (tensor<1x2x3x2xf32>) -> tensor<1x2x2x1xf32>
    %16 = stablehlo.reshape %15 : (tensor<1x2x2x1xf32>) -> tensor<4xf32>
    %17 = stablehlo.pad %16, %5, low = [1], high = [-1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %18 = stablehlo.exponential %17 : tensor<4xf32>
    %19 = stablehlo.fft %z, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
    %20 = stablehlo.constant dense<[(1.0, -2.0), (3.0, 0.0), (0.0, 1.0), (2.0, 2.0)]> : tensor<4xcomplex<f32>>
    %21 = stablehlo.multiply %19, %20 : tensor<4xcomplex<f32>>
    %22 = stablehlo.real %21 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %23 = call @helper(%18, %22) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %24 = stablehlo.constant dense<0> : tensor<i32>
    %25 = stablehlo.constant dense<3> : tensor<i32>
    %26:2 = stablehlo.while(%i = %24, %s = %23) : tensor<i32>, tensor<4xf32>
    cond {
      %27 = stablehlo.compare LT, %i, %25, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %27 : tensor<i1>
    } do {
      %27 = stablehlo.constant dense<1> : tensor<i32>
      %28 = stablehlo.add %i, %27 : tensor<i32>
      %29 = "stablehlo.case"(%i) ({
        stablehlo.return %s : tensor<4xf32>
      }, {
        %30 = stablehlo.negate %s : tensor<4xf32>
        stablehlo.return %30 : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      stablehlo.return %28, %29 : tensor<i32>, tensor<4xf32>
    }
    %31 = stablehlo.custom_call @Sharding(%26#1) {backend_config = "", mhlo.frontend_attributes = {a = "b"}, mhlo.sharding = "{replicated}"} : (tensor<4xf32>) -> tensor<4xf32>
    %32 = stablehlo.concatenate %31, %6, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %33 = stablehlo.transpose %4, dims = [1, 0] : (tensor<4x5xf32>) -> tensor<5x4xf32>
    %34 = stablehlo.dynamic_slice %32, %24, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<4xf32>) -> tensor<4x5xf32>
    %36 = stablehlo.reverse %33, dims = [0] : tensor<5x4xf32>
    %37 = stablehlo.transpose %36, dims = [1, 0] : (tensor<5x4xf32>) -> tensor<4x5xf32>
    %38 = stablehlo.iota dim = 1 : tensor<4x5xf32>
    %39 = stablehlo.add %35, %37 : tensor<4x5xf32>
    %40 = stablehlo.add %38, %39 : tensor<4x5xf32>
    %41 = stablehlo.reduce_precision %40, format = e5m10 : tensor<4x5xf32>
    return %41 : tensor<4x5xf32>
  }
  func.func private @helper(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.constant dense<[1, -2, 127, -128]> : tensor<4xi8>
    %1 = stablehlo.convert %0 : (tensor<4xi8>) -> tensor<4xf32>
    %2 = stablehlo.constant dense<[1.0, 2.0, -3.5, 4.0]> : tensor<4xbf16>
    %3 = stablehlo.convert %2 : (tensor<4xbf16>) -> tensor<4xf32>
    %4 = stablehlo.constant dense<[18446744073709551615, 0, 1, 2]> : tensor<4xui64>
    %5 = stablehlo.convert %4 : (tensor<4xui64>) -> tensor<4xf32>
    %6 = stablehlo.add %1, %3 : tensor<4xf32>
    %7 = stablehlo.multiply %5, %a : tensor<4xf32>
    %8 = stablehlo.clamp %6, %7, %b : tensor<4xf32>
    return %8 : tensor<4xf32>
  }
}
