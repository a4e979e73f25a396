/* Layouts as XLA says them, in bytes: how many tiles each dimension has, and the numbers of the devices in the order of the tiles. With
   P(y, x) over the mesh (x=4, y=2):

     tiles        2 x 4                        dimension 0 is cut over y, dimension 1 over x
     devices      0 .. 7 as 4 x 2, transposed: the mesh's axes in the order in which dimensions use them, the unused ones last */

#include "mesh/assignment.h"
#include "client/messages.pb-c.h"
#include "pjrt/pjrt.h"
#include "pjrt/shardings.h"

typedef AxPjrtProto__OpSharding message;

typedef struct tiles { /* room for a message's lists */
  int64_t counts[AX_MAX_RANK + 2], sizes[AX_MAX_AXES];
  int32_t order[AX_MAX_AXES];
  AxPjrtProto__OpSharding__Type kinds[2];
} tiles;

/* Which part of a buffer's array each device has: of parts that devices have by themselves the first dimension is no one's. */
static void describe(const ax_pjrt_value *value, tiles *t, message *out) {
  const ax_mesh *mesh = &value->sharding->mesh;
  const ax_spec *spec = &value->sharding->spec;
  const uint32_t hidden = value->having != AX_HAVE_ARRAY, rank = value->block.rank;
  bool used[AX_MAX_AXES] = {0}, summed[AX_MAX_AXES] = {0};
  uint32_t ordered = 0, tiled;
  for (uint32_t d = 0; d < rank; d++) {
    t->counts[d] = 1;
    for (uint32_t i = 0; d + hidden < spec->rank && i < spec->count[d + hidden]; i++) {
      const uint32_t axis = spec->axis[d + hidden][i];
      t->counts[d] *= mesh->axis[axis].size;
      t->order[ordered++] = (int32_t)axis;
      used[axis] = true;
    }
  }
  for (uint32_t i = 0; value->having == AX_HAVE_SUMMED && i < spec->count[0]; i++) summed[spec->axis[0][i]] = mesh->axis[spec->axis[0][i]].size > 1;
  tiled = ordered;
  for (int kind = 0; kind < 2; kind++) { /* what all have, then what they have parts of */
    int64_t rest = 1;
    for (uint32_t a = 0; a < mesh->count; a++) {
      t->sizes[a] = mesh->axis[a].size;
      if (!used[a] && summed[a] == (kind == 1)) rest *= t->sizes[a], t->order[ordered++] = (int32_t)a;
    }
    if (rest == 1) continue;
    t->kinds[out->n_last_tile_dims] = kind == 1 ? AX_PJRT_PROTO__OP_SHARDING__TYPE__UNREDUCED : AX_PJRT_PROTO__OP_SHARDING__TYPE__REPLICATED;
    t->counts[rank + out->n_last_tile_dims++] = rest;
  }
  out->last_tile_dims = t->kinds;
  if (tiled == 0 && out->n_last_tile_dims < 2) { /* no tiles: all devices are alike */
    if (out->n_last_tile_dims > 0) out->type = t->kinds[0];
    out->n_last_tile_dims = 0;
    return;
  }
  out->type = AX_PJRT_PROTO__OP_SHARDING__TYPE__OTHER;
  out->n_tile_assignment_dimensions = rank + out->n_last_tile_dims, out->tile_assignment_dimensions = t->counts;
  out->n_iota_reshape_dims = mesh->count, out->iota_reshape_dims = t->sizes;
  out->n_iota_transpose_perm = mesh->count, out->iota_transpose_perm = t->order;
  out->replicate_on_last_tile_dim = out->n_last_tile_dims == 1 && t->kinds[0] == AX_PJRT_PROTO__OP_SHARDING__TYPE__REPLICATED;
  if (out->replicate_on_last_tile_dim) out->n_last_tile_dims = 0;
}

/* The same where a mesh has the devices in an order of its own: their numbers tile by tile. False: no memory. */
static bool list_devices(const int64_t *order, message *m, int64_t **out) {
  int64_t digits[AX_MAX_AXES] = {0}, strides[AX_MAX_AXES], count = 1, place = 0;
  for (size_t a = m->n_iota_reshape_dims; a-- > 0;) strides[a] = count, count *= m->iota_reshape_dims[a];
  *out = ax_alloc((size_t)count * sizeof(*out)[0]);
  for (int64_t tile = 0; *out != NULL && tile < count; tile++) {
    (*out)[tile] = order[place];
    for (size_t k = m->n_iota_transpose_perm; k-- > 0;) {
      const int32_t axis = m->iota_transpose_perm[k];
      place += strides[axis];
      if (++digits[axis] < m->iota_reshape_dims[axis]) break;
      place -= strides[axis] * digits[axis];
      digits[axis] = 0;
    }
  }
  m->n_iota_reshape_dims = m->n_iota_transpose_perm = 0;
  m->n_tile_assignment_devices = (size_t)count, m->tile_assignment_devices = *out;
  return *out != NULL;
}

ax_pjrt_error *ax_pjrt_sharding_bytes(const ax_pjrt_value *value, char **out, size_t *count) {
  message m = AX_PJRT_PROTO__OP_SHARDING__INIT;
  tiles t = {0};
  int64_t *devices = NULL;
  if (value->by_hand) m.type = AX_PJRT_PROTO__OP_SHARDING__TYPE__MANUAL;
  else if (value->sharding != NULL) describe(value, &t, &m);
  const bool listed = value->order == NULL || m.n_iota_reshape_dims == 0 || list_devices(value->order, &m, &devices);
  *count = listed ? ax_pjrt_proto__op_sharding__get_packed_size(&m) : 0;
  *out = listed ? ax_alloc(*count + 1) : NULL;
  if (*out != NULL) ax_pjrt_proto__op_sharding__pack(&m, (uint8_t *)*out);
  ax_free(devices);
  return *out != NULL ? NULL : ax_pjrt_fail(AX_PJRT_RESOURCE_EXHAUSTED, "out of memory for a sharding");
}

static ax_pjrt_error *give(ax_pjrt_executable_shardings_args *args, size_t count, const ax_pjrt_texts *texts) {
  args->count = count;
  args->items = count > 0 ? (const char *const *)texts->items : NULL; /* of no values callers want no list */
  args->lengths = texts->lengths;
  return NULL;
}

static ax_pjrt_error *parameters(ax_pjrt_executable_shardings_args *args) { return give(args, args->of->in_count, &args->of->in_shardings); }
static ax_pjrt_error *results(ax_pjrt_executable_shardings_args *args) { return give(args, args->of->out_count, &args->of->out_shardings); }

ax_pjrt_shardings ax_pjrt_shardings_extension = {
    .base = {.struct_size = sizeof ax_pjrt_shardings_extension, .type = AX_PJRT_SHARDINGS}, .parameters = parameters, .results = results};
