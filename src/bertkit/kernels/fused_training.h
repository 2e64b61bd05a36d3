/* The passes of fused_training.c for one number format, which the file that includes this one defines:

   number        its type
   load, store   from a number to a float and back
   NAME(pass)    the name of a pass for this format */

void NAME(dropout)(const number *in, number *out, int64_t count, int64_t start, int lowest, float scale) {
#pragma omp parallel for schedule(static)
    for (int64_t first = 0; first < count; first += BLOCK) {
        int64_t words[ROOM(BLOCK)], size = count - first < BLOCK ? count - first : BLOCK;
        const int16_t *kept = find_kept(words, first, size, start, lowest);
        const number *from = in + first;
        number *to = out + first;
#pragma omp simd
        for (int64_t i = 0; i < size; i++) to[i] = store(load(from[i]) * scale) * kept[i];
    }
}

/* A list of tokens, each with `parts` lists of `heads` vectors of `size` entries, to parts x (rows x heads) x width
   vectors. Token i is entry entries[i] of the rows x width entries, or entry i if `entries` is NULL; other entries
   become 0. */
void NAME(split_heads)(const number *tokens, const int64_t *entries, number *split, int64_t length, int64_t rows,
                       int64_t width, int64_t parts, int64_t heads, int64_t size) {
#pragma omp parallel
    {
        if (entries) {
#pragma omp for schedule(static)
            for (int64_t part = 0; part < parts * rows * heads; part++)
                memset(split + part * width * size, 0, width * size * sizeof(number));
        }
#pragma omp for schedule(static)
        for (int64_t token = 0; token < length; token++) {
            int64_t entry = entries ? entries[token] : token, row = entry / width, column = entry % width;
            const number *from = tokens + token * parts * heads * size;
            for (int64_t part = 0; part < parts; part++)
                for (int64_t head = 0; head < heads; head++, from += size)
                    memcpy(split + (((part * rows + row) * heads + head) * width + column) * size, from,
                           size * sizeof(number));
        }
    }
}

/* The inverse of split_heads. */
void NAME(merge_heads)(const number *split, const int64_t *entries, number *tokens, int64_t length, int64_t rows,
                       int64_t width, int64_t parts, int64_t heads, int64_t size) {
#pragma omp parallel for schedule(static)
    for (int64_t token = 0; token < length; token++) {
        int64_t entry = entries ? entries[token] : token, row = entry / width, column = entry % width;
        number *to = tokens + token * parts * heads * size;
        for (int64_t part = 0; part < parts; part++)
            for (int64_t head = 0; head < heads; head++, to += size)
                memcpy(to, split + (((part * rows + row) * heads + head) * width + column) * size,
                       size * sizeof(number));
    }
}

/* Rows of `width` scores. Row r belongs to example r / (heads * queries); `allowed` is NULL or has `mask_rows` examples
   (1: the same for all) of `mask_queries` (1: the same for all) rows. A row without an allowed entry becomes NaN.

   Rows are often short, such as 33 entries. They are copied into buffers whose length is a multiple of 16, because a
   rest of fewer than 16 entries would be computed one by one and take most of the time. */
void NAME(softmax_dropout)(const number *scores, const uint8_t *allowed, number *probabilities, number *dropped,
                           int64_t rows, int64_t width, int64_t heads, int64_t queries, int64_t mask_rows,
                           int64_t mask_queries, int64_t start, int lowest) {
    int64_t padded = FILL_UP(width);
#pragma omp parallel
    {
        float *restrict exponentials = malloc(padded * sizeof(float));
        number *restrict buffer = malloc(padded * sizeof(number));
        float *restrict bias = malloc(padded * sizeof(float));
        int64_t *words = malloc(ROOM(padded) * sizeof(int64_t));
        for (int64_t i = 0; i < padded; i++) bias[i] = i < width ? 0 : -INFINITY;
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            if (allowed) {
                int64_t example = mask_rows == 1 ? 0 : row / (heads * queries);
                int64_t query = mask_queries == 1 ? 0 : row % queries;
                const uint8_t *mask = allowed + (example * mask_queries + query) * width;
                for (int64_t i = 0; i < width; i++) bias[i] = mask[i] ? 0 : -INFINITY;
            }
            memcpy(buffer, scores + row * width, width * sizeof(number));
            float highest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : highest)
            for (int64_t i = 0; i < padded; i++) {
                float each = load(buffer[i]) + bias[i];
                exponentials[i] = each;
                highest = each > highest ? each : highest;
            }
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < padded; i++) {
                float each = exp_fast(exponentials[i] - highest);
                each = bias[i] == 0 ? each : 0.0f; /* exactly, and not e^-87 */
                exponentials[i] = each;
                sum += each;
            }
            float inverse = 1.0f / sum;
#pragma omp simd
            for (int64_t i = 0; i < padded; i++) buffer[i] = store(exponentials[i] * inverse);
            memcpy(probabilities + row * width, buffer, width * sizeof(number));
            if (dropped) {
                const int16_t *restrict kept = find_kept(words, row * width, padded, start, lowest);
#pragma omp simd
                for (int64_t i = 0; i < padded; i++) buffer[i] *= kept[i];
                memcpy(dropped + row * width, buffer, width * sizeof(number));
            }
        }
        free(exponentials);
        free(buffer);
        free(bias);
        free(words);
    }
}

/* `gradient` is that of the dropped probabilities and becomes that of the scores. An entry was dropped if it is 0 in
   `dropped`; where the probability itself is 0 it makes no difference. */
void NAME(softmax_dropout_backward)(number *restrict gradient, const number *restrict probabilities,
                                    const number *dropped, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        number *restrict grad = gradient + row * width;
        const number *restrict probability = probabilities + row * width, *kept = dropped + row * width;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < width; i++) sum += load(grad[i]) * load(kept[i]);
#pragma omp simd
        for (int64_t i = 0; i < width; i++) {
            float each = kept[i] ? load(grad[i]) : 0.0f;
            grad[i] = store(load(probability[i]) * (each - sum));
        }
    }
}

/* The logarithm of the sum of the exponentials of each row. */
void NAME(log_sum_exp)(const number *logits, int64_t stride, float *sums, int64_t rows, int64_t width) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        const number *logit = logits + row * stride;
        float highest = -INFINITY, sum = 0;
#pragma omp simd reduction(max : highest)
        for (int64_t i = 0; i < width; i++) highest = load(logit[i]) > highest ? load(logit[i]) : highest;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < width; i++) sum += exp_fast(load(logit[i]) - highest);
        sums[row] = logf(sum) + highest;
    }
}

/* `scale` times the gradient of the summed cross-entropy: the softmax, minus 1 at the label of the row. */
void NAME(cross_entropy_backward)(const number *logits, int64_t stride, const int64_t *labels, const float *sums,
                                  number *gradient, int64_t gradient_stride, int64_t rows, int64_t width, float scale) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        const number *logit = logits + row * stride;
        number *to = gradient + row * gradient_stride;
        float sum = sums[row];
#pragma omp simd
        for (int64_t i = 0; i < width; i++) to[i] = store(exp_fast(load(logit[i]) - sum) * scale);
        int64_t label = labels[row];
        to[label] = store((exp_fast(load(logit[label]) - sum) - 1.0f) * scale);
    }
}

/* out = LayerNorm(sum) with sum = states + dropout(update); mean and 1 / deviation of each row are kept. */
void NAME(residual_norm)(const float *states, const number *update, const float *weight, const float *bias, float *sums,
                         float *out, float *means, float *inverses, int64_t rows, int64_t width, float epsilon,
                         int drops, int64_t start, int lowest, float scale) {
#pragma omp parallel
    {
        int64_t *words = malloc(ROOM(width) * sizeof(int64_t));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < rows; row++) {
            const float *state = states + row * width;
            const number *added = update + row * width;
            float *sum = sums + row * width, *to = out + row * width, inverse;
            if (drops) {
                const int16_t *kept = find_kept(words, row * width, width, start, lowest);
#pragma omp simd
                for (int64_t i = 0; i < width; i++) sum[i] = state[i] + load(store(load(added[i]) * scale) * kept[i]);
            } else {
#pragma omp simd
                for (int64_t i = 0; i < width; i++) sum[i] = state[i] + load(added[i]);
            }
            float mean = find_moments(sum, width, epsilon, &inverse);
#pragma omp simd
            for (int64_t i = 0; i < width; i++) to[i] = (sum[i] - mean) * inverse * weight[i] + bias[i];
            means[row] = mean;
            inverses[row] = inverse;
        }
        free(words);
    }
}

/* The gradients of all inputs of residual_norm. Those of weight and bias are summed over blocks of `block` rows, each
   into a row of its own of `to_weight` and `to_bias`. */
void NAME(residual_norm_backward)(const float *gradient, const float *sums, const float *means, const float *inverses,
                                  const float *weight, float *to_states, number *to_update, float *to_weight,
                                  float *to_bias, int64_t rows, int64_t width, int64_t block, int drops, int64_t start,
                                  int lowest, float scale) {
#pragma omp parallel
    {
        int64_t *words = malloc(ROOM(width) * sizeof(int64_t));
#pragma omp for schedule(static)
        for (int64_t first = 0; first < rows; first += block) {
            int64_t last = first + block < rows ? first + block : rows;
            float *of_weight = to_weight + first / block * width, *of_bias = to_bias + first / block * width;
            memset(of_weight, 0, width * sizeof(float));
            memset(of_bias, 0, width * sizeof(float));
            for (int64_t row = first; row < last; row++) {
                const float *grad = gradient + row * width, *sum = sums + row * width;
                float *of_states = to_states + row * width, mean = means[row], inverse = inverses[row];
                number *of_update = to_update + row * width;
                float total = 0, product = 0;
#pragma omp simd reduction(+ : total, product)
                for (int64_t i = 0; i < width; i++) {
                    float normal = (sum[i] - mean) * inverse, weighted = grad[i] * weight[i];
                    total += weighted;
                    product += weighted * normal;
                    of_weight[i] += grad[i] * normal;
                    of_bias[i] += grad[i];
                }
                total /= width;
                product /= width;
#pragma omp simd
                for (int64_t i = 0; i < width; i++) {
                    float normal = (sum[i] - mean) * inverse;
                    of_states[i] = (grad[i] * weight[i] - total - normal * product) * inverse;
                    of_update[i] = store(of_states[i]);
                }
                if (drops) {
                    const int16_t *kept = find_kept(words, row * width, width, start, lowest);
#pragma omp simd
                    for (int64_t i = 0; i < width; i++) of_update[i] = store(load(of_update[i]) * scale) * kept[i];
                }
            }
        }
        free(words);
    }
}
