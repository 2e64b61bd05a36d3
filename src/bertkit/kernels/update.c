/* What an optimizer does with gradients in float32; kernels/update.py calls it.

   Work is divided into blocks of fixed size or into rows, so no result depends on the number of threads. */

#include "fused.h"

#define BLOCK 4096 /* numbers whose squares are added up in float32: right to 1e-7 */

/* The sum of the squares of each block of all `lists` of numbers, one list after the other. */
void sum_squares(const float *const *lists, const int64_t *counts, int64_t number, double *sums) {
#pragma omp parallel
    {
        double *to = sums;
        for (int64_t list = 0; list < number; list++) {
            int64_t count = counts[list], blocks = divide_up(count, BLOCK);
#pragma omp for schedule(static) nowait
            for (int64_t block = 0; block < blocks; block++) {
                const float *from = lists[list] + block * BLOCK;
                int64_t size = smaller(BLOCK, count - block * BLOCK);
                float sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t i = 0; i < size; i++) sum += from[i] * from[i];
                to[block] = sum;
            }
            to += blocks;
        }
    }
}

typedef struct {
    float decay, beta1, beta2, rate, root, epsilon;
} Step;

/* AdamW for a row; without a gradient that is 0. */
static inline __attribute__((always_inline)) void update_row(float *restrict weight, float *restrict first,
                                                             float *restrict second, const float *restrict gradient,
                                                             int64_t width, const Step *step) {
#pragma omp simd
    for (int64_t i = 0; i < width; i++) {
        float each = gradient ? gradient[i] : 0.0f;
        first[i] = step->beta1 * first[i] + (1 - step->beta1) * each;
        second[i] = step->beta2 * second[i] + (1 - step->beta2) * each * each;
        weight[i] = step->decay * weight[i] - step->rate * first[i] / (sqrtf(second[i]) * step->root + step->epsilon);
    }
}

/* A step of AdamW on a table of which a batch reads a few rows. `entries` has one entry per row: that of its gradient,
   NO_GRADIENT, or NEVER_READ if it never had one; then both moments are 0 too, and the row only decays. */
#define NO_GRADIENT -1
#define NEVER_READ -2
void update_rows(float *weights, float *first, float *second, const float *gradients, const int64_t *entries,
                 int64_t rows, int64_t width, float decay, float beta1, float beta2, float rate, float root,
                 float epsilon) {
    const Step step = {decay, beta1, beta2, rate, root, epsilon};
#pragma omp parallel for schedule(static, 64) /* frequent words have low numbers */
    for (int64_t row = 0; row < rows; row++) {
        float *weight = weights + row * width, *m = first + row * width, *v = second + row * width;
        if (entries[row] == NEVER_READ) {
#pragma omp simd
            for (int64_t i = 0; i < width; i++) weight[i] *= decay;
        } else if (entries[row] == NO_GRADIENT) {
            update_row(weight, m, v, NULL, width, &step);
        } else {
            update_row(weight, m, v, gradients + entries[row] * width, width, &step);
        }
    }
}
