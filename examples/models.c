/* Models of sizes that people train, as losses of whole arrays: what `axle plan` chooses a mesh and layouts for.

     models NAME        prints the loss of a model as text: transformer-7b, transformer-70b, moe-8x7b, resnet-50
     models gpt 24 2304 24 51200 2048        a transformer of so many layers, width, heads, words and positions, with a hidden width of
                                             four times its width, as GPT-3 (arXiv:2005.14165)
     models llama 80 8192 64 8 28672 128256 8192          layers, width, heads, heads of keys and values, hidden width, words and
                                             positions, with gated networks, as Llama 3 (arXiv:2407.21783)
     models palm-540b                        attention and network beside each other, one head of keys and values, heads that are
                                             together narrower than a layer, as PaLM (arXiv:2204.02311), but for the embeddings, which
                                             the head has its own copy of

     models transformer-7b > transformer-7b.axle
     axle plan transformer-7b.axle --cluster h200-nodes --devices 4096 --train --samples 1024

   Each loss has its parameters first, f32, and then a sample: a sequence, or a few images. Products are of bf16. The layers of a transformer are one loop over
   parameters that are stacked, so a planner can put some of them on other devices, and keep less of each for its gradient. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <axle/axle.h>

/* --- Transformers: t and s positions, d width, h heads, g heads of keys and values, k width of a head, f hidden --- */

typedef struct transformer {
  const char *name;
  int64_t layers, width, heads, kv_heads, hidden, vocabulary, positions;
  int64_t experts;    /* 0: each layer has one feed-forward network, which all tokens go through */
  int64_t chosen;     /* experts that a token goes to */
  int64_t head_width; /* 0: the heads have the layer's width together */
  bool gelu;          /* the network is two products with a gelu between, not three with a gate */
  bool beside;        /* attention and network have the same operand, and their results are added to it */
} transformer;

static const transformer transformers[] = {
    {"transformer-7b", 32, 4096, 32, 32, 11008, 32000, 4096, 0, 0, 0, false, false},
    {"transformer-70b", 80, 8192, 64, 8, 28672, 32000, 4096, 0, 0, 0, false, false},
    {"moe-8x7b", 32, 4096, 32, 8, 14336, 32000, 4096, 8, 2, 0, false, false},
    {"palm-540b", 118, 18432, 48, 1, 73728, 256000, 2048, 0, 0, 256, false, true},
};

enum { group = 512 }; /* tokens of which each expert takes its share */

static ax_value small(ax_value x) { return ax_convert_element_type(x, AX_BF16); }
static ax_value einsum(const char *subscripts, ax_value a, ax_value b) { return ax_einsum(subscripts, AX_VALUES(a, b)); }

static ax_value attention(const ax_value *w, ax_value x) {
  ax_value q = einsum("td,dhk->thk", x, small(w[0]));
  ax_value k = einsum("sd,dgk->sgk", x, small(w[1]));
  ax_value v = einsum("sd,dgk->sgk", x, small(w[2]));
  ax_value seen = ax_dot_product_attention(q, k, v, &(ax_attention_options){.is_causal = true});
  return einsum("thk,hkd->td", seen, small(w[3]));
}

static ax_value feed_forward(const transformer *m, const ax_value *w, ax_value x) {
  if (m->gelu) return ax_matmul(ax_gelu(ax_matmul(x, small(w[0]))), small(w[1]));
  ax_value hidden = ax_mul(ax_silu(ax_matmul(x, small(w[0]))), ax_matmul(x, small(w[1])));
  return ax_matmul(hidden, small(w[2]));
}

/* Tokens go to experts in groups, of which an expert takes a share and a quarter more; what is above that is left out, as in
   GShard (arXiv:2006.16668). g groups, s tokens of a group, e experts, c places of an expert. */
static ax_value mixture(const transformer *m, const ax_value *w, ax_value router, ax_value x) {
  const int64_t groups = m->positions / group, places = group * m->chosen * 5 / 4 / m->experts;
  ax_value tokens = ax_reshape(x, AX_DIMS(groups, group, m->width)), best[2];
  ax_value chances = ax_softmax(ax_convert_element_type(ax_einsum("gsd,de->gse", AX_VALUES(tokens, small(router))), AX_F32), -1);
  ax_top_k(chances, m->chosen, best);
  ax_value mask = ax_reduce_sum(ax_one_hot(best[1], m->experts, AX_F32), AX_DIMS(2), false);
  ax_value place = ax_sub(ax_cumsum(mask, 1, false), 1);
  ax_value send = ax_mul(ax_one_hot(ax_convert_element_type(place, AX_S32), places, AX_F32), ax_expand_dims(mask, -1));
  ax_value weighted = ax_mul(send, ax_expand_dims(chances, -1));
  ax_value sent = einsum("gsec,gsd->egcd", small(send), tokens);
  ax_value hidden = ax_mul(ax_silu(einsum("egcd,edf->egcf", sent, small(w[0]))), einsum("egcd,edf->egcf", sent, small(w[1])));
  ax_value made = einsum("egcf,efd->egcd", hidden, small(w[2]));
  return ax_reshape(einsum("gsec,egcd->gsd", small(weighted), made), AX_DIMS(m->positions, m->width));
}

static ax_value normed(ax_value x, ax_value scale) { return ax_rms_norm(x, small(scale), AX_DIMS(-1), 1e-5); }

/* x, the parameters of a layer -> x */
static AX_BODY(layer) {
  const transformer *m = context;
  const ax_value *of_network = in + (m->beside ? 6 : 7);
  ax_value outer = normed(in[0], in[1]);
  ax_value x = ax_add(in[0], attention(in + 2, outer));
  ax_value inner = m->beside ? outer : normed(x, in[6]);
  out[0] = ax_add(x, m->experts == 0 ? feed_forward(m, of_network, inner) : mixture(m, of_network, of_network[3], inner));
}

enum { layer_parameters = 10, most_parameters = 13 }; /* of a layer: one more for a router */

static uint32_t parameters_of_layer(const transformer *m) { return layer_parameters - (m->experts == 0) - m->gelu - m->beside; }

/* embed, the layers' parameters, norm, head; tokens, the tokens after them -> the mean cross entropy */
static AX_BODY(transformer_loss) {
  const transformer *m = context;
  const uint32_t of_layer = parameters_of_layer(m);
  ax_value looped[1 + layer_parameters] = {ax_take(small(in[0]), in[of_layer + 3], 0)};
  for (uint32_t i = 0; i < of_layer; i++) looped[1 + i] = in[1 + i];
  ax_value x;
  ax_scan(AX_CLOSURE(layer, 1 + of_layer, 1, context), 1, m->layers, false, AX_LIST(1 + of_layer, looped), AX_LIST(1, &x));
  ax_value logits = ax_convert_element_type(ax_matmul(normed(x, in[of_layer + 1]), small(in[of_layer + 2])), AX_F32);
  ax_value picked = ax_mul(ax_log_softmax(logits, -1), ax_one_hot(in[of_layer + 4], m->vocabulary, AX_F32));
  out[0] = ax_neg(ax_reduce_mean(ax_reduce_sum(picked, AX_DIMS(-1), false), AX_ALL_DIMS, false));
}

static ax_status trace_transformer(const transformer *m, ax_program **out) {
  const int64_t l = m->layers, d = m->width, f = m->hidden, e = m->experts, v = m->vocabulary;
  const int64_t k = m->head_width > 0 ? m->head_width : d / m->heads;
  ax_type types[most_parameters + 2];
  uint32_t n = 0;
  types[n++] = AX_TYPE(AX_F32, v, d);
  types[n++] = AX_TYPE(AX_F32, l, d);
  types[n++] = AX_TYPE(AX_F32, l, d, m->heads, k);
  types[n++] = AX_TYPE(AX_F32, l, d, m->kv_heads, k);
  types[n++] = AX_TYPE(AX_F32, l, d, m->kv_heads, k);
  types[n++] = AX_TYPE(AX_F32, l, m->heads, k, d);
  if (!m->beside) types[n++] = AX_TYPE(AX_F32, l, d);
  for (int i = 0; i < (m->gelu ? 1 : 2); i++) types[n++] = e > 0 ? AX_TYPE(AX_F32, l, e, d, f) : AX_TYPE(AX_F32, l, d, f);
  types[n++] = e > 0 ? AX_TYPE(AX_F32, l, e, f, d) : AX_TYPE(AX_F32, l, f, d);
  if (e > 0) types[n++] = AX_TYPE(AX_F32, l, d, e);
  types[n++] = AX_TYPE(AX_F32, d);
  types[n++] = AX_TYPE(AX_F32, d, v);
  types[n++] = AX_TYPE(AX_S32, m->positions);
  types[n++] = AX_TYPE(AX_S32, m->positions);
  return ax_trace(AX_CLOSURE(transformer_loss, n, 1, (void *)m), AX_LIST(n, types), out);
}

/* --- ResNet-50 (arXiv:1512.03385), each channel normalised over the batch and the image --- */

enum { images = 32, classes = 1000, most_parameters_of_resnet = 256 };

typedef struct resnet {
  ax_type types[most_parameters_of_resnet]; /* of the parameters, as they are met; then those of a batch */
  uint32_t count;
  const ax_value *next; /* the parameter that is met next */
} resnet;

static void add_convolution(resnet *net, int64_t from, int64_t to, int64_t window) {
  net->types[net->count++] = AX_TYPE(AX_F32, window, window, from, to);
  net->types[net->count++] = AX_TYPE(AX_F32, to); /* scale and bias */
  net->types[net->count++] = AX_TYPE(AX_F32, to);
}

static ax_value convolved(resnet *net, ax_value x, int64_t stride) {
  const ax_conv_options options = {.lhs = "NHWC", .rhs = "HWIO", .strides = {AX_DIMS(stride, stride)}, .padding = "SAME"};
  ax_value y = ax_conv_general_dilated(x, small(net->next[0]), &options);
  y = ax_standardize(ax_convert_element_type(y, AX_F32), &(ax_standardize_options){.axes = {AX_DIMS(0, 1, 2)}});
  y = small(ax_add(ax_mul(y, net->next[1]), net->next[2]));
  net->next += 3;
  return y;
}

/* A block's three convolutions, and one for what passes it by where its shape changes. The blocks are met in the same order when
   types are listed and when the loss is traced. */
typedef struct bottleneck {
  int64_t from, width, stride;
} bottleneck;

static void add_bottleneck(resnet *net, const bottleneck *b) {
  add_convolution(net, b->from, b->width, 1);
  add_convolution(net, b->width, b->width, 3);
  add_convolution(net, b->width, 4 * b->width, 1);
  if (b->from != 4 * b->width) add_convolution(net, b->from, 4 * b->width, 1);
}

static ax_value pass_bottleneck(resnet *net, const bottleneck *b, ax_value x) {
  ax_value y = ax_relu(convolved(net, x, 1));
  y = ax_relu(convolved(net, y, b->stride));
  y = convolved(net, y, 1);
  return ax_relu(ax_add(y, b->from == 4 * b->width ? x : convolved(net, x, b->stride)));
}

/* Block `number`, from 0 on; false: there are no more. */
static bool bottleneck_at(int number, bottleneck *out) {
  static const int blocks[] = {3, 4, 6, 3};
  int64_t width = 64;
  for (int stage = 0; stage < 4; number -= blocks[stage++], width *= 2) {
    if (number >= blocks[stage]) continue;
    *out = (bottleneck){number > 0 ? 4 * width : stage > 0 ? 2 * width : 64, width, number == 0 && stage > 0 ? 2 : 1};
    return true;
  }
  return false;
}

/* the parameters; images, labels -> the mean cross entropy */
static AX_BODY(resnet_loss) {
  resnet *net = context;
  bottleneck block;
  net->next = in;
  ax_value x = ax_relu(convolved(net, small(in[net->count]), 2));
  x = ax_max_pool(x, AX_DIMS(3, 3), AX_DIMS(2, 2), "SAME");
  for (int i = 0; bottleneck_at(i, &block); i++) x = pass_bottleneck(net, &block, x);
  x = ax_reduce_mean(ax_convert_element_type(x, AX_F32), AX_DIMS(1, 2), false);
  ax_value chances = ax_log_softmax(ax_add(ax_matmul(x, net->next[0]), net->next[1]), -1);
  ax_value picked = ax_mul(chances, ax_one_hot(in[net->count + 1], classes, AX_F32));
  out[0] = ax_neg(ax_reduce_mean(ax_reduce_sum(picked, AX_DIMS(-1), false), AX_ALL_DIMS, false));
}

static ax_status trace_resnet(ax_program **out) {
  resnet net = {0};
  bottleneck block;
  add_convolution(&net, 3, 64, 7);
  for (int i = 0; bottleneck_at(i, &block); i++) add_bottleneck(&net, &block);
  net.types[net.count++] = AX_TYPE(AX_F32, 2048, classes);
  net.types[net.count++] = AX_TYPE(AX_F32, classes);
  net.types[net.count] = AX_TYPE(AX_F32, images, 224, 224, 3);
  net.types[net.count + 1] = AX_TYPE(AX_S32, images);
  return ax_trace(AX_CLOSURE(resnet_loss, net.count + 2, 1, &net), AX_LIST(net.count + 2, net.types), out);
}

/* --- The command --- */

/* `count` numbers from argv[2] on, all at least 1; false: they are something else. */
static bool read_numbers(int argc, char **argv, int count, int64_t *out) {
  if (argc != 2 + count) return false;
  for (int i = 0; i < count; i++)
    if ((out[i] = atoll(argv[2 + i])) < 1) return false;
  return true;
}

/* gpt LAYERS WIDTH HEADS WORDS POSITIONS, or llama LAYERS WIDTH HEADS GROUPS HIDDEN WORDS POSITIONS; false: it is neither. */
static bool read_sizes(int argc, char **argv, transformer *out) {
  int64_t n[7];
  if (argc > 1 && strcmp(argv[1], "gpt") == 0 && read_numbers(argc, argv, 5, n))
    *out = (transformer){"gpt", n[0], n[1], n[2], n[2], 4 * n[1], n[3], n[4], .gelu = true};
  else if (argc > 1 && strcmp(argv[1], "llama") == 0 && read_numbers(argc, argv, 7, n))
    *out = (transformer){"llama", n[0], n[1], n[2], n[3], n[4], n[5], n[6], .gelu = false};
  else
    return false;
  return out->width % out->heads == 0 && out->heads % out->kv_heads == 0;
}

static ax_status trace_model(const char *name, ax_program **out) {
  for (size_t i = 0; i < sizeof transformers / sizeof transformers[0]; i++)
    if (strcmp(name, transformers[i].name) == 0) return trace_transformer(&transformers[i], out);
  return trace_resnet(out);
}

int main(int argc, char **argv) {
  ax_program *program;
  transformer sized;
  char *text;
  const bool is_sized = read_sizes(argc, argv, &sized);
  bool known = is_sized || (argc == 2 && strcmp(argv[1], "resnet-50") == 0);
  for (size_t i = 0; argc == 2 && i < sizeof transformers / sizeof transformers[0]; i++)
    known = known || strcmp(argv[1], transformers[i].name) == 0;
  if (!known) {
    fprintf(stderr,
            "usage: models transformer-7b | transformer-70b | moe-8x7b | palm-540b | resnet-50\n"
            "              | gpt LAYERS WIDTH HEADS WORDS POSITIONS | llama LAYERS WIDTH HEADS GROUPS HIDDEN WORDS POSITIONS\n");
    return 2;
  }
  ax_must(is_sized ? trace_transformer(&sized, &program) : trace_model(argv[1], &program));
  ax_must(ax_program_print(program, &text));
  fputs(text, stdout);
  ax_string_free(text);
  ax_program_release(program);
  return 0;
}
