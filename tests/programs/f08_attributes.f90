! Fortran 2008: attributes of a communicator, a type and a window with own and predefined callbacks, predefined attributes,
! a graph without weights, a type that is looked up by its size.
module own
  use mpi_f08
  implicit none
  integer :: copied = 0, dropped = 0
contains
  subroutine copy(comm, key, extra, from, to, flag, ierr)
    type(MPI_Comm) :: comm
    integer :: key, ierr
    integer(MPI_ADDRESS_KIND) :: extra, from, to
    logical :: flag
    copied = copied + int(extra) + 0*key
    to = from + 1
    flag = comm /= MPI_COMM_NULL
    ierr = MPI_SUCCESS
  end subroutine
  subroutine drop(comm, key, value, extra, ierr)
    type(MPI_Comm) :: comm
    integer :: key, ierr
    integer(MPI_ADDRESS_KIND) :: value, extra
    dropped = dropped + int(value + extra) + 0*key
    ierr = merge(MPI_SUCCESS, MPI_ERR_COMM, comm /= MPI_COMM_NULL)
  end subroutine
end module

program f08_attributes
  use own
  implicit none
  integer :: rank, n, i, key, plain, of_type, of_window, got, in, out, from(1), to(1)
  integer, asynchronous :: memory(4)
  integer(MPI_ADDRESS_KIND) :: value, bytes
  logical :: flag, weighted
  type(MPI_Comm) :: two, graph
  type(MPI_Datatype) :: kind, found
  type(MPI_Win) :: window
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Comm_create_keyval(copy, drop, key, 5_MPI_ADDRESS_KIND)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, plain, 0_MPI_ADDRESS_KIND)
  call MPI_Type_contiguous(2, MPI_INTEGER, kind)
  call MPI_Type_commit(kind)
  call MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, of_type, 0_MPI_ADDRESS_KIND)
  call MPI_Type_set_attr(kind, of_type, 3_MPI_ADDRESS_KIND)
  bytes = 16
  call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window)
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, of_window, 0_MPI_ADDRESS_KIND)
  call MPI_Win_set_attr(window, of_window, 4_MPI_ADDRESS_KIND)
  ! After the window: MPICH makes one with a copy of its communicator.
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, -70_MPI_ADDRESS_KIND)
  value = 800 + rank
  call MPI_Comm_set_attr(MPI_COMM_WORLD, plain, value)
  from = mod(rank + n - 1, n)
  to = mod(rank + 1, n)
  do i = 1, 4
    call MPI_Comm_dup(MPI_COMM_WORLD, two)
    call MPI_Comm_get_attr(two, key, value, flag)
    call check(flag .and. value == -69, 1)
    call MPI_Comm_get_attr(two, plain, value, flag)
    call check(flag .and. value == 800 + rank, 2)
    call MPI_Barrier(two)
    call MPI_Comm_delete_attr(two, key)
    call MPI_Comm_get_attr(two, key, value, flag)
    call check(.not. flag, 3)
    call MPI_Comm_free(two)
    call check(copied == 5*i .and. dropped == -64*i, 4)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
    call check(flag .and. value >= 32767, 5)
    call MPI_Type_get_attr(kind, of_type, value, flag)
    call check(flag .and. value == 3, 6)
    call MPI_Win_get_attr(window, of_window, value, flag)
    call check(flag .and. value == 4, 7)
    call MPI_Win_get_attr(window, MPI_WIN_SIZE, value, flag)
    call check(flag .and. value == 16, 8)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, from, MPI_UNWEIGHTED, 1, to, MPI_UNWEIGHTED, &
        MPI_INFO_NULL, .false., graph)
    call MPI_Dist_graph_neighbors_count(graph, in, out, weighted)
    call check(in == 1 .and. out == 1 .and. .not. weighted, 9)
    call MPI_Neighbor_allgather(rank, 1, MPI_INTEGER, got, 1, MPI_INTEGER, graph)
    call check(got == mod(rank + n - 1, n), 10)
    call MPI_Comm_free(graph)
    call MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 4, found)
    call MPI_Allreduce(rank, got, 1, found, MPI_SUM, MPI_COMM_WORLD)
    call check(got == n*(n - 1)/2, 11)
  end do
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, plain)
  call MPI_Comm_free_keyval(key)
  call MPI_Comm_free_keyval(plain)
  call check(key == MPI_KEYVAL_INVALID, 12)
  call MPI_Type_free(kind)
  call MPI_Win_free(window)
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) write (*, '(a, i0, a, i0)') '[0] copied ', copied, ' dropped ', dropped
  if (rank == 0) write (*, '(a)') 'ok f08_attributes'
  call MPI_Finalize()
end program
include 'check.inc'
