/* radix: the code that sorting and selection share: elements as unsigned keys of the same order, the lanes that they
 * lie in, and the ranks of a tile's keys by one digit of 8 bits, stable, which warps find by ballots.
 *
 *   keys    warp 0: 3 1 3 2 | warp 1: 1 1 3 2     digits, ITEMS rounds of 32 keys a warp
 *   before          0 0 1 0           0 1 0 0     keys of the warp with that digit in front of each: votes on its bits
 *   counts          1:1 2:1 3:2       1:2 2:1 3:1
 *   starts          1:0 2:3 3:5       1:1 2:4 3:7 by digit, then by warp: running sums of the counts
 *   rank            5 0 6 3           1 2 7 4     starts + before
 *
 * Digits, ranks and runs of a tile: Satish, Harris and Garland, "Designing Efficient Sorting Algorithms for Manycore
 * GPUs" (2009); keys of floats: Knuth vol. 3, 5.2.5. */
#ifndef NR_CUDA_RADIX_H
#define NR_CUDA_RADIX_H

#include "cuda.cuh"

#define NR_DIGITS 256 /* values of a digit */
#define NR_ALL 0xffffffffu

/* ---- keys: -0 as 0, NaN above all -------------------------------------------------------------------------------- */

/* An index below a limit, which is its key: shorter, with fewer digits than an int64_t. */
struct bounded {
    int64_t index;
};

template <class T> struct radix_key {
    using type = typename choose<sizeof(T) == 4 || is_same<T, bounded>, uint32_t, uint64_t>::type;
    static constexpr int passes = (int)sizeof(type);
};
template <class T> using key_type = typename radix_key<T>::type;

/* Without places zeros keep their signs, because only the key of an element is kept. */
template <class T, bool PLACES = true> DEVICE key_type<T> key_of(T x) {
    using Key = key_type<T>;
    const Key sign = (Key)1 << (8 * sizeof(Key) - 1);
    if constexpr (is_same<T, int64_t>) {
        return (Key)x ^ sign;
    } else {
        Key bits;
        if constexpr (PLACES) x += (T)0; /* -0 + 0 is 0 */
        memcpy(&bits, &x, sizeof bits);
        return x != x ? ~(Key)0 : bits & sign ? ~bits : bits | sign;
    }
}

/* The element of a key; `stored`, unless NULL, is read if the key does not determine the element: the sign of a zero,
 * the payload of a NaN. */
template <class T> DEVICE T value_of(key_type<T> key, const T *stored) {
    using Key = key_type<T>;
    const Key sign = (Key)1 << (8 * sizeof(Key) - 1);
    if constexpr (is_same<T, int64_t>) {
        return (T)(key ^ sign);
    } else {
        if (stored && (key == sign || key == ~(Key)0)) return *stored;
        const Key bits = key & sign ? key ^ sign : ~key;
        T x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
}

template <class Key> DEVICE uint32_t digit_of(Key key, int pass) {
    return (uint32_t)(key >> 8 * pass) & (NR_DIGITS - 1);
}

/* ---- lanes: what is sorted, and what it becomes ------------------------------------------------------------------ */

struct radix_args {
    const char *in;
    char *indices, *values; /* of what comes first; NULL: not wanted */
    int64_t step[3];        /* of indices, in, values: bytes to the next element of a lane */
    int64_t lanes, n, count;
    uint64_t flip;  /* of a key: all bits, for the descending order */
    uint32_t limit; /* of bounded elements: indices out of range have it as their key; or 0 */
    /* Dense rows of keys and their places in the lane, which earlier kernels have left; or NULL: elements of `in`. */
    const void *keys;
    const uint32_t *places;
    nest<3> where;
};

/* A lane as a kernel sees it; without PLACES only values are wanted. */
template <class T, bool PLACES = true> struct radix_lane {
    using Key = key_type<T>;
    const radix_args &a;
    int64_t at[3], row;

    DEVICE radix_lane(const radix_args &args, int64_t lane) : a(args), row(lane * args.n) {
        a.where.find((uint32_t)lane, at);
    }
    DEVICE const T *element(int64_t i) const { return reinterpret_cast<const T *>(a.in + at[1] + i * a.step[1]); }
    DEVICE Key key(int64_t i) const {
        if (a.keys) return static_cast<const Key *>(a.keys)[row + i];
        if constexpr (is_same<T, bounded>) {
            const uint64_t index = (uint64_t)element(i)->index;
            return index < a.limit ? (Key)index : a.limit;
        } else {
            return key_of<T, PLACES>(*element(i)) ^ (Key)a.flip;
        }
    }
    DEVICE T value(Key key, uint32_t place) const {
        if constexpr (is_same<T, bounded>)
            return key < a.limit ? bounded{(int64_t)key} : *element(place);
        else
            return value_of<T>(key ^ (Key)a.flip, PLACES ? element(place) : nullptr);
    }
    DEVICE uint32_t place(int64_t i) const { return a.keys ? a.places[row + i] : (uint32_t)i; }
    /* The element that comes i-th in order. */
    DEVICE void write(int64_t i, Key key, uint32_t place) const {
        if (i >= a.count) return;
        if (PLACES && a.indices) *reinterpret_cast<int64_t *>(a.indices + at[0] + i * a.step[0]) = place;
        if (!PLACES || a.values) *reinterpret_cast<T *>(a.values + at[2] + i * a.step[2]) = value(key, place);
    }
};

/* ---- ranks by one digit ------------------------------------------------------------------------------------------ */

/* The sum of x over the lanes of a warp up to this one. */
DEVICE uint32_t sum_to_lane(uint32_t x) {
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
        const uint32_t left = __shfl_up_sync(NR_ALL, x, distance);
        if (lane >= distance) x += left;
    }
    return x;
}

/* The sum over the threads of a block before this one. memory: a number a warp. */
template <int THREADS> DEVICE uint32_t sum_before(uint32_t value, uint32_t *memory) {
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const uint32_t to_here = sum_to_lane(value);
    uint32_t before = to_here - value;
    if constexpr (THREADS > 32) {
        if (lane == 31) memory[warp] = to_here;
        __syncthreads();
        for (int w = 0; w < warp; w++) before += memory[w];
    }
    return before;
}

template <int THREADS> struct radix_counts {
    uint32_t of[THREADS / 32][NR_DIGITS]; /* a warp, a digit: how many; then where their ranks start */
    uint32_t sums[THREADS / 32];
};

/* The keys of this thread's warp with the digit of each that are before it, into rank; the number of keys of each
 * digit, into counts. */
template <int ITEMS, class Key>
DEVICE void rank_in_warp(const Key (&key)[ITEMS], int pass, uint32_t (&rank)[ITEMS], uint32_t *counts) {
    const int lane = (int)threadIdx.x % 32;
    const uint32_t before_lane = (1u << lane) - 1;
    __syncwarp();
    for (int d = lane; d < NR_DIGITS; d += 32) counts[d] = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ITEMS; i++) {
        const uint32_t digit = digit_of(key[i], pass);
        uint32_t same = NR_ALL; /* lanes with this digit */
#pragma unroll
        for (int b = 0; b < 8; b++) {
            const bool bit = digit >> b & 1;
            const uint32_t set = __ballot_sync(NR_ALL, bit);
            same &= bit ? set : ~set;
        }
        const int first = __ffs((int)same) - 1;
        uint32_t before = 0;
        if (lane == first) {
            before = counts[digit];
            counts[digit] = before + (uint32_t)__popc(same);
        }
        __syncwarp();
        rank[i] = __shfl_sync(NR_ALL, before, first) + (uint32_t)__popc(same & before_lane);
    }
}

/* Makes the counts of all warps the starts of their ranks. Thread t owns the next EACH digits; total and start: those
 * of its digits in the tile. told(total) runs as soon as they are known. */
template <int THREADS, int EACH, class Told>
DEVICE void starts_of_ranks(radix_counts<THREADS> &counts, uint32_t (&total)[EACH], uint32_t (&start)[EACH],
                            const Told &told) {
    static_assert(EACH * THREADS == NR_DIGITS, "each digit has an owner");
    uint32_t all = 0;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        uint32_t sum = 0;
#pragma unroll
        for (int w = 0; w < THREADS / 32; w++) {
            uint32_t &entry = counts.of[w][threadIdx.x * EACH + e];
            const uint32_t count = entry;
            entry = sum;
            sum += count;
        }
        total[e] = sum;
        all += sum;
    }
    told(total);
    uint32_t before = sum_before<THREADS>(all, counts.sums);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        start[e] = before;
#pragma unroll
        for (int w = 0; w < THREADS / 32; w++) counts.of[w][threadIdx.x * EACH + e] += before;
        before += total[e];
    }
    __syncthreads();
}

/* Sorts lanes of the elements that the dtype of the call says, or of bounded ones: any lanes, and those that
 * nr_cuda_sorts_rows(), which a block sorts in shared memory. */
int32_t nr_cuda_radix_sort(const nr_call *call, const radix_args &args);
bool nr_cuda_sorts_rows(const nr_call *call, const radix_args &args);
int32_t nr_cuda_sort_rows(const nr_call *call, const radix_args &args);
/* The first `count` elements in order of lanes for which that is cheaper than sorting them. */
bool nr_cuda_selects(int64_t n, int64_t count);
int32_t nr_cuda_select(const nr_call *call, const radix_args &args);

/* Calls what(T()) for the elements of a sort. */
template <class Body> static auto with_sorted(const nr_call *call, const radix_args &a, const Body &body) {
    if (a.limit) return body(bounded());
    return call->dtype == NORCH_INT64 ? body(int64_t()) : call->dtype == NORCH_FLOAT32 ? body(float()) : body(double());
}

#endif
