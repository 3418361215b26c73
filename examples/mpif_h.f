C     Fortran 77 style, by mpif.h: messages round a ring, reductions, a
C     communicator of its own, and a count of every call that it makes.
      program ring
      implicit none
      include 'mpif.h'
      integer rounds, most
      parameter (rounds = 20, most = 8)
      integer ierr, rank, n, next, before, i, j, half, sum
      integer out(most), in(most), requests(2)
      integer status(MPI_STATUS_SIZE)
      integer irecvs, isends, waits, sends, recvs, bcasts
      integer allred, exch, barrs, splits, frees
C     In a common block, so that the compiler expects them to change.
      common /buffer/ out, in

      irecvs = 0
      isends = 0
      waits = 0
      sends = 0
      recvs = 0
      bcasts = 0
      allred = 0
      exch = 0
      barrs = 0
      splits = 0
      frees = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      next = mod(rank + 1, n)
      before = mod(rank + n - 1, n)

      do 10 i = 1, rounds
        do 20 j = 1, most
          out(j) = rank * 100 + j
          in(j) = -1
   20   continue
        call MPI_IRECV(in, most, MPI_INTEGER, before, i,
     &                 MPI_COMM_WORLD, requests(1), ierr)
        irecvs = irecvs + 1
        call MPI_ISEND(out, most, MPI_INTEGER, next, i,
     &                 MPI_COMM_WORLD, requests(2), ierr)
        isends = isends + 1
        call MPI_WAITALL(2, requests, MPI_STATUSES_IGNORE, ierr)
        waits = waits + 1
        if (in(most) .ne. before * 100 + most) stop 1
   10 continue

      if (rank .eq. 0) then
        call MPI_SEND(out, most, MPI_INTEGER, next, 500,
     &                MPI_COMM_WORLD, ierr)
        sends = sends + 1
        call MPI_RECV(in, most, MPI_INTEGER, MPI_ANY_SOURCE,
     &                MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
        recvs = recvs + 1
        if (status(MPI_SOURCE) .ne. before) stop 2
        if (status(MPI_TAG) .ne. 500) stop 3
      else
        call MPI_RECV(in, most, MPI_INTEGER, before, 500,
     &                MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
        recvs = recvs + 1
        call MPI_SEND(in, most, MPI_INTEGER, next, 500,
     &                MPI_COMM_WORLD, ierr)
        sends = sends + 1
      end if

      call MPI_BCAST(out, most, MPI_INTEGER, 0, MPI_COMM_WORLD, ierr)
      bcasts = bcasts + 1
      if (out(1) .ne. 1) stop 4
      sum = rank
      call MPI_ALLREDUCE(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      allred = allred + 1
      if (sum .ne. n * (n - 1) / 2) stop 5

      call MPI_COMM_SPLIT(MPI_COMM_WORLD, mod(rank, 2), rank, half,
     &                    ierr)
      splits = splits + 1
      call MPI_SENDRECV(rank, 1, MPI_INTEGER, 0, 7, in, 1, MPI_INTEGER,
     &                  MPI_ANY_SOURCE, 7, MPI_COMM_SELF, status, ierr)
      exch = exch + 1
      call MPI_BARRIER(half, ierr)
      barrs = barrs + 1
      call MPI_COMM_FREE(half, ierr)
      frees = frees + 1
      call MPI_FINALIZE(ierr)

      write (*, 100) rank, 'MPI_Init', 1
      write (*, 100) rank, 'MPI_Comm_rank', 1
      write (*, 100) rank, 'MPI_Comm_size', 1
      write (*, 100) rank, 'MPI_Irecv', irecvs
      write (*, 100) rank, 'MPI_Isend', isends
      write (*, 100) rank, 'MPI_Waitall', waits
      write (*, 100) rank, 'MPI_Send', sends
      write (*, 100) rank, 'MPI_Recv', recvs
      write (*, 100) rank, 'MPI_Bcast', bcasts
      write (*, 100) rank, 'MPI_Allreduce', allred
      write (*, 100) rank, 'MPI_Comm_split', splits
      write (*, 100) rank, 'MPI_Sendrecv', exch
      write (*, 100) rank, 'MPI_Barrier', barrs
      write (*, 100) rank, 'MPI_Comm_free', frees
      write (*, 100) rank, 'MPI_Finalize', 1
  100 format ('COUNT ', i0, ' ', a, ' ', i0)
      end
