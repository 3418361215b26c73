! Fortran 77: a datatype for each rank, in calls that wait, in place and pending, also between two groups.
! flags: -fallow-argument-mismatch
      program f77typeseach
      implicit none
      include 'mpif.h'
      integer rank, n, ierr, i, j, k, column, req
      integer ones(8), places(8), types(8), low, inter, far
      integer out(64), in(64), st(MPI_STATUS_SIZE)
      integer none(1), nothing(1), whole(8)
      call MPI_Init(ierr)
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
      call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
      call MPI_Type_vector(4, 1, 8, MPI_INTEGER, column, ierr)
      call MPI_Type_commit(column, ierr)
      none(1) = 0
      nothing(1) = -12345678
      do 10 i = 1, n
        ones(i) = 1
        places(i) = 4*(i - 1)
        types(i) = column
        whole(i) = MPI_INTEGER
   10 continue
      do 50 i = 1, 3
        do 20 j = 1, 64
          out(j) = 1000*i + 100*rank + j
          in(j) = -1
   20   continue
        call MPI_Alltoallw(out, ones, places, types,
     &    in, ones, places, types, MPI_COMM_WORLD, ierr)
        call compare(in, 1000*i, rank, n, 1)
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
c       Not of column: Open MPI's library for Fortran gives types back
c       too soon that are the program's own.
        call MPI_Ialltoallw(out, ones, places, whole,
     &    in, ones, places, whole, MPI_COMM_WORLD, req, ierr)
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
        call MPI_Wait(req, st, ierr)
        do 30 j = 1, n
          k = 1000*i + 100*(j - 1) + rank + 1
          call check(in(j) .eq. k, 2)
   30   continue
        call MPI_Alltoallw(MPI_IN_PLACE, none, none, nothing,
     &    out, ones, places, types, MPI_COMM_WORLD, ierr)
        call compare(out, 1000*i, rank, n, 3)
   50 continue
c     Rank 0 on one side, the others on the other.
      low = min(rank, 1)
      call MPI_Comm_split(MPI_COMM_WORLD, low, rank, k, ierr)
      call MPI_Intercomm_create(k, 0, MPI_COMM_WORLD, 1 - low, 5,
     &  inter, ierr)
      call MPI_Comm_remote_size(inter, far, ierr)
      do 60 i = 1, n
        out(i) = 10*rank + i
        in(i) = -1
   60 continue
      call MPI_Alltoallw(out, ones, places, whole,
     &  in, ones, places, whole, inter, ierr)
      do 70 i = 1, far
        j = i
        if (low .eq. 1) j = 0
        k = 1
        if (low .eq. 1) k = rank
        call check(in(i) .eq. 10*j + k, 4)
   70 continue
      call MPI_Comm_free(inter, ierr)
      call MPI_Type_free(column, ierr)
      if (rank .eq. 0) write (*, '(a, i6)') '[0] got', in(1)
      if (rank .eq. 0) write (*, '(a)') 'ok f77_types_each'
      call MPI_Finalize(ierr)
      end

      subroutine compare(in, base, rank, n, what)
      implicit none
      integer in(64), base, rank, n, what, i, j
      do 20 i = 0, n - 1
        do 10 j = 0, 3
          call check(in(8*j + i + 1) .eq.
     &      base + 100*i + 8*j + rank + 1, what)
   10   continue
   20 continue
      end
      include 'check.inc'
