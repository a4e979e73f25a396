/* The shardings that jax.pmap's arrays have, which say of each dimension how it is cut (NoSharding, Chunked, Unstacked), and of the
   devices, in order, which cut or how many replicas they go along (ShardedAxis, Replicated):

     ShardingSpec((Unstacked(4), NoSharding(), Chunked(2,3)), (ShardedAxis(axis=0), Replicated(replicas=2), ShardedAxis(axis=2),
     ShardedAxis(axis=1)))
                            0                            1 2                                                                  cuts,
                                                         as they come

   That is a mesh and a spec: an axis for each entry of the second list, and for each dimension the axes of its cuts. What they do
   not say is that a part has no such dimension where it is unstacked. */
#include "axle/pmap.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/transform.h"
#include "mesh/sharding.h"

/* --- Reading --- */

typedef struct reader {
  const char *text, *at;
  int64_t cut_size[AX_MAX_AXES]; /* by cut: into how many */
  uint8_t cut_dim[AX_MAX_AXES];
  uint32_t cuts;
  ax_pmap_sharding made;
} reader;

static ax_status expected(const reader *r, const char *what) {
  return ax_error(AX_INVALID_ARGUMENT, "%s is expected at \"%.32s\"", what, r->at);
}

static void skip_blanks(reader *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool accept(reader *r, const char *word) {
  skip_blanks(r);
  size_t length = strlen(word);
  if (strncmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

static ax_status expect(reader *r, const char *word) { return accept(r, word) ? AX_OK : expected(r, word); }

/* "4", or "size=4"; at least `least`. */
static ax_status read_number(reader *r, const char *keyword, int64_t least, int64_t *out) {
  if (accept(r, keyword)) AX_TRY(expect(r, "="));
  skip_blanks(r);
  char *end;
  *out = isdigit((unsigned char)*r->at) ? strtoll(r->at, &end, 10) : least - 1;
  if (*out < least || *out > INT32_MAX) return expected(r, least > 0 ? "a number from 1 on" : "a number");
  r->at = end;
  return AX_OK;
}

static ax_status add_cut(reader *r, const char *keyword) {
  if (r->cuts == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d cuts", AX_MAX_AXES);
  AX_TRY(read_number(r, keyword, 1, &r->cut_size[r->cuts]));
  r->cut_dim[r->cuts++] = (uint8_t)r->made.spec.rank;
  return AX_OK;
}

static ax_status read_dimension(reader *r) {
  if (r->made.spec.rank == AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "more than %d dimensions", AX_MAX_RANK);
  if (accept(r, "NoSharding(")) {
  } else if (accept(r, "Unstacked(")) {
    AX_TRY(add_cut(r, "size"));
    r->made.unstacked |= UINT32_C(1) << r->made.spec.rank;
  } else if (accept(r, "Chunked(")) {
    const bool listed = accept(r, "[");
    AX_TRY(add_cut(r, "chunks"));
    while (accept(r, ",")) AX_TRY(add_cut(r, "chunks"));
    if (listed) AX_TRY(expect(r, "]"));
  } else {
    return expected(r, "NoSharding, Unstacked or Chunked");
  }
  r->made.spec.rank++;
  return expect(r, ")");
}

static ax_status add_axis(reader *r, char kind, uint32_t number, int64_t size) {
  ax_mesh *mesh = &r->made.mesh;
  if (mesh->count == AX_MAX_AXES) return ax_error(AX_INVALID_ARGUMENT, "more than %d axes of devices", AX_MAX_AXES);
  ax_axis *axis = &mesh->axis[mesh->count++];
  axis->size = size;
  snprintf(axis->name, sizeof axis->name, "%c%u", kind, number);
  return AX_OK;
}

/* cut_axis[k]: which axis cut k is, from 1 on; 0: none yet. */
static ax_status read_axis(reader *r, uint8_t *cut_axis, uint32_t *replicas) {
  int64_t number;
  if (accept(r, "Replicated(")) {
    AX_TRY(read_number(r, "replicas", 1, &number));
    AX_TRY(add_axis(r, 'r', (*replicas)++, number));
  } else if (accept(r, "ShardedAxis(")) {
    AX_TRY(read_number(r, "axis", 0, &number));
    if (number >= r->cuts)
      return ax_error(AX_INVALID_ARGUMENT, "ShardedAxis(%lld), but there are %u cuts", (long long)number, r->cuts);
    if (cut_axis[number] != 0) return ax_error(AX_INVALID_ARGUMENT, "ShardedAxis(%lld) is there twice", (long long)number);
    AX_TRY(add_axis(r, 's', (uint32_t)number, r->cut_size[number]));
    cut_axis[number] = (uint8_t)r->made.mesh.count;
  } else {
    return expected(r, "ShardedAxis or Replicated");
  }
  return expect(r, ")");
}

static ax_status read_all(reader *r) {
  uint8_t cut_axis[AX_MAX_AXES] = {0};
  uint32_t replicas = 0;
  AX_TRY(expect(r, "ShardingSpec("));
  AX_TRY(expect(r, "("));
  while (!accept(r, ")")) {
    AX_TRY(read_dimension(r));
    if (!accept(r, ",") && (skip_blanks(r), *r->at != ')')) return expected(r, "\",\" or \")\"");
  }
  AX_TRY(expect(r, ","));
  AX_TRY(expect(r, "("));
  while (!accept(r, ")")) {
    AX_TRY(read_axis(r, cut_axis, &replicas));
    if (!accept(r, ",") && (skip_blanks(r), *r->at != ')')) return expected(r, "\",\" or \")\"");
  }
  AX_TRY(expect(r, ")"));
  skip_blanks(r);
  if (*r->at != '\0') return expected(r, "the end");
  for (uint32_t k = 0; k < r->cuts; k++) {
    const uint32_t dim = r->cut_dim[k];
    if (cut_axis[k] == 0) return ax_error(AX_INVALID_ARGUMENT, "there is no ShardedAxis(%u)", k);
    r->made.spec.axis[dim][r->made.spec.count[dim]++] = (uint8_t)(cut_axis[k] - 1);
  }
  return ax_mesh_check(&r->made.mesh);
}

ax_status ax_pmap_sharding_parse(const char *text, ax_pmap_sharding *out) {
  *out = (ax_pmap_sharding){0};
  AX_TRY(ax_require(text, "text"));
  reader r = {.text = text, .at = text};
  ax_status status = read_all(&r);
  if (status != AX_OK) return ax_error_context(status, "sharding spec \"%.200s\": ", text);
  *out = r.made;
  return AX_OK;
}

/* --- Writing --- */

/* Checks a struct that a caller may have filled in by hand. */
static ax_status check(const ax_pmap_sharding *sharding) {
  AX_TRY(ax_require(sharding, "sharding"));
  AX_TRY(ax_mesh_check(&sharding->mesh));
  if (sharding->spec.rank > AX_MAX_RANK) return ax_error(AX_INVALID_ARGUMENT, "a spec of %u entries", sharding->spec.rank);
  ax_axis_set seen = 0;
  for (uint32_t d = 0; d < sharding->spec.rank; d++) {
    const uint32_t count = sharding->spec.count[d];
    for (uint32_t i = 0; i < count && i < AX_MAX_AXES; i++) {
      const uint32_t axis = sharding->spec.axis[d][i];
      if (axis >= sharding->mesh.count || (seen >> axis & 1))
        return ax_error(AX_INVALID_ARGUMENT, "dimension %u is cut over an axis that there is not, or twice", d);
      seen |= (ax_axis_set)1 << axis;
    }
    if ((sharding->unstacked >> d & 1) && count != 1)
      return ax_error(AX_INVALID_ARGUMENT, "dimension %u is unstacked over %u axes, not one", d, count);
  }
  return (uint64_t)sharding->unstacked >> sharding->spec.rank == 0
             ? AX_OK
             : ax_error(AX_INVALID_ARGUMENT, "a dimension beyond the %u there are is unstacked", sharding->spec.rank);
}

static void add_dimension(ax_text *text, const ax_pmap_sharding *sharding, uint32_t d) {
  const ax_spec *spec = &sharding->spec;
  if (spec->count[d] == 0) {
    ax_text_add(text, "NoSharding()");
    return;
  }
  ax_text_add(text, (sharding->unstacked >> d & 1) ? "Unstacked(" : "Chunked(");
  for (uint32_t i = 0; i < spec->count[d]; i++)
    ax_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)sharding->mesh.axis[spec->axis[d][i]].size);
  ax_text_add(text, ")");
}

ax_status ax_pmap_sharding_print(const ax_pmap_sharding *sharding, char **out) {
  uint32_t cut_of[AX_MAX_AXES], cuts = 0; /* by axis */
  ax_text text = {0};
  *out = NULL;
  AX_TRY(check(sharding));
  for (uint32_t j = 0; j < AX_MAX_AXES; j++) cut_of[j] = AX_NONE;
  ax_text_add(&text, "ShardingSpec((");
  for (uint32_t d = 0; d < sharding->spec.rank; d++) {
    for (uint32_t i = 0; i < sharding->spec.count[d]; i++) cut_of[sharding->spec.axis[d][i]] = cuts++;
    if (d > 0) ax_text_add(&text, ", ");
    add_dimension(&text, sharding, d);
  }
  ax_text_add(&text, "%s), (", sharding->spec.rank == 1 ? "," : "");
  for (uint32_t j = 0; j < sharding->mesh.count; j++) {
    if (j > 0) ax_text_add(&text, ", ");
    if (cut_of[j] == AX_NONE)
      ax_text_add(&text, "Replicated(replicas=%lld)", (long long)sharding->mesh.axis[j].size);
    else
      ax_text_add(&text, "ShardedAxis(axis=%u)", cut_of[j]);
  }
  ax_text_add(&text, "%s))", sharding->mesh.count == 1 ? "," : "");
  return ax_text_finish(&text, out);
}

/* --- What there is of a mapped array, and which part each device has --- */

ax_status ax_pmap_sharding_of(int64_t devices, int64_t axis_size, uint32_t rank, int axis, ax_pmap_sharding *out) {
  *out = (ax_pmap_sharding){0};
  if (axis_size < 1 || devices < 1 || devices % axis_size != 0)
    return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: %lld devices are no multiple of an axis of %lld", (long long)devices,
                    (long long)axis_size);
  const int given = axis;
  if (rank > AX_MAX_RANK || !ax_mapped_dim(given, rank, &axis))
    return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: dimension %d of an array of %u", given, rank);
  ax_pmap_sharding made = {.mesh.count = 1, .spec.rank = rank};
  made.mesh.axis[0] = (ax_axis){.name = "s0", .size = axis_size};
  if (axis < 0) made.mesh.axis[0].name[0] = 'r';
  if (axis >= 0) {
    made.spec.count[axis] = 1;
    made.unstacked = UINT32_C(1) << axis;
  }
  if (devices > axis_size) {
    made.mesh.axis[made.mesh.count] = (ax_axis){.name = "r0", .size = devices / axis_size};
    if (axis < 0) made.mesh.axis[made.mesh.count].name[1] = '1';
    made.mesh.count++;
  }
  AX_TRY(ax_mesh_check(&made.mesh));
  *out = made;
  return AX_OK;
}

ax_status ax_pmap_sharding_part(const ax_pmap_sharding *sharding, const ax_type *whole, int64_t device, ax_type *part,
                                int64_t *start) {
  *part = (ax_type){0};
  AX_TRY(check(sharding));
  AX_TRY(ax_require(whole, "type"));
  const ax_mesh *mesh = &sharding->mesh;
  ax_type block, sound = ax_array_type(whole->dtype, AX_LIST(whole->rank, whole->dims));
  if (sound.dtype == AX_NO_DTYPE) return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: the type is none");
  if (sound.rank != sharding->spec.rank)
    return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: %s has %u dimensions, the sharding %u", ax_type_string(&sound, NULL),
                    sound.rank, sharding->spec.rank);
  if (device < 0 || device >= ax_mesh_devices(mesh))
    return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: device %lld of %lld", (long long)device, (long long)ax_mesh_devices(mesh));
  for (uint32_t d = 0; d < sound.rank; d++)
    if ((sharding->unstacked >> d & 1) && sound.dims[d] != ax_shard_parts(&sharding->spec, mesh, d))
      return ax_error(AX_INVALID_ARGUMENT, "pmap sharding: dimension %u of %s is Unstacked(%lld)", d, ax_type_string(&sound, NULL),
                      (long long)ax_shard_parts(&sharding->spec, mesh, d));
  ax_status status = ax_shard_type(&sound, &sharding->spec, mesh, &block);
  if (status != AX_OK) return ax_error_context(status, "pmap sharding: ");
  ax_shard_offset(&block, &sharding->spec, mesh, device, start);
  *part = ax_array_type(block.dtype, AX_DIMS());
  for (uint32_t d = 0; d < block.rank; d++)
    if (!(sharding->unstacked >> d & 1)) part->dims[part->rank++] = block.dims[d];
  return AX_OK;
}
