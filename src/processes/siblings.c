#include "processes/siblings.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/system.h"

typedef struct job {
  const char *root, *variable;
} job;

/* What the environment that a process began with gives the variable: -1 if it has none. Its entries end in 0, and zeros stand behind those
   that were overwritten. */
static long number_of(const job *s, int32_t pid) {
  enum { most = 1 << 17 };
  char path[64], wanted[64];
  char *all = ax_calloc(1, most); /* a 0 before the first entry, too */
  snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
  const int length = snprintf(wanted, sizeof wanted, "%c%s=", 0, s->variable);
  const char *found = NULL;
  if (all != NULL && ax_system_file(s->root, path, all + 1, most - 1)) found = memmem(all, most, wanted, (size_t)length);
  const long number = found != NULL ? strtol(found + length, NULL, 10) : -1;
  ax_free(all);
  return number;
}

static int32_t parent_of(const job *s, int32_t pid) {
  ax_system_process found;
  return ax_system_find_process(s->root, pid, &found) ? found.parent : 0;
}

/* What started the first of the processes that have a number: a wrapper (sh, env) has that of what it starts. */
static int32_t launcher_of(const job *s, int32_t pid, long number) {
  int32_t parent = parent_of(s, pid);
  for (int32_t up; parent > 1 && number_of(s, parent) == number && (up = parent_of(s, parent)) > 0;) parent = up;
  return parent;
}

/* Calls for each entry of a folder that is a number, until a call says that it is enough. False: the folder cannot be read. */
static bool each_number(const char *root, const char *path, bool (*call)(void *context, int32_t number), void *context) {
  char whole[512];
  snprintf(whole, sizeof whole, "%s%s", root, path);
  DIR *folder = opendir(whole);
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
  snprintf(path, sizeof path, "/proc/%d/task/%d/comm", (int)t->pid, (int)thread);
  if (!ax_system_file(t->job->root, path, name, sizeof name)) return false;
  name[strcspn(name, "\n")] = '\0';
  return t->found = strcmp(name, AX_OPENING_THREAD) == 0;
}

static bool has_come(const job *s, int32_t pid) {
  char path[64];
  thread_search search = {s, pid, false};
  snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
  each_number(s->root, path, is_opening, &search);
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
  ax_system_process found;
  ax_sibling *sibling = &f->of[number];
  const ax_sibling_state state = has_come(f->job, pid) ? AX_SIBLING_COME : AX_SIBLING_ELSEWHERE;
  if (!ax_system_find_process(f->job->root, pid, &found) || found.ended) return false;
  if (state < sibling->state || (state == sibling->state && pid < sibling->pid)) return false;
  *sibling = (ax_sibling){.state = state, .pid = pid, .stopped = found.stopped};
  memcpy(sibling->program, found.name, sizeof found.name);
  return false;
}

bool ax_siblings_find(const char *root, const char *variable, int32_t me, ax_sibling *of, uint32_t count) {
  const job s = {root, variable};
  memset(of, 0, count * sizeof of[0]);
  const long number = number_of(&s, me);
  if (number < 0) return false;
  return each_number(root, "/proc", note, &(sibling_search){&s, launcher_of(&s, me, number), of, count});
}
