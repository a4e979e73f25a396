/* Families of programs of any size: families.c. */
#ifndef AXLE_BENCH_FAMILIES_H
#define AXLE_BENCH_FAMILIES_H

#include "job.h"

/* One program under measurement. */
typedef struct subject {
  int64_t n;
  job_function job;
  ax_function loss;  /* NULL: the job's body is all there is; otherwise it is the loss and its gradients by the first wrt_count */
  void *loss_context;
  uint32_t wrt_count;
  double inner, whole; /* seconds in the loss, and in ax_value_and_grad */
} subject;

typedef struct family {
  const char *name;
  void (*make)(subject *);
} family;

/* Makes the job of a family, of size s->n. False: there is no such family. */
bool family_make(const char *name, subject *s);

/* Helpers that make families. family_room: memory that is never freed. family_gradients: a body that gives the gradients of the
   subject's loss; the subject is its context. */
void *family_room(int64_t count, size_t bytes);
void family_gradients(const ax_value *in, ax_value *out, void *context);
/* Makes the job that computes a loss of `in_count` arrays f32[dims], and its gradients. */
void family_differentiated(subject *s, ax_function loss, uint32_t in_count, uint32_t rank, const int64_t *dims);
/* families_models.c, families_kinds.c; the last has no name. */
extern const family family_models[], family_kinds[];
/* families_layers.c. kept: by ax_closed_call; spread: the hidden dimension lies over "d". */
void family_layers(subject *s, bool kept, bool spread);

#endif
