/* In a folder that is no room. */
#include "exec/frame.h"
