/* Included behind vector_f32.h and vector_f64.h, once for each width of register: the table AX_VECTOR_TABLE of their functions. */
const ax_vector_math AX_VECTOR_TABLE = {
    .f32 =
        {
            [AX_SCALAR_EXP] = (ax_vector_function)f32_exp,
            [AX_SCALAR_EXPM1] = (ax_vector_function)f32_expm1,
            [AX_SCALAR_LOG] = (ax_vector_function)f32_log,
            [AX_SCALAR_LOG1P] = (ax_vector_function)f32_log1p,
            [AX_SCALAR_LOGISTIC] = (ax_vector_function)f32_logistic,
            [AX_SCALAR_TANH] = (ax_vector_function)f32_tanh,
            [AX_SCALAR_ERF] = (ax_vector_function)f32_erf,
            [AX_SCALAR_SIN] = (ax_vector_function)f32_sin,
            [AX_SCALAR_COS] = (ax_vector_function)f32_cos,
            [AX_SCALAR_POW] = (ax_vector_function)f32_pow,
            [AX_SCALAR_ERF_INV] = (ax_vector_function)f32_erf_inv,
            [AX_SCALAR_LGAMMA] = (ax_vector_function)f32_lgamma,
            [AX_SCALAR_DIGAMMA] = (ax_vector_function)f32_digamma,
            [AX_SCALAR_BESSEL_I0E] = (ax_vector_function)f32_bessel_i0e,
            [AX_SCALAR_BESSEL_I1E] = (ax_vector_function)f32_bessel_i1e,
            [AX_SCALAR_POLYGAMMA] = (ax_vector_function)f32_polygamma,
            [AX_SCALAR_ZETA] = (ax_vector_function)f32_zeta,
        },
    .f64 =
        {
            [AX_SCALAR_EXP] = (ax_vector_function)f64_exp,
            [AX_SCALAR_EXPM1] = (ax_vector_function)f64_expm1,
            [AX_SCALAR_LOG] = (ax_vector_function)f64_log,
            [AX_SCALAR_LOG1P] = (ax_vector_function)f64_log1p,
            [AX_SCALAR_LOGISTIC] = (ax_vector_function)f64_logistic,
            [AX_SCALAR_TANH] = (ax_vector_function)f64_tanh,
            [AX_SCALAR_ERF] = (ax_vector_function)f64_erf,
            [AX_SCALAR_SIN] = (ax_vector_function)f64_sin,
            [AX_SCALAR_COS] = (ax_vector_function)f64_cos,
            [AX_SCALAR_POW] = (ax_vector_function)f64_pow,
            [AX_SCALAR_ERF_INV] = (ax_vector_function)f64_erf_inv,
            [AX_SCALAR_LGAMMA] = (ax_vector_function)f64_lgamma,
            [AX_SCALAR_DIGAMMA] = (ax_vector_function)f64_digamma,
            [AX_SCALAR_BESSEL_I0E] = (ax_vector_function)f64_bessel_i0e,
            [AX_SCALAR_BESSEL_I1E] = (ax_vector_function)f64_bessel_i1e,
            [AX_SCALAR_POLYGAMMA] = (ax_vector_function)f64_polygamma,
            [AX_SCALAR_ZETA] = (ax_vector_function)f64_zeta,
        },
    .precise_f64 =
        {
            [AX_SCALAR_SIN] = (ax_vector_function)f64_sin_precise,
            [AX_SCALAR_COS] = (ax_vector_function)f64_cos_precise,
        },
};
