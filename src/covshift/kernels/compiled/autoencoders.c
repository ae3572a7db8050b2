/* Training of denoising auto-encoders of few weights: adapters/denoising_autoencoder.py has the
   formulas and the layout of a network's parameters. Samples are columns, as there. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "processors.h"

enum { SIGMOID, TANH, LINEAR };

/* momentum, decay and epsilon: of Adam beta1, beta2 and its epsilon; n_steps: taken before. */
typedef struct {
    int32_t n_networks, n_features, n_codes, n_rows, batch_size, activation, decoder, tied, adam;
    double momentum, decay, epsilon;
    int64_t n_steps, stride;
} Training;

/* The exponential of |r| <= log(2) / 2 is its series. */
#define REAL double
#define NAME(x) x##_double
#define ROOT sqrt
#define TANH_OF tanh
#define BITS uint64_t
#define MAGIC 0x1.8p52
#define DIGITS 52
#define BIAS 1023
#define FARTHEST 708.0
#define REDUCE(x, n) ((x) - (n) * 0x1.62e42fee00000p-1) - (n) * 0x1.a39ef35793c76p-33
#define EXPONENTIAL(r) (1 + (r) + (r) * (r) * (1. / 2 + (r) * (1. / 6 + (r) * (1. / 24 \
    + (r) * (1. / 120 + (r) * (1. / 720 + (r) * (1. / 5040 + (r) * (1. / 40320 \
    + (r) * (1. / 362880 + (r) * (1. / 3628800 + (r) * (1. / 39916800 \
    + (r) * (1. / 479001600 + (r) * (1. / 6227020800)))))))))))))
#include "networks.h"
#undef REAL
#undef NAME
#undef ROOT
#undef TANH_OF
#undef BITS
#undef MAGIC
#undef DIGITS
#undef BIAS
#undef FARTHEST
#undef REDUCE
#undef EXPONENTIAL

#define REAL float
#define NAME(x) x##_float
#define ROOT sqrtf
#define TANH_OF tanhf
#define BITS uint32_t
#define MAGIC 0x1.8p23f
#define DIGITS 23
#define BIAS 127
#define FARTHEST 87.0f
#define REDUCE(x, n) ((x) - (n) * 0x1.62ep-1f) - (n) * 0x1.0bfbe8p-15f
#define EXPONENTIAL(r) (1 + (r) + (r) * (r) * (1.f / 2 + (r) * (1.f / 6 + (r) * (1.f / 24 \
    + (r) * (1.f / 120 + (r) * (1.f / 720 + (r) * (1.f / 5040)))))))
#include "networks.h"
