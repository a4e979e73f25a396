/* See elements.h. */
#include "client/elements.h"

static const uint8_t elements[AX_DTYPE_COUNT] = {
    [AX_BOOL] = AX_PJRT_PRED,
    [AX_S2] = AX_PJRT_S2,
    [AX_S4] = AX_PJRT_S4,
    [AX_S8] = AX_PJRT_S8,
    [AX_S16] = AX_PJRT_S16,
    [AX_S32] = AX_PJRT_S32,
    [AX_S64] = AX_PJRT_S64,
    [AX_U2] = AX_PJRT_U2,
    [AX_U4] = AX_PJRT_U4,
    [AX_U8] = AX_PJRT_U8,
    [AX_U16] = AX_PJRT_U16,
    [AX_U32] = AX_PJRT_U32,
    [AX_U64] = AX_PJRT_U64,
    [AX_F4E2M1FN] = AX_PJRT_F4E2M1FN,
    [AX_F6E2M3FN] = AX_PJRT_F6E2M3FN,
    [AX_F6E3M2FN] = AX_PJRT_F6E3M2FN,
    [AX_F8E3M4] = AX_PJRT_F8E3M4,
    [AX_F8E4M3] = AX_PJRT_F8E4M3,
    [AX_F8E4M3B11FNUZ] = AX_PJRT_F8E4M3B11FNUZ,
    [AX_F8E4M3FN] = AX_PJRT_F8E4M3FN,
    [AX_F8E4M3FNUZ] = AX_PJRT_F8E4M3FNUZ,
    [AX_F8E5M2] = AX_PJRT_F8E5M2,
    [AX_F8E5M2FNUZ] = AX_PJRT_F8E5M2FNUZ,
    [AX_F8E8M0FNU] = AX_PJRT_F8E8M0FNU,
    [AX_BF16] = AX_PJRT_BF16,
    [AX_F16] = AX_PJRT_F16,
    [AX_F32] = AX_PJRT_F32,
    [AX_F64] = AX_PJRT_F64,
    [AX_C64] = AX_PJRT_C64,
    [AX_C128] = AX_PJRT_C128,
};

ax_pjrt_element ax_pjrt_element_of(ax_dtype dtype) { return dtype < AX_DTYPE_COUNT ? elements[dtype] : AX_PJRT_NO_ELEMENT; }

ax_dtype ax_pjrt_dtype_of(ax_pjrt_element element) {
  for (ax_dtype dtype = 0; element != AX_PJRT_NO_ELEMENT && dtype < AX_DTYPE_COUNT; dtype++)
    if (elements[dtype] == element) return dtype;
  return AX_NO_DTYPE;
}
