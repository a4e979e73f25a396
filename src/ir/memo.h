/* What has been found out about programs, or made of them, in the course of one transform or lowering: kept until it ends, so that
   a body that stands in several places is gone through once, and that a question asked at every level of a nest costs nothing the
   second time. A question is its name, a program, and bytes that say the rest (which operands, say).

   The outermost transform owns a memo; builders begun inside it inherit the pointer (ax_builder.memo), so that the rules of
   regions, which ask for transforms of their bodies, find it without being told. */
#ifndef AX_IR_MEMO_H
#define AX_IR_MEMO_H

#include "ir/program.h"

typedef struct ax_memo_entry {
  const char *question;
  ax_program *program; /* retained, so that no other takes its address */
  const void *key;
  size_t key_bytes;
  uint64_t hash;
  bool known; /* the answer follows; set by whoever gives it */
  ax_program *made[2]; /* owned by the entry */
  void *data;          /* in the memo's arena */
  uint32_t count;
} ax_memo_entry;

typedef struct ax_memo { /* zero to start */
  ax_arena arena;
  ax_memo_entry **table; /* open addressing, at most half full */
  size_t slots, count;
} ax_memo;

/* The entry of a question, made when there is none; NULL: no memory. It stays where it is. */
ax_memo_entry *ax_memo_ask(ax_memo *memo, const char *question, const ax_program *program, const void *key, size_t key_bytes);
/* Ends all entries; those that hold programs release them. */
void ax_memo_deinit(ax_memo *memo);

#endif
