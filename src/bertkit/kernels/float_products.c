/* Products of float32 matrices for inference, on any processor; kernels/float_products.py calls them.

   A (rows, depth) times B (depth, columns). B is in panels of WIDTH columns, each (depth, WIDTH), so that it is read in
   order. ROWS rows of A are multiplied with a panel at a time, and their sums stay in registers. Every sum runs over
   the depth in order, so a row of the result depends neither on the other rows nor on the number of threads. */

#include "fused.h"

#include <omp.h>

#ifdef __AVX512F__
#define ROWS 8
#define VECTORS 3 /* in a row of a panel: 24 of 32 registers are sums */
#else
#define ROWS 6
#define VECTORS 2 /* 12 of 16 registers */
#endif
#define WIDTH (VECTORS * LANES) /* at most MOST_COLUMNS of float_products.py */
#define ROOM_OF_A (64 * 1024)   /* numbers of A that meet one panel after another: half of the L2 cache of a Zen 3 */
#define UNROLLED static inline __attribute__((always_inline))

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

/* The sums of `rows` rows of A, which begin `stride` apart, with one panel. Callers give `rows` as a constant, so that
   the loops over rows and vectors disappear. */
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

#define CASE(rows)                                                                                                     \
    case rows:                                                                                                         \
        sum_block(rows, a, stride, panel, depth, block);                                                               \
        break;

static void sum_rows(int64_t rows, const float *a, int64_t stride, const vector *panel, int64_t depth, vector *block) {
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
#if ROWS == 8
        CASE(7)
        CASE(8)
#endif
    }
}

/* What becomes of the sums. */
typedef struct {
    const float *bias, *residual; /* NULL for none */
    int is_gelu;
    float *numbers;
    int64_t columns; /* of the result, whose rows follow each other, as do those of the residual */
} Result;

/* Writes the sums of `rows` rows and one panel, whose top left entry is result[first][column]. */
static inline void finish(const Result *result, float *block, int64_t first, int64_t rows, int64_t column) {
    int64_t columns = smaller(WIDTH, result->columns - column);
    float bias[WIDTH] = {0};
    if (result->bias) memcpy(bias, result->bias + column, columns * sizeof(float));
    for (int64_t row = first; row < first + rows; row++, block += WIDTH) {
        int64_t offset = row * result->columns + column;
        for (int64_t i = 0; i < WIDTH; i++) block[i] += bias[i];
        if (result->is_gelu) {
#pragma omp simd
            for (int64_t i = 0; i < WIDTH; i++) block[i] *= normal_share(block[i]);
        }
        if (result->residual)
            for (int64_t i = 0; i < columns; i++) block[i] += result->residual[offset + i];
        memcpy(result->numbers + offset, block, columns * sizeof(float));
    }
}

/* The result (rows, columns), neither of them 0, is activation(A B + bias) + residual; rows of A begin `stride` apart. */
void multiply_floats(const float *a, int64_t stride, const float *panels, const float *bias, const float *residual,
                     int is_gelu, float *numbers, int64_t rows, int64_t columns, int64_t depth) {
    Result result = {bias, residual, is_gelu, numbers, columns};
    int64_t count = divide_up(columns, WIDTH), room = (ROOM_OF_A / (depth + 1) / ROWS + 1) * ROWS;
#pragma omp parallel
    {
        /* Threads share the rows, or if these are few the columns first. */
        int64_t threads = omp_get_num_threads(), few = rows < 8 * ROWS * threads;
        int64_t column_parts = few ? smaller(threads, count) : 1;
        int64_t row_threads = few ? smaller(threads / column_parts, divide_up(rows, ROWS)) : threads;
        int64_t row_parts = divide_up(divide_up(rows, row_threads), room) * row_threads;
#pragma omp for schedule(static)
        for (int64_t part = 0; part < row_parts * column_parts; part++) {
            int64_t own = part / column_parts, begin = rows * own / row_parts, end = rows * (own + 1) / row_parts;
            int64_t other = part % column_parts, from = count * other / column_parts;
            int64_t blocks = divide_up(end - begin, ROWS);
            for (int64_t panel = from; panel < count * (other + 1) / column_parts; panel++) {
                for (int64_t block = 0; block < blocks; block++) {
                    int64_t first = begin + (end - begin) * block / blocks;
                    int64_t number = begin + (end - begin) * (block + 1) / blocks - first;
                    vector sums[ROWS * VECTORS];
                    sum_rows(number, a + first * stride, stride, (const vector *)(panels + panel * depth * WIDTH),
                             depth, sums);
                    finish(&result, (float *)sums, first, number, panel * WIDTH);
                }
            }
        }
    }
}
