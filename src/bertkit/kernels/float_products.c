/* Products of float32 matrices for inference, on any processor; kernels/float_products.py calls them. A panel of B is
   (depth, WIDTH). */

#include "products.h"

/* `weight` (columns, depth) as the panels of its transpose; the last one is filled up with 0. */
void pack_floats(const float *weight, float *panels, int64_t columns, int64_t depth) {
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < divide_up(columns, WIDTH); panel++)
        for (int64_t k = 0; k < depth; k++)
            for (int64_t i = 0; i < WIDTH; i++) {
                int64_t column = panel * WIDTH + i;
                panels[(panel * depth + k) * WIDTH + i] = column < columns ? weight[column * depth + k] : 0;
            }
}

/* The sums of `rows` rows of A, which begin `stride` apart, with one panel. */
UNROLLED void sum_block(const int rows, const float *restrict a, int64_t stride, const vector *restrict panel,
                        int64_t depth, vector *restrict block) {
    vector sums[ROWS * VECTORS] = {{0}};
    for (int64_t k = 0; k < depth; k++, a++, panel += VECTORS) {
        vector b[VECTORS];
#pragma GCC unroll 3
        for (int i = 0; i < VECTORS; i++) b[i] = panel[i];
#pragma GCC unroll 3
        for (int i = 0; i < WIDTH; i += 16) /* lines of the next panel, from memory into the L2 cache */
            __builtin_prefetch((const float *)(panel + depth * VECTORS) + i, 0, 2);
#pragma GCC unroll 8
        for (int row = 0; row < rows; row++) {
#pragma GCC unroll 3
            for (int i = 0; i < VECTORS; i++) sums[row * VECTORS + i] += a[row * stride] * b[i];
        }
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * VECTORS; i++) block[i] = sums[i];
}

typedef struct {
    const float *a, *panels;
    int64_t stride, depth;
} Factors;

UNROLLED void compute_block(const void *given, const Result *result, int64_t first, int64_t rows, int64_t panel) {
    const Factors *factors = given;
    const vector *b = (const vector *)(factors->panels + panel * factors->depth * WIDTH);
    vector sums[ROWS * VECTORS];
    CALL_WITH_ROWS(rows, sum_block, factors->a + first * factors->stride, factors->stride, b, factors->depth, sums)
    finish(result, (float *)sums, first, rows, panel * WIDTH);
}

/* The result (rows, columns), neither of them 0, is activation(A B + bias) + residual; rows of A are `stride` apart. */
void multiply_floats(const float *a, int64_t stride, const float *panels, const float *bias, const float *residual,
                     int is_gelu, float *numbers, int64_t rows, int64_t columns, int64_t depth) {
    Result result = {bias, residual, is_gelu, numbers, rows, columns};
    Factors factors = {a, panels, stride, depth};
#pragma omp parallel
    share_blocks(&result, depth, compute_block, &factors);
}
