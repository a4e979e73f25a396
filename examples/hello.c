/* The program of the README: eight numbers less their mean, on eight devices that hold one number each. */
#include <axle/axle.h>

/* Runs on each device. in[0] is the device's block; pmean is the mean over all devices along "data". */
static AX_BODY(center) { out[0] = ax_sub(in[0], ax_pmean(in[0], "data")); }

int main(void) {
  float numbers[] = {1, 2, 3, 4, 5, 6, 7, 8};
  ax_host_array x = AX_HOST(numbers), y;
  ax_mesh mesh;
  ax_must(ax_mesh_parse("data=8", &mesh));
  ax_must(ax_apply(NULL, AX_SHARDED(&mesh, "data -> data", AX_FN(center, 1, 1)), &x, &y));
  ax_print("y", &y);
  ax_host_array_release(&y);
  return 0;
}
