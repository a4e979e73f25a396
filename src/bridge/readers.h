/* Readers of StableHLO operations that are no primitives: functions made of primitives, and operations of the module's own. */
#ifndef AX_BRIDGE_READERS_H
#define AX_BRIDGE_READERS_H

#include "hlo/read.h"

extern const ax_hlo_reader ax_hlo_window_readers[]; /* readers_windows.c */
/* Each list ends in an entry without a name. */
extern const ax_hlo_reader *const ax_hlo_reader_lists[];
extern const uint32_t ax_hlo_reader_list_count;

#endif
