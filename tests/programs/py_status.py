"""Python by mpi4py: what it asks newer MPIs for and does itself under others: statuses, infos, datatypes, packing."""

import array
import os

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % size, (rank - 1) % size
said = []

try:
    comm.Barrier_init().Free()
except NotImplementedError:
    pass  # Open MPI 4.1 lacks it.
except MPI.Exception:
    assert os.environ["MPI4PY_MPIABI"] == "mpich"  # And a program that has found it goes on there.
status = MPI.Status()
for turn in range(2):
    comm.send(["x"] * turn, dest=after, tag=turn)
    comm.Barrier()
    assert comm.probe(source=MPI.ANY_SOURCE, tag=turn, status=status) and status.Get_tag() == turn
    assert comm.recv(source=before, tag=MPI.ANY_TAG, status=status) == ["x"] * turn
    assert (status.Get_source(), status.tag, status.error) == (before, turn, MPI.SUCCESS)
status.source, status.tag, status.error = 3, 17, MPI.ERR_RANK
comm.Barrier()
assert (status.source, status.tag, status.error) == (3, 17, MPI.ERR_RANK)

info = MPI.Info.Create()
info.Set("colour", "blue as the sky")
comm.Barrier()
assert info.Get("colour") == "blue as the sky" and info.Get("sound") is None and dict(info) == {"colour": "blue as the sky"}

# A record of two numbers with a gap between them, by offsets; and by addresses, which take more than 32 bits.
pair = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.INT, MPI.DOUBLE]).Commit()
out, into = array.array("d", [0, rank + 0.5] * 4), array.array("d", [0, 0] * 4)
places = [MPI.Get_address(out), MPI.Get_address(out) + 24]
absolute = MPI.Datatype.Create_hindexed(MPI.DOUBLE, [1, 2], places).Commit()
blocks = MPI.Datatype.Create_hindexed_block(MPI.DOUBLE, 1, places).Commit()
apart = MPI.DOUBLE.Create_hvector(2, 1, 32).Create_resized(-8, 80).Commit()
comm.Barrier()
said.append([kind.extent for kind in (pair, apart)] + [kind.size for kind in (pair, absolute, blocks, apart)])
said.append([pair.Get_envelope()[3] == MPI.COMBINER_STRUCT, apart.lb, apart.true_lb, apart.true_extent])
assert pair.Get_contents()[3] == [MPI.INT, MPI.DOUBLE] and len(absolute.Get_contents()[3]) == 1
comm.Sendrecv([MPI.BOTTOM, 1, absolute], after, recvbuf=[into, 3, MPI.DOUBLE], source=before, status=status)
assert list(into[:3]) == [0, before + 0.5, 0] and status.Get_elements(absolute) == 3 and status.Get_count(absolute) == 1
comm.Sendrecv([MPI.BOTTOM, 1, blocks], after, recvbuf=[into, 2, MPI.DOUBLE], source=before, status=status)
assert list(into[:2]) == [0, before + 0.5] and status.Get_count(MPI.DOUBLE) == 2
comm.Sendrecv([out, 2, pair], after, recvbuf=[into, 2, pair], source=before, status=status)
assert into[1] == before + 0.5 and status.Get_elements(pair) == 4 and status.Get_count(pair) == 2
status.Set_elements(MPI.INT, 7)
assert status.Get_elements(MPI.INT) == 7

packed, at = bytearray(200), 0
at = MPI.INT.Pack(array.array("i", [rank, rank + 1]), packed, at, comm)
comm.Barrier()
at = MPI.DOUBLE.Pack(out[:3], packed, at, comm)
said.append([at, MPI.INT.Pack_size(2, comm), MPI.DOUBLE.Pack_external_size("external32", 3)])
numbers, half = array.array("i", [0, 0]), array.array("d", [0] * 3)
at = MPI.INT.Unpack(packed, 0, numbers, comm)
comm.Barrier()
said.append(MPI.DOUBLE.Unpack(packed, at, half, comm))
assert list(numbers) == [rank, rank + 1] and half[1] == rank + 0.5
place = MPI.INT.Pack_external("external32", numbers, packed, 4)
said.append([place, MPI.INT.Unpack_external("external32", packed, 4, numbers), packed[7]])

requests = [comm.Irecv([numbers[i : i + 1], 1, MPI.INT], source=before, tag=i) for i in range(2)]
statuses, done = [], []
comm.Barrier()
test = comm.Irecv([half, 3, MPI.DOUBLE], source=before, tag=9)
assert not test.Test(status)
comm.Barrier()
sends = [comm.Isend([numbers, 1, MPI.INT], dest=after, tag=i) for i in range(2)] + [comm.Isend([out, 3, MPI.DOUBLE], after, 9)]
while len(done) < 2:
    found = [MPI.Status(), MPI.Status()]
    indices = MPI.Request.Waitsome(requests, found)
    done += indices
    statuses += [(s.Get_tag(), s.Get_source(), s.Get_count(MPI.INT)) for s in found[: len(indices)]]
while not test.Test(status):
    pass
assert sorted(statuses) == [(0, before, 1), (1, before, 1)] and status.Get_elements(MPI.DOUBLE) == 3 and status.source == before
MPI.Request.Waitall(sends, [MPI.Status() for _ in sends])

counts, whole = [1 + r for r in range(size)], array.array("i", [0] * (size * (size + 1) // 2))
comm.Gatherv([array.array("i", [rank] * (rank + 1)), MPI.INT], [whole, counts, None, MPI.INT] if rank == 0 else None, root=0)
comm.Allgatherv([array.array("i", [rank] * (rank + 1)), MPI.INT], [whole, counts, None, MPI.INT])
assert list(whole) == [r for r in range(size) for _ in range(r + 1)]
for kind in (pair, absolute, blocks, apart):
    kind.Free()
table = comm.gather(f"[{rank}] {said}")
if rank == 0:
    print("\n".join(table) + "\nok py_status", flush=True)
