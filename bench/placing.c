/* Arrays of 256 MiB put on eight devices, laid out anew and read, by rows, by columns and all on each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "axle/sharding.h"
#include "cases.h"
#include "job.h"
#include "serve.h"

enum { side = 8192 };
static const size_t bytes = sizeof(float) * side * side;

typedef struct placing {
  ax_runtime *runtime;
  ax_sharding *sharding, *other;
  ax_host_array host;
  ax_array *array;
  void *read;
} placing;

static void put(void *context, int64_t count) {
  placing *p = context;
  for (int64_t i = 0; i < count; i++) {
    ax_array *array;
    check(ax_device_put_as(p->runtime, p->sharding, &p->host, &array));
    ax_array_release(array);
  }
}

static void move(void *context, int64_t count) {
  placing *p = context;
  for (int64_t i = 0; i < count; i++) {
    ax_array *array;
    check(ax_array_reshard(p->array, p->other, &array));
    ax_array_release(array);
  }
}

static void read_all(void *context, int64_t count) {
  placing *p = context;
  for (int64_t i = 0; i < count; i++) check(ax_array_read(p->array, p->read, bytes));
}

static void read_in_place(void *context, int64_t count) {
  placing *p = context;
  for (int64_t i = 0; i < count; i++) {
    const void *data;
    size_t there;
    check(ax_array_part(p->array, 0, &data, &there, NULL));
  }
}

static const struct {
  const char *name;
  bench_work *work;
} works[] = {{"put", put}, {"move", move}, {"read", read_all}, {"read_in_place", read_in_place}};

static ax_sharding *over_eight(const char *how) {
  const char *spec = strcmp(how, "rows") == 0 ? "d" : strcmp(how, "columns") == 0 ? "_,d" : "";
  ax_sharding *made;
  ax_mesh mesh;
  check(ax_mesh_parse("d=8", &mesh));
  check(ax_sharding_named(&mesh, spec, NULL, &made));
  return made;
}

void place(char **arguments) {
  float *data = aligned_alloc(64, bytes);
  placing p = {.sharding = over_eight(arguments[1]), .other = over_eight(strcmp(arguments[1], "columns") == 0 ? "rows" : "columns"),
               .read = aligned_alloc(64, bytes)};
  if (data == NULL || p.read == NULL) {
    perror("aligned_alloc");
    exit(1);
  }
  for (int64_t i = 0; i < (int64_t)side * side; i++) data[i] = (float)i;
  memset(p.read, 0, bytes);
  p.host = ax_host_view(AX_F32, AX_DIMS(side, side), data);
  check(ax_runtime_create(NULL, &p.runtime));
  check(ax_device_put_as(p.runtime, p.sharding, &p.host, &p.array));
  for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
    if (strcmp(arguments[0], works[i].name) == 0) bench_serve(works[i].work, &p, 1);
}
