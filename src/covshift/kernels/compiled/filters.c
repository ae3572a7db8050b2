/* The passes over blocks of rows (filter_passes.py), and minimisations of small problems.

   Plain C: no part of Python or NumPy is needed to build it or to load it. Nothing here keeps a
   state or starts a thread. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "bfgs.h"
#include "processors.h"

enum { ABS, SIN, COS };
enum { TILE = 256 }; /* rows whose sums stay in the first-level cache */

typedef struct {
    int32_t n_problems, n_filters, n_rows, n_classes, activation, codes_step;
    double epsilon, norm_epsilon;
    const int32_t *codes; /* n_classes for a row without a label */
} Block;

/* Of the filters, in the precision of the block: 1 / t and s (K, L), G (K, C + 1, L). */
typedef struct {
    const void *inverse, *upstream, *sums;
} Factors;

/* Rows from i on, TILE at most, that have the class of row i. */
INLINE int tile(const int32_t *codes, int i, int n_rows)
{
    int stop = i + TILE < n_rows ? i + TILE : n_rows;
    if (codes[stop - 1] == codes[i]) return stop - i; /* they are sorted */
    int n = 1;
    while (codes[i + n] == codes[i]) n++;
    return n;
}

#define REAL double
#define NAME(x) x##_double
#define ROOT sqrt
#define BITS int64_t
#define MAGIC 0x1.8p52
#define LIMIT 1.5e6
#define REDUCE(h, n) \
    (((h) - (n) * 0x1.921fb544p+0) - (n) * 0x1.0b4611a6p-34) - (n) * 0x1.3198a2e037073p-69
#define SINE(z) \
    (-0.16666666666666664621 + z * (0.0083333333333309461029 + z * (-0.00019841269836754970014 \
     + z * (2.755731610068302914e-6 + z * (-2.5051131455427947391e-8 \
     + z * 1.5918101230274120348e-10)))))
#define COSINE(z) \
    (0.041666666666666665387 + z * (-0.0013888888888887395746 + z * (0.000024801587298763433164 \
     + z * (-2.7557317270560324065e-7 + z * (2.0876146024689746601e-9 \
     + z * -1.1382614868556324576e-11)))))
#include "passes.h"
#undef REAL
#undef NAME
#undef ROOT
#undef BITS
#undef MAGIC
#undef LIMIT
#undef REDUCE
#undef SINE
#undef COSINE

#define REAL float
#define NAME(x) x##_float
#define ROOT sqrtf
#define BITS int32_t
#define MAGIC 0x1.8p23f
#define LIMIT 6000.0f
#define REDUCE(h, n) ((h) - (n) * 0x1.92p+0f) - (n) * 0x1.fb4p-12f - (n) * 0x1.4442d0p-24f
#define SINE(z) (-0.16666664661114839061f + z * (0.0083327480375171463966f \
                 + z * -0.00019587840521305323622f))
#define COSINE(z) (0.04166666465830042098f + z * (-0.0013888302802309160442f \
                   + z * 0.000024547891619813860947f))
#include "passes.h"

/* A problem of few weights, evaluated at once on all its rows. */
typedef struct {
    Block block;
    int32_t n_features;
    const double *columns; /* (m, n), the rows' features */
    const double *upstream; /* (C + 1, L) */
    double alpha, l1;
    double *F, *slopes;                  /* (L, n) */
    double *U, *V;                       /* (n) */
    double *inverse, *sums, *by_class;   /* (L), (L), (L, C + 1) */
} Small;

#define SMOOTH 1e-8 /* added to squares of weights under the root */

CLONES static void project(const double *restrict columns, const double *restrict w, int m, int n,
                           double *restrict h)
{
    for (int i = 0; i < n; i++) h[i] = w[0] * columns[i];
    for (int a = 1; a < m; a++)
        for (int i = 0; i < n; i++) h[i] += w[a] * columns[(size_t)a * n + i];
}

CLONES static void project_back(const double *restrict columns, const double *restrict dH, int m,
                                int n, double *restrict gradient)
{
    for (int a = 0; a < m; a++) {
        double sum = 0;
        const double *restrict column = columns + (size_t)a * n;
        _Pragma("omp simd reduction(+ : sum)")
        for (int i = 0; i < n; i++) sum += dH[i] * column[i];
        gradient[a] = sum;
    }
}

static double evaluate(void *problem, const double *W, double *gradient)
{
    Small *small = problem;
    const Block *block = &small->block;
    int L = block->n_filters, n = block->n_rows, m = small->n_features, C = block->n_classes;
    for (int j = 0; j < L; j++)
        project(small->columns, W + (size_t)j * m, m, n, small->F + (size_t)j * n);
    memset(small->by_class, 0, (size_t)L * (C + 1) * sizeof(double));
    activate_double(block, small->F, small->slopes, small->by_class);
    for (int j = 0; j < L; j++) {
        double square = 0;
        for (int c = 0; c <= C; c++) square += small->by_class[(size_t)j * (C + 1) + c];
        square += block->norm_epsilon;
        small->inverse[j] = square == 0 ? 1 : 1 / sqrt(square);
        small->sums[j] = 0;
    }
    Factors factors = {small->inverse, small->upstream, small->sums};
    double loss = 0;
    collect_double(block, &factors, small->F, small->U, small->V, &loss, small->sums);
    descend_double(block, &factors, small->F, small->slopes, small->U, small->V, small->slopes);
    for (int j = 0; j < L; j++) {
        double *g = gradient + (size_t)j * m;
        const double *w = W + (size_t)j * m;
        project_back(small->columns, small->slopes + (size_t)j * n, m, n, g);
        for (int a = 0; a < m; a++) {
            double size = sqrt(w[a] * w[a] + SMOOTH);
            loss += 0.5 * small->alpha * w[a] * w[a] + small->l1 * size;
            g[a] += small->alpha * w[a] + small->l1 * (w[a] / size);
        }
    }
    return loss;
}

/* Which sources this was built from: the loader refuses others. */
EXPORT const char *built_from(void) { return BUILT_FROM; }

/* Which problem is minimized, and where it stands; all zeros before the first call. */
typedef struct {
    Course course;
    int32_t problem;
} Progress;

/* How many numbers minimize_small needs to work with. */
EXPORT int64_t small_room(const Block *batch, int32_t n_features)
{
    int64_t L = batch->n_filters, n = batch->n_rows, C = batch->n_classes;
    return 2 * L * n + 2 * n + L * (C + 3) + (int64_t)bfgs_room((size_t)L * n_features);
}

/* Minimize from W (K, L, m), overwritten, the problems that a block describes, one after the other.

   columns (m, n), or (K, m, n) where columns_step is not zero; upstream (K, C + 1, L); alpha, l1
   (K); losses and norms (K, n_kept); lengths (K), how many of those there are; converged (K).
   Evaluates the loss `evaluations` times at most: the caller looks for signals in between.
   Returns 0 at the end; 1 where a start is not finite; 2 to be called again, with the same
   arguments (max_iter may be smaller), and nothing else changed. */
EXPORT int minimize_small(const Block *batch, int32_t n_features, const double *columns,
                          int64_t columns_step, const double *upstream, const double *alpha,
                          const double *l1, const Limits *limits, int64_t n_kept, double *W,
                          double *losses, double *norms, int32_t *lengths, int32_t *converged,
                          int64_t evaluations, Progress *progress, double *room)
{
    size_t L = batch->n_filters, n = batch->n_rows, m = n_features, C = batch->n_classes;
    size_t p = L * m;
    double *F = room, *slopes = F + L * n, *U = slopes + L * n, *V = U + n;
    double *inverse = V + n, *sums = inverse + L, *by_class = sums + L;
    double *of_solver = by_class + L * (C + 1);
    for (; progress->problem < batch->n_problems; progress->problem++) {
        int k = progress->problem;
        Small small = {*batch, n_features, columns + k * columns_step,
                       upstream + (size_t)k * (C + 1) * L, alpha[k], l1[k],
                       F, slopes, U, V, inverse, sums, by_class};
        small.block.n_problems = 1;
        small.block.codes += (size_t)k * batch->codes_step;
        Path path = {W + k * p, losses + k * n_kept, norms + k * n_kept, lengths[k],
                     converged[k]};
        int status = minimize_bfgs(evaluate, &small, (int)p, limits, &path, &progress->course,
                                   &evaluations, of_solver);
        lengths[k] = path.length;
        converged[k] = path.converged;
        if (status) return status;
        memset(&progress->course, 0, sizeof(Course));
    }
    return 0;
}
