#include "processes/node.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

#include "processes/heads.h"
#include "processes/message_ring.h"
#include "processes/together.h"

/* Of more than most_processes, the memory for all pairs would be too much: 150 MiB for 64, of which only what is used is taken. */
enum { most_processes = 64, few_processes = 16, large_ring = 64 << 10, small_ring = 36 << 10 };
_Static_assert(AX_NODE_LONGEST <= small_ring / 2 - 192, "the longest message fits into a ring");

static uint32_t capacity_of(uint32_t count) { return count <= few_processes ? large_ring : small_ring; }

typedef struct queued { /* a message that found no room */
  struct queued *next;
  ax_ring_message message;
  char data[];
} queued;

typedef struct neighbour {
  atomic_bool held; /* by a thread; guards the following fields */
  ax_message_ring out;
  ax_head sent; /* of the last message */
  queued *first, *last;
  bool gone;

  ax_message_ring in; /* of the thread that polls */
  ax_head got;        /* likewise */
  ax_node_watch_name name;
  bool reads; /* its memory can be read */
  ax_shared_view view;
  ax_loan_slot *loans;
} neighbour;

struct ax_node {
  atomic_bool closed;
  _Atomic uint32_t waiting; /* messages in queues */
  uint32_t count, me;       /* me: this process's place among them */
  uint32_t processes;
  uint32_t *place;          /* by process, up to the greatest: its place; AX_NONE */
  neighbour neighbours[];
};

/* It is held while a message is written, and few threads send to one process at a time. A mutex would take a second locked instruction to
   let it go, just after the message, which is a line that another processor has. */
static void lock_queue(neighbour *n) {
  for (uint32_t round = AX_AT_ONCE; atomic_exchange_explicit(&n->held, true, memory_order_acquire); round++) ax_together_pause(round);
}
static void unlock_queue(neighbour *n) { atomic_store_explicit(&n->held, false, memory_order_release); }

/* --- Shared memory --- */

enum { line = _Alignof(ax_loan_slot), loans_bytes = AX_LOAN_SLOTS * sizeof(ax_loan_slot) };

size_t ax_node_part_bytes(uint32_t count) {
  return count <= most_processes ? line + loans_bytes + count * ax_message_ring_bytes(capacity_of(count)) : 0;
}

/* The slots of loans, and then the rings, from the first line of a cache in a part on. MPI gives memory at multiples of 8 bytes. All
   processes find the same line, since their views of a part differ by whole pages. */
static ax_loan_slot *loans_in(void *part) {
  return (ax_loan_slot *)(void *)((char *)part + (line - (uintptr_t)part % line) % line);
}

/* The ring that a process at some place writes in a part. */
static char *ring_in(void *part, uint32_t writer, uint32_t count) {
  return (char *)loans_in(part) + loans_bytes + writer * ax_message_ring_bytes(capacity_of(count));
}

void ax_node_part_clear(void *part, uint32_t count) {
  ax_loan_slots_clear(loans_in(part));
  for (uint32_t i = 0; i < count; i++) ax_message_ring_clear(ring_in(part, i, count));
}

/* --- Reading memory --- */

static uint64_t probed; /* what others read to see that they can */

/* Where a security module lets only ancestors read the memory of a process, this one allows it to the others of its user. */
static void allow_readers(void) {
#ifdef PR_SET_PTRACER
  (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
}

ax_node_word ax_node_word_of_me(uint32_t process, bool shares) {
  static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
  struct timespec now = {0};
  allow_readers();
  clock_gettime(CLOCK_REALTIME, &now);
  const ax_node_watch_name name = ax_node_watch_name_of_me(process);
  pthread_mutex_lock(&once);
  if (probed == 0) probed = ((uint64_t)now.tv_nsec << 32 | (uint32_t)name.pid) ^ (uint64_t)now.tv_sec;
  pthread_mutex_unlock(&once);
  return (ax_node_word){.name = name, .shares = shares, .address = (uint64_t)(uintptr_t)&probed, .value = probed,
                        .memory = shares ? ax_shared_memory_begin() : (ax_shared_memory_name){0}};
}

/* *there: the memory was there. */
static ax_status read_memory(const ax_node_watch_name *name, uint64_t address, void *into, size_t bytes, bool *there) {
  *there = true;
  for (size_t done = 0; done < bytes;) {
    const struct iovec mine = {(char *)into + done, bytes - done}, other = {(void *)(uintptr_t)(address + done), bytes - done};
    const ssize_t got = process_vm_readv(name->pid, &mine, 1, &other, 1, 0);
    if (got < 0 && errno == ESRCH) return ax_error(AX_UNAVAILABLE, "process %u is gone: it has ended", name->process);
    if (got < 0 && errno != EFAULT)
      return ax_error(AX_UNAVAILABLE, "the memory of process %u cannot be read: %s", name->process, strerror(errno));
    *there = got > 0;
    if (got <= 0) return AX_OK;
    done += (size_t)got;
  }
  return AX_OK;
}

static bool can_be_read(const ax_node_word *word, uint64_t space) {
  uint64_t value = 0;
  bool there;
  if (word->name.space != space || space == 0) return false;
  return read_memory(&word->name, word->address, &value, sizeof value, &there) == AX_OK && there && value == word->value;
}

/* --- The object --- */

static bool all_share(const ax_node_word *words, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (words[i].shares == 0) return false;
  return count > 1;
}

static void meet(ax_node *node, uint32_t i, void *const *parts, const ax_node_word *word) {
  neighbour *n = &node->neighbours[i];
  n->name = word->name;
  n->loans = loans_in(parts[i]);
  node->place[word->name.process] = i;
  if (i == node->me) return;
  n->out = ax_message_ring_of(ring_in(parts[i], node->me, node->count), capacity_of(node->count));
  n->in = ax_message_ring_of(ring_in(parts[node->me], i, node->count), capacity_of(node->count));
}

ax_status ax_node_create(void *const *parts, const ax_node_word *words, uint32_t count, uint32_t process, ax_node **out) {
  uint32_t processes = 0;
  *out = NULL;
  if (!all_share(words, count)) return AX_OK;
  for (uint32_t i = 0; i < count; i++)
    if (words[i].name.process >= processes) processes = words[i].name.process + 1;
  const size_t bytes = sizeof(ax_node) + count * sizeof(neighbour) + processes * sizeof(uint32_t);
  ax_node *node = ax_calloc(1, bytes);
  if (node == NULL) return ax_out_of_memory(bytes);
  node->count = count;
  node->processes = processes;
  node->place = (uint32_t *)&node->neighbours[count];
  memset(node->place, 0xff, processes * sizeof node->place[0]);
  for (uint32_t i = 0; i < count; i++)
    if (words[i].name.process == process) node->me = i;
  for (uint32_t i = 0; i < count; i++) meet(node, i, parts, &words[i]);
  for (uint32_t i = 0; i < count; i++) {
    if (i == node->me || !can_be_read(&words[i], words[node->me].name.space)) continue;
    node->neighbours[i].reads = true;
    node->neighbours[i].view = ax_shared_view_open(&words[i].memory);
  }
  *out = node;
  return AX_OK;
}

static void drop_queue(ax_node *node, neighbour *n) {
  for (queued *next; n->first != NULL; n->first = next) {
    next = n->first->next;
    ax_free(n->first);
    atomic_fetch_sub(&node->waiting, 1);
  }
}

void ax_node_destroy(ax_node *node) {
  if (node == NULL) return;
  for (uint32_t i = 0; i < node->count; i++) {
    drop_queue(node, &node->neighbours[i]);
    ax_shared_view_close(&node->neighbours[i].view);
  }
  ax_free(node);
}

bool ax_node_has(const ax_node *node, uint32_t process) {
  return node != NULL && process < node->processes && node->place[process] != AX_NONE && node->place[process] != node->me;
}

static neighbour *find(const ax_node *node, uint32_t process) { return (neighbour *)&node->neighbours[node->place[process]]; }

ax_loan_slot *ax_node_loans(const ax_node *node, uint32_t process) { return find(node, process)->loans; }

bool ax_node_reads(const ax_node *node, uint32_t process) { return ax_node_has(node, process) && find(node, process)->reads; }

const void *ax_node_see(const ax_node *node, uint32_t process, uint64_t address, size_t bytes) {
  return ax_shared_view_at(&find(node, process)->view, address, bytes);
}

ax_status ax_node_read(const ax_node *node, uint32_t process, uint64_t address, void *into, size_t bytes, bool *there) {
  const void *seen = ax_node_see(node, process, address, bytes);
  *there = true;
  if (seen != NULL) {
    memcpy(into, seen, bytes);
    return AX_OK;
  }
  return read_memory(&find(node, process)->name, address, into, bytes, there);
}

/* --- Messages --- */

static ax_status enqueue(ax_node *node, neighbour *n, const ax_ring_message *m) {
  const size_t bytes = sizeof(queued) + m->head_bytes + m->body_bytes;
  queued *one = ax_alloc(bytes);
  if (one == NULL) return ax_out_of_memory(bytes);
  *one = (queued){.message = {one->data, one->data + m->head_bytes, m->head_bytes, m->body_bytes}};
  memcpy(one->data, m->head, m->head_bytes);
  if (m->body_bytes > 0) memcpy(one->data + m->head_bytes, m->body, m->body_bytes);
  if (n->first == NULL) n->first = one;
  else n->last->next = one;
  n->last = one;
  atomic_fetch_add(&node->waiting, 1);
  return AX_OK;
}

ax_status ax_node_send(ax_node *node, uint32_t to, const void *head, size_t head_bytes, const void *body, size_t body_bytes) {
  neighbour *n = find(node, to);
  ax_status status = AX_OK;
  uint32_t code[AX_HEAD_CODE / 4];
  assert(AX_HEAD_CODE + body_bytes <= AX_NODE_LONGEST);
  lock_queue(n);
  const ax_ring_message m = {code, body, (uint32_t)ax_head_write(&n->sent, head, head_bytes, code), (uint32_t)body_bytes};
  if (atomic_load_explicit(&node->closed, memory_order_relaxed)) status = ax_error(AX_UNAVAILABLE, "MPI has been finalized");
  else if (!n->gone && (n->first != NULL || !ax_message_ring_write(&n->out, &m))) status = enqueue(node, n, &m);
  if (status == AX_OK) ax_head_keep(&n->sent, head, head_bytes);
  unlock_queue(n);
  return status;
}

bool ax_node_is_sending(const ax_node *node) {
  return node != NULL && atomic_load_explicit(&node->waiting, memory_order_relaxed) > 0;
}

static void send_queued(ax_node *node, neighbour *n) {
  lock_queue(n);
  for (queued *one; (one = n->first) != NULL && ax_message_ring_write(&n->out, &one->message);) {
    n->first = one->next;
    ax_free(one);
    atomic_fetch_sub(&node->waiting, 1);
  }
  unlock_queue(n);
}

void ax_node_flush(ax_node *node) {
  for (uint32_t i = 0; i < node->count && ax_node_is_sending(node); i++)
    if (i != node->me) send_queued(node, &node->neighbours[i]);
}

/* At most as many as may come in a round of all. To look for another one may take longer than all that was done for the first: its line is
   the one that the sender will write, and has. */
static ax_status receive(neighbour *n, ax_on_node_message *handle, void *context, bool *any) {
  enum { most_at_once = 64 };
  ax_ring_message m;
  for (uint32_t i = 0; i < most_at_once && ax_message_ring_peek(&n->in, &m); i++) {
    ax_node_message message = {.head = n->got.words, .body = m.body, .body_bytes = m.body_bytes};
    (void)ax_head_read(&n->got, m.head, &message.head_bytes);
    AX_TRY(handle(context, n->name.process, &message));
    ax_message_ring_next(&n->in, &m);
    *any = true;
    if (message.goes_on) break;
  }
  return AX_OK;
}

static bool has_come(const ax_node *node) {
  for (uint32_t i = 0; i < node->count; i++)
    if (i != node->me && ax_message_ring_has_come(&node->neighbours[i].in)) return true;
  return false;
}

/* A look takes a tenth of a whole poll, and whoever polls mostly waits: so a message is found sooner. */
static bool comes_soon(const ax_node *node) {
  enum { most_looks = 32 };
  for (uint32_t looks = 0; looks < most_looks; looks += node->count)
    if (has_come(node)) return true;
  return false;
}

ax_status ax_node_poll(ax_node *node, ax_on_node_message *handle, void *context, bool *any) {
  ax_status first = AX_OK;
  const bool comes = comes_soon(node);
  for (uint32_t i = 0; comes && i < node->count; i++) {
    if (i == node->me) continue;
    ax_status status = receive(&node->neighbours[i], handle, context, any);
    if (first == AX_OK) first = status;
  }
  ax_node_flush(node); /* behind that: whoever has sent its last message has made room for ours, and does not look again */
  return first;
}

void ax_node_lose(ax_node *node, uint32_t process) {
  neighbour *n = find(node, process);
  lock_queue(n);
  n->gone = true;
  drop_queue(node, n);
  unlock_queue(n);
}

void ax_node_close(ax_node *node) {
  atomic_store(&node->closed, true);
  for (uint32_t i = 0; i < node->count; i++) { /* a thread that is writing has the lock */
    lock_queue(&node->neighbours[i]);
    drop_queue(node, &node->neighbours[i]);
    unlock_queue(&node->neighbours[i]);
  }
}
