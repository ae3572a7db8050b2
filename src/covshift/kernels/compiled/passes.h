/* What a pass does with the activations of a block, in one precision.

   The formulas are those of filter_passes.py, activations.py and filter_losses.py. Included once for
   each precision, with these defined:
     REAL          double or float
     NAME(x)       the name of x in that precision
     ROOT          the square root
     LIMIT         the largest |h| whose quadrant is exact
     REDUCE(h, n)  h - n pi / 2, in three parts
     SINE(z), COSINE(z)  (sin r - r) / (r z) and (cos r - 1 + z / 2) / z^2 of z = r^2
     MAGIC, BITS   what rounds to an integer when added, and the integers that hold its bits

   Arrays are as in row_blocks.py: activations (K, L, b), rows last and sorted by class, with their
   codes (b) or (K, b). Whatever is summed is summed by row blocks of TILE in one order. */

/* Overwrite h with g(h) - shift, and slope with g'(h). */
INLINE void NAME(turn)(int cosine, REAL shift, REAL *restrict h, REAL *restrict slope, int n)
{
    int far = 0;
    for (int i = 0; i < n; i++) far |= !(h[i] <= LIMIT && h[i] >= -LIMIT);
    if (far) { /* or not a number */
        for (int i = 0; i < n; i++) {
            double s = sin(h[i]), c = cos(h[i]);
            h[i] = shift + (REAL)(cosine ? c : s);
            slope[i] = (REAL)(cosine ? -s : c);
        }
        return;
    }
    BITS phase = cosine ? 1 : 0; /* cos h = sin(h + pi / 2) */
    for (int i = 0; i < n; i++) {
        REAL turns = h[i] * (REAL)0.63661977236758134308 + MAGIC;
        BITS quadrant;
        memcpy(&quadrant, &turns, sizeof quadrant);
        quadrant += phase;
        REAL r = REDUCE(h[i], turns - MAGIC);
        REAL z = r * r;
        REAL s = r + r * z * SINE(z);
        REAL c = 1 - (REAL)0.5 * z + z * z * COSINE(z);
        REAL value = quadrant & 1 ? c : s;
        REAL rate = quadrant & 1 ? s : c;
        h[i] = shift + (quadrant & 2 ? -value : value);
        slope[i] = (quadrant + 1) & 2 ? -rate : rate;
    }
}

INLINE void NAME(soften)(REAL epsilon, REAL *restrict h, REAL *restrict slope, int n)
{
    for (int i = 0; i < n; i++) {
        REAL f = ROOT(h[i] * h[i] + epsilon);
        slope[i] = f > 0 ? h[i] / f : 0;
        h[i] = f;
    }
}

INLINE REAL NAME(sum_of_squares)(const REAL *restrict f, int n)
{
    REAL sum = 0;
    _Pragma("omp simd reduction(+ : sum)")
    for (int i = 0; i < n; i++) sum += f[i] * f[i];
    return sum;
}

/* First pass: H becomes F; slopes; sums (K, L, C + 1) of F^2 by class are added to. */
CLONES void NAME(activate)(const Block *block, REAL *F, REAL *slopes, double *sums)
{
    int L = block->n_filters, b = block->n_rows, C = block->n_classes;
    for (int k = 0; k < block->n_problems; k++)
        for (int j = 0; j < L; j++) {
            REAL *f = F + ((size_t)k * L + j) * b, *s = slopes + ((size_t)k * L + j) * b;
            double *sum = sums + ((size_t)k * L + j) * (C + 1);
            const int32_t *codes = block->codes + k * block->codes_step;
            for (int i = 0, n; i < b; i += n) {
                n = tile(codes, i, b);
                if (block->activation == ABS) NAME(soften)((REAL)block->epsilon, f + i, s + i, n);
                else NAME(turn)(block->activation == COS, (REAL)(1 + block->epsilon), f + i, s + i, n);
                sum[codes[i]] += NAME(sum_of_squares)(f + i, n);
            }
        }
}

/* 1 / r of a tile from r^2, and q / r^2; returns the sum of q. A norm of zero divides by one. */
INLINE double NAME(finish_rows)(REAL *restrict r2, REAL *restrict q, int n)
{
    double loss = 0;
    for (int i = 0; i < n; i++) r2[i] = 1 / ROOT(r2[i] > 0 ? r2[i] : 1);
    _Pragma("omp simd reduction(+ : loss)")
    for (int i = 0; i < n; i++) {
        REAL one = q[i] * r2[i];
        loss += one;
        q[i] = one * r2[i] * r2[i];
    }
    return loss;
}

INLINE double NAME(term)(const REAL *restrict U, const REAL *restrict V, const REAL *restrict f,
                         REAL upstream, REAL inverse, int n)
{
    REAL linear = 0, square = 0;
    _Pragma("omp simd reduction(+ : linear, square)")
    for (int i = 0; i < n; i++) {
        linear += U[i] * f[i];
        square += V[i] * (f[i] * f[i]);
    }
    return (double)upstream * linear - (double)inverse * square;
}

/* Second pass of the joint loss: U = 1 / r and V = q / r^2 (K, b); losses (K) and the terms of s
   (K, L) are added to. */
CLONES void NAME(collect)(const Block *block, const Factors *factors, const REAL *F, REAL *U, REAL *V,
                   double *losses, double *sums)
{
    int L = block->n_filters, b = block->n_rows, C = block->n_classes;
    const REAL *all_inverse = factors->inverse, *all_upstream = factors->upstream;
    for (int k = 0; k < block->n_problems; k++) {
        const int32_t *codes = block->codes + k * block->codes_step;
        const REAL *inverse = all_inverse + (size_t)k * L, *f = F + (size_t)k * L * b;
        REAL *u = U + (size_t)k * b, *v = V + (size_t)k * b;
        for (int i = 0, n; i < b; i += n) {
            n = tile(codes, i, b);
            const REAL *upstream = all_upstream + ((size_t)k * (C + 1) + codes[i]) * L;
            REAL r2[TILE], q[TILE];
            for (int t = 0; t < n; t++) { r2[t] = (REAL)block->norm_epsilon; q[t] = 0; }
            for (int j = 0; j < L; j++) {
                const REAL *restrict row = f + (size_t)j * b + i;
                REAL scale = inverse[j], gain = upstream[j] * scale, square = scale * scale;
                for (int t = 0; t < n; t++) {
                    r2[t] += square * (row[t] * row[t]);
                    q[t] += gain * row[t];
                }
            }
            losses[k] += NAME(finish_rows)(r2, q, n);
            memcpy(u + i, r2, n * sizeof(REAL));
            memcpy(v + i, q, n * sizeof(REAL));
            for (int j = 0; j < L; j++)
                sums[(size_t)k * L + j] +=
                    NAME(term)(r2, q, f + (size_t)j * b + i, upstream[j], inverse[j], n);
        }
    }
}

/* Third pass of the joint loss: out = dL/dF times the slopes; out may be the slopes. */
CLONES void NAME(descend)(const Block *block, const Factors *factors, const REAL *F, const REAL *slopes,
                   const REAL *U, const REAL *V, REAL *out)
{
    int L = block->n_filters, b = block->n_rows, C = block->n_classes;
    const REAL *all_inverse = factors->inverse, *all_upstream = factors->upstream, *s = factors->sums;
    for (int k = 0; k < block->n_problems; k++) {
        const int32_t *codes = block->codes + k * block->codes_step;
        const REAL *restrict u = U + (size_t)k * b, *restrict v = V + (size_t)k * b;
        for (int j = 0; j < L; j++) {
            size_t at = ((size_t)k * L + j) * b;
            REAL scale = all_inverse[(size_t)k * L + j], square = scale * scale;
            REAL all_rows = s[(size_t)k * L + j] * square * scale;
            for (int i = 0, n; i < b; i += n) {
                n = tile(codes, i, b);
                REAL gain = all_upstream[((size_t)k * (C + 1) + codes[i]) * L + j] * scale;
                const REAL *f = F + at, *slope = slopes + at;
                REAL *dH = out + at;
                _Pragma("omp simd")
                for (int t = i; t < i + n; t++)
                    dH[t] = slope[t] * (gain * u[t] - f[t] * (square * v[t] + all_rows));
            }
        }
    }
}

/* The one pass of the soft absolute value: H becomes the gradient but for the term with s, of which
   the terms are added to sums (K, L). room: (L, TILE). */
CLONES void NAME(soft_pass)(const Block *block, const Factors *factors, REAL *H, REAL *room,
                            double *losses, double *sums)
{
    int L = block->n_filters, b = block->n_rows, C = block->n_classes;
    const REAL *all_inverse = factors->inverse, *all_upstream = factors->upstream;
    REAL epsilon = (REAL)block->epsilon;
    for (int k = 0; k < block->n_problems; k++) {
        const int32_t *codes = block->codes + k * block->codes_step;
        const REAL *inverse = all_inverse + (size_t)k * L;
        for (int i = 0, n; i < b; i += n) {
            n = tile(codes, i, b);
            const REAL *upstream = all_upstream + ((size_t)k * (C + 1) + codes[i]) * L;
            REAL r2[TILE], q[TILE];
            for (int t = 0; t < n; t++) { r2[t] = (REAL)block->norm_epsilon; q[t] = 0; }
            for (int j = 0; j < L; j++) {
                const REAL *restrict h = H + ((size_t)k * L + j) * b + i;
                REAL *restrict f = room + (size_t)j * TILE;
                REAL scale = inverse[j], gain = upstream[j] * scale, square = scale * scale;
                for (int t = 0; t < n; t++) {
                    REAL f2 = h[t] * h[t] + epsilon;
                    f[t] = ROOT(f2);
                    r2[t] += square * f2;
                    q[t] += gain * f[t];
                }
            }
            losses[k] += NAME(finish_rows)(r2, q, n);
            for (int j = 0; j < L; j++) {
                REAL *restrict h = H + ((size_t)k * L + j) * b + i;
                const REAL *restrict f = room + (size_t)j * TILE;
                REAL scale = inverse[j], gain = upstream[j] * scale, square = scale * scale;
                sums[(size_t)k * L + j] += NAME(term)(r2, q, f, upstream[j], scale, n);
                for (int t = 0; t < n; t++) h[t] *= gain * r2[t] / f[t] - square * q[t];
            }
        }
    }
}
