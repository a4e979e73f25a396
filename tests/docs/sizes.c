/* What docs/abi.md shows: the sizes of the structs that are values, which a change of the ABI would change. */
#include <stdio.h>

#include <axle/axle.h>

#define SIZE(type) printf("%-20s %4zu\n", #type, sizeof(type))

int main(void) {
  SIZE(ax_value);
  SIZE(ax_fn);
  SIZE(ax_args);
  SIZE(ax_axis);
  SIZE(ax_mesh);
  SIZE(ax_spread);
  SIZE(ax_type);
  SIZE(ax_spec);
  SIZE(ax_pmap_sharding);
  SIZE(ax_host_array);
  SIZE(ax_part);
  SIZE(ax_device);
  SIZE(ax_collective_cost);
  SIZE(ax_cost);
  SIZE(ax_counters);
  SIZE(ax_memory_bytes);
  SIZE(ax_memory);
  SIZE(ax_allocator);
  SIZE(ax_runtime_options);
  SIZE(ax_compile_options);
  SIZE(ax_vmap_options);
  SIZE(ax_pmap_options);
  SIZE(ax_sharding_options);
  return 0;
}
