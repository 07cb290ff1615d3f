/* attention_tile: how the fused attention of attention_fused.cuh meets the tensor cores, a policy a number format:
 *
 *   half16<D, width>    float16 and bfloat16: one m16n8k16 a step
 *   single<width>       float32 as 3xTF32: three m16n8k8 of numbers that are split in two (mma.cuh)
 *   single<width, true> float32 by exact products, for what 3xTF32 makes NaN of: infinities, and what rounds to one
 *
 * Tiles of shared memory have rows of `width` numbers and 16 bytes of padding, so that eight rows at one column, as
 * load_matrices reads them, lie in different banks, and so do rows 2t and 2t + 1 at eight columns.
 *
 * The sums of one product are factors of the next without leaving their registers. Lane (g, t) has columns 2t and 2t +
 * 1 of a tile of sums: in 16 bits two such tiles are the A operand of m16n8k16; for tf32 those columns become k = t and
 * t + 4 of m16n8k8, and the other factor is read at rows 2t and 2t + 1. */
#ifndef NR_CUDA_ATTENTION_TILE_H
#define NR_CUDA_ATTENTION_TILE_H

#include "mma.cuh"

/* Two numbers of D, float16 or bfloat16, in a word. */
template <class D> DEVICE uint32_t two_of(float low, float high) {
#if defined CUDASIM || !NR_HAS_MMA
    return (uint32_t)narrow<D>(low) | (uint32_t)narrow<D>(high) << 16;
#else
    uint32_t both;
    if constexpr (D::code == NORCH_BFLOAT16)
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#endif
}

template <class S, int width> struct tile {
    static constexpr int IN_CHUNK = 16 / sizeof(S), CHUNKS = width / IN_CHUNK, ROW = (CHUNKS + 1) * 16,
                         PADDING = ROW - 16;
    static DEVICE uint32_t at(int row, int chunk) { return (uint32_t)(row * ROW + chunk * 16); }
};

/* Copies a matrix to tiles, `rows` rows at a time. Elements after its last row or column are 0. */
template <class S, int width, int rows, int threads> struct tile_loader {
    using L = tile<S, width>;
    static constexpr int STEP = threads / L::CHUNKS, TIMES = rows / STEP;
    static_assert(rows % STEP == 0, "");
    const S *from;
    int pitch, left; /* left: rows from the row of this thread to the end */
    DEVICE tile_loader(const S *x, int pitch, int first, int end, int columns) : pitch(pitch) {
        const int row = first + (int)threadIdx.x / L::CHUNKS, column = (int)threadIdx.x % L::CHUNKS * L::IN_CHUNK;
        from = x + (int64_t)row * pitch + column;
        left = column < columns ? end - row : 0;
    }
    DEVICE void load(uint32_t to) {
        to += L::at((int)threadIdx.x / L::CHUNKS, (int)threadIdx.x % L::CHUNKS);
#pragma unroll
        for (int i = 0; i < TIMES; i++)
            copy_async<16>(to + i * STEP * L::ROW, from + i * STEP * pitch, left > i * STEP);
        from += (int64_t)rows * pitch;
        left -= rows;
    }
};

template <class D, int width> struct half16 {
    using dtype = D;
    using S = typename D::S;
    using L = tile<S, width>;
    static constexpr int K = 16; /* of one product */
    static constexpr bool promotes = false, is_exact = false;
    struct A {
        uint32_t r[4];
    };
    struct B {
        uint32_t r[2];
    };
    /* 16 rows of a tile from `row` on, columns k to k + K. */
    static DEVICE void rows(A &a, uint32_t from, int row, int k) {
        const int l = (int)threadIdx.x % 32;
        load_matrices(a.r, from + L::at(row + l % 16, k / 8 + l / 16));
    }
    /* K columns of sums: two tiles of 16 x 8. */
    static DEVICE void of_sums(A &a, const float (*c)[4]) {
        a.r[0] = two_of<D>(c[0][0], c[0][1]);
        a.r[1] = two_of<D>(c[0][2], c[0][3]);
        a.r[2] = two_of<D>(c[1][0], c[1][1]);
        a.r[3] = two_of<D>(c[1][2], c[1][3]);
    }
    static DEVICE void put(B (&b)[2], const uint32_t (&r)[4]) {
        b[0].r[0] = r[0];
        b[0].r[1] = r[1];
        b[1].r[0] = r[2];
        b[1].r[1] = r[3];
    }
    /* B[k][n] = tile[n][k], and the same 8 n on. */
    static DEVICE void across(B (&b)[2], uint32_t from, int n, int k) {
        const int l = (int)threadIdx.x % 32;
        uint32_t r[4];
        load_matrices(r, from + L::at(n + l / 16 * 8 + l % 8, k / 8 + l / 8 % 2));
        put(b, r);
    }
    /* B[k][n] = tile[k][n], and the same 8 n on; in_memory: the tile as a pointer. */
    static DEVICE void down(B (&b)[2], uint32_t from, const unsigned char *, int k, int n) {
        const int l = (int)threadIdx.x % 32;
        uint32_t r[4];
        load_matrices_transposed(r, from + L::at(k + l % 16, n / 8 + l / 16));
        put(b, r);
    }
    /* c += a x and d += b y. */
    static DEVICE void multiply(float (&c)[4], const A &a, const B &x, float (&d)[4], const A &b, const B &y) {
        mma_16bit<D>(c, a.r, x.r[0], x.r[1]);
        mma_16bit<D>(d, b.r, y.r[0], y.r[1]);
    }
    static DEVICE void store_two(S *to, float x, float y) { *reinterpret_cast<uint32_t *>(to) = two_of<D>(x, y); }
};

template <int width, bool exact = false> struct single {
    using dtype = dtype_float32;
    using S = float;
    using L = tile<float, width>;
    static constexpr int K = 8;
    static constexpr bool promotes = true; /* tensor cores cut their sums: short ones are added up outside */
    static constexpr bool is_exact = exact;
    struct A {
        uint32_t r[4], small[4];
    };
    struct B {
        uint32_t r[2], small[2];
    };
    static DEVICE void split(uint32_t x, uint32_t *big, uint32_t *small) {
        if constexpr (exact)
            *big = x;
        else
            split_tf32(x, big, small);
    }
    /* For factors B, of which there are more: the tensor core truncates big itself. The remainder of a rounded A has
     * either sign, so that the omitted products, small times small, do not add up. */
    static DEVICE void cut(uint32_t x, uint32_t *big, uint32_t *small) {
        *big = x;
        if constexpr (!exact)
            *small = (uint32_t)__float_as_int(__int_as_float((int)x) - __int_as_float((int)(x & 0xffffe000u)));
    }
    static DEVICE void rows(A &a, uint32_t from, int row, int k) {
        const int l = (int)threadIdx.x % 32;
        uint32_t r[4];
        load_matrices(r, from + L::at(row + l % 16, k / 4 + l / 16));
#pragma unroll
        for (int q = 0; q < 4; q++) split(r[q], &a.r[q], &a.small[q]);
    }
    static DEVICE void of_sums(A &a, const float (*c)[4]) {
        const float v[4] = {c[0][0], c[0][2], c[0][1], c[0][3]};
#pragma unroll
        for (int q = 0; q < 4; q++) split((uint32_t)__float_as_int(v[q]), &a.r[q], &a.small[q]);
    }
    static DEVICE void across(B (&b)[2], uint32_t from, int n, int k) {
        const int l = (int)threadIdx.x % 32;
        uint32_t r[4];
        load_matrices(r, from + L::at(n + l / 16 * 8 + l % 8, k / 4 + l / 8 % 2));
#pragma unroll
        for (int q = 0; q < 4; q++) cut(r[q], &b[q / 2].r[q % 2], &b[q / 2].small[q % 2]);
    }
    /* B[k][n] = tile[n][k], and the same K columns on. */
    static DEVICE void along(B (&b)[2], uint32_t from, int k) {
        const int l = (int)threadIdx.x % 32;
        uint32_t r[4];
        load_matrices(r, from + L::at(l % 8, k / 4 + l / 8));
#pragma unroll
        for (int q = 0; q < 4; q++) cut(r[q], &b[q / 2].r[q % 2], &b[q / 2].small[q % 2]);
    }
    static DEVICE void down(B (&b)[2], uint32_t, const unsigned char *in_memory, int k, int n) {
        const int l = (int)threadIdx.x % 32, g = l / 4, t = l % 4;
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int q = 0; q < 2; q++) {
                const int column = n + j * 8 + g;
                const uint32_t at = L::at(k + 2 * t + q, column / 4) + (uint32_t)(column % 4 * 4);
                cut(*reinterpret_cast<const uint32_t *>(in_memory + at), &b[j].r[q], &b[j].small[q]);
            }
    }
    static DEVICE void multiply(float (&c)[4], const A &a, const B &x, float (&d)[4], const A &b, const B &y) {
        if constexpr (exact) {
            exact_product(c, a, x);
            exact_product(d, b, y);
        } else { /* in turns: a product of the same sums waits for the one before */
            mma_tf32(c, a.small, x.r[0], x.r[1]);
            mma_tf32(d, b.small, y.r[0], y.r[1]);
            mma_tf32(c, a.r, x.small[0], x.small[1]);
            mma_tf32(d, b.r, y.small[0], y.small[1]);
            mma_tf32(c, a.r, x.r[0], x.r[1]);
            mma_tf32(d, b.r, y.r[0], y.r[1]);
        }
    }
    /* A row and a column are each spread over four lanes. */
    static DEVICE void exact_product(float (&c)[4], const A &a, const B &b) {
        const int l = (int)threadIdx.x % 32;
#pragma unroll
        for (int half = 0; half < 2; half++) /* of k */
#pragma unroll 1
            for (int k = 0; k < 4; k++) {
                float x[2], y[2];
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    x[i] = __int_as_float((int)__shfl_sync(0xffffffffu, a.r[i + 2 * half], l / 4 * 4 + k));
                    y[i] = __int_as_float((int)__shfl_sync(0xffffffffu, b.r[half], (l % 4 * 2 + i) * 4 + k));
                }
#pragma unroll
                for (int q = 0; q < 4; q++) c[q] = fmaf(x[q / 2], y[q % 2], c[q]);
            }
    }
    static DEVICE void store_two(float *to, float x, float y) { *reinterpret_cast<pack<float, 2> *>(to) = {{x, y}}; }
};

/* ---- products of tiles ------------------------------------------------------------------------------------------- */

/* The 16 rows of a warp as factors A: read from their tile for each product, or `held` in registers. */
template <class P, int width, bool held> struct warp_rows {
    uint32_t tile;
    int row;
    typename P::A kept[held ? width / P::K : 1];
    DEVICE warp_rows(uint32_t tile, int row) : tile(tile), row(row) {}
    DEVICE void read() {
        if constexpr (held)
#pragma unroll
            for (int k = 0; k < width / P::K; k++) P::rows(kept[k], tile, row, k * P::K);
    }
    DEVICE const typename P::A &at(int k) {
        if constexpr (held) return kept[k];
        P::rows(kept[0], tile, row, k * P::K);
        return kept[0];
    }
};

/* Sums of single precision are short if a row is wide: registers have room for those of 64 columns beside the long
 * ones, and long sums of tensor cores lose digits. */
template <class P, int width> struct short_sums {
    static constexpr bool of_columns = P::promotes && width > 128;
    static constexpr int columns = of_columns ? 64 : width;
};

/* c = a times the rows of tile b, transposed. */
template <class P, int width, int n, bool held>
DEVICE void row_products(float (&c)[n / 8][4], warp_rows<P, width, held> &a, uint32_t b) {
    using sums_of = short_sums<P, width>;
    constexpr int tiles = n == 8 ? 2 : n / 8; /* of two steps along k, where there is one column of tiles */
    static_assert(n > 8 || sums_of::of_columns, "");
#pragma unroll
    for (int j = 0; j < n / 8; j++)
#pragma unroll
        for (int q = 0; q < 4; q++) c[j][q] = 0;
#pragma unroll
    for (int first = 0; first < width; first += sums_of::columns) {
        float part[sums_of::of_columns ? tiles : 1][4] = {};
        float (*sums)[4] = sums_of::of_columns ? part : c;
#pragma unroll
        for (int k = first; k < first + sums_of::columns; k += n == 8 ? 2 * P::K : P::K) {
            const typename P::A x = a.at(k / P::K);
            typename P::B y[2];
            if constexpr (n == 8) {
                const typename P::A z = a.at(k / P::K + 1);
                P::along(y, b, k);
                P::multiply(sums[0], x, y[0], sums[1], z, y[1]);
            } else {
#pragma unroll
                for (int j = 0; j < n / 8; j += 2) {
                    P::across(y, b, j * 8, k);
                    P::multiply(sums[j], x, y[0], sums[j + 1], x, y[1]);
                }
            }
        }
        if constexpr (sums_of::of_columns)
#pragma unroll
            for (int j = 0; j < tiles; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) c[j % (n / 8)][q] += part[j][q];
    }
}

/* c += a times tile b, a being sums of 16 rows and n columns. */
template <class P, int width, int n>
DEVICE void add_products(float (&c)[width / 8][4], const float (&a)[n / 8][4], uint32_t b,
                         const unsigned char *in_memory) {
    constexpr int columns = short_sums<P, width>::columns;
#pragma unroll
    for (int first = 0; first < width; first += columns) {
        float part[P::promotes ? columns / 8 : 1][4];
        if constexpr (P::promotes)
#pragma unroll
            for (int j = 0; j < columns / 8; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) part[j][q] = 0;
        float (*sums)[4] = P::promotes ? part : c;
#pragma unroll
        for (int k = 0; k < n; k += P::K) {
            typename P::A x;
            P::of_sums(x, &a[k / 8]);
#pragma unroll
            for (int j = 0; j < columns / 8; j += 2) {
                typename P::B y[2];
                P::down(y, b, in_memory, k, first + j * 8);
                P::multiply(sums[j], x, y[0], sums[j + 1], x, y[1]);
            }
        }
        if constexpr (P::promotes)
#pragma unroll
            for (int j = 0; j < columns / 8; j++)
#pragma unroll
                for (int q = 0; q < 4; q++) c[first / 8 + j][q] += part[j][q];
    }
}

#endif
