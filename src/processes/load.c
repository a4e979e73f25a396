/* The shim is opened by name, which the loader of programs looks up beside libaxle; it brings its library of MPI with it. Neither
   is ever closed, because libraries of MPI cannot be. */
#include "processes/load.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- The launcher --- */

/* 0: none. */
static uint32_t count_in(const char *value) {
  const long count = value != NULL ? strtol(value, NULL, 10) : 0;
  return count > 0 && count < UINT32_MAX ? (uint32_t)count : 0;
}

ax_mpi_launcher ax_mpi_launcher_of(const char *(*variable)(const char *name)) {
  static const struct {
    const char *processes, *number, *here, *name, *family;
  } known[] = {
      {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "Open MPI's mpirun", "openmpi"},
      {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPICH's mpirun", "mpich"},
      {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "", "Slurm's srun", ""},
  };
  for (size_t i = 0; i < AX_COUNT(known); i++) {
    const uint32_t processes = count_in(variable(known[i].processes));
    if (processes == 0) continue;
    return (ax_mpi_launcher){known[i].name, known[i].family, known[i].number, processes, count_in(variable(known[i].here))};
  }
  return (ax_mpi_launcher){"none", "", "", 0, 0};
}

static const char *from_environment(const char *name) { return getenv(name); }
ax_mpi_launcher ax_mpi_launcher_here(void) { return ax_mpi_launcher_of(from_environment); }

ax_status ax_mpi_check_world(uint32_t processes) {
  const ax_mpi_launcher launcher = ax_mpi_launcher_here();
  if (processes != 1 || launcher.processes <= 1) return AX_OK;
  return ax_error(AX_UNAVAILABLE,
                  "%s started %u processes, but to this library of MPI each is alone, because it goes with another launcher (%s): "
                  "use the library's own mpirun, or name another one in AXLE_MPI",
                  launcher.name, launcher.processes, ax_mpi_library());
}

/* --- Choosing --- */

typedef void function(void);

/* dlsym gives a pointer to data; the functions' pointers are of the same size. */
static function *look_up(void *library, const char *name) {
  void *found = dlsym(library, name);
  function *pointer;
  memcpy(&pointer, &found, sizeof pointer);
  return pointer;
}

/* Returns MPI_Init of the library of MPI that is in this process already, NULL if none is. It may be there without its names being
   known everywhere: as what a module of Python is linked with. */
static function *init_there(void) {
  static const char *const libraries[] = {"libmpi.so.12", "libmpich.so.12", "libmpi.so.40", "libmpi_abi.so.1", "libmpi_abi.so.0"};
  function *found = look_up(RTLD_DEFAULT, "MPI_Init");
  for (size_t i = 0; found == NULL && i < AX_COUNT(libraries); i++) {
    void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
    if (library != NULL) found = look_up(library, "MPI_Init");
  }
  return found;
}

/* Whose types a library has. Shims that were compiled with others would find its functions, because they have the same names. */
static const char *family_of(function *init) {
  Dl_info where;
  void *address;
  memcpy(&address, &init, sizeof address);
  if (dladdr(address, &where) == 0) return "";
  if (strstr(where.dli_fname, "libmpi_abi") != NULL) return "abi";
  void *library = dlopen(where.dli_fname, RTLD_LAZY | RTLD_NOLOAD); /* NULL: it is the program's own */
  return dlsym(library != NULL ? library : RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL ? "openmpi" : "mpich";
}

typedef struct choice {
  const ax_mpi_shim *shim;
  const char *asked; /* AXLE_MPI; NULL: not set */
  function *there;   /* NULL: no library is */
  const char *family; /* of what is there, or goes with the launcher */
  ax_mpi_launcher launcher;
  ax_text tried; /* a line for each shim that does not do */
} choice;

static bool reject(choice *c, const char *file, const char *reason) {
  ax_text_add(&c->tried, "\n  %s: %s", file, reason);
  return false;
}

static const char *wrong_with(const choice *c, const ax_mpi_shim *shim) {
  if (shim == NULL) return "it has no axle_mpi";
  if (shim->version != AX_MPI_SHIM_VERSION) return "it is of another version of Axle";
  if (c->there == NULL) return NULL;
  if (shim->init != c->there || strcmp(shim->family, c->family) != 0) return "this process has another library of MPI already";
  return NULL;
}

/* A library that does not do is closed again; the one that does stays. Open MPI's plugins need its names, which are therefore made
   known everywhere; those of the others need not be. */
static bool try_file(choice *c, const char *file) {
  const int scope = strstr(file, "openmpi") != NULL ? RTLD_GLOBAL : RTLD_LOCAL;
  void *opened = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (opened == NULL) return reject(c, file, dlerror());
  const ax_mpi_shim *shim = dlsym(opened, "axle_mpi");
  const char *wrong = wrong_with(c, shim);
  if (wrong == NULL) {
    c->shim = shim;
    dlopen(file, RTLD_NOW | RTLD_NODELETE | scope);
  }
  dlclose(opened);
  return wrong == NULL || reject(c, file, wrong);
}

static bool try_name(choice *c, const char *name) {
  char file[256];
  snprintf(file, sizeof file, "libaxle_mpi_%s.so", name);
  return try_file(c, file);
}

/* AX_MPI_SHIMS: the names of those that were built, each with a space after it. `family`: those whose names begin so, or do not. */
static bool try_names(choice *c, const char *family, bool begin) {
  char name[64];
  for (const char *at = AX_MPI_SHIMS; sscanf(at, "%63s", name) == 1; at += strlen(name) + 1)
    if ((strncmp(name, family, strlen(family)) == 0) == begin && try_name(c, name)) return true;
  return false;
}

static void choose(choice *c) {
  if (c->asked != NULL) {
    if (strchr(c->asked, '/') != NULL) try_file(c, c->asked);
    else try_name(c, c->asked);
  } else if (!try_names(c, c->family, true)) {
    try_names(c, c->family, false);
  }
}

static const ax_mpi_shim *loaded;
static ax_status failure;
static char line[2048]; /* what was loaded, or why nothing was */

static void describe_failure(const choice *c) {
  const bool none = AX_MPI_SHIMS[0] == '\0' && c->asked == NULL;
  failure = none ? AX_ABSENT : AX_UNAVAILABLE;
  if (none) snprintf(line, sizeof line, "Axle was built where no library of MPI was found; AXLE_MPI can name the path of a shim");
  else
    snprintf(line, sizeof line, "no library of MPI can be used (launcher: %s%s%s); tried:%s", c->launcher.name,
             c->asked != NULL ? "; AXLE_MPI=" : "", c->asked != NULL ? c->asked : "",
             c->tried.data != NULL ? c->tried.data : " nothing");
}

static void load(void) {
  choice c = {.asked = getenv("AXLE_MPI"), .there = init_there(), .launcher = ax_mpi_launcher_here()};
  if (c.asked != NULL && c.asked[0] == '\0') c.asked = NULL;
  c.family = c.there != NULL ? family_of(c.there) : c.launcher.family;
  choose(&c);
  loaded = c.shim;
  if (loaded != NULL) loaded->library(line);
  else describe_failure(&c);
  ax_text_deinit(&c.tried);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

ax_status ax_mpi_load(const ax_mpi_shim **out) {
  pthread_once(&once, load);
  *out = loaded;
  return loaded != NULL ? AX_OK : ax_error(failure, "%s", line);
}

const char *ax_mpi_library(void) {
  pthread_once(&once, load);
  return line;
}

/* --- Starting --- */

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool ready;
static const ax_mpi_shim *to_finalize;

static pid_t starter; /* a child that it forks is no process of MPI, but runs the same functions at its exit */
static atomic_bool unfinished;
void ax_mpi_leave_unfinished(void) { unfinished = true; }

static void finalize(void) {
  if (getpid() == starter && !unfinished && !to_finalize->finished()) to_finalize->finalize();
}

static ax_status mpi_error(const ax_mpi_shim *shim, const char *what, int code) {
  char text[AX_MPI_TEXT];
  shim->describe(code, text);
  return ax_error(AX_UNAVAILABLE, "%s: %s", what, text);
}

static ax_status start_once(const ax_mpi_shim *shim, void (*leave)(void)) {
  static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED"};
  bool started;
  ax_mpi_threads threads;
  if (shim->finished()) return ax_error(AX_UNAVAILABLE, "MPI is finalized, and cannot be started again in this process");
  int code = shim->start(&started, &threads);
  if (code != 0) return mpi_error(shim, "MPI cannot be started", code);
  if (started) {
    to_finalize = shim;
    starter = getpid();
    atexit(finalize);
  }
  if (threads < AX_MPI_SERIALIZED)
    return ax_error(AX_UNAVAILABLE,
                    started ? "this library of MPI allows no more than %s, but several threads of Axle call it in turn"
                            : "MPI was started with %s, but several threads of Axle call it in turn: start it by MPI_Init_thread "
                              "with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE, or leave it to Axle",
                    names[threads]);
  code = shim->before_finalize(leave);
  return code == 0 ? AX_OK : mpi_error(shim, "MPI cannot be started", code);
}

ax_status ax_mpi_start(const ax_mpi_shim *shim, void (*leave)(void)) {
  ax_status status = AX_OK;
  pthread_mutex_lock(&start_lock);
  if (!ready || shim->finished()) status = start_once(shim, leave);
  ready = status == AX_OK;
  pthread_mutex_unlock(&start_lock);
  return status;
}
