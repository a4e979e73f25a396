/* A program outside the tree: cc outside.c $(pkg-config --cflags --libs axle) */
#include <axle/type.h>
#include <stdio.h>

int main(int argc, char **argv) {
  ax_mesh mesh;
  if (ax_mesh_parse(argc > 1 ? argv[1] : "data=4,model=2", &mesh) != AX_OK) return fprintf(stderr, "%s\n", ax_message()), 1;
  printf("%lld devices\n", (long long)ax_mesh_devices(&mesh));
  return 0;
}
