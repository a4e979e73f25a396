/* Trials that are known, and parts of the search that go on ahead of it.

   The search asks for one trial after the other, and which it asks for often depends on what came of those before. So other
   threads do parts of it before it comes to them, as they can be foreseen: ways of a second axis, meshes, candidates to be
   improved. Such a job works on a candidate of its own and on a *view*, a copy of the planner that has found nothing. Its trials
   are noted for all; what else comes of it is dropped. The search itself does the part again, and finds most of its trials made.
   What it finds does not depend on how many threads there are, nor on their pace.

     search    way 1 ..........  way 2, known .  mesh 1 .........
     ahead     way 2 ..........  way 3 ......... mesh 2 ......... */
#ifndef AX_PLANNER_AHEAD_H
#define AX_PLANNER_AHEAD_H

#include "planner/search.h"

/* A part of the search, on a view; what it returns is dropped. */
typedef ax_status (*ax_ahead_work)(ax_planner *view, ax_candidate *candidate, int number);

/* No thread is begun before the first offer. */
AX_MUST_USE ax_status ax_ahead_create(ax_ahead **out);
/* Ends the threads; jobs under way end early. NULL: nothing. */
void ax_ahead_destroy(ax_ahead *ahead);

/* Offers a job, with a copy of the candidate (NULL: the job needs none). Jobs begin in the order of offers. Where there are no
   threads, or no memory, and from a view, nothing is offered. */
void ax_ahead_offer(ax_planner *planner, ax_ahead_work work, const ax_candidate *candidate, int number);
/* Says whether some thread has nothing to do, and no job waits. */
bool ax_ahead_is_idle(const ax_planner *planner);
/* Drops the jobs that wait; those under way end early. The search begins a part for which they are of no use. */
void ax_ahead_forget(ax_planner *planner);
/* Says whether what a view's job does is still wanted. */
bool ax_ahead_is_wanted(const ax_planner *view);
/* Seconds that a trial of now may take, by those that were made; 0: none was. */
double ax_ahead_longest(const ax_planner *planner);
void ax_ahead_note_longest(ax_planner *planner, double seconds);
/* Seconds of the best that the search has kept since it last forgot jobs; INFINITY: nothing that fits. */
double ax_ahead_best(const ax_planner *view);
void ax_ahead_note_best(ax_planner *planner, double seconds);

/* The trial of that hash. False: no thread has made it; the caller does, and says what came of it by ax_ahead_note. While another
   thread makes it, the search does a job that waits, and a view waits. If it is the search that makes it, the search has come to
   what the view's job does: the view is given a trial that did not succeed, and its job ends early. */
bool ax_ahead_ask(ax_planner *planner, uint64_t hash, ax_trial *out);
/* trial: NULL: it failed, and may be asked for again. */
void ax_ahead_answer(ax_planner *planner, uint64_t hash, const ax_trial *trial);
/* The same of a trial that ended so: its result, or that it does not succeed. A failure of our own says nothing of the trial, nor does one of a
   view that got no memory: there may be enough when the search tries it. */
void ax_ahead_note(ax_planner *planner, uint64_t hash, ax_status status, const ax_trial *trial);

/* The step with so many microbatches and such checkpoints, made once. Borrowed; it lives as long as `ahead`. */
AX_MUST_USE ax_status ax_ahead_step(ax_planner *planner, int64_t microbatches, ax_checkpoint_policy saved, ax_program **out);

#endif
