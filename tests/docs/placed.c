/* What docs/sharding.md shows: an array put, moved, taken apart and put together, and a slice of it. */
#include <stdio.h>

#include <axle/axle.h>

int main(void) {
  ax_runtime *runtime;
  ax_mesh mesh;
  ax_sharding *rows, *blocks;
  ax_must(ax_runtime_create(NULL, &runtime));
  ax_must(ax_mesh_parse("x=2,y=2", &mesh));
  ax_must(ax_sharding_named(&mesh, "x+y", NULL, &rows));
  ax_must(ax_sharding_named(&mesh, "x,y", NULL, &blocks));

  float data[8][6];
  for (int i = 0; i < 48; i++) data[i / 6][i % 6] = (float)i;
  ax_host_array host = ax_host_view(AX_F32, AX_DIMS(8, 6), data);
  ax_array *by_rows, *by_blocks, *again, *on[4];
  ax_must(ax_device_put_as(runtime, rows, &host, &by_rows));
  ax_must(ax_array_reshard(by_rows, blocks, &by_blocks));

  float slice[2][2];
  ax_must(ax_array_read_slice(by_blocks, AX_DIMS(3, 2), AX_DIMS(2, 2), slice, sizeof slice));
  printf("rows 3 and 4, columns 2 and 3: %g %g %g %g\n", (double)slice[0][0], (double)slice[0][1], (double)slice[1][0], (double)slice[1][1]);

  for (int64_t d = 0; d < 4; d++) ax_must(ax_array_on_device(by_blocks, d, &on[d]));
  ax_host_array part;
  ax_must(ax_array_to_host(on[3], &part));
  ax_print("device 3 has", &part);
  ax_host_array_release(&part);
  ax_must(ax_array_from_device_arrays(runtime, blocks, ax_array_typeof(by_blocks), AX_ARRAYS(on[0], on[1], on[2], on[3]), &again));
  printf("it lies by blocks: %s, by rows: %s\n", ax_array_is_laid_as(again, blocks) ? "yes" : "no", ax_array_is_laid_as(again, rows) ? "yes" : "no");

  ax_device device;
  ax_must(ax_runtime_device(runtime, 3, &device));
  printf("device %d of process %u: %s\n", (int)device.id, device.process, device.platform);
  for (int d = 0; d < 4; d++) ax_array_release(on[d]);
  ax_array_release(by_rows);
  ax_array_release(by_blocks);
  ax_array_release(again);
  ax_sharding_release(rows);
  ax_sharding_release(blocks);
  ax_runtime_release(runtime);
  return 0;
}
