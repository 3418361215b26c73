! A unit that is open: inquiring by its file's name finds it, however the file is numbered where it is now.
program f90_opened
  use mpi
  implicit none
  integer :: rank, ierr, unit, number, i
  logical :: there, open
  character(40) :: name
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  write (name, '(a, i0)') 'f90_opened.', rank
  open (newunit=unit, file=name, status='replace', action='readwrite')
  do i = 1, 4
    write (unit, *) i
    flush (unit)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    inquire (file=name, exist=there, opened=open, number=number)
    call check(there .and. open .and. number == unit, 1)
    inquire (unit=unit, opened=open)
    call check(open, 2)
  end do
  close (unit, status='delete')
  inquire (file=name, exist=there)
  call check(.not. there, 3)
  if (rank == 0) write (*, '(a)') '[0] found', 'ok f90_opened'
  call MPI_Finalize(ierr)
end program
include 'check.inc'
