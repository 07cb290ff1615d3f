/* copy: moves and converts elements between any two strided layouts.
 *
 * The nest is cut into blocks over two of its dimensions, each done by one call of a two-dimensional kernel: rows in
 * the order of memory, or squares if the source is dense along another dimension than the destination (a transpose).
 * Blocks depend on the shape alone and are what threads share.
 *
 *   rows    from  a b c d ...       to  a b c d ...      memcpy, or a loop that converts (copy_pairs.h)
 *   turned  from  a b c d | ...     to  a e i m | ...    64 x 64 elements at a time, and of these a cache line a side:
 *                 e f g h |             b f j n |        what lies apart is read once, line by line, shuffled in
 *                 i j k l |             c g k o |        registers, and written line by line (copy_moves.h)
 *                 m n o p |             d h l p |
 *
 * Squares in the cache: Frigo, Leiserson, Prokop and Ramachandran, "Cache-Oblivious Algorithms" (1999), section 3, here
 * with one fixed size. */
#include <string.h>

#include "../core/convert.h"
#include "../core/dtype.h"
#include "cpu.h"
#include "stream.h"

#define BLOCK 16384   /* elements a block of rows has, at most */
#define SQUARE 64     /* side of a block where the source runs across */
#define PATTERN 8192  /* bytes that a fill repeats */
#define CHUNK 131072  /* elements a thread takes at a time */
#define SHORT 64      /* bytes of a row that are copied without a call of memcpy */
#define BUFFERED 1024 /* elements of a row that go past the cache together */

nr_conversion nr_widen[NR_DTYPE_COUNT], nr_narrow[NR_DTYPE_COUNT];
nr_mover nr_conversions[NR_DTYPE_COUNT][NR_DTYPE_COUNT];

/* Transposes a square of elements, one cache line a side: by shuffles, or in plain loops. */
static inline void flip_1(uint8_t *restrict to, const uint8_t *restrict from) {
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) to[64 * i + j] = from[64 * j + i];
}

static inline void flip_2(uint16_t *restrict to, const uint16_t *restrict from) {
    for (int i = 0; i < 32; i++)
        for (int j = 0; j < 32; j++) to[32 * i + j] = from[32 * j + i];
}

typedef uint32_t four __attribute__((vector_size(16)));
typedef uint64_t two __attribute__((vector_size(16)));

static inline void flip_4(uint32_t *restrict to, const uint32_t *restrict from) {
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 16; j += 4) {
            four row[4], half[4];
            for (int k = 0; k < 4; k++) memcpy(&row[k], from + 16 * (j + k) + i, sizeof(four));
            half[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
            half[1] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
            half[2] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
            half[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
            for (int k = 0; k < 4; k += 2) {
                row[k] = __builtin_shufflevector(half[k], half[k + 1], 0, 1, 4, 5);
                row[k + 1] = __builtin_shufflevector(half[k], half[k + 1], 2, 3, 6, 7);
            }
            for (int k = 0; k < 4; k++) memcpy(to + 16 * (i + k) + j, &row[k], sizeof(four));
        }
}

static inline void flip_8(uint64_t *restrict to, const uint64_t *restrict from) {
    for (int i = 0; i < 8; i += 2)
        for (int j = 0; j < 8; j += 2) {
            two a, b;
            memcpy(&a, from + 8 * j + i, sizeof a);
            memcpy(&b, from + 8 * j + 8 + i, sizeof b);
            const two upper = __builtin_shufflevector(a, b, 0, 2), lower = __builtin_shufflevector(a, b, 1, 3);
            memcpy(to + 8 * i + j, &upper, sizeof upper);
            memcpy(to + 8 * i + 8 + j, &lower, sizeof lower);
        }
}

#define WORD uint8_t
#define SIZE 1
#include "copy_moves.h"
#define WORD uint16_t
#define SIZE 2
#include "copy_moves.h"
#define WORD uint32_t
#define SIZE 4
#include "copy_moves.h"
#define WORD uint64_t
#define SIZE 8
#include "copy_moves.h"

/* Dense rows of at most SHORT bytes, in pieces of which the last may overlap the one before. */
static void move_short(char *to, const int64_t *to_step, const char *from, const int64_t *from_step, int64_t n0,
                       int64_t n1) {
    const size_t n = (size_t)(n0 * from_step[0]);
    for (int64_t j = 0; j < n1; j++, to += to_step[1], from += from_step[1]) {
        if (n >= 16) {
            for (size_t i = 0; i < n - 16; i += 16) memcpy(to + i, from + i, 16);
            memcpy(to + n - 16, from + n - 16, 16);
        } else if (n >= 8) {
            memcpy(to, from, 8);
            memcpy(to + n - 8, from + n - 8, 8);
        } else if (n >= 4) {
            memcpy(to, from, 4);
            memcpy(to + n - 4, from + n - 4, 4);
        } else {
            for (size_t i = 0; i < n; i++) to[i] = from[i];
        }
    }
}

typedef enum move_kind { MOVE, FILL, TURN } move_kind;

static nr_mover move_of(move_kind kind, int64_t size) {
    static const nr_mover moves[3][4] = {
        {move_1, move_2, move_4, move_8}, {fill_1, fill_2, fill_4, fill_8}, {turn_1, turn_2, turn_4, turn_8}};
    return moves[kind][__builtin_ctzll((unsigned long long)size)];
}

/* The blocks of a copy; dimensions 0 and 1 are those of the kernel. */
typedef struct job {
    nr_mover move; /* NULL: dense rows of `element` bytes an element, */
    bool narrow;   /* or a conversion from or to a narrow dtype */
    bool turned, streams;
    int64_t element;
    int32_t dtype, from_dtype;
    int32_t ndim;
    int64_t size[NORCH_MAX_DIMS], to_step[NORCH_MAX_DIMS], from_step[NORCH_MAX_DIMS];
    int64_t block[NORCH_MAX_DIMS], count[NORCH_MAX_DIMS];
    int64_t blocks, per_chunk;
    char *to;
    const char *from;
} job;

/* Converts a row to or from a narrow dtype through its wide dtype, in pieces that stay in the cache. */
static void convert_row(const job *j, char *to, const char *from, int64_t n) {
    const int32_t wide_from = nr_wide(j->from_dtype), wide_to = nr_wide(j->dtype);
    const int64_t wide_step[2] = {NR_WIDE, 0};
    uint32_t widened[NR_PIECE], converted[NR_PIECE];
    for (int64_t count; n > 0; n -= count, to += count * j->to_step[0], from += count * j->from_step[0]) {
        count = n < NR_PIECE ? n : NR_PIECE;
        const char *x = from;
        int64_t step[2] = {j->from_step[0], 0};
        if (wide_from != j->from_dtype) {
            bool last = wide_from == j->dtype;
            nr_widen[j->from_dtype](last ? to : (char *)widened, last ? j->to_step[0] : NR_WIDE, x, step[0], count);
            if (last) continue;
            x = (const char *)widened;
            step[0] = NR_WIDE;
        }
        if (wide_to == j->dtype) {
            nr_conversions[wide_from][wide_to](to, j->to_step, x, step, count, 1);
            continue;
        }
        if (wide_from != wide_to) {
            nr_conversions[wide_from][wide_to]((char *)converted, wide_step, x, step, count, 1);
            x = (const char *)converted;
            step[0] = NR_WIDE;
        }
        nr_narrow[j->dtype](to, j->to_step[0], x, step[0], count);
    }
}

/* Copies a block to a destination that bypasses the cache, through a buffer: part of a row, or a whole square, at a
 * time. */
static void stream_block(const job *j, int64_t n0, int64_t n1, char *to, const char *from) {
    char buffer[SQUARE * SQUARE * sizeof(int64_t)];
    const int64_t wide = j->turned ? SQUARE : BUFFERED, high = j->turned ? SQUARE : 1;
    const int64_t buffer_step[2] = {j->element, wide * j->element};
    for (int64_t row = 0; row < n1; row += high)
        for (int64_t first = 0; first < n0; first += wide) {
            const int64_t width = n0 - first < wide ? n0 - first : wide, rows = n1 - row < high ? n1 - row : high;
            const char *x = from + row * j->from_step[1] + first * j->from_step[0];
            char *y = to + row * j->to_step[1] + first * j->element;
            if (j->move) j->move(buffer, buffer_step, x, j->from_step, width, rows);
            for (int64_t i = 0; i < rows; i++)
                nr_stream(y + i * j->to_step[1], j->move ? buffer + i * buffer_step[1] : x,
                          (size_t)(width * j->element));
        }
    nr_stream_end();
}

/* memcpy() is slow (on Zen 4 at a twelfth of the speed) if the destination is less than 16 bytes behind the source
 * modulo a page, except for short copies: so long ones are split. */
static void copy_row(char *to, const char *from, size_t n) {
    const size_t behind = ((uintptr_t)to - (uintptr_t)from) % 4096, most = behind > 0 && behind < 16 ? 2048 : n;
    for (size_t bytes; n > 0; n -= bytes, to += bytes, from += bytes) {
        bytes = n < most ? n : most;
        memcpy(to, from, bytes);
    }
}

static void run_block(const job *j, const int64_t *at, char *to, const char *from) {
    int64_t n[2];
    for (int d = 0; d < 2; d++) {
        int64_t left = j->size[d] - at[d] * j->block[d];
        n[d] = left < j->block[d] ? left : j->block[d];
    }
    if (j->streams) {
        stream_block(j, n[0], n[1], to, from);
        return;
    }
    if (j->move) {
        j->move(to, j->to_step, from, j->from_step, n[0], n[1]);
        return;
    }
    for (int64_t i = 0; i < n[1]; i++, to += j->to_step[1], from += j->from_step[1])
        if (j->narrow)
            convert_row(j, to, from, n[0]);
        else
            copy_row(to, from, (size_t)(n[0] * j->element));
}

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    int64_t at[NORCH_MAX_DIMS], left = chunk * j->per_chunk;
    int64_t last = left + j->per_chunk < j->blocks ? left + j->per_chunk : j->blocks;
    int64_t count = last - left;
    char *to = j->to;
    const char *from = j->from;
    for (int32_t d = 0; d < j->ndim; d++) {
        at[d] = left % j->count[d];
        left /= j->count[d];
        to += at[d] * j->block[d] * j->to_step[d];
        from += at[d] * j->block[d] * j->from_step[d];
    }
    for (;;) {
        run_block(j, at, to, from);
        if (--count == 0) return;
        for (int32_t d = 0; d < j->ndim; d++) {
            int64_t steps = ++at[d] < j->count[d] ? 1 : 1 - j->count[d]; /* on, or back to the start */
            to += steps * j->block[d] * j->to_step[d];
            from += steps * j->block[d] * j->from_step[d];
            if (steps == 1) break;
            at[d] = 0;
        }
    }
}

static void swap_dims(job *j, int32_t a, int32_t b) {
    int64_t *rows[] = {j->size, j->to_step, j->from_step};
    for (int r = 0; r < 3; r++) {
        int64_t keep = rows[r][a];
        rows[r][a] = rows[r][b];
        rows[r][b] = keep;
    }
}

/* Reverses dimensions, except the first of the destination, along which the source steps backward: the order in which
 * rows are copied does not matter. Where the source steps back by one element, squares can then be transposed. */
static void step_forward(job *j) {
    for (int32_t d = 1; d < j->ndim; d++)
        if (j->from_step[d] < 0) {
            j->to += (j->size[d] - 1) * j->to_step[d];
            j->from += (j->size[d] - 1) * j->from_step[d];
            j->to_step[d] = -j->to_step[d];
            j->from_step[d] = -j->from_step[d];
        }
}

/* The dimension along which the source has the smallest stride. */
static int32_t across(const job *j) {
    int32_t best = 0;
    for (int32_t d = 1; d < j->ndim; d++) {
        int64_t step = j->from_step[d] < 0 ? -j->from_step[d] : j->from_step[d];
        int64_t least = j->from_step[best] < 0 ? -j->from_step[best] : j->from_step[best];
        if (step && step < least) best = d;
    }
    return best;
}

/* Whether the source is one broadcast element. */
static bool one_number(const job *j) {
    for (int32_t d = 0; d < j->ndim; d++)
        if (j->size[d] > 1 && j->from_step[d] != 0) return false;
    return true;
}

static void convert_number(const job *j, char *to) {
    if (nr_is_narrow(j->dtype) || nr_is_narrow(j->from_dtype)) {
        convert_row(j, to, j->from, 1);
    } else {
        const int64_t step[2] = {0, 0};
        nr_conversions[j->from_dtype][j->dtype](to, step, j->from, step, 1, 1);
    }
}

/* How the rows of a block are moved: converted, or by the element's size and the steps. */
static void choose_move(job *j) {
    const bool converts = j->dtype != j->from_dtype;
    const int64_t element = j->element;
    j->narrow = converts && (nr_is_narrow(j->dtype) || nr_is_narrow(j->from_dtype));
    if (converts)
        j->move = nr_conversions[j->from_dtype][j->dtype]; /* none where one is narrow */
    else if (j->to_step[0] != element)
        j->move = move_of(MOVE, element);
    else if (j->turned)
        j->move = move_of(j->from_step[1] == element ? TURN : MOVE, element);
    else if (j->from_step[0] == 0)
        j->move = move_of(FILL, element);
    else if (j->from_step[0] == element)
        j->move = j->size[0] * element <= SHORT ? move_short : NULL;
    else
        j->move = move_of(MOVE, element);
}

/* Cuts the nest into blocks of the two innermost dimensions, squares for a transposing copy, and these into chunks. */
static void cut_into_blocks(job *j) {
    for (int32_t d = 2; d < j->ndim; d++) j->block[d] = 1;
    j->block[0] = j->turned ? SQUARE : BLOCK;
    if (j->block[0] > j->size[0]) j->block[0] = j->size[0];
    j->block[1] = j->turned ? SQUARE : BLOCK / j->block[0];
    if (j->block[1] > j->size[1]) j->block[1] = j->size[1];
    j->blocks = 1;
    for (int32_t d = 0; d < j->ndim; d++) {
        j->count[d] = (j->size[d] + j->block[d] - 1) / j->block[d];
        j->blocks *= j->count[d];
    }
    j->per_chunk = CHUNK / (j->block[0] * j->block[1]);
    if (j->per_chunk < 1) j->per_chunk = 1;
}

int32_t nr_run_copy(const nr_call *call) {
    const nr_plan *plan = call->plan;
    if (plan->numel == 0) return NORCH_OK;
    const int64_t element = nr_size_of(call->dtype);
    const bool dense = plan->ndim == 1 && plan->stride[0][0] == element && plan->stride[1][0] == element;
    if (dense && call->dtype == call->from_dtype && plan->numel < BLOCK) { /* takes less time than to plan it */
        memcpy(plan->data[0], plan->data[1], (size_t)(plan->numel * element));
        return NORCH_OK;
    }
    job j = {.ndim = plan->ndim, .to = plan->data[0], .from = plan->data[1], .element = element};
    j.dtype = call->dtype;
    j.from_dtype = call->from_dtype;
    for (int32_t d = 0; d < plan->ndim; d++) {
        j.size[d] = plan->size[d];
        j.to_step[d] = plan->stride[0][d];
        j.from_step[d] = plan->stride[1][d];
    }
    for (; j.ndim < 2; j.ndim++) j.size[j.ndim] = 1;
    int64_t number;
    if (j.from_dtype != j.dtype && one_number(&j)) {
        convert_number(&j, (char *)&number);
        j.from = (const char *)&number;
        j.from_dtype = j.dtype;
    }
    step_forward(&j);
    const int32_t turned = across(&j);
    if (turned > 1) swap_dims(&j, 1, turned);
    j.turned = turned != 0;

    choose_move(&j);
    int64_t apart = 0;
    for (int32_t d = 1; d < j.ndim; d++) apart |= j.to_step[d];
    j.streams =
        !j.narrow && j.to_step[0] == element && j.from_step[0] != 0 && nr_streams(j.to, plan->numel * element, apart);
    cut_into_blocks(&j);
    nr_parallel((j.blocks + j.per_chunk - 1) / j.per_chunk, run_chunk, &j);
    return NORCH_OK;
}
