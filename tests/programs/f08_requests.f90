! Fortran 2008: typed handles, pending requests, matched messages, optional error arguments.
program f08_requests
  use mpi_f08
  implicit none
  integer :: rank, n, to, from, i, number
  integer, asynchronous :: out(100), in(100), small
  type(MPI_Comm) :: copy
  type(MPI_Request) :: requests(3)
  type(MPI_Status) :: statuses(3), status
  type(MPI_Message) :: message
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  to = mod(rank + 1, n)
  from = mod(rank + n - 1, n)
  call MPI_Comm_dup(MPI_COMM_WORLD, copy)
  do i = 1, 4
    out = 100*i + rank
    call MPI_Irecv(in, 100, MPI_INTEGER, MPI_ANY_SOURCE, i, copy, requests(1))
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Isend(out, 100, MPI_INTEGER, to, i, copy, requests(2))
    call MPI_Isend(i, 1, MPI_INTEGER, to, 1000, MPI_COMM_WORLD, requests(3))
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Mprobe(from, 1000, MPI_COMM_WORLD, message, status)
    call MPI_Barrier(MPI_COMM_WORLD)
    call MPI_Mrecv(small, 1, MPI_INTEGER, message, status)
    call check(small == i, 1)
    call MPI_Waitall(3, requests, statuses)
    call MPI_Get_count(statuses(1), MPI_INTEGER, number)
    call check(all(in == 100*i + from) .and. number == 100, 2)
    call check(statuses(1)%MPI_SOURCE == from .and. requests(1) == MPI_REQUEST_NULL, 3)
  end do
  call MPI_Comm_free(copy)
  call check(copy == MPI_COMM_NULL, 4)
  if (rank == 0) write (*, '(a, i0)') '[0] number ', number
  if (rank == 0) write (*, '(a)') 'ok f08_requests'
  call MPI_Finalize()
end program
include 'check.inc'
