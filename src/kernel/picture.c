#include "kernel/finding.h"
