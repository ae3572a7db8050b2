/* BFGS on one problem of few variables: what minimize_lbfgs does where it keeps whole inverse
   Hessians (solvers/lbfgs.py, curvature.py and line_search.py have the formulas). */

#include <stddef.h>
#include <stdint.h>

typedef double (*Loss)(void *problem, const double *x, double *gradient);

typedef struct {
    int32_t max_iter, max_evaluations;
    double tol, precision, sufficient_decrease, curvature, nearest, farthest;
} Limits;

/* x is the start, then the end; losses and norms have room for max_iter + 1. */
typedef struct {
    double *x, *losses, *norms;
    int32_t length, converged;
} Path;

size_t bfgs_room(size_t p);
int minimize_bfgs(Loss loss, void *problem, int p, const Limits *limits, Path *path, double *room);
