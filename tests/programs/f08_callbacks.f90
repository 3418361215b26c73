! Fortran 2008: an operation on a structure type, an error handler, and units of Fortran open for reading and writing.
module own
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_ptr, c_f_pointer
  implicit none
  type, bind(c) :: pair
    real(c_double) :: value
    integer(c_int) :: place
  end type
  integer :: errors = 0
contains
  subroutine best(a, b, n, kind)
    type(c_ptr), value :: a, b
    integer :: n
    type(MPI_Datatype) :: kind
    type(pair), pointer :: x(:), y(:)
    integer :: i
    call c_f_pointer(a, x, [n])
    call c_f_pointer(b, y, [n])
    do i = 1, n
      if (x(i)%value > y(i)%value) y(i) = x(i)
    end do
  end subroutine
  subroutine handle(comm, code)
    type(MPI_Comm) :: comm
    integer :: code
    if (code /= MPI_SUCCESS .and. comm == MPI_COMM_WORLD) errors = errors + 1
  end subroutine
end module

program f08_callbacks
  use own
  implicit none
  integer :: rank, n, i, unit, number, code
  integer(MPI_ADDRESS_KIND) :: places(2)
  type(pair) :: mine, got
  type(MPI_Datatype) :: raw, kind
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  character(40) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  places = [0, 8]
  call MPI_Type_create_struct(2, [1, 1], places, [MPI_DOUBLE_PRECISION, MPI_INTEGER], raw)
  call MPI_Type_create_resized(raw, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, kind)
  call MPI_Type_commit(kind)
  call MPI_Op_create(best, .true., op)
  call MPI_Comm_create_errhandler(handle, handler)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
  write (name, '(a, i0, a)') 'f08_callbacks.', rank, '.data'
  open (newunit=unit, file=name, action='readwrite', status='replace')
  do i = 1, 6
    mine = pair(merge(9.5d0, dble(i), rank == mod(i, n)), rank)
    call MPI_Allreduce(mine, got, 1, kind, op, MPI_COMM_WORLD)
    call check(got%value == 9.5d0 .and. got%place == mod(i, n), 1)
    write (unit, '(i0)') 11*i
    call MPI_Send(i, 1, MPI_INTEGER, n + 9, 0, MPI_COMM_WORLD, code)
    call check(errors == i .and. code /= MPI_SUCCESS, 2)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  rewind (unit)
  do i = 1, 6
    read (unit, *) number
    call check(number == 11*i, 3)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  close (unit)
  if (rank == 0) write (*, '(a, i0)') '[0] number ', number
  if (rank == 0) write (*, '(a)') 'ok f08_callbacks'
  call MPI_Finalize()
end program
include 'check.inc'
