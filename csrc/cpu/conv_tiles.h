/* conv_tiles: convolutions of bfloat16 by the tile instructions of amx.h, or their emulation, with sums in float32 that
 * are rounded once. Included by conv_isa.c after amx.h.
 *
 *   x, or (input) y -> image: planes of rows between their zeros, one plane for each residue of a stride. The rows of
 *                      all samples follow each other, so that a position is one number, and a tap adds another to it
 *
 *   forward, input     right: an image of pairs of channels, of which 16 pairs at 16 positions are loaded as a tile;
 *                      left: the weight, (16 channels that are written, steps of a tap and 32 channels that are read)
 *   weight             left: an image of x, of which 16 channels at 32 positions are loaded as a tile;
 *                      right: y, transposed: (16 channels, steps of 32 positions, pairs of positions)
 *
 * Where channels or positions are few, the image is unfolded: it has a plane for each tap of a channel, and the weight
 * is read where it lies. Sums at positions between the rows are left out. A part of the samples, or of the rows of one,
 * is in memory at a time. */

#ifdef EMULATED /* only tests run it */
#define AROUND_TILES __attribute__((cold)) static
#else
#define AROUND_TILES static
#endif

/* A loop that takes less of the time than its copies would take of the library. */
#if defined(__clang__)
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* ---- rows ------------------------------------------------------------------------------------------------ */

#if defined(__AVX512F__)
/* Bits [from, to). */
INLINE __mmask32 mask_between(int64_t from, int64_t to) {
    const uint64_t below = ((uint64_t)1 << greatest(0, least(from, 32))) - 1;
    return (__mmask32)((((uint64_t)1 << greatest(0, least(to, 32))) - 1) & ~below);
}
#endif

/* Copies n numbers. */
INLINE void copy_numbers(bf16_bits *to, const bf16_bits *from, int64_t n) {
#if defined(__AVX512F__)
    for (int64_t u = 0; u < n; u += 32) {
        const __mmask32 within = mask_between(0, n - u);
        _mm512_mask_storeu_epi16(to + u, within, _mm512_maskz_loadu_epi16(within, from + u));
    }
#else
    memcpy(to, from, (size_t)n * sizeof *to);
#endif
}

/* A row of `pitch` numbers: `before` zeros, n numbers that are `step` apart, and zeros. */
static __attribute__((noinline)) void pad_row(bf16_bits *to, int64_t pitch, int64_t before, int64_t n,
                                              const bf16_bits *from, int64_t step) {
#if defined(__AVX512F__)
    for (int64_t u = 0; u < pitch && step == 1; u += 32) {
        const __m512i v = _mm512_maskz_loadu_epi16(mask_between(before - u, before + n - u), from + u - before);
        _mm512_mask_storeu_epi16(to + u, mask_between(0, pitch - u), v);
    }
    for (int64_t u = 0; u < pitch && step == 2; u += 16) {
        const __mmask32 seen = mask_between(2 * (before - u), 2 * (before + n - u) - 1);
        const __m512i v = _mm512_maskz_loadu_epi16(seen, from + 2 * (u - before));
        _mm256_mask_storeu_epi16(to + u, (__mmask16)mask_between(0, least(16, pitch - u)), _mm512_cvtepi32_epi16(v));
    }
    if (step <= 2) return;
#endif
    for (int64_t u = 0; u < pitch; u++) to[u] = u >= before && u < before + n ? from[(u - before) * step] : 0;
}

/* to[i] = from[i * step] for i < count, and zeros up to TILE_DEPTH. */
INLINE void every_nth(bf16_bits *to, const bf16_bits *from, int64_t step, int64_t count) {
#if defined(__AVX512F__)
    const __m512i number = _mm512_set_epi16(31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
                                            12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i lane = _mm512_mullo_epi16(number, _mm512_set1_epi16((short)step));
    const int64_t most = 31 / step + 1; /* of a vector */
    __m512i v = _mm512_setzero_si512();
    for (int64_t c = 0; c < count; c += most) {
        const int64_t taken = least(most, count - c);
        const __m512i x = _mm512_maskz_loadu_epi16(mask_between(0, (taken - 1) * step + 1), from + c * step);
        const __m512i at = _mm512_sub_epi16(lane, _mm512_set1_epi16((short)(c * step)));
        v = _mm512_mask_permutexvar_epi16(v, mask_between(c, c + taken), at, x);
    }
    _mm512_storeu_si512(to, v);
#else
    for (int64_t i = 0; i < TILE_DEPTH; i++) to[i] = i < count ? from[i * step] : 0;
#endif
}

/* Transposes 16 x 16 pairs. */
AROUND_TILES void transpose_pairs(bf16_both *to, int64_t to_row, const bf16_both *from, int64_t from_row) {
    for (int i = 0; i < TILE_ROW; i += VECTOR / 4) /* a pair is moved as a float */
        turn_float32(to_row, (float *)(void *)(to + i), TILE_ROW, (const float *)(const void *)(from + i * from_row),
                     from_row);
}

/* ---- the image ------------------------------------------------------------------------------------------- */

/* Rows [first, end) of plane `at`. */
AROUND_TILES void pad_rows_of(const tile_view *v, int64_t at, int64_t first, int64_t end, bf16_bits *to) {
    const nr_conv_plan *p = v->p;
    const int64_t taps = p->kernel[0] * p->kernel[1], tap = at % taps, pitch = v->extent[1], step = v->step[1];
    const int64_t channel = v->unfolded ? at / taps : at % v->filled;
    const int64_t *residue = v->residue[v->unfolded ? 0 : at / v->filled];
    const int64_t unfolded[2] = {tap / p->kernel[1] * p->dilation[0], tap % p->kernel[1] * p->dilation[1]};
    const int64_t *more = v->unfolded ? unfolded : residue;
    const int64_t top = v->first[0] * v->step[0] + v->low[0] + more[0];
    const int64_t low = v->first[1] * step + v->low[1] + more[1];
    const int64_t before = low < 0 ? least(ceil_div(-low, step), pitch) : 0;
    const int64_t n = low < v->size[1] ? greatest(0, least(ceil_div(v->size[1] - low, step), pitch) - before) : 0;
    for (int64_t r = first; r < end; r++, to += pitch) {
        const int64_t sample = r / v->extent[0], i = r % v->extent[0] * v->step[0] + top;
        const bool inside = n > 0 && channel < v->channels && sample < v->samples && i >= 0 && i < v->size[0];
        const int64_t row = sample * v->sample + channel * v->area + i * v->wide + low + before * step;
        pad_row(to, pitch, before, inside ? n : 0, v->from + (inside ? row : 0), step);
    }
}

AROUND_TILES void pad_plane(const tile_view *v, int64_t at, bf16_bits *to) {
    pad_rows_of(v, at, 0, v->rows, to);
    memset(to + v->rows * v->extent[1], 0, (size_t)(v->plane - v->rows * v->extent[1]) * sizeof *to);
}

/* Planes 2 q and 2 q + 1, side by side. */
AROUND_TILES void pad_pair(void *context, int64_t q) {
    const tile_conv *s = context;
    const tile_view *v = &s->x;
    bf16_bits row[2][TILE_PITCH + TILE_DEPTH];
    bf16_both *to = (bf16_both *)s->image + q * v->plane;
    const int64_t pitch = v->extent[1], most = greatest(1, (TILE_PITCH - v->beyond) / pitch);
    for (int64_t r = 0; r < v->rows; r += most, to += most * pitch) {
        const int64_t end = least(v->rows, r + most), n = (end - r) * pitch, more = end == v->rows ? v->beyond : 0;
        for (int h = 0; h < 2; h++) {
            pad_rows_of(v, 2 * q + h, r, end, row[h]);
            memset(row[h] + n, 0, (size_t)more * sizeof **row);
        }
        for (int64_t u = 0; u < n + more; u += TILE_ROW) bf16_interleave(to + u, row[0] + u, row[1] + u);
    }
}

AROUND_TILES void pad_alone(void *context, int64_t at) {
    const tile_conv *s = context;
    pad_plane(&s->x, at, s->image + at * s->x.plane);
}

/* 16 channels of y, and their transpose. */
AROUND_TILES void pad_right(void *context, int64_t block) {
    const tile_conv *s = context;
    bf16_bits *planes = s->planes + block * TILE_ROW * s->y.plane;
    bf16_both *to = s->right + block * s->steps * TILE_CELLS;
    for (int64_t i = 0; i < TILE_ROW; i++) pad_plane(&s->y, block * TILE_ROW + i, planes + i * s->y.plane);
    for (int64_t u = 0; u < s->steps; u++)
        transpose_pairs(to + u * TILE_CELLS, TILE_ROW, (const bf16_both *)(planes + u * TILE_DEPTH), s->y.plane / 2);
}

/* ---- sums ------------------------------------------------------------------------------------------------ */

/* Adds `steps` products to 32 x 32 sums, or to 16 rows or columns of them. */
TILE_FUNCTION static void sum_steps(TILES *t, int64_t steps, const char *a, int64_t a_row, int64_t a_step,
                                    int64_t a_next, const bf16_both *b, int64_t b_row, int64_t b_next,
                                    const int64_t *offset, bool tall, bool wide, bool add, float *sums) {
    TILE_NAME(begin_sums)(t, add, sums);
    for (int64_t s = 0; s < steps; s++, a += a_step) {
        const bf16_both *at = b + offset[s];
        tile_load(t, 4, a, a_row);
        tile_load(t, 6, at, b_row);
        tile_dp_bf16(t, 0, 4, 6);
        if (wide) {
            tile_load(t, 7, at + b_next, b_row);
            tile_dp_bf16(t, 1, 4, 7);
        }
        if (tall) {
            tile_load(t, 5, a + a_next, a_row);
            tile_dp_bf16(t, 2, 5, 6);
            if (wide) tile_dp_bf16(t, 3, 5, 7);
        }
    }
    TILE_NAME(end_sums)(t, sums);
}

static const float no_bias[TILE_DEPTH];

/* Copies rounded results at 32 positions from `at` on to where they belong; `apart` numbers for each. */
AROUND_TILES void place_rows(const tile_conv *s, int64_t lane, int lanes, int64_t at, int64_t phase,
                             const bf16_bits *rounded, int64_t apart) {
    const nr_conv_plan *p = s->p;
    const tile_view *v = &s->x;
    const bool back = s->kind == NR_CONV_INPUT;
    const int64_t *size = back ? p->size : p->result, area = size[0] * size[1];
    const int64_t channels = p->groups * (back ? p->in : p->out), step = back ? p->stride[0] : 1;
    /* rows without zeros in between follow each other */
    const bool dense = step == 1 && apart == 1 && v->extent[1] == size[1] && v->extent[0] == v->count[0];
    const int64_t rows = dense ? 1 : v->extent[0], pitch = dense ? v->extent[0] * v->extent[1] : v->extent[1];
    const int64_t columns = dense ? pitch : v->count[1];
    for (int64_t l = 0; l < TILE_DEPTH;) {
        const int64_t row = (at + l) / pitch, column = (at + l) % pitch, run = least(TILE_DEPTH - l, pitch - column);
        const int64_t sample = row / rows, i = (v->first[0] + row % rows) * step + phase; /* dense: */
        const int64_t j = (v->first[1] + column) * apart;
        const int64_t wide = dense ? area : size[1], n = least(least(run, columns - column) * apart, wide - j);
        if (sample < v->samples && row % rows < v->count[0] && i < size[0] && n > 0) {
            bf16_bits *to = s->to + (sample * channels + lane) * area + i * size[1] + j;
            const bf16_bits *from = rounded + l * apart;
            for (int x = 0; x < lanes; x++) copy_numbers(to + x * area, from + x * TILE_DEPTH * apart, n);
        }
        l += run;
    }
}

/* A block of 32 channels that are written, at some positions. */
TILE_FUNCTION static void sum_positions(void *context, int64_t task) {
    enum { WIDE = TILE_DEPTH };
    tile_conv *s = context;
    const int64_t lane = task / s->chunks * WIDE, chunk = task % s->chunks;
    const int lanes = (int)least(WIDE, s->lanes - lane);
    const char *left = s->left_at + lane * s->left_lane;
    float sums[WIDE * WIDE] __attribute__((aligned(64))), start[WIDE] = {0};
    bf16_bits rounded[TILE_STRIDE][WIDE * WIDE], both[TILE_STRIDE * WIDE * WIDE];
    bool special = false;
    TILES t;
    for (int i = 0; i < lanes && s->bias; i++) start[i] = nr_float_of_bfloat16(s->bias[lane + i]);
    tiles_begin(&t);
    for (int64_t g = chunk * s->groups / s->chunks; g < (chunk + 1) * s->groups / s->chunks; g++) {
        for (int64_t f = 0; f < s->phases; f++) {
            const int64_t first = s->first_tap[f] * s->steps, end = s->first_tap[f + 1] * s->steps;
            for (int i = 0; i < WIDE * WIDE && s->bias; i++) sums[i] = start[i / WIDE];
            sum_steps(&t, end - first, left + first * s->left_step, s->left_row, s->left_step, TILE_ROW * s->left_lane,
                      (const bf16_both *)s->image + g * WIDE, s->x.plane * (int64_t)sizeof(bf16_both), TILE_ROW,
                      s->offset + first, lanes > TILE_ROW, true, s->bias != NULL, sums);
            special |= store_sums(sums, rounded[f % s->across], WIDE, lanes, WIDE, no_bias);
            if (f % s->across + 1 < s->across) continue;
            for (int i = 0; i < lanes * WIDE && s->across == 2; i += TILE_ROW)
                bf16_interleave((bf16_both *)both + i, rounded[0] + i, rounded[1] + i);
            place_rows(s, lane, lanes, g * WIDE, f / s->across, s->across == 2 ? both : rounded[0], s->across);
        }
    }
    tiles_end(&t);
    if (special) atomic_store_explicit(&s->special, true, memory_order_relaxed);
}

/* The sums of all positions of the part, for 32 planes of x and 32 channels of y. */
TILE_FUNCTION static void sum_weight(void *context, int64_t task) {
    enum { WIDE = TILE_DEPTH };
    tile_conv *s = context;
    const nr_conv_plan *p = s->p;
    const tile_view *v = &s->x;
    const int64_t blocks = ceil_div(s->lanes, WIDE), o = task / blocks * WIDE, c = task % blocks * WIDE;
    const int64_t all = v->unfolded ? p->in * p->kernel[0] * p->kernel[1] : p->in;
    const int outs = (int)least(WIDE, p->out - o), lanes = (int)least(WIDE, all - c);
    float here[WIDE * WIDE] __attribute__((aligned(64))), turned[WIDE * WIDE];
    bf16_bits rounded[WIDE * WIDE];
    bool special = false;
    TILES t;
    tiles_begin(&t);
    for (int64_t u = 0; u < s->taps; u++) {
        float *sums = s->sums ? s->sums + (task * s->taps + u) * WIDE * WIDE : here;
        const int64_t row = v->plane * (int64_t)sizeof(bf16_bits);
        sum_steps(&t, s->steps, (const char *)(s->image + c * v->plane + s->shift[u]), row, 4 * TILE_ROW,
                  TILE_ROW * row, s->right + o * s->steps * TILE_ROW, 4 * TILE_ROW, s->steps * TILE_CELLS, s->offset,
                  lanes > TILE_ROW, outs > TILE_ROW, s->add, sums);
        if (!s->last) continue;
        for (int i = 0; i < 4; i++)
            transpose_pairs((bf16_both *)(void *)(turned + i / 2 * TILE_ROW + i % 2 * TILE_ROW * WIDE), WIDE,
                            (const bf16_both *)(const void *)(sums + i / 2 * TILE_ROW * WIDE + i % 2 * TILE_ROW), WIDE);
        bf16_bits *to = s->to + (o * all + c) * s->taps + s->which[u];
        special |= s->taps == 1 ? store_sums(turned, to, all, outs, lanes, no_bias)
                                : store_sums(turned, rounded, WIDE, outs, WIDE, no_bias);
        for (int y = 0; y < outs && s->taps > 1; y++)
            for (int x = 0; x < lanes; x++) to[(y * all + x) * s->taps] = rounded[y * WIDE + x];
    }
    tiles_end(&t);
    if (special) atomic_store_explicit(&s->special, true, memory_order_relaxed);
}

/* ---- the weight as the left operand ---------------------------------------------------------------------- */

/* 16 channels of y. */
AROUND_TILES void pack_forward(void *context, int64_t block) {
    const tile_conv *s = context;
    const int64_t k = s->x.unfolded ? s->p->in * s->p->kernel[0] * s->p->kernel[1] : s->p->in, taps = s->taps;
    bf16_bits *to = (bf16_bits *)(s->left + block * s->steps * taps * TILE_CELLS);
    for (int64_t u = 0; u < s->steps * taps; u++)
        for (int64_t i = block * TILE_ROW; i < (block + 1) * TILE_ROW; i++, to += TILE_DEPTH) {
            const int64_t c = u / taps * TILE_DEPTH, count = i < s->lanes ? least(TILE_DEPTH, k - c) : 0;
            every_nth(to, s->weight + (count ? (i * k + c) * taps + u % taps : 0), taps, count);
        }
}

/* 16 channels of x. The taps of a channel are contiguous, those of 16 pairs of channels of y are transposed. */
AROUND_TILES void pack_input(void *context, int64_t block) {
    const tile_conv *s = context;
    const nr_conv_plan *p = s->p;
    const int64_t taps = p->kernel[0] * p->kernel[1], c = block * TILE_ROW, all = least(TILE_ROW, p->in - c) * taps;
    bf16_both *to = s->left + block * s->steps * s->taps * TILE_CELLS;
    if (all < TILE_ROW * taps) memset(to, 0, (size_t)(s->steps * s->taps * TILE_CELLS) * sizeof *to);
    for (int64_t o = 0; o < p->out; o += TILE_DEPTH)
        for (int64_t i = 0; i < all; i += TILE_ROW) {
            bf16_bits row[2][TILE_ROW];
            bf16_both pairs[TILE_CELLS] __attribute__((aligned(64))), turned[TILE_CELLS] __attribute__((aligned(64)));
            const bf16_bits *from = s->weight + (o * p->in + c) * taps + i;
            const int64_t apart = p->in * taps;
            const int64_t whole = i + TILE_ROW <= all ? least(TILE_DEPTH, p->out - o) / 2 * 2 : 0;
            ROLLED for (int64_t y = 0; y < whole; y += 2)
                bf16_interleave(pairs + y / 2 * TILE_ROW, from + y * apart, from + (y + 1) * apart);
            ROLLED for (int64_t y = whole; y < TILE_DEPTH; y++) {
                const int64_t n = o + y < p->out ? least(TILE_ROW, all - i) : 0;
                pad_row(row[y % 2], TILE_ROW, 0, n, n ? from + y * apart : from, 1);
                if (y % 2) bf16_interleave(pairs + y / 2 * TILE_ROW, row[0], row[1]);
            }
            transpose_pairs(turned, TILE_ROW, pairs, TILE_ROW);
            ROLLED for (int64_t x = i; x < least(all, i + TILE_ROW); x++) {
                const int64_t tap = x % taps, step = s->begin[tap] + o / TILE_DEPTH * s->apart[tap];
                if (s->apart[tap])
                    memcpy(to + (step * TILE_ROW + x / taps) * TILE_ROW, turned + (x - i) * TILE_ROW, 64);
            }
        }
}

static const tile_kernels TILE_NAME(conv) = {.pad_pair = pad_pair,
                                             .pad_alone = pad_alone,
                                             .pad_right = pad_right,
                                             .pack_forward = pack_forward,
                                             .pack_input = pack_input,
                                             .sum_positions = sum_positions,
                                             .sum_weight = sum_weight,
                                             .widened = NR_ISA(nr_run_conv)};
