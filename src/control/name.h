/* Names of values, by which checkpoints keep some of them (checkpoint.c). */
#ifndef AX_CONTROL_NAME_H
#define AX_CONTROL_NAME_H

#include "prim/bind.h"

typedef struct ax_name_params {
  ax_axes names;
} ax_name_params;

/* Parses "attention,ffn" into names. False: the trace has failed. */
bool ax_parse_words(const char *function, const char *words, ax_axes *out);

#endif
