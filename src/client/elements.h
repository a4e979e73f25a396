/* The dtypes that PJRT has, and its types of elements that Axle has. */
#ifndef AX_CLIENT_ELEMENTS_H
#define AX_CLIENT_ELEMENTS_H

#include "axle/type.h"
#include "client/api.h"

ax_pjrt_element ax_pjrt_element_of(ax_dtype dtype); /* AX_PJRT_NO_ELEMENT: PJRT has none, as for keys of random numbers */
ax_dtype ax_pjrt_dtype_of(ax_pjrt_element element); /* AX_NO_DTYPE: Axle has none */

#endif
