/* Executables of programs over several processes: all must have compiled the same program, with the same options. */
#ifndef AX_ARRAY_COMPARED_H
#define AX_ARRAY_COMPARED_H

#include "array/executable.h"

/* Notes the digest of a program that is spread over processes; of others nothing. */
AX_MUST_USE ax_status ax_executable_digest(ax_executable *executable);
/* Compares what all processes have compiled. status: how that has ended here; `*out`, the executable, is released and NULL if it
   fails anywhere. program: NULL where there is none. Programs that are not spread are not compared. */
AX_MUST_USE ax_status ax_executable_compare(ax_runtime *runtime, const ax_program *program, const ax_compile_options *options,
                                            ax_status status, ax_executable **out);

#endif
