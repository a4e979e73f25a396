/* Fourier transforms as programs of products, for machines without an engine. */
#ifndef AX_FOURIER_PRODUCTS_H
#define AX_FOURIER_PRODUCTS_H

#include "fourier/engine.h"
#include "prim/bind.h"

/* Along one dimension of x, which infer has found right: complex numbers, or real ones (AX_FOURIER_REAL). */
ax_value ax_fourier_by_products(ax_value x, ax_fourier_kind kind, int64_t n, int64_t axis);

/* bool of the shape of x[.., n / 2 + 1, ..], half a spectrum: which of its places real numbers have a real one at, 0 and n / 2. */
ax_value ax_fourier_own_conjugates(ax_value x, int64_t n, int64_t axis);
/* exp(-2 pi i p / n), each part rounded once: exact at quarters of a turn. */
void ax_fourier_root(int64_t p, int64_t n, double *re, double *im);

#endif
