! Fortran 2008: a datatype for each rank; generalized requests, whose functions are Fortran's, under way and complete at cuts.
! refuses: nonblocking input, output or one-sided communication is under way
module own
  use mpi_f08
  implicit none
  integer :: asked = 0, freed = 0, dropped = 0
contains
  subroutine query(extra, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    type(MPI_Status) :: status
    integer :: ierror
    asked = asked + int(extra)
    status%MPI_SOURCE = 7
    status%MPI_TAG = 8
    call MPI_Status_set_elements(status, MPI_INTEGER, 9)
    call MPI_Status_set_cancelled(status, .false.)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine release(extra, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierror
    freed = freed + int(extra)
    ierror = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierror
    dropped = dropped + merge(1000, int(extra), complete)
    ierror = MPI_SUCCESS
  end subroutine
end module

program f08_generalized
  use own
  implicit none
  integer :: rank, n, i, count, ones(8), places(8), out(8), in(8)
  type(MPI_Datatype) :: types(8)
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  integer(MPI_ADDRESS_KIND) :: extra = 3
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  ones = 1
  places = [(4*i, i = 0, 7)]
  types = MPI_INTEGER
  do i = 1, 4
    out = 100*i + rank
    in = -1
    call MPI_Alltoallw(out, ones, places, types, in, ones, places, types, MPI_COMM_WORLD)
    call check(all(in(1:n) == [(100*i + count, count = 0, n - 1)]), 1)
    call MPI_Grequest_start(query, release, cancel, extra, request)
    call MPI_Barrier(MPI_COMM_WORLD)
    if (i == 2) call MPI_Cancel(request)
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_elements(status, MPI_INTEGER, count)
    call check(status%MPI_SOURCE == 7 .and. status%MPI_TAG == 8 .and. count == 9, 2)
    call check(asked == 3*i .and. freed == 3*i .and. dropped == merge(3, 0, i >= 2), 3)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  if (rank == 0) write (*, '(a, i0)') '[0] asked ', asked
  if (rank == 0) write (*, '(a)') 'ok f08_generalized'
  call MPI_Finalize()
end program
include 'check.inc'
