#include "machine/kept_speeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/folder.h"
#include "machine/features.h"
#include "machine/system.h"

static const char file_name[] = "speeds", head[] = "axle speeds 3\nof ", last[] = "sum ";
enum { most_bytes = 4096, first_speed = AX_FACT_READ, no_speed = AX_FACT_MESSAGE };

/* --- What identifies the machine --- */

/* All facts that are no speeds: those asked for are the same each time. Two processors of one kind differ in nothing that is known
   here, and are taken for the same. */
static void add_key(ax_text *text, const ax_description *m) {
  ax_digester digester;
  ax_processor_set usable;
  char model[256];
  ax_digester_init(&digester);
  ax_system_model("", model, sizeof model);
  ax_digester_add(&digester, model, strlen(model));
  const bool says = ax_machine_add_identity(&digester); /* otherwise its model alone counts */
  ax_digester_add(&digester, &says, sizeof says);
  if (ax_system_usable("", &usable)) ax_digester_add(&digester, &usable, sizeof usable);
  for (int f = 0; f < first_speed; f++) ax_digester_add(&digester, &m->facts[f].value, sizeof m->facts[f].value);
  const ax_digest digest = ax_digester_finish(&digester);
  for (size_t i = 0; i < sizeof digest.bytes; i++) ax_text_add(text, "%02x", digest.bytes[i]);
}

static void add_sum(ax_text *text) {
  const uint64_t sum = text->failed ? 0 : ax_hash_bytes(AX_HASH_SEED, text->data, text->length);
  ax_text_add(text, "%s%016llx\n", last, (unsigned long long)sum);
}

/* --- Reading --- */

static bool plausible(ax_fact fact, double value) {
  static const struct {
    const char *unit;
    double least, most;
  } bounds[] = {{"B/s", 1e8, 1e15}, {"flop/s", 1e8, 1e17}, {"s", 1e-9, 1e-4}, {"B", 4096, 1e12}};
  for (size_t i = 0; i < AX_COUNT(bounds); i++)
    if (strcmp(ax_machine_record(fact)->unit, bounds[i].unit) == 0) return value >= bounds[i].least && value <= bounds[i].most;
  return false;
}

static int find_speed(const char *name, size_t length) {
  for (int f = first_speed; f < no_speed; f++) {
    const char *own = ax_machine_record((ax_fact)f)->name;
    if (strlen(own) == length && strncmp(own, name, length) == 0) return f;
  }
  return no_speed;
}

/* A line "NAME VALUE" at *at, which moves behind it. */
static bool take_line(const char **at, ax_description *out) {
  const size_t length = strcspn(*at, " \n");
  const int fact = find_speed(*at, length);
  char *end;
  if (fact == no_speed || (*at)[length] != ' ') return false;
  const double value = strtod(*at + length + 1, &end);
  if (*end != '\n' || !plausible((ax_fact)fact, value)) return false;
  out->facts[fact] = (ax_known){value, AX_SOURCE_KEPT};
  *at = end + 1;
  return true;
}

/* Whether the text is whole: its last line is the sum of what stands before. */
static bool is_whole(const char *text) {
  const char *sum = strstr(text, last);
  ax_text own = {0};
  if (sum == NULL) return false;
  ax_text_add_bytes(&own, text, (size_t)(sum - text));
  add_sum(&own);
  const bool whole = !own.failed && strcmp(own.data, text) == 0;
  ax_text_deinit(&own);
  return whole;
}

static bool begins_with(const char **text, const char *start) {
  const size_t length = strlen(start);
  if (strncmp(*text, start, length) != 0) return false;
  *text += length;
  return true;
}

/* Takes all, or nothing. */
static bool take(const char *text, const ax_description *machine, ax_description *out) {
  ax_text key = {0};
  *out = *machine;
  add_key(&key, machine);
  ax_text_add(&key, "\n");
  bool taken = !key.failed && is_whole(text) && begins_with(&text, head) && begins_with(&text, key.data);
  ax_text_deinit(&key);
  while (taken && strncmp(text, last, strlen(last)) != 0) taken = take_line(&text, out);
  return taken && out->facts[first_speed].source == AX_SOURCE_KEPT && out->facts[AX_FACT_L3_HOLDS].source == AX_SOURCE_KEPT;
}

static char *read_text(const char *path) {
  ax_folder folder;
  size_t bytes = 0;
  if (ax_folder_open(path, &folder) != AX_OK) return NULL;
  char *data = ax_folder_read(&folder, file_name, most_bytes, false, &bytes), *text = data != NULL ? ax_alloc(bytes + 1) : NULL;
  if (text != NULL) memcpy(text, data, bytes), text[bytes] = '\0';
  ax_free(data);
  ax_folder_close(&folder);
  return text;
}

bool ax_kept_speeds_find(const char *folder, ax_description *machine) {
  ax_message_copy before;
  ax_description found;
  locale_t saved;
  ax_message_keep(&before);
  char *text = read_text(folder);
  bool taken = text != NULL && ax_text_locale_enter(&saved) == AX_OK;
  if (taken) {
    taken = take(text, machine, &found);
    ax_text_locale_leave(saved);
  }
  ax_free(text);
  ax_message_put_back(&before);
  if (taken) *machine = found;
  return taken;
}

/* --- Writing --- */

void ax_kept_speeds_put(const char *path, const ax_description *machine) {
  ax_message_copy before;
  ax_text text = {0};
  ax_folder folder;
  ax_message_keep(&before);
  ax_text_add(&text, "%s", head);
  add_key(&text, machine);
  ax_text_add(&text, "\n");
  for (int f = first_speed; f < no_speed; f++)
    if (machine->facts[f].source == AX_SOURCE_MEASURED)
      ax_text_add(&text, "%s %.17g\n", ax_machine_record((ax_fact)f)->name, machine->facts[f].value);
  add_sum(&text);
  if (!text.failed && ax_folder_open(path, &folder) == AX_OK) {
    (void)ax_folder_write(&folder, file_name, &(struct iovec){text.data, text.length}, 1); /* where it cannot be, it is not kept */
    ax_folder_close(&folder);
  }
  ax_text_deinit(&text);
  ax_message_put_back(&before);
}
