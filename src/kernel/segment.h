/* Segments: what a core computes between two acts that others notice, as one compiled program that runs on the kernel's memory. */
#ifndef AX_KERNEL_SEGMENT_H
#define AX_KERNEL_SEGMENT_H

#include "kernel/image.h"

size_t ax_segments_bytes(const ax_image_body *body); /* of memory that each core needs for them */
void ax_segments_release(ax_image_body *body);

#endif
