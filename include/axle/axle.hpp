/* All of Axle for C++17: the same functions as the C headers', in namespace axle and without `ax_`, with values that are added and
   multiplied by operators, lambdas where C has a function and its context, and objects that release what they hold.

     auto mesh = axle::mesh::parse("data=8");
     auto runtime = axle::runtime::create();
     auto program = axle::trace([&](axle::value x) {
       return axle::shard_map(mesh, "data -> ", [](axle::value part) { return axle::psum(part * 2, "data"); }, {x});
     }, {axle::array_type(axle::f32, {8})});
     auto results = runtime.compile(program).run({array});

   What a function does, takes and refuses is said at its C function. What is different stands here and in docs/cxx.md:

   Names that C++ has for itself end in `_`: if_, while_, switch_, and_, or_, not_.

   Errors. What has a status in C gives what it makes, and throws axle::error when it fails. Where AXLE_NO_EXCEPTIONS is defined, or
   exceptions are turned off, it gives axle::result<T>: a status, with what was made or a message. Files of both kinds may be linked into
   one program. Operations inside a trace never throw: an error is kept by the trace, which fails when it is finished, as in C.

   Exceptions of a function that is traced leave the trace, and all those around it, and come out of the call that began the outermost.
   Those traces have failed; what they held is freed.

   Lines. Equations and messages name the file and line in which a call's first value, or else the call, stands.

   Functions that need nothing but other names and lists are made of the C headers by cmake/cxx.awk, as axle/cxx/functions.hpp. The other
   headers of axle/cxx are written by hand: handles, operators, functions of lambdas, trees, errors.

   Nothing here is in the library: these are inline functions over the C headers, which may be used beside them (`.get()`). */
#ifndef AXLE_AXLE_HPP
#define AXLE_AXLE_HPP

#include "axle/cxx/base.hpp"
#include "axle/cxx/bodies.hpp"
#include "axle/cxx/callback.hpp"
#include "axle/cxx/check.hpp"
#include "axle/cxx/collectives.hpp"
#include "axle/cxx/custom_call.hpp"
#include "axle/cxx/exec.hpp"
#include "axle/cxx/function.hpp"
#include "axle/cxx/functions.hpp" /* made of the C headers */
#include "axle/cxx/host.hpp"
#include "axle/cxx/jitted.hpp"
#include "axle/cxx/kernel.hpp"
#include "axle/cxx/ops.hpp"
#include "axle/cxx/program.hpp"
#include "axle/cxx/sharding.hpp"
#include "axle/cxx/simulate.hpp"
#include "axle/cxx/solvers.hpp"
#include "axle/cxx/transform.hpp"
#include "axle/cxx/tree.hpp"
#include "axle/cxx/value.hpp"

#endif
