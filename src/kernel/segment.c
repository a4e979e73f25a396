#include "kernel/segment.h"
size_t ax_segments_bytes(const ax_image_body *body) { (void)body; return 0; }
void ax_segments_release(ax_image_body *body) { (void)body; }
