/* Products of whole matrices on AMX; kernels/amx.py calls them. */

#include "amx.h"

#ifdef __AMX_BF16__

#include <sys/syscall.h>
#include <unistd.h>

/* Ask Linux for the tile registers; 1 if this process may use them. */
void request_amx(int *granted) { *granted = syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18) == 0; }

/* B (depth, items) in tiles, for `multiply`. */
void pack(const void *numbers, int is_float32, int rows_are_summed, int64_t stride, int64_t items, int64_t depth,
          char *packed) {
    Factor factor = {numbers, stride, is_float32, rows_are_summed, items, depth};
    int64_t groups = divide_up(items, SIDE), steps = divide_up(depth, SIDE);
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int64_t i = 0; i < groups * steps; i++) write_pair(&factor, 0, 0, i, 0, 0, groups, steps, packed, NULL);
        _mm_sfence(); /* what was stored past the cache is there for other threads */
    }
}

/* C (rows, columns) from A (rows, depth), none of them 0, and a packed B. `sums` has room for C, its sides rounded up
   to 32, if K is more than 32 * DEPTH. `totals` is that of multiply_rows. */
void multiply(const void *a, int a_is_float32, int a_rows_are_summed, int64_t a_stride, const char *packed,
              const float *bias, const bf16 *residual, int is_gelu, bf16 *before_gelu, const bf16 *slope_at, void *c,
              int c_is_float32, int64_t c_stride, int64_t rows, int64_t columns, int64_t depth, float *sums,
              float *totals) {
    Factor factor = {a, a_stride, a_is_float32, a_rows_are_summed, rows, depth};
    Result result = {.numbers = c,
                     .stride = c_stride,
                     .is_float32 = c_is_float32,
                     .scale = 1,
                     .bias = bias,
                     .residual = residual,
                     .is_gelu = is_gelu,
                     .before_gelu = before_gelu,
                     .slope_at = slope_at,
                     .rows = rows,
                     .columns = columns};
    int64_t panels = divide_up(columns, SIDE), steps = divide_up(depth, SIDE);
    if (steps <= DEPTH) sums = NULL;
#pragma omp parallel
    {
        /* Threads share the rows, or if these are few the columns. */
        int64_t threads = omp_get_num_threads(), row_threads = rows < 2 * SIDE * threads ? 1 : threads;
        int64_t column_parts = row_threads > 1 ? 1 : smaller(threads, panels);
        int64_t room = smaller(MOST_ROWS, SPACE / (smaller(steps, DEPTH) * PAIR) * SIDE); /* rows of A at a time */
        int64_t row_parts = divide_up(divide_up(rows, row_threads), room) * row_threads;
        int64_t height = divide_up(divide_up(rows, row_parts), SIDE) * SIDE, width = divide_up(panels, column_parts);
        configure_tiles();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < divide_up(rows, height) * column_parts; i++) {
            int64_t first = i / column_parts * height, from = i % column_parts * width;
            int64_t last = smaller(first + height, rows), to = smaller(from + width, panels);
            if (from < to) multiply_rows(&factor, packed, &result, sums, first, last, from, to, totals);
        }
        _tile_release();
        _mm_sfence();
    }
}

#else

void request_amx(int *granted) { *granted = -1; }
void pack(void) {}
void multiply(void) {}

#endif
