/* Segments: the computation of a core between two acts that others notice, as one compiled program that runs on the kernel's
   memory. */
#ifndef AX_KERNEL_IMAGE_SEGMENT_H
#define AX_KERNEL_IMAGE_SEGMENT_H

#include "kernel/image/image.h"

struct ax_straight;
typedef struct ax_segment {
  struct ax_straight *straight;
  bool is_long; /* it takes so long that other threads should not wait for it */
  uint32_t in_count, out_count;
  uint32_t *in, *out; /* slots: values, and views that lie dense */
} ax_segment;

/* --- While operations are made (image.c) --- */

typedef struct ax_segments {
  ax_image *image;
  ax_image_body *body;
  struct ax_runtime *compile; /* NULL: no segments are made */
  uint32_t *uses;             /* by slot: number of steps' operands that are this slot */
  const ax_core_code_step **steps; /* deferred steps: they become a segment, or operations of their own */
  uint32_t count, capacity;
  ax_value *value;            /* by slot, while a segment is traced: its value, or the content of a view */
  bool *known;                /* by slot: while its ends are looked for */
} ax_segments;
AX_MUST_USE ax_status ax_segments_init(ax_segments *segments, ax_image *image, ax_image_body *body, struct ax_runtime *compile);
void ax_segments_deinit(ax_segments *segments);
/* Defers a step, with *taken set, or leaves it to become an operation now. Deferred steps that must come before it become
   operations first. */
AX_MUST_USE ax_status ax_segments_take(ax_segments *segments, const ax_core_code_step *step, bool *taken);
/* Makes operations of the deferred steps. */
AX_MUST_USE ax_status ax_segments_flush(ax_segments *segments);
/* The operation of a step, at the end of the body's. (image.c) */
AX_MUST_USE ax_status ax_image_add_step(ax_image *image, ax_image_body *body, const ax_core_code_step *step);

/* --- When a body is made --- */

size_t ax_segments_bytes(const ax_image_body *body); /* of memory that each core needs for them */
void ax_segments_release(ax_image_body *body);

#endif
