/* simulated_wgmma: the functions of csrc/cuda/wgmma.cuh on the CPU; mbarriers and copies of tiles are in tiles.cpp. A product is
 * computed when its thread waits for it, out of what shared memory then holds; sums are cut as in simulated_mma.h. */
#ifndef CUDASIM_WGMMA_H
#define CUDASIM_WGMMA_H

#include <vector>

template <int n> static inline void limit_registers() {}
template <int n> static inline void raise_registers() {}
static inline void init_barrier(uint32_t barrier, int arrivals) { cudasim::init_barrier(barrier, arrivals); }
static inline void publish_barriers() {}
static inline void arrive(uint32_t barrier) { cudasim::arrive(barrier, 0); }
static inline void expect_bytes(uint32_t barrier, int bytes) { cudasim::arrive(barrier, bytes); }
#define wait_barrier(barrier, parity) cudasim::wait_barrier(barrier, parity, __FILE__, __LINE__)

static inline void copy_tile(uint32_t to, const tensor_map *map, int x, int y, int first_batch, int second_batch,
                             uint32_t barrier) {
    const int at[4] = {x, y, first_batch, second_batch};
    cudasim::copy_tile_later(to, map, at, barrier);
}

static inline void publish_to_stores() {}
static inline void store_tile(const tensor_map *map, uint32_t from, int x, int y, int first_batch, int second_batch) {
    const int at[4] = {x, y, first_batch, second_batch};
    cudasim::store_tile_later(map, from, at);
}
static inline void commit_stores() {}
static inline void wait_stores() { cudasim::finish_stores(); }

namespace cudasim {

/* Element (outer, k) of a tile that describe_tile() describes, in shared memory; of float32 what TF32 has of it. */
template <class D> double tile_element(uint64_t tile, bool across, int outer, int k) {
    constexpr int size = (int)sizeof(typename D::S);
    const uint32_t start = (uint32_t)(tile & 0x3fff) << 4, leading = (uint32_t)(tile >> 16 & 0x3fff) << 4,
                   eight_rows = (uint32_t)(tile >> 32 & 0x3fff) << 4;
    const int row = across ? k : outer, column = across ? outer % 64 : k;
    uint32_t at = start + (across ? (uint32_t)outer / 64 * leading : 0) + (uint32_t)row / 8 * eight_rows +
                  (uint32_t)row % 8 * 128 + (uint32_t)column * size;
    at ^= at >> 3 & 0x70;
    if constexpr (size == 4) {
        uint32_t bits;
        memcpy(&bits, shared_bytes(at, 4, 4), 4);
        return (double)__int_as_float((int)(bits & 0xffffe000u));
    } else {
        uint16_t element;
        memcpy(&element, shared_bytes(at, 2, 2), 2);
        return (double)widen<D>(element);
    }
}

template <class D>
void multiply_tiles(float *d, int columns, uint64_t a, uint64_t b, bool keep, bool across_a, bool across_b) {
    constexpr int terms = 32 / (int)sizeof(typename D::S);
    const int thread = (int)here.thread.x % 128, g = thread % 32 / 4, t = thread % 4;
    double row[2][terms];
    for (int h = 0; h < 2; h++)
        for (int k = 0; k < terms; k++) row[h][k] = tile_element<D>(a, across_a, thread / 32 * 16 + g + 8 * h, k);
    for (int j = 0; j < columns / 8; j++)
        for (int e = 0; e < 2; e++) {
            double sum[2] = {};
            for (int h = 0; h < 2 && keep; h++) sum[h] = (double)d[4 * j + 2 * h + e];
            for (int k = 0; k < terms; k++) {
                const double y = tile_element<D>(b, across_b, 8 * j + 2 * t + e, k);
                for (int h = 0; h < 2; h++) sum[h] += row[h][k] * y;
            }
            for (int h = 0; h < 2; h++) d[4 * j + 2 * h + e] = cut_toward_zero(sum[h]);
        }
}

} // namespace cudasim

static inline void begin_products() { __syncwarp(); }
static inline void commit_products() { cudasim::end_product_group(); }
template <int pending> static inline void wait_products() {
    __syncwarp();
    cudasim::finish_products(pending);
}

template <class D, bool across_a, bool across_b, int sums>
static inline void wgmma(float (&d)[sums], uint64_t a_tile, uint64_t b_tile, bool keep) {
    static_assert(sizeof(typename D::S) == 2 || !(across_a || across_b), "");
    float *const all = d;
    cudasim::multiply_later(
        [=] { cudasim::multiply_tiles<D>(all, 2 * sums, a_tile, b_tile, keep, across_a, across_b); });
}

#endif
