/* data: a tensor gets the memory and the header of another. */
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "dispatch.h"
#include "observer.h"

int64_t nr_headers_replaced;

int32_t norch_set_data(norch_tensor *x, const norch_tensor *other) {
    if (x->storage && !nr_wait_for_calls()) /* without a storage x is new, and no running call can use it */
        return nr_fail(NORCH_ERROR_VALUE, "data: cannot be set in the middle of a call, by what watches it");
    NR_TRY(nr_check_tensor("data", other));
    norch_storage *before = x->storage;
    const char *event = before == other->storage ? "a tensor gets another shape or strides in place"
                                                 : "the memory of a tensor is replaced";
    if (before && before->observer != nr_observing()) NR_TRY(nr_note_unseen(event));
    nr_storage_retain(other->storage);
    const size_t from = offsetof(norch_tensor, data); /* the fields before it belong to the Python object */
    memcpy((char *)x + from, (const char *)other + from, sizeof *x - from);
    if (!before) return NORCH_OK;
    nr_headers_replaced++;
    nr_storage_release(before);
    return NORCH_OK;
}
