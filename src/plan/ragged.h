/* Ragged exchanges: slices of any number of rows from every member of a group to every other. These functions do one member's
   work; reference evaluation and the executor call them with the members' arrays.

     pack   each member puts its slices in a table, those for one device side by side; all_to_all then exchanges the tables
     take   each member checks the slices that come to it, in order of members, and copies their rows from the senders' operands
     take, back: each member checks the same slices, and adds to its own rows the values that its slices have in the receivers
     give   where the memory of the other is out of reach, the rows that it takes, dense, in the order in which it takes them

   Members are devices. If axes have been batched, several members live on one device: `local` of them, numbered together with
   the devices in the order of the axes. Arrays have `batch` independent exchanges outside, then the local members, then rows.

     from device e, in its table for device f:   [batch][local of e][local of f][slice]
     in what f has from all devices:             [device e][batch][local of e][local of f][slice] */
#ifndef AX_PLAN_RAGGED_H
#define AX_PLAN_RAGGED_H

#include "ir/number.h"

typedef struct ax_piece { /* rows of the sender's operand, from .. from + size, and where they begin in the receiver's output */
  int64_t from, size, to;
} ax_piece;
enum { AX_PIECE_WORDS = 3 };
_Static_assert(sizeof(ax_piece) == AX_PIECE_WORDS * sizeof(int64_t), "tables are arrays of s64");

typedef struct ax_ragged_shape {
  int64_t batch, local, devices; /* devices: of a group */
  int64_t members, each;         /* devices times local; slices that a member sends to each member */
  int64_t from_rows, to_rows;    /* that slices are of, and that they come to: of operand and output, back of output and operand */
  int64_t row_elems;
  ax_dtype dtype;                /* of rows; back: f32, f64, or complex numbers of such */
  const uint32_t *number, *where; /* of member `local` of device e: number[e * local + l]; and the inverse */
} ax_ragged_shape;

/* Fills number and where, in the arena. Of local_count batched axes, of sizes local[k], number k stood before at[k] of the devices:
   as many as lie along the axes behind it. */
AX_MUST_USE ax_status ax_ragged_number(ax_arena *arena, uint32_t local_count, const int64_t *at, const int64_t *local,
                                       ax_ragged_shape *shape);

typedef struct ax_counts { /* an array of integers, [batch][local][members * each] */
  ax_dtype dtype;
  const void *data;
} ax_counts;

/* A device's slices, as the tables it sends: one for each device. */
void ax_ragged_pack(const ax_ragged_shape *shape, const ax_counts *from, const ax_counts *size, const ax_counts *to,
                    ax_piece *table);

/* The first thing that is wrong with the slices that come to a member, in the order of members and slices; an overlap after all
   else. */
typedef enum ax_fault_kind {
  AX_FAULT_FROM,     /* a negative offset, */
  AX_FAULT_SIZE,     /* size */
  AX_FAULT_TO,       /* or offset in the output */
  AX_FAULT_OPERAND,  /* leaves the sender's rows */
  AX_FAULT_OUTPUT,   /* leaves the receiver's rows */
  AX_FAULT_EXPECTED, /* is of another size than the receiver expects */
  AX_FAULT_OVERLAP   /* lies on `other` with the receiver */
} ax_fault_kind;

typedef struct ax_sent { /* a slice and its sender */
  ax_piece piece;
  uint32_t device, local; /* device: number in its group */
  int64_t number;         /* in the sender's arrays */
} ax_sent;

typedef struct ax_fault {
  ax_fault_kind kind;
  int64_t batch;
  uint32_t device, local; /* the receiver */
  ax_sent sent, other;
  int64_t expected, expected_at; /* recv_sizes[expected_at] of the receiver */
} ax_fault;

typedef struct ax_taking { /* by one device */
  const ax_ragged_shape *shape;
  uint32_t device;        /* its number in its group */
  const ax_piece *received, *packed; /* packed: its own table */
  ax_counts expected;     /* recv_sizes */
  bool agree;             /* sizes must be those expected */
  bool back;              /* in order of members and slices, as those of an operand may lie on each other */
  int64_t (*work)[2];     /* room for members * each */
  /* The operand of a device; NULL: it is elsewhere, and `rows` has what it gave. */
  const void *(*operand)(const void *context, uint32_t device);
  /* The next `bytes` bytes of the rows that a device elsewhere gave; NULL: none is elsewhere. */
  const void *(*rows)(const void *context, uint32_t device, int64_t bytes);
  const void *context;
  void *out;              /* output's elements, where base is NULL */
  const void *base;       /* otherwise these are, and out has nothing yet */
} ax_taking;

/* Takes the rows. False: *fault is the first error, and `out` must not be used. */
bool ax_ragged_take(const ax_taking *taking, ax_fault *fault);

typedef struct ax_giving { /* by one device */
  const ax_ragged_shape *shape;
  uint32_t device;                   /* its number in its group */
  const ax_piece *received, *packed; /* as in ax_taking */
  bool back;
  const void *operand;
} ax_giving;
/* Puts the rows that device `to` takes from this one into `out`, dense; NULL: they are only counted. Returns their bytes. Slices
   that leave their rows have none: the device that they come to finds the fault. */
int64_t ax_ragged_give(const ax_giving *giving, uint32_t to, void *out);
/* sender, other, receiver: the devices of the mesh that those in the fault are. */
void ax_fault_text(ax_text *text, const ax_fault *fault, const ax_ragged_shape *shape, const ax_mesh *mesh, int64_t sender,
                   int64_t other, int64_t receiver);

#endif
