/* pointwise: calls the kernel of the operation on the rows of a loop nest, which are its innermost loops.
 *
 *   long rows    row 0 [ CHUNK | CHUNK | rest ]       short rows   [ row 0 ][ row 1 ][ row 2 ] | [ row 3 ][ row 4 ] ...
 *                row 1 [ CHUNK | CHUNK | rest ]
 *                a piece is a chunk                                a piece is a row; a chunk has about CHUNK elements
 *
 * A thread takes a chunk; only shapes and strides decide the chunks, not the number of threads. The kernel is called
 * for each piece; pointwise_loops.h has its loops. Short rows, with a row that is broadcast to them such as a bias, are
 * first joined into long rows; those of a few elements that lie apart are turned to columns. The plan chooses the
 * innermost loop (core/plan.c); results of transposed inputs have the layout of the inputs (ops/pointwise.c), so that
 * it is contiguous. Operands of narrow dtypes are widened for the kernel, and its results narrowed, piece by piece.
 * Strip mining: Allen and Kennedy, "Optimizing Compilers for Modern Architectures" (2001). */
#include "pointwise.h"
#include "stream.h"

#include <string.h>

#define CHUNK 16384
#define WORTH_THREADS (4 * CHUNK)
#define BUFFERED 1024 /* elements of short rows that are joined */
#define FEW 8         /* longest row that is turned to columns where rows cannot be joined */
#define ACROSS 1024   /* rows of a column: they stay in the first cache */
#define SHORT 32      /* longest row for which repeating a scalar costs less than a kernel call for each row */

nr_row_filler *nr_fill_rows;

/* How an operand's short rows can be joined into one: they follow one another in memory; or each is one scalar, which
 * is repeated; or all are the same row. */
typedef enum row_kind { FOLLOWS, ONE_NUMBER, THE_SAME, OTHERWISE } row_kind;

typedef struct job {
    const nr_plan *plan;
    nr_pointwise_kernel kernel;
    int32_t op, dtype;
    bool streams;          /* results bypass the cache (stream.h) */
    int64_t piece, pieces; /* elements of a piece; pieces of a row */
    int64_t units;         /* pieces in all */
    int64_t units_a_chunk;
    int64_t together;               /* short rows that are joined for one kernel call */
    row_kind kind[NR_MAX_OPERANDS]; /* how those of each operand are joined */
    int64_t size[NR_MAX_OPERANDS];  /* bytes of an element of each operand */
} job;

/* Runs the kernel on n elements of a narrow dtype. Scalars in the plan are wide already. */
static void run_narrow(const job *j, int64_t n, char *const *from, const int64_t *stride) {
    const nr_op_row *row = &nr_ops[j->op];
    uint32_t wide[NR_MAX_OPERANDS][NR_PIECE];
    char *data[NR_MAX_OPERANDS];
    int64_t step[NR_MAX_OPERANDS];
    const bool narrows = row->result != NR_TRUTH;
    for (int64_t first = 0; first < n; first += NR_PIECE) {
        const int64_t count = n - first < NR_PIECE ? n - first : NR_PIECE;
        for (int o = 0; o < j->plan->operands; o++) {
            data[o] = from[o] + first * stride[o];
            step[o] = stride[o];
            bool as_it_is = o == 0 ? !narrows : (o == 1 && row->form == NR_CHOICE) || nr_in_plan(j->plan, o);
            if (as_it_is) continue;
            step[o] = o > 0 && stride[o] == 0 ? 0 : NR_WIDE;
            if (o > 0) nr_widen[j->dtype]((char *)wide[o], NR_WIDE, data[o], stride[o], step[o] ? count : 1);
            data[o] = (char *)wide[o];
        }
        j->kernel(count, data, step, false);
        if (narrows) nr_narrow[j->dtype](from[0] + first * stride[0], stride[0], data[0], NR_WIDE, count);
    }
}

static void run(const job *j, int64_t n, char *const *data, const int64_t *stride) {
    if (nr_is_narrow(j->dtype))
        run_narrow(j, n, data, stride);
    else
        j->kernel(n, data, stride, j->streams);
    if (j->streams) nr_stream_end();
}

/*   x     r0 r0 r0  |  r1 r1 r1  |  r2 ...        x       r0 r0 r0 r1 r1 r1  |  r2 ...
 *   column    c0    |     c1     |  c2 ...        filled  c0 c0 c0 c1 c1 c1  |  c2 ... */
static void run_together(const job *j, int64_t rows, int64_t n, char **row, const int64_t *stride) {
    const int64_t (*step)[NORCH_MAX_DIMS] = j->plan->stride;
    char buffer[NR_MAX_OPERANDS][BUFFERED * sizeof(int64_t) + NR_FILL_BYTES], *data[NR_MAX_OPERANDS];
    int64_t dense[NR_MAX_OPERANDS];
    bool begun = false;
    for (int64_t together; rows > 0; rows -= together, begun = true) {
        together = rows < j->together ? rows : j->together;
        for (int o = 0; o < j->plan->operands; o++) {
            data[o] = j->kind[o] == FOLLOWS ? row[o] : buffer[o];
            dense[o] = j->kind[o] == FOLLOWS ? stride[o] : j->size[o];
            if (j->kind[o] == ONE_NUMBER) nr_fill_rows(buffer[o], row[o], step[o][1], n, together, j->size[o]);
            if (j->kind[o] == THE_SAME && !begun) {
                const size_t all = (size_t)(together * n * j->size[o]);
                size_t have = (size_t)(n * j->size[o]);
                memcpy(buffer[o], row[o], have);
                for (size_t more; have < all; have += more) { /* twice as much each time */
                    more = have < all - have ? have : all - have;
                    memcpy(buffer[o] + have, buffer[o], more);
                }
            }
            row[o] += together * step[o][1];
        }
        run(j, together * n, data, dense);
    }
}

/* Runs `rows` rows of n elements along the second loop, and advances `row`. */
static void run_rows(const job *j, int64_t rows, int64_t n, char **row, const int64_t *stride) {
    const int64_t (*step)[NORCH_MAX_DIMS] = j->plan->stride;
    const int operands = j->plan->operands;
    if (j->together > 1) {
        run_together(j, rows, n, row, stride);
        return;
    }
    for (; rows > 0; rows--) {
        run(j, n, row, stride);
        for (int o = 0; o < operands; o++) row[o] += step[o][1];
    }
}

static void run_units(const job *j, int64_t unit, int64_t end) {
    const nr_plan *plan = j->plan;
    int64_t stride[NR_MAX_OPERANDS], position[NORCH_MAX_DIMS];
    char *row[NR_MAX_OPERANDS], *data[NR_MAX_OPERANDS];
    int64_t piece = unit % j->pieces, rest = unit / j->pieces;
    for (int o = 0; o < plan->operands; o++) {
        stride[o] = plan->stride[o][0];
        row[o] = plan->data[o];
    }
    for (int32_t d = 1; d < plan->ndim; d++) {
        position[d] = rest % plan->size[d];
        rest /= plan->size[d];
        for (int o = 0; o < plan->operands; o++) row[o] += position[d] * plan->stride[o][d];
    }
    for (; unit < end; unit++) {
        int64_t from = piece * j->piece;
        int64_t n = plan->size[0] - from < j->piece ? plan->size[0] - from : j->piece;
        if (j->pieces == 1 && plan->ndim > 1) { /* whole rows: as far as the second loop goes */
            int64_t rows = plan->size[1] - position[1] < end - unit ? plan->size[1] - position[1] : end - unit;
            run_rows(j, rows - 1, n, row, stride);
            position[1] += rows - 1;
            unit += rows - 1;
        }
        for (int o = 0; o < plan->operands; o++) data[o] = row[o] + from * stride[o];
        run(j, n, data, stride);
        if (++piece < j->pieces) continue;
        piece = 0;
        for (int32_t d = 1; d < plan->ndim; d++) { /* the next row: an odometer over the outer loops */
            for (int o = 0; o < plan->operands; o++) row[o] += plan->stride[o][d];
            if (++position[d] < plan->size[d]) break;
            for (int o = 0; o < plan->operands; o++) row[o] -= plan->size[d] * plan->stride[o][d];
            position[d] = 0;
        }
    }
}

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    int64_t from = chunk * j->units_a_chunk;
    run_units(j, from, from + j->units_a_chunk < j->units ? from + j->units_a_chunk : j->units);
}

/* Whether results should bypass the cache. Formulas that integers have too are cheap, so that memory limits them; those
 * for floats only, such as exp, are limited by arithmetic. If an input shares the result's memory, its lines are read
 * anyway. */
static bool bypasses_cache(const nr_call *call, const nr_plan *plan) {
    const nr_op_row *row = &nr_ops[call->op];
    const int64_t size = row->result == NR_TRUTH ? 1 : nr_size_of(call->dtype);
    if (nr_is_complex(call->dtype)) return false;
    if (row->domain == NR_DOMAIN_F || nr_is_narrow(call->dtype) || plan->stride[0][0] != size) return false;
    for (int o = 1; o < plan->operands; o++)
        if (plan->data[o] == plan->data[0]) return false;
    int64_t apart = 0;
    for (int32_t d = 1; d < plan->ndim; d++) apart |= plan->stride[0][d];
    return nr_streams(plan->data[0], plan->numel * size, apart);
}

static int64_t size_of(const nr_call *call, int o) {
    const nr_op_row *row = &nr_ops[call->op];
    const bool truths = o == 0 ? row->result == NR_TRUTH : o == 1 && row->form == NR_CHOICE;
    return truths ? 1 : nr_size_of(call->dtype);
}

static row_kind kind_of(const nr_plan *plan, int o, int64_t size) {
    const int64_t *step = plan->stride[o];
    if (step[1] == step[0] * plan->size[0]) return FOLLOWS;
    if (step[0] == 0 && o > 0) return ONE_NUMBER;
    return step[1] == 0 && step[0] == size && o > 0 ? THE_SAME : OTHERWISE;
}

/* Decides how many rows to join: more than one if they are short and can be. */
static void find_together(const nr_call *call, job *j) {
    const nr_plan *plan = j->plan;
    j->together = 1;
    if (plan->ndim < 2 || plan->size[0] > SHORT || nr_is_complex(call->dtype)) return;
    for (int o = 0; o < plan->operands; o++) {
        j->size[o] = size_of(call, o);
        j->kind[o] = kind_of(plan, o, j->size[o]);
        if (j->kind[o] == OTHERWISE) return;
    }
    j->together = BUFFERED / plan->size[0];
}

/* The part of a nest with `rows` rows of its second loop, from row `first` on. */
static void take_rows(nr_plan *part, const nr_plan *plan, int64_t first, int64_t rows) {
    *part = *plan;
    part->numel = plan->numel / plan->size[1] * rows;
    part->size[1] = rows;
    for (int o = 0; o < plan->operands; o++)
        part->data[o] = nr_in_plan(plan, o) ? (char *)&part->value[o] : plan->data[o] + first * plan->stride[o][1];
}

/* Splits the second loop into runs of ACROSS rows, which become the innermost loop: rows of a few elements that cannot
 * be joined would be a kernel call each.
 *
 *   x[:, 1:4]    . a0 a1 a2 .      rows  a0 a1 a2 | b0 b1 b2 | ...      columns  a0 b0 c0 ... | a1 b1 c1 ... | ...
 *                . b0 b1 b2 . */
static void turn(nr_plan *plan) {
    const int64_t run = plan->size[1] < ACROSS ? plan->size[1] : ACROSS;
    for (int32_t d = plan->ndim; d > 2; d--) {
        plan->size[d] = plan->size[d - 1];
        for (int o = 0; o < plan->operands; o++) plan->stride[o][d] = plan->stride[o][d - 1];
    }
    plan->ndim++;
    plan->size[2] = plan->size[1] / run;
    plan->size[1] = plan->size[0];
    plan->size[0] = run;
    for (int o = 0; o < plan->operands; o++) {
        int64_t *stride = plan->stride[o], column = stride[0];
        stride[0] = stride[1];
        stride[1] = column;
        stride[2] = stride[0] * run;
    }
}

static void run_nest(const nr_call *call, const nr_plan *plan) {
    if (plan->ndim == 1 && plan->numel < WORTH_THREADS && !nr_is_narrow(call->dtype)) { /* nothing to cut */
        int64_t stride[NR_MAX_OPERANDS];
        for (int o = 0; o < plan->operands; o++) stride[o] = plan->stride[o][0];
        ((nr_pointwise_kernel)call->kernel)(plan->numel, plan->data, stride, false);
        return;
    }
    job j = {.plan = plan, .kernel = (nr_pointwise_kernel)call->kernel, .op = call->op, .dtype = call->dtype};
    find_together(call, &j);
    if (j.together == 1 && plan->ndim > 1 && plan->ndim < NORCH_MAX_DIMS && plan->size[0] <= FEW &&
        plan->size[1] > 2 * FEW) {
        const int64_t rows = plan->size[1] < ACROSS ? plan->size[1] : plan->size[1] / ACROSS * ACROSS;
        nr_plan part;
        take_rows(&part, plan, 0, rows);
        turn(&part);
        run_nest(call, &part);
        take_rows(&part, plan, rows, plan->size[1] - rows);
        if (part.numel) run_nest(call, &part);
        return;
    }
    j.streams = bypasses_cache(call, plan);
    j.piece = plan->size[0] < CHUNK ? plan->size[0] : CHUNK;
    j.pieces = (plan->size[0] + j.piece - 1) / j.piece;
    j.units = plan->numel / plan->size[0] * j.pieces;
    j.units_a_chunk = CHUNK / j.piece > 1 ? CHUNK / j.piece : 1;
    if (plan->numel < WORTH_THREADS)
        run_units(&j, 0, j.units);
    else
        nr_parallel((j.units + j.units_a_chunk - 1) / j.units_a_chunk, run_chunk, &j);
}

/* ---- short rows ----------------------------------------------------------------------------------------------- */

/* Whether an operand is one row that is broadcast to all rows, such as a bias. It is repeated, and as many rows are
 * joined:
 *
 *   x     r0 r0 r0  |  r1 r1 r1  |  r2 ...        x     r0 r0 r0 r1 r1 r1  |  r2 ...
 *   bias  b0 b1 b2  |  b0 b1 b2  |  b0 ...        bias  b0 b1 b2 b0 b1 b2  |  b0 ... */
static bool is_broadcast_row(const nr_call *call, const nr_plan *plan, int o) {
    if (o == 0 || nr_in_plan(plan, o) || plan->stride[o][0] != size_of(call, o)) return false;
    for (int32_t d = 1; d < plan->ndim; d++)
        if (plan->stride[o][d] != 0) return false;
    return true;
}

static int64_t rows_in_one(const nr_call *call, const nr_plan *plan) {
    if (plan->ndim < 2 || plan->size[0] > BUFFERED / 2 || plan->numel < 4 * BUFFERED || nr_is_complex(call->dtype))
        return 1;
    for (int o = 0; o < plan->operands; o++) {
        const bool follows = plan->stride[o][1] == plan->stride[o][0] * plan->size[0];
        if (!follows && !is_broadcast_row(call, plan, o)) return 1;
    }
    const int64_t times = BUFFERED / plan->size[0];
    return times < plan->size[1] ? times : plan->size[1];
}

/* Kernels that only search: they set *data[0] to 1 if an element is 0. (x - 1) & ~x has the sign bit set only for 0. */
#define FIND_ZERO(T)                                                                                                  \
    static void zero_##T(int64_t n, char *const *data, const int64_t *stride, bool streams) {                         \
        T signs = 0;                                                                                                  \
        (void)streams;                                                                                                \
        if (stride[1] == sizeof(T)) {                                                                                 \
            const T *x = (const T *)data[1];                                                                          \
            for (int64_t i = 0; i < n; i++) signs |= (T)((T)(x[i] - 1) & ~x[i]);                                      \
        } else {                                                                                                      \
            const char *at = data[1];                                                                                 \
            for (int64_t i = 0; i < n; i++, at += stride[1]) signs |= (T)((T)(*(const T *)at - 1) & ~*(const T *)at); \
        }                                                                                                             \
        if (signs >> (8 * sizeof(T) - 1)) __atomic_store_n(data[0], 1, __ATOMIC_RELAXED);                             \
    }
FIND_ZERO(uint8_t)
FIND_ZERO(uint16_t)
FIND_ZERO(uint32_t)
FIND_ZERO(uint64_t)

/* Fails if an integer divisor is 0; reads each divisor once, although broadcast. */
static int32_t check_divisor(const nr_call *call, const nr_plan *plan) {
    static const nr_pointwise_kernel find[] = {zero_uint8_t, zero_uint16_t, zero_uint32_t, zero_uint64_t};
    const int32_t dtype = nr_in_plan(plan, 2) ? nr_wide(call->dtype) : call->dtype;
    char found = 0;
    nr_plan scan = {.operands = 2, .numel = 1, .size = {1}, .data = {&found, plan->data[2]}};
    for (int32_t d = 0; d < plan->ndim; d++) {
        if (plan->stride[2][d] == 0) continue;
        scan.stride[1][scan.ndim] = plan->stride[2][d];
        scan.size[scan.ndim++] = plan->size[d];
        scan.numel *= plan->size[d];
    }
    if (scan.ndim == 0) scan.ndim = 1;
    nr_call check = *call;
    check.dtype = nr_wide(dtype); /* the elements are not converted */
    check.kernel = (nr_kernel)find[__builtin_ctz((unsigned)nr_size_of(dtype))];
    run_nest(&check, &scan);
    if (!found) return NORCH_OK;
    return nr_fail(NORCH_ERROR_ZERO_DIVISION, "%s%s: integer division by zero", nr_ops[call->op].name,
                   call->in_place ? "_" : "");
}

int32_t nr_run_pointwise(const nr_call *call) {
    const nr_plan *plan = call->plan;
    if (plan->numel == 0) return NORCH_OK;
    if (nr_op_divides(call->op) && !nr_is_float(call->dtype)) NR_TRY(check_divisor(call, plan));
    const int64_t times = rows_in_one(call, plan);
    if (times == 1) {
        run_nest(call, plan);
        return NORCH_OK;
    }
    const int64_t whole = plan->size[1] / times * times;
    nr_plan wide, rest;
    take_rows(&wide, plan, 0, whole);
    take_rows(&rest, plan, whole, plan->size[1] - whole);
    char buffer[NR_MAX_OPERANDS][BUFFERED * sizeof(int64_t)];
    for (int o = 0; o < plan->operands; o++) {
        if (!nr_in_plan(plan, o) && plan->stride[o][1] != plan->stride[o][0] * plan->size[0]) {
            const size_t row = (size_t)(plan->stride[o][0] * plan->size[0]);
            for (int64_t i = 0; i < times; i++) memcpy(buffer[o] + (size_t)i * row, plan->data[o], row);
            wide.data[o] = buffer[o];
        }
        wide.stride[o][1] *= times;
    }
    wide.size[0] *= times;
    wide.size[1] /= times;
    run_nest(call, &wide);
    if (rest.numel > 0) run_nest(call, &rest);
    return NORCH_OK;
}
