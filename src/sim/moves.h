/* Where the messages of transfers go: for each message of a step and each image that sends it, the image that gets it, the links of
   its way and what it takes besides. That follows from the procedure and the place alone, so it is found once, however many steps
   and transfers do the same; tables are filled as messages come. */
#ifndef AX_SIM_MOVES_H
#define AX_SIM_MOVES_H

#include "sim/work.h"

typedef struct ax_sim_message {
  uint32_t image; /* that it goes to; to a switch: the first of those that are there */
  uint32_t hop_first, hop_count;   /* to a switch: of all that are there, and weights are bytes */
  uint32_t there_first, there_count; /* to a switch: the images of all that are there; otherwise none */
  bool known;
  double overhead, latency; /* ticks */
} ax_sim_message;

typedef struct ax_sim_turn { /* of an image, in a phase */
  bool known;
  uint32_t sends, receives; /* messages in a step */
  uint32_t next;            /* phase of the chain in which it does either, as far as that is kept; or their number */
} ax_sim_turn;

/* Of transfers that do the same. The phases of all chains are numbered one after the other. */
typedef struct ax_sim_course_moves {
  uint32_t first[AX_MAX_CHAINS], phases; /* first: by chain, the number of its first phase */
  ax_sim_turn *turns;         /* by image and phase; NULL: too many */
  ax_sim_message **messages;  /* NULL: none has begun. By phase: by message, counted over the steps where they differ, and image; NULL: not used, or too many */
} ax_sim_course_moves;

typedef struct ax_sim_moves {
  const ax_sim_work *work;
  const ax_sim_place *place;
  double tick; /* seconds */
  uint32_t images;
  uint32_t *like;               /* by transfer: the first that does the same */
  ax_sim_course_moves *courses; /* by such a transfer */
  double kept;                  /* messages and turns in tables */
  ax_sim_turn turn;             /* that is in no table */
  ax_sim_message last;          /* that is in no table */
  ax_sim_hop *hops;             /* those of `last` stand behind all others */
  uint32_t hop_count, hop_capacity;
  uint32_t *there;              /* those of `last` stand behind all others */
  uint32_t there_count, there_capacity;
  ax_sim_route route;
} ax_sim_moves;

/* All borrowed. *out is to be deinited, whatever is returned. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_moves_make(const ax_sim_work *work, const ax_sim_place *place, uint32_t images, double tick,
                                        ax_sim_moves *out);
void ax_sim_moves_deinit(ax_sim_moves *moves);

/* A phase of a transfer, on an image. */
typedef struct ax_sim_at {
  uint32_t transfer, chain, phase, image;
} ax_sim_at;
/* *out: until the next call. */
AX_MUST_USE ax_status ax_sim_moves_turn(ax_sim_moves *moves, const ax_sim_at *at, const ax_sim_turn **out);
/* Number `k` of step `step`, of a phase that ax_sim_moves_turn was asked of. *out: until the next call. */
AX_MUST_USE ax_status ax_sim_moves_message(ax_sim_moves *moves, const ax_sim_at *at, int64_t step, int64_t k,
                                           const ax_sim_message **out);

#endif
