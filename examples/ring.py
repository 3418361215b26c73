"""Python by mpi4py: objects (which arrive by Mprobe and Mrecv) and buffers round a ring, and a count of the calls made."""

import array
import sys
from collections import Counter

from mpi4py import MPI

ROUNDS = 10

calls = Counter()
comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % size, (rank - 1) % size

for i in range(ROUNDS):
    # An object is pickled, sent as bytes, and received with a matched probe, for its size is not known.
    request = comm.isend({"from": rank, "round": i, "text": "x" * i}, dest=after, tag=i)
    got = comm.recv(source=before, tag=i)
    request.wait()
    assert got["from"] == before and got["round"] == i
    calls.update(["MPI_Isend", "MPI_Mprobe", "MPI_Mrecv", "MPI_Wait"])

for i in range(ROUNDS):
    out, into = array.array("d", [rank] * 16), array.array("d", [-1] * 16)
    requests = [comm.Irecv(into, source=before, tag=100 + i), comm.Isend(out, dest=after, tag=100 + i)]
    MPI.Request.Waitall(requests)
    assert into[15] == before
    calls.update(["MPI_Irecv", "MPI_Isend", "MPI_Waitall"])

total = array.array("d", [0.0])
comm.Allreduce(array.array("d", [rank]), total, op=MPI.SUM)
assert total[0] == size * (size - 1) / 2
half = comm.Split(rank % 2, rank)
half.Barrier()
half.Free()
status = MPI.Status()
comm.Sendrecv(array.array("i", [rank]), after, 7, array.array("i", [0]), MPI.ANY_SOURCE, MPI.ANY_TAG, status)
assert status.Get_source() == before and status.Get_tag() == 7
calls.update(["MPI_Allreduce", "MPI_Comm_split", "MPI_Barrier", "MPI_Comm_free", "MPI_Sendrecv"])

sys.stdout.write("".join(f"COUNT {rank} {name} {n}\n" for name, n in sorted(calls.items())))
sys.stdout.flush()
