/* The acts of one run, in all orders that do without reads of counts. */
#ifndef AX_CHECK_ORDERS_H
#define AX_CHECK_ORDERS_H

#include "check/prove.h"

/* The findings of all runs that were added. Zero-initialise to start. */
typedef struct ax_orders {
  ax_act_findings findings; /* `reordered`; the schedule is the run's own, up to where the later act is next */
  ax_race_list races;
  uint32_t kinds;
  bool undecided; /* too many orders, or orders whose data may differ */
} ax_orders;

/* Looks at a complete run that reads counts; changes the record. most_states: as of ax_explore_options. */
AX_MUST_USE ax_status ax_orders_add(ax_orders *orders, ax_act_record *run, uint64_t most_states);
void ax_orders_deinit(ax_orders *orders);

#endif
