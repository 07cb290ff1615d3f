/* sort: sorts pairs of an unsigned key, whose order is that of the elements, and an index; compiled once per
 * instruction set. All ways are stable: equal elements keep their order.
 *
 *   few      by insertion
 *   many     least significant digit radix sort (Knuth vol. 3, 5.2.5), which skips bytes that all keys share
 *   a few of many (topk)       by a heap, or of float32 by the least of columns (sort_short.h)
 *   short rows of float32      eight side by side, by a network (sort_short.h)
 *   one of many (median)       by digits from the top, no element being moved that is in another bucket (sort_loops.h)
 *
 *   x  3.0 -1.0 2.0   ->   (key, index)  bf.. 0 | 40.. 1 | c0.. 2   ->   by byte 0, by byte 1, ... 7   ->   values,
 * indices */
#include <string.h>

#include "../families/sort.h"
#include "cpu.h"

#define FEW 24      /* sorted by insertion */
#define DIGIT 11    /* bits by which large rows are counted */
#define SIDE 8      /* searches side by side */
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

static inline uint32_t key_of_float32(float x) {
    uint32_t bits, sign = (uint32_t)1 << 31;
    x += 0.0f;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT32_MAX : bits & sign ? ~bits : bits | sign;
}

/* The place of a statistic among n elements in order of which `valid` are not NaN. */
static int64_t place_of(int64_t k, int64_t n, int64_t valid) {
    if (k >= 0) return k;
    if (k == NORCH_MEDIAN) return valid < n ? valid : (n - 1) / 2;
    return valid ? (valid - 1) / 2 : 0;
}

typedef uint32_t key_float32; /* as wide as an element */
typedef uint64_t key_float64, key_int64;

#define TEMPLATE "sort_loops.h"
#define WANTED(kind, bits) (kind == 'f' || (kind == 'i' && bits == 64))
#include "each_dtype.h"

#include "sort_short.h"

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

/* The function of a template for the dtype. */
#define FOR_DTYPE(dtype, name) \
    ((dtype) == NORCH_INT64 ? name##_int64 : (dtype) == NORCH_FLOAT32 ? name##_float32 : name##_float64)

static size_t scratch_of(const nr_sort_plan *plan) { return 2 * (size_t)plan->n * sizeof(item); }

/* Where a lane is in each operand; NULL without one. */
static void find_lane(const nr_plan *nest, int64_t lane, char *at[3]) {
    for (int o = 0; o < 3; o++) at[o] = nest->data[o];
    for (int32_t d = 0; d < nest->ndim; d++, lane /= nest->size[d - 1])
        for (int o = 0; o < 3; o++)
            if (at[o]) at[o] += lane % nest->size[d] * nest->stride[o][d];
}

static void put_indices(const nr_sort_plan *p, char *out, const item *items) {
    for (int64_t i = 0; out && i < p->count; i++) *(int64_t *)(void *)(out + i * p->step[0]) = items[i].index;
}

static bool takes_few(const job *j) {
    const int64_t n = j->plan->n, count = j->plan->count;
    return j->dtype == NORCH_FLOAT32 && (n >= LONG ? count <= TOP : n > FEW && count <= n / 8);
}

static void sort_lane(const job *j, char *const at[3], item *items) {
    const nr_sort_plan *p = j->plan;
    const uint64_t flip = p->descending ? UINT64_MAX : 0;
    item *sorted = items;
    if (takes_few(j)) {
        top_few(items, (uint32_t *)(void *)(items + TOP), at[1], p->n, p->step[1], (uint32_t)flip, p->count);
    } else {
        FOR_DTYPE(j->dtype, read)(items, at[1], p->n, p->step[1], flip);
        if (p->count <= p->n / 8)
            select_first(items, p->n, p->count);
        else if (p->n <= FEW)
            sort_few(items, p->n);
        else
            sorted = sort_many(items, items + p->n, p->n);
    }
    put_indices(p, at[0], sorted);
    if (at[2]) FOR_DTYPE(j->dtype, take)(at[2], p->step[2], at[1], p->step[1], sorted, p->count);
}

/* Up to ROWS short lanes from number `first` on. */
static void sort_short(const job *j, int64_t first, int64_t lanes, bool select) {
    const nr_sort_plan *p = j->plan;
    const uint32_t flip = p->descending ? UINT32_MAX : 0;
    row_items items[SHORT];
    char *at[ROWS][3];
    for (int64_t l = 0; l < ROWS; l++) { /* the last again, for lanes that there are not */
        find_lane(&p->nest, first + least(l, lanes - 1), at[l]);
        read_row(items, l, at[l][1], p->n, p->step[1], flip);
    }
    sort_rows(items, p->n);
    for (int64_t l = 0; l < lanes; l++) {
        if (select) {
            int64_t valid = p->n;
            while (p->count < 0 && valid > 0 && items[valid - 1][l] >> 32 == UINT32_MAX) valid--;
            *(int64_t *)(void *)at[l][0] = (uint32_t)items[place_of(p->count, p->n, valid)][l];
            continue;
        }
        for (int64_t i = 0; i < p->count; i++) {
            const int64_t index = (uint32_t)items[i][l];
            if (at[l][0]) *(int64_t *)(void *)(at[l][0] + i * p->step[0]) = index;
            if (at[l][2])
                *(float *)(void *)(at[l][2] + i * p->step[2]) =
                    *(const float *)(const void *)(at[l][1] + index * p->step[1]);
        }
    }
}

static void run_chunk(job *j, int64_t chunk, bool select) {
    const nr_sort_plan *p = j->plan;
    const int64_t begin = chunk * j->lanes_in_chunk, end = least(begin + j->lanes_in_chunk, p->nest.numel);
    const int64_t longest = select || end - begin < ROWS / 2 ? ONE_SHORT : SHORT;
    const bool network = p->n <= longest && (select || !takes_few(j));
    if (j->dtype == NORCH_FLOAT32 && p->n > 1 && network && end - begin > 1) {
        for (int64_t lane = begin; lane < end; lane += ROWS) sort_short(j, lane, least(ROWS, end - lane), select);
        return;
    }
    void *scratch = nr_scratch(scratch_of(p));
    if (!scratch) {
        __atomic_store_n(&j->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t lane = begin; lane < end; lane++) {
        char *at[3];
        find_lane(&p->nest, lane, at);
        if (select)
            *(int64_t *)(void *)at[0] = FOR_DTYPE(j->dtype, select)(scratch, at[1], p->n, p->step[1], p->count);
        else
            sort_lane(j, at, scratch);
    }
    nr_scratch_free(scratch, scratch_of(p));
}

static void sort_chunk(void *context, int64_t chunk) { run_chunk(context, chunk, false); }
static void select_chunk(void *context, int64_t chunk) { run_chunk(context, chunk, true); }

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
        FOR_DTYPE(j->dtype, search)(j->plan, nest->data[0] + offset[0], nest->data[1] + offset[1],
                                    nest->data[2] + offset[2], n);
    }
}

int32_t NR_ISA(nr_run_sort)(const nr_call *call) {
    const nr_sort_plan *p = call->plan;
    job j = {.plan = p, .dtype = call->dtype};
    int64_t size = call->op == NR_SEARCH ? p->nest.size[0] : p->n, lanes = p->nest.numel;
    if (call->op == NR_SEARCH) lanes = p->nest.numel / size * ((size + CHUNK - 1) / CHUNK);
    j.lanes_in_chunk = size < CHUNK ? CHUNK / (size + 1) + 1 : 1;
    nr_parallel((lanes + j.lanes_in_chunk - 1) / j.lanes_in_chunk,
                call->op == NR_SEARCH   ? search_chunk
                : call->op == NR_SELECT ? select_chunk
                                        : sort_chunk,
                &j);
    if (j.failed) return nr_fail(NORCH_ERROR_MEMORY, "sort: out of memory for %zu bytes of scratch", scratch_of(p));
    return NORCH_OK;
}
