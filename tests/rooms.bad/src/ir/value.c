/* Breaks the rules of tests/rooms.sh in every way; never compiled. */
#include <llvm-c/Core.h>
#include <stdio.h>

#include "axle/type.h"
#include "base/base.h"
#include "exec/frame.h"
#include "ir/program.h"
#include "value.h"
#include "../base/base.h"
  #  include "llvm-c/Core.h"
