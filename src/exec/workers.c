/* A team of threads. Between calls they spin for a moment, since the next step of a training loop comes soon, then sleep; so does
   the caller until the others are done. */
#include <string.h>

#include "exec/exec.h"

enum { spins = 20000 };

typedef struct ax_workers {
  uint32_t count; /* threads besides the caller's */
  pthread_t *threads;
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  _Atomic uint32_t generation; /* of the current call */
  uint32_t wanted, joined;
  _Atomic uint32_t running; /* written with the lock held */
  bool busy, stop;
  void (*work)(void *);
  void *context;
} ax_workers;

static uint32_t await_generation(ax_workers *workers, uint32_t seen) {
  for (uint32_t i = 0; i < spins; i++) {
    if (atomic_load_explicit(&workers->generation, memory_order_acquire) != seen) break;
    ax_relax();
  }
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->generation) == seen && !workers->stop) pthread_cond_wait(&workers->wake, &workers->lock);
  return atomic_load(&workers->generation);
}

static void *thread_main(void *argument) {
  ax_workers *workers = argument;
  uint32_t seen = 0;
  for (;;) {
    seen = await_generation(workers, seen); /* returns with the lock held */
    if (workers->stop) break;
    bool mine = workers->joined < workers->wanted;
    if (mine) {
      workers->joined++;
      atomic_fetch_add(&workers->running, 1);
    }
    void (*work)(void *) = workers->work;
    void *context = workers->context;
    pthread_mutex_unlock(&workers->lock);
    if (!mine) continue;
    work(context);
    pthread_mutex_lock(&workers->lock);
    if (atomic_fetch_sub(&workers->running, 1) == 1) pthread_cond_signal(&workers->done);
    pthread_mutex_unlock(&workers->lock);
  }
  pthread_mutex_unlock(&workers->lock);
  return NULL;
}

ax_status ax_workers_create(uint32_t count, struct ax_workers **out) {
  ax_workers *workers = *out = ax_calloc(1, sizeof *workers);
  if (workers == NULL) return ax_out_of_memory(sizeof *workers);
  pthread_mutex_init(&workers->lock, NULL);
  pthread_cond_init(&workers->wake, NULL);
  pthread_cond_init(&workers->done, NULL);
  workers->threads = ax_calloc(count, sizeof workers->threads[0]);
  if (workers->threads == NULL) {
    ax_workers_destroy(workers);
    *out = NULL;
    return ax_out_of_memory(count * sizeof workers->threads[0]);
  }
  while (workers->count + 1 < count) { /* fewer threads than asked for still do the work */
    if (pthread_create(&workers->threads[workers->count], NULL, thread_main, workers) != 0) break;
    workers->count++;
  }
  return AX_OK;
}

void ax_workers_destroy(struct ax_workers *workers) {
  if (workers == NULL) return;
  pthread_mutex_lock(&workers->lock);
  workers->stop = true;
  atomic_fetch_add(&workers->generation, 1);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < workers->count; i++) pthread_join(workers->threads[i], NULL);
  pthread_cond_destroy(&workers->wake);
  pthread_cond_destroy(&workers->done);
  pthread_mutex_destroy(&workers->lock);
  ax_free(workers->threads);
  ax_free(workers);
}

bool ax_workers_call(struct ax_workers *workers, uint32_t count, void (*work)(void *context), void *context) {
  pthread_mutex_lock(&workers->lock);
  if (workers->busy) {
    pthread_mutex_unlock(&workers->lock);
    return false;
  }
  workers->busy = true;
  workers->work = work;
  workers->context = context;
  workers->joined = 0;
  workers->wanted = count > 0 ? count - 1 : 0;
  atomic_fetch_add_explicit(&workers->generation, 1, memory_order_release);
  pthread_cond_broadcast(&workers->wake);
  pthread_mutex_unlock(&workers->lock);
  work(context);
  pthread_mutex_lock(&workers->lock);
  workers->wanted = 0; /* who has not come yet need not */
  pthread_mutex_unlock(&workers->lock);
  for (uint32_t i = 0; i < spins && atomic_load_explicit(&workers->running, memory_order_relaxed) > 0; i++) ax_relax();
  pthread_mutex_lock(&workers->lock);
  while (atomic_load(&workers->running) > 0) pthread_cond_wait(&workers->done, &workers->lock);
  workers->busy = false;
  pthread_mutex_unlock(&workers->lock);
  return true;
}
