/* BFGS on one problem of few variables: what minimize_lbfgs does where it keeps whole inverse
   Hessians (solvers/lbfgs.py has the formulas). */

#include <stddef.h>
#include <stdint.h>

typedef double (*Loss)(void *problem, const double *x, double *gradient);

typedef struct {
    int32_t max_iter, max_evaluations;
    double tol, precision, sufficient_decrease, curvature, nearest, farthest;
} Limits;

/* A line search; the bracket goes from low to high, which is infinite at first. */
typedef struct {
    double f_start, d_start, step, low, f_low, d_low, high, f_high, d_high;
    int32_t evaluations;
} Search;

/* Where a minimization stands, beside its Path and its room; all zeros before the start. */
typedef struct {
    Search search;
    double f;
    int32_t known, begun; /* known: whether the inverse Hessian has learned from a pair */
} Course;

/* x is the start, then the end; losses and norms have room for max_iter + 1. */
typedef struct {
    double *x, *losses, *norms;
    int32_t length, converged;
} Path;

size_t bfgs_room(size_t p);
int minimize_bfgs(Loss loss, void *problem, int p, const Limits *limits, Path *path, Course *course,
                  int64_t *evaluations, double *room);
