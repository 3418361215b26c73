! Fortran 2008 by `use mpi_f08`: a ring on a Cartesian communicator, nonblocking collectives, matched probes, and a count
! of every call that it makes.
program ring
  use mpi_f08
  implicit none
  integer, parameter :: rounds = 12, words = 16
  integer :: rank, n, left, right, i, done, found
  integer, asynchronous :: out(words), in(words), all
  type(MPI_Comm) :: line
  type(MPI_Request) :: requests(2), gather
  type(MPI_Status) :: status
  type(MPI_Message) :: message
  integer :: waitanys = 0, isends = 0, irecvs = 0, reduces = 0, waits = 0

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [n], [.true.], .false., line)
  call MPI_Comm_rank(line, rank)
  call MPI_Cart_shift(line, 0, 1, left, right)
  do i = 1, rounds
    out = rank + i
    call MPI_Irecv(in, words, MPI_INTEGER, left, i, line, requests(1))
    irecvs = irecvs + 1
    call MPI_Isend(out, words, MPI_INTEGER, right, i, line, requests(2))
    isends = isends + 1
    call MPI_Waitany(2, requests, done, status)
    call MPI_Waitany(2, requests, done, MPI_STATUS_IGNORE)
    waitanys = waitanys + 2
    if (any(in /= left + i)) stop 1
    call MPI_Iallreduce(rank, all, 1, MPI_INTEGER, MPI_SUM, line, gather)
    reduces = reduces + 1
    call MPI_Wait(gather, MPI_STATUS_IGNORE)
    waits = waits + 1
    if (all /= n*(n - 1)/2) stop 2
  end do

  call MPI_Isend(out, words, MPI_INTEGER, right, 77, line, requests(1))
  isends = isends + 1
  call MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, line, message, status)
  call MPI_Get_count(status, MPI_INTEGER, found)
  if (found /= words .or. status%MPI_SOURCE /= left .or. status%MPI_TAG /= 77) stop 3
  call MPI_Mrecv(in, words, MPI_INTEGER, message, status)
  call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
  waits = waits + 1
  call MPI_Bcast(in, words, MPI_INTEGER, 0, line)
  call MPI_Comm_free(line)
  call MPI_Finalize()

  call tell('MPI_Init', 1)
  call tell('MPI_Comm_size', 1)
  call tell('MPI_Comm_rank', 1)
  call tell('MPI_Cart_create', 1)
  call tell('MPI_Cart_shift', 1)
  call tell('MPI_Irecv', irecvs)
  call tell('MPI_Isend', isends)
  call tell('MPI_Waitany', waitanys)
  call tell('MPI_Iallreduce', reduces)
  call tell('MPI_Wait', waits)
  call tell('MPI_Mprobe', 1)
  call tell('MPI_Get_count', 1)
  call tell('MPI_Mrecv', 1)
  call tell('MPI_Bcast', 1)
  call tell('MPI_Comm_free', 1)
  call tell('MPI_Finalize', 1)
contains
  subroutine tell(name, calls)
    character(*), intent(in) :: name
    integer, intent(in) :: calls
    write (*, '(a, i0, 3a, i0)') 'COUNT ', rank, ' ', name, ' ', calls
  end subroutine
end program
