/* Steps of denoising auto-encoders of few weights, in one precision: see autoencoders.c. */

/* Overwrite h with f(h). */
INLINE void NAME(squash)(int kind, REAL *restrict h, int n)
{
    if (kind == TANH)
        for (int i = 0; i < n; i++) h[i] = TANH_OF(h[i]);
    if (kind != SIGMOID) return;
    for (int i = 0; i < n; i++) {
        REAL x = -h[i];
        x = x > FARTHEST ? FARTHEST : x < -FARTHEST ? -FARTHEST : x; /* else no finite exponential */
        REAL turns = x * (REAL)1.4426950408889634074 + MAGIC, whole = turns - MAGIC;
        REAL r = REDUCE(x, whole);
        BITS exponent;
        memcpy(&exponent, &turns, sizeof exponent);
        exponent = (exponent + BIAS) << DIGITS; /* 2 to the whole */
        REAL power;
        memcpy(&power, &exponent, sizeof power);
        h[i] = 1 / (1 + power * EXPONENTIAL(r));
    }
}

/* Multiply errors by f' of what squash returned. */
INLINE void NAME(times_slope)(int kind, REAL *restrict errors, const REAL *restrict f, int n)
{
    if (kind == SIGMOID)
        for (int i = 0; i < n; i++) errors[i] *= f[i] * (1 - f[i]);
    if (kind == TANH)
        for (int i = 0; i < n; i++) errors[i] *= 1 - f[i] * f[i];
}

INLINE REAL NAME(dot)(const REAL *restrict a, const REAL *restrict b, int n)
{
    REAL sum = 0;
    _Pragma("omp simd reduction(+ : sum)")
    for (int i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

INLINE REAL NAME(sum)(const REAL *restrict a, int n)
{
    REAL sum = 0;
    _Pragma("omp simd reduction(+ : sum)")
    for (int i = 0; i < n; i++) sum += a[i];
    return sum;
}

/* h = bias + the rows of x, n numbers of every stride, weighted. */
INLINE void NAME(layer)(const REAL *restrict weights, int step, int n_inputs, REAL bias,
                        const REAL *restrict x, size_t stride, int n, REAL *restrict h)
{
    for (int i = 0; i < n; i++) h[i] = bias;
    for (int a = 0; a < n_inputs; a++) {
        REAL weight = weights[(size_t)a * step];
        const REAL *restrict row = x + a * stride;
        for (int i = 0; i < n; i++) h[i] += weight * row[i];
    }
}

/* Gradient of one network on n samples; returns its sum of squared errors. */
INLINE double NAME(differentiate)(const Training *t, const REAL *theta, const REAL *noisy,
                                  const REAL *clean, int n, REAL *gradient, REAL *room)
{
    int m = t->n_features, L = t->n_codes, b = t->batch_size;
    size_t stride = t->stride;
    const REAL *decoder = theta + (size_t)L * (m + 1);
    REAL *of_decoder = gradient + (size_t)L * (m + 1);
    REAL *codes = room, *errors = codes + (size_t)L * b, *code_errors = errors + (size_t)m * b;
    double total = 0;
    for (int j = 0; j < L; j++) {
        const REAL *w = theta + (size_t)j * (m + 1);
        NAME(layer)(w, 1, m, w[m], noisy, stride, n, codes + (size_t)j * b);
        NAME(squash)(t->activation, codes + (size_t)j * b, n);
    }
    for (int a = 0; a < m; a++) {
        const REAL *v = t->tied ? theta + a : decoder + (size_t)a * (L + 1);
        REAL *restrict e = errors + (size_t)a * b, *restrict output = code_errors;
        NAME(layer)(v, t->tied ? m + 1 : 1, L, t->tied ? decoder[a] : v[L], codes, b, n, output);
        NAME(squash)(t->decoder, output, n);
        const REAL *restrict x = clean + a * stride;
        REAL scale = (REAL)(2.0 / ((double)m * n));
        for (int i = 0; i < n; i++) {
            REAL residual = output[i] - x[i];
            total += (double)(residual * residual);
            e[i] = residual * scale;
        }
        NAME(times_slope)(t->decoder, e, output, n);
        if (!t->tied)
            for (int j = 0; j < L; j++)
                of_decoder[(size_t)a * (L + 1) + j] = NAME(dot)(e, codes + (size_t)j * b, n);
        of_decoder[t->tied ? (size_t)a : (size_t)a * (L + 1) + L] = NAME(sum)(e, n);
    }
    for (int j = 0; j < L; j++) {
        REAL *g = gradient + (size_t)j * (m + 1);
        const REAL *code = codes + (size_t)j * b;
        const REAL *v = t->tied ? theta + (size_t)j * (m + 1) : decoder + j;
        NAME(layer)(v, t->tied ? 1 : L + 1, m, 0, errors, b, n, code_errors);
        NAME(times_slope)(t->activation, code_errors, code, n);
        for (int a = 0; a < m; a++) {
            g[a] = NAME(dot)(code_errors, noisy + a * stride, n);
            if (t->tied) g[a] += NAME(dot)(errors + (size_t)a * b, code, n); /* W is used twice */
        }
        g[m] = NAME(sum)(code_errors, n);
    }
    return total;
}

/* A step of every network for each batch of the n_rows samples. Of noisy (K, m + 1, stride) the row
   of ones is not read; clean (K, m, stride). Changed: theta (K, P), the solver's first and, of Adam,
   second (K, P), and losses (K), the sums of squared errors. room: P + (L + m + 1) batch_size. */
CLONES EXPORT void NAME(train)(const Training *t, const REAL *noisy, const REAL *clean,
                               const REAL *rates, REAL *theta, REAL *first, REAL *second,
                               double *losses, REAL *room)
{
    size_t m = t->n_features, L = t->n_codes;
    size_t p = L * (m + 1) + (t->tied ? m : m * (L + 1));
    for (int k = 0; k < t->n_networks; k++) {
        REAL *restrict x = theta + k * p, *restrict u = first + k * p, *restrict g = room;
        int64_t n_steps = t->n_steps;
        for (int start = 0; start < t->n_rows; start += t->batch_size) {
            int n = t->n_rows - start < t->batch_size ? t->n_rows - start : t->batch_size;
            const REAL *own_noisy = noisy + k * (m + 1) * t->stride + start;
            const REAL *own_clean = clean + k * m * t->stride + start;
            losses[k] += NAME(differentiate)(t, x, own_noisy, own_clean, n, g, room + p);
            n_steps++;
            REAL momentum = (REAL)t->momentum;
            for (size_t i = 0; i < p; i++) u[i] = u[i] * momentum + g[i];
            if (!t->adam) {
                for (size_t i = 0; i < p; i++) x[i] -= u[i] * rates[k];
                continue;
            }
            REAL *restrict v = second + k * p;
            double root = sqrt((1 - pow(t->decay, n_steps)) / (1 - t->decay));
            double weight = (1 - pow(t->momentum, n_steps)) / (1 - t->momentum);
            REAL decay = (REAL)t->decay, least = (REAL)(t->epsilon * root);
            REAL rate = rates[k] * (REAL)(root / weight);
            for (size_t i = 0; i < p; i++) {
                v[i] = v[i] * decay + g[i] * g[i];
                x[i] -= rate * (u[i] / (ROOT(v[i]) + least));
            }
        }
    }
}
