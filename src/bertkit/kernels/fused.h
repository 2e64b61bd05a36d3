/* What the compiled passes share: bfloat16 numbers, and functions that compilers turn into vector instructions.

   bfloat16 numbers are the upper halves of float32 numbers, computed with in float32 and rounded to nearest, ties to
   even. */

#pragma once

#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("prefer-vector-width=512") /* a fifth faster than the default, 256 */
#endif

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint16_t bf16;

/* The vectors of the processor. Attention with wider ones, which are divided, takes 3.5 to 4.7 times as long. */
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX__)
#define LANES 8
#else
#define LANES 4
#endif
typedef float vector __attribute__((vector_size(LANES * 4)));

#define FEW 20000 /* entries; so few are computed by one thread, because starting a second one takes as long */

/* Memory for some numbers of `size` bytes, in whole lines of the cache. */
static inline void *allocate(int64_t count, int64_t size) { return aligned_alloc(64, (count * size + 63) / 64 * 64); }

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t to_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float widen(bf16 value) { return from_bits((uint32_t)value << 16); }

static inline bf16 narrow(float value) {
    uint32_t bits = to_bits(value);
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return value == value ? (bf16)rounded : 0x7fc0;
}

/* e^x with a relative error of 1e-7 (polynomial of Cephes' expf). The caller has x <= 88; below -87 it is e^-87. */
static inline float exp_fast(float x) {
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
    float power = shifted - 12582912.0f;
    float rest = x - power * 0.693359375f + power * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * rest + 1.3981999507e-3f;
    sum = sum * rest + 8.3334519073e-3f;
    sum = sum * rest + 4.1665795894e-2f;
    sum = sum * rest + 1.6666665459e-1f;
    sum = sum * rest + 5.0000001201e-1f;
    return (sum * rest * rest + rest + 1.0f) * from_bits((to_bits(shifted) + 127) << 23);
}

/* Phi(x), the share of a normal distribution below x, with an absolute error of 3e-7 (Abramowitz and Stegun 7.1.26). */
static inline float normal_share(float x) {
    float size = fabsf(x) * 0.70710678f;
    float t = 1.0f / (1.0f + 0.3275911f * size);
    float sum = 1.061405429f;
    sum = sum * t - 1.453152027f;
    sum = sum * t + 1.421413741f;
    sum = sum * t - 0.284496736f;
    sum = sum * t + 0.254829592f;
    float beyond = 0.5f * sum * t * exp_fast(-size * size);
    return x < 0 ? beyond : 1.0f - beyond;
}

/* The mean of a row, and 1 / its standard deviation in *inverse, as LayerNorm takes them. */
static inline float find_moments(const float *row, int64_t width, float epsilon, float *inverse) {
    float total = 0, squares = 0;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < width; i++) total += row[i];
    float mean = total / width;
#pragma omp simd reduction(+ : squares)
    for (int64_t i = 0; i < width; i++) squares += (row[i] - mean) * (row[i] - mean);
    *inverse = 1.0f / sqrtf(squares / width + epsilon);
    return mean;
}

/* Dropout draws no numbers: entry i is kept or dropped by 16 bits of a hash of (start + i / 4), as in nn/dropout.py, so
   the backward pass repeats the mask without storing it.

   1 for a kept entry and 0 for a dropped one, for `count` entries from entry `first` on. The result is a part of
   `words`, a buffer of ROOM(count) words. */
#define ROOM(count) ((count) / 4 + 16)
static inline const int16_t *find_kept(int64_t *words, int64_t first, int64_t count, int64_t start, int lowest) {
    int64_t begin = first / 4, number = ((first + count + 3) / 4 - begin + 7) & ~7; /* whole vectors of 8 */
    for (int64_t i = 0; i < number; i++) {
        uint64_t word = ((uint64_t)(begin + i) + (uint64_t)start) * 0x9E3779B97F4A7C15u;
        word = (word ^ (uint64_t)((int64_t)word >> 32)) * 0xBF58476D1CE4E5B9u;
        word = (word ^ (uint64_t)((int64_t)word >> 32)) * 0x94D049BB133111EBu;
        words[i] = (int64_t)word;
    }
    int16_t *parts = (int16_t *)words;
    for (int64_t i = 0; i < 4 * number; i++) parts[i] = parts[i] >= lowest;
    return parts + first % 4;
}
