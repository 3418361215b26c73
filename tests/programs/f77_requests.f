c     Fortran 77: requests pending, persistent ones, statuses in arrays, constants that are addresses.
      program f77requests
      implicit none
      include 'mpif.h'
      integer rank, n, ierr, i, after, before, flag
      integer out(4), in(4), req(2), st(MPI_STATUS_SIZE, 2), pers
      integer counted, total
      double precision t
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
      after = mod(rank + 1, n)
      before = mod(rank + n - 1, n)
      call MPI_Send_init(out, 4, MPI_INTEGER, after, 9,
     &  MPI_COMM_WORLD, pers, ierr)
      do 10 i = 1, 4
        call MPI_Irecv(in, 4, MPI_INTEGER, before, 9,
     &    MPI_COMM_WORLD, req(1), ierr)
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
        out(4) = 10*i + rank
        call MPI_Start(pers, ierr)
        req(2) = pers
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
        call MPI_Waitall(2, req, st, ierr)
        call check(in(4) .eq. 10*i + before, 1)
        call check(st(MPI_SOURCE, 1) .eq. before, 2)
        call MPI_Get_count(st(1, 1), MPI_INTEGER, counted, ierr)
        call check(counted .eq. 4, 3)
        call check(req(1) .eq. MPI_REQUEST_NULL, 7)
        total = rank
        call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER,
     &    MPI_SUM, MPI_COMM_WORLD, ierr)
        call check(total .eq. n*(n - 1)/2, 4)
        call MPI_Sendrecv(rank, 1, MPI_INTEGER, after, 2,
     &    flag, 1, MPI_INTEGER, before, 2,
     &    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        call check(flag .eq. before, 5)
   10 continue
      call MPI_Request_free(pers, ierr)
      t = MPI_Wtime()
      call check(t .ge. 0, 6)
      if (rank .eq. 0) write (*, '(a, i6)') '[0] total', total
      if (rank .eq. 0) write (*, '(a)') 'ok f77_requests'
      call MPI_Finalize(ierr)
      end
      include 'check.inc'
