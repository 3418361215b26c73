! Fortran 90 by `use mpi`: persistent halo exchange, probes, reductions, and a count of every call that it makes.
program halo
  use mpi
  implicit none
  integer, parameter :: rounds = 15, cells = 32
  integer :: ierr, rank, n, left, right, i, requests(4), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), found
  logical :: flag
  ! Started requests write to it: a compiler that does not know this would keep copies in registers.
  double precision, volatile :: field(0:cells + 1)
  double precision :: total, expected, got(cells)
  integer :: startalls = 0, waitalls = 0, isends = 0, probes = 0, recvs = 0, tests = 0, barriers = 0

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  left = mod(rank + n - 1, n)
  right = mod(rank + 1, n)
  field = rank

  call MPI_Recv_init(field(0), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Recv_init(field(cells + 1), 1, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Send_init(field(cells), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(3), ierr)
  call MPI_Send_init(field(1), 1, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(4), ierr)
  do i = 1, rounds
    call MPI_Startall(4, requests, ierr)
    startalls = startalls + 1
    call MPI_Waitall(4, requests, statuses, ierr)
    waitalls = waitalls + 1
    if (nint(field(0)) /= left .or. nint(field(cells + 1)) /= right) stop 1
  end do
  do i = 1, 4
    call MPI_Request_free(requests(i), ierr)
  end do

  call MPI_Isend(field(1), cells, MPI_DOUBLE_PRECISION, right, 9, MPI_COMM_WORLD, requests(1), ierr)
  isends = isends + 1
  call MPI_Probe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, status, ierr)
  probes = probes + 1
  call MPI_Get_count(status, MPI_DOUBLE_PRECISION, found, ierr)
  if (found /= cells .or. status(MPI_SOURCE) /= left) stop 2
  call MPI_Recv(got, cells, MPI_DOUBLE_PRECISION, left, 9, MPI_COMM_WORLD, status, ierr)
  recvs = recvs + 1
  flag = .false.
  do while (.not. flag)
    call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, ierr)
    tests = tests + 1
  end do

  total = sum(field(1:cells))
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  expected = cells * n * (n - 1) / 2
  if (abs(total - expected) > 1d-9) stop 3
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  barriers = barriers + 1
  call MPI_Finalize(ierr)

  call tell('MPI_Init', 1)
  call tell('MPI_Comm_rank', 1)
  call tell('MPI_Comm_size', 1)
  call tell('MPI_Recv_init', 2)
  call tell('MPI_Send_init', 2)
  call tell('MPI_Startall', startalls)
  call tell('MPI_Waitall', waitalls)
  call tell('MPI_Request_free', 4)
  call tell('MPI_Isend', isends)
  call tell('MPI_Probe', probes)
  call tell('MPI_Get_count', 1)
  call tell('MPI_Recv', recvs)
  call tell('MPI_Test', tests)
  call tell('MPI_Allreduce', 1)
  call tell('MPI_Barrier', barriers)
  call tell('MPI_Finalize', 1)
contains
  subroutine tell(name, calls)
    character(*), intent(in) :: name
    integer, intent(in) :: calls
    write (*, '(a, i0, 3a, i0)') 'COUNT ', rank, ' ', name, ' ', calls
  end subroutine
end program
