/* random_loops: words to floats of one type, a template of each_dtype.h for random_isa.c, which has the picture. */

#define UNIFORM(i, kept) (sizeof(T) == sizeof(float) ? (T)uniform32(words[i] & (kept)) : (T)uniform64(words + 2 * (i)))

/* n elements from the first on: `words` has one or two for each. */
static void OF_DTYPE(draw)(const nr_random_plan *plan, int32_t kind, int64_t first, int64_t n,
                           const uint32_t *restrict words) {
    T *restrict out = (T *)plan->out + first;
    if (kind == NR_NORMAL) { /* made in twos, and n kept */
        T pairs[WORDS * sizeof(float) / sizeof(T)];
        for (int64_t i = 0; i < (n + 1) / 2; i++)
            _Generic((T)0, float: normals_of, double: wide_normals_of)(words + sizeof(T) / 2 * i, pairs + 2 * i);
        memcpy(out, pairs, (size_t)n * sizeof(T));
    } else if (kind == NR_DROPOUT) {
        const T *restrict x = (const T *)plan->x + first, least = (T)plan->least, scale = (T)plan->scale;
        uint8_t *restrict mask = plan->mask + first;
        for (int64_t i = 0; i < n; i++) {
            const bool kept = UNIFORM(i, ~0u) >= least;
            out[i] = x[i] * (kept ? scale : (T)0);
            mask[i] = kept;
        }
    } else if (kind == NR_BERNOULLI) {
        const T *p = (const T *)plan->probability + first;
        for (int64_t i = 0; i < n; i++) out[i] = UNIFORM(i, ~0u) < p[i] ? (T)1 : (T)0;
    } else {
        const uint32_t kept = (uint32_t)-(((int64_t)1 << 32) / plan->span); /* fewer values: fewer of the upper bits */
        for (int64_t i = 0; i < n; i++) out[i] = UNIFORM(i, kept);
    }
}
#undef UNIFORM
