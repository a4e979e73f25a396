/* The ways in which what members of an exchange push gets to the other processes, as data: which there are, which one is taken, and
   what each takes. Estimates of costs (partition/between.c) and simulated time (sim/procedure.c) read it; runs do the same
   (run/crossing.c).

     gather   each process sends the contributions of its own members to every process that has others of the group. There they are
              put, or added in the order of members. Once for each process, however many members it has. Short contributions of
              several members go in one message:

                process 0: members 0, 1  ----0, 1---->  process 1: members 2, 3
                                         <---2, 3-----

     shares   sums only: each process adds a share of the elements, of all members in their order, and gives its total to the other
              processes. So a process gets a share of each member elsewhere, and the total of each other process:

                process 0: members 0, 1  --second half of 0, of 1-->  process 1: members 2, 3
                                         <--first half of 2, of 3---
                adds the first half      --------- total ---------->  takes it
                takes it                 <-------- total -----------  adds the second half

     chain    sums only, block by block: each process adds its members to what the process before has added, and passes the block on.
              The last has the sum, which goes back the same way. Blocks follow one another, so that each link carries the data once,
              and once back:

                0, 1  --0+1-->  2, 3  --0+1+2+3-->  4, 5  adds; and back:  4, 5  -->  2, 3  -->  0, 1

              It keeps the order of additions only if the members of each process follow one another.

   The way must be the same in all processes: it follows from the exchange, the mesh and these tables alone, and never from speeds that
   are measured. */
#ifndef AX_PROCESSES_WAYS_H
#define AX_PROCESSES_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/rates.h"
#include "processes/transport.h"

typedef enum ax_way { AX_WAY_GATHER, AX_WAY_SHARES, AX_WAY_CHAIN, AX_WAY_COUNT } ax_way;

typedef struct ax_way_record {
  const char *name;
  bool sums;     /* it does nothing but sums whose result all members get, over several processes */
  bool in_order; /* it needs members of each process that follow one another */
  bool once;     /* it needs members of which each is in one process */
  bool runs;     /* runs go that way; false: it is only estimated and simulated */
} ax_way_record;
extern const ax_way_record ax_ways[AX_WAY_COUNT];

/* Bytes of an operand from which on runs split a sum into shares (run/crossing.c): of less, bytes and additions cost less than the
   messages that totals are. */
enum { AX_SHARES_LEAST = 64 << 10 };
/* Bytes of a block of a chain: so long that its bytes take as long as its handshake, and many fit into a second cache. */
enum { AX_CHAIN_BLOCK = 64 << 10 };

/* Most bytes of a contribution that goes together with those of other members of its process (run/coalesced.h): to copy a longer one
   once more costs about as much as its message. */
enum { AX_COALESCED_LONGEST = 2 << 10 };
/* How many such contributions a message has at most, each with the number of its member; 0: they are longer. */
static inline uint32_t ax_coalesced_most(uint64_t bytes) {
  return bytes <= AX_COALESCED_LONGEST ? (uint32_t)(AX_SHORT_PAYLOAD / (bytes + sizeof(uint32_t))) : 0;
}

/* What the choice follows from. */
typedef struct ax_way_case {
  bool sum;           /* its result is the same for all members: no psum_scatter */
  bool in_order;      /* the members of each process follow one another */
  bool once;          /* each member is in one process */
  uint64_t bytes;     /* of a member's operand */
  uint32_t processes; /* that have members of a group */
  uint32_t members;   /* the most that one of them has */
} ax_way_case;
/* A row of the table: the first that a case fits decides. */
typedef struct ax_way_row {
  ax_way way;
  uint32_t processes, members; /* at least */
  uint64_t bytes;              /* at least */
} ax_way_row;
extern const ax_way_row ax_way_rows[];
extern const uint32_t ax_way_row_count;

/* Whether a way does such a case at all. */
bool ax_way_can(ax_way way, const ax_way_case *of);
/* all: also ways that runs do not go. */
ax_way ax_way_choose(const ax_way_case *of, bool all);

/* Seconds in which a process with so many members gets its shares, and the totals of the others, one after the other. */
double ax_shares_seconds(const ax_link_rates *link, uint32_t processes, uint32_t members, double bytes);
/* Seconds of a chain through processes of which so many follow one on their own host, and so many one on another host. */
double ax_chain_seconds(const ax_rates *rates, uint32_t on_host, uint32_t between_hosts, double bytes);
/* The bytes, of those that are long, from which on a chain through processes with so many members each is faster than what runs do:
   they gather, and from AX_SHARES_LEAST on they split; UINT64_MAX: it never is. For ax_way_rows, and for what measures
   (cli/messages.c). */
uint64_t ax_chain_pays(const ax_link_rates *link, uint32_t processes, uint32_t members);

#endif
