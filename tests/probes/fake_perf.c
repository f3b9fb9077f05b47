/* Stands in for a program of nccl-tests: makes its MPI calls in its order, takes its options, and
   sends each iteration's bytes from the last rank to rank 0 over TCP instead of an all-reduce.

   FAKE_PORT  where rank 0 listens for the bytes; unset: nothing is sent
   FAKE_TIME  seconds an iteration, rank r times (r + 1)
   FAULT      crash | hang | wrong, on the rank FAULT_RANK

   With -DWITH_JSON it knows -J, as nccl-tests does from 2.18 on. */

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"

static int rank, ranks, stream = -1;
static char *bytes;

static const char *variable(const char *name, const char *otherwise) {
  const char *text = getenv(name);
  return text ? text : otherwise;
}

static void connect_stream(void) {
  int port = atoi(variable("FAKE_PORT", "0")), on = 1;
  if (!port || ranks < 2 || (rank && rank != ranks - 1)) return;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  inet_pton(AF_INET, getenv("MASTER_ADDR"), &address.sin_addr);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (rank == 0) {
    bind(fd, (void *)&address, sizeof address);
    listen(fd, 1);
    stream = accept(fd, NULL, NULL);
    close(fd);
  } else {
    while (connect(fd, (void *)&address, sizeof address)) {
      close(fd);
      usleep(20000);
      fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    stream = fd;
  }
}

static void collective(size_t size) {
  struct timespec pause = {0};
  double seconds = atof(variable("FAKE_TIME", "0.001")) * (rank + 1);
  pause.tv_nsec = (long)(seconds * 1e9);
  nanosleep(&pause, NULL);
  if (stream < 0) return;
  for (size_t done = 0; done < size;) {
    ssize_t moved = rank ? send(stream, bytes + done, size - done, MSG_NOSIGNAL)
                         : recv(stream, bytes + done, size - done, 0);
    if (moved <= 0) exit(3);
    done += (size_t)moved;
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double bench(size_t size, int iterations, int check, long long *wrong) {
  collective(size);
  MPI_Barrier(MPI_COMM_WORLD);
  double began = now();
  for (int i = 0; i < iterations; i++) collective(size);
  double mean = (now() - began) / iterations;
  MPI_Allreduce(MPI_IN_PLACE, &mean, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  if (check) {
    collective(size);
    MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  }
  return mean;
}

int main(int argc, char **argv) {
  size_t size = 0;
  int iterations = 20, check = 1;
  const char *json = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "-b")) size = strtoull(argv[i + 1], NULL, 10);
    else if (!strcmp(argv[i], "-n")) iterations = atoi(argv[i + 1]);
    else if (!strcmp(argv[i], "-c")) check = atoi(argv[i + 1]);
#ifdef WITH_JSON
    else if (!strcmp(argv[i], "-J")) json = argv[i + 1];
#endif
    else if (!strchr("edtgaw", argv[i][1])) {
      fprintf(stderr, "invalid option %s\n", argv[i]);
      return 1;
    }
  }
#ifdef WITH_JSON
  if (check > 99) puts("output_file");
#endif
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int is_faulty = rank == atoi(variable("FAULT_RANK", "0"));
  const char *fault = is_faulty ? variable("FAULT", "") : "";
  char hosts[64] = {0}, id[128] = {0}, line[2048] = {0}, *lines = malloc(2048 * (size_t)ranks);
  MPI_Comm comm;
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, hosts, 1, MPI_BYTE, MPI_COMM_WORLD);
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
  snprintf(line, sizeof line, "#  Rank %2d Pid %6d device %2s\n", rank, (int)getpid(),
           variable("NCCL_TESTS_DEVICE", "?"));
  MPI_Gather(line, 2048, MPI_BYTE, lines, 2048, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Bcast(id, sizeof id, MPI_BYTE, 0, comm);
  MPI_Barrier(MPI_COMM_WORLD);
  if (!strcmp(fault, "crash")) {
    puts("fake NCCL failure: unhandled system error");
    return 3;
  }
  bytes = calloc(1, size);
  connect_stream();
  MPI_Barrier(MPI_COMM_WORLD);
  while (!strcmp(fault, "hang")) pause();
  long long wrong = !strcmp(fault, "wrong");
  for (int i = 0; i < 2; i++) collective(size);
  double out = bench(size, iterations, check, &wrong);
  double in = bench(size, iterations, check, &wrong);
  double rates[] = {(double)size / out / 1e9, (double)size / in / 1e9};
  if (rank == 0) {
    for (int r = 0; r < ranks; r++) fputs(lines + 2048 * r, stdout);
    printf("%12zu  %12zu     float     sum      -1", size, size / 4);
    printf("  %7.2f  %6.2f  %6.2f  ", out * 1e6, rates[0], rates[0]);
    printf(check ? "%6g" : "   N/A", (double)wrong);
    printf("  %7.2f  %6.2f  %6.2f  ", in * 1e6, rates[1], rates[1]);
    printf(check ? "%6g\n" : "   N/A\n", (double)wrong);
    printf("# Out of bounds values : %lld %s\n", wrong, wrong ? "FAILED" : "OK");
  }
  if (rank == 0 && json) {
    FILE *file = fopen(json, "wx");
    fprintf(file, "{\"version\":1,\"nccl_version\":22809,\"results\":[{\"size\":%zu,", size);
    fprintf(file, "\"out_of_place\":{\"time\":%f,\"bus_bw\":%f,", out * 1e6, rates[0]);
    fprintf(file, check ? "\"nwrong\":%f}}]," : "\"nwrong\":null}}],", (double)wrong);
    fprintf(file, "\"out_of_bounds\":{\"count\":%lld}}", wrong);
    fclose(file);
  }
  MPI_Comm_free(&comm);
  MPI_Finalize();
  return wrong ? 5 : 0;
}
