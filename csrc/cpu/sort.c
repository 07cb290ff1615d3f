/* sort: sorts pairs of an unsigned key, whose order is that of the elements, and an index: few by insertion, many by
 * least significant digit radix sort (Knuth vol. 3, 5.2.5), which skips bytes that all keys share; a few of many (topk)
 * by a heap. All are stable: equal elements keep their order.
 *
 *   x  3.0 -1.0 2.0   ->   (key, index)  bf.. 0 | 40.. 1 | c0.. 2   ->   by byte 0, by byte 1, ... 7   ->   values,
 * indices */
#include <string.h>

#include "../families/sort.h"
#include "cpu.h"

#define FEW 24      /* sorted by insertion */
#define CHUNK 16384 /* elements from which a second thread pays */

typedef struct item {
    uint64_t key;
    int64_t index;
} item;

/* ---- keys: -0 as 0, NaN above all ----------------------------------------------------------------- */

static inline uint64_t key_of_int64(int64_t x) { return (uint64_t)x ^ (uint64_t)1 << 63; }

static inline uint64_t key_of_float64(double x) {
    uint64_t bits, sign = (uint64_t)1 << 63;
    x += 0.0; /* -0 + 0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits & sign ? ~bits : bits | sign;
}

static inline uint64_t key_of_float32(float x) {
    uint32_t bits, sign = (uint32_t)1 << 31;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT32_MAX : bits & sign ? ~bits : bits | sign;
}

#define TEMPLATE "sort_loops.h"
#define WANTED(kind, bits) (kind == 'f' || (kind == 'i' && bits == 64))
#include "each_dtype.h"

/* ---- sorting items --------------------------------------------------------------------------------- */

static void sort_few(item *items, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        item moving = items[i];
        int64_t j = i;
        for (; j > 0 && items[j - 1].key > moving.key; j--) items[j] = items[j - 1];
        items[j] = moving;
    }
}

/* Sorts n items, with a buffer of the same size; returns the one of the two that has the result. */
static item *sort_many(item *items, item *other, int64_t n) {
    uint64_t low = UINT64_MAX, high = 0;
    for (int64_t i = 0; i < n; i++) {
        low = items[i].key < low ? items[i].key : low;
        high = items[i].key > high ? items[i].key : high;
    }
    high -= low; /* keys count from the lowest, so that small ranges have few bytes */
    int bytes = 0;
    while (bytes < 8 && high >> 8 * bytes != 0) bytes++;
    int64_t counts[8][256];
    memset(counts, 0, sizeof counts[0] * (size_t)bytes);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = items[i].key -= low;
        for (int b = 0; b < bytes; b++) counts[b][key >> 8 * b & 255]++;
    }
    for (int b = 0; b < bytes; b++) {
        int64_t *starts = counts[b], total = 0;
        if (starts[items[0].key >> 8 * b & 255] == n) continue;
        for (int v = 0; v < 256; v++) {
            int64_t count = starts[v];
            starts[v] = total;
            total += count;
        }
        for (int64_t i = 0; i < n; i++) other[starts[items[i].key >> 8 * b & 255]++] = items[i];
        item *swap = items;
        items = other;
        other = swap;
    }
    return items;
}

static inline bool after(item a, item b) { return a.key != b.key ? a.key > b.key : a.index > b.index; }

/* Sifts `moving` down from position `at` of a heap whose root is the last in order. */
static void sink(item *heap, int64_t n, int64_t at, item moving) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && after(heap[child + 1], heap[child])) child++;
        if (!after(heap[child], moving)) break;
        heap[at] = heap[child];
    }
    heap[at] = moving;
}

/* The `count` first of n items in order, at the front. */
static void select_first(item *items, int64_t n, int64_t count) {
    for (int64_t at = count / 2 - 1; at >= 0; at--) sink(items, count, at, items[at]);
    for (int64_t i = count; i < n; i++)
        if (items[i].key < items[0].key) sink(items, count, 0, items[i]); /* equals come later, and stay out */
    for (int64_t left = count - 1; left > 0; left--) {
        item last = items[0];
        sink(items, left, 0, items[left]);
        items[left] = last;
    }
}

/* ---- lanes ----------------------------------------------------------------------------------------- */

typedef struct job {
    const nr_sort_plan *plan;
    int32_t dtype;
    int64_t lanes_in_chunk;
    int32_t failed; /* a chunk found no memory */
} job;

static size_t scratch_of(const nr_sort_plan *plan) { return 2 * (size_t)plan->n * sizeof(item); }

static void sort_chunk(void *context, int64_t chunk) {
    job *j = context;
    const nr_sort_plan *p = j->plan;
    item *items = nr_scratch(scratch_of(p));
    if (!items) {
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    int64_t begin = chunk * j->lanes_in_chunk, end = begin + j->lanes_in_chunk;
    for (int64_t lane = begin; lane < end && lane < p->nest.numel; lane++) {
        const char *x = p->nest.data[1];
        char *out = p->nest.data[0], *values = p->nest.data[2];
        int64_t rest = lane;
        for (int32_t d = 0; d < p->nest.ndim; d++, rest /= p->nest.size[d - 1]) {
            if (out) out += rest % p->nest.size[d] * p->nest.stride[0][d];
            x += rest % p->nest.size[d] * p->nest.stride[1][d];
            if (values) values += rest % p->nest.size[d] * p->nest.stride[2][d];
        }
        uint64_t flip = p->descending ? UINT64_MAX : 0;
        (j->dtype == NORCH_INT64     ? read_int64
         : j->dtype == NORCH_FLOAT32 ? read_float32
                                     : read_float64)(items, x, p->n, p->step[1], flip);
        item *sorted = items;
        if (p->count <= p->n / 8)
            select_first(items, p->n, p->count);
        else if (p->n <= FEW)
            sort_few(items, p->n);
        else
            sorted = sort_many(items, items + p->n, p->n);
        for (int64_t i = 0; out && i < p->count; i++) *(int64_t *)(void *)(out + i * p->step[0]) = sorted[i].index;
        if (values)
            (j->dtype == NORCH_INT64     ? take_int64
             : j->dtype == NORCH_FLOAT32 ? take_float32
                                         : take_float64)(values, p->step[2], x, p->step[1], sorted, p->count);
    }
    nr_scratch_free(items, scratch_of(p));
}

/* ---- search ---------------------------------------------------------------------------------------- */

/* A chunk is a part of one run of the innermost loop. */
static void search_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const nr_plan *nest = &j->plan->nest;
    int64_t parts = (nest->size[0] + CHUNK - 1) / CHUNK;
    for (int64_t run = chunk * j->lanes_in_chunk; run < (chunk + 1) * j->lanes_in_chunk; run++) {
        int64_t first = run % parts * CHUNK, rest = run / parts, offset[3];
        if (rest * nest->size[0] >= nest->numel) return;
        for (int o = 0; o < 3; o++) offset[o] = first * nest->stride[o][0];
        for (int32_t d = 1; d < nest->ndim; d++, rest /= nest->size[d - 1])
            for (int o = 0; o < 3; o++) offset[o] += rest % nest->size[d] * nest->stride[o][d];
        int64_t n = nest->size[0] - first < CHUNK ? nest->size[0] - first : CHUNK;
        (j->dtype == NORCH_INT64     ? search_int64
         : j->dtype == NORCH_FLOAT32 ? search_float32
                                     : search_float64)(j->plan, nest->data[0] + offset[0], nest->data[1] + offset[1],
                                                       nest->data[2] + offset[2], n);
    }
}

int32_t nr_run_sort(const nr_call *call) {
    const nr_sort_plan *p = call->plan;
    job j = {.plan = p, .dtype = call->dtype};
    int64_t size = call->op == NR_SEARCH ? p->nest.size[0] : p->n, lanes = p->nest.numel;
    if (call->op == NR_SEARCH) lanes = p->nest.numel / size * ((size + CHUNK - 1) / CHUNK);
    j.lanes_in_chunk = size < CHUNK ? CHUNK / (size + 1) + 1 : 1;
    nr_parallel((lanes + j.lanes_in_chunk - 1) / j.lanes_in_chunk, call->op == NR_SEARCH ? search_chunk : sort_chunk,
                &j);
    if (j.failed) return nr_fail(NORCH_ERROR_MEMORY, "sort: out of memory for %zu bytes of scratch", scratch_of(p));
    return NORCH_OK;
}
