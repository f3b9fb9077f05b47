/* Calls everything that the stand-in for MPI has, and prints what came of it as JSON.

   With WAITS=1 the last rank leaves before the last barrier. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpi.h"

static double reduced_double(double mine, MPI_Op op) {
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return mine;
}

int main(int argc, char **argv) {
  int rank, size, color = getenv("SPLIT") != NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm comm;
  MPI_Comm_split(MPI_COMM_WORLD, color * rank, rank, &comm);
  int64_t squares[256], lowest = -rank;
  squares[rank] = (int64_t)rank * rank;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, squares, 8, MPI_BYTE, MPI_COMM_WORLD);
  int secret = rank ? 0 : 4711, smallest = 100 - rank;
  MPI_Bcast(&secret, sizeof secret, MPI_BYTE, 0, comm);
  double thirds[256], third = rank / 3.0;
  MPI_Gather(&third, 1, MPI_DOUBLE, thirds, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &smallest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  long longest = rank;
  MPI_Allreduce(MPI_IN_PLACE, &longest, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  long long given = rank, total = 0;
  MPI_Allreduce(&given, &total, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  double most = reduced_double(rank + 0.5, MPI_MAX), sum = reduced_double(rank + 0.5, MPI_SUM);
  if (getenv("WAITS") && rank == size - 1) _exit(9);
  MPI_Barrier(MPI_COMM_WORLD);
  printf("{\"rank\": %d, \"secret\": %d, \"lowest\": %ld, \"smallest\": %d, \"longest\": %ld, "
         "\"total\": %lld, \"most\": %g, \"sum\": %g, \"squares\": [",
         rank, secret, (long)lowest, smallest, longest, total, most, sum);
  for (int r = 0; r < size; r++) printf("%s%ld", r ? ", " : "", (long)squares[r]);
  printf("], \"thirds\": [");
  for (int r = 0; rank == 0 && r < size; r++) printf("%s%.17g", r ? ", " : "", thirds[r]);
  puts("]}");
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
