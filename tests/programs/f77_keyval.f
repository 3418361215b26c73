! FORTRAN 77: attributes by the procedures of MPI 1, with its own and with callbacks of the program's; predefined ones; a type
! that is looked up by its size.
      program keyval
      implicit none
      include 'mpif.h'
      integer ierr, rank, n, i, key, plain, two, got, value, kind, bytes
      logical flag
      integer copied, dropped
      common /calls/ copied, dropped
      external copy, drop
      copied = 0
      dropped = 0
      call MPI_INIT(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      call MPI_KEYVAL_CREATE(copy, drop, key, 5, ierr)
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, plain, 0,
     &                       ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, -70, ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, plain, 800 + rank, ierr)
      do 10 i = 1, 4
         call MPI_COMM_DUP(MPI_COMM_WORLD, two, ierr)
         call MPI_ATTR_GET(two, key, value, flag, ierr)
         call check(flag .and. value .eq. -69, 1)
         call MPI_ATTR_GET(two, plain, value, flag, ierr)
         call check(flag .and. value .eq. 800 + rank, 2)
         call MPI_BARRIER(two, ierr)
         call MPI_ATTR_DELETE(two, key, ierr)
         call MPI_ATTR_GET(two, key, value, flag, ierr)
         call check(.not. flag, 3)
         call MPI_COMM_FREE(two, ierr)
         call check(copied .eq. 5*i .and. dropped .eq. -69*i, 4)
         call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag,
     &                     ierr)
         call check(flag .and. value .ge. 32767, 5)
         call MPI_TYPE_MATCH_SIZE(MPI_TYPECLASS_INTEGER, 4, kind, ierr)
         call MPI_TYPE_SIZE(kind, bytes, ierr)
         call check(bytes .eq. 4, 6)
         call MPI_ALLREDUCE(rank, got, 1, kind, MPI_SUM,
     &                      MPI_COMM_WORLD, ierr)
         call check(got .eq. n*(n - 1)/2, 7)
   10 continue
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, plain, ierr)
      call MPI_KEYVAL_FREE(key, ierr)
      call MPI_KEYVAL_FREE(plain, ierr)
      call check(key .eq. MPI_KEYVAL_INVALID, 8)
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      if (rank .eq. 0) then
         print '(a, i0, a, i0)', '[0] copied ', copied, ' dropped ',
     &      dropped
         print '(a)', 'ok f77_keyval'
      end if
      call MPI_FINALIZE(ierr)
      end

      subroutine copy(comm, key, extra, from, to, flag, ierr)
      implicit none
      integer comm, key, extra, from, to, ierr
      logical flag
      integer copied, dropped
      common /calls/ copied, dropped
      copied = copied + extra
      to = from + 1
      flag = .true.
      ierr = 0
      end

      subroutine drop(comm, key, value, extra, ierr)
      implicit none
      integer comm, key, value, extra, ierr
      integer copied, dropped
      common /calls/ copied, dropped
      dropped = dropped + value
      ierr = 0
      end
      include 'check.inc'
