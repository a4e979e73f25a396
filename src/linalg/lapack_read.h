/* Custom calls of LAPACK in StableHLO, as JAX writes them for CPUs. */
#ifndef AX_LINALG_LAPACK_READ_H
#define AX_LINALG_LAPACK_READ_H

#include "hlo/read.h"

/* The target of a custom call is one of LAPACK's: lapack_spotrf_ffi. */
bool ax_lapack_reads(ax_hlo_slice target);
AX_MUST_USE ax_status ax_lapack_read(const ax_hlo_read_args *args, ax_hlo_slice target);

#endif
