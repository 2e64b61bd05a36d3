/* Passes of inference on a CPU: attention of short texts, LayerNorm, and whole blocks of BERT.

   kernels/fused_inference.py calls them. Every text and token is computed alone, so no result depends on the number of
   threads or on the other texts of a batch. */

#include "products.h"

#define AT_A_TIME 4 /* keys, or entries of values, that are multiplied by the same loaded numbers */
#define FEWEST_TOKENS 20 /* of a thread that takes texts of its own through the blocks */

static inline void load(const void *numbers, int is_bf16, int64_t offset, int64_t count, float *restrict to) {
    if (is_bf16) {
        const bf16 *from = (const bf16 *)numbers + offset;
        for (int64_t i = 0; i < count; i++) to[i] = widen(from[i]);
    } else {
        memcpy(to, (const float *)numbers + offset, count * sizeof(float));
    }
}

static inline void store(const float *restrict numbers, int is_bf16, int64_t offset, int64_t count, void *out) {
    if (is_bf16) {
        bf16 *to = (bf16 *)out + offset;
        for (int64_t i = 0; i < count; i++) to[i] = narrow(numbers[i]);
    } else {
        memcpy((float *)out + offset, numbers, count * sizeof(float));
    }
}

/* LANES queries, one per lane, become the result of their attention. `keys` and `values` are (length, size); keys has
   room for a multiple of 4. */
static inline void attend(const float *keys, const float *values, vector *lanes, vector *scores, int64_t length,
                          int64_t size) {
    for (int64_t t = 0; t < length; t += AT_A_TIME) {
        const float *k = keys + t * size;
        vector a = {0}, b = {0}, c = {0}, d = {0};
        for (int64_t i = 0; i < size; i++) {
            a += k[i] * lanes[i];
            b += k[size + i] * lanes[i];
            c += k[2 * size + i] * lanes[i];
            d += k[3 * size + i] * lanes[i];
        }
        scores[t] = a, scores[t + 1] = b, scores[t + 2] = c, scores[t + 3] = d;
    }
    vector highest = scores[0], sum = {0};
    for (int64_t t = 1; t < length; t++) {
        float *top = (float *)&highest;
        const float *each = (const float *)(scores + t);
#pragma omp simd
        for (int i = 0; i < LANES; i++) top[i] = each[i] > top[i] ? each[i] : top[i];
    }
    for (int64_t t = 0; t < length; t++) {
        scores[t] -= highest;
        float *each = (float *)(scores + t);
#pragma omp simd
        for (int i = 0; i < LANES; i++) each[i] = exp_fast(each[i]);
        sum += scores[t];
    }
    vector inverse = 1.0f / sum;
    for (int64_t i = 0; i < size; i += AT_A_TIME) {
        const float *v = values + i;
        vector a = {0}, b = {0}, c = {0}, d = {0};
        for (int64_t t = 0; t < length; t++, v += size) {
            a += v[0] * scores[t];
            b += v[1] * scores[t];
            c += v[2] * scores[t];
            d += v[3] * scores[t];
        }
        lanes[i] = a * inverse, lanes[i + 1] = b * inverse, lanes[i + 2] = c * inverse, lanes[i + 3] = d * inverse;
    }
}

/* Attention of `rows` texts of `length` tokens, each to all tokens of its text, with `queries` queries per text.

   Query q of text r begins at entry (r * queries + q) * query_stride of `query`, key k of text r at entry
   (r * length + k) * stride of `key`, and so for `value`; head h begins h * size later. The result (rows * queries,
   heads * size) has the type of the inputs. `size` is a multiple of 4. */
void attend_rows(const void *query, const void *key, const void *value, void *out, int is_bf16, int64_t rows,
                 int64_t queries, int64_t length, int64_t heads, int64_t size, int64_t query_stride, int64_t stride) {
    int64_t padded = (length + AT_A_TIME - 1) / AT_A_TIME * AT_A_TIME;
    float scale = 1.0f / sqrtf((float)size);
#pragma omp parallel
    {
        float *keys = allocate(padded * size, sizeof(float)), *values = allocate(length * size, sizeof(float));
        float *own = allocate(size, sizeof(float)), *lanes = allocate(size * LANES, sizeof(float));
        float *scores = allocate(padded * LANES, sizeof(float));
        memset(keys, 0, padded * size * sizeof(float));
        memset(lanes, 0, size * LANES * sizeof(float));
#pragma omp for schedule(static)
        for (int64_t map = 0; map < rows * heads; map++) {
            int64_t row = map / heads, head = map % heads;
            for (int64_t t = 0; t < length; t++) {
                int64_t offset = (row * length + t) * stride + head * size;
                load(key, is_bf16, offset, size, keys + t * size);
                load(value, is_bf16, offset, size, values + t * size);
            }
            for (int64_t first = 0; first < queries; first += LANES) {
                int64_t count = queries - first < LANES ? queries - first : LANES;
                for (int64_t q = 0; q < count; q++) {
                    load(query, is_bf16, (row * queries + first + q) * query_stride + head * size, size, own);
                    for (int64_t i = 0; i < size; i++) lanes[i * LANES + q] = own[i] * scale;
                }
                attend(keys, values, (vector *)lanes, (vector *)scores, length, size);
                for (int64_t q = 0; q < count; q++) {
                    for (int64_t i = 0; i < size; i++) own[i] = lanes[i * LANES + q];
                    store(own, is_bf16, ((row * queries + first + q) * heads + head) * size, size, out);
                }
            }
        }
        free(keys);
        free(values);
        free(own);
        free(lanes);
        free(scores);
    }
}

/* LayerNorm of each row, in the type of the input. */
void layer_norm(const void *states, const float *weight, const float *bias, void *out, int is_bf16, int64_t rows,
                int64_t width, float epsilon) {
#pragma omp parallel if (rows * width > FEW)
    {
        float *state = allocate(width, sizeof(float));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            load(states, is_bf16, row * width, width, state);
            float inverse, mean = find_moments(state, width, epsilon, &inverse);
#pragma omp simd
            for (int64_t i = 0; i < width; i++) state[i] = (state[i] - mean) * inverse * weight[i] + bias[i];
            store(state, is_bf16, row * width, width, out);
        }
        free(state);
    }
}

/* A linear layer, in float32 or in 8-bit integers. */
typedef struct {
    const void *panels;
    const float *bias;
    const int32_t *column_sums; /* this and what follows are NULL in float32 */
    const float *scale, *factor, *shift;
    int64_t columns, depth;
} Layer;

/* What kernels/fused_inference.py writes into a list of 64-bit integers. */
typedef struct {
    Layer qkv, output, inner, outer;
    const float *attention_weight, *attention_bias, *feed_forward_weight, *feed_forward_bias; /* of LayerNorm */
    int64_t heads;
} Block;

static void apply(const Layer *layer, const float *states, const float *residual, int is_gelu, float *to, int64_t rows) {
    int64_t columns = layer->columns, depth = layer->depth;
    if (layer->scale)
        multiply_int8(states, depth, layer->factor, layer->shift, layer->panels, layer->column_sums, layer->scale,
                      layer->bias, residual, is_gelu, to, rows, columns, depth);
    else
        multiply_floats(states, depth, layer->panels, layer->bias, residual, is_gelu, to, rows, columns, depth);
}

/* Consecutive texts: the length of each, and all their tokens. */
typedef struct {
    const int64_t *lengths;
    int64_t texts, tokens;
} Texts;

/* One of the blocks of run_blocks; `to` may be `from`. `room` is for tokens * (4 * width + width of the feed-forward
   layer) numbers. */
static void run_block(const Block *block, const Texts *texts, const float *from, float *to, float *room,
                      float epsilon) {
    int64_t count = texts->tokens, width = block->output.columns, first = 0;
    float *qkv = room, *context = qkv + count * 3 * width, *inner = context + count * width;
    apply(&block->qkv, from, NULL, 0, qkv, count);
    for (int64_t text = 0, rows; text < texts->texts; text += rows) {
        int64_t length = texts->lengths[text];
        for (rows = 1; text + rows < texts->texts && texts->lengths[text + rows] == length;) rows++;
        const float *query = qkv + first * 3 * width;
        attend_rows(query, query + width, query + 2 * width, context + first * width, 0, rows, length, length,
                    block->heads, width / block->heads, 3 * width, 3 * width);
        first += rows * length;
    }
    apply(&block->output, context, from, 0, to, count);
    layer_norm(to, block->attention_weight, block->attention_bias, to, 0, count, width, epsilon);
    apply(&block->inner, to, NULL, 1, inner, count);
    apply(&block->outer, inner, to, 0, context, count);
    layer_norm(context, block->feed_forward_weight, block->feed_forward_bias, to, 0, count, width, epsilon);
}

/* The first text of a part of all texts, and its first token. A text belongs to the part that has its middle. */
static int64_t find_start(const Texts *all, int64_t part, int64_t parts, int64_t *token) {
    int64_t text = 0;
    for (*token = 0; text < all->texts; *token += all->lengths[text++])
        if ((*token + all->lengths[text] / 2) * parts >= part * all->tokens) break;
    return text;
}

/* The output of the last of `num_blocks` blocks for some texts. */
static void run_texts(const Block *blocks, int64_t num_blocks, const Texts *texts, const float *tokens, float *out,
                      float epsilon) {
    int64_t numbers = 4 * blocks->output.columns + blocks->inner.columns;
    float *room = allocate(texts->tokens * numbers, sizeof(float));
    for (int64_t block = 0; block < num_blocks; block++)
        run_block(blocks + block, texts, block ? out : tokens, out, room, epsilon);
    free(room);
}

/* `out` becomes the output of the last of `num_blocks` blocks, at least one, for `count` tokens of `num_texts` texts,
   which follow one another.

   Every thread takes its texts through all blocks: threads that share each product wait after it for the one whose core
   another program has taken. Batches of 2 to 32 texts take 0.7 to 0.85 times as long (MiniLM, two cores of a busy
   Zen 3). Where a thread would have few tokens they share the products of all texts. */
void run_blocks(const Block *blocks, int64_t num_blocks, const float *tokens, float *out, const int64_t *lengths,
                int64_t num_texts, int64_t count, float epsilon) {
    Texts all = {lengths, num_texts, count};
    int64_t width = blocks->output.columns, parts = omp_get_max_threads();
    if (count == 0) return;
    if (parts == 1 || count < parts * FEWEST_TOKENS) {
        /* In no parallel region, not even one of a single thread: within it each product would start new threads, and a
           text alone would take 25 ms instead of 6. */
        run_texts(blocks, num_blocks, &all, tokens, out, epsilon);
        return;
    }
#pragma omp parallel for schedule(dynamic)
    for (int64_t part = 0; part < parts; part++) {
        int64_t first, end, text = find_start(&all, part, parts, &first);
        Texts own = {lengths + text, find_start(&all, part + 1, parts, &end) - text, end - first};
        if (first < end)
            run_texts(blocks, num_blocks, &own, tokens + first * width, out + first * width, epsilon);
    }
}
