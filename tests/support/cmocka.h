/* cmocka with the headers it wants before it. */
#ifndef AX_TESTS_SUPPORT_CMOCKA_H
#define AX_TESTS_SUPPORT_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
