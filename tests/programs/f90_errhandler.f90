! Fortran 90: error handlers in Fortran on communicators and a window, attributes of a type and of a window.
module own
  use mpi
  implicit none
  integer :: calls = 0, window_calls = 0, last_comm = -1, last_class = -1, dropped = 0
contains
  subroutine on_comm(comm, code)
    integer :: comm, code, ierr
    calls = calls + 1
    last_comm = comm
    call MPI_Error_class(code, last_class, ierr)
  end subroutine
  subroutine on_window(window, code)
    integer :: window, code
    window_calls = window_calls + 1 + 0*window*code
  end subroutine
  subroutine drop(object, key, value, extra, ierr)
    integer :: object, key, ierr
    integer(MPI_ADDRESS_KIND) :: value, extra
    dropped = dropped + int(value + extra) + 0*object*key
    ierr = MPI_SUCCESS
  end subroutine
end module

program f90_errhandler
  use own
  implicit none
  integer :: rank, n, ierr, i, handler, on_windows, was, two, window, kind, again, type_key, window_key
  integer(MPI_ADDRESS_KIND) :: value, bytes
  integer :: memory(4)
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, two, ierr)
  call MPI_Comm_create_errhandler(on_comm, handler, ierr)
  call MPI_Comm_set_errhandler(two, handler, ierr)
  bytes = 16
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierr)
  call MPI_Win_create_errhandler(on_window, on_windows, ierr)
  call MPI_Win_set_errhandler(window, on_windows, ierr)
  call MPI_Errhandler_free(on_windows, ierr)
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, drop, window_key, 1_MPI_ADDRESS_KIND, ierr)
  value = 100
  call MPI_Win_set_attr(window, window_key, value, ierr)
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, drop, type_key, 2_MPI_ADDRESS_KIND, ierr)
  call MPI_Type_contiguous(3, MPI_INTEGER, kind, ierr)
  value = 5000000000_MPI_ADDRESS_KIND
  call MPI_Type_set_attr(kind, type_key, value, ierr)
  do i = 1, 4
    call MPI_Send(i, 1, MPI_INTEGER, n + 7, 0, two, ierr)
    call check(ierr /= MPI_SUCCESS .and. calls == i .and. last_class == MPI_ERR_RANK .and. last_comm == two, 1)
    call MPI_Barrier(two, ierr)
    call MPI_Comm_get_errhandler(two, was, ierr)
    call check(was == handler, 2)
    call MPI_Errhandler_free(was, ierr)
    call MPI_Win_call_errhandler(window, MPI_ERR_OTHER, ierr)
    call check(window_calls == i, 3)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_get_attr(window, window_key, value, flag, ierr)
    call check(flag .and. value == 100, 4)
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag, ierr)
    call check(flag .and. value == 16, 5)
    call MPI_Win_get_attr(window, MPI_WIN_DISP_UNIT, value, flag, ierr)
    call check(flag .and. value == 4, 6)
    call MPI_Type_dup(kind, again, ierr)
    call MPI_Type_get_attr(again, type_key, value, flag, ierr)
    call check(flag .and. value == 5000000000_MPI_ADDRESS_KIND, 7)
    call MPI_Type_delete_attr(again, type_key, ierr)
    call MPI_Type_free(again, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
  end do
  call MPI_Win_free(window, ierr)
  call MPI_Comm_free(two, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) write (*, '(a, i0)') '[0] dropped ', dropped
  if (rank == 0) write (*, '(a)') 'ok f90_errhandler'
  call MPI_Finalize(ierr)
end program
include 'check.inc'
