/* The beginning of a transport by MPI, and the memory that it leaves.

   The calls of MPI here wait for all processes, so a process that fails must not leave out any. Each does a step whole; then all
   agree on whether it went well in all of them.

     open                       the communicator: what it takes is MPI's
     allocate, agree            all memory but that of the neighbours
     meet, agree                what the processes of a node tell each other */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "processes/moves.h"

static ax_status mpi_error(const ax_mpi_shim *shim, int code) {
  char text[AX_MPI_TEXT];
  shim->describe(code, text);
  return ax_error(AX_UNAVAILABLE, "MPI: %s", text);
}

int ax_mpi_agree(const ax_mpi_shim *shim, ax_mpi_communicator *communicator, const ax_mpi_place *place, ax_status *status) {
  ax_mpi_standing standing = {.status = (int)*status};
  if (place->size == 1) return 0;
  if (*status != AX_OK) snprintf(standing.text, sizeof standing.text, "%s", ax_message());
  const int code = shim->agree(communicator, &standing);
  if (code != 0) *status = mpi_error(shim, code);
  else if (standing.status != 0) *status = ax_error((ax_status)standing.status, "process %u: %s", standing.process, standing.text);
  return code;
}

/* --- Memory --- */

static void free_list(ax_mpi_message *list) {
  for (ax_mpi_message *next; list != NULL; list = next) {
    next = list->next;
    ax_free(list);
  }
}

/* Messages that MPI may still read, to a process that is gone, are left as they are. */
void ax_mpi_free(ax_mpi *m) {
  if (m == NULL) return;
  ax_deliveries_leave();
  free_list(m->first);
  free_list(m->pools[0]);
  free_list(m->pools[1]);
  ax_transfers_deinit(&m->outgoing);
  ax_transfers_deinit(&m->incoming);
  ax_copies_deinit(&m->copies);
  pthread_mutex_destroy(&m->tables);
  ax_free(m->ring);
  ax_free(m->requests);
  ax_free(m->owners);
  ax_free(m->results);
  ax_free((void *)m->peers);
  for (uint32_t p = 0; m->partial != NULL && p < m->place.size; p++) ax_delivery_free(m->partial[p].delivery);
  ax_free(m->partial);
  for (uint32_t p = 0; m->outboxes != NULL && p < m->place.size; p++) free_list(m->outboxes[p].first);
  ax_free(m->outboxes);
  ax_node_watch_destroy(m->watch);
  ax_node_destroy(m->node);
  ax_free(m);
}

/* By place on the node. */
typedef struct meeting {
  ax_node_watch_name *names;
  void **parts;
  ax_node_word *words;
  bool *all;
} meeting;

static ax_status allocate_meeting(meeting *t, uint32_t count) {
  t->names = ax_calloc(count, sizeof t->names[0]);
  t->parts = ax_calloc(count, sizeof t->parts[0]);
  t->words = ax_calloc(count, sizeof t->words[0]);
  t->all = ax_calloc(count, sizeof t->all[0]);
  const bool complete = t->names != NULL && t->parts != NULL && t->words != NULL && t->all != NULL;
  return complete ? AX_OK : ax_out_of_memory(count * (sizeof t->names[0] + sizeof t->words[0]));
}

static void free_meeting(meeting *t) {
  ax_free(t->names);
  ax_free(t->parts);
  ax_free(t->words);
  ax_free(t->all);
}

static ax_status allocate(const ax_mpi_shim *shim, const ax_mpi_place *place, ax_mpi **out) {
  ax_mpi *m = *out = ax_calloc(1, sizeof *m);
  if (m == NULL) return ax_out_of_memory(sizeof *m);
  ax_deliveries_use();
  pthread_mutex_init(&m->tables, NULL);
  ax_copies_init(&m->copies);
  m->shim = shim;
  m->place = *place;
  m->transport.process = place->rank;
  m->transport.processes = place->size;
  m->transport.beside = place->node_size;
  m->here = place->size - 1;
  m->suspect = AX_NONE;
  m->ring = ax_calloc(AX_MPI_RING, sizeof m->ring[0]);
  if (m->ring == NULL) return ax_out_of_memory(AX_MPI_RING * sizeof m->ring[0]);
  m->peers = ax_calloc(place->size, sizeof m->peers[0]);
  m->partial = ax_calloc(place->size, sizeof m->partial[0]);
  m->outboxes = ax_calloc(place->size, sizeof m->outboxes[0]);
  return m->peers != NULL && m->partial != NULL && m->outboxes != NULL ? AX_OK
                                                                        : ax_out_of_memory(place->size * sizeof m->outboxes[0]);
}

/* --- The processes of a node: each function is collective on it, and gives a code of MPI. *status: of this process --- */

static int gather(ax_mpi *m, const void *mine, size_t bytes, void *all, ax_status *status) {
  const int code = m->shim->gather_on_node(m->communicator, mine, bytes, all);
  if (code != 0) *status = mpi_error(m->shim, code);
  return code;
}

static int watch(ax_mpi *m, ax_node_watch_name *names, ax_status *status) {
  const ax_node_watch_name me = ax_node_watch_name_of_me(m->place.rank);
  const int code = gather(m, &me, sizeof me, names, status);
  if (code == 0) *status = ax_node_watch_create(names, m->place.node_size, m->place.rank, &m->watch);
  return code;
}

/* Whether all processes of this node read the memory of all others, and there is no other node. */
static int find_all_near(ax_mpi *m, bool *all, ax_status *status) {
  bool mine = m->node != NULL;
  for (uint32_t p = 0; p < m->place.size; p++) mine = mine && (!ax_node_has(m->node, p) || ax_node_reads(m->node, p));
  const int code = gather(m, &mine, sizeof mine, all, status);
  if (code != 0) return code;
  m->node_reads = true;
  for (uint32_t i = 0; i < m->place.node_size; i++) m->node_reads = m->node_reads && all[i];
  m->all_near = m->node_reads && m->place.node_size == m->place.size;
  if (m->node_reads) m->loans.slots = ax_node_loans(m->node, m->place.rank);
  return 0;
}

static bool memory_is_wanted(void) {
  const char *said = secure_getenv("AXLE_NODE_MEMORY");
  return said == NULL || strcmp(said, "0") != 0;
}

static int share(ax_mpi *m, meeting *t, ax_status *status) {
  const uint32_t count = m->place.node_size;
  const size_t bytes = memory_is_wanted() ? ax_node_part_bytes(count) : 0;
  const bool shares = m->shim->share(m->communicator, bytes, t->parts) == 0 && bytes > 0;
  if (shares) ax_node_part_clear(t->parts[m->place.node_rank], count);
  const ax_node_word mine = ax_node_word_of_me(m->place.rank, shares);
  const int code = gather(m, &mine, sizeof mine, t->words, status);
  if (code == 0 && *status == AX_OK) *status = ax_node_create(t->parts, t->words, count, m->place.rank, &m->node);
  return code != 0 ? code : find_all_near(m, t->all, status);
}

static int meet(ax_mpi *m, meeting *t, ax_status *status) {
  const uint32_t count = m->place.node_size;
  const int code = watch(m, t->names, status);
  return code != 0 || count < 2 || ax_node_part_bytes(count) == 0 ? code : share(m, t, status);
}

/* --- All --- */

/* A step that all processes have done. After an error of MPI nothing is agreed any more. */
static int agree_after(int code, const ax_mpi_shim *shim, ax_mpi_communicator *communicator, const ax_mpi_place *place,
                       ax_status *status) {
  return code != 0 ? code : ax_mpi_agree(shim, communicator, place, status);
}

ax_status ax_mpi_open(const ax_mpi_shim *shim, const void *communicator, ax_mpi **out) {
  ax_mpi_communicator *opened;
  ax_mpi_place place;
  meeting t = {0};
  *out = NULL;
  int code = shim->open(communicator, &opened, &place);
  if (code != 0) return mpi_error(shim, code);
  ax_status status = allocate(shim, &place, out);
  if (status == AX_OK) status = allocate_meeting(&t, place.node_size);
  code = agree_after(0, shim, opened, &place, &status);
  if (status == AX_OK) {
    (*out)->communicator = opened;
    code = meet(*out, &t, &status);
    code = agree_after(code, shim, opened, &place, &status);
  }
  free_meeting(&t);
  if (status == AX_OK) return AX_OK;
  if (code != 0) shim->abandon(opened);
  else shim->close(opened);
  ax_mpi_free(*out);
  *out = NULL;
  return status;
}
