/* The part of MPI that nccl-tests uses, as standin.c has it.

   Handles are the addresses of the objects that Open MPI's binaries name, so that nccl-tests built
   against Open MPI and nccl-tests built against this header both run with the stand-in. */

#ifndef BROADGAUGE_STANDIN_MPI_H
#define BROADGAUGE_STANDIN_MPI_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_op_t *MPI_Op;

/* Sizes in bytes. Source: the symbol table of Open MPI 4.1.4's libmpi.so.40. */
extern char ompi_mpi_comm_world[512];
extern char ompi_mpi_comm_null[512];
extern char ompi_mpi_datatype_null[512];
extern char ompi_mpi_byte[512];
extern char ompi_mpi_int[512];
extern char ompi_mpi_long[512];
extern char ompi_mpi_long_long_int[512];
extern char ompi_mpi_int64_t[512];
extern char ompi_mpi_double[512];
extern char ompi_mpi_op_sum[2048];
extern char ompi_mpi_op_min[2048];
extern char ompi_mpi_op_max[2048];

#define MPI_COMM_WORLD ((MPI_Comm)(void *)ompi_mpi_comm_world)
#define MPI_COMM_NULL ((MPI_Comm)(void *)ompi_mpi_comm_null)
#define MPI_DATATYPE_NULL ((MPI_Datatype)(void *)ompi_mpi_datatype_null)
#define MPI_BYTE ((MPI_Datatype)(void *)ompi_mpi_byte)
#define MPI_INT ((MPI_Datatype)(void *)ompi_mpi_int)
#define MPI_LONG ((MPI_Datatype)(void *)ompi_mpi_long)
#define MPI_LONG_LONG ((MPI_Datatype)(void *)ompi_mpi_long_long_int)
#define MPI_INT64_T ((MPI_Datatype)(void *)ompi_mpi_int64_t)
#define MPI_DOUBLE ((MPI_Datatype)(void *)ompi_mpi_double)
#define MPI_SUM ((MPI_Op)(void *)ompi_mpi_op_sum)
#define MPI_MIN ((MPI_Op)(void *)ompi_mpi_op_min)
#define MPI_MAX ((MPI_Op)(void *)ompi_mpi_op_max)
#define MPI_IN_PLACE ((void *)1)
#define MPI_SUCCESS 0

int MPI_Init(int *argc, char ***argv);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm comm, int code);
int MPI_Comm_rank(MPI_Comm comm, int *rank);
int MPI_Comm_size(MPI_Comm comm, int *size);
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *made);
int MPI_Comm_free(MPI_Comm *comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Gather(const void *given, int given_count, MPI_Datatype given_type, void *got,
               int got_count, MPI_Datatype got_type, int root, MPI_Comm comm);
int MPI_Allgather(const void *given, int given_count, MPI_Datatype given_type, void *got,
                  int got_count, MPI_Datatype got_type, MPI_Comm comm);
int MPI_Allreduce(const void *given, void *got, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm);

#ifdef __cplusplus
}
#endif

#endif
