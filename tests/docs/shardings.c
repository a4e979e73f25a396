/* What docs/sharding.md shows: shardings of every kind, the blocks they give devices, and which are the same. */
#include <stdio.h>

#include <axle/axle.h>

static void show(const char *what, const ax_sharding *sharding) {
  char *text, *tiles;
  ax_must(ax_sharding_print(sharding, &text));
  ax_must(ax_sharding_tiles(sharding, 2, &tiles));
  printf("%-10s %s\n           %s, %d blocks\n", what, text, tiles, (int)ax_sharding_block_count(sharding));
  ax_string_free(text);
  ax_string_free(tiles);
}

int main(void) {
  ax_mesh mesh;
  ax_sharding *named, *turned, *tiled, *single;
  ax_must(ax_mesh_parse("data=2,model=3", &mesh));
  ax_must(ax_sharding_named(&mesh, "data,model", NULL, &named));
  ax_sharding_options order = {.devices = {AX_DIMS(0, 3, 1, 4, 2, 5)}};
  ax_must(ax_sharding_named(&mesh, "_,model", &order, &turned));
  ax_must(ax_sharding_tiled("{devices=[3,2]<=[2,3]T(1,0)}", NULL, &tiled));
  ax_must(ax_sharding_single(4, &single));
  show("named", named);
  show("in order", turned);
  show("tiled", tiled);
  show("single", single);

  ax_type type = AX_TYPE(AX_F32, 6, 12);
  char *picture;
  ax_must(ax_sharding_picture(turned, &type, &picture));
  fputs(picture, stdout);
  ax_string_free(picture);

  int64_t start[2];
  ax_must(ax_sharding_start(tiled, &type, 4, start));
  printf("device 4 of the tiled one begins at [%d,%d]\n", (int)start[0], (int)start[1]);

  ax_sharding *other;
  ax_must(ax_sharding_named(&mesh, "model,data", NULL, &other));
  printf("the tiled one is P(model, data): %s\n", ax_sharding_equal(tiled, other) ? "yes" : "no");
  ax_type odd = AX_TYPE(AX_F32, 7, 12), block;
  if (ax_sharding_block(named, &odd, &block) != AX_OK) puts(ax_message());
  ax_sharding_release(named);
  ax_sharding_release(turned);
  ax_sharding_release(tiled);
  ax_sharding_release(single);
  ax_sharding_release(other);
  return 0;
}
