/* Programs of many processes written by hand in C and MPI, beside the same as programs of Axle, by turns in one run:
   mpirun -n P bench_by_hand [--once]. P is a power of two; --once runs few steps, for a test of the bits alone. by_hand.py has the same in Python and mpi4py. All add and multiply in the same order,
   so the bits are equal, which bench/processes.py compares.

     ring    an all-reduce of f32[n] in a ring: sums of parts go once around, and then the results; times 1/P, so that it can be repeated
     halo    a step of the heat equation on a grid that is cut by rows: rows at the edges are exchanged
     fft     a 2-D Fourier transform: rows, a transpose between the processes, rows again, and back */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spread.h"

typedef struct problem {
  const char *name;
  int64_t n;       /* elements of the ring's vector; rows and columns of the grid, and of the transform */
  int64_t steps;   /* in one run */
  uint32_t arrays; /* that a step turns into others */
  ax_function body;
  void (*by_hand)(const struct problem *p, float **x, float **work); /* one step; the result is in x, which may be swapped with work */
} problem;

static int processes, rank, before, after; /* the neighbours; MPI_PROC_NULL at the ends of the grid */
static float *turns;                       /* of the transform: cos and sin of -2 pi k / n, as two rows */
static float *rows_beside;                 /* two more rows: of the neighbours, zeros where there is none; or for the transform */

static const float alpha = 0.2f;

/* --- The ring --- */

static int64_t part_of(int step) { return ((rank - step) % processes + processes) % processes; }

static void pass_on(const float *from, float *into, int64_t count) {
  MPI_Sendrecv(from, (int)count, MPI_FLOAT, (rank + 1) % processes, 0, into, (int)count, MPI_FLOAT, (rank + processes - 1) % processes, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void ring_by_hand(const problem *p, float **x, float **work) {
  const int64_t part = p->n / processes;
  const float share = 1 / (float)processes;
  float *all = x[0], *came = work[0];
  for (int s = 0; s + 1 < processes; s++) {
    pass_on(all + part_of(s) * part, came, part);
    float *mine = all + part_of(s + 1) * part;
    for (int64_t i = 0; i < part; i++) mine[i] += came[i];
  }
  float *done = all + part_of(processes - 1) * part;
  for (int64_t i = 0; i < part; i++) done[i] *= share;
  for (int s = 0; s + 1 < processes; s++) pass_on(all + part_of(s - 1) * part, all + part_of(s) * part, part);
}

static ax_value ring_index(int64_t step) { /* part_of, where the rank is a value */
  return ax_rem(ax_add(ax_axis_index("x"), (double)(2 * processes - step)), (double)processes);
}

static AX_BODY(ring) {
  const problem *p = context;
  const int64_t part = p->n / processes;
  ax_value all = ax_reshape(in[0], AX_DIMS(processes, part));
  ax_value sum = ax_dynamic_at(all, ring_index(0), 0);
  for (int s = 0; s + 1 < processes; s++)
    sum = ax_add(ax_dynamic_at(all, ring_index(s + 1), 0), ax_pshift(sum, "x", 1, true));
  sum = ax_mul(sum, 1.0 / processes);
  all = ax_dynamic_at_set(all, sum, ring_index(processes - 1), 0);
  for (int s = 0; s + 1 < processes; s++) {
    sum = ax_pshift(sum, "x", 1, true);
    all = ax_dynamic_at_set(all, sum, ring_index(s), 0);
  }
  out[0] = ax_reshape(all, AX_DIMS(p->n));
}

/* --- The grid: rows * n elements in each process; by hand, with a row of the neighbour's on both sides --- */

static void heat_row(const float *up, const float *here, const float *down, float *out, int64_t n) {
  for (int64_t j = 0; j < n; j++) {
    const float left = j > 0 ? here[j - 1] : 0, right = j + 1 < n ? here[j + 1] : 0;
    out[j] = here[j] + alpha * (((up[j] + down[j]) + (left + right)) - 4 * here[j]);
  }
}

static void halo_by_hand(const problem *p, float **x, float **work) {
  const int64_t n = p->n, rows = n / processes;
  const float *u = x[0];
  float *above = rows_beside, *below = rows_beside + n;
  MPI_Sendrecv(u, (int)n, MPI_FLOAT, before, 0, below, (int)n, MPI_FLOAT, after, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(u + (rows - 1) * n, (int)n, MPI_FLOAT, after, 0, above, (int)n, MPI_FLOAT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int64_t i = 0; i < rows; i++)
    heat_row(i > 0 ? u + (i - 1) * n : above, u + i * n, i + 1 < rows ? u + (i + 1) * n : below, work[0] + i * n, n);
  float *next = work[0];
  work[0] = x[0], x[0] = next;
}

static AX_BODY(halo) {
  (void)context;
  ax_value u = in[0];
  ax_value above = ax_pshift(ax_slice_in_dim(u, -1, AX_END, 1, 0), "x", 1, false);
  ax_value below = ax_pshift(ax_slice_in_dim(u, 0, 1, 1, 0), "x", -1, false);
  ax_value tall = ax_concatenate(AX_VALUES(above, u, below), 0);
  ax_value wide = ax_pad(u, ax_full(AX_F32, AX_DIMS(), 0), AX_DIMS(0, 1), AX_DIMS(0, 1), AX_DIMS(0, 0));
  ax_value sum = ax_add(ax_add(ax_index(tall, ":-2"), ax_index(tall, "2:")), ax_add(ax_index(wide, ":, :-2"), ax_index(wide, ":, 2:")));
  out[0] = ax_add(u, ax_mul(alpha, ax_sub(sum, ax_mul(4, u))));
}

/* --- The transform: real and imaginary parts, rows in each process. A row's stage turns [2, m, s] into [m, 2, s]: sums, and
   differences that are turned (Stockham's order, which needs no bits reversed). --- */

static void stage(const float *re, const float *im, float *re_out, float *im_out, int64_t m, int64_t s) {
  for (int64_t k = 0; k < m; k++) {
    const float c = turns[k * s], d = turns[m * s + k * s];
    const float *a_re = re + k * s, *b_re = re + (k + m) * s, *a_im = im + k * s, *b_im = im + (k + m) * s;
    float *sum_re = re_out + 2 * k * s, *sum_im = im_out + 2 * k * s, *turned_re = sum_re + s, *turned_im = sum_im + s;
    for (int64_t q = 0; q < s; q++) {
      const float x = a_re[q] - b_re[q], y = a_im[q] - b_im[q];
      sum_re[q] = a_re[q] + b_re[q], sum_im[q] = a_im[q] + b_im[q];
      turned_re[q] = x * c - y * d, turned_im[q] = x * d + y * c;
    }
  }
}

static void transform_row(float *re, float *im, int64_t n) {
  float *from[2] = {re, im}, *into[2] = {rows_beside, rows_beside + n};
  for (int64_t m = n / 2, s = 1; m >= 1; m /= 2, s *= 2) {
    stage(from[0], from[1], into[0], into[1], m, s);
    for (int i = 0; i < 2; i++) {
      float *other = from[i];
      from[i] = into[i], into[i] = other;
    }
  }
  if (from[0] == re) return;
  memcpy(re, from[0], (size_t)n * sizeof(float));
  memcpy(im, from[1], (size_t)n * sizeof(float));
}

/* The transpose of the whole: each process sends the columns that are another's rows, and turns around what came. */
static void transpose_by_hand(float *x, float *work, int64_t n) {
  const int64_t rows = n / processes;
  for (int p = 0; p < processes; p++)
    for (int64_t i = 0; i < rows; i++) memcpy(work + (p * rows + i) * rows, x + i * n + p * rows, (size_t)rows * sizeof(float));
  MPI_Alltoall(MPI_IN_PLACE, 0, MPI_FLOAT, work, (int)(rows * rows), MPI_FLOAT, MPI_COMM_WORLD);
  for (int64_t i = 0; i < n; i += 8) /* work is [n, rows]; eight rows at a time stay in the cache */
    for (int64_t j = 0; j < rows; j++)
      for (int64_t k = i; k < i + 8; k++) x[j * n + k] = work[k * rows + j];
}

static void fft_by_hand(const problem *p, float **x, float **work) {
  const int64_t n = p->n, rows = n / processes;
  const float scale = 1 / (float)n;
  for (int pass = 0; pass < 2; pass++) {
    for (int64_t i = 0; i < rows; i++) transform_row(x[0] + i * n, x[1] + i * n, n);
    for (int a = 0; a < 2; a++) transpose_by_hand(x[a], work[a], n);
  }
  for (int a = 0; a < 2; a++)
    for (int64_t i = 0; i < rows * n; i++) x[a][i] *= scale;
}

/* z: real and imaginary parts, f32[rows, n] */
static void transform_rows(ax_value *z, int64_t rows, int64_t n) {
  const ax_type type = ax_array_type(AX_F32, AX_DIMS(2, n / 2));
  ax_value table = ax_constant(&type, turns);
  for (int64_t m = n / 2, s = 1; m >= 1; m /= 2, s *= 2) {
    ax_value turn[2], sum[2], less[2];
    for (int a = 0; a < 2; a++) {
      ax_value pair = ax_reshape(z[a], AX_DIMS(rows, 2, m, s)), first = ax_at(pair, 0, 1), second = ax_at(pair, 1, 1);
      sum[a] = ax_add(first, second), less[a] = ax_sub(first, second);
      turn[a] = ax_reshape(ax_slice_in_dim(ax_at(table, a, 0), 0, AX_END, s, 0), AX_DIMS(1, m, 1));
    }
    ax_value turned[2] = {ax_sub(ax_mul(less[0], turn[0]), ax_mul(less[1], turn[1])),
                          ax_add(ax_mul(less[0], turn[1]), ax_mul(less[1], turn[0]))};
    for (int a = 0; a < 2; a++) z[a] = ax_reshape(ax_stack(AX_VALUES(sum[a], turned[a]), 2), AX_DIMS(rows, n));
  }
}

static ax_value transposed(ax_value x) { return ax_all_to_all(ax_transpose(x, AX_DIMS(1, 0)), "x", 0, 1, true); }

static AX_BODY(fft) {
  const problem *p = context;
  ax_value z[2] = {in[0], in[1]};
  for (int pass = 0; pass < 2; pass++) {
    transform_rows(z, p->n / processes, p->n);
    for (int a = 0; a < 2; a++) z[a] = transposed(z[a]);
  }
  for (int a = 0; a < 2; a++) out[a] = ax_mul(z[a], 1.0 / (double)p->n);
}

static void make_turns(int64_t n) {
  turns = realloc(turns, (size_t)n * sizeof(float));
  for (int64_t k = 0; k < n / 2; k++) {
    const double angle = -2 * acos(-1) * (double)k / (double)n;
    turns[k] = (float)cos(angle), turns[n / 2 + k] = (float)sin(angle);
  }
}

/* --- Measuring --- */

static const problem problems[] = {{"ring", 1 << 14, 200, 1, ring, ring_by_hand}, {"ring", 1 << 18, 40, 1, ring, ring_by_hand},
                                   {"ring", 1 << 22, 4, 1, ring, ring_by_hand},   {"halo", 256, 200, 1, halo, halo_by_hand},
                                   {"halo", 2048, 20, 1, halo, halo_by_hand},     {"fft", 256, 20, 2, fft, fft_by_hand},
                                   {"fft", 1024, 2, 2, fft, fft_by_hand}};

static bool of_vectors(const problem *p) { return p->by_hand == ring_by_hand; }
static int64_t elems_of(const problem *p) { return of_vectors(p) ? p->n : p->n * p->n / processes; }

static ax_type block_of(const problem *p) {
  return of_vectors(p) ? ax_array_type(AX_F32, AX_DIMS(p->n)) : ax_array_type(AX_F32, AX_DIMS(p->n / processes, p->n));
}

/* Numbers that by_hand.py makes too. */
static void fill(float *x, int64_t count, uint32_t array) {
  for (int64_t i = 0; i < count; i++) {
    const uint64_t place = (uint64_t)(rank * count + i) * 2654435761u + array * 97;
    x[i] = (float)(place % 1009) / 1024;
  }
}

static double run_by_hand(const problem *p, float **x, float **work) {
  for (uint32_t a = 0; a < p->arrays; a++) fill(x[a], elems_of(p), a);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = spread_seconds();
  for (int64_t s = 0; s < p->steps; s++) p->by_hand(p, x, work);
  return (spread_seconds() - start) / (double)p->steps;
}

static void compare(ax_runtime *runtime, const problem *p, int rounds) {
  const int64_t elems = elems_of(p);
  const ax_type block = block_of(p);
  float *x[spread_most], *work[spread_most], *result[spread_most];
  double ours = 1e9, theirs = 1e9, took;
  char what[64];
  for (uint32_t a = 0; a < p->arrays; a++) {
    x[a] = malloc((size_t)elems * sizeof(float)), work[a] = malloc((size_t)elems * sizeof(float));
    result[a] = malloc((size_t)elems * sizeof(float));
    fill(x[a], elems, a);
  }
  make_turns(p->n);
  rows_beside = calloc((size_t)(2 * p->n), sizeof(float));
  spread s = spread_create(runtime, AX_CLOSURE(p->body, p->arrays, p->arrays, p), p->steps, &block, (const float *const *)x);
  const double start = spread_seconds();
  for (int round = 0; spread_goes_on(round, rounds, start); round++) {
    MPI_Barrier(MPI_COMM_WORLD);
    if ((took = spread_run(&s, p->steps, result)) < ours) ours = took;
    if ((took = run_by_hand(p, x, work)) < theirs) theirs = took;
  }
  snprintf(what, sizeof what, "%s %lld", p->name, (long long)p->n);
  spread_report(what, "Axle", ours, p->arrays, result, elems);
  spread_report(what, "C", theirs, p->arrays, x, elems);
  spread_release(&s);
  for (uint32_t a = 0; a < p->arrays; a++) free(x[a]), free(work[a]), free(result[a]);
  free(rows_beside);
}

int main(int argc, char **argv) {
  int threads;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &threads);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &processes);
  before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  after = rank + 1 < processes ? rank + 1 : MPI_PROC_NULL;
  ax_runtime *runtime;
  ax_must(ax_runtime_create(&(ax_runtime_options){.processes = AX_MPI, .workers = 1}, &runtime));
  const bool once = argc > 1 && strcmp(argv[1], "--once") == 0;
  for (size_t i = 0; i < sizeof problems / sizeof problems[0]; i++) {
    problem p = problems[i];
    if (once && p.steps > 3) p.steps = 3;
    compare(runtime, &p, once ? 1 : 9);
  }
  ax_runtime_release(runtime);
  free(turns);
  return MPI_Finalize();
}
