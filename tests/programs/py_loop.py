"""Python with an event loop, whose `epoll` and pair of sockets are open over cuts, and threads that wake it up."""

import asyncio

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
after, before = (rank + 1) % size, (rank - 1) % size


def exchange(number):
    return comm.sendrecv(100 * rank + number, dest=after, source=before)


async def work():
    loop = asyncio.get_running_loop()
    found = []
    for turn in range(4):
        found.append(exchange(turn))
        found.append(await loop.run_in_executor(None, lambda: 1000 * turn))
        await asyncio.sleep(0.001)
    return found


found = asyncio.run(work())
assert found == [x for turn in range(4) for x in (100 * before + turn, 1000 * turn)], found
said = comm.gather(found[-2])
if rank == 0:
    for number, text in enumerate(said):
        print(f"[{number}] {text}")
    print("ok py_loop")
