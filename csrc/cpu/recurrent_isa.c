/* recurrent_isa: a step of an LSTM or a GRU behind its matrix products, forward and backward, compiled once per
 * instruction set. The formulas are those of cells.h, which CUDA shares.
 *
 *     from_x, from_h   a row   [ gate 0: size | gate 1 | gate 2 | gate 3 ]    a loop over the units of a row, of which
 *   kept             a row   [ i            | f      | n      | o      ]    vectors hold several, reads all gates */
#include <math.h>
#include <stdbool.h>

#include "../families/recurrent.h"
#include "cpu.h"
#include "math.h"

#define CHUNK 2048 /* units a thread takes at a time */

#define TEMPLATE "recurrent_loops.h"
#define WANTED(kind, bits) (kind == 'f')
#include "each_dtype.h"

typedef struct job {
    const nr_recurrent_plan *plan;
    void (*kernel)(const nr_recurrent_plan *p, int64_t row);
    int64_t rows;
} job;

static void run_chunk(void *context, int64_t chunk) {
    const job *j = context;
    const int64_t last = least((chunk + 1) * j->rows, j->plan->rows);
    for (int64_t row = chunk * j->rows; row < last; row++) j->kernel(j->plan, row);
}

int32_t NR_ISA(nr_run_recurrent)(const nr_call *call) {
    static void (*const kernels[2][4])(const nr_recurrent_plan *p, int64_t row) = {
        {lstm_forward_row_float32, gru_forward_row_float32, lstm_backward_row_float32, gru_backward_row_float32},
        {lstm_forward_row_float64, gru_forward_row_float64, lstm_backward_row_float64, gru_backward_row_float64}};
    const nr_recurrent_plan *p = call->plan;
    job j = {.plan = p, .kernel = kernels[call->dtype == NORCH_FLOAT64][call->op], .rows = CHUNK / (p->size + 1) + 1};
    nr_parallel(ceil_div(p->rows, j.rows), run_chunk, &j);
    return NORCH_OK;
}
