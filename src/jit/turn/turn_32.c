/* CMakeLists.txt has this file alone compiled for AVX2. */
#include "jit/turn/turn.h"

#if defined(__AVX2__)
#define WIDTH 32
#define TABLE ax_turn_32
#include "jit/turn/turn_template.h"
#else
const ax_turn_table ax_turn_32;
#endif
