/* What docs/running.md shows: an array of memory that the program owns, read where it lies. */
#include <stdio.h>

#include <axle/axle.h>

static void released(void *name) { printf("nobody needs %s any more\n", (const char *)name); }

int main(void) {
  ax_mesh mesh;
  ax_runtime *runtime;
  ax_must(ax_mesh_parse("data=2", &mesh));
  ax_must(ax_runtime_create(NULL, &runtime));

  float left[] = {1, 2}, right[] = {3, 4};
  ax_part parts[] = {{.data = left, .bytes = sizeof left, .release = released, .context = "left"},
                     {.data = right, .bytes = sizeof right, .release = released, .context = "right"}};
  ax_type type = AX_TYPE(AX_F32, 4);
  ax_array *array;
  ax_must(ax_array_from_parts(runtime, &mesh, "data", &type, AX_LIST(2, parts), &array));

  const void *data;
  size_t bytes;
  int64_t device;
  for (uint32_t i = 0; i < ax_array_part_count(array); i++) {
    ax_must(ax_array_part(array, i, &data, &bytes, &device));
    printf("part %u: on device %d, %zu bytes, first %g, copied: %s\n", i, (int)device, bytes, (double)*(const float *)data,
           data == parts[i].data ? "no" : "yes");
  }
  ax_array_release(array);
  ax_runtime_release(runtime);
  return 0;
}
