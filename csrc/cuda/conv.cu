/* conv: convolutions and their adjoints as implicit matrix products: kernels read the elements of the unfolded matrix
 * from the tensors, and zeros where a tap is in the padding.
 *
 *   forward    y[channel][position] = weight[channel][tap of a channel of x] x[tap of a channel][position]
 *   input      the same from y, with the taps that reach a phase: positions of x that are equal modulo the stride
 *   weight     weight[channel][tap of a channel] = y[channel][position] x[position][tap of a channel]
 *
 * Positions run over the batch, too. This file makes the plans and chooses kernels; conv.cuh names their files. The
 * lowering to products: Chetlur et al., "cuDNN: Efficient Primitives for Deep Learning" (2014). */
#include "conv.cuh"

#define MOST_POSITIONS ((int64_t)1 << 30) /* of one launch */
#define MOST_PHASE_ROWS 16                /* rows that are a tile anyway */

/* One launch, or several if there are more groups than rows of a grid. */
static int32_t run_correlation(const nr_call *call, const correlation &all) {
    if (all.n == 0) return NORCH_OK;
    const int64_t size = nr_library->dtypes[call->dtype].size, channel = (int64_t)all.size[0] * all.size[1];
    for (int32_t from = 0; from < all.groups; from += MOST_GROUPS) {
        const int32_t groups = all.groups - from < MOST_GROUPS ? all.groups - from : MOST_GROUPS;
        correlation c = all;
        c.source = static_cast<const char *>(all.source) + from * all.channels * channel * size;
        c.weight = static_cast<const char *>(all.weight) + from * all.weight_group * size;
        c.bias = all.bias ? static_cast<const char *>(all.bias) + (int64_t)from * all.m * size : nullptr;
        c.out = static_cast<char *>(all.out) + from * all.out_group * size;
        if (nr_conv_runs_pay(call, c, groups))
            NR_TRY(nr_conv_runs(call, c, groups));
        else if (size == 2 || all.phases.count.size > 1 || nr_conv_mma_pays(call, c, groups))
            NR_TRY(nr_conv_mma(call, c, groups));
        else
            NR_TRY(nr_conv_plain(call, c, groups));
    }
    return NORCH_OK;
}

/* Fills the fields that all correlations of a call share, except the columns of the grid and its positions in a
 * sample. */
static void set_grid(const nr_call *call, correlation *c, int64_t batch, int64_t rows, int64_t columns) {
    c->n = (int32_t)(batch * rows * columns);
    c->columns = divisor_of(columns);
    c->positions = divisor_of(rows * columns);
    c->out_wide = c->out_column == 1 && c->out_row == columns && rows * columns % 4 == 0 && c->out_plane % 4 == 0 &&
                  is_aligned(c->out, 4 * nr_library->dtypes[call->dtype].size);
    c->out_whole = c->out_plane == rows * columns;
}

static int32_t forward(const nr_call *call, const nr_conv_plan &p) {
    correlation c = {};
    const int64_t taps = p.kernel[0] * p.kernel[1];
    c.source = p.x;
    c.weight = p.weight;
    c.bias = p.bias;
    c.out = p.y;
    c.groups = (int32_t)p.groups;
    c.channels = (int32_t)p.in;
    c.m = (int32_t)p.out;
    c.k = (int32_t)(p.in * taps);
    for (int d = 0; d < 2; d++) {
        c.size[d] = (int32_t)p.size[d];
        c.step[d] = (int32_t)p.stride[d];
        c.low[d] = (int32_t)-p.padding[d];
        c.tap_step[d] = (int32_t)p.dilation[d];
    }
    c.tap_columns = divisor_of(p.kernel[1]);
    c.taps = divisor_of(taps);
    c.weight_group = p.out * p.in * taps;
    c.weight_m = p.in * taps;
    c.weight_channel = taps;
    c.weight_tap[1] = (int32_t)p.kernel[1];
    c.weight_tap[2] = 1;
    c.out_plane = p.result[0] * p.result[1];
    c.out_group = p.out * c.out_plane;
    c.phases.count = divisor_of(1);
    c.out_row = p.result[1];
    c.out_column = 1;
    set_grid(call, &c, p.batch, p.result[0], p.result[1]);
    return run_correlation(call, c);
}

/* Taps along one axis that reach positions phase + i * stride of x: the first, how many, and from one to the next;
 * where the first finds i in y, and how much further back each next one does. */
struct phase_taps {
    int64_t first, count, on, low, back;
};

static phase_taps taps_of(const nr_conv_plan &p, int d, int64_t phase) {
    phase_taps t = {0, 0, 1, 0, 0};
    for (int64_t r = 0; r < p.kernel[d]; r++) {
        const int64_t shifted = phase + p.padding[d] - r * p.dilation[d];
        if (shifted % p.stride[d] != 0) continue;
        if (t.count == 0) {
            t.first = r;
            t.low = shifted / p.stride[d];
        } else if (t.count == 1) {
            t.on = r - t.first;
            t.back = t.low - shifted / p.stride[d];
        }
        t.count++;
    }
    return t;
}

/* The distance back in y, and the number of places from there on, that the phases of axis d read. */
static int64_t reach_of(const nr_conv_plan &p, int d, int64_t *low) {
    const int64_t before = p.kernel[d] - 1 - p.padding[d];
    *low = before > 0 ? -(before / p.stride[d]) : (-before + p.stride[d] - 1) / p.stride[d];
    return (p.stride[d] - 1 + p.padding[d]) / p.stride[d] - *low + 1;
}

/* All phases as rows of one product: a cell of stride x stride positions of x reads every place of y
 * that one of them sees. It pays where channels are so few that the rows of a phase would be mostly
 * empty, or where most phases see all. */
static bool phases_pay(const nr_call *call, const nr_conv_plan &p) {
    int64_t low;
    const int64_t phases = p.stride[0] * p.stride[1], seen = reach_of(p, 0, &low) * reach_of(p, 1, &low) * phases;
    return call->dtype != NORCH_FLOAT64 && gpu_of(call)->capability >= 80 && phases > 1 && p.groups <= MOST_GROUPS &&
           (p.in * phases <= MOST_PHASE_ROWS || p.kernel[0] * p.kernel[1] * 4 >= seen * 3) && p.in * phases < 65536 &&
           p.dilation[0] == 1 && p.dilation[1] == 1 && p.kernel[0] >= p.stride[0] && p.kernel[1] >= p.stride[1] &&
           p.out >= 16;
}

static int32_t input_by_phases(const nr_call *call, const nr_conv_plan &p) {
    const int64_t taps = p.kernel[0] * p.kernel[1];
    int64_t reach[2], cells[2];
    correlation c = {};
    c.adjoint = true;
    c.source = p.y;
    c.weight = p.weight;
    c.bias = p.bias;
    c.out = p.x;
    c.groups = (int32_t)p.groups;
    c.channels = (int32_t)p.out;
    c.m = (int32_t)(p.in * p.stride[0] * p.stride[1]);
    for (int d = 0; d < 2; d++) {
        int64_t low;
        reach[d] = reach_of(p, d, &low);
        c.low[d] = (int32_t)low;
        cells[d] = (p.size[d] + p.stride[d] - 1) / p.stride[d];
        c.size[d] = (int32_t)p.result[d];
        c.step[d] = c.tap_step[d] = 1;
        c.phases.stride[d] = (int32_t)p.stride[d];
        c.phases.padding[d] = (int32_t)p.padding[d];
        c.phases.kernel[d] = (int32_t)p.kernel[d];
        c.phases.size[d] = (int32_t)p.size[d];
    }
    c.phases.count = divisor_of(p.stride[0] * p.stride[1]);
    c.phases.columns = divisor_of(p.stride[1]);
    c.tap_columns = divisor_of(reach[1]);
    c.taps = divisor_of(reach[0] * reach[1]);
    c.k = (int32_t)(p.out * reach[0] * reach[1]);
    c.weight_group = p.out * p.in * taps;
    c.weight_m = taps;
    c.weight_channel = p.in * taps;
    c.out_plane = p.size[0] * p.size[1];
    c.out_group = p.in * c.out_plane;
    c.out_row = p.size[1] * p.stride[0];
    c.out_column = p.stride[1];
    set_grid(call, &c, p.batch, cells[0], cells[1]);
    c.out_whole = false;
    return run_correlation(call, c);
}

static int32_t input(const nr_call *call, const nr_conv_plan &p) {
    if (phases_pay(call, p)) return input_by_phases(call, p);
    bool gaps = false; /* phases that no tap reaches */
    for (int d = 0; d < 2; d++)
        for (int64_t phase = 0; phase < p.stride[d] && phase < p.size[d]; phase++)
            gaps = gaps || taps_of(p, d, phase).count == 0;
    if (gaps)
        NR_TRY(nr_conv_fill(call, p.x, p.bias, p.batch * p.groups * p.in, p.groups * p.in, p.size[0] * p.size[1]));
    const int64_t taps = p.kernel[0] * p.kernel[1], size = nr_library->dtypes[call->dtype].size;
    for (int64_t row = 0; row < p.stride[0] && row < p.size[0]; row++)
        for (int64_t column = 0; column < p.stride[1] && column < p.size[1]; column++) {
            const phase_taps t[2] = {taps_of(p, 0, row), taps_of(p, 1, column)};
            if (t[0].count * t[1].count == 0) continue;
            correlation c = {};
            c.adjoint = true;
            c.source = p.y;
            c.weight = p.weight;
            c.bias = p.bias;
            c.out = static_cast<char *>(p.x) + (row * p.size[1] + column) * size;
            c.groups = (int32_t)p.groups;
            c.channels = (int32_t)p.out;
            c.m = (int32_t)p.in;
            c.k = (int32_t)(p.out * t[0].count * t[1].count);
            for (int d = 0; d < 2; d++) {
                c.size[d] = (int32_t)p.result[d];
                c.step[d] = 1;
                c.low[d] = (int32_t)t[d].low;
                c.tap_step[d] = (int32_t)-t[d].back;
            }
            c.tap_columns = divisor_of(t[1].count);
            c.taps = divisor_of(t[0].count * t[1].count);
            c.weight_group = p.out * p.in * taps;
            c.weight_m = taps;
            c.weight_channel = p.in * taps;
            c.weight_tap[0] = (int32_t)(t[0].first * p.kernel[1] + t[1].first);
            c.weight_tap[1] = (int32_t)(t[0].on * p.kernel[1]);
            c.weight_tap[2] = (int32_t)t[1].on;
            c.out_plane = p.size[0] * p.size[1];
            c.out_group = p.in * c.out_plane;
            c.phases.count = divisor_of(1);
            c.out_row = p.size[1] * p.stride[0];
            c.out_column = p.stride[1];
            set_grid(call, &c, p.batch, (p.size[0] - row + p.stride[0] - 1) / p.stride[0],
                     (p.size[1] - column + p.stride[1] - 1) / p.stride[1]);
            NR_TRY(run_correlation(call, c));
        }
    return NORCH_OK;
}

/* Calls run(part) for parts of the batch whose positions fit into one launch. */
template <class Run> static int32_t in_batches(const nr_conv_plan &p, int64_t size, const Run &run) {
    const int64_t x = p.size[0] * p.size[1], y = p.result[0] * p.result[1], positions = x > y ? x : y;
    const int64_t most = positions < MOST_POSITIONS ? MOST_POSITIONS / (positions + 1) + 1 : 1;
    for (int64_t from = 0; from < p.batch; from += most) {
        nr_conv_plan part = p;
        part.batch = p.batch - from < most ? p.batch - from : most;
        part.x = static_cast<char *>(p.x) + from * p.groups * p.in * x * size;
        part.y = static_cast<char *>(p.y) + from * p.groups * p.out * y * size;
        NR_TRY(run(part));
    }
    return NORCH_OK;
}

static int32_t weight(const nr_call *call, const nr_conv_plan &p, bool exact) {
    weight_args w = {};
    w.exact = exact;
    w.x = p.x;
    w.y = p.y;
    w.groups = (int32_t)p.groups;
    w.in = (int32_t)p.in;
    w.m = (int32_t)p.out;
    w.n = (int32_t)(p.in * p.kernel[0] * p.kernel[1]);
    w.k = (int32_t)(p.batch * p.result[0] * p.result[1]);
    for (int d = 0; d < 2; d++) {
        w.size[d] = (int32_t)p.size[d];
        w.stride[d] = (int32_t)p.stride[d];
        w.padding[d] = (int32_t)p.padding[d];
        w.dilation[d] = (int32_t)p.dilation[d];
    }
    w.columns = divisor_of(p.result[1]);
    w.positions = divisor_of(p.result[0] * p.result[1]);
    w.tap_columns = divisor_of(p.kernel[1]);
    w.taps = divisor_of(p.kernel[0] * p.kernel[1]);
    if (nr_conv_weight_runs_pay(call, w)) return nr_conv_weight_runs(call, w, p.weight);
    if (!exact && nr_conv_winograd_pays(call, w)) return nr_conv_winograd(call, w, p.weight);
    if (nr_conv_weight_mma_pays(call, w)) return nr_conv_weight_mma(call, w, p.weight);
    return nr_conv_weight_plain(call, w, p.weight);
}

static int32_t run(const nr_call *call, const nr_conv_plan &p, bool exact) {
    if (call->op == NR_CONV_WEIGHT) return weight(call, p, exact);
    return in_batches(p, nr_library->dtypes[call->dtype].size, [&](const nr_conv_plan &part) {
        return call->op == NR_CONV_FORWARD ? forward(call, part) : input(call, part);
    });
}

/* ---- float16 and bfloat16 ---------------------------------------------------------------------------------------- */

/* Whether all correlations of a call run on tensor cores, two channels as a word; the
 * conditions are those of float32. */
static bool pairs_pay(const nr_call *call, const nr_conv_plan &p) {
    const bool forward = call->op == NR_CONV_FORWARD;
    const int64_t *from = forward ? p.size : p.result, *to = forward ? p.result : p.size;
    const int64_t rows = forward ? p.out : p.in, channels = forward ? p.in : p.out;
    const int64_t terms = channels * p.kernel[0] * p.kernel[1], positions = p.batch * to[0] * to[1];
    const double words =
        (double)(p.batch * p.groups) * (double)((channels + 1) / 2) * (double)from[0] * (double)from[1];
    return call->op != NR_CONV_WEIGHT && p.groups <= MOST_GROUPS && rows >= 3 && channels > 1 && terms >= 32 &&
           positions >= 64 && (double)rows * (double)positions * (double)(terms * p.groups) >= 1e6 &&
           words < (double)NR_MOST_ELEMENTS;
}

/* n numbers from one dtype to another. */
static int32_t convert(const nr_call *call, void *to, int32_t dtype, const void *from, int32_t from_dtype, int64_t n) {
    nr_plan row = {};
    row.operands = 2;
    row.ndim = 1;
    row.numel = row.size[0] = n;
    row.data[0] = static_cast<char *>(to);
    row.data[1] = static_cast<char *>(const_cast<void *>(from));
    row.stride[0][0] = nr_library->dtypes[dtype].size;
    row.stride[1][0] = nr_library->dtypes[from_dtype].size;
    nr_call copy = *call;
    copy.family = NR_COPY;
    copy.plan = &row;
    copy.dtype = dtype;
    copy.from_dtype = from_dtype;
    return nr_cuda_copy(&copy);
}

/* Computes in float32, from copies. */
static int32_t run_widened(const nr_call *call, const nr_conv_plan &p) {
    const int64_t x = p.batch * p.groups * p.in * p.size[0] * p.size[1];
    const int64_t y = p.batch * p.groups * p.out * p.result[0] * p.result[1];
    const int64_t weight = p.groups * p.out * p.in * p.kernel[0] * p.kernel[1];
    const int64_t bias = p.bias ? p.groups * (call->op == NR_CONV_FORWARD ? p.out : p.in) : 0;
    nr_conv_plan wide = p;
    struct {
        void *const stored;
        void **wide;
        int64_t n;
        bool is_written;
    } all[] = {{p.x, &wide.x, x, call->op == NR_CONV_INPUT},
               {p.y, &wide.y, y, call->op == NR_CONV_FORWARD},
               {p.weight, &wide.weight, weight, call->op == NR_CONV_WEIGHT},
               {const_cast<void *>(p.bias), const_cast<void **>(&wide.bias), bias, false}};
    int64_t elements = 0;
    for (const auto &one : all) elements += (one.n + 3) / 4 * 4;
    const scratch copies(gpu_of(call), (size_t)elements * sizeof(float));
    if (copies.failed()) return NORCH_ERROR_MEMORY;
    float *next = reinterpret_cast<float *>(copies.memory);
    for (const auto &one : all) {
        if (!one.n) continue;
        *one.wide = next;
        if (!one.is_written) NR_TRY(convert(call, next, NORCH_FLOAT32, one.stored, call->dtype, one.n));
        next += (one.n + 3) / 4 * 4;
    }
    nr_call in_float32 = *call;
    in_float32.dtype = in_float32.from_dtype = NORCH_FLOAT32;
    in_float32.plan = &wide;
    NR_TRY(run(&in_float32, wide, true));
    for (const auto &one : all)
        if (one.is_written) NR_TRY(convert(call, one.stored, call->dtype, *one.wide, NORCH_FLOAT32, one.n));
    return NORCH_OK;
}

int32_t nr_cuda_conv(const nr_call *call) {
    const nr_conv_plan &p = *static_cast<const nr_conv_plan *>(call->plan);
    const int64_t taps = p.kernel[0] * p.kernel[1], channels = p.in > p.out ? p.in : p.out;
    const double x = (double)p.size[0] * (double)p.size[1], y = (double)p.result[0] * (double)p.result[1];
    const double most = (double)NR_MOST_ELEMENTS;
    /* 32 bits count the taps of a position, the elements of a sample, and, for the weight, all positions */
    if ((double)channels * (double)taps > most || (double)p.in * x > most || (double)p.out * y > most ||
        (double)p.padding[0] > most || (double)p.padding[1] > most || (double)p.groups > most ||
        (call->op == NR_CONV_WEIGHT && ((double)p.batch * y > most || p.groups > MOST_GROUPS)))
        return nr_library->fail(NORCH_ERROR_SHAPE,
                                "conv: %lld samples of %lld groups of %lld and %lld channels, sizes (%lld, %lld) and "
                                "(%lld, %lld) are more than a CUDA kernel counts",
                                (long long)p.batch, (long long)p.groups, (long long)p.in, (long long)p.out,
                                (long long)p.size[0], (long long)p.size[1], (long long)p.result[0],
                                (long long)p.result[1]);
    if (nr_library->dtypes[call->dtype].size == 2 && !pairs_pay(call, p)) return run_widened(call, p);
    return run(call, p, false);
}
