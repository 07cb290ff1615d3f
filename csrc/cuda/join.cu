/* join: cat and stack of many tensors in one launch: blocks are dealt to the pieces by their number of words, the
 * widest that rows and addresses are multiples of.
 *
 *   result   [ a a a b b c ]     a piece is rows of the result, and of its tensor, some bytes apart
 *            [ a a a b b c ]     block: WORDS words a thread, a block's width apart: each warp moves neighbours
 *
 * Many tensors a launch, as in optim.cu. */
#include "../families/join.h"
#include "cuda.cuh"

#define WORDS 4 /* words that a thread takes */
#define A_BLOCK (NR_BLOCK * WORDS)

struct join_piece {
    char *to;
    const char *from;
    int64_t to_step, from_step;
    uint32_t words, word; /* word: its bytes */
    divisor in_row;       /* words */
};
struct join_args {
    join_piece pieces[NR_JOIN_PIECES];
    uint32_t first_block[NR_JOIN_PIECES + 1];
};

template <class W> DEVICE void move_words(const join_piece &piece, uint32_t first) {
    W words[WORDS];
    int64_t to[WORDS];
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++) {
        const uint32_t i = first + k * NR_BLOCK;
        if (i >= piece.words) continue;
        const uint32_t row = quotient(i, piece.in_row);
        const int64_t column = (int64_t)(i - row * piece.in_row.size) * (int64_t)sizeof(W);
        to[k] = row * piece.to_step + column;
        words[k] = *reinterpret_cast<const W *>(piece.from + row * piece.from_step + column);
    }
#pragma unroll
    for (uint32_t k = 0; k < WORDS; k++)
        if (first + k * NR_BLOCK < piece.words) *reinterpret_cast<W *>(piece.to + to[k]) = words[k];
}

static __global__ void __launch_bounds__(NR_BLOCK) join_pieces(const __grid_constant__ join_args a) {
    int at = 0;
    while (blockIdx.x >= a.first_block[at + 1]) at++;
    const join_piece &piece = a.pieces[at];
    const uint32_t first = (blockIdx.x - a.first_block[at]) * A_BLOCK + threadIdx.x;
    switch (piece.word) {
    case 1: return move_words<uint8_t>(piece, first);
    case 2: return move_words<uint16_t>(piece, first);
    case 4: return move_words<uint32_t>(piece, first);
    case 8: return move_words<uint64_t>(piece, first);
    }
    move_words<pack<uint64_t, 2>>(piece, first);
}

static join_piece piece_of(const nr_join_piece &p) {
    uint64_t all = 16 | (uint64_t)p.width | reinterpret_cast<uintptr_t>(p.to) | reinterpret_cast<uintptr_t>(p.from);
    if (p.rows > 1) all |= (uint64_t)p.to_step | (uint64_t)p.from_step;
    const int64_t word = (int64_t)(all & -all); /* the lowest bit: the largest power of two that divides all */
    join_piece piece = {};
    piece.to = static_cast<char *>(p.to);
    piece.from = static_cast<const char *>(p.from);
    piece.to_step = p.to_step;
    piece.from_step = p.from_step;
    piece.word = (uint32_t)word;
    piece.words = (uint32_t)(p.rows * p.width / word);
    piece.in_row = divisor_of(p.width / word);
    return piece;
}

int32_t nr_cuda_join(const nr_call *call) {
    const nr_join_plan &plan = *static_cast<const nr_join_plan *>(call->plan);
    join_args a = {};
    for (int64_t i = 0; i < plan.count; i++) {
        a.pieces[i] = piece_of(plan.pieces[i]);
        a.first_block[i + 1] = a.first_block[i] + blocks_for(a.pieces[i].words, A_BLOCK);
    }
    return run_blocks(call, join_pieces, a.first_block[plan.count], a);
}
