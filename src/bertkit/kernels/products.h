/* What the products of inference share: how threads divide a product, and what becomes of its sums.

   A (rows, depth) times B (depth, columns). B is in panels of WIDTH columns, which are read in order. ROWS rows of A
   are multiplied with a panel at a time, and their sums stay in registers. Every sum runs over the depth in order, so a
   row of the result depends neither on the other rows nor on the number of threads. */

#pragma once

#include "fused.h"

#include <omp.h>

#ifdef __AVX512F__
#define ROWS 8
#define VECTORS 3 /* in a row of a panel: 24 of 32 registers are sums */
#else
#define ROWS 6
#define VECTORS 2 /* 12 of 16 registers */
#endif
#define WIDTH (VECTORS * LANES) /* at most MOST_COLUMNS of fused.py */
#define ROOM_OF_A (64 * 1024)   /* numbers of A that meet one panel after another: half of the L2 cache of a Zen 3 */
#define UNROLLED static inline __attribute__((always_inline))

/* Calls a function that is always inlined with a constant number of rows, from 1 to ROWS, so that the loops over rows
   and vectors disappear. */
#define CASE(number, function, ...)                                                                                    \
    case number:                                                                                                       \
        function(number, __VA_ARGS__);                                                                                 \
        break;
#if ROWS == 8
#define MORE_CASES(...) CASE(7, __VA_ARGS__) CASE(8, __VA_ARGS__)
#else
#define MORE_CASES(...)
#endif
#define CALL_WITH_ROWS(rows, ...)                                                                                      \
    switch (rows) {                                                                                                    \
        CASE(1, __VA_ARGS__)                                                                                           \
        CASE(2, __VA_ARGS__)                                                                                           \
        CASE(3, __VA_ARGS__)                                                                                           \
        CASE(4, __VA_ARGS__)                                                                                           \
        CASE(5, __VA_ARGS__)                                                                                           \
        CASE(6, __VA_ARGS__)                                                                                           \
        MORE_CASES(__VA_ARGS__)                                                                                        \
    }

void multiply_floats(const float *a, int64_t stride, const float *panels, const float *bias, const float *residual,
                     int is_gelu, float *numbers, int64_t rows, int64_t columns, int64_t depth);
void multiply_int8(const float *states, int64_t stride, const float *factor, const float *shift, const int8_t *panels,
                   const int32_t *column_sums, const float *scale, const float *bias, const float *residual,
                   int is_gelu, float *numbers, int64_t rows, int64_t columns, int64_t depth);

/* The result activation(sums + bias) + residual, and what it is made of. */
typedef struct {
    const float *bias, *residual; /* NULL for none */
    int is_gelu;
    float *numbers;
    int64_t rows, columns; /* rows follow each other, as do those of the residual */
} Result;

UNROLLED void finish_columns(const int64_t columns, const Result *result, float *block, int64_t first, int64_t rows,
                             int64_t column) {
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

/* Writes the sums of `rows` rows and one panel, whose top left entry is result[first][column]. */
static inline void finish(const Result *result, float *block, int64_t first, int64_t rows, int64_t column) {
    int64_t columns = result->columns - column;
    if (columns >= WIDTH) /* copies of a known length are single instructions */
        finish_columns(WIDTH, result, block, first, rows, column);
    else
        finish_columns(columns, result, block, first, rows, column);
}

/* Calls `compute`, which is inlined, for every block of at most ROWS rows and one panel. To be called by all threads of
   a parallel region, which share the blocks. */
UNROLLED void share_blocks(const Result *result, int64_t depth,
                           void (*compute)(const void *factors, const Result *result, int64_t first, int64_t rows,
                                           int64_t panel),
                           const void *factors) {
    int64_t rows = result->rows, count = divide_up(result->columns, WIDTH);
    int64_t room = (ROOM_OF_A / (depth + 1) / ROWS + 1) * ROWS, threads = omp_get_num_threads();
    /* Threads share the rows, or if these are few the columns first. */
    int64_t few = rows < 8 * ROWS * threads, column_parts = few ? smaller(threads, count) : 1;
    int64_t row_threads = few ? smaller(threads / column_parts, divide_up(rows, ROWS)) : threads;
    int64_t row_parts = divide_up(divide_up(rows, row_threads), room) * row_threads;
#pragma omp for schedule(static)
    for (int64_t part = 0; part < row_parts * column_parts; part++) {
        int64_t own = part / column_parts, begin = rows * own / row_parts, end = rows * (own + 1) / row_parts;
        int64_t other = part % column_parts, blocks = divide_up(end - begin, ROWS);
        for (int64_t panel = count * other / column_parts; panel < count * (other + 1) / column_parts; panel++)
            for (int64_t block = 0; block < blocks; block++) {
                int64_t first = begin + (end - begin) * block / blocks;
                compute(factors, result, first, begin + (end - begin) * (block + 1) / blocks - first, panel);
            }
    }
}
