/* All of Axle: programs, transforms, meshes and collectives, execution, files. */
#ifndef AXLE_AXLE_H
#define AXLE_AXLE_H

#include "axle/bodies.h"
#include "axle/callback.h"
#include "axle/check.h"
#include "axle/collective_matmul.h"
#include "axle/collectives.h"
#include "axle/exec.h"
#include "axle/host.h"
#include "axle/kernel.h"
#include "axle/line.h"
#include "axle/must.h"
#include "axle/npy.h"
#include "axle/ops.h"
#include "axle/optimizer.h"
#include "axle/owned.h"
#include "axle/pmap.h"
#include "axle/processes.h"
#include "axle/program.h"
#include "axle/sharding.h"
#include "axle/simulate.h"
#include "axle/stablehlo.h"
#include "axle/stages.h"
#include "axle/status.h"
#include "axle/transform.h"
#include "axle/tree.h"
#include "axle/type.h"

#endif
