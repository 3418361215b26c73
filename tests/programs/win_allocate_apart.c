// The same where Open MPI shares the memory of windows with nobody.
// setting: OMPI_MCA_osc=pt2pt
#define NAME "win_allocate_apart"
#include "win_allocate.c"
