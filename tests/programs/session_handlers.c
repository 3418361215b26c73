// An error handler of a session, which is called, asked for and set anew over cuts; hints and sets of processes.
// mpi: 4
#include "state.h"

static int called;

static void failed(MPI_Session *session, int *code, ...) { called += *session != MPI_SESSION_NULL && *code == MPI_ERR_OTHER; }

int main(void) {
    start();
    MPI_Session session;
    MPI_Errhandler handler, again;
    MPI_Info info;
    int n, length = 0, flag;
    char name[256];
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    MPI_Session_create_errhandler(failed, &handler);
    beat();
    MPI_Session_set_errhandler(session, handler);
    beat();
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    CHECK(called == 1);
    MPI_Session_get_errhandler(session, &again);
    CHECK(again == handler);
    MPI_Errhandler_free(&again);
    MPI_Errhandler_free(&handler);
    beat();
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    CHECK(called == 2);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL);
    CHECK(n >= 2 && length > 0 && length < (int)sizeof name);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name);
    MPI_Session_get_pset_info(session, name, &info);
    MPI_Info_get(info, "mpi_size", sizeof name - 1, name, &flag);
    CHECK(flag && atoi(name) >= 1);
    MPI_Info_free(&info);
    beat();
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    beat();
    MPI_Session_call_errhandler(session, MPI_ERR_OTHER);
    CHECK(called == 2);
    MPI_Session_finalize(&session);
    beat();
    say("through");
    return done("session_handlers");
}
