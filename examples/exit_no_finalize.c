/* Every rank ends by exit() without MPI_Finalize. */
#include "fault.h"

int main(int argc, char **argv)
{
    begin(argc, argv);
    exit(0);
}
