/* The texts that `axle help` prints and searches, and looking up names in them. The build makes the texts from the sources. */
#ifndef AX_CLI_NAMES_H
#define AX_CLI_NAMES_H

#include "base/base.h"

/* --- Made by cmake/specs.awk: the comments over the primitives' rules --- */
typedef struct named_spec {
  const char *name;
  unsigned text; /* of spec_texts */
} named_spec;
extern const char *const spec_texts[];
extern const named_spec specs[];
extern const unsigned spec_count;

/* --- Made by cmake/reference.awk: the contracts in the public headers --- */
typedef struct contract {
  const char *header, *calls, *code, *forms, *comment; /* forms: in C++. Texts of whole lines, or "" */
} contract;
typedef struct public_name {
  const char *name;
  unsigned contract; /* of contracts */
} public_name;
extern const contract contracts[];
extern const public_name public_names[];
extern const unsigned contract_count, public_count;

/* --- Made by cmake/search.awk: passages of pages, and what others call what --- */
typedef struct passage {
  const char *page;
  unsigned line;
  bool heading;
  const char *text;
} passage;
typedef struct known_row {
  const char *page;
  unsigned line;
  const char *theirs, *ours;
} known_row;
typedef struct known_word {
  const char *word, *names; /* "ax_psum, ax_pmax", or "" */
  unsigned row;             /* of known_rows */
} known_word;
extern const passage passages[];
extern const known_row known_rows[];
extern const known_word known_words[];
extern const unsigned passage_count, known_count;

/* --- names.c --- */
const char *find_spec(const char *name); /* NULL: no primitive */
/* Returns the index in public_names of the name behind `prefix`, upper and lower case being the same if `any_case`; else -1. */
int64_t find_public(const char *prefix, const char *name, bool any_case);
/* Returns the index of a word in known_words, from `from` on; -1: it is not there. jnp.sum and jax.numpy.sum are the same word; if
   `bare`, so is the sum of any other module. */
int64_t find_known(const char *word, bool bare, int64_t from);
/* The name behind the last dot. */
const char *bare_name(const char *word);
/* Says whether two words have the same letters and digits, case apart: "all-reduce" and "AllReduce". A word without any equals no
   word. */
bool same_word(const char *a, const char *b);
/* The line that shows the name best: its call in C, else its declaration. */
const char *name_line(int64_t index, int *length);
/* Adds "; the nearest: "ax_a", "ax_b"": names with the parts of the word, then those that are spelled most like it. */
void add_nearest(ax_text *text, const char *word);

/* --- search.c --- */
int search_main(const char *text);

#endif
