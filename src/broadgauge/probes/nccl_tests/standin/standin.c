/* How do the processes of nccl-tests find each other without MPI? Over one socket each to rank 0.

   A stand-in for libmpi with the few calls that nccl-tests makes (2.10 and later), loaded with
   LD_PRELOAD. Ranks are told by torchrun's contract:

     RANK, WORLD_SIZE            who this process is
     BROADGAUGE_STANDIN_SOCKET   path of a Unix socket that rank 0 makes; else
     MASTER_ADDR, MASTER_PORT    a TCP address that rank 0 listens at
     BROADGAUGE_STANDIN_MARKS    optional: a file descriptor to tell the parent of timed parts

   Between MPI_Barrier and the MPI_Allreduce of a double lies what nccl-tests times. On the marks'
   descriptor one byte is written and one byte awaited: `b` before a barrier, `e` before such a
   reduction, so that the parent can read counters at both, and `f` when all have finished. After
   `b` comes a barrier of our own: by a Unix socket the ranks leave it within a microsecond, by TCP
   within the time that a few bytes take from rank 0.

   Anything unexpected ends the process with a message: peers notice by their sockets. */

#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"

char ompi_mpi_comm_world[512], ompi_mpi_comm_null[512], ompi_mpi_datatype_null[512];
char ompi_mpi_byte[512], ompi_mpi_int[512], ompi_mpi_long[512], ompi_mpi_long_long_int[512];
char ompi_mpi_int64_t[512], ompi_mpi_double[512];
char ompi_mpi_op_sum[2048], ompi_mpi_op_min[2048], ompi_mpi_op_max[2048];

enum { CONNECT_LIMIT_S = 120, RETRY_NS = 20 * 1000 * 1000, LEAVE_AFTER_NS = 300 * 1000 };
enum { MAGIC = 0x42474d31 };

static int world_rank = 0, world_size = 1, marks_fd = -1, is_one_machine = 0;
static int *peers; /* rank 0: a socket for each rank; others: peers[0] */

static void die(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fprintf(stderr, "broadgauge stand-in for MPI, rank %d: ", world_rank);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  fflush(stdout);
  _exit(70);
}

/* A child of a rank ends with it, whatever ended the rank. */
__attribute__((constructor)) static void end_with_parent(void) {
  if (getenv("BROADGAUGE_STANDIN_MARKS")) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static int number(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text && *text ? atoi(text) : otherwise;
}

static void send_all(int fd, const void *data, size_t bytes) {
  for (const char *at = data; bytes;) {
    ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) die("a peer is gone: %s", strerror(errno));
    at += sent, bytes -= (size_t)sent;
  }
}

static void receive_all(int fd, void *data, size_t bytes) {
  for (char *at = data; bytes;) {
    ssize_t got = recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) die("a peer is gone: %s", got ? strerror(errno) : "it closed its socket");
    at += got, bytes -= (size_t)got;
  }
}

/* Tells the parent, and waits for its word. */
static void mark(char what) {
  if (marks_fd < 0) return;
  if (write(marks_fd, &what, 1) != 1 || read(marks_fd, &what, 1) != 1) _exit(70);
}

/* A socket at the address of rank 0: bound and listening (rank 0), or connected. -1: not yet. */
static int open_unix(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) die("the path of the socket is too long: %s", path);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) die("socket: %s", strerror(errno));
  if (world_rank == 0) {
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, world_size))
      die("can't listen at %s: %s", path, strerror(errno));
    return fd;
  }
  if (!connect(fd, (void *)&address, sizeof address)) return fd;
  close(fd);
  return -1;
}

static int open_tcp(void) {
  const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
  if (!host || !port) die("neither BROADGAUGE_STANDIN_SOCKET nor MASTER_ADDR and MASTER_PORT");
  struct addrinfo wanted = {.ai_socktype = SOCK_STREAM}, *found = NULL;
  int trouble = getaddrinfo(host, port, &wanted, &found), on = 1, fd = -1;
  if (trouble) die("MASTER_ADDR %s, MASTER_PORT %s: %s", host, port, gai_strerror(trouble));
  for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int failed = world_rank == 0
                     ? bind(fd, at->ai_addr, at->ai_addrlen) || listen(fd, world_size)
                     : connect(fd, at->ai_addr, at->ai_addrlen);
    if (failed) close(fd), fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0 && world_rank == 0) die("can't listen at %s:%s: %s", host, port, strerror(errno));
  return fd;
}

static int open_socket(void) {
  const char *path = getenv("BROADGAUGE_STANDIN_SOCKET");
  is_one_machine = path && *path;
  return is_one_machine ? open_unix(path) : open_tcp();
}

static void accept_all(void) {
  int listener = open_socket(), on = 1;
  struct timeval limit = {.tv_sec = CONNECT_LIMIT_S};
  setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  for (int connected = 1; connected < world_size; connected++) {
    int32_t hello[3], fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) die("%d of %d ranks came: %s", connected, world_size, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* refused by a Unix socket */
    receive_all(fd, hello, sizeof hello);
    if (hello[0] != MAGIC || hello[1] != world_size) die("a stranger at the socket");
    if (hello[2] < 1 || hello[2] >= world_size || peers[hello[2]] >= 0)
      die("rank %d came twice, or is none", (int)hello[2]);
    peers[hello[2]] = fd;
  }
  close(listener);
}

static void connect_to_root(void) {
  time_t limit = time(NULL) + CONNECT_LIMIT_S;
  while ((peers[0] = open_socket()) < 0) {
    if (time(NULL) > limit) die("rank 0 did not listen within %d s", CONNECT_LIMIT_S);
    nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
  }
  int32_t hello[3] = {MAGIC, world_size, world_rank};
  send_all(peers[0], hello, sizeof hello);
}

/* Rank r's `bytes` come to stand at all + r * bytes on rank 0; `mine` may be there already. */
static void to_root(const void *mine, char *all, size_t bytes) {
  if (world_rank) {
    send_all(peers[0], mine, bytes);
    return;
  }
  if (mine != all) memcpy(all, mine, bytes);
  for (int rank = 1; rank < world_size; rank++) receive_all(peers[rank], all + rank * bytes, bytes);
}

static void from_root(void *data, size_t bytes) {
  if (world_rank) receive_all(peers[0], data, bytes);
  else
    for (int rank = 1; rank < world_size; rank++) send_all(peers[rank], data, bytes);
}

static size_t size_of(MPI_Datatype type) {
  if (type == MPI_BYTE) return 1;
  if (type == MPI_INT) return sizeof(int);
  if (type == MPI_LONG) return sizeof(long);
  if (type == MPI_LONG_LONG) return sizeof(long long);
  if (type == MPI_INT64_T) return sizeof(int64_t);
  if (type == MPI_DOUBLE) return sizeof(double);
  die("a data type that the stand-in does not have");
  return 0;
}

#define COMBINE(TYPE)                                                                      \
  for (int i = 0; i < count; i++) {                                                        \
    TYPE a = ((TYPE *)into)[i], b = ((const TYPE *)from)[i];                               \
    ((TYPE *)into)[i] = op == MPI_SUM ? a + b : op == MPI_MIN ? (b < a ? b : a)            \
                                                              : (a < b ? b : a);           \
  }

static void combine(void *into, const void *from, int count, MPI_Datatype type, MPI_Op op) {
  if (op != MPI_SUM && op != MPI_MIN && op != MPI_MAX) die("an operation other than sum, min, max");
  if (type == MPI_INT) COMBINE(int)
  else if (type == MPI_LONG) COMBINE(long)
  else if (type == MPI_LONG_LONG) COMBINE(long long)
  else if (type == MPI_INT64_T) COMBINE(int64_t)
  else if (type == MPI_DOUBLE) COMBINE(double)
  else die("no reduction of this data type");
}

static char *room(size_t bytes) {
  char *made = malloc(bytes ? bytes : 1);
  if (!made) die("out of memory");
  return made;
}

int MPI_Init(int *argc, char ***argv) {
  (void)argc, (void)argv;
  world_rank = number("RANK", 0), world_size = number("WORLD_SIZE", 1);
  marks_fd = number("BROADGAUGE_STANDIN_MARKS", -1);
  if (world_size < 1 || world_rank < 0 || world_rank >= world_size)
    die("RANK %d of WORLD_SIZE %d", world_rank, world_size);
  peers = (int *)room(sizeof(int) * (size_t)world_size);
  for (int rank = 0; rank < world_size; rank++) peers[rank] = -1;
  if (world_size == 1) return MPI_SUCCESS;
  if (world_rank) connect_to_root();
  else accept_all();
  return MPI_SUCCESS;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Processes of one machine share its clock, and leave at the same moment. Else a rank that waits
   for the others' first message would count the time until they have woken up. */
static void barrier(void) {
  char here = 0, *all = room((size_t)world_size);
  to_root(&here, all, 1);
  int64_t leave_ns = is_one_machine ? now_ns() + LEAVE_AFTER_NS : 0;
  from_root(&leave_ns, sizeof leave_ns);
  while (now_ns() < leave_ns) continue;
  free(all);
}

int MPI_Finalize(void) {
  barrier();
  mark('f');
  return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm comm, int code) {
  (void)comm;
  fflush(stdout);
  _exit(code);
}

int MPI_Comm_rank(MPI_Comm comm, int *rank) {
  (void)comm;
  *rank = world_rank;
  return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int *size) {
  (void)comm;
  *size = world_size;
  return MPI_SUCCESS;
}

/* All in one: nccl-tests splits by NCCL_TESTS_SPLIT only. */
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made) {
  (void)key;
  int lowest = color, highest = color;
  MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, comm);
  MPI_Allreduce(MPI_IN_PLACE, &highest, 1, MPI_INT, MPI_MAX, comm);
  if (lowest != highest) die("groups of ranks are not supported: unset NCCL_TESTS_SPLIT");
  *made = comm;
  return MPI_SUCCESS;
}

int MPI_Comm_free(MPI_Comm *comm) {
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int MPI_Barrier(MPI_Comm comm) {
  (void)comm;
  mark('b');
  barrier();
  return MPI_SUCCESS;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  (void)comm;
  if (root) die("a broadcast from rank %d", root);
  from_root(buffer, (size_t)count * size_of(type));
  return MPI_SUCCESS;
}

int MPI_Gather(const void *given, int given_count, MPI_Datatype given_type, void *got,
               int got_count, MPI_Datatype got_type, int root, MPI_Comm comm) {
  (void)comm, (void)got_count, (void)got_type;
  if (root || given == MPI_IN_PLACE) die("a gather in place, or to rank %d", root);
  to_root(given, got, (size_t)given_count * size_of(given_type));
  return MPI_SUCCESS;
}

int MPI_Allgather(const void *given, int given_count, MPI_Datatype given_type, void *got,
                  int got_count, MPI_Datatype got_type, MPI_Comm comm) {
  (void)comm, (void)given_count, (void)given_type;
  size_t bytes = (size_t)got_count * size_of(got_type);
  char *all = got;
  to_root(given == MPI_IN_PLACE ? all + (size_t)world_rank * bytes : given, all, bytes);
  from_root(got, bytes * (size_t)world_size);
  return MPI_SUCCESS;
}

int MPI_Allreduce(const void *given, void *got, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  (void)comm;
  if (type == MPI_DOUBLE) mark('e');
  size_t bytes = (size_t)count * size_of(type);
  char *all = room(bytes * (size_t)world_size);
  if (given != MPI_IN_PLACE) memcpy(got, given, bytes);
  to_root(got, all, bytes);
  for (int rank = 1; world_rank == 0 && rank < world_size; rank++)
    combine(all, all + (size_t)rank * bytes, count, type, op);
  if (world_rank == 0) memcpy(got, all, bytes);
  from_root(got, bytes);
  free(all);
  return MPI_SUCCESS;
}
