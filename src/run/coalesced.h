/* Messages that carry what several members of an exchange push: short contributions of the members that a process has go to each
   other process together, and not each in a message of its own.

     member 0   push ------+
     member 1   push ------+
     member 2   push ------+----- 0, 1, 2 ----->  puts them, each when its time has come

   The last member to push completes the message, which is sent then. So a process may hold back a contribution for which another
   process waits, while the members that are missing wait for that process. Therefore a process sends all that it holds before it
   says that it is idle (ax_crossing_flush), and it is not idle as long as it holds any.

     payload      the contributions, in ascending order of members; then u32[n], their members
     envelope     as in crossing.c; member: that of the first contribution; words[2]: n

   The receiver counts the two on, so that they are those of the contributions that it has not put yet. All functions are called with
   the groups' lock held, but for those of what comes: their message belongs to the caller. */
#ifndef AX_RUN_COALESCED_H
#define AX_RUN_COALESCED_H

#include "run/contribution.h"

/* How the contributions of a group's members go to one process. */
typedef struct ax_coalesced_form {
  uint32_t most;  /* contributions of a message, at most; 0: each goes alone */
  uint32_t first; /* its first message, among those of a round to all processes */
  ax_elems range; /* of parts that are one row: the elements that it gets; else all of a part */
  size_t bytes;   /* of a contribution */
} ax_coalesced_form;

/* The messages of one group. */
typedef struct ax_coalesced {
  const ax_push *push;
  uint32_t group;
  const ax_party *own;      /* the members here */
  ax_coalesced_form *forms; /* by party of the group; borrowed */
  uint32_t messages;        /* of a round, to all processes; 0: all contributions go alone */
  uint32_t places;          /* for contributions in them */
  size_t room;              /* bytes of their payloads */
  struct ax_coalesced_round *rounds;
  struct ax_coalesced_round *spare; /* one that is over, for the next; NULL: none */
} ax_coalesced;

/* Chooses how contributions of `bytes` bytes go to the i-th party. Once for each, in their order. */
void ax_coalesced_choose(const ax_remote *remote, ax_coalesced *group, uint32_t i, ax_elems range, size_t bytes);
/* Forgets what has not been sent. */
void ax_coalesced_empty(ax_coalesced *group);

/* Adds what a member of this process has for the i-th party, whose form must not be to go alone; sends the message if this is the
   last contribution that it lacks. src: the operand. AX_OUT_OF_MEMORY; AX_UNAVAILABLE. */
AX_MUST_USE ax_status ax_coalesced_add(ax_remote *remote, ax_coalesced *group, uint32_t i, uint32_t member, uint64_t round,
                                       const char *src);
/* Sends all that the group holds. Errors as above. */
AX_MUST_USE ax_status ax_coalesced_flush(ax_remote *remote, ax_coalesced *group);

/* --- What comes --- */

static inline bool ax_is_coalesced(const ax_delivery *delivery) { return delivery->envelope.words[2] > 0; }
/* Whether it is as a process sends it: contributions of `bytes` bytes, of members in ascending order. */
bool ax_coalesced_is_right(const ax_delivery *delivery, size_t bytes, uint32_t members);
/* Of the i-th contribution that has not been put yet: its member, and where it is. */
uint32_t ax_coalesced_member(const ax_delivery *delivery, size_t bytes, uint32_t i);
const char *ax_coalesced_at(const ax_delivery *delivery, size_t bytes, uint32_t i);
/* The first `count` of them have been put. Returns false if none is left. */
bool ax_coalesced_advance(ax_delivery *delivery, size_t bytes, uint32_t count);

#endif
