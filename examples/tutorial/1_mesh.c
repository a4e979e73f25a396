/* Step 1 of docs/tutorial.md: a mesh of devices, and arrays laid over it. */
#include <stdio.h>

#include <axle/axle.h>

static void show(ax_runtime *runtime, const ax_mesh *mesh, const char *spec) {
  float data[] = {1, 2, 3, 4, 5, 6, 7, 8};
  ax_type type = AX_TYPE(AX_F32, 4, 2);
  ax_array *array;
  char *picture;
  ax_must(ax_device_put_data(runtime, mesh, spec, &type, data, &array));
  ax_must(ax_array_picture(array, &picture));
  printf("\n\"%s\": %s", spec, picture);
  ax_string_free(picture);
  ax_array_release(array);
}

int main(void) {
  ax_mesh mesh;
  ax_runtime *runtime;
  ax_must(ax_mesh_parse("data=2,model=2", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));
  printf("%d devices\n", (int)ax_mesh_devices(&mesh));

  show(runtime, &mesh, "data");
  show(runtime, &mesh, "_,model");
  show(runtime, &mesh, "data+model");

  ax_runtime_release(runtime);
  return 0;
}
