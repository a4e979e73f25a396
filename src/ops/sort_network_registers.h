/* The functions of sort_network_template.h for each width of registers, for sort_network.c. Beside ELEMENT, LEAST and MOST of the
   template the includer says FUNCTION(registers, x), names of the functions, as s32_wide_x; all are undefined behind it. */

#define NAME(x) FUNCTION(plain, x)
#define TARGETED
#include "ops/sort_network_template.h"

#if defined(__x86_64__)
#define NAME(x) FUNCTION(wide, x)
#define TARGETED __attribute__((target("avx2")))
#include "ops/sort_network_template.h"

#define NAME(x) FUNCTION(widest, x)
#define TARGETED __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#include "ops/sort_network_template.h"
#endif

#undef ELEMENT
#undef LEAST
#undef MOST
#undef FUNCTION
