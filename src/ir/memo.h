/* Answers to questions about programs, kept as long as one transform or lowering lasts. So a body used in several places is
   analysed or transformed once, and a question asked at every level of a nest costs time once. A question is its name, a program,
   and a key: bytes with the rest of it, such as which operands.

   The outermost transform owns the memo. Builders begun inside it inherit the pointer (ax_builder.memo), so that rules of regions
   find it when they ask for transforms of their bodies. */
#ifndef AX_IR_MEMO_H
#define AX_IR_MEMO_H

#include "ir/program.h"

typedef struct ax_memo_entry {
  const char *question;
  ax_program *program; /* retained, so that no other program gets its address */
  const void *key;
  size_t key_bytes;
  uint64_t hash;
  bool known; /* the fields below hold the answer; set by the caller that fills them in */
  ax_program *made[2]; /* owned by the entry */
  void *data;          /* in the memo's arena */
  uint32_t count;
} ax_memo_entry;

typedef struct ax_memo { /* zero to start */
  ax_arena arena;
  ax_memo_entry **table; /* open addressing, at most half full */
  size_t slots, count;
} ax_memo;

/* Finds the entry of a question, or makes one. Its address does not change. NULL: no memory. */
ax_memo_entry *ax_memo_ask(ax_memo *memo, const char *question, const ax_program *program, const void *key, size_t key_bytes);
/* The entry of the first program asked for that is equal to this one and from the same places, which is its made[0]. Equal
   programs from more than 16 places are told apart. NULL: no memory. */
ax_memo_entry *ax_memo_ask_equal(ax_memo *memo, const char *question, const ax_program *program);
/* Frees all entries and releases their programs. */
void ax_memo_deinit(ax_memo *memo);

#endif
