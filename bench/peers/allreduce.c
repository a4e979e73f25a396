/* mpirun -n RANKS build/bench/allreduce: seconds of one MPI_Allreduce of 4 B in a chain of 200 that depend on each other, the
   least of several runs. Answers once and ends: ranks that wait for a question would keep their cores busy. */
#include <mpi.h>
#include <stdio.h>

enum { length = 200, repeats = 50, runs = 7 };

static double chain(float scale) {
  float x = 1, sum;
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = 0; i < repeats * length; i++) {
    MPI_Allreduce(&x, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    x = (sum - x) * scale;
  }
  return (MPI_Wtime() - start) / (repeats * length) + (x != 1);
}

int main(int argc, char **argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (rank == 0) puts("ready"), fflush(stdout), getchar();
  double least = 1e9;
  for (int i = 0; i < runs; i++) {
    double seconds = chain(1 / (float)(ranks - 1));
    if (seconds < least) least = seconds;
  }
  if (rank == 0) printf("%.9g\n", least);
  return MPI_Finalize();
}
