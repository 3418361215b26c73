! Fortran 90: types, attributes, operations and error handlers of the program's, callbacks in Fortran.
module own
  use mpi
  implicit none
  integer :: copied = 0, deleted = 0, calls = 0
contains
  subroutine most(a, b, n, kind)
    integer :: n, kind, a(n), b(n)
    calls = calls + merge(1, 1000, kind == MPI_INTEGER)
    b = max(a, b)
  end subroutine
  subroutine copy(comm, key, extra, from, to, flag, ierr)
    integer :: comm, key, ierr
    integer(MPI_ADDRESS_KIND) :: extra, from, to
    logical :: flag
    copied = copied + int(extra) + 0*comm*key
    to = from + 1
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine
  subroutine drop(comm, key, value, extra, ierr)
    integer :: comm, key, ierr
    integer(MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + int(value) + 0*comm*key*int(extra)
    ierr = MPI_SUCCESS
  end subroutine
end module

program f90_types
  use own
  implicit none
  integer :: rank, n, ierr, i, op, column, key, two, got, to, from
  integer :: matrix(5, 5), row(5)
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  to = mod(rank + 1, n)
  from = mod(rank + n - 1, n)
  call MPI_Op_create(most, .true., op, ierr)
  call MPI_Type_vector(5, 1, 5, MPI_INTEGER, column, ierr)
  call MPI_Type_commit(column, ierr)
  call MPI_Comm_create_keyval(copy, drop, key, 7_MPI_ADDRESS_KIND, ierr)
  value = 30
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
  do i = 1, 5
    call MPI_Allreduce(rank, got, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(got == n - 1, 1)
    matrix = rank + i
    call MPI_Send(matrix(2, 1), 1, column, to, 3, MPI_COMM_WORLD, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Recv(row, 5, MPI_INTEGER, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(all(row == from + i), 2)
    call MPI_Comm_dup(MPI_COMM_WORLD, two, ierr)
    call MPI_Comm_get_attr(two, key, value, flag, ierr)
    call check(flag .and. value == 31 .and. copied == 7*i, 3)
    call MPI_Comm_free(two, ierr)
    call check(deleted == 31*i, 4)
  end do
  call check(calls < 1000, 5)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
  call MPI_Type_free(column, ierr)
  call MPI_Op_free(op, ierr)
  if (rank == 0) write (*, '(a, i0)') '[0] deleted ', deleted
  if (rank == 0) write (*, '(a)') 'ok f90_types'
  call MPI_Finalize(ierr)
end program
include 'check.inc'
