/* A block has as many rows as stay in the cache from one member to the next. For kernels, it is as many as fit in half of the first
   cache, or more if they would not be worth a call. With products, it is several tiles of rows, as long as all local allocations
   have room in a block of memory that stays in a core's second cache.

     m  |----|                 a local allocation is in the block only while it is needed,
     e  |----------|           and others use its place before and after
     s       |-----|

   Blocks depend on the group's sizes alone, never on the threads. The cut of rows changes the time only, and no bits. */
#include "plan/rows_blocks.h"

#include "machine/caches.h"

enum {
  least_block = AX_HOSTILE ? 1 : 4 << 10, /* bytes of an allocation that a kernel comes to in a block of rows */
  tile_rows = AX_HOSTILE ? 1 : 14, /* of a product: blocks are of so many, */
  most_tiles = 6,           /* so many times, */
  short_rows_bytes = 96 << 10, /* or for this much */
  tiles_bytes = 256 << 10,  /* of such a block of all that is touched */
  least_part_rows = AX_HOSTILE ? 1 : 64, /* of a group with products */
  least_parts = AX_HOSTILE ? 1 : 16,
  most_parts = 256,
  part_bytes = 2048,       /* the least that a part writes */
  most_again = 2           /* times that factors in the last cache may be larger than those kept in the second */
};

bool ax_rows_has_products(const ax_rows_group *of) {
  for (uint32_t k = 0; k < of->count; k++)
    if (of->members[k].kind == AX_OP_GEMM) return true;
  return false;
}

/* Between these it has to stay in the cache. */
static uint32_t first_member(const ax_rows_use *u) { return (uint32_t)__builtin_ctz(u->members); }
static uint32_t last_member(const ax_rows_use *u) { return 31 - (uint32_t)__builtin_clz(u->members); }

/* Bytes of a row that several members touch, at most, of `hull` bytes between the first and the last: pieces of a row, which are all
   of it, are one member's each, and what one member touches most of it shares with the others no more than they touch. */
static int64_t shared_of(const ax_rows_use *u, int64_t hull) {
  if (!ax_rows_by_several(u)) return 0;
  const int64_t others = u->touched - u->most, again = u->touched < hull ? u->touched : u->touched - hull;
  return others < again ? others : again;
}

typedef struct extent {
  int64_t row;     /* bytes of a row of all that is to be in the cache at once */
  int64_t longest; /* of what one allocation has in a row */
  double largest;  /* bytes of an allocation, each touched by several kernels */
} extent;

static extent extent_of(const ax_rows_group *of) {
  int64_t alive[AX_ROWS_MEMBERS] = {0};
  extent e = {0};
  for (uint32_t i = 0; i < of->use_count; i++) {
    const ax_rows_use *u = &of->uses[i];
    const int64_t hull = u->high - u->low, mine = u->touched < hull ? u->touched : hull;
    if (u->row == 0 || u->irregular) continue;
    for (uint32_t k = first_member(u); k <= last_member(u); k++) alive[k] += mine;
    if (mine > e.longest) e.longest = mine;
    const double shared = (double)shared_of(u, hull) * (double)(of->outer * of->extent);
    if (shared > e.largest) e.largest = shared;
  }
  for (uint32_t k = 0; k < of->count; k++)
    if (alive[k] > e.row) e.row = alive[k];
  return e;
}

/* Bytes of a block of rows of all that is touched. Half of the cache: where arrays lie decides which of its sets they fill, and
   what the processor fetches ahead comes there too. Blocks as large as all of it took up to 1.8 times as long, in one process and
   not in another. */
static int64_t block_bytes(void) { return AX_HOSTILE ? 64 : ax_caches_here()->first / 2; }

/* Rows in a block: as many as stay in the cache, but no fewer than are worth calling a kernel for. */
static int64_t rows_at_a_time(const ax_rows_group *of, const extent *e) {
  int64_t step = e->row > 0 ? block_bytes() / e->row : of->extent;
  if (e->longest > 0 && step < least_block / e->longest) step = least_block / e->longest;
  if (step < 1) step = 1;
  return step < of->extent ? step : of->extent;
}

int64_t ax_rows_far_factors(void) {
  const int64_t rest = ax_caches_here()->kept - ax_caches_here()->second;
  return rest > AX_ROWS_NEAR_FACTORS ? rest : AX_ROWS_NEAR_FACTORS;
}

static bool has_far_factors(const ax_rows_group *of) { return of->factors > AX_ROWS_NEAR_FACTORS; }

/* Bytes of a block of rows of all that is local: a core's second cache. */
static int64_t room(void) {
  const int64_t second = ax_caches_here()->second;
  return AX_HOSTILE ? 192 << 10 : second < AX_ROWS_BYTES ? second : AX_ROWS_BYTES;
}

static double time_of(const ax_rows_group *of) {
  double time = 0;
  for (uint32_t i = 0; i < of->count; i++) time += ax_op_member_time(&of->members[i]);
  return time;
}

/* Nobody else touches the allocation, so a block of its rows is enough. */
static bool is_local(const ax_plan *plan, const uint32_t *reads, const uint32_t *writes, const ax_rows_group *of,
                     const ax_rows_use *u) {
  const ax_buffer *allocation = &plan->buffers[u->allocation];
  return allocation->kind == AX_BUFFER_TEMP && u->written && !u->irregular && u->row > 0 && u->loop == AX_NONE && u->low >= 0 &&
         u->high <= u->row && u->touches == reads[u->allocation] + writes[u->allocation] &&
         allocation->axes == of->members[0].axes && !allocation->updated;
}

static bool overlap(const ax_rows_use *a, const ax_rows_use *b) {
  return first_member(a) <= last_member(b) && first_member(b) <= last_member(a);
}

/* Places local allocations in a block of rows, as long as there is room, so that none overlaps another one in use at the same
   time. place[i] -1: it stays in memory. */
static int64_t place_local(const ax_rows_group *of, const bool *local, int64_t step, int64_t *place) {
  const int64_t most = room();
  int64_t bytes = 0, size[AX_ROWS_USES];
  for (uint32_t i = 0; i < of->use_count; i++) {
    const ax_rows_use *u = &of->uses[i];
    place[i] = -1;
    if (!local[i] || u->row > most / step) continue;
    size[i] = (u->row * step + 63) / 64 * 64 + 64; /* more, so that they do not all begin at the same place of a page */
    int64_t at = 0;
    for (uint32_t k = 0; k < i; k++) {
      if (place[k] < 0 || !overlap(u, &of->uses[k]) || at >= place[k] + size[k] || place[k] >= at + size[i]) continue;
      at = place[k] + size[k];
      k = UINT32_MAX; /* from the first again: at only grows */
    }
    if (at + size[i] > most) continue;
    place[i] = at;
    if (at + size[i] > bytes) bytes = at + size[i];
  }
  return bytes;
}

/* For tiles of products: as many as there is room for all that is local and the cache for the rest. 0: not even one. */
static int64_t rows_of_tiles(const ax_rows_group *of, const bool *local, const extent *e) {
  const int64_t most = has_far_factors(of) ? ax_caches_here()->second / 2 : tiles_bytes;
  int64_t place[AX_ROWS_USES], step = e->row > 0 ? most / e->row / tile_rows * tile_rows : 0;
  const int64_t many = e->row > 0 ? short_rows_bytes / e->row / tile_rows * tile_rows : 0;
  if (step > most_tiles * tile_rows && step > many) step = many > most_tiles * tile_rows ? many : most_tiles * tile_rows;
  for (; step > 0; step -= tile_rows) {
    bool all = true;
    place_local(of, local, step, place);
    for (uint32_t i = 0; i < of->use_count; i++) all = all && (place[i] >= 0 || !local[i]);
    if (all) break;
  }
  return step < of->extent ? step : of->extent;
}

/* Into how many parts a group is worth cutting. */
static double parts_of(const ax_rows_group *of, const extent *e) {
  double rows = (double)of->outer * (double)of->extent, parts = ax_parts_worth(time_of(of));
  double most = ax_rows_has_products(of) ? rows / least_part_rows : rows * (double)e->row / part_bytes;
  if (parts > most) parts = most;
  if (parts > rows) parts = rows;
  return parts > most_parts ? most_parts : parts > 1 ? parts : 1;
}

/* Each block of rows goes once through all factors. Says whether that is no more than twice what blocks keep out of memory, where
   the rows of all of them would fit no second cache. */
static bool keeps_enough(const ax_rows_group *of, const bool *local, int64_t step) {
  int64_t kept = 0, largest = 0;
  for (uint32_t i = 0; i < of->use_count; i++) {
    const int64_t row = local[i] ? of->uses[i].row : 0;
    kept += row * of->uses[i].touches;
    if (row > largest) largest = row;
  }
  return of->factors <= most_again * kept * step && largest * of->extent >= ax_caches_here()->second;
}

/* Whether most members have next to nothing to do in a block, as the last steps of a scan that halves its rows again and again:
   each call for a few elements takes as long as one for hundreds. */
static bool calls_for_little(const ax_rows_group *of, int64_t step) {
  enum { few_elems = 64, few_members = 8 }; /* few members are done sooner than their arrays come again */
  const int64_t rows = of->outer * of->extent;
  uint32_t little = 0;
  for (uint32_t i = 0; i < of->count; i++) {
    const ax_op *op = &of->members[i];
    little += op->kind == AX_OP_KERNEL && ax_dims_elems(op->kernel.kernel->rank, op->kernel.kernel->dims) / rows * step < few_elems;
  }
  return of->count > few_members && 2 * little > of->count;
}

/* Products alone are cut into as many parts as they are worth, by rows and by columns: they are not to lose that. */
static bool is_worth_it(const ax_rows_group *of, const extent *e, int64_t step, double parts) {
  if (of->count < 2 || step == 0 || e->largest < AX_ROWS_LEAST_SHARED || e->row > ax_caches_here()->kept) return false;
  if (!ax_rows_has_products(of)) return AX_HOSTILE || !calls_for_little(of, step);
  return parts >= least_parts || parts >= 0.5 * ax_parts_worth(time_of(of));
}

bool ax_rows_blocks_of(const ax_plan *plan, const uint32_t *reads, const uint32_t *writes, const ax_rows_group *of,
                       ax_rows_blocks *out) {
  const extent e = extent_of(of);
  bool local[AX_ROWS_USES];
  for (uint32_t i = 0; i < of->use_count; i++) local[i] = is_local(plan, reads, writes, of, &of->uses[i]);
  const int64_t step = ax_rows_has_products(of) ? rows_of_tiles(of, local, &e) : rows_at_a_time(of, &e);
  const double parts = parts_of(of, &e);
  if (!is_worth_it(of, &e, step, parts) || (has_far_factors(of) && !keeps_enough(of, local, step))) return false;
  out->step = step;
  out->parts = (uint32_t)parts;
  out->bytes = place_local(of, local, step, out->place);
  return true;
}
