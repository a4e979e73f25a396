/* Counts the calls of an object that are under way, so that the last of them can destroy an object whose last reference was
   released meanwhile. Each thread counts in a place of its own: threads that call one object at the same time write to different
   cache lines. */
#ifndef AX_RUN_CALLERS_H
#define AX_RUN_CALLERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { AX_CALLER_PLACES = 8 };

typedef struct ax_callers {
  struct {
    _Alignas(64) atomic_uint count; /* of calls; the top bit is set once the object has ended */
  } places[AX_CALLER_PLACES];
  atomic_uint left; /* calls that go on after the end */
} ax_callers;

void ax_callers_init(ax_callers *callers);
/* Begins a call, and gives the place to leave from, on any thread. The object is referenced, or a call of it goes on. */
uint32_t ax_callers_enter(ax_callers *callers);
/* True: the object has ended and this was its last call, so that the caller destroys it. */
bool ax_callers_leave(ax_callers *callers, uint32_t place);
/* Called once, when the last reference is released. True: no call goes on, so that the caller destroys the object. */
bool ax_callers_end(ax_callers *callers);

#endif
