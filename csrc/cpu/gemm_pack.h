/* gemm_pack: panels of A and B copied into the order in which the tile of gemm_tile.h reads them. Included once for
 * each float type T by matmul_isa.c, conv_isa.c and attention_isa.c.
 *
 *   B (k, n), width 4:  a b c d | e f . .          panel 0: a b c d  i j k l  ...     panel 1: e f 0 0  m n 0 0  ...
 *                       i j k l | m n . .                   p = 0    p = 1                     p = 0    p = 1
 *
 * A panel is `width` lanes (rows of A or columns of B) wide and k deep, lane fastest; at the edge it is filled up with
 * zeros, so that the tile reads whole vectors. The source may have any strides: if it is contiguous along k, squares of
 * LANES by LANES, or at an edge four by four, are transposed in registers. An element is copied once for each block,
 * and then read mc / TILE_ROWS times (B) or nc / PANEL_COLS times (A), in one sequential stream, which suits caches,
 * TLB and prefetchers: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008). */

#define LANES ((int)(VECTOR / sizeof(T)))
#define PANEL_COLS (LANES * TILE_VECTORS)

typedef T NAME(vec) __attribute__((vector_size(VECTOR), may_alias));
typedef T NAME(vec_at) __attribute__((vector_size(VECTOR), may_alias, aligned(__alignof__(T))));
typedef T NAME(four) __attribute__((vector_size(4 * sizeof(T)), may_alias));
typedef T NAME(four_at) __attribute__((vector_size(4 * sizeof(T)), may_alias, aligned(__alignof__(T))));

#define VEC(at) (*(const NAME(vec_at) *)(at))
#define STORE(at, v) (*(NAME(vec_at) *)(at) = (v))
#define FOUR(at) (*(const NAME(four_at) *)(at))

/* Elements of the pair (a, b), counted through both; gcc has the common builtin only since version 12. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define SHUFFLE_LANES(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
typedef INTEGER NAME(order) __attribute__((vector_size(4 * sizeof(T))));
typedef INTEGER NAME(lane_order) __attribute__((vector_size(VECTOR)));
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (NAME(order)){__VA_ARGS__})
#define SHUFFLE_LANES(a, b, ...) __builtin_shuffle(a, b, (NAME(lane_order)){__VA_ARGS__})
#endif

/* Transposes rows r0 .. r3. */
#define TRANSPOSE_FOUR(r0, r1, r2, r3)               \
    do {                                             \
        NAME(four) t0 = SHUFFLE(r0, r1, 0, 4, 1, 5); \
        NAME(four) t1 = SHUFFLE(r0, r1, 2, 6, 3, 7); \
        NAME(four) t2 = SHUFFLE(r2, r3, 0, 4, 1, 5); \
        NAME(four) t3 = SHUFFLE(r2, r3, 2, 6, 3, 7); \
        r0 = SHUFFLE(t0, t2, 0, 1, 4, 5);            \
        r1 = SHUFFLE(t0, t2, 2, 3, 6, 7);            \
        r2 = SHUFFLE(t1, t3, 0, 1, 4, 5);            \
        r3 = SHUFFLE(t1, t3, 2, 3, 6, 7);            \
    } while (0)

/* Four lanes whose elements are contiguous along k. */
INLINE void NAME(pack_four)(int width, T *restrict to, int64_t k, const T *restrict from, int64_t lane) {
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
        NAME(four) r0 = FOUR(from + p), r1 = FOUR(from + lane + p);
        NAME(four) r2 = FOUR(from + 2 * lane + p), r3 = FOUR(from + 3 * lane + p);
        TRANSPOSE_FOUR(r0, r1, r2, r3);
        T *at = to + p * width;
        *(NAME(four_at) *)at = r0;
        *(NAME(four_at) *)(at + width) = r1;
        *(NAME(four_at) *)(at + 2 * width) = r2;
        *(NAME(four_at) *)(at + 3 * width) = r3;
    }
    for (; p < k; p++) {
        for (int i = 0; i < 4; i++) to[p * width + i] = from[i * lane + p];
    }
}

/* ---- a part of a vector: its first `count` elements, the others 0 ------------------------------------ */

INLINE NAME(vec) NAME(load_part)(const T *at, int count) {
#ifdef PARTS
    return (NAME(vec))NAME(PART_LOAD)(at, count);
#else
    NAME(vec) v = {0};
    for (int i = 0; i < count; i++) v[i] = at[i];
    return v;
#endif
}

INLINE void NAME(store_part)(T *at, int count, NAME(vec) v) {
#ifdef PARTS
    NAME(PART_STORE)(at, count, v);
#else
    for (int i = 0; i < count; i++) at[i] = v[i];
#endif
}

/* LANES lanes whose elements are contiguous along k, a square at a time. SWAP(d) exchanges, of each pair of rows i and
 * i + d, the lanes j + d of the first with the lanes j of the second: Eklundh, "A Fast Computer Method for Matrix
 * Transposing" (1972). */
#define FIRST_OF(n, d, j) ((j) & (d) ? (n) + (j) - (d) : (j))
#define SECOND_OF(n, d, j) ((j) & (d) ? (n) + (j) : ((j) + (d)) % (2 * (n)))
#define SWAP(d)                                                                      \
    UNROLL for (int i = 0; i < LANES; i++) {                                         \
        if ((d) >= LANES || (i & (d))) continue;                                     \
        NAME(vec) a = row[i], b = row[(i + (d)) % LANES];                            \
        row[i] = SHUFFLE_LANES(a, b, NAME(EACH_LANE)(FIRST_OF, d));                  \
        row[(i + (d)) % LANES] = SHUFFLE_LANES(a, b, NAME(EACH_LANE)(SECOND_OF, d)); \
    }
INLINE void NAME(pack_square)(int64_t width, T *restrict to, int64_t k, const T *restrict from, int64_t lane) {
    if (k <= LANES / 4) {
        for (int64_t p = 0; p < k; p++)
            for (int i = 0; i < LANES; i++) to[p * width + i] = from[i * lane + p];
        return;
    }
    for (int64_t p = 0; p < k; p += LANES) {
        NAME(vec) row[LANES];
        if (p + LANES > k && k >= LANES) p = k - LANES; /* the last square may overlap the one before */
        const int count = (int)least(LANES, k - p);
        if (count == LANES) {
            UNROLL for (int i = 0; i < LANES; i++) row[i] = VEC(from + i * lane + p);
        } else {
            UNROLL for (int i = 0; i < LANES; i++) row[i] = NAME(load_part)(from + i * lane + p, count);
        }
        SWAP(8)
        SWAP(4)
        SWAP(2)
        SWAP(1)
        if (count == LANES) {
            UNROLL for (int i = 0; i < LANES; i++) STORE(to + (p + i) * width, row[i]);
        } else {
            UNROLL for (int i = 0; i < LANES; i++) if (i < count) STORE(to + (p + i) * width, row[i]);
        }
    }
}

/* The same for fewer lanes, in a panel that is narrower than a vector and at least a vector deep. A vector writes
 * beyond the panel; the next one overwrites these elements. */
INLINE void NAME(pack_narrow)(int width, T *restrict to, int64_t k, const T *restrict from, int64_t lane, int lanes) {
    for (int64_t p = 0; p < k; p += LANES) {
        NAME(vec) row[LANES];
        if (p + LANES > k) p = k - LANES;
        UNROLL for (int i = 0; i < LANES; i++) row[i] = i < lanes ? VEC(from + i * lane + p) : (NAME(vec)){0};
        SWAP(8)
        SWAP(4)
        SWAP(2)
        SWAP(1)
        UNROLL for (int i = 0; i < LANES - 1; i++) STORE(to + (p + i) * width, row[i]);
        NAME(store_part)(to + (p + LANES - 1) * width, width, row[LANES - 1]);
    }
}
#undef FIRST_OF
#undef SECOND_OF
#undef SWAP

/* ---- a panel ------------------------------------------------------------------------------------------ */

/* to[p * width + i] = from[i * lane + p * step] for i < lanes, and 0 for the other i < width. */
INLINE void NAME(pack)(int width, T *restrict to, int64_t k, const T *restrict from, int64_t lane, int64_t step,
                       int lanes) {
    if (lanes == width && lane == 1) {
        for (int64_t p = 0; p < k; p++) memcpy(to + p * width, from + p * step, (size_t)width * sizeof(T));
        return;
    }
    if (lane == 1 && width % LANES == 0) {
        for (int64_t p = 0; p < k; p++, from += step)
            for (int i = 0; i < width; i += LANES)
                STORE(to + p * width + i, i + LANES <= lanes ? VEC(from + i)
                                          : i < lanes        ? NAME(load_part)(from + i, lanes - i)
                                                             : (NAME(vec)){0});
        return;
    }
    for (int64_t p = 0; p < k && lanes < width; p++) {
        if (width % LANES == 0)
            for (int i = lanes / LANES * LANES; i < width; i += LANES) STORE(to + p * width + i, (NAME(vec)){0});
        else
            for (int i = lanes; i < width; i++) *(volatile T *)(to + p * width + i) = 0; /* a few: not by memset */
    }
    if (step == 1 && lanes >= 4) {
        int i = 0;
        for (; i + LANES <= lanes; i += LANES) NAME(pack_square)(width, to + i, k, from + i * lane, lane);
        for (; i < lanes; i += 4) {
            int at = i + 4 <= lanes ? i : lanes - 4; /* the last four may overlap those before */
            NAME(pack_four)(width, to + at, k, from + at * lane, lane);
        }
        return;
    }
    for (int64_t p = 0; p < k; p++) {
        for (int i = 0; i < lanes; i++) to[p * width + i] = from[i * lane + p * step];
    }
}

/* Some rows of A, of a tile. */
static __attribute__((noinline, unused)) void NAME(pack_a)(T *to, int64_t k, const T *a, int64_t a_row, int64_t a_col,
                                                           int64_t rows) {
    const int lanes = (int)least(rows, TILE_ROWS);
    if (TILE_ROWS < LANES && a_col == 1 && k >= LANES && lanes > 4)
        NAME(pack_narrow)(TILE_ROWS, to, k, a, a_row, lanes);
    else
        NAME(pack)(TILE_ROWS, to, k, a, a_row, a_col, lanes);
}
