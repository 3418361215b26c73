"""Python by mpi4py: an operation whose function is Python's, and errors that become exceptions."""

from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD.Dup()
rank, size = comm.Get_rank(), comm.Get_size()


def longest(a, b, datatype):
    assert datatype == MPI.INT
    left, right = memoryview(a).cast("i"), memoryview(b).cast("i")
    for i in range(len(left)):
        right[i] = max(left[i], right[i])


operation = MPI.Op.Create(longest, commute=True)
for turn in range(4):
    mine, best = array("i", [rank * turn, -rank]), array("i", [0, 0])
    comm.Allreduce([mine, MPI.INT], [best, MPI.INT], op=operation)
    assert best.tolist() == [(size - 1) * turn, 0]
    assert comm.allreduce(("object", rank), op=MPI.MAX) == ("object", size - 1)
    try:
        comm.Send([mine, MPI.INT], dest=size + 5)
        raise SystemExit("a wrong rank is no error")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK
    comm.Barrier()
operation.Free()
comm.Barrier()
comm.Free()
if rank == 0:
    print("[0] all turns\nok py_operation", flush=True)
