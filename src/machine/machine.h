/* One description of the machine: what code is made for, how plans are cut and how many threads work is decided by these facts,
   and no other place in the library assumes one. A fact is asked for when its first reader comes, and kept for the process:

     group          facts                                       asked from                                    cost
     instructions   registers, tiles                            CPUID                                         1 us
     caches         sizes, who shares them, threads a core      sysfs, or CPUID where there is none           0.1 ms
     limits         processors of this process, its quota       the affinity mask, the cgroups it is in       0.1 ms
     processors     cores, packages, NUMA nodes                 sysfs, two files a processor                  1 ms for 100
     speeds         memory, caches, exchange of a line, flops   measured, and kept for later processes        0.1 s
     messages       messages between processes                  nothing: given or assumed (axle devices measures them)

   Facts that the machine does not say are assumed. AXLE_MACHINE gives facts in a text, or by the name of a machine that is written
   down here; such a description has the caches of that machine alone, and what is not given is assumed too, so that programs have
   the same plans on all machines that are given the same text. Processors and instructions are never given: code must run here.

   No fact decides a bit of a result, but for the instructions (product/product.h says how) and for layouts chosen by speeds that
   are given (partition/choose.c). And no measured fact decides code or
   plans, because two measurements differ. */
#ifndef AX_MACHINE_MACHINE_H
#define AX_MACHINE_MACHINE_H

#include "base/base.h"

typedef enum ax_fact {
  AX_FACT_VECTOR,   /* bytes of the widest registers that code is made for */
  AX_FACT_TILE,     /* bytes of a tile register; 0: there are none */
  AX_FACT_LINE,     /* bytes of a line of the caches */
  AX_FACT_L1,       /* bytes of a core's first cache of data */
  AX_FACT_L2,       /* bytes of a second cache */
  AX_FACT_L2_CORES, /* cores that share one */
  AX_FACT_L3,       /* bytes of a third cache; 0: there is none */
  AX_FACT_L3_CORES, /* cores that share one */
  AX_FACT_THREADS,  /* processors that are one core (hyper-threads) */
  AX_FACT_USABLE,   /* processors that this process may run on */
  AX_FACT_QUOTA,    /* processors whose time it gets, as 1.5; 0: no limit is set */
  AX_FACT_PROCESSORS, /* processors at work */
  AX_FACT_CORES,
  AX_FACT_PACKAGES,
  AX_FACT_NODES,    /* memories: processors have one that is near, and others */
  AX_FACT_USABLE_CORES, /* cores that the processors of this process are on */
  AX_FACT_READ,     /* bytes a second that one core reads from memory */
  AX_FACT_WRITE,    /* writes to it, past the caches */
  AX_FACT_READ_ALL, /* the same of all cores that this process may use, together */
  AX_FACT_WRITE_ALL,
  AX_FACT_L2_READ,  /* bytes a second that one core reads from its second cache */
  AX_FACT_L3_READ,  /* from the last cache */
  AX_FACT_L3_HOLDS, /* bytes that it reads over and over at that speed: virtual machines are told caches of their hosts */
  AX_FACT_EXCHANGE, /* seconds until a line that one core wrote is read by another */
  AX_FACT_F32,      /* flops a second of one core in products of so typed numbers */
  AX_FACT_F64,
  AX_FACT_F16,
  AX_FACT_BF16,
  AX_FACT_S8,
  AX_FACT_MIXED,     /* operations a second of one core where sums, products, comparisons and shifts of f32 take turns, as in functions */
  AX_FACT_QUOTIENTS, /* quotients and square roots of f32 a second */
  AX_FACT_MESSAGE,       /* seconds that a message without bytes takes from process to process of one host */
  AX_FACT_MESSAGE_BYTES, /* bytes a second of messages that are short (processes/ways.h) */
  AX_FACT_HANDSHAKE,     /* seconds that a long message takes besides its bytes */
  AX_FACT_TRANSFER,      /* bytes a second of long messages */
  AX_FACT_NETWORK_MESSAGE, /* the same between processes of two hosts */
  AX_FACT_NETWORK_MESSAGE_BYTES,
  AX_FACT_NETWORK_HANDSHAKE,
  AX_FACT_NETWORK_TRANSFER,
  AX_FACT_COUNT
} ax_fact;

typedef enum ax_fact_source {
  AX_SOURCE_ASSUMED,
  AX_SOURCE_ASKED,
  AX_SOURCE_MEASURED, /* by this process */
  AX_SOURCE_KEPT,     /* measured by an earlier one (kept_speeds.h) */
  AX_SOURCE_GIVEN
} ax_fact_source;

typedef struct ax_known {
  double value;
  ax_fact_source source;
} ax_known;

typedef struct ax_description {
  ax_known facts[AX_FACT_COUNT];
} ax_description;

/* The machine of which nothing is known: what is assumed of each fact, said to be from this source. */
ax_description ax_machine_assumed(ax_fact_source source);
/* Any thread, several at once. Speeds take 0.1 s the first time, unless they are kept or given. */
ax_known ax_machine_know(ax_fact fact);
/* The same for plans and code: a speed that is given, or the one assumed of a processor with such registers; no measured one. */
ax_known ax_machine_expect(ax_fact fact);
/* From now on speeds that are measured are kept in this folder for later processes, and those kept there are used if none was read
   yet (kept_speeds.h). The path is copied; a second call changes nothing. NULL: nothing is kept. */
void ax_machine_keep(const char *folder);
/* The number of threads that a runtime has if the user does not say: as many as processors that the process may run on, but no more
   than its quota gives time to, rounded up. At least 1. */
uint32_t ax_machine_threads(void);

/* The record of a fact; NULL: there are no more. */
typedef struct ax_fact_record {
  const char *name, *unit, *meaning; /* unit: "B", "B/s", "s", "flop/s" or "" */
  double assumed;
  bool given; /* may be given by a text */
} ax_fact_record;
const ax_fact_record *ax_machine_record(ax_fact fact);
const char *ax_fact_source_name(ax_fact_source source);

/* Fails if AXLE_MACHINE is neither a name, nor a file of a description that can be read; then facts are this machine's own. What it
   says at the first call that can read it holds for the process. Facts never change this thread's message. */
AX_MUST_USE ax_status ax_machine_check(void);
/* A text has a fact a line: its name, a number, and its unit. Behind a # is a comment. AX_INVALID_ARGUMENT: the message says the
   line. */
AX_MUST_USE ax_status ax_machine_parse(const char *text, ax_description *out);
/* The text and the name of machine `index` of those that are written down; NULL: there are no more. */
const char *ax_machine_named(uint32_t index, const char **text);
/* Adds a fact as such a line, with its source and meaning as the comment. */
void ax_machine_add_text(ax_text *text, ax_fact fact, ax_known known);

/* Only for tests: from now on the process works as if all facts were these. NULL: as it was. No thread may read facts meanwhile. */
void ax_machine_pretend(const ax_description *machine);

#endif
