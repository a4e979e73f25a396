/* Whether the operations of a module are such as StableHLO's specification wants them: operands, results and regions as many as the
   operation has, elements that it takes, attributes in range, and types of results that follow from the operands. All functions are
   gone through, those that nothing calls, too. Extents that are not known fit any others.

     stablehlo.concatenate %0, %1, dim = 2 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
     m.mlir:7: stablehlo.concatenate: dimension is 2, and must be from 0 to 1 */
#ifndef AX_HLO_VERIFY_H
#define AX_HLO_VERIFY_H

#include "hlo/module.h"

/* AX_INVALID_ARGUMENT: the first operation that is none; the message begins with its place. Operations of other dialects than StableHLO
   and CHLO, and elements that Axle does not have, are taken as they are. */
AX_MUST_USE ax_status ax_hlo_verify(const ax_hlo_module *module);

#endif
