/* The global programs that compare.py lays over devices, ours: the loss and its gradients by all weights, whole arrays, as text.

     programs CASE        transformer, mlp, attention, moe, convolution, pooled, heat, ring; compare.py has the same in JAX

   Inputs: weights, then data. Nothing here says how they lie but the constraints inside mlp and moe. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../transformer.h"

#include "axle/axle.h"

static ax_value einsum(const char *subscripts, ax_value a, ax_value b) { return ax_einsum(subscripts, AX_VALUES(a, b)); }

static ax_value constrained(ax_value x, const char *mesh, const char *spec) {
  ax_mesh parsed;
  ax_must(ax_mesh_parse(mesh, &parsed));
  return ax_with_sharding(x, &parsed, spec);
}

/* w1[256,1024], w2[1024,256], x[512,256], y[512,256]: activations cut as Megatron cuts them */
static AX_BODY(mlp_loss) {
  static const char mesh[] = "data=4,model=2";
  ax_value hidden = constrained(ax_gelu(ax_matmul(in[2], in[0])), mesh, "data,model");
  ax_value found = constrained(ax_matmul(hidden, in[1]), mesh, "data");
  out[0] = ax_reduce_mean(ax_square(ax_sub(found, in[3])), AX_ALL_DIMS, false);
}

/* wq, wk, wv[64,4,16], wo[4,16,64], x[2,256,64]: positions are to be cut */
static AX_BODY(attention_loss) {
  ax_value x = in[4], q = einsum("btw,whk->bhtk", x, in[0]), k = einsum("bsw,whk->bhsk", x, in[1]),
           v = einsum("bsw,whk->bhsk", x, in[2]);
  ax_value shares = ax_softmax(ax_div(einsum("bhtk,bhsk->bhts", q, k), 4), -1);
  ax_value made = einsum("bhtk,hkw->btw", einsum("bhts,bhsk->bhtk", shares, v), in[3]);
  out[0] = ax_reduce_mean(ax_square(ax_sub(made, x)), AX_ALL_DIMS, false);
}

/* gate[64,8], up[8,64,256], down[8,256,64], x[8,64,64], y[8,64,64]: tokens in groups, each to one of 8 experts, 16 of a group at
   most */
static AX_BODY(moe_loss) {
  enum { EXPERTS = 8, CAPACITY = 16 };
  static const char mesh[] = "expert=8";
  ax_value x = in[3];
  ax_value shares = ax_softmax(einsum("gsm,me->gse", x, in[0]), -1);
  ax_value chosen = ax_one_hot(ax_argmax(shares, -1, AX_S32), EXPERTS, AX_F32);
  ax_value place = ax_sub(ax_mul(ax_cumsum(chosen, 1, false), chosen), 1);
  ax_value slots =
      ax_one_hot(ax_convert_element_type(place, AX_S32), CAPACITY, AX_F32); /* g s e c; nothing where there is no room */
  ax_value combine = ax_mul(slots, ax_expand_dims(ax_mul(shares, chosen), -1));
  ax_value sent = constrained(einsum("gsec,gsm->egcm", slots, x), mesh, "expert");
  ax_value hidden = ax_relu(einsum("egcm,emh->egch", sent, in[1]));
  ax_value made = constrained(einsum("egch,ehm->egcm", hidden, in[2]), mesh, "expert");
  ax_value found = constrained(einsum("gsec,egcm->gsm", combine, made), mesh, "expert");
  out[0] = ax_reduce_mean(ax_square(ax_sub(found, in[4])), AX_ALL_DIMS, false);
}

static ax_value conv(ax_value x, ax_value w, int64_t stride) {
  return ax_conv_general_dilated(
      x, w, &(ax_conv_options){.lhs = "NHWC", .rhs = "HWIO", .strides = {AX_DIMS(stride, stride)}, .padding = "SAME"});
}

/* w1[5,5,8,32], w2[3,3,32,32], w3[3,3,32,16], x[4,64,64,8], y[4,32,32,16]: images cut in bands of rows */
static AX_BODY(convolution_loss) {
  ax_value found = conv(ax_relu(conv(ax_relu(conv(in[3], in[0], 1)), in[1], 2)), in[2], 1);
  out[0] = ax_reduce_mean(ax_square(ax_sub(found, in[4])), AX_ALL_DIMS, false);
}

/* w1[3,3,8,32], w2[3,3,32,16], x[4,64,64,8], y[4,32,32,16], where the largest of each 2x2 is left in between */
static AX_BODY(pooled_loss) {
  ax_value hidden = ax_max_pool(ax_relu(conv(in[2], in[0], 1)), AX_DIMS(2, 2), AX_DIMS(2, 2), "VALID");
  out[0] = ax_reduce_mean(ax_square(ax_sub(conv(hidden, in[1], 1), in[3])), AX_ALL_DIMS, false);
}

/* u moved by one along the dimension: what leaves is lost, zeros come in; or round in a ring. */
static ax_value shifted(ax_value u, int64_t by, uint32_t d) {
  int64_t low[] = {0, 0}, high[] = {0, 0}, none[] = {0, 0};
  low[d] = by, high[d] = -by;
  return ax_pad(u, ax_real(0), low, high, none);
}
static ax_value rolled(ax_value u, int64_t by, uint32_t d) {
  return ax_concatenate(AX_VALUES(ax_slice_in_dim(u, -by, AX_END, 1, d), ax_slice_in_dim(u, 0, -by, 1, d)), d);
}

/* in: step, u[512,512], v */
static AX_BODY(heat_step) {
  ax_value u = in[1], around = ax_add(ax_add(shifted(u, 1, 0), shifted(u, -1, 0)), ax_add(shifted(u, 1, 1), shifted(u, -1, 1)));
  out[0] = ax_add(u, ax_mul(ax_sub(around, ax_mul(u, 4)), ax_real(0.125)));
}
static AX_BODY(ring_step) {
  ax_value u = in[1], forward = ax_sub(u, rolled(u, 1, 0)), slope = ax_sub(rolled(u, -1, 0), u);
  out[0] = ax_sub(u, ax_mul(ax_mul(u, ax_add(forward, slope)), ax_real(0.125)));
}

/* u[512,512], target[512,512]: ten steps of a heat equation, of a wave in a ring */
static AX_BODY(heat_loss) {
  ax_value u;
  ax_fori_loop(0, 10, AX_FN(heat_step, 2, 1), in, &u);
  out[0] = ax_reduce_mean(ax_square(ax_sub(u, in[1])), AX_ALL_DIMS, false);
}
static AX_BODY(ring_loss) {
  ax_value u;
  ax_fori_loop(0, 10, AX_FN(ring_step, 2, 1), in, &u);
  out[0] = ax_reduce_mean(ax_square(ax_sub(u, in[1])), AX_ALL_DIMS, false);
}

typedef struct program {
  ax_fn loss;
  uint32_t weight_count;
  const ax_type *types;
} program;

static AX_BODY(gradients) {
  const program *p = context;
  ax_value_and_grad(p->loss, AX_FIRST(p->weight_count), in, out);
}

static void print(const program *p) {
  ax_program *traced;
  char *text;
  ax_must(ax_trace(AX_CLOSURE(gradients, p->loss.in_count, 1 + p->weight_count, (void *)p), p->types, &traced));
  ax_must(ax_program_print(traced, &text));
  puts(text);
  ax_string_free(text);
  ax_program_release(traced);
}

#define F32(...) AX_TYPE(AX_F32, __VA_ARGS__)

int main(int argc, char **argv) {
  const char *name = argc == 2 ? argv[1] : "";
  if (strcmp(name, "transformer") == 0) {
    const transformer_sizes sizes = {
        .layers = 2, .width = 64, .heads = 8, .hidden = 256, .length = 32, .batch = 16, .vocabulary = 128};
    model *m = transformer_model(&sizes);
    m->global = true;
    print(&(program){AX_CLOSURE(m->loss, m->input_count, 1, m), m->weight_count, m->types});
    model_release(m);
  } else if (strcmp(name, "mlp") == 0) {
    print(&(program){AX_FN(mlp_loss, 4, 1), 2, (const ax_type[]){F32(256, 1024), F32(1024, 256), F32(512, 256), F32(512, 256)}});
  } else if (strcmp(name, "attention") == 0) {
    print(&(program){AX_FN(attention_loss, 5, 1), 4,
                     (const ax_type[]){F32(64, 4, 16), F32(64, 4, 16), F32(64, 4, 16), F32(4, 16, 64), F32(2, 256, 64)}});
  } else if (strcmp(name, "moe") == 0) {
    print(&(program){AX_FN(moe_loss, 5, 1), 3,
                     (const ax_type[]){F32(64, 8), F32(8, 64, 256), F32(8, 256, 64), F32(8, 64, 64), F32(8, 64, 64)}});
  } else if (strcmp(name, "convolution") == 0) {
    print(&(program){
        AX_FN(convolution_loss, 5, 1), 3,
        (const ax_type[]){F32(5, 5, 8, 32), F32(3, 3, 32, 32), F32(3, 3, 32, 16), F32(4, 64, 64, 8), F32(4, 32, 32, 16)}});
  } else if (strcmp(name, "pooled") == 0) {
    print(&(program){AX_FN(pooled_loss, 4, 1), 2,
                     (const ax_type[]){F32(3, 3, 8, 32), F32(3, 3, 32, 16), F32(4, 64, 64, 8), F32(4, 32, 32, 16)}});
  } else if (strcmp(name, "heat") == 0) {
    print(&(program){AX_FN(heat_loss, 2, 1), 1, (const ax_type[]){F32(512, 512), F32(512, 512)}});
  } else if (strcmp(name, "ring") == 0) {
    print(&(program){AX_FN(ring_loss, 2, 1), 1, (const ax_type[]){F32(512, 512), F32(512, 512)}});
  } else {
    fprintf(stderr, "usage: programs transformer|mlp|attention|moe|convolution|pooled|heat|ring\n");
    return 2;
  }
  return 0;
}
