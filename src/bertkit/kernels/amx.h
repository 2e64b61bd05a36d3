/* Matrix products in bfloat16 on AMX, the matrix unit of some Intel processors: C (M, N) = A (M, K) B (K, N).

   A tile register holds 16 rows of 64 bytes. One instruction adds to 16 x 16 float32 sums the product of a tile of A,
   16 rows of 32 numbers, and a tile of B, 16 rows which hold, for 16 columns, two numbers that follow one another in
   the summed index.

   Numbers below 1e-38 count as 0 there.

   A and B are copied into such tiles first, B once for all threads ("packed", two tiles for 32 columns at a time) and A
   by the thread that multiplies it. A thread computes blocks of 32 x 32 sums in four tile registers. One entry of C is
   summed by one thread, in the order of K, so that no result depends on the number of threads. */

#pragma once

#include "fused.h"

#ifdef __AMX_BF16__

#include <immintrin.h>
#include <omp.h>

#define SIDE 32         /* rows and columns of a block of sums, and the numbers of K in a tile */
#define TILE 1024       /* bytes */
#define PAIR (2 * TILE) /* the tiles of 32 rows of A, or of 32 columns of B, for 32 numbers of K */

/* How much is multiplied at a time, found by measuring the products of BERT-mini and BERT-base with cold caches. */
#define DEPTH 48        /* tiles of K: longer sums are kept in memory in between */
#define CACHED_DEPTH 16 /* tiles of K for a panel of B, 32 kB that stay in the L1 cache */
#define GROUPS 8        /* of 32 rows of A, which use such a part of a panel one after the other */
#define SPACE (1 << 20) /* bytes for tiles of A: half of the L2 cache */
#define MOST_ROWS 512   /* of A at a time, also if K is short */

static _Thread_local char tiles_of_a[SPACE] __attribute__((aligned(64)));
static _Thread_local float partial_sums[GROUPS * SIDE * SIDE] __attribute__((aligned(64)));
static _Thread_local float blocks[2][SIDE * SIDE] __attribute__((aligned(64)));

static inline void configure_tiles(void) {
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) config.row_bytes[i] = 64, config.rows[i] = 16;
    __asm__ volatile("" ::"r"(&config) : "memory"); /* GCC believes that only 8 bytes of it are read */
    _tile_loadconfig(&config);
}

/* The first `count` of 32 numbers; as a mask of 16 bits, the first of 16. */
static inline __mmask32 first_lanes(int64_t count) { return count >= 32 ? ~0u : count > 0 ? (1u << count) - 1 : 0; }

/* One factor of a product. Its items are the rows of A or the columns of B. */
typedef struct {
    const void *numbers;
    int64_t stride;      /* of the rows in memory */
    int is_float32;      /* or bfloat16 */
    int rows_are_summed; /* whether the rows in memory run over the summed index, or over the items */
    int64_t items, depth;
} Factor;

/* bfloat16 factors: a list of items, and a list whose rows are summed. */
static inline Factor list_of_items(const bf16 *numbers, int64_t stride, int64_t items, int64_t depth) {
    return (Factor){numbers, stride, .is_float32 = 0, .rows_are_summed = 0, items, depth};
}

static inline Factor list_to_sum(const bf16 *numbers, int64_t stride, int64_t items, int64_t depth) {
    return (Factor){numbers, stride, .is_float32 = 0, .rows_are_summed = 1, items, depth};
}

static inline __m512i narrow_two(__m512 low, __m512 high) { return (__m512i)_mm512_cvtne2ps_pbh(high, low); }

/* For 16 items from `item` on (one row each) the 32 numbers of the summed index from `start` on; 0 beyond the end. */
static inline void load_items(const Factor *factor, int64_t item, int64_t start, __m512i rows[16]) {
    int64_t items = factor->items - item;
    __mmask32 mask = first_lanes(factor->depth - start);
    for (int i = 0; i < 16; i++) {
        int64_t offset = (item + i) * factor->stride + start;
        __mmask32 kept = i < items ? mask : 0;
        if (factor->is_float32) {
            const float *from = (const float *)factor->numbers + offset;
            rows[i] = narrow_two(_mm512_maskz_loadu_ps(kept, from), _mm512_maskz_loadu_ps(kept >> 16, from + 16));
        } else {
            rows[i] = _mm512_maskz_loadu_epi16(kept, (const bf16 *)factor->numbers + offset);
        }
    }
}

/* For 16 pairs of the summed index (one row each) the numbers of 16 items, the two of an item side by side. */
static inline void load_pairs(const Factor *factor, int64_t item, int64_t start, __m512i rows[16]) {
    __mmask16 mask = first_lanes(factor->items - item);
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int i = 0; i < 16; i++) {
        int64_t first = start + 2 * i, offset = first * factor->stride + item;
        __mmask16 low = first < factor->depth ? mask : 0, high = first + 1 < factor->depth ? mask : 0;
        __m512i both;
        if (factor->is_float32) {
            const float *from = (const float *)factor->numbers + offset;
            both = narrow_two(_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, from + factor->stride));
        } else {
            const bf16 *from = (const bf16 *)factor->numbers + offset;
            both = _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(low, from));
            both = _mm512_inserti64x4(both, _mm256_maskz_loadu_epi16(high, from + factor->stride), 1);
        }
        rows[i] = _mm512_permutexvar_epi16(order, both);
    }
}

/* Transpose 16 x 16 pairs of numbers. */
static inline void transpose(__m512i rows[16]) {
    __m512i other[16];
    for (int i = 0; i < 16; i += 2) {
        other[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        other[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        for (int j = 0; j < 2; j++) {
            rows[i + 2 * j] = _mm512_unpacklo_epi64(other[i + j], other[i + 2 + j]);
            rows[i + 2 * j + 1] = _mm512_unpackhi_epi64(other[i + j], other[i + 2 + j]);
        }
    }
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 16; j += 8) {
            other[j + i] = _mm512_shuffle_i32x4(rows[j + i], rows[j + 4 + i], 0x88);
            other[j + 4 + i] = _mm512_shuffle_i32x4(rows[j + i], rows[j + 4 + i], 0xdd);
        }
    }
    for (int i = 0; i < 8; i++) {
        rows[i] = _mm512_shuffle_i32x4(other[i], other[8 + i], 0x88);
        rows[8 + i] = _mm512_shuffle_i32x4(other[i], other[8 + i], 0xdd);
    }
}

/* Add the numbers of each item to its total. */
static inline void add_pairs(const __m512i rows[16], float *totals, int64_t items) {
    const __m512i ones = _mm512_set1_epi16(0x3f80);
    __mmask16 mask = first_lanes(items);
    __m512 total = _mm512_maskz_loadu_ps(mask, totals);
    for (int i = 0; i < 16; i++) total = _mm512_dpbf16_ps(total, (__m512bh)rows[i], (__m512bh)ones);
    _mm512_mask_storeu_ps(totals, mask, total);
}

/* A tile of 16 items. `is_a` says for which side, and `is_read_soon` whether by this thread; see store_floats. */
static inline void write_tile(const Factor *factor, int is_a, int is_read_soon, int64_t item, int64_t start, char *tile,
                              float *totals) {
    __m512i rows[16];
    if (factor->rows_are_summed) load_pairs(factor, item, start, rows);
    else load_items(factor, item, start, rows);
    if (totals) add_pairs(rows, totals + item, factor->items - item);
    if (factor->rows_are_summed == is_a) transpose(rows); /* a row of a tile is an item of A, but a pair of B's K */
    for (int i = 0; i < 16; i++) {
        __m512i *line = (__m512i *)(tile + 64 * i);
        if (is_read_soon) _mm512_store_si512(line, rows[i]);
        else _mm512_stream_si512(line, rows[i]);
    }
}

/* Number `index` of the groups x depth pairs of tiles from (item, start) on, each of 32 items. Their order is that in
   which memory is read; in `tiles` they lie by group. `totals` is NULL, or receives the sum of each item, which only
   works if rows are summed. */
static inline void write_pair(const Factor *factor, int is_a, int is_read_soon, int64_t index, int64_t item,
                              int64_t start, int64_t groups, int64_t depth, char *tiles, float *totals) {
    int64_t group = factor->rows_are_summed ? index % groups : index / depth;
    int64_t k = factor->rows_are_summed ? index / groups : index % depth;
    char *pair = tiles + (group * depth + k) * PAIR;
    write_tile(factor, is_a, is_read_soon, item + group * SIDE, start + k * SIDE, pair, totals);
    write_tile(factor, is_a, is_read_soon, item + group * SIDE + 16, start + k * SIDE, pair + TILE, totals);
}

/* All of B in tiles, by one thread. */
static inline void pack_all(const Factor *b, char *packed) {
    int64_t groups = divide_up(b->items, SIDE), steps = divide_up(b->depth, SIDE);
    for (int64_t i = 0; i < groups * steps; i++) write_pair(b, 0, 1, i, 0, 0, groups, steps, packed, NULL);
}

/* Where C goes, and what becomes of the sums: gelu(scale * sum + bias) + residual, or in a backward pass their product
   with the slope of GELU. */
typedef struct {
    void *numbers;
    int64_t stride;
    int is_float32;   /* or bfloat16 */
    int is_read_soon; /* by the same thread */
    float scale;
    const float *bias;    /* of each column, or NULL */
    const bf16 *residual; /* as C, without gaps between its rows, or NULL */
    int is_gelu;
    bf16 *before_gelu;    /* as C; receives what GELU is applied to, or NULL */
    const bf16 *slope_at; /* as C; where the slope of GELU is taken, or NULL */
    int64_t rows, columns;
} Result;

/* A block of sums which is complete, but not yet a part of C. */
typedef struct {
    const float *sums;
    int64_t row, column;
    int rows; /* 0: there is none */
} Finished;

/* x times the share of a normal distribution below x, a polynomial up to 4.6 (least squares, reweighted until the
   errors were equal). The error is at most 5e-5, or 1e-5 of x; rounding to bfloat16 changes up to 4e-3 of a number. */
static inline __m512 gelu(__m512 x) {
    const float coefficients[] = {-1.181418132e-12f, 1.486050820e-10f, -8.330986599e-09f, 2.765107018e-07f,
                                  -6.104382479e-06f, 9.572143655e-05f, -1.112055805e-03f, 9.803752682e-03f,
                                  -6.629749866e-02f, 3.988657259e-01f};
    /* Of two numbers of which one is NaN these functions give the second. */
    __m512 above = _mm512_max_ps(_mm512_set1_ps(-4.6f), x), inside = _mm512_min_ps(_mm512_set1_ps(4.6f), above);
    __m512 square = _mm512_mul_ps(inside, inside), sum = _mm512_set1_ps(coefficients[0]);
    for (int i = 1; i < 10; i++) sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(coefficients[i]));
    return _mm512_mul_ps(above, _mm512_fmadd_ps(sum, inside, _mm512_set1_ps(0.5f)));
}

/* The slope of GELU at x, a polynomial up to 4.3, made in the same way. The error is at most 1.3e-4; rounding to bfloat16
   changes the slope of 1 by up to 4e-3. */
static inline __m512 gelu_slope(__m512 x) {
    const float coefficients[] = {-3.142055669e-11f, 3.321013529e-09f,  -1.556048389e-07f, 4.286474905e-06f,
                                  -7.776200073e-05f, 9.860288119e-04f,  -9.000197053e-03f, 5.900992826e-02f,
                                  -2.653165162e-01f, 7.977362275e-01f};
    __m512 inside = _mm512_min_ps(_mm512_set1_ps(4.3f), _mm512_max_ps(_mm512_set1_ps(-4.3f), x));
    __m512 square = _mm512_mul_ps(inside, inside), sum = _mm512_set1_ps(coefficients[0]);
    for (int i = 1; i < 10; i++) sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(coefficients[i]));
    return _mm512_fmadd_ps(sum, inside, _mm512_set1_ps(0.5f));
}

static inline __m512 widen_low(__m512i numbers) {
    return _mm512_cvtpbh_ps((__m256bh)_mm512_castsi512_si256(numbers));
}

static inline __m512 widen_high(__m512i numbers) {
    return _mm512_cvtpbh_ps((__m256bh)_mm512_extracti64x4_epi64(numbers, 1));
}

/* Numbers that fill a line of the cache are stored past the cache, unless they are read soon: to fetch a line
   before it is overwritten took a third of the time of a product. */
static inline void store_floats(const Result *result, int64_t offset, __mmask16 mask, __m512 numbers) {
    float *to = (float *)result->numbers + offset;
    if (mask == 0xffff && !result->is_read_soon && !((uintptr_t)to & 63)) _mm512_stream_ps(to, numbers);
    else _mm512_mask_storeu_ps(to, mask, numbers);
}

static inline void store_narrow(const Result *result, bf16 *to, __mmask32 mask, __m512i numbers) {
    if (mask == ~0u && !result->is_read_soon && !((uintptr_t)to & 63)) _mm512_stream_si512((__m512i *)to, numbers);
    else _mm512_mask_storeu_epi16(to, mask, numbers);
}

/* Make the rows `from` to `to` of a finished block a part of C. */
static inline void write_rows(const Result *result, const Finished *block, int from, int to) {
    __mmask32 mask = first_lanes(result->columns - block->column);
    __m512 scale = _mm512_set1_ps(result->scale);
    for (int i = from; i < to && i < block->rows; i++) {
        int64_t offset = (block->row + i) * result->stride + block->column;
        __m512 low = _mm512_mul_ps(_mm512_load_ps(block->sums + i * SIDE), scale);
        __m512 high = _mm512_mul_ps(_mm512_load_ps(block->sums + i * SIDE + 16), scale);
        if (result->bias) {
            low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(mask, result->bias + block->column));
            high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(mask >> 16, result->bias + block->column + 16));
        }
        if (result->before_gelu) store_narrow(result, result->before_gelu + offset, mask, narrow_two(low, high));
        if (result->is_gelu) low = gelu(low), high = gelu(high);
        if (result->slope_at) {
            __m512i at = _mm512_maskz_loadu_epi16(mask, result->slope_at + offset);
            low = _mm512_mul_ps(low, gelu_slope(widen_low(at)));
            high = _mm512_mul_ps(high, gelu_slope(widen_high(at)));
        }
        if (result->residual) {
            const bf16 *residual = result->residual + (block->row + i) * result->columns + block->column;
            __m512i added = _mm512_maskz_loadu_epi16(mask, residual);
            low = _mm512_add_ps(low, widen_low(added));
            high = _mm512_add_ps(high, widen_high(added));
        }
        if (result->is_float32) {
            store_floats(result, offset, mask, low);
            store_floats(result, offset + 16, mask >> 16, high);
        } else {
            store_narrow(result, (bf16 *)result->numbers + offset, mask, narrow_two(low, high));
        }
    }
}

/* The four tiles of a block of sums, whose rows are `stride` bytes apart. */
#define EACH_QUARTER(operation, sums, stride)                                                                          \
    operation(0, (sums), (stride));                                                                                    \
    operation(1, (char *)(sums) + 64, (stride));                                                                       \
    operation(2, (char *)(sums) + 16 * (stride), (stride));                                                            \
    operation(3, (char *)(sums) + 16 * (stride) + 64, (stride))

static inline void clear_sums(void) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

/* Add the product of `depth` pairs of tiles to the sums in the registers. Meanwhile the block before is written, the
   memory that the sums go to is fetched into the L1 cache, from which tiles of A must not push it ("stream"), and a
   share of the part of B that follows, from `next` on, into the L2 cache. */
static inline void add_product(const char *a, const char *b, int64_t depth, const Result *result, Finished *before,
                               const float *sums, const char *next) {
    for (int64_t k = 0; k < depth; k++) {
        for (int64_t i = 0, line = (k - depth + 8) * 8; line >= 0 && i < 8; i++) {
            __builtin_prefetch((const char *)sums + (line + i) * 64, 1, 3);
        }
        for (int64_t i = 0; i < PAIR / GROUPS; i += 64) _mm_prefetch(next + k * (PAIR / GROUPS) + i, _MM_HINT_T1);
        _tile_stream_loadd(4, a + k * PAIR, 64);
        _tile_loadd(6, b + k * PAIR, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, b + k * PAIR + TILE, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_stream_loadd(5, a + k * PAIR + TILE, 64);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
        if (before->rows) write_rows(result, before, 4 * k, 4 * k + 4);
    }
    if (before->rows) write_rows(result, before, 4 * depth, SIDE);
    before->rows = 0;
}

/* The product of `groups` groups of 32 rows of A, whose tiles are at `a` for all `depth` tiles of this part of K, and
   of `steps` tiles of K of a panel of B. `sums` holds the sums before, if there are any (`continues`), and after,
   unless they are complete (`ends`): then they are blocks of C from `row` and `column` on. */
typedef struct {
    const char *a, *b;
    int64_t groups, depth, steps, row, column, last;
    int continues, ends;
} Part;

static inline void multiply_part(const Part *part, const Result *result, float *sums, int64_t stride,
                                 Finished *before) {
    const char *next = part->b + part->steps * PAIR;
    for (int64_t group = 0; group < part->groups; group++) {
        float *kept = sums + group * stride;
        float *target = part->ends ? blocks[before->sums == blocks[0]] : kept;
        if (part->continues) {
            EACH_QUARTER(_tile_loadd, kept, 128);
        } else {
            clear_sums();
        }
        add_product(part->a + group * part->depth * PAIR, part->b, part->steps, result, before, target,
                    next + group * part->steps * (PAIR / GROUPS));
        EACH_QUARTER(_tile_stored, target, 128);
        if (part->ends) {
            int64_t row = part->row + group * SIDE;
            *before = (Finished){target, row, part->column, (int)smaller(SIDE, part->last - row)};
        }
    }
}

/* Rows `first` to `last` of C, in the 32 columns of each panel from `from` to `to`; K is not 0. `sums` keeps the sums
   of all of C between parts of K, and may be NULL if K is at most 32 * DEPTH. `totals` is NULL, or receives the sums of
   rows of A, whose rows in memory must be summed. */
static void multiply_rows(const Factor *a, const char *packed, const Result *result, float *sums, int64_t first,
                          int64_t last, int64_t from, int64_t to, float *totals) {
    int64_t steps = divide_up(a->depth, SIDE), groups = divide_up(last - first, SIDE);
    int64_t panels = divide_up(result->columns, SIDE), block = SIDE * SIDE;
    Finished before = {blocks[1], 0, 0, 0};
    for (int64_t start = 0; start < steps; start += DEPTH) {
        int64_t depth = smaller(DEPTH, steps - start), at_once = divide_up(depth, divide_up(depth, CACHED_DEPTH));
        for (int64_t i = 0; i < groups * depth; i++) {
            write_pair(a, 1, 1, i, first, start * SIDE, groups, depth, tiles_of_a, from ? NULL : totals);
        }
        for (int64_t top = 0; top < groups; top += GROUPS) {
            for (int64_t panel = from; panel < to; panel++) {
                float *kept = partial_sums;
                if (sums) kept = sums + ((first / SIDE + top) * panels + panel) * block;
                for (int64_t k = 0; k < depth; k += at_once) {
                    int64_t count = smaller(at_once, depth - k);
                    Part part = {.a = tiles_of_a + (top * depth + k) * PAIR,
                                 .b = packed + (panel * steps + start + k) * PAIR,
                                 .groups = smaller(GROUPS, groups - top),
                                 .depth = depth,
                                 .steps = count,
                                 .row = first + top * SIDE,
                                 .column = panel * SIDE,
                                 .last = last,
                                 .continues = start + k > 0,
                                 .ends = start + k + count == steps};
                    multiply_part(&part, result, kept, sums ? panels * block : block, &before);
                }
            }
        }
    }
    write_rows(result, &before, 0, SIDE);
}

#endif
