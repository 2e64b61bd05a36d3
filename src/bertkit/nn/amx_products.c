/* Products of whole matrices on AMX; nn/amx.py calls them. */

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
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < groups * steps; i++) write_pair(&factor, 0, 0, i, 0, 0, groups, steps, packed, NULL);
}

/* `sums` has room for C, its sides rounded up to 32, if K is more than 32 * DEPTH, and is not used otherwise. */
void multiply(const void *a, int a_is_float32, int a_rows_are_summed, int64_t a_stride, const char *packed,
              const float *bias, const bf16 *residual, int is_gelu, void *c, int c_is_float32, int64_t c_stride,
              int64_t rows, int64_t columns, int64_t depth, float *sums, float *totals) {
    Factor factor = {a, a_stride, a_is_float32, a_rows_are_summed, rows, depth};
    Result result = {c, c_stride, c_is_float32, 0, 1, bias, residual, is_gelu, rows, columns};
    int64_t panels = divide_up(columns, SIDE), steps = divide_up(depth, SIDE);
    if (rows == 0) return;
    if (steps <= DEPTH) sums = NULL;
#pragma omp parallel
    {
        /* Threads share the rows, or if these are few the columns. */
        int64_t threads = omp_get_num_threads(), parts = rows < 2 * SIDE * threads ? smaller(threads, panels) : 1;
        int64_t room = smaller(MOST_ROWS, SPACE / (smaller(steps, DEPTH) * PAIR) * SIDE);
        int64_t shares = divide_up(divide_up(rows, parts > 1 ? 1 : threads), room) * (parts > 1 ? 1 : threads);
        int64_t height = divide_up(divide_up(rows, shares), SIDE) * SIDE, width = divide_up(panels, parts);
        int64_t count = divide_up(rows, height);
        configure_tiles();
#pragma omp for schedule(static)
        for (int64_t i = 0; i < count * parts; i++) {
            int64_t first = i / parts * height, panel = i % parts * width;
            multiply_rows(&factor, packed, &result, sums, first, smaller(first + height, rows), panel,
                          smaller(panel + width, panels), totals);
        }
        _tile_release();
        _mm_sfence(); /* what was stored past the cache is there for other threads */
    }
}

#else

void request_amx(int *granted) { *granted = 0; }
void pack(void) {}
void multiply(void) {}

#endif
