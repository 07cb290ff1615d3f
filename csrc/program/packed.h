/* packed: weights that recordings keep in the order in which layers read them (families/layer.h).
 *
 * A packed weight is a copy, so the library must detect every write to the weight, and pack it again before the next
 * layer reads it. While any weight is packed, each call (nr_watch_call, core/dispatch.h) and each replay reports the
 * memory that it has written, and the storages of packed weights count these writes. Memory whose address another
 * library knows, such as NumPy, can be written without a call: such a weight is packed for each run, or the call runs
 * without packing. */
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
/* Whether a product should use the packed weight; it can also run without it. It should if no call has written to the
 * weight since the last query, so that a weight that changes in each run is not packed in each, and if no other library
 * knows its address. */
bool nr_packed_is_settled(nr_packed *packed);
/* The packed numbers. Packs again if the weight, or its integers and scales, were written to. NULL: out of memory. */
const float *nr_packed_numbers(nr_packed *packed, const nr_call *call);

#endif
