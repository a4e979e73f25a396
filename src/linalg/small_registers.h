/* The functions of small_template.h on numbers of one dtype, for each width of registers, for small.c: on a matrix by itself, and on so many that
   they have 64 bytes of parts. Beside PART, BITS, COMPLEX, SIZE_OF and ROOT_OF of the template the includer says, and all are undefined behind it:

     MANY                      matrices side by side
     FUNCTION(registers, x)    names of the functions, as f32_wide_x and f32_one_wide_x */

#define NAME(x) FUNCTION(plain, x)
#define LANES MANY
#define TARGETED
#include "linalg/small_template.h"

#define NAME(x) FUNCTION(one_plain, x)
#define LANES 1
#define SIDES FUNCTION(plain, solve_sides)
#define TARGETED
#include "linalg/small_template.h"

#if defined(__x86_64__)
#define NAME(x) FUNCTION(wide, x)
#define LANES MANY
#define TARGETED __attribute__((target("avx2")))
#include "linalg/small_template.h"

#define NAME(x) FUNCTION(one_wide, x)
#define LANES 1
#define SIDES FUNCTION(wide, solve_sides)
#define TARGETED __attribute__((target("avx2")))
#include "linalg/small_template.h"

#define NAME(x) FUNCTION(widest, x)
#define LANES MANY
#define TARGETED __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#include "linalg/small_template.h"

#define NAME(x) FUNCTION(one_widest, x)
#define LANES 1
#define SIDES FUNCTION(widest, solve_sides)
#define TARGETED __attribute__((target("avx512f,avx512vl,avx512bw,avx512dq")))
#include "linalg/small_template.h"
#endif

#undef PART
#undef BITS
#undef COMPLEX
#undef SIZE_OF
#undef ROOT_OF
#undef MANY
#undef FUNCTION
