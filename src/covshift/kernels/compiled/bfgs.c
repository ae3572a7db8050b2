#include <math.h>
#include <string.h>

#include "bfgs.h"

static Search begin_search(double f, double d, double step)
{
    Search search = {f, d, step, 0, f, d, INFINITY, INFINITY, INFINITY, 0};
    return search;
}

/* Minimum of the cubic with these values and slopes at a < b, kept away from both ends. */
static double interpolate(const Search *s, const Limits *limits)
{
    double width = s->high - s->low;
    double z = s->d_low + s->d_high - 3 * (s->f_high - s->f_low) / width;
    double under = z * z - s->d_low * s->d_high;
    double w = sqrt(under > 0 ? under : 0);
    double step = s->high - width * (s->d_high + w - z) / (s->d_high - s->d_low + 2 * w);
    if (!isfinite(step)) step = s->low + 0.5 * width;
    if (step < s->low + limits->nearest * width) step = s->low + limits->nearest * width;
    if (step > s->high - limits->nearest * width) step = s->high - limits->nearest * width;
    return step;
}

/* Move an end of the bracket to the last step, and choose the next. */
static void narrow(Search *s, int too_long, double f, double d, const Limits *limits)
{
    double last = s->step, last_low = s->low, d_before = s->d_low;
    if (too_long) { s->high = last; s->f_high = f; s->d_high = d; }
    else { s->low = last; s->f_low = f; s->d_low = d; }
    if (isfinite(s->high)) s->step = interpolate(s, limits);
    else { /* on to where the slope would be zero if it were linear */
        double ratio = d / (d > d_before ? d_before - d : -1e-300);
        if (ratio < 1 + limits->nearest) ratio = 1 + limits->nearest;
        if (ratio > limits->farthest) ratio = limits->farthest;
        s->step = last + (last - last_low) * ratio;
    }
    if (++s->evaluations >= limits->max_evaluations) s->step = s->low;
}

static double dot(const double *a, const double *b, int p)
{
    double sum = 0;
    for (int i = 0; i < p; i++) sum += a[i] * b[i];
    return sum;
}

static double largest(const double *a, int p)
{
    double most = 0;
    for (int i = 0; i < p; i++) {
        double size = fabs(a[i]);
        if (!(size <= most)) most = size; /* what is not a number stays */
    }
    return most;
}

static void set_identity(double *H, int p)
{
    memset(H, 0, (size_t)p * p * sizeof(double));
    for (int i = 0; i < p; i++) H[(size_t)i * p + i] = 1;
}

static void times(const double *H, const double *v, int p, double *out)
{
    for (int i = 0; i < p; i++) out[i] = dot(H + (size_t)i * p, v, p);
}

/* Learn from a step s and the change y of the gradient; known: whether anything is known yet. */
static void learn(double *H, int *known, const double *s, const double *y, int p, double precision,
                  double *moved, double *half)
{
    double product = dot(s, y, p), square = dot(y, y, p);
    if (!(product > precision * square)) return;
    if (!*known) /* the first pair sets the scale */
        for (int i = 0; i < p * p; i++) H[i] *= product / square;
    *known = 1;
    times(H, y, p, moved);
    double rho = 1 / product, factor = 0.5 * (1 + rho * dot(y, moved, p));
    for (int i = 0; i < p; i++) half[i] = factor * s[i] - moved[i];
    for (int i = 0; i < p; i++)
        for (int j = 0; j < p; j++) H[(size_t)i * p + j] += rho * (half[i] * s[j] + s[i] * half[j]);
}

/* How many numbers minimize_bfgs needs to work with. */
size_t bfgs_room(size_t p) { return p * p + 8 * p; }

/* Begin, or go on; evaluations (how many are allowed) counts down.

   Returns 0 at the end; 1 where the start is not finite; 2 where the next evaluation is not
   allowed any more. */
int minimize_bfgs(Loss loss, void *problem, int p, const Limits *limits, Path *path, Course *course,
                  int64_t *evaluations, double *room)
{
    double *x = path->x, *H = room, *g = H + (size_t)p * p, *trial = g + p, *next = trial + p;
    double *direction = next + p, *s = direction + p, *y = s + p, *moved = y + p, *half = moved + p;
    double f = course->f;
    int known = course->known;
    Search search = course->search;
    if (!course->begun) {
        --*evaluations;
        f = loss(problem, x, g);
        double norm = largest(g, p);
        path->losses[0] = f;
        path->norms[0] = norm;
        path->length = 1;
        path->converged = norm <= limits->tol;
        if (!isfinite(f) || !isfinite(norm)) return 1;
        set_identity(H, p);
        for (int i = 0; i < p; i++) direction[i] = -g[i];
        double slope = -dot(g, g, p);
        /* Nothing is known of the scale yet: move by one at most. */
        search = begin_search(f, slope, slope < -1 ? 1 / sqrt(-slope) : 1);
    }
    while (!path->converged && path->length <= limits->max_iter) {
        if (--*evaluations < 0) {
            Course now = {search, f, known, 1};
            *course = now;
            return 2;
        }
        for (int i = 0; i < p; i++) trial[i] = x[i] + search.step * direction[i];
        double f_new = loss(problem, trial, next), d_new = dot(next, direction, p);
        double enough = search.f_start + limits->sufficient_decrease * search.step * search.d_start;
        int fell = f_new <= enough && f_new < search.f_start;
        int settled = search.step == search.low; /* evaluated again, only to be accepted */
        int too_long = !(isfinite(f_new) && isfinite(d_new) && fell
                         && d_new <= -limits->curvature * search.d_start);
        int too_short = !too_long && d_new < limits->curvature * search.d_start;
        if (!settled && (too_long || too_short)) {
            double scale = fabs(search.f_start) > 1 ? fabs(search.f_start) : 1;
            int hopeless = search.step * fabs(search.d_start) <= limits->precision * scale;
            int given_up = search.evaluations + 1 >= limits->max_evaluations
                           || (too_long && hopeless);
            if (given_up && too_long && search.low == 0) {
                /* No step lowers the loss: a minimum in working precision, if it is finite. */
                path->converged = isfinite(f_new) != 0;
                break;
            }
            narrow(&search, too_long, f_new, d_new, limits);
            continue;
        }
        for (int i = 0; i < p; i++) {
            s[i] = trial[i] - x[i];
            y[i] = next[i] - g[i];
        }
        learn(H, &known, s, y, p, limits->precision, moved, half);
        double scale = fabs(f) > 1 ? fabs(f) : 1, fallen = f - f_new;
        memcpy(x, trial, p * sizeof(double));
        memcpy(g, next, p * sizeof(double));
        f = f_new;
        double norm = largest(g, p), slope;
        path->losses[path->length] = f;
        path->norms[path->length++] = norm;
        path->converged = norm <= limits->tol || fallen <= 10 * limits->precision * scale;
        times(H, g, p, direction);
        for (int i = 0; i < p; i++) direction[i] = -direction[i];
        slope = dot(direction, g, p);
        if (!(slope < 0)) { /* uphill by rounding: begin anew */
            set_identity(H, p);
            known = 0;
            for (int i = 0; i < p; i++) direction[i] = -g[i];
            slope = -dot(g, g, p);
        }
        search = begin_search(f, slope, 1);
    }
    return 0;
}
