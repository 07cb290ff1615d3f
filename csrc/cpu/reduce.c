/* reduce: cuts a reduction into tiles of outputs and parts of the reduced range, and calls the kernels of reduce_isa.c
 * on runs of elements. Only shapes and strides decide the cuts, so that the result does not depend on the number of
 * threads. Sums are as accurate as pairwise summation, nearly (Higham, SIAM J. Sci. Comput. 14, 1993): each lane takes
 * few steps, and the lanes are merged level by level.
 *
 *   along   x  [ run: at most LEAF elements ][ run ][ run ]   each gives one state; states are merged pair by pair
 *           sum(1), sum((0, 2, 3)): one call of the kernel takes the runs of many outputs
 *   across  x  [ row of up to 1024 outputs ]   STEPS rows are added into lanes, lane k of each into lane k;
 *              [ row                       ]   then the lanes are folded into states and cleared
 *              ...                             sum(0)
 *   joined  x  [ row | row | row | row ]       across rows of few outputs, several of which are one row of more lanes
 *   parts   few outputs and many elements: each part of the range gives a state, merged in the order of the parts */
#include "reduce.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "../families/chain.h"
#include "../families/reduce.h"
#include "cpu.h"
#include "tiles.h"

#define ALONE 65536    /* elements up to which one thread does it all */
#define CHUNK 32768    /* elements of a chunk: a second thread pays from there */
#define MOST_CHUNKS 64 /* into which a reduction to few outputs is cut */
#define OUTPUTS 64     /* of a tile that is reduced along */
#define JOINED 128     /* outputs of the rows that are reduced as one, at most */

typedef union tile_memory {
    char bytes[NR_REDUCE_BYTES];
    int64_t aligned;
} tile_memory;

/* A tile is `width` outputs along the innermost kept dimension. */
typedef struct job {
    const nr_reduce_plan *plan;
    const nr_reduce_ops *ops;
    int32_t narrow, result; /* the dtype, if narrow, else -1; the result column of ops.def */
    enum { NEVER, OF_MEAN, OF_NORM } rescues;
    int64_t size;              /* of an element, for the kernel */
    nr_conversion pack;        /* makes strided or narrow elements contiguous and wide for the kernel */
    bool across;               /* elements that are neighbours in memory belong to different outputs */
    int64_t joined;            /* rows that are reduced as one */
    int64_t width, row, tiles; /* row: tiles along the innermost kept dimension */
    int64_t parts, part_size;  /* of the reduced range */
    int64_t tiles_in_chunk;
    char *partials; /* the states of each part of each tile */
} job;

/* ---- the reduced elements, in order --------------------------------------------------------------- */

typedef struct iterator {
    const nr_reduce_plan *plan;
    const char *x;
    int64_t at[NORCH_MAX_DIMS];
} iterator;

static void iterate_from(iterator *it, const nr_reduce_plan *plan, const char *x, int64_t index) {
    it->plan = plan;
    for (int32_t d = 0; d < plan->ndim; d++) {
        it->at[d] = d + 1 < plan->ndim ? index % plan->size[d] : index;
        if (d + 1 < plan->ndim) index /= plan->size[d];
        x += it->at[d] * plan->stride[d];
    }
    it->x = x;
}

/* What is left of the row at the present position, at most `limit`. */
static int64_t row_left(const iterator *it, int64_t limit) {
    int64_t rest = it->plan->size[0] - it->at[0];
    return rest < limit ? rest : limit;
}

static void advance(iterator *it, int64_t n) {
    const nr_reduce_plan *p = it->plan;
    it->at[0] += n;
    it->x += n * p->stride[0];
    for (int32_t d = 0; d + 1 < p->ndim && it->at[d] == p->size[d]; d++) {
        it->at[d] = 0;
        it->at[d + 1]++;
        it->x += p->stride[d + 1] - p->size[d] * p->stride[d];
    }
}

/* ---- elements begin to end of the reduced range, into states ------------------------------------- */

#define PACK(WORD)                                                                                                     \
    static void NR_JOIN2(pack, WORD)(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n) {      \
        (void)to_step;                                                                                                 \
        for (int64_t i = 0; i < n; i++) ((WORD *)(void *)to)[i] = *(const WORD *)(const void *)(from + i * from_step); \
    }
PACK(uint8_t)
PACK(uint32_t)
PACK(uint64_t)

/* nr_reduce_ops.run, for elements that may be narrow or strided. */
static void run_elements(const job *j, char *states, const char *x, int64_t n, int64_t position, int64_t outputs,
                         int64_t x_step) {
    const int64_t stride = j->plan->stride[0];
    if (j->narrow < 0 && (stride == j->size || n < NR_REDUCE_ENOUGH)) {
        j->ops->run(states, x, n, stride, position, outputs, x_step);
        return;
    }
    uint64_t packed[NR_PIECE];
    for (int64_t o = 0; o < outputs; o++, x += x_step, states += j->ops->state_size)
        for (int64_t count, first = 0; first < n; first += count) {
            count = n - first < NR_PIECE ? n - first : NR_PIECE;
            j->pack((char *)packed, j->size, x + first * stride, stride, count);
            j->ops->run(states, (const char *)packed, count, j->size, position + first, 1, 0);
        }
}

/* nr_reduce_across, for rows that may be narrow or strided; position: of the first row since the lanes were cleared. */
static void run_rows(const job *j, void *lanes, const char *x, int64_t width, int64_t rows, int64_t row_stride,
                     int64_t position) {
    const int64_t stride = j->plan->kept.stride[1][0];
    if (j->narrow < 0) {
        j->ops->across(lanes, x, width, stride, rows, row_stride, position, 1, 0);
        return;
    }
    uint32_t wide[NR_PIECE];
    for (int64_t row = 0; row < rows; row++) {
        j->pack((char *)wide, NR_WIDE, x + row * row_stride, stride, width);
        j->ops->across(lanes, (const char *)wide, width, NR_WIDE, 1, 0, position + row, 1, 0);
    }
}

/* Reduces [begin, end) run by run, each for all outputs. */
static void run_leaf(const job *j, const char *x, int64_t begin, int64_t end, char *states, int64_t outputs) {
    iterator it;
    iterate_from(&it, j->plan, x, begin);
    while (begin < end) {
        int64_t n = row_left(&it, end - begin);
        run_elements(j, states, it.x, n, begin, outputs, j->plan->kept.stride[1][0]);
        advance(&it, n);
        begin += n;
    }
}

/* Halves the range until it is a leaf, which is smaller if it may consist of many short runs; merges the halves. */
static void run_range(const job *j, const char *x, int64_t begin, int64_t end, char *states, int64_t outputs) {
    const int64_t leaf = j->plan->ndim == 1 ? NR_REDUCE_LEAF : NR_REDUCE_LEAF / 4;
    if (end - begin <= leaf) {
        run_leaf(j, x, begin, end, states, outputs);
        return;
    }
    int64_t leaves = (end - begin + leaf - 1) / leaf;
    int64_t middle = begin + leaves / 2 * leaf;
    int64_t right[4 * OUTPUTS]; /* large enough for any state */
    run_range(j, x, begin, middle, states, outputs);
    j->ops->clear(right, outputs);
    run_range(j, x, middle, end, (char *)right, outputs);
    j->ops->merge(states, right, outputs);
}

/* Reduces rows of `width` elements in three levels: lanes add STEPS rows, `middle` merges STEPS lanes, `states` the
 * rest. */
static void across_range(const job *j, const char *x, int64_t width, int64_t begin, int64_t end, void *states) {
    const nr_reduce_plan *p = j->plan;
    const nr_reduce_ops *ops = j->ops;
    const int64_t span = (int64_t)NR_REDUCE_STEPS * NR_REDUCE_STEPS;
    bool deep = end - begin > span;
    tile_memory lanes, middle;
    void *target = deep ? middle.bytes : states;
    iterator it;
    iterate_from(&it, p, x, begin);
    for (int64_t first = begin; first < end;) {
        if (deep && (first - begin) % span == 0) ops->clear(target, width);
        int64_t last = first + NR_REDUCE_STEPS < end ? first + NR_REDUCE_STEPS : end;
        for (int64_t i = first; i < last;) {
            int64_t n = row_left(&it, last - i);
            run_rows(j, lanes.bytes, it.x, width, n, p->stride[0], i - first);
            advance(&it, n);
            i += n;
        }
        ops->fold(target, lanes.bytes, width, last - first, first);
        first = last;
        if (deep && (first == end || (first - begin) % span == 0)) ops->merge(states, target, width);
    }
}

/* across_range() for rows of few outputs that follow one another in memory. */
static void joined_range(const job *j, const char *x, int64_t width, int64_t begin, int64_t end, char *states) {
    nr_reduce_plan plan = *j->plan;
    job wide = *j;
    tile_memory joined;
    const int64_t rows = (end - begin) / j->joined;
    wide.plan = &plan;
    plan.size[0] = rows;
    plan.stride[0] *= j->joined;
    j->ops->clear(joined.bytes, width * j->joined);
    across_range(&wide, x + begin * j->plan->stride[0], width * j->joined, 0, rows, joined.bytes);
    for (int64_t k = 0; k < j->joined; k++) j->ops->merge(states, joined.bytes + k * width * j->ops->state_size, width);
    across_range(j, x, width, begin + rows * j->joined, end, states);
}

static void reduce_tile(const job *j, const char *x, int64_t width, int64_t begin, int64_t end, char *states) {
    j->ops->clear(states, width);
    if (j->joined > 1)
        joined_range(j, x, width, begin, end, states);
    else if (j->across)
        across_range(j, x, width, begin, end, states);
    else
        run_range(j, x, begin, end, states, width);
}

/* ---- tiles --------------------------------------------------------------------------------------- */

/* Finds the addresses of tile t in the input and the output; returns its width. */
static int64_t find_tile(const job *j, int64_t t, const char **x, char **out) {
    const nr_plan *kept = &j->plan->kept;
    int64_t first = t ? t % j->row * j->width : 0, rest = t ? t / j->row : 0;
    *out = kept->data[0] + first * kept->stride[0][0];
    *x = kept->data[1] + first * kept->stride[1][0];
    for (int32_t d = 1; d < kept->ndim; d++) {
        int64_t at = d + 1 < kept->ndim ? rest % kept->size[d] : rest;
        if (d + 1 < kept->ndim) rest /= kept->size[d];
        *out += at * kept->stride[0][d];
        *x += at * kept->stride[1][d];
    }
    return kept->size[0] - first < j->width ? kept->size[0] - first : j->width;
}

/* Whether the result has the dtype of the input. */
static bool narrows(const job *j) {
    return j->result == NR_SAME || (nr_is_float(j->narrow) && (j->result == NR_SUM || j->result == NR_FLOAT));
}

static void finish_tile(const job *j, char *out, const char *states, int64_t width) {
    const int64_t stride = j->plan->kept.stride[0][0];
    if (j->narrow < 0 || !narrows(j)) {
        j->ops->finish(out, stride, states, width, j->plan->count, j->plan->param);
        return;
    }
    uint32_t wide[NR_PIECE];
    j->ops->finish((char *)wide, NR_WIDE, states, width, j->plan->count, j->plan->param);
    nr_narrow[j->narrow](out, stride, (const char *)wide, NR_WIDE, width);
}

static double wide_number(const job *j, const char *x) {
    union {
        float f32;
        double f64;
    } wide;
    j->pack((char *)&wide, j->size, x, 0, 1);
    return j->size == sizeof(double) ? wide.f64 : (double)wide.f32;
}

/* ---- means and norms whose sums overflow or underflow, computed again leaf by leaf ------------------------------- */

/* A sum in double precision of terms times a power of two. */
typedef struct rescue {
    double sum, lost; /* by rounding: Kahan, Communications of the ACM 8 (1965) */
    int exponent;     /* of a norm: of the largest term, by which squares are scaled */
} rescue;

static rescue rescue_begin(void) { return (rescue){0, 0, INT_MIN / 4}; }

static void rescue_add(rescue *r, double term) {
    term -= r->lost;
    const double next = r->sum + term;
    r->lost = next - r->sum - term;
    if (r->lost - r->lost != 0) r->lost = 0; /* a term is not finite */
    r->sum = next;
}

static void rescue_square(rescue *r, double x) {
    if (x == 0) return;
    const int exponent = x - x == 0 ? ilogb(x) : 0;
    if (exponent > r->exponent) {
        r->sum = scalbn(r->sum, 2 * (r->exponent - exponent));
        r->lost = scalbn(r->lost, 2 * (r->exponent - exponent));
        r->exponent = exponent;
    }
    const double scaled = scalbn(x, -r->exponent);
    rescue_add(r, scaled * scaled);
}

static double rescued_norm(const rescue *r) { return r->sum == 0 ? 0 : scalbn(sqrt(r->sum), r->exponent); }

#define TERM 0x1p-63 /* scales the terms of a mean: there are fewer elements than 2^63 */

/* The sum of n elements times TERM, or their norm. */
static double rescue_leaf(const job *j, iterator *it, int64_t n) {
    rescue r = rescue_begin();
    for (int64_t i = 0; i < n; i++, advance(it, 1)) {
        const double x = wide_number(j, it->x);
        if (j->rescues == OF_MEAN)
            rescue_add(&r, x * TERM);
        else
            rescue_square(&r, x);
    }
    return j->rescues == OF_MEAN ? r.sum : rescued_norm(&r);
}

/* The mean or the norm of the leaves up to this one, of what rescue_leaf() gave. */
static double rescue_join(const job *j, double leaf, rescue *r) {
    if (j->rescues == OF_MEAN)
        rescue_add(r, leaf);
    else
        rescue_square(r, leaf);
    return j->rescues == OF_MEAN ? r->sum / (double)j->plan->count / TERM : rescued_norm(r);
}

static double rescue_range(const job *j, const char *x) {
    rescue r = rescue_begin();
    double found = 0;
    iterator it;
    iterate_from(&it, j->plan, x, 0);
    for (int64_t first = 0; first < j->plan->count; first += NR_REDUCE_LEAF) {
        const int64_t rest = j->plan->count - first;
        const double leaf = rescue_leaf(j, &it, rest < NR_REDUCE_LEAF ? rest : NR_REDUCE_LEAF);
        found = rescue_join(j, leaf, &r);
    }
    return found;
}

/* For norms between these, squares neither overflow nor lose digits. */
#define LEAST_NORM 0x1p-480
#define MOST_NORM 0x1p+511

/* Whether all of n contiguous results are right: means that are finite, norms in range. An exponent of ones and one
 * more carry into the sign. */
static bool all_stand(const job *j, const char *numbers, int64_t n) {
    if (j->rescues == OF_NORM) {
        const double *norms = (const double *)(const void *)numbers;
        bool stand = true;
        for (int64_t k = 0; k < n; k++) stand &= (norms[k] >= LEAST_NORM) & (norms[k] <= MOST_NORM);
        return stand;
    }
    uint64_t carries = 0;
    if (j->size == sizeof(double)) {
        const uint64_t *bits = (const uint64_t *)(const void *)numbers, one = (uint64_t)1 << 52;
        for (int64_t k = 0; k < n; k++) carries |= (bits[k] & (uint64_t)0x7ff << 52) + one;
        return !(carries >> 63);
    }
    const uint32_t *bits = (const uint32_t *)(const void *)numbers, one = (uint32_t)1 << 23;
    uint32_t narrow = 0;
    for (int64_t k = 0; k < n; k++) narrow |= (bits[k] & (uint32_t)0xff << 23) + one;
    return !(narrow >> 31);
}

static bool stands(const job *j, double found) {
    if (j->rescues == OF_NORM) return found != found || (found >= LEAST_NORM && found <= MOST_NORM);
    return found - found == 0;
}

static void put_number(const job *j, char *out, double number) {
    const float rounded = (float)number;
    if (j->narrow >= 0)
        nr_narrow[j->narrow](out, 0, (const char *)&rounded, NR_WIDE, 1);
    else
        memcpy(out, j->size == sizeof number ? (const void *)&number : &rounded, (size_t)j->size);
}

/* Computes again the means whose sums may have overflowed, and norms of float64 whose squares may have. */
static void mend(const job *j, const char *x, char *out, int64_t width) {
    if (j->rescues == NEVER || j->plan->count == 0) return;
    const nr_plan *kept = &j->plan->kept;
    if (j->narrow < 0 && kept->stride[0][0] == j->size && all_stand(j, out, width)) return;
    for (int64_t k = 0; k < width; k++, x += kept->stride[1][0], out += kept->stride[0][0])
        if (!stands(j, wide_number(j, out))) put_number(j, out, rescue_range(j, x));
}

static void reduce_tiles(void *context, int64_t chunk) {
    const job *j = context;
    tile_memory states;
    int64_t end = (chunk + 1) * j->tiles_in_chunk < j->tiles ? (chunk + 1) * j->tiles_in_chunk : j->tiles;
    for (int64_t t = chunk * j->tiles_in_chunk; t < end; t++) {
        const char *x;
        char *out;
        int64_t width = find_tile(j, t, &x, &out);
        reduce_tile(j, x, width, 0, j->plan->count, states.bytes);
        finish_tile(j, out, states.bytes, width);
        mend(j, x, out, width);
    }
}

static char *partial(const job *j, int64_t tile, int64_t part) {
    return j->partials + (tile * j->parts + part) * j->width * j->ops->state_size;
}

static void reduce_part(void *context, int64_t chunk) {
    const job *j = context;
    int64_t tile = chunk / j->parts, part = chunk % j->parts;
    const char *x;
    char *out;
    int64_t width = find_tile(j, tile, &x, &out);
    int64_t begin = part * j->part_size, end = begin + j->part_size;
    reduce_tile(j, x, width, begin, end < j->plan->count ? end : j->plan->count, partial(j, tile, part));
}

static void merge_parts(const job *j) {
    for (int64_t tile = 0; tile < j->tiles; tile++) {
        const char *x;
        char *out;
        int64_t width = find_tile(j, tile, &x, &out);
        for (int64_t part = 1; part < j->parts; part++)
            j->ops->merge(partial(j, tile, 0), partial(j, tile, part), width);
        finish_tile(j, out, partial(j, tile, 0), width);
        mend(j, x, out, width);
    }
}

/* ---- the cuts ------------------------------------------------------------------------------------ */

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Whether to reduce a row of outputs side by side: because elements of neighbouring outputs are closer in memory than
 * those of one output, or one output has too few contiguous elements for a run, or a call. */
static bool choose_across(const nr_reduce_plan *p, bool narrow) {
    const int64_t few = narrow || p->ndim > 1 ? 32 : 8;
    int64_t columns = p->kept.size[0];
    if (columns < 8) return false;
    bool closer = distance(p->kept.stride[1][0]) < distance(p->stride[0]);
    return closer || (p->size[0] < few && columns >= 32);
}

/* How many rows to reduce as one: 1 unless they follow one another in memory and are short. An index in the result
 * would count joined rows. */
static int64_t choose_joined(const job *j) {
    const nr_reduce_plan *p = j->plan;
    const int64_t columns = p->kept.size[0], size = j->size;
    if (columns < 2 || columns > JOINED / 2 || j->narrow >= 0 || j->result == NR_INDEX) return 1;
    if (p->ndim > 1 || p->stride[0] != columns * size) return 1;
    if (p->kept.numel > columns || p->kept.stride[1][0] != size) return 1;
    const int64_t joined = JOINED / columns;
    return p->count >= 8 * joined ? joined : 1;
}

static void cut(job *j) {
    const nr_reduce_plan *p = j->plan;
    j->joined = choose_joined(j);
    j->across = j->joined > 1 || choose_across(p, j->narrow >= 0);
    j->width = j->across ? j->ops->width : OUTPUTS;
    if (j->width > p->kept.size[0]) j->width = p->kept.size[0];
    j->parts = j->row = j->tiles = j->tiles_in_chunk = 1;
    const bool alone = p->kept.numel * (p->count + 1) <= ALONE;
    if (alone && p->kept.numel == j->width) return; /* one tile: divisions would take as long as its elements */
    j->row = (p->kept.size[0] + j->width - 1) / j->width;
    j->tiles_in_chunk = j->tiles = p->kept.numel / p->kept.size[0] * j->row;
    if (alone) return;

    int64_t work = j->width * (p->count + 1); /* of a tile; + 1: writing an output has a cost too */
    j->tiles_in_chunk = work < CHUNK ? CHUNK / work : 1;
    int64_t parts = j->tiles < MOST_CHUNKS ? MOST_CHUNKS / j->tiles : 1;
    if (parts > work / CHUNK) parts = work / CHUNK;
    if (parts <= 1) return;
    int64_t grain = j->across ? NR_REDUCE_STEPS : NR_REDUCE_LEAF;
    j->part_size = ((p->count + parts - 1) / parts + grain - 1) / grain * grain;
    j->parts = (p->count + j->part_size - 1) / j->part_size;
}

static job begin(const nr_call *call, const nr_reduce_plan *plan) {
    const bool narrow = nr_is_narrow(call->dtype);
    const int64_t size = narrow ? NR_WIDE : nr_size_of(call->dtype);
    return (job){.plan = plan,
                 .ops = ((nr_reduce_kernel)call->kernel)(),
                 .narrow = narrow ? call->dtype : -1,
                 .size = size,
                 .rescues = call->op == NR_OP_mean                                        ? OF_MEAN
                            : call->op == NR_OP_norm && !narrow && size == sizeof(double) ? OF_NORM
                                                                                          : NEVER,
                 .pack = narrow      ? nr_widen[call->dtype]
                         : size == 1 ? pack_uint8_t
                         : size == 4 ? pack_uint32_t
                                     : pack_uint64_t,
                 .result = nr_ops[call->op].result};
}

int32_t nr_run_reduce(const nr_call *call) {
    job j = begin(call, call->plan);
    cut(&j);
    if (j.parts == 1) {
        nr_parallel((j.tiles + j.tiles_in_chunk - 1) / j.tiles_in_chunk, reduce_tiles, &j);
        return NORCH_OK;
    }
    size_t bytes = (size_t)(j.tiles * j.parts * j.width * j.ops->state_size);
    j.partials = nr_scratch(bytes);
    if (!j.partials)
        return nr_fail(NORCH_ERROR_MEMORY, "%s: out of memory for %zu bytes of scratch", nr_ops[call->op].name, bytes);
    nr_parallel(j.tiles * j.parts, reduce_part, &j);
    merge_parts(&j);
    nr_scratch_free(j.partials, bytes);
    return NORCH_OK;
}

/* ---- in a chain (cpu/chain.c) ------------------------------------------------------------------------------------ */

int32_t nr_reduce_role(const nr_call *call) {
    job j = begin(call, call->plan);
    const nr_reduce_plan *p = call->plan;
    if (p->ndim != 1 || p->count < 2 || p->kept.numel == 0) return -1;
    cut(&j);
    if (j.across) return -1;
    if (p->count > NR_REDUCE_LEAF) return p->kept.numel == 1 ? NR_INTO_ONE : -1;
    return j.parts == 1 ? NR_INTO_ROW : -1;
}

void nr_reduce_rows(const nr_call *call, const nr_reduce_plan *plan) {
    job j = begin(call, plan);
    const int64_t rows = plan->kept.numel;
    j.width = rows < OUTPUTS ? rows : OUTPUTS;
    j.row = j.tiles = j.tiles_in_chunk = (rows + j.width - 1) / j.width;
    reduce_tiles(&j, 0);
}

/* Behind the states of all leaves: of each what rescue_leaf() gives. */
int64_t nr_reduce_state_size(const nr_call *call) {
    const job j = begin(call, call->plan);
    return j.ops->state_size + (j.rescues == NEVER ? 0 : (int64_t)sizeof(double));
}

static char *rescues_of(const job *j, char *states) {
    return states + (j->plan->count + NR_REDUCE_LEAF - 1) / NR_REDUCE_LEAF * j->ops->state_size;
}

/* What rescue_leaf() gives, by the result of the leaf where that has not lost digits. */
static double rescue_of_leaf(const job *j, const char *x, int64_t n, const char *state) {
    union {
        float f32;
        double f64;
        uint32_t wide;
    } found;
    j->ops->finish((char *)&found, 8, state, 1, 1, 0);
    const double number = j->size == sizeof(double) ? found.f64 : (double)found.f32;
    const double most = j->size == sizeof(double) ? 0x1p+900 : 0x1p+90; /* beside these it is negligible */
    if (j->rescues == OF_NORM ? number >= LEAST_NORM && number <= MOST_NORM : number <= most && number >= -most)
        return j->rescues == OF_NORM ? number : number * TERM;
    iterator it = {j->plan, x, {0}};
    return rescue_leaf(j, &it, n);
}

void nr_reduce_leaf(const nr_call *call, const char *x, int64_t first, char *states) {
    const job j = begin(call, call->plan);
    const int64_t leaf = first / NR_REDUCE_LEAF, rest = j.plan->count - first;
    const int64_t n = rest < NR_REDUCE_LEAF ? rest : NR_REDUCE_LEAF;
    char *state = states + leaf * j.ops->state_size;
    j.ops->clear(state, 1);
    run_elements(&j, state, x, n, first, 1, 0);
    if (j.rescues == NEVER) return;
    const double number = rescue_of_leaf(&j, x, n, state);
    memcpy(rescues_of(&j, states) + leaf * (int64_t)sizeof number, &number, sizeof number);
}

/* Merges the states of leaves as run_range() does. */
static char *join_leaves(const job *j, char *states, int64_t leaves) {
    if (leaves == 1) return states;
    char *right = states + leaves / 2 * j->ops->state_size;
    join_leaves(j, states, leaves / 2);
    j->ops->merge(states, join_leaves(j, right, leaves - leaves / 2), 1);
    return states;
}

void nr_reduce_join(const nr_call *call, char *states) {
    job j = begin(call, call->plan);
    cut(&j);
    const int64_t leaves = (j.plan->count + NR_REDUCE_LEAF - 1) / NR_REDUCE_LEAF;
    const int64_t in_part = j.parts > 1 ? j.part_size / NR_REDUCE_LEAF : leaves;
    for (int64_t first = 0; first < leaves; first += in_part) {
        const int64_t count = leaves - first < in_part ? leaves - first : in_part;
        char *part = join_leaves(&j, states + first * j.ops->state_size, count);
        if (first > 0) j.ops->merge(states, part, 1);
    }
    char *out = j.plan->kept.data[0];
    finish_tile(&j, out, states, 1);
    if (j.rescues == NEVER || stands(&j, wide_number(&j, out))) return;
    rescue r = rescue_begin();
    double found = 0;
    for (int64_t k = 0; k < leaves; k++) {
        double number;
        memcpy(&number, rescues_of(&j, states) + k * (int64_t)sizeof number, sizeof number);
        found = rescue_join(&j, number, &r);
    }
    put_number(&j, out, found);
}
