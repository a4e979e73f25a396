/* Over which mesh should this be trained, and how should its parameters lie? A net of 24 layers on 64 devices of a machine that one
   does not have: the best strategies that the planner finds, and the program of the first, which could be compiled. */
#include <axle/axle.h>
#include <stdio.h>

enum { LAYERS = 24, WIDTH = 2048, HIDDEN = 8192, SAMPLES = 512, DEVICES = 64 };

/* x, w1, w2 -> x: one layer */
static AX_BODY(layer) { out[0] = ax_add(in[0], ax_matmul(ax_gelu(ax_matmul(in[0], in[1])), in[2])); }

/* The loss of one sample. in: w1 and w2 of all layers; x, y. */
static AX_BODY(loss) {
  ax_value made;
  ax_scan(AX_FN(layer, 3, 1), 1, LAYERS, false, AX_VALUES(in[2], in[0], in[1]), AX_LIST(1, &made));
  out[0] = ax_reduce_mean(ax_square(ax_sub(made, in[3])), AX_ALL_DIMS, false);
}

int main(void) {
  const ax_type types[] = {AX_TYPE(AX_F32, LAYERS, WIDTH, HIDDEN), AX_TYPE(AX_F32, LAYERS, HIDDEN, WIDTH), AX_TYPE(AX_F32, WIDTH),
                           AX_TYPE(AX_F32, WIDTH)};
  static const uint32_t sample[] = {2, 3}; /* x and y; the other inputs are parameters */
  const ax_planner_options options = {
      .devices = DEVICES, .train = true, .samples = SAMPLES, .batch = {.list = sample, .count = 2}, .keep = 3};
  static const char *const names[] = {"w1", "w2", "x", "y"};
  ax_program *program, *step;
  ax_cluster *machine;
  ax_strategies found;
  char *text;
  ax_must(ax_trace(AX_FN(loss, 4, 1), types, &program));
  ax_must(ax_cluster_read("tpu-v5p", &machine));
  ax_must(ax_planner_search(program, machine, &options, &found));
  ax_must(ax_strategies_print(&found, 4, names, &text));
  fputs(text, stdout);

  for (uint32_t i = 0; i < found.count; i++) { /* strategies of several stages are several programs */
    if (found.list[i].stages > 1) continue;
    ax_cost cost;
    ax_must(ax_planner_program(program, &options, &found.list[i], &step));
    ax_must(ax_program_cost(step, &cost));
    printf("\na step of strategy %u on each device: %.3g operations, %.3g bytes from other devices\n", i + 1, cost.flops, cost.received);
    ax_cost_release(&cost);
    ax_program_release(step);
    break;
  }
  ax_string_free(text);
  ax_strategies_release(&found);
  ax_cluster_release(machine);
  ax_program_release(program);
  return 0;
}
