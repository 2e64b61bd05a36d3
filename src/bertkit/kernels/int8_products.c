/* Products of 8-bit integers for inference, and the rounding around them; kernels/int8_products.py calls them.

   Inputs are rounded to 0 to 255, with a step per row, and weights are from -128 to 127. GROUP neighbouring inputs are
   multiplied at once, and a panel of B is (depth / GROUP, WIDTH, GROUP). x86 without VNNI adds two products in 16 bits
   first and cuts off what is larger, so that callers give weights for which nothing is; elsewhere sums are exact. */

#include "products.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define GROUP 4

typedef int32_t integers __attribute__((vector_size(LANES * 4)));

/* `sums` plus four products of each lane: those of unsigned numbers of `a` and signed ones of `b`. */
UNROLLED integers add_products(integers sums, integers a, integers b) {
#if defined(__AVX512VNNI__) && LANES == 16
    return (integers)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__) && LANES == 16
    __m512i pairs = _mm512_maddubs_epi16((__m512i)a, (__m512i)b);
    return sums + (integers)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
#elif defined(__AVXVNNI__) && LANES == 8
    return (integers)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)a, (__m256i)b);
#elif defined(__AVX2__) && LANES == 8
    __m256i pairs = _mm256_maddubs_epi16((__m256i)a, (__m256i)b);
    return sums + (integers)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#else
    for (int shift = 24; shift >= 0; shift -= 8) sums += (a << shift >> 24 & 255) * (b << shift >> 24);
    return sums;
#endif
}

/* The step from one integer to the next for a row times `factor` plus `shift`, which becomes `scaled`. With `shift` the
   integers span 0 to the highest entry; without it (NULL) minus to plus the largest magnitude, and 128 is 0. The step
   of a row with an entry that is not finite is NaN. */
static inline float find_step(const float *state, const float *factor, const float *shift, float *restrict scaled,
                              int64_t width) {
    float largest = 1e-12f, flaw = 0; /* NaN if an entry is not finite */
    if (shift) {
#pragma omp simd reduction(max : largest) reduction(+ : flaw)
        for (int64_t i = 0; i < width; i++) {
            float each = state[i] * factor[i] + shift[i];
            scaled[i] = each;
            largest = each > largest ? each : largest;
            flaw += each * 0.0f;
        }
    } else {
#pragma omp simd reduction(max : largest) reduction(+ : flaw)
        for (int64_t i = 0; i < width; i++) {
            float each = state[i] * factor[i], size = fabsf(each);
            scaled[i] = each;
            largest = size > largest ? size : largest;
            flaw += each * 0.0f;
        }
    }
    return largest / (shift ? 255.0f : 127.0f) + flaw;
}

/* A row as integers from 0 to 255, which stand for multiples of `step` and of which `zero` is 0. */
static inline void round_row(const float *restrict scaled, float step, int32_t zero, uint8_t *restrict to,
                             int64_t width) {
    float inverse = step == step ? 1.0f / step : 0.0f;
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        int32_t each = (int32_t)rintf(step == step ? scaled[i] * inverse : 0.0f) + zero;
        to[i] = each < 0 ? 0 : each > 255 ? 255 : each;
    }
}

#define ZERO(shift) ((shift) ? 0 : 128)

/* Each row as integers, with their step, for a product that is not ours. */
void quantize(const float *states, const float *factor, const float *shift, uint8_t *integers, float *steps,
              int64_t rows, int64_t width) {
#pragma omp parallel if (rows * width > FEW)
    {
        float *scaled = allocate(width, sizeof(float));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            float step = steps[row] = find_step(states + row * width, factor, shift, scaled, width);
            round_row(scaled, step, ZERO(shift), integers + row * width, width);
        }
        free(scaled);
    }
}

/* `product` becomes product * step + bias, or with `gelu` the erf GELU of that, or with a `residual` plus that. */
void dequantize(float *product, const float *steps, const float *bias, const float *residual, int gelu, int64_t rows,
                int64_t width) {
#pragma omp parallel for schedule(static) if (rows * width > FEW)
    for (int64_t row = 0; row < rows; row++) {
        float *to = product + row * width, step = steps[row];
        const float *added = residual ? residual + row * width : NULL;
        if (gelu) {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) {
                float x = to[i] * step + bias[i];
                to[i] = x * normal_share(x);
            }
        } else if (added) {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) to[i] = to[i] * step + bias[i] + added[i];
        } else {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) to[i] = to[i] * step + bias[i];
        }
    }
}

/* `weight` (columns, depth) as the panels of its transpose, filled up with 0. */
void pack_int8(const int8_t *weight, int8_t *panels, int64_t columns, int64_t depth) {
    int64_t groups = divide_up(depth, GROUP);
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < divide_up(columns, WIDTH); panel++)
        for (int64_t group = 0; group < groups; group++)
            for (int64_t i = 0; i < WIDTH * GROUP; i++) {
                int64_t column = panel * WIDTH + i / GROUP, k = group * GROUP + i % GROUP;
                int is_filling = column >= columns || k >= depth;
                panels[(panel * groups + group) * WIDTH * GROUP + i] = is_filling ? 0 : weight[column * depth + k];
            }
}

typedef struct {
    const int32_t *a; /* GROUP inputs in each */
    const integers *panels;
    int64_t groups; /* of a row */
    const float *steps, *scale;
    const int32_t *column_sums; /* of the integers of the weights */
    int32_t zero;
} Factors;

/* The sums of `rows` rows of A with one panel. */
UNROLLED void sum_block(const int rows, const int32_t *restrict a, const integers *restrict panel, int64_t groups,
                        integers *restrict block) {
    integers sums[ROWS * VECTORS] = {{0}};
    for (int64_t k = 0; k < groups; k++, panel += VECTORS) {
        integers b[VECTORS];
#pragma GCC unroll 3
        for (int i = 0; i < VECTORS; i++) b[i] = panel[i];
#pragma GCC unroll 3
        for (int i = 0; i < WIDTH; i += 16) /* lines of the next panel, from memory into the L2 cache */
            __builtin_prefetch((const int32_t *)(panel + groups * VECTORS) + i, 0, 2);
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
            integers same = a[row * groups + k] - (integers){0}; /* in every lane */
#pragma GCC unroll 3
            for (int i = 0; i < VECTORS; i++)
                sums[row * VECTORS + i] = add_products(sums[row * VECTORS + i], same, b[i]);
        }
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * VECTORS; i++) block[i] = sums[i];
}

UNROLLED void compute_block(const void *given, const Result *result, int64_t first, int64_t rows, int64_t panel) {
    const Factors *factors = given;
    int64_t groups = factors->groups, column = panel * WIDTH, columns = smaller(WIDTH, result->columns - column);
    integers sums[ROWS * VECTORS];
    const integers *b = factors->panels + panel * groups * VECTORS;
    CALL_WITH_ROWS(rows, sum_block, factors->a + first * groups, b, groups, sums)
    const int32_t *sum = (const int32_t *)sums, *column_sums = factors->column_sums + column;
    const float *scale = factors->scale + column;
    float block[ROWS * WIDTH] = {0};
    for (int64_t row = 0; row < rows; row++, sum += WIDTH) {
        float step = factors->steps[first + row];
        for (int64_t i = 0; i < columns; i++)
            block[row * WIDTH + i] = (sum[i] - factors->zero * column_sums[i]) * scale[i] * step;
    }
    finish(result, block, first, rows, column);
}

/* The result (rows, columns), neither of them 0, is activation((states * factor + shift) B scale + bias) + residual,
   whose first factor is rounded to integers. Rows of states begin `stride` apart. */
void multiply_int8(const float *states, int64_t stride, const float *factor, const float *shift, const int8_t *panels,
                   const int32_t *column_sums, const float *scale, const float *bias, const float *residual,
                   int is_gelu, float *numbers, int64_t rows, int64_t columns, int64_t depth) {
    int64_t groups = divide_up(depth, GROUP);
    uint8_t *a = allocate(rows * groups, GROUP);
    float *steps = allocate(rows, sizeof(float));
    Result result = {bias, residual, is_gelu, numbers, rows, columns};
    Factors factors = {(const int32_t *)a, (const integers *)panels, groups, steps, scale, column_sums, ZERO(shift)};
#pragma omp parallel
    {
        float *scaled = allocate(depth, sizeof(float));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            uint8_t *to = a + row * groups * GROUP;
            float step = steps[row] = find_step(states + row * stride, factor, shift, scaled, depth);
            round_row(scaled, step, factors.zero, to, depth);
            memset(to + depth, 0, groups * GROUP - depth);
        }
        free(scaled);
        share_blocks(&result, depth, compute_block, &factors);
    }
    free(a);
    free(steps);
}
