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
        if (in(4) .ne. 10*i + before) call wrong(1)
        if (st(MPI_SOURCE, 1) .ne. before) call wrong(2)
        call MPI_Get_count(st(1, 1), MPI_INTEGER, counted, ierr)
        if (counted .ne. 4) call wrong(3)
        if (req(1) .ne. MPI_REQUEST_NULL) call wrong(7)
        total = rank
        call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER,
     &    MPI_SUM, MPI_COMM_WORLD, ierr)
        if (total .ne. n*(n - 1)/2) call wrong(4)
        call MPI_Sendrecv(rank, 1, MPI_INTEGER, after, 2,
     &    flag, 1, MPI_INTEGER, before, 2,
     &    MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        if (flag .ne. before) call wrong(5)
   10 continue
      call MPI_Request_free(pers, ierr)
      t = MPI_Wtime()
      if (t .lt. 0) call wrong(6)
      if (rank .eq. 0) write (*, '(a, i6)') '[0] total', total
      if (rank .eq. 0) write (*, '(a)') 'ok f77_requests'
      call MPI_Finalize(ierr)
      end

      subroutine wrong(what)
      implicit none
      include 'mpif.h'
      integer what, ierr
      write (0, *) 'wrong ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
      end
