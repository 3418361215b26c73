"""Python by mpi4py: buffers in pending and persistent requests, a thread that waits, an open file, an exception."""

import array
import threading

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % size, (rank - 1) % size
into, out = array.array("d", [-1] * 64), array.array("d", [0] * 64)
receive = comm.Recv_init([into, MPI.DOUBLE], source=before, tag=3)
go, heard = threading.Event(), []
thread = threading.Thread(target=lambda: heard.append(go.wait(600)))
thread.start()
total = 0.0
with open(f"py_buffers.{rank}.data", "w+", encoding="utf-8") as file:
    for turn in range(4):
        receive.Start()
        comm.Barrier()
        out[63] = 10 * turn + rank
        send = comm.Isend([out, MPI.DOUBLE], dest=after, tag=3)
        comm.Barrier()
        MPI.Request.Waitall([receive, send])
        assert into[63] == 10 * turn + before
        total += into[63]
        print(turn, file=file)
    try:
        comm.Send([out, MPI.DOUBLE], dest=size + 7)
        raise SystemExit("no error")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK
    file.seek(0)
    assert file.read().split() == ["0", "1", "2", "3"]
go.set()
thread.join()
receive.Free()
assert heard == [True]
table = comm.gather(f"[{rank}] total {total}")
if rank == 0:
    print("\n".join(table) + "\nok py_buffers", flush=True)
