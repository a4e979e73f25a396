/* Batches are read whole and checked before they are used. They are not mapped, because another process could change the file
   under code that runs. */
#include "jit/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/emit/generator.h"

enum { version = 1, name_bytes = 33, an_hour = 3600, most_of_a_batch = 1 << 30 };

typedef struct header {
  char magic[8];
  uint32_t version, count; /* of keys */
  uint64_t object_bytes, unused;
  ax_digest content; /* of the whole file, with zeros in this place */
} header;

/* In the index. A record of a kernel has the first half of its key, one of a batch 0 and its bytes. */
typedef struct record {
  union {
    unsigned char key[16];
    uint64_t words[2];
  } of;
  unsigned char batch[16]; /* the first half of its digest, which is its name */
} record;

static const char magic[8] = "axlecode", index_name[] = "index", lock_name[] = "lock";

/* Keys to look for, sorted by key. */
typedef struct wanted {
  const ax_digest *key;
  uint32_t number;
} wanted;

ax_status ax_kept_init(ax_kept *kept, const char *path, uint64_t most_bytes) {
  *kept = (ax_kept){.folder = {-1}, .most_bytes = most_bytes > 0 ? most_bytes : (uint64_t)256 << 20};
  if (path == NULL) return AX_OK;
  const size_t bytes = strlen(path) + 1;
  kept->path = ax_alloc(bytes);
  if (kept->path == NULL) return ax_out_of_memory(bytes);
  memcpy(kept->path, path, bytes);
  return AX_OK;
}

void ax_kept_deinit(ax_kept *kept) {
  ax_folder_close(&kept->folder);
  ax_free(kept->path);
}

static bool is_open(ax_kept *kept) {
  if (kept->path == NULL) return false;
  if (kept->state == AX_KEPT_UNTRIED) {
    kept->state = ax_folder_open(kept->path, &kept->folder) == AX_OK ? AX_KEPT_OPEN : AX_KEPT_UNUSABLE;
    if (kept->state == AX_KEPT_UNUSABLE) snprintf(kept->trouble, sizeof kept->trouble, "%s", ax_message());
  }
  return kept->state == AX_KEPT_OPEN;
}

/* --- Names --- */

static void name_of(const unsigned char *batch, char *name) {
  for (int i = 0; i < 16; i++) snprintf(name + 2 * i, 3, "%02x", batch[i]);
}

static bool is_name(const char *name) {
  return strlen(name) == name_bytes - 1 && strspn(name, "0123456789abcdef") == name_bytes - 1;
}

static void batch_of(const char *name, unsigned char *batch) {
  for (int i = 0; i < 16; i++) {
    unsigned byte = 0;
    sscanf(name + 2 * i, "%2x", &byte);
    batch[i] = (unsigned char)byte;
  }
}

static int by_key(const void *a, const void *b) {
  return memcmp(((const wanted *)a)->key, ((const wanted *)b)->key, sizeof(ax_digest));
}

static wanted *sort(const ax_digest *keys, uint32_t count) {
  wanted *all = ax_alloc(count * sizeof all[0]);
  if (all == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++) all[i] = (wanted){&keys[i], i};
  qsort(all, count, sizeof all[0], by_key);
  return all;
}

static ax_digest digest_of_keys(const wanted *all, uint32_t count) {
  ax_digester digester;
  ax_digester_init(&digester);
  for (uint32_t i = 0; i < count; i++) ax_digester_add(&digester, all[i].key, sizeof(ax_digest));
  return ax_digester_finish(&digester);
}

/* The first of `all` whose key does not stand before the `bytes` first bytes of `key`; `count`: none. */
static uint32_t first_from(const wanted *all, uint32_t count, const unsigned char *key, size_t bytes) {
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (memcmp(all[middle].key->bytes, key, bytes) < 0) low = middle + 1;
    else high = middle;
  }
  return low < count && memcmp(all[low].key->bytes, key, bytes) == 0 ? low : count;
}

/* --- Batches --- */

static ax_digest digest_of_batch(const header *h, const void *keys, const void *object) {
  header blank = *h;
  ax_digester digester;
  memset(&blank.content, 0, sizeof blank.content);
  ax_digester_init(&digester);
  ax_digester_add(&digester, &blank, sizeof blank);
  ax_digester_add(&digester, keys, h->count * sizeof(ax_digest));
  ax_digester_add(&digester, object, h->object_bytes);
  return ax_digester_finish(&digester);
}

/* Whether a file's bytes are a batch, whole and of this version. */
static bool is_batch(const void *data, size_t bytes) {
  header h;
  if (bytes < sizeof h) return false;
  memcpy(&h, data, sizeof h);
  if (memcmp(h.magic, magic, sizeof magic) != 0 || h.version != version || h.object_bytes > bytes) return false;
  const uint64_t keys = (uint64_t)h.count * sizeof(ax_digest);
  if (bytes != sizeof h + keys + h.object_bytes) return false;
  const unsigned char *rest = (const unsigned char *)data + sizeof h;
  const ax_digest content = digest_of_batch(&h, rest, rest + keys);
  return memcmp(&content, &h.content, sizeof content) == 0;
}

/* Loads a batch, and sets the functions of all wanted keys that it has. False: it cannot be loaded. */
static bool load_batch(const void *data, size_t bytes, const wanted *all, uint32_t count, ax_object_find *find,
                       ax_object_function *functions, ax_objects *objects) {
  header h;
  memcpy(&h, data, sizeof h);
  const ax_digest *keys = (const ax_digest *)((const unsigned char *)data + sizeof h);
  const size_t before = sizeof h + h.count * sizeof(ax_digest);
  ax_object_function *made = ax_alloc(h.count * sizeof made[0]);
  const bool loaded = made != NULL && ax_objects_load(objects, (const unsigned char *)data + before, bytes - before, find,
                                                      AX_KERNEL_PREFIX, h.count, made) == AX_OK;
  for (uint32_t i = 0; i < h.count && loaded; i++) {
    const uint32_t at = first_from(all, count, keys[i].bytes, sizeof keys[i].bytes);
    if (at < count && functions[all[at].number] == NULL) functions[all[at].number] = made[i];
  }
  ax_free(made);
  return loaded;
}

static void try_batch(ax_kept *kept, const unsigned char *batch, const wanted *all, uint32_t count, ax_object_find *find,
                      ax_object_function *functions, ax_objects *objects) {
  char name[name_bytes];
  size_t bytes = 0;
  name_of(batch, name);
  void *data = ax_folder_read(&kept->folder, name, most_of_a_batch, true, &bytes);
  if (data == NULL) return;
  if (!is_batch(data, bytes) || !load_batch(data, bytes, all, count, find, functions, objects))
    ax_folder_remove(&kept->folder, name);
  ax_free(data);
}

/* --- The index --- */

static uint64_t bytes_in(const record *records, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) {
    if (records[i].of.words[0] != 0) continue;
    total = records[i].of.words[1] > UINT64_MAX - total ? UINT64_MAX : total + records[i].of.words[1];
  }
  return total;
}

static record *read_index(ax_kept *kept, size_t *count) {
  size_t bytes = 0;
  record *records = ax_folder_read(&kept->folder, index_name, most_of_a_batch, false, &bytes);
  *count = bytes / sizeof records[0];
  kept->index_is_whole = records != NULL && bytes % sizeof records[0] == 0;
  kept->total = records != NULL ? bytes_in(records, *count) : 0;
  return records;
}

/* From the newest record on. A batch that was tried and lacks the kernel is not tried again right away, which is when the next
   record names it too. */
static void find_by_index(ax_kept *kept, const wanted *all, uint32_t count, ax_object_find *find, ax_object_function *functions,
                          ax_objects *objects) {
  size_t record_count;
  const unsigned char *tried = NULL;
  record *records = read_index(kept, &record_count);
  if (records == NULL) return;
  for (size_t i = record_count; i-- > 0;) {
    const uint32_t at = first_from(all, count, records[i].of.key, sizeof records[i].of.key);
    if (at == count || functions[all[at].number] != NULL) continue;
    if (tried != NULL && memcmp(tried, records[i].batch, sizeof records[i].batch) == 0) continue;
    tried = records[i].batch;
    try_batch(kept, tried, all, count, find, functions, objects);
  }
  ax_free(records);
}

void ax_kept_find(ax_kept *kept, const ax_digest *keys, uint32_t count, ax_object_find *find, ax_object_function *functions,
                  ax_objects *objects) {
  if (!is_open(kept)) return;
  wanted *all = sort(keys, count);
  if (all == NULL) return;
  const ax_digest batch = digest_of_keys(all, count);
  bool found = true;
  try_batch(kept, batch.bytes, all, count, find, functions, objects);
  for (uint32_t i = 0; i < count; i++) found = found && functions[i] != NULL;
  if (!found) find_by_index(kept, all, count, find, functions, objects);
  ax_free(all);
}

/* --- Room --- */

static int newest_first(const void *a, const void *b) {
  const ax_folder_file *x = a, *y = b;
  if (x->seconds != y->seconds) return x->seconds < y->seconds ? 1 : -1;
  return x->nanoseconds < y->nanoseconds ? 1 : x->nanoseconds > y->nanoseconds ? -1 : strcmp(x->name, y->name);
}

/* The records of a batch that stays. One that is damaged has none, and goes. */
static bool add_records(const ax_kept *kept, const ax_folder_file *file, ax_text *records) {
  size_t bytes;
  record r = {0};
  void *data = ax_folder_read(&kept->folder, file->name, most_of_a_batch, false, &bytes);
  const bool good = data != NULL && is_batch(data, bytes);
  if (good) {
    header h;
    memcpy(&h, data, sizeof h);
    const ax_digest *keys = (const ax_digest *)((const unsigned char *)data + sizeof h);
    batch_of(file->name, r.batch);
    for (uint32_t i = 0; i < h.count; i++) {
      memcpy(r.of.key, keys[i].bytes, sizeof r.of.key);
      ax_text_add_bytes(records, (const char *)&r, sizeof r);
    }
    r.of.words[0] = 0;
    r.of.words[1] = bytes;
    ax_text_add_bytes(records, (const char *)&r, sizeof r);
  }
  ax_free(data);
  return good;
}

/* Files that go, oldest first, and an index of those that stay. What others append to the old one meanwhile is lost, which costs
   them a compile. */
static void sweep_files(ax_kept *kept, ax_folder_file *files, uint32_t count) {
  ax_text records = {0};
  uint64_t all = 0, total = 0;
  for (uint32_t i = 0; i < count; i++) all += is_name(files[i].name) ? files[i].bytes : 0;
  const uint64_t most = all > kept->most_bytes ? kept->most_bytes / 4 * 3 : kept->most_bytes;
  qsort(files, count, sizeof files[0], newest_first);
  for (uint32_t i = 0; i < count; i++) {
    const bool left =
        strncmp(files[i].name, AX_FOLDER_TEMPORARY, strlen(AX_FOLDER_TEMPORARY)) == 0 && time(NULL) - files[i].seconds > an_hour;
    bool goes = left;
    if (is_name(files[i].name)) {
      goes = total + files[i].bytes > most || !add_records(kept, &files[i], &records);
      if (!goes) total += files[i].bytes;
    }
    if (goes) ax_folder_remove(&kept->folder, files[i].name);
  }
  const struct iovec part = {records.data, records.length};
  kept->index_is_whole = !records.failed && ax_folder_write(&kept->folder, index_name, &part, 1);
  kept->total = total;
  ax_text_deinit(&records);
}

static void sweep(ax_kept *kept) {
  ax_folder_file *files;
  uint32_t count;
  const int lock = ax_folder_lock(&kept->folder, lock_name);
  if (lock < 0) return; /* another process is at it */
  if (ax_folder_list(&kept->folder, &files, &count) == AX_OK) {
    sweep_files(kept, files, count);
    ax_free(files);
  }
  ax_folder_unlock(lock);
}

/* --- Keeping --- */

static bool append_records(const ax_kept *kept, const unsigned char *batch, const ax_digest *keys, uint32_t count, uint64_t bytes) {
  record *records = ax_calloc(count + (size_t)1, sizeof records[0]);
  if (records == NULL) return false;
  for (uint32_t i = 0; i < count; i++) memcpy(records[i].of.key, keys[i].bytes, sizeof records[i].of.key);
  records[count].of.words[1] = bytes;
  for (uint32_t i = 0; i <= count; i++) memcpy(records[i].batch, batch, sizeof records[i].batch);
  const bool appended = ax_folder_append(&kept->folder, index_name, records, (count + (size_t)1) * sizeof records[0]);
  ax_free(records);
  return appended;
}

void ax_kept_put(ax_kept *kept, const ax_digest *keys, uint32_t count, const void *object, size_t bytes) {
  header h = {.version = version, .count = count, .object_bytes = bytes};
  char name[name_bytes];
  const uint64_t all_bytes = sizeof h + (uint64_t)count * sizeof keys[0] + bytes;
  if (!is_open(kept) || all_bytes > most_of_a_batch || all_bytes > kept->most_bytes / 2) return;
  wanted *all = sort(keys, count);
  if (all == NULL) return;
  const ax_digest batch = digest_of_keys(all, count);
  ax_free(all);
  memcpy(h.magic, magic, sizeof magic);
  h.content = digest_of_batch(&h, keys, object);
  const struct iovec parts[] = {{&h, sizeof h}, {(void *)keys, count * sizeof keys[0]}, {(void *)object, bytes}};
  name_of(batch.bytes, name);
  if (!ax_folder_write(&kept->folder, name, parts, AX_COUNT(parts))) return;
  kept->total += all_bytes;
  if (!kept->index_is_whole || kept->total > kept->most_bytes)
    sweep(kept);
  else
    kept->index_is_whole = append_records(kept, batch.bytes, keys, count, all_bytes);
}
