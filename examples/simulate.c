/* How should a layer be cut over 64 devices that one does not have? Its time on a machine that is described, for each way to cut
   the batch by `data` and the weights by `model`, with the gradients' sums over `data`. Nothing is run: each program is laid out,
   lowered and simulated. */
#include <axle/axle.h>
#include <stdio.h>
#include <string.h>

enum { devices = 64, batch = 4096, width = 4096, hidden = 16384 };

/* in: x, w1, w2 -> the gradients of a loss by both weights. Programs of whole arrays: how they lie is said outside. */
static AX_BODY(loss) {
  ax_value y = ax_matmul(ax_gelu(ax_matmul(in[2], in[0])), in[1]);
  out[0] = ax_reduce_mean(ax_square(y), AX_ALL_DIMS, false);
}

static AX_BODY(gradients) {
  ax_value turned[] = {in[1], in[2], in[0]};
  ax_grad(AX_FN(loss, 3, 1), AX_FIRST(2), turned, out);
}

static double milliseconds(const ax_program *program, int64_t data, const ax_cluster *machine, const char **longest) {
  char axes[64];
  ax_mesh mesh;
  ax_program *laid;
  ax_lowered *lowered;
  ax_simulation simulation;
  snprintf(axes, sizeof axes, "data=%lld,model=%lld", (long long)data, (long long)(devices / data));
  ax_must(ax_mesh_parse(axes, &mesh));
  ax_must(ax_program_with_shardings(program, &mesh, "data,_; _,model; model,_ -> _,model; model,_", &laid));
  ax_must(ax_program_lower(laid, NULL, &lowered));
  ax_must(ax_simulate(lowered, machine, NULL, &simulation));
  const double seconds = simulation.seconds;
  double most = 0;
  *longest = "";
  for (uint32_t i = 0; i < simulation.op_count; i++) {
    if (simulation.ops[i].busy <= most) continue;
    most = simulation.ops[i].busy;
    *longest = simulation.ops[i].name; /* static */
  }
  ax_simulation_release(&simulation);
  ax_lowered_release(lowered);
  ax_program_release(laid);
  return seconds * 1e3;
}

int main(void) {
  const ax_type in[] = {AX_TYPE(AX_F32, batch, width), AX_TYPE(AX_F32, width, hidden), AX_TYPE(AX_F32, hidden, width)};
  const char *name;
  ax_program *program;
  ax_must(ax_trace(AX_FN(gradients, 3, 2), in, &program));
  for (uint32_t i = 0; (name = ax_cluster_builtin(i, NULL)) != NULL; i++) {
    /* It has other sides for each mesh, so its times cannot be compared. */
    if (strcmp(name, "tpu-like-torus") == 0) continue;
    ax_cluster *machine;
    double best = 0;
    int64_t best_data = 0;
    ax_must(ax_cluster_read(name, &machine));
    printf("%s\n", name);
    for (int64_t data = 1; data <= devices; data *= 2) {
      const char *longest;
      const double time = milliseconds(program, data, machine, &longest);
      printf("  data=%-2lld model=%-2lld %10.3f ms, most of it %s\n", (long long)data, (long long)(devices / data), time, longest);
      if (best_data == 0 || time < best) best = time, best_data = data;
    }
    printf("  best: data=%lld\n", (long long)best_data);
    ax_cluster_release(machine);
  }
  ax_program_release(program);
  return 0;
}
