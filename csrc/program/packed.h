/* packed: weights that recordings keep in the order in which layers read them (families/layer.h).
 *
 * A packed weight is a copy, so that every write to the weight must be noticed: it is then packed again
 * before the next layer reads it. While any weight is packed, each call, and each replay, tells which memory
 * it has written (nr_watch_call, core/dispatch.h), and the storages of packed weights count it. Memory that
 * others know the address of, NumPy for example, can be written without a call: such a weight is packed for
 * each run, or the call runs as it is. */
#ifndef NR_PROGRAM_PACKED_H
#define NR_PROGRAM_PACKED_H

#include "../core/storage.h"
#include "../families/conv.h"
#include "../families/layer.h"
#include "../families/matmul.h"

typedef struct nr_packed nr_packed;

/* The packed weight of a convolution or of a product; all recordings share one. storage: of the weight, and NULL; or,
 * if the weight of a convolution is computed of integers by the call `quantized` (families/quantized.h), of these and
 * of their scales. NULL: out of memory. */
nr_packed *nr_packed_share(norch_storage *const storage[2], const nr_call *call, const nr_call *quantized);
void nr_packed_release(nr_packed *packed);
/* Whether to use the packed weight in a product, which can also run as it is: nothing has written to the weight since
 * the last product that asked, so that a weight that changes in each run is not packed in each, and others do not know
 * its address. */
bool nr_packed_is_settled(nr_packed *packed);
/* The packed numbers; packs again if the weight, or what it is computed from, was written to. NULL: out of memory. */
const float *nr_packed_numbers(nr_packed *packed, const nr_call *call);

#endif
