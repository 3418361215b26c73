// The classes of MPI's C++ bindings, with functions of the program in C++: an operation, error handlers, attributes that are
// copied and deleted; and the handler that has exceptions thrown, by which Open MPI of Debian only says what was wrong.
#include "state.h"

static int handled, copied, deleted;

static void largest(const void *in, void *inout, int count, const MPI::Datatype &type) {
    for (int i = 0; i < count; i++) {
        const int value = static_cast<const int *>(in)[i];
        int &most = static_cast<int *>(inout)[i];
        most = value > most ? value : most;
    }
    CHECK(type.Get_size() == sizeof(int));
}

static void on_error(MPI::Comm &comm, int *code, ...) {
    handled += comm.Get_size() == size && MPI::Get_error_class(*code) == MPI::ERR_RANK;
}

static int copy(const MPI::Comm &comm, int, void *extra, void *value, void *copy, bool &flag) {
    CHECK(comm.Get_size() == size && extra == &copied);
    *static_cast<void **>(copy) = value;
    flag = true;
    copied++;
    return MPI::SUCCESS;
}

static int erase(MPI::Comm &comm, int, void *value, void *extra) {
    CHECK(comm.Get_size() == size && value == &handled && extra == &copied);
    deleted++;
    return MPI::SUCCESS;
}

int main() {
    start();
    MPI::Intracomm handles = MPI::COMM_WORLD.Dup(), throws = MPI::COMM_WORLD.Dup();
    MPI::Op most;
    most.Init(largest, true);
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(on_error);
    handles.Set_errhandler(handler);
    handler.Free();
    throws.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    int key = MPI::Comm::Create_keyval(copy, erase, &copied);
    handles.Set_attr(key, &handled);
    for (int i = 1; i <= 3; i++) {
        int mine[] = {rank * i, -rank * i}, all[2];
        handles.Allreduce(mine, all, 2, MPI::INT, most);
        CHECK(all[0] == (size - 1) * i && all[1] == 0);
        beat();
        handles.Send(&i, 1, MPI::INT, size + 1, 3);
        CHECK(handled == i);
        MPI::Intracomm other = handles.Dup();
        void *value = NULL;
        CHECK(other.Get_attr(key, &value) && value == &handled && copied == i);
        other.Free();
        CHECK(deleted == i);
        throws.Barrier();
        MPI::Errhandler set = throws.Get_errhandler();
        CHECK(set == MPI::ERRORS_THROW_EXCEPTIONS);
        beat();
    }
    most.Free();
    handles.Free();
    throws.Free();
    MPI::Comm::Free_keyval(key);
    say("%d %d %d", handled, copied, deleted);
    return done("cxx_bindings");
}
