/* BLAKE2b with results of 32 bytes (RFC 7693). For tables that compare digests alone: two different texts with the same digest
   cannot be found in practice. For tables in memory ax_hash_bytes is cheaper. */
#ifndef AX_BASE_DIGEST_H
#define AX_BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

typedef struct ax_digest {
  unsigned char bytes[32];
} ax_digest;

/* The state of an unfinished digest. */
typedef struct ax_digester {
  uint64_t state[8], count; /* bytes that are in the state */
  unsigned char block[128];
  size_t filled; /* bytes in `block`; a full block waits until more bytes come, because the last one is mixed in differently */
} ax_digester;

void ax_digester_init(ax_digester *digester);
void ax_digester_add(ax_digester *digester, const void *data, size_t bytes);
ax_digest ax_digester_finish(ax_digester *digester);

#endif
