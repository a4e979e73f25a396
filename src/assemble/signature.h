/* The signature of a compiled program: the layout and place of each input and result. */
#ifndef AX_ASSEMBLE_SIGNATURE_H
#define AX_ASSEMBLE_SIGNATURE_H

#include "axle/exec.h"
#include "assemble/prune.h"
#include "code/compiled.h"

/* An input of the program. */
typedef struct ax_signature_in {
  const ax_spec *spec; /* how an argument must lie on the mesh */
  uint32_t place;      /* its number in the plan; AX_NONE: the plan does not take it */
  uint32_t donated;    /* the result that lives in its memory; AX_NONE */
  bool asked;          /* the options ask to donate it */
  bool donate;         /* it is donated, which an unused one is not */
  bool is_passed;      /* some result is this input */
} ax_signature_in;

/* A result of the program. One of `made` and `input` is AX_NONE. */
typedef struct ax_signature_out {
  const ax_spec *spec; /* how it lies; NULL: it is an input, whatever its layout */
  uint32_t made;       /* its number among the plan's results */
  uint32_t input;      /* the program's input that it is */
} ax_signature_out;

/* Lists are by the program's numbers, unless they name the plan, which may have fewer inputs and results. They are in the plan's
   arena. */
typedef struct ax_signature {
  ax_mesh mesh; /* of the arguments and results */
  uint32_t in_count, out_count;
  ax_signature_in *in;
  ax_signature_out *out;
  uint32_t *kept; /* by input of the plan: its number in the program */
  bool plain;     /* the plan has the program's inputs and results */
} ax_signature;

/* Describes the inputs and results of `program`: unites the two prunings, takes the specs of the partitioned program, chooses the
   inputs that are donated and marks them in the plan. laid: the partitioned program; outer, inner: the prunings before and after
   partitioning. `donated` is AX_NONE throughout. AX_INVALID_ARGUMENT: options.donate names no input. */
AX_MUST_USE ax_status ax_signature_make(const ax_program *program, const ax_partitioned *laid, const ax_pruning *outer,
                                        const ax_pruning *inner, const ax_args *donate, ax_plan *plan, ax_signature *out);
/* Finds the result that lives in each donated input's memory, once memory is placed. results: by the plan's numbers. */
void ax_signature_find_donated(ax_signature *signature, const ax_result *results);
/* Says whether a result or an effect depends on an input. */
static inline bool ax_signature_uses(const ax_signature *signature, uint32_t input) {
  return signature->in[input].place != AX_NONE || signature->in[input].is_passed;
}

#endif
