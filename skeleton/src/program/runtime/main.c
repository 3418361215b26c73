/* The main function of skeletons. What stands between `//? NAME` and `//.` is there if NAME is used; `//= NAME` is where
 * that is written which each skeleton has its own of. */
int main(int argc, char **argv)
{
    int ranks;
    long rounds = argc > 2 ? atol(argv[2]) : 1;
    if (rounds < 1)
        rounds = 1;
    MPI_Init(&argc, &argv);
    double began = MPI_Wtime();
    MPI_Pcontrol(0); /* preparations are not traced */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks != RANKS) {
        if (rank == 0)
            fprintf(stderr, "this skeleton has %d ranks, and was started with %d: does the launcher belong to its MPI?\n",
                    RANKS, ranks);
        MPI_Finalize();
        return 2;
    }
    make_working_set();
//? far
    make_far_set();
//.
    compute(1000.0); /* the processor wakes up */
//= buffers
//? requests
    for (int i = 0; i < SLOTS; i++)
        request[i] = MPI_REQUEST_NULL;
//.
//= groups
//? start_over
    /* Connections and buffers are made in a round of messages alone: the program makes them once, and the first
     * iteration of a loop stands for many here. */
    messages_only = 1;
    since = MPI_Wtime();
    once();
    start_over();
//.
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    since = MPI_Wtime();
    prepare_s = since - began - warm_s;
    for (long round = 0; round < rounds; round++)
        once();
    MPI_Pcontrol(0);
    int failed = report(argc > 1 ? argv[1] : NULL, rounds);
    MPI_Finalize();
    return failed;
}
