/* Elements that are moved between two orders in memory. */
#ifndef AX_BASE_STRIDED_H
#define AX_BASE_STRIDED_H

#include <stddef.h>
#include <stdint.h>

enum { AX_STRIDED_RANK = 16 }; /* dimensions at most */

/* Where an array lies: its first element, and how many bytes lie between neighbours along each dimension. */
typedef struct ax_strided_place {
  char *first;
  const int64_t *strides;
} ax_strided_place;

/* Copies each element of an array of these dimensions, of `bytes` each, from one place to the other. They do not overlap. */
void ax_strided_move(uint32_t rank, const int64_t *dims, size_t bytes, ax_strided_place to, ax_strided_place from);

#endif
