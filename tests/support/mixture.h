/* A small mixture of experts for the planner's tests, of a sequence of tokens. Experts take weighted means of all tokens
   (Puigcerver and others, arXiv:2308.00951): (f32[layers,width,experts,2] places, f32[layers,experts,width,hidden] w1,
   f32[layers,experts,hidden,width] w2, f32[tokens,width] x, f32[tokens,width] y) -> f32[]. Its sample is x and y, as test_options
   (layered.h) has it. */
#ifndef AX_TESTS_SUPPORT_MIXTURE_H
#define AX_TESTS_SUPPORT_MIXTURE_H

#include "axle/axle.h"
#include "support/layered.h"

enum { MIXTURE_PARAMS = 3, MIXTURE_INPUTS = 5, MIXTURE_PLACES = 2 };

typedef struct test_mixture {
  int64_t layers, tokens, width, hidden, experts;
} test_mixture;

/* tokens t, width d, experts e, their places c, hidden f */
static inline AX_BODY(test_mixture_layer) {
  ax_value chances = ax_softmax(ax_einsum("td,dec->tec", AX_VALUES(in[0], in[1])), 0);
  ax_value sent = ax_einsum("tec,td->ecd", AX_VALUES(chances, in[0]));
  ax_value hidden = ax_tanh(ax_einsum("ecd,edf->ecf", AX_VALUES(sent, in[2])));
  ax_value made = ax_einsum("ecf,efd->ecd", AX_VALUES(hidden, in[3]));
  out[0] = ax_add(in[0], ax_einsum("tec,ecd->td", AX_VALUES(chances, made)));
}

static inline AX_BODY(test_mixture_loss) {
  const test_mixture *m = context;
  ax_value h;
  ax_scan(AX_FN(test_mixture_layer, 4, 1), 1, m->layers, false, AX_VALUES(in[3], in[0], in[1], in[2]), AX_LIST(1, &h));
  out[0] = ax_reduce_mean(ax_square(ax_sub(h, in[4])), AX_ALL_DIMS, false);
}

static inline ax_status test_trace_mixture(const test_mixture *m, ax_program **out) {
  const ax_type types[MIXTURE_INPUTS] = {AX_TYPE(AX_F32, m->layers, m->width, m->experts, MIXTURE_PLACES),
                                         AX_TYPE(AX_F32, m->layers, m->experts, m->width, m->hidden),
                                         AX_TYPE(AX_F32, m->layers, m->experts, m->hidden, m->width),
                                         AX_TYPE(AX_F32, m->tokens, m->width), AX_TYPE(AX_F32, m->tokens, m->width)};
  return ax_trace(AX_CLOSURE(test_mixture_loss, MIXTURE_INPUTS, 1, (void *)(uintptr_t)m), AX_LIST(MIXTURE_INPUTS, types), out);
}

#endif
