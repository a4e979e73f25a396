/* The state of a simulation between two instants: engine.c advances it, and steady.c recognises repetitions. */
#ifndef AX_SIM_STATE_H
#define AX_SIM_STATE_H

#include <math.h>

#include "sim/early.h"
#include "sim/engine.h"
#include "sim/moves.h"
#include "sim/queue.h"

/* A chain on an image: a line of a cache, as there are millions and each event wants one. */
typedef struct ax_sim_agent {
  bool active;
  uint32_t phase, next, early; /* next: that phase with something to do; early: 1 + the first; 0: none */
  uint32_t cause;        /* the span that delayed its start */
  uint32_t there;        /* of the first image at a switch: how many of those at it have come to it */
  uint32_t sent, to_send, to_get; /* in a step */
  int64_t step, key;     /* of the phase; of its messages */
  int64_t got;           /* messages of this key */
} ax_sim_agent;
_Static_assert(sizeof(ax_sim_agent) <= 64, "a line");

/* A transfer on an image. */
typedef struct ax_sim_course {
  uint32_t left; /* chains; 0: it is not under way */
  uint32_t before; /* the image's last span when it began */
  int64_t runs;
  double start;
} ax_sim_course;

typedef struct ax_sim_course_table {
  ax_sim_course *courses; /* by image; NULL: it has not begun anywhere */
  ax_sim_agent *agents;   /* by chain and image */
  int64_t under_way;  /* images on which it is */
} ax_sim_course_table;

typedef struct ax_sim_walker {
  uint32_t step, depth, waits; /* waits: for a transfer; AX_NONE */
  uint32_t queue;              /* that it waits for a message of; AX_NONE */
  uint32_t last;               /* its last span */
  double now;                  /* what it has done ends then */
} ax_sim_walker;

typedef struct ax_sim_parcel {
  ax_sim_event_kind kind; /* of the event that it is when it arrives */
  uint32_t transfer, chain, image, cause;
  int64_t key;
  double bytes, latency;
  uint32_t hop_first, hop_count;
} ax_sim_parcel;

typedef struct ax_sim_engine {
  const ax_sim_work *work;
  const ax_sim_place *place;
  ax_sim_engine_result *result;
  double most, sent; /* limit of messages that are simulated one by one, and their number so far */
  double unrepeated; /* that limit as long as no round was repeated */
  double until;      /* seconds: where the run is given up; 0: nowhere */
  double tick;       /* seconds; all times are in ticks */
  double time;
  uint32_t images;
  bool repeats; /* rounds are looked for */
  bool disturbed; /* an event has happened that is not part of a round */
  ax_sim_queue queue;
  ax_sim_early_pool early; /* messages of steps that are still to come; of a queue, those that came the same way */
  ax_sim_parcel *batch; /* sent at this instant */
  ax_sim_hop *hops;      /* of the batch */
  uint32_t batch_count, batch_capacity, hop_count, hop_capacity;
  uint32_t touched_count;
  uint32_t under_way;  /* transfers that are, somewhere */
  double *free, *load; /* by link: when it is; bytes of this instant */
  uint32_t *touched;   /* links with a load */
  ax_sim_course_table *tables; /* by transfer */
  ax_sim_walker *walkers;      /* by image */
  int64_t *trips;          /* by image and depth: that are left */
  uint32_t *mail;          /* by queue and image: 1 + the first message that has come; 0: none */
  ax_sim_route route; /* of a single message */
  ax_sim_moves moves;
  uint32_t leader;         /* the first transfer whose first chain has begun a step on image 0 at this instant; AX_NONE */
  struct ax_sim_steady *steady;
} ax_sim_engine;

static inline ax_sim_agent *ax_sim_agent_at(const ax_sim_engine *e, uint32_t transfer, uint32_t chain, uint32_t image) {
  return &e->tables[transfer].agents[(size_t)chain * e->images + image];
}
static inline const ax_sim_phase *ax_sim_agent_phase(const ax_sim_engine *e, const ax_sim_agent *agent, uint32_t transfer,
                                                     uint32_t chain) {
  return &e->work->transfers[transfer].procedure.chains[chain].phases[agent->phase];
}

static inline double ax_ticks(const ax_sim_engine *e, double seconds) { return nearbyint(seconds / e->tick); }

/* --- steady.c --- */
struct ax_sim_steady *ax_sim_steady_create(void); /* NULL: no memory */
void ax_sim_steady_destroy(struct ax_sim_steady *steady);
/* If the leader's transfer repeats itself, does as many rounds at once as possible. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_sim_steady_look(ax_sim_engine *engine);

#endif
