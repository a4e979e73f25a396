#include "processes/siblings.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
  const char *proc, *variable;
} job;

/* Reads the file of a process into `text`, as much as it takes, with a 0 behind it. Returns the bytes, 0 where it cannot be read. */
static size_t read_file(const job *s, int32_t pid, const char *name, char *text, size_t room) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d/%s", s->proc, (int)pid, name);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  const size_t bytes = fread(text, 1, room - 1, file);
  fclose(file);
  text[bytes] = '\0';
  return bytes;
}

/* What the environment that a process began with gives the variable: -1 if it has none. */
static long number_of(const job *s, int32_t pid) {
  enum { most = 1 << 17 };
  const size_t length = strlen(s->variable);
  long number = -1;
  char *all = ax_alloc(most);
  const size_t bytes = all != NULL ? read_file(s, pid, "environ", all, most) : 0;
  for (const char *at = all; number < 0 && bytes > 0 && at < all + bytes; at += strlen(at) + 1)
    if (strncmp(at, s->variable, length) == 0 && at[length] == '=') number = strtol(at + length + 1, NULL, 10);
  ax_free(all);
  return number;
}

typedef struct status {
  int32_t parent; /* 0: unknown */
  char state, name[16];
} status;

/* Of "pid (name) state parent ..": a name may have parentheses too. */
static status status_of(const job *s, int32_t pid) {
  char line[512];
  status found = {0};
  if (read_file(s, pid, "stat", line, sizeof line) == 0) return found;
  const char *begin = strchr(line, '('), *end = strrchr(line, ')');
  int parent;
  if (begin == NULL || end == NULL || sscanf(end + 1, " %c %d", &found.state, &parent) != 2) return found;
  found.parent = parent;
  snprintf(found.name, sizeof found.name, "%.*s", (int)(end - begin - 1), begin + 1);
  return found;
}

/* What started the first of the processes that have a number: a wrapper (sh, env) has that of what it starts. */
static int32_t launcher_of(const job *s, int32_t pid, long number) {
  int32_t parent = status_of(s, pid).parent;
  for (int32_t up; parent > 1 && number_of(s, parent) == number && (up = status_of(s, parent).parent) > 0;) parent = up;
  return parent;
}

/* Calls for each entry of a folder that is a number, until a call says that it is enough. False: the folder cannot be read. */
static bool each_number(const char *path, bool (*call)(void *context, int32_t number), void *context) {
  DIR *folder = opendir(path);
  if (folder == NULL) return false;
  bool enough = false;
  for (const struct dirent *entry; !enough && (entry = readdir(folder)) != NULL;) {
    const long number = strtol(entry->d_name, NULL, 10);
    if (number > 0) enough = call(context, (int32_t)number);
  }
  closedir(folder);
  return true;
}

typedef struct thread_search {
  const job *job;
  int32_t pid;
  bool found;
} thread_search;

static bool is_opening(void *context, int32_t thread) {
  thread_search *t = context;
  char name[64], path[64];
  snprintf(path, sizeof path, "task/%d/comm", (int)thread);
  if (read_file(t->job, t->pid, path, name, sizeof name) == 0) return false;
  name[strcspn(name, "\n")] = '\0';
  return t->found = strcmp(name, AX_OPENING_THREAD) == 0;
}

static bool has_come(const job *s, int32_t pid) {
  char path[512];
  thread_search search = {s, pid, false};
  snprintf(path, sizeof path, "%s/%d/task", s->proc, (int)pid);
  each_number(path, is_opening, &search);
  return search.found;
}

typedef struct sibling_search {
  const job *job;
  int32_t launcher;
  ax_sibling *of;
  uint32_t count;
} sibling_search;

static bool note(void *context, int32_t pid) {
  const sibling_search *f = context;
  const long number = number_of(f->job, pid);
  if (number < 0 || number >= (long)f->count || launcher_of(f->job, pid, number) != f->launcher) return false;
  const status found = status_of(f->job, pid);
  ax_sibling *sibling = &f->of[number];
  const ax_sibling_state state = has_come(f->job, pid) ? AX_SIBLING_COME : AX_SIBLING_ELSEWHERE;
  if (found.parent == 0 || found.state == 'Z' || state < sibling->state || (state == sibling->state && pid < sibling->pid)) return false;
  *sibling = (ax_sibling){.state = state, .pid = pid, .stopped = found.state == 'T' || found.state == 't'};
  memcpy(sibling->program, found.name, sizeof found.name);
  return false;
}

bool ax_siblings_find(const char *proc, const char *variable, int32_t me, ax_sibling *of, uint32_t count) {
  const job s = {proc, variable};
  memset(of, 0, count * sizeof of[0]);
  const long number = number_of(&s, me);
  if (number < 0) return false;
  return each_number(proc, note, &(sibling_search){&s, launcher_of(&s, me, number), of, count});
}
