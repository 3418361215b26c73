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
    if (.not. there .or. .not. open .or. number /= unit) call wrong(1)
    inquire (unit=unit, opened=open)
    if (.not. open) call wrong(2)
  end do
  close (unit, status='delete')
  inquire (file=name, exist=there)
  if (there) call wrong(3)
  if (rank == 0) write (*, '(a)') '[0] found', 'ok f90_opened'
  call MPI_Finalize(ierr)
contains
  subroutine wrong(what)
    integer, intent(in) :: what
    write (0, *) 'wrong ', what, there, open, number, unit
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end program
