/* Heads of messages that one process sends another, in order: each goes as what differs from the one before, so that most of a head,
   which says what both do, is not sent again. A short message then fits into one line of a cache with its head.

     | count, which differ | word 6 | word 14 | ..        words of 32 bits; `count` of them are the head's

   Whoever reads a code twice gets the same head. */
#ifndef AX_PROCESSES_HEADS_H
#define AX_PROCESSES_HEADS_H

#include <stddef.h>
#include <stdint.h>

enum { AX_HEAD_WORDS = 27, AX_HEAD_BYTES = AX_HEAD_WORDS * 4, AX_HEAD_CODE = 4 + AX_HEAD_BYTES }; /* bytes of the longest */

typedef struct ax_head { /* the last one; zero to start, on both sides */
  _Alignas(8) uint32_t words[AX_HEAD_WORDS];
} ax_head;

/* bytes: of a head, a multiple of 4, at most AX_HEAD_BYTES. Returns the bytes of its code. `last` stays: ax_head_keep follows once the
   message is sent. */
size_t ax_head_write(const ax_head *last, const void *head, size_t bytes, uint32_t code[AX_HEAD_CODE / 4]);
void ax_head_keep(ax_head *last, const void *head, size_t bytes);
/* `last` becomes the head that the code says. *bytes: the head's. Returns the bytes of the code. */
size_t ax_head_read(ax_head *last, const void *code, size_t *bytes);

#endif
