/* The plan: a program on its way to instructions. It consists of buffers, and of operations on them in nested blocks. Passes
   over it see operations, never primitives.

     program  --lower rules (lower.h)-->  plan  --passes (passes.h)-->  --assemble/-->  instructions

   A buffer is stored once for each coordinate along `axes`, the axes on which its value may differ. A value that is the same on
   all devices exists once, and one of them computes it (its owner: coordinate 0 on every other axis). */
#ifndef AX_PLAN_PLAN_H
#define AX_PLAN_PLAN_H

#include "ir/program.h"
#include "plan/cores.h"
#include "plan/kernel.h"
#include "plan/ragged.h"
#include "processes/map.h"

typedef enum ax_buffer_kind { AX_BUFFER_TEMP, AX_BUFFER_INPUT, AX_BUFFER_CONST } ax_buffer_kind;

typedef struct ax_buffer {
  ax_buffer_kind kind;
  ax_type type;      /* dtype and shape: dense, row-major */
  ax_axis_set axes;  /* stored once for each coordinate along these */
  uint32_t index;    /* INPUT: its number */
  const void *data;  /* CONST: borrowed from the program ... */
  struct ax_shared *owner; /* ... or held by this, which the program retains; NULL: by the program alone */
  const struct ax_panels *panels; /* ... and packed in this layout (plan/panels.h); NULL: not packed */
  uint32_t allocation;     /* the buffer whose memory this is; its own id unless it is a view */
  int64_t offset;    /* of a view: bytes into the allocation ... */
  uint32_t loop;     /* ... plus step bytes times the iteration of this loop; AX_NONE for none */
  int64_t step;
  bool updated;      /* of an allocation: kernels that write a part of it rely on the rest written by others (plan/update.c) */
} ax_buffer;

static inline int64_t ax_buffer_bytes(const ax_buffer *buffer) {
  return ax_type_elems(&buffer->type) * (int64_t)ax_dtype_bytes(buffer->type.dtype);
}

enum { AX_GEMM_TERMS = 3 }; /* dimensions */

/* C[b] (+)= sum over t of A[b, t] B[b, t], each matrix row-major with the given leading dimension; b runs over `batch_rank`
   dimensions, t over
   `term_rank` more, and terms are added in their row-major order. B may be packed: then b_offset, b_stride and b_term say where its
   panels begin. */
typedef struct ax_gemm {
  ax_dtype dtype; /* of a and b; c's is ax_product_result's (product/product.h), */
  bool rounds;    /* or the same, if sums are rounded to it: of one term, not accumulated, if ax_product_rounds */
  bool transpose_a, transpose_b, accumulate, packed; /* packed: b is in panels (plan/panels.h) */
  int64_t m, n, k, lda, ldb, ldc;
  uint32_t a, b, c;
  int64_t a_offset, b_offset, c_offset; /* elements */
  uint32_t batch_rank;
  int64_t batch[AX_MAX_RANK], a_stride[AX_MAX_RANK], b_stride[AX_MAX_RANK], c_stride[AX_MAX_RANK]; /* elements */
  uint32_t term_rank;
  int64_t terms[AX_GEMM_TERMS], a_term[AX_GEMM_TERMS], b_term[AX_GEMM_TERMS]; /* how many, and elements from one to the next */
} ax_gemm;

/* Delays operations that could be done earlier: those of a body that is computed again late, so that its values need not be
   held. The scheduler moves none of them before all these buffers can be read. */
typedef struct ax_control_dependence {
  uint32_t count, number;
  const uint32_t *buffers;
  const struct ax_control_dependence *outer; /* that of the call around; NULL: none */
} ax_control_dependence;

/* Every collective is an exchange: each member of a group, in turn or in any order, puts parts of its `in` into the `out` of its
   peers, by copying or combining.

                 peers          combine   source part          place in the peer's out
     psum        ONE shared     ADD       whole                whole
     all_gather  ONE shared     copy      whole                at my index * dst_step
     scatter     ALL            ADD       at peer * src_step   whole
     all_to_all  ALL            copy      at peer * src_step   at my index * dst_step
     pbroadcast  ONE shared     copy      whole, of one alone  whole
     ppermute    PAIRS          copy      whole                whole; an out without source is zero

   Combining takes the members in index order, so results do not depend on the order of arrival. */
typedef enum ax_peers { AX_PEERS_ONE, AX_PEERS_ALL, AX_PEERS_PAIRS } ax_peers;
typedef struct ax_exchange {
  ax_axes names; /* members are numbered row-major over these axes, in this order */
  ax_axis_set axes;
  ax_peers peers;
  const ax_pairs *pairs;
  ax_scalar combine; /* NONE, ADD, MAX, MIN */
  bool alone;        /* only member `source` puts its part; the others only take part */
  int64_t source;
  uint32_t in, out;
  int64_t src_step, dst_step;                                                /* elements */
  uint32_t rank;                                                             /* of the part */
  int64_t dims[AX_MAX_RANK], src_stride[AX_MAX_RANK], dst_stride[AX_MAX_RANK]; /* elements */
  uint32_t id;                                                               /* the same in START and DONE */
} ax_exchange;

/* One side of messages between two devices. A device with a target sends `buffer`. A device with a source receives into it; one
   without a source gets zeros. */
typedef struct ax_mail {
  ax_axes names; /* members are numbered row-major over these axes, in this order */
  ax_axis_set axes;
  const ax_pairs *pairs;
  int64_t link; /* the number of the queue between two devices */
  uint32_t buffer;
} ax_mail;

/* A ragged exchange (ragged.h). Its tables are exchanged like all_to_all's parts. The rows are taken by their receivers instead
   of put by their senders, so only the tables and one more exchange order the members:

     PACK      in, and offsets and sizes                         -> table         my operand is ready, and here are my slices
     exchange  table                                             -> received      all operands are ready, with the slices for me
     TAKE      received, recv_sizes, in (also others'), out      -> out, taken    my rows
     exchange  taken                                             -> released      all members have their rows
     RELEASE   released, in                                                       from here on my operand's memory may be written

   In a group of one, `received` is `table`, and there are no exchanges and no RELEASE. */
typedef enum ax_ragged_step { AX_RAGGED_PACK, AX_RAGGED_TAKE, AX_RAGGED_RELEASE } ax_ragged_step;
enum { AX_RAGGED_OPERANDS = 6 };
typedef struct ax_ragged {
  ax_axes names;
  ax_axis_set axes;
  ax_ragged_shape shape;
  bool back, agree;
  uint32_t in[AX_RAGGED_OPERANDS]; /* as the primitive's: operand, output, input_offsets, send_sizes, output_offsets, recv_sizes */
  uint32_t table, received, work, out, taken, released;
  uint32_t base; /* values of `out` that no slice covers; AX_NONE: out has them already, as a copy of output */
} ax_ragged;

typedef struct ax_ragged_buffer {
  uint32_t buffer;
  bool reads, writes;
} ax_ragged_buffer;
enum { AX_RAGGED_MOST = 8 };

/* A primitive's own code over buffers, for work that is no loop nest: scatters, sorts. It is cut into parts by shapes alone, and
   parts may run at the same time. `data` is the plan's and is only read. */
typedef struct ax_routine {
  ax_status (*run)(const void *data, void *const *memory, uint32_t part); /* memory: by buffer. A failure sets no message */
  const void *data;
  uint32_t in_count, out_count, parts;
  uint32_t *buffers; /* those that are read, then those that are written */
  bool updates;      /* it writes only parts of its results, and the rest keeps its old value: results are read too */
  bool in_place;     /* the first result may be in the memory of the first operand: a part reads all that it overwrites before, and what
                        no other part reads */
  bool adds;         /* it adds to elements of its result, one after the other, in a dtype that keeps what is added */
  bool moves;        /* it only moves numbers; other operations do the equation's arithmetic */
  double time;       /* nanoseconds on one thread, roughly */
  const char *name;  /* in texts; NULL: the primitive's */
} ax_routine;

/* Kernels and products over the same rows, done one block of rows after another: each member over rows b .. b + step, then over
   the next ones. So a row that one member makes, or that several read, is still in the cache when the next member needs it.

   A kernel is ranged over a dimension of `extent` steps. It may stand for `outer` such kernels; in number a, each slot begins a
   * outer_step bytes further on. A product has `extent` rows, and there are `outer` of them; each block reads the whole right
   factor. Rows are numbered over both. If one member writes an allocation that another touches, both touch it at the same row,
   so the order of blocks does not matter. An allocation that only members touch is local: it has no memory but a block of rows
   in each thread that computes. */
typedef struct ax_rows_slot {
  int64_t outer_step; /* bytes; 0 for a product, which has its own strides */
  int64_t row_bytes;  /* local allocation: bytes from row to row; 0: it is in memory */
  int64_t place;      /* local allocation: its offset in the block */
} ax_rows_slot;

typedef struct ax_rows {
  uint32_t count;
  struct ax_op *members; /* KERNEL and GEMM operations, in order */
  int64_t outer, extent;
  int64_t step;          /* rows in a block */
  uint32_t parts;        /* ranges worth cutting the rows into */
  uint32_t slot_count;   /* of all members */
  ax_rows_slot *slots;   /* the first member's, then the next one's */
  int64_t block_bytes;   /* for local allocations */
} ax_rows;
enum { AX_ROWS_SLOTS = 192, AX_ROWS_MEMBERS = 32, AX_ROWS_BYTES = 16 << 20 }; /* limits of a group */

typedef struct ax_block {
  struct ax_op *ops;
  uint32_t count, capacity;
} ax_block;

typedef enum ax_op_kind {
  AX_OP_NONE, /* dropped; the pass at work sweeps its block before it ends */
#define AX_OP_KIND(kind, rules) AX_OP_##kind,
#include "plan/op_kinds.def"
#undef AX_OP_KIND
  AX_OP_KINDS /* how many there are */
} ax_op_kind;
typedef struct ax_op {
  ax_op_kind kind;
  const ax_eqn *eqn;         /* its equation, for messages, */
  const ax_program *program; /* and its program */
  ax_axis_set axes;          /* run once for each coordinate along these; of a loop or branch: along which control differs */
  ax_axis_set diverging;     /* axes along which control differs around it */
  const ax_control_dependence *control_dependence;       /* until the schedule is made; NULL: none */
  union {
    ax_bound kernel;
    ax_rows *rows;
    ax_gemm *gemm;
    struct {
      uint32_t *in, *out;
      ax_callback *callback; /* the callback it calls; NULL: none, or none to look up */
    } eval;
    ax_routine *routine;
    ax_exchange *exchange;
    ax_mail *message;
    struct {
      ax_ragged *ragged;
      ax_ragged_step step;
    };
    struct {
      ax_cores *cores;
      ax_cores_step cores_step;
    };
    struct {
      uint32_t result;   /* number of the equation's result */
      uint32_t count;    /* buffers: that result, then float operands; a NaN or infinity of an operand was not made here */
      uint32_t *buffers;
    } check;
    struct {
      uint32_t id;        /* of the loop, for views */
      int64_t trips;      /* -1: while `condition` (a bool scalar that `test` computes) holds */
      ax_block test, body;
      uint32_t condition;
    } loop;
    struct {
      uint32_t index; /* an s32 scalar, clamped to the blocks there are */
      uint32_t count;
      ax_block *blocks;
    } branch;
  };
} ax_op;

/* A body that was lowered once, and the number of its calls (plan/fragment.c). */
typedef struct ax_called {
  uint32_t op_count, call_count;
  const struct ax_called *next;
} ax_called;

typedef struct ax_plan_options {
  bool reference; /* LOCAL primitives are lowered to their eval rules */
  uint32_t check; /* AX_CHECK_*: finds equations that make such numbers */
  bool unchecked_ragged; /* ragged exchanges do not compare the sizes of senders and receivers */
  bool contract; /* products that are added are not rounded by themselves (plan/contract.c) */
  const ax_hooks *hooks; /* callbacks by name, and whether debug_print's text is read; NULL: no host */
  struct ax_runtime *runtime; /* gets code for parts of kernels while they are lowered; NULL: they stay reference code */
  const ax_process_map *map;  /* which process has which device; NULL: all devices are of one */
  const struct ax_plan_pass *passes; /* for tests: replaces ax_plan_passes (plan/passes.h); NULL */
  uint32_t pass_count;
} ax_plan_options;

typedef struct ax_plan {
  ax_arena arena;
  ax_arena drafts; /* kernels and lists of operations as lowered, and lowering's tables: freed after fusion */
  ax_program *program; /* what each device runs; retained: equations and constants are borrowed from it */
  ax_program **kept;   /* programs that rules made of single equations, borrowed from likewise */
  uint32_t kept_count, kept_capacity;
  ax_cores *cores; /* kernels that users wrote, the latest first, without copies of calls; owned */
  ax_mesh mesh;
  ax_plan_options options;
  ax_buffer *buffers;
  uint32_t buffer_count, buffer_capacity, loop_count, exchange_count, control_dependence_count;
  ax_block block;
  const ax_called *called; /* the latest first */
  uint32_t in_count, out_count;
  uint32_t *in, *out; /* buffers; an `out` is a whole allocation */
  ax_axis_set *out_axes; /* by result: those that cut its array. Its memory varies along fewer if some blocks are the same */
  const bool *donate; /* by input: its memory may be overwritten; NULL: none */
} ax_plan;

void ax_plan_destroy(ax_plan *plan);
/* Consumes `program`: it is released with the plan, or at once on failure. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_plan_keep(ax_plan *plan, ax_program *program);
/* `allocation` AX_NONE: the buffer gets memory of its own. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_plan_add_buffer(ax_plan *plan, const ax_buffer *buffer, uint32_t *out);
void ax_plan_text(ax_text *text, const ax_plan *plan);
/* Adds to arrays of plan->buffer_count how often each allocation is read and written: every load of every operation, loop
   conditions, branch indices, and results. */
void ax_plan_count(const ax_plan *plan, uint32_t *reads, uint32_t *writes);
/* Whether the buffer is all of its allocation's memory, perhaps under other dimensions or as another dtype. */
bool ax_is_whole(const ax_plan *plan, uint32_t buffer);
/* Likewise, with its own dtype. */
bool ax_is_all(const ax_plan *plan, uint32_t buffer);
/* Whether the buffer is all of a temporary allocation that one operation writes and one reads, by these counts. */
bool ax_is_passed_on(const ax_plan *plan, const uint32_t *reads, const uint32_t *writes, uint32_t buffer);
/* Drops the operations that are AX_OP_NONE. */
void ax_block_sweep(ax_block *block);
/* Whether the operation is a check, or belongs to an equation with order or state (ir/prim.h). Such operations keep their order
   among each other, and are neither dropped nor done twice, whatever their buffers allow. Operations inside it are not
   considered. */
bool ax_op_is_ordered(const ax_op *op);
/* Whether it is an ordered call of the host, which devices make one after the other. */
bool ax_op_takes_turns(const ax_op *op);
/* Whether it sends or receives messages, or holds an operation that does. An operation that waits for other devices is not moved
   before it, and one that others wait for is not moved behind it. Other devices may be at other places of the program, and wait
   for each other only as the program says. */
bool ax_op_has_messages(const ax_op *op);
/* Whether it is a kernel that only writes `*to`, element by element, from `*from` at positions *at. */
bool ax_op_is_copy(const ax_op *op, uint32_t *to, uint32_t *from, const ax_position **at);
/* Whether it also copies all of `*from`, in its order. */
bool ax_op_copies_all(const ax_op *op, uint32_t *to, uint32_t *from);

/* Nanoseconds of one run on one thread, roughly. 0 for loops and branches: the operations inside them count by themselves. */
double ax_op_time(const ax_plan *plan, const ax_op *op);
/* The same of a product; and of a member of a group of rows, of a kernel for one outer index. Without beginning it. */
double ax_gemm_time(const ax_gemm *gemm);
double ax_op_member_time(const ax_op *member);
/* The members of a group of rows; of any other kind, the operation itself, and *count is 1. */
ax_op *ax_op_members(ax_op *op, uint32_t *count);

/* The buffers of a kernel or a product: a kernel's slots; a product's two factors, then its result. */
typedef struct ax_op_use {
  uint32_t buffer;
  bool reads, writes;
} ax_op_use;
uint32_t ax_op_slots(const ax_op *op);
ax_op_use ax_op_slot(const ax_op *op, uint32_t index);

/* A copy in the arena, with its own list of buffers. NULL: out of memory. */
ax_routine *ax_routine_copy(ax_arena *arena, const ax_routine *routine);
/* Consumes the kernel: it is released with the plan, or at once on failure. AX_OUT_OF_MEMORY. */
AX_MUST_USE ax_status ax_plan_keep_cores(ax_plan *plan, const ax_cores *cores, ax_cores **out);
/* Lists the buffers that a step of a ragged exchange touches, in the order of its instruction's operands; returns how many. */
uint32_t ax_ragged_buffers(const ax_ragged *ragged, ax_ragged_step step, ax_ragged_buffer *out);

/* Block `index` inside an operation. NULL: beyond the last. */
ax_block *ax_op_block(ax_op *op, uint32_t index);
/* Calls visit(context, buffer, writes) for each buffer that the operation itself touches, without those of blocks inside it. */
typedef void (*ax_visit)(void *context, uint32_t buffer, bool writes);
void ax_op_visit(const ax_op *op, ax_visit visit, void *context);
/* The same with the operations inside it. */
void ax_op_visit_all(ax_op *op, ax_visit visit, void *context);
/* Whether an operation reads and writes an allocation; ax_op_access_all: with the operations inside it. */
typedef struct ax_op_access {
  bool reads, writes;
} ax_op_access;
ax_op_access ax_op_access_of(const ax_plan *plan, const ax_op *op, uint32_t allocation);
ax_op_access ax_op_access_all(const ax_plan *plan, const ax_op *op, uint32_t allocation);
/* Calls visit(context, op) for an operation, or for those of a block in order. Each is followed by the operations inside it. */
typedef void (*ax_visit_op)(void *context, ax_op *op);
void ax_op_walk(ax_op *op, ax_visit_op visit, void *context);
void ax_block_walk(const ax_block *block, ax_visit_op visit, void *context);
/* Calls visit(context, block, is_body) for each block inside `block`, inner ones first, and for `block` itself. is_body: it is a
   loop's body, which runs again and again. Stops at the first failure. */
typedef ax_status (*ax_visit_block)(void *context, ax_block *block, bool is_body);
AX_MUST_USE ax_status ax_blocks_visit(ax_block *block, ax_visit_block visit, void *context);

#endif
