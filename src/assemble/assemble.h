/* From a program to compiled code: what the passes of pipeline.c are called by. */
#ifndef AX_ASSEMBLE_ASSEMBLE_H
#define AX_ASSEMBLE_ASSEMBLE_H

#include "axle/exec.h"
#include "assemble/prune.h"
#include "assemble/signature.h"
#include "code/compiled.h"
#include "plan/passes.h"

/* The parts of a runtime that assembling needs. */
typedef struct ax_assembler {
  ax_compiler *jit;
  const ax_hooks *hooks;
  ax_runtime *runtime;                     /* for lowering rules that compile parts of kernels */
  int64_t max_devices;
  uint32_t threads;                        /* that a run may have; 0: one */
  const ax_process_rule *processes;        /* how devices are spread over processes; NULL: all are of this one */
  const struct ax_plan_pass *plan_passes;  /* for tests: in place of ax_plan_passes; NULL */
  uint32_t plan_pass_count;
} ax_assembler;

/* Checks the table of passes without the pass named left_out; NULL: with all. AX_INTERNAL: some pass needs a property that no
   pass before it makes. */
AX_MUST_USE ax_status ax_pipeline_check(const char *left_out);

/* The result of the first passes: a simplified, pruned and partitioned program, which keeps the numbers of equations for messages.
   {NULL} to start. */
typedef struct ax_laid {
  ax_program *program; /* owned */
  ax_pruning pruning;  /* of the program before these passes */
} ax_laid;
void ax_laid_deinit(ax_laid *laid);
AX_MUST_USE ax_status ax_program_lay_out(ax_program *program, bool keep_unused, ax_laid *out);
/* Runs the next passes, and those over plans. Gives the plan of a run, for any number of devices; the caller destroys it. */
AX_MUST_USE ax_status ax_laid_plan(const ax_laid *laid, const ax_compile_options *options, ax_plan **out);

/* A program to be assembled. laid: the result of the first passes for it; NULL: these passes run too. */
typedef struct ax_source {
  ax_program *program;
  const ax_laid *laid;
  const ax_compile_options *options;
  bool results_elsewhere; /* runs write results to a caller's memory, aligned to their elements alone: nothing else may lie in it */
} ax_source;

/* Runs all passes. Whatever the status, *compiled is the caller's, and owns the signature. Both need not be initialised. */
AX_MUST_USE ax_status ax_assemble(const ax_assembler *assembler, const ax_source *source, ax_signature *signature,
                                  ax_compiled *compiled);
/* For a program that another compiler makes machine code of: runs the first passes, with kernels discharged, and gives what each device
   computes (ax_program_release), groups and all; or with `whole`, all that they compute together, with its shard_maps and constraints. The signature is complete but for `donated`; of the compiled code there is the number of
   devices and a plan that has only inputs and results. Whatever the status, *compiled is the caller's. */
AX_MUST_USE ax_status ax_assemble_body(const ax_assembler *assembler, const ax_source *source, ax_signature *signature,
                                       ax_compiled *compiled, bool whole, ax_program **body);
/* What is done with a plan, while it is there, and the memory of its runs. */
typedef struct ax_plan_use {
  ax_status (*function)(void *context, const ax_plan *plan, const ax_memory *memory);
  void *context;
} ax_plan_use;
/* Runs the passes up to the one that places memory; gives the memory that a run takes. use: NULL, or gets the plan, which is then of
   any machine: memory that threads of this one work in is left out. text: NULL, or gets a table of the allocations. */
AX_MUST_USE ax_status ax_assemble_memory(const ax_assembler *assembler, const ax_source *source, const ax_plan_use *use, ax_memory *out,
                                         ax_text *text);
/* Runs the passes up to the one of this name, and gives its result as text. rates: for the bounds that `codegen` shows; NULL:
   without bounds. AX_INVALID_ARGUMENT: there is no such pass. */
struct ax_rates; /* machine/rates.h */
AX_MUST_USE ax_status ax_assemble_text(const ax_assembler *assembler, const ax_source *source, const char *pass,
                                       const struct ax_rates *rates, char **out);

#endif
