// A token of growing size goes round a ring, in C++: ring [ROUNDS].
#include <mpi.h>

#include <numeric>
#include <vector>

#include "count.h"

namespace {

class Ring {
  public:
    explicit Ring(MPI_Comm comm) : comm_(comm)
    {
        MPI_Comm_rank(comm_, &rank_);
        MPI_Comm_size(comm_, &size_);
    }

    int rank() const { return rank_; }

    // Sends `data` to the next rank and returns what the one before sent.
    std::vector<double> pass(const std::vector<double> &data) const
    {
        std::vector<double> in(data.size());
        MPI_Request requests[2];
        MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_DOUBLE, (rank_ + size_ - 1) % size_, 1, comm_, &requests[0]);
        MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_DOUBLE, (rank_ + 1) % size_, 1, comm_, &requests[1]);
        int done = 0;
        MPI_Waitany(2, requests, &done, MPI_STATUS_IGNORE);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        return in;
    }

    double sum(const std::vector<double> &data) const
    {
        double mine = std::accumulate(data.begin(), data.end(), 0.0), all = 0;
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, comm_);
        return all;
    }

  private:
    MPI_Comm comm_;
    int rank_ = 0, size_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const Ring ring(comm);
    std::vector<double> token(1, ring.rank() + 1.0);
    const double before = ring.sum(token);
    for (int i = 0; i < rounds; i++) {
        token = ring.pass(token);
        token.push_back(0.0);
    }
    CHECK(ring.sum(token) == before);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    count_print(ring.rank());
    return 0;
}
