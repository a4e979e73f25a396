/* Pieces of arrays that go from one process to another, packed into messages.

   Both processes know the order of the pieces. They lie one after the other in messages of at most AX_PACKET_BYTES; a larger piece has
   a message of its own. Messages may be taken in any order, since each says which piece is its first:

     pieces     0 1 2 3   4 5   6 (large)   7 8
     words[0]   0         4     6           7 */
#ifndef AX_ARRAY_PACKETS_H
#define AX_ARRAY_PACKETS_H

#include "processes/together.h"

enum { AX_PACKET_BYTES = 1 << 20 };

/* The message to one process that is being filled. Zero-initialise to start. */
typedef struct ax_packet {
  char *data;
  size_t bytes, room;
  uint64_t first, count; /* of its pieces */
} ax_packet;

/* Gives room for the next piece, which the caller fills. What is full is sent first. As ax_together_send. */
AX_MUST_USE ax_status ax_packet_add(ax_packet *packet, ax_together *together, uint32_t to, size_t bytes, void **piece);
/* Sends what has not been sent. */
AX_MUST_USE ax_status ax_packet_send(ax_packet *packet, ax_together *together, uint32_t to);
void ax_packet_deinit(ax_packet *packet); /* what has not been sent is lost */

#endif
