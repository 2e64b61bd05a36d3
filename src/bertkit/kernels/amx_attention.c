/* Attention on AMX, for one head after the other, whose scores stay in the cache; kernels/amx_attention.py calls it.

   Every head of every example is computed by one thread, so no result depends on the number of threads or on the other
   examples of a batch. */

#include "amx.h"

#ifdef __AMX_BF16__

/* Where a map, one head of one example, begins in one of the inputs or outputs: the vectors of a head lie `stride`
   numbers apart, those of the next head of the same token `size` numbers further, and those of the next example
   `length` vectors further. */
static inline int64_t find_head(int64_t map, int64_t heads, int64_t length, int64_t stride, int64_t size) {
    return map / heads * length * stride + map % heads * size;
}

/* How many of a row's `width` vectors, from the first on, are tokens: `lengths` says it by row, NULL: all are. */
static inline int64_t find_length(const int64_t *lengths, int64_t row, int64_t width) {
    return lengths ? lengths[row] : width;
}

/* Zeros for the vectors `from` to `to`, which are padding: some of them go on through the network. */
static inline void clear_padding(bf16 *vectors, int64_t stride, int64_t from, int64_t to, int64_t size) {
    for (int64_t i = from; i < to; i++) memset(vectors + i * stride, 0, size * sizeof(bf16));
}

static inline int64_t round_up(int64_t count) { return divide_up(count, SIDE) * SIDE; }

/* e^x with a relative error of 4e-6, for x from -87 to 88: instructions of AVX-512 that exp_fast cannot count on. */
static inline __m512 exp_of(__m512 x) {
    __m512 power = _mm512_mul_ps(_mm512_max_ps(_mm512_set1_ps(-100.0f), x), _mm512_set1_ps(1.44269504f));
    __m512 whole = _mm512_roundscale_ps(power, 0), rest = _mm512_sub_ps(power, whole);
    const float coefficients[] = {1.33908640e-3f, 9.67026000e-3f, 5.55034000e-2f, 2.40222300e-1f, 6.93147200e-1f, 1.0f};
    __m512 sum = _mm512_set1_ps(coefficients[0]);
    for (int i = 1; i < 6; i++) sum = _mm512_fmadd_ps(sum, rest, _mm512_set1_ps(coefficients[i]));
    return _mm512_scalef_ps(sum, whole);
}

static inline __m512 widen_16(const bf16 *from, __mmask16 mask) {
    return _mm512_cvtpbh_ps((__m256bh)_mm256_maskz_loadu_epi16(mask, from));
}

/* Which of the 16 keys from `first` on exist, and may be attended to as `allowed` says (NULL: all may). */
static inline __mmask16 find_allowed(const uint8_t *allowed, int64_t first, int64_t keys) {
    __mmask16 mask = first_lanes(keys - first);
    if (!allowed) return mask;
    return _mm_mask_test_epi8_mask(mask, _mm_maskz_loadu_epi8(mask, allowed + first), _mm_set1_epi8(-1));
}

/* The softmax of a row of scores over the allowed keys, rounded to bfloat16. `row` has room for whole vectors of 32. */
static inline void softmax_row(float *row, bf16 *shares, const uint8_t *allowed, int64_t keys) {
    __m512 most = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    for (int64_t i = 0; i < keys; i += 16) {
        most = _mm512_mask_max_ps(most, find_allowed(allowed, i, keys), most, _mm512_load_ps(row + i));
    }
    __m512 highest = _mm512_set1_ps(_mm512_reduce_max_ps(most));
    for (int64_t i = 0; i < keys; i += 16) {
        __m512 share = exp_of(_mm512_sub_ps(_mm512_load_ps(row + i), highest));
        share = _mm512_maskz_mov_ps(find_allowed(allowed, i, keys), share);
        sum = _mm512_add_ps(sum, share);
        _mm512_store_ps(row + i, share);
    }
    __m512 inverse = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));
    for (int64_t i = 0; i < keys; i += 32) {
        __m512 low = _mm512_mul_ps(_mm512_load_ps(row + i), inverse), high = _mm512_setzero_ps();
        if (i + 16 < keys) high = _mm512_mul_ps(_mm512_load_ps(row + i + 16), inverse);
        _mm512_store_si512((__m512i *)(shares + i), narrow_two(low, high));
    }
}

/* The gradient of a row of scores from that of its dropped shares. An entry was dropped if it is 0 in `dropped`; where
   the share itself is 0 it makes no difference. */
static inline void softmax_row_backward(const float *gradient, const bf16 *shares, const bf16 *dropped, bf16 *to_scores,
                                        int64_t keys) {
    __m512 total = _mm512_setzero_ps();
    for (int64_t i = 0; i < keys; i += 16) {
        __mmask16 mask = find_allowed(NULL, i, keys);
        total = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, gradient + i), widen_16(dropped + i, mask), total);
    }
    __m512 sum = _mm512_set1_ps(_mm512_reduce_add_ps(total));
    for (int64_t i = 0; i < keys; i += 16) {
        __mmask16 mask = find_allowed(NULL, i, keys);
        __m512 kept = widen_16(dropped + i, mask);
        __m512 each = _mm512_maskz_loadu_ps(_mm512_cmp_ps_mask(kept, _mm512_setzero_ps(), _CMP_NEQ_UQ), gradient + i);
        each = _mm512_mul_ps(_mm512_sub_ps(each, sum), widen_16(shares + i, mask));
        _mm256_mask_storeu_epi16(to_scores + i, mask, (__m256i)_mm512_cvtneps_pbh(each));
    }
}

/* A product which is a list of bfloat16 vectors, and one which is rows of float32 scores without gaps. */
static inline Result of_vectors(bf16 *vectors, int64_t stride, int64_t length, int64_t size, float scale) {
    return (Result){
        .numbers = vectors, .stride = stride, .is_read_soon = 1, .scale = scale, .rows = length, .columns = size};
}

static inline Result of_scores(float *scores, int64_t rows, int64_t width, float scale) {
    return (Result){.numbers = scores,
                    .stride = width,
                    .is_float32 = 1,
                    .is_read_soon = 1,
                    .scale = scale,
                    .rows = rows,
                    .columns = width};
}

/* The attention of `queries` vectors to `keys` ones, in `examples` x `heads` maps. `allowed` is NULL, or says for
   `mask_examples` (1: the same for all) x `mask_queries` (1: the same for all) queries which keys they may attend to;
   `maps_per_example` maps share a mask. `query_lengths` and `key_lengths` say how many of a row's vectors are tokens,
   if not NULL; `maps_per_row` maps share them. The softmax is kept in `probabilities`, and with dropped entries, for
   which `lowest` is above -32768, in `dropped`; both may be NULL. The result is multiplied by `scale`. */
void attend_heads(const bf16 *query, const bf16 *key, const bf16 *value, bf16 *out, int64_t examples, int64_t heads,
                  int64_t queries, int64_t keys, int64_t size, int64_t query_stride, int64_t key_stride,
                  int64_t out_stride, const uint8_t *allowed, int64_t mask_examples, int64_t mask_queries,
                  int64_t maps_per_example, const int64_t *query_lengths, const int64_t *key_lengths,
                  int64_t maps_per_row, bf16 *probabilities, bf16 *dropped, int64_t start, int lowest, float scale) {
    int64_t widest = round_up(keys), depth = round_up(size);
#pragma omp parallel
    {
        char *key_tiles = allocate(widest * depth, sizeof(bf16)), *value_tiles = allocate(widest * depth, sizeof(bf16));
        float *scores = allocate(SIDE * widest, sizeof(float));
        bf16 *shares = allocate(SIDE * widest, sizeof(bf16));
        int64_t *words = allocate(ROOM(widest), sizeof(int64_t));
        configure_tiles();
#pragma omp for schedule(static)
        for (int64_t map = 0; map < examples * heads; map++) {
            int64_t read = find_length(key_lengths, map / maps_per_row, keys), width = round_up(read);
            int64_t asked = read ? find_length(query_lengths, map / maps_per_row, queries) : 0;
            clear_padding(out + find_head(map, heads, queries, out_stride, size), out_stride, asked, queries, size);
            if (!asked) continue;
            int64_t at = find_head(map, heads, keys, key_stride, size);
            Factor to_keys = list_of_items(key + at, key_stride, read, size),
                   to_values = list_to_sum(value + at, key_stride, size, read);
            pack_all(&to_keys, key_tiles);
            pack_all(&to_values, value_tiles);
            const uint8_t *masks = NULL;
            if (allowed) masks = allowed + (mask_examples == 1 ? 0 : map / maps_per_example) * mask_queries * keys;
            for (int64_t first = 0; first < asked; first += SIDE) {
                int64_t count = smaller(SIDE, asked - first);
                int64_t own = find_head(map, heads, queries, query_stride, size) + first * query_stride;
                Factor from = list_of_items(query + own, query_stride, count, size);
                Result to_scores = of_scores(scores, count, width, 1.0f / sqrtf(size));
                multiply_rows(&from, key_tiles, &to_scores, NULL, 0, count, 0, width / SIDE, NULL);
                for (int64_t i = 0; i < count; i++) {
                    int64_t entry = (map * queries + first + i) * keys;
                    float *row = scores + i * width;
                    bf16 *share = shares + i * width;
                    const uint8_t *mask = masks ? masks + (mask_queries == 1 ? 0 : first + i) * keys : NULL;
                    softmax_row(row, share, mask, read);
                    if (probabilities) memcpy(probabilities + entry, share, read * sizeof(bf16));
                    if (dropped) {
                        const int16_t *restrict kept = find_kept(words, entry, width, start, lowest);
#pragma omp simd
                        for (int64_t j = 0; j < width; j++) share[j] *= kept[j];
                        memcpy(dropped + entry, share, read * sizeof(bf16));
                    }
                }
                Factor mixing = list_of_items(shares, width, count, read);
                bf16 *to = out + find_head(map, heads, queries, out_stride, size) + first * out_stride;
                Result to_out = of_vectors(to, out_stride, count, size, scale);
                multiply_rows(&mixing, value_tiles, &to_out, NULL, 0, count, 0, depth / SIDE, NULL);
            }
        }
        _tile_release();
        free(key_tiles), free(value_tiles), free(scores), free(shares), free(words);
    }
}

/* The gradients of query, key and value (maps, length, size) from that of the result, which was multiplied by `scale`.
   Lengths are as in attend_heads, with the same maps. */
void attend_heads_backward(const bf16 *gradient, const bf16 *query, const bf16 *key, const bf16 *value,
                           const bf16 *probabilities, const bf16 *dropped, bf16 *to_query, bf16 *to_key, bf16 *to_value,
                           int64_t maps, int64_t queries, int64_t keys, int64_t size, const int64_t *query_lengths,
                           const int64_t *key_lengths, int64_t maps_per_row, float scale) {
    int64_t widest = round_up(keys), height = round_up(queries), depth = round_up(size);
    float root = 1.0f / sqrtf(size);
#pragma omp parallel
    {
        int64_t longest = widest > height ? widest : height;
        char *tiles = allocate(longest * depth, sizeof(bf16)), *gradient_tiles = allocate(height * depth, sizeof(bf16));
        float *to_shares = allocate(SIDE * widest, sizeof(float));
        bf16 *to_scores = allocate(height * widest, sizeof(bf16));
        configure_tiles();
#pragma omp for schedule(static)
        for (int64_t map = 0; map < maps; map++) {
            const bf16 *q = query + map * queries * size, *k = key + map * keys * size, *v = value + map * keys * size;
            const bf16 *g = gradient + map * queries * size;
            const bf16 *p = probabilities + map * queries * keys, *d = dropped + map * queries * keys;
            bf16 *own_query = to_query + map * queries * size, *own_key = to_key + map * keys * size;
            bf16 *own_value = to_value + map * keys * size;
            int64_t asked = find_length(query_lengths, map / maps_per_row, queries);
            int64_t read = find_length(key_lengths, map / maps_per_row, keys), width = round_up(read);
            if (!asked || !read) asked = read = 0;
            clear_padding(own_query, size, asked, queries, size);
            clear_padding(own_key, size, read, keys, size);
            clear_padding(own_value, size, read, keys, size);
            if (!read) continue;

            Factor of_gradient = list_to_sum(g, size, size, asked), shares = list_to_sum(d, keys, read, asked);
            Result value_result = of_vectors(own_value, size, read, size, scale);
            pack_all(&of_gradient, gradient_tiles);
            multiply_rows(&shares, gradient_tiles, &value_result, NULL, 0, read, 0, depth / SIDE, NULL);

            Factor of_value = list_of_items(v, size, read, size);
            pack_all(&of_value, tiles);
            for (int64_t first = 0; first < asked; first += SIDE) {
                int64_t count = smaller(SIDE, asked - first);
                Factor from = list_of_items(g + first * size, size, count, size);
                Result result = of_scores(to_shares, count, width, scale);
                multiply_rows(&from, tiles, &result, NULL, 0, count, 0, width / SIDE, NULL);
                for (int64_t i = 0; i < count; i++) {
                    int64_t row = first + i;
                    softmax_row_backward(to_shares + i * width, p + row * keys, d + row * keys, to_scores + row * width,
                                         read);
                }
            }

            Factor scores = list_of_items(to_scores, width, asked, read), of_key = list_to_sum(k, size, size, read);
            Result query_result = of_vectors(own_query, size, asked, size, root);
            pack_all(&of_key, tiles);
            multiply_rows(&scores, tiles, &query_result, NULL, 0, asked, 0, depth / SIDE, NULL);

            Factor transposed = list_to_sum(to_scores, width, read, asked),
                   of_query = list_to_sum(q, size, size, asked);
            Result key_result = of_vectors(own_key, size, read, size, root);
            pack_all(&of_query, tiles);
            multiply_rows(&transposed, tiles, &key_result, NULL, 0, read, 0, depth / SIDE, NULL);
        }
        _tile_release();
        free(tiles), free(gradient_tiles), free(to_shares), free(to_scores);
    }
}

#else

void attend_heads(void) {}
void attend_heads_backward(void) {}

#endif
