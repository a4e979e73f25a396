/* Callbacks that texts in tests may name, for programs that are parsed with them:

     copy    results are the operands, byte by byte */
#ifndef AX_TESTS_SUPPORT_HOST_H
#define AX_TESTS_SUPPORT_HOST_H

#include "ir/callback.h"

const ax_hooks *test_hooks(void);

#endif
