/* What the parts of the surface program share: it calls every communication procedure of MPI-3.1, and MPI-4's where the
 * MPI has them, with small data that it checks. */
#ifndef SURFACE_H
#define SURFACE_H

#include <mpi.h>

#include "../count.h"

/* The world, with an even number of ranks: each has a partner, its number with the last bit turned. */
extern int rank, size, partner;

void point_to_point(void);
void persistent(void);
void completion(void);
void collectives(void);
void neighbourhood(void);
void communicators(void);
void one_sided(void);
void file_io(const char *folder);
void mpi4(void);

#endif
