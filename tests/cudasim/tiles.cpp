/* tiles: mbarriers, and what happens behind a block's back: copies of tiles by tensor maps, which are done when no thread can
 * go on without them and whose places hold NaN until then; products that wait in groups. */
#include "simulation.h"

#include <string.h>

#include <vector>

namespace cudasim {

namespace {

/* In shared memory. */
struct mbarrier {
    uint16_t arrivals, pending;
    int32_t bytes : 31;
    uint32_t phase : 1;
};
static_assert(sizeof(mbarrier) == 8, "");

mbarrier *barrier_at(uint32_t at) { return (mbarrier *)shared_bytes(at, 8, 8); }

void settle(mbarrier *one) {
    if (one->pending || one->bytes) return;
    one->phase ^= 1;
    one->pending = one->arrivals;
}

/* What cuTensorMapEncodeTiled is told, in its opaque bytes. */
struct map {
    unsigned char *address;
    uint64_t size[4], stride[3];
    uint32_t box[4], element; /* of 2 bytes, or 4: float32 that is rounded to TF32 */
};
static_assert(sizeof(map) <= 128, "");

struct tile_copy {
    map matrix;
    int at[4];
    uint32_t shared, bytes, barrier;
};
std::vector<tile_copy> tiles, stores[MOST_THREADS];

struct waiting_product {
    int group;
    std::function<void()> run;
};
std::vector<waiting_product> products[MOST_THREADS];
int product_groups[MOST_THREADS];

bool in_phase(uint32_t at, int parity) { return barrier_at(at)->phase == (uint32_t)parity; }

/* The nearest number of TF32. */
void round_tf32(unsigned char *x) {
    uint32_t bits;
    memcpy(&bits, x, 4);
    bits = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (bits + 0x1000u) & 0xffffe000u;
    memcpy(x, &bits, 4);
}

/* A box between shared memory and the matrix; what lies outside of the matrix reads as zero, and is not written. */
void move(const tile_copy &one, bool store) {
    const map &m = one.matrix;
    const uint32_t size = m.element;
    uint32_t shared = one.shared;
    for (uint32_t y = 0; y < m.box[1]; y++)
        for (uint32_t x = 0; x < m.box[0]; x++, shared += size) {
            const int64_t at[4] = {(int64_t)one.at[0] + x, (int64_t)one.at[1] + y, one.at[2], one.at[3]};
            bool inside = true;
            unsigned char *element = m.address + at[0] * size;
            for (int d = 0; d < 4; d++) {
                inside = inside && at[d] >= 0 && at[d] < (int64_t)m.size[d];
                if (d) element += at[d] * (int64_t)m.stride[d - 1];
            }
            unsigned char *place = shared_bytes(shared ^ (shared >> 3 & 0x70), size, size);
            if (!inside) {
                if (!store) memset(place, 0, size);
            } else {
                memcpy(store ? element : place, store ? place : element, size);
                if (size == 4 && !store) round_tf32(place);
            }
        }
}

} // namespace

void init_barrier(uint32_t at, int arrivals) { *barrier_at(at) = {(uint16_t)arrivals, (uint16_t)arrivals, 0, 0}; }

void arrive(uint32_t at, int bytes) {
    mbarrier *one = barrier_at(at);
    if (!one->pending)
        return end_device(cudaErrorLaunchFailure, "cudasim: an mbarrier has no more arrivals to wait for");
    one->bytes += bytes;
    one->pending--;
    settle(one);
}

void wait_barrier(uint32_t at, int parity, const char *file, int line) {
    while (in_phase(at, parity) && !broken) wait_while(in_phase, at, parity, file, line);
}

static tile_copy box_of(const void *opaque, const int *at, uint32_t shared) {
    tile_copy one = {};
    memcpy(&one.matrix, opaque, sizeof one.matrix);
    memcpy(one.at, at, sizeof one.at);
    one.bytes = one.matrix.box[0] * one.matrix.box[1] * one.matrix.element;
    one.shared = shared;
    shared_bytes(shared, one.bytes, 128);
    return one;
}

void copy_tile_later(uint32_t to, const void *opaque, const int *at, uint32_t barrier) {
    tile_copy one = box_of(opaque, at, to);
    one.barrier = barrier;
    memset(shared_bytes(to, one.bytes, 128), 0xFF, one.bytes);
    tiles.push_back(one);
}

bool finish_a_tile() {
    if (tiles.empty()) return false;
    const size_t which = random_number() % tiles.size();
    const tile_copy one = tiles[which];
    tiles.erase(tiles.begin() + (ptrdiff_t)which);
    move(one, false);
    mbarrier *barrier = barrier_at(one.barrier);
    barrier->bytes -= (int32_t)one.bytes;
    settle(barrier);
    return true;
}

void store_tile_later(const void *opaque, uint32_t from, const int *at) {
    stores[here.thread.x].push_back(box_of(opaque, at, from));
}

void finish_stores() {
    for (const tile_copy &one : stores[here.thread.x]) move(one, true);
    stores[here.thread.x].clear();
}

void begin_block_of_tiles(int threads) {
    tiles.clear();
    for (int t = 0; t < threads; t++) {
        products[t].clear();
        stores[t].clear();
        product_groups[t] = 0;
    }
}

void end_block_of_tiles(int threads) {
    bool left = !tiles.empty();
    for (int t = 0; t < threads; t++) left |= !products[t].empty() || !stores[t].empty();
    if (left) end_device(cudaErrorLaunchFailure, "cudasim: a block has ended before its copies or products");
}

void multiply_later(std::function<void()> run) {
    const int t = (int)here.thread.x;
    products[t].push_back({product_groups[t], std::move(run)});
}

void end_product_group() { product_groups[here.thread.x]++; }

void finish_products(int pending) {
    const int t = (int)here.thread.x;
    auto &own = products[t];
    size_t done = 0;
    for (; done < own.size() && own[done].group < product_groups[t] - pending; done++) own[done].run();
    own.erase(own.begin(), own.begin() + (ptrdiff_t)done);
}

} // namespace cudasim

using namespace cudasim;

/* As the driver's function of this name, of which it refuses what that refuses: 4 dimensions of 16-bit elements or of
 * TF32, 128-byte swizzle. */
static int encode_tiled(void *opaque, int dtype, uint32_t rank, void *address, const uint64_t *size,
                        const uint64_t *stride, const uint32_t *box, const uint32_t *element_stride, int interleave,
                        int swizzle, int, int) {
    const uint32_t element = dtype == 11 ? 4 : 2;
    bool good = (uintptr_t)opaque % 64 == 0 && (dtype == 1 || dtype == 11) && rank == 4 &&
                (uintptr_t)address % 16 == 0 && interleave == 0 && swizzle == 3 && box[0] * element == 128;
    for (int d = 0; d < 4; d++)
        good = good && size[d] >= 1 && size[d] <= (uint64_t)1 << 32 && box[d] >= 1 && box[d] <= 256 &&
               element_stride[d] == 1;
    for (int d = 0; d < 3; d++) good = good && stride[d] % 16 == 0 && stride[d] > 0 && stride[d] < (uint64_t)1 << 40;
    if (!good) return 1;
    map one = {(unsigned char *)address, {}, {}, {}, element};
    memcpy(one.size, size, sizeof one.size);
    memcpy(one.stride, stride, sizeof one.stride);
    memcpy(one.box, box, sizeof one.box);
    memset(opaque, 0, 128);
    memcpy(opaque, &one, sizeof one);
    return 0;
}

void *cudasim::tile_encoder() { return (void *)encode_tiled; }
