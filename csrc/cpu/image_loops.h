/* image_loops: images (families/layer.h) from planes and back, for float32: for templates of each_dtype.h, after
 * gemm_pack.h. */

static void NAME(load_block)(void *context, int64_t task) {
    const nr_load *s = context;
    const nr_image *y = s->image;
    const int64_t b = task % y->blocks, sample = task / y->blocks, area = y->size[0] * y->size[1], n = y->size[1];
    const int channels = (int)least(LANES, y->channels - b * LANES);
    const T *from = (const T *)*s->from + (sample * y->channels + b * LANES) * area;
    clear_halo(y, sample, b, 0, y->size[0]);
    const int64_t rows = y->halo[0] | y->halo[1] ? y->size[0] : 1;
    for (int64_t i = 0; i < rows; i++)
        NAME(pack)(LANES, nr_image_at(y, sample, b, i, 0), rows == 1 ? area : n, from + i * n, area, 1, channels);
}

/* n columns of the channels of a block to planes that are `apart` apart. */
static void NAME(store_row)(int64_t n, int channels, const T *from, T *to, int64_t apart) {
    for (int64_t at = 0; at < n; at += LANES) {
        if (at + LANES > n && n >= LANES) at = n - LANES; /* the last ones may overlap those before */
        if (n >= LANES)
            NAME(pack_square)(apart, to + at, channels, from + at * LANES, LANES);
        else
            for (int64_t u = 0; u < n; u++)
                for (int i = 0; i < channels; i++) to[i * apart + u] = from[u * LANES + i];
    }
}

static void NAME(store_block)(void *context, int64_t task) {
    const nr_load *s = context;
    const nr_image *x = s->image;
    const int64_t b = task % x->blocks, sample = task / x->blocks, area = x->size[0] * x->size[1], n = x->size[1];
    const int channels = (int)least(LANES, x->channels - b * LANES);
    T *to = (T *)*s->from + (sample * x->channels + b * LANES) * area;
    const int64_t rows = x->halo[0] | x->halo[1] ? x->size[0] : 1;
    for (int64_t i = 0; i < rows; i++)
        NAME(store_row)(rows == 1 ? area : n, channels, nr_image_at(x, sample, b, i, 0), to + i * n, area);
}
