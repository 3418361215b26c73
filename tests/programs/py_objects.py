"""Python by mpi4py: objects under way, matched by probes; an attribute whose callbacks are Python's."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % size, (rank - 1) % size
dropped = []

key = MPI.Comm.Create_keyval(copy_fn=lambda comm, key, value: value + ["copied"], delete_fn=lambda c, k, v: dropped.append(v))
copy = comm.Dup()
copy.Set_attr(key, ["mine"])
for turn in range(4):
    request = copy.isend({"from": rank, "text": "x" * turn * 1000}, dest=after, tag=turn)
    comm.Barrier()
    got = copy.recv(source=before, tag=turn)
    request.wait()
    assert got == {"from": before, "text": "x" * turn * 1000}
    third = copy.Dup()
    assert third.Get_attr(key) == ["mine", "copied"]
    third.Free()
    assert dropped[-1] == ["mine", "copied"] and len(dropped) == turn + 1
copy.Free()
table = comm.gather(f"[{rank}] dropped {len(dropped)}")
if rank == 0:
    print("\n".join(table) + "\nok py_objects", flush=True)
