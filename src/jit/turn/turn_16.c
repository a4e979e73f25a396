/* The functions for any processor. */
#define WIDTH 16
#define TABLE ax_turn_16
#include "jit/turn/turn_template.h"
