/* Kernels that users write (axle/kernel.h), as plans and the executor see them. Room `kernel` makes code with a few entry points
   of each; a plan has steps that call them.

   A kernel whose bodies stay on their device is one step, RUN. A kernel that signals or copies to other devices is run by all
   devices of a group together. Its steps, with exchanges of a byte in between:

     ENTER     operands, results -> state, came                         others may now use my memory; my cores are ready to start
     exchange  came              -> all_came                            the same holds for all devices
     RUN       all_came, state, operands, results -> results, done      runs cores of any device, until none is left or can go on
     exchange  done              -> all_done                            the cores of all devices have ended
     LEAVE     all_done, operands, results                              my operands may be overwritten, and my results read

   So the exchanges alone order the memory that other devices touch. Passes know of a kernel only the buffers that these steps
   read and write.

   `state` is the memory that a kernel needs beside operands and results while it runs: cores, semaphores, scratch. State that is
   common to a group is in the first device's: in each process, in that of its first device of the group.

   If a group has devices in several processes, each process runs the cores of its own devices. What a core does on a device of
   another process is sent there as a message, and done there. A message may ask for an answer, which says that it has been done. A
   process whose cores have ended says so behind all its messages. RUN is through once all processes of the group have said it, and
   all answers have come. */
#ifndef AX_PLAN_CORES_H
#define AX_PLAN_CORES_H

#include "ir/program.h"

typedef enum ax_cores_step { AX_CORES_ENTER, AX_CORES_RUN, AX_CORES_LEAVE } ax_cores_step;

/* What a core does on a device of another process, or the answer to it: `words` say what, and with which data. */
typedef struct ax_cores_message {
  uint32_t member;
  uint64_t words[3];
  const void *data;
  size_t bytes;
} ax_cores_message;

/* The caller of ax_cores_rules.run: an activation of the executor, or a part of its instruction. */
typedef struct ax_cores_runner {
  void *(*state)(const void *context, uint32_t member); /* the state of each member */
  void (*wake)(const void *context, uint32_t count);    /* lets `count` of the waiting callers go on */
  const void *context;
  uint32_t members;
  bool one_thread; /* only one caller at a time runs cores: others wait until all have ended */
  uint32_t first; /* the first member of this process: the common state is in its state */
  uint32_t away;  /* how many other processes have members, whose state is NULL here. If it is 0, the rest is not used */
  uint64_t seed; /* order of ready cores; 0: the first that became ready; else a pseudo-random one */
  /* Sends a message to the process that has member message->member. The data is copied. */
  ax_status (*send)(const void *context, const ax_cores_message *message);
  /* Says to all other processes that no more messages come from this one but answers. */
  ax_status (*close)(const void *context);
  bool (*poll)(const void *context);       /* handles messages that have come; false: the run is over */
} ax_cores_runner;

typedef struct ax_cores_rules {
  void (*release)(void *kernel);
  /* Makes a device's state. memory: of operands and results, in the plan's order. first: it also makes the common state, where base
     is the present value of the counter that waiting callers are parked on. AX_INVALID_ARGUMENT, AX_OUT_OF_MEMORY. */
  ax_status (*enter)(const void *kernel, void *state, void *const *memory, int64_t device, bool first, uint64_t base);
  /* Runs cores until none is ready. *ticket 0: all have ended. Otherwise other callers are running some, or messages are to come,
     and this caller may come again when the counter has reached *ticket. AX_DEADLOCK: none is running, no messages are to come, and
     none can ever go on. May be called on any number of threads at once. */
  ax_status (*run)(const void *kernel, const ax_cores_runner *runner, uint64_t *ticket);
  /* Once all members of this process have entered, also before they run. take: does what a message says, and may send an answer.
     AX_INTERNAL: it is none of this kernel's. closed: another process has said that no more come but answers. */
  ax_status (*take)(const void *kernel, const ax_cores_runner *runner, const ax_cores_message *message);
  void (*closed)(const void *kernel, const ax_cores_runner *runner);
  /* For reports, while no thread is at the kernel: says which core waits for what. common: the common state. */
  void (*report)(const void *kernel, const void *common, ax_text *text);
} ax_cores_rules;

typedef struct ax_cores {
  const ax_cores_rules *rules;
  void *kernel; /* the plan's; shared with its copies in calls */
  struct ax_cores *next;
  ax_axes names; /* of the group: members are numbered row-major over these axes */
  ax_axis_set axes;
  uint32_t in_count, out_count;
  uint32_t
      fresh_count; /* results that are only written: the first `fresh_count`; the others hold a value that is read too */
  uint32_t *buffers;    /* those that are read, then those that are written */
  uint32_t state, came, all_came, done, all_done; /* came, ..: AX_NONE where each device is alone */
  uint32_t core_count;
  bool one_thread; /* one thread at a time runs cores: more would cost more than they save */
  double time; /* nanoseconds on one thread, roughly, that several threads can share */
} ax_cores;

typedef struct ax_cores_buffer {
  uint32_t buffer;
  bool reads, writes;
} ax_cores_buffer;
/* The buffers that a step touches, in the order of its instruction's operands: state, those that are read, those that are
   written, then the bytes of exchanges. */
uint32_t ax_cores_buffer_count(const ax_cores *cores, ax_cores_step step);
ax_cores_buffer ax_cores_buffer_at(const ax_cores *cores, ax_cores_step step, uint32_t k);

#endif
