/* sort: argsort, optionally with the sorted values, searchsorted, and order statistics, of which Python composes
 * quantiles and others. Dtypes are widened as for scans. */
#include "../families/sort.h"
#include "axis.h"

/* out and values: one of them may be NULL. */
static int32_t argsort(norch_tensor *out, const norch_tensor *x, int32_t axis, int64_t count, bool descending,
                       norch_tensor *values) {
    const norch_tensor *operands[] = {out ? out : values, x, values};
    if (operands[0]->numel == 0) return NORCH_OK;
    nr_sort_plan plan = {.n = x->ndim ? x->shape[axis] : 1, .count = count, .descending = descending};
    for (int o = 0; o < (values ? 3 : 2); o++) plan.step[o] = nr_step(operands[o], axis);
    nr_nest_without(&plan.nest, axis, values ? 3 : 2, operands);
    if (!out) plan.nest.data[0] = NULL;
    return nr_run(NR_SORT, NR_ARGSORT, &plan, 20.0 * (double)x->numel, x);
}

static int32_t check_values(const norch_tensor *x, int32_t axis, int64_t count, const norch_tensor *values) {
    NR_TRY(nr_check_real("sort", values));
    NR_TRY(nr_check_same_device("sort", x, values));
    bool fits = values->dtype == x->dtype && values->ndim == x->ndim;
    for (int32_t d = 0; fits && d < x->ndim; d++) fits = values->shape[d] == (d == axis ? count : x->shape[d]);
    if (fits) return NORCH_OK;
    return nr_fail(NORCH_ERROR_SHAPE, "sort: values of shape %s and dtype %s for %lld of shape %s and dtype %s",
                   nr_shape_of(values), nr_dtypes[values->dtype].name, (long long)count, nr_shape_of(x),
                   nr_dtypes[x->dtype].name);
}

norch_tensor *norch_argsort(const norch_tensor *x, int64_t dim, int64_t k, bool descending,
                            norch_tensor *optional_values) {
    int32_t axis;
    if (nr_check_real("sort", x) || nr_check_axis("sort", dim, x->ndim, &axis)) return NULL;
    int64_t n = x->ndim ? x->shape[axis] : 1;
    if (k < -1 || k > n)
        return NR_REFUSE(NORCH_ERROR_VALUE, "topk: k is %lld, but dimension %d has size %lld", (long long)k, axis,
                         (long long)n);
    const int64_t count = k < 0 || x->ndim == 0 ? n : k;
    norch_tensor *values = optional_values;
    if (values && check_values(x, axis, count, values)) return NULL;
    NR_OWNED norch_tensor *wide = nr_scannable(x);
    if (!wide) return NULL;
    if (values && wide->dtype != x->dtype) values = nr_make(values->ndim, values->shape, wide->dtype, x);
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < x->ndim; d++) shape[d] = d == axis ? count : x->shape[d];
    norch_tensor *out = optional_values && !values ? NULL : nr_make(x->ndim, shape, NORCH_INT64, x);
    if (out) out = nr_finished(out, argsort(out, wide, axis, count, descending != 0, values));
    if (out && values != optional_values) out = nr_finished(out, nr_copy_into(optional_values, values));
    if (values != optional_values) nr_release(values);
    return out;
}

norch_tensor *norch_order_index(const norch_tensor *x, int64_t dim, int64_t k) {
    int32_t axis;
    if (nr_check_real("sort", x) || nr_check_axis("sort", dim, x->ndim, &axis)) return NULL;
    const int64_t n = x->ndim ? x->shape[axis] : 1;
    if (n == 0 || k >= n || k < NORCH_NANMEDIAN)
        return NR_REFUSE(NORCH_ERROR_VALUE, "sort: place %lld of %lld elements along dimension %d", (long long)k,
                         (long long)n, axis);
    NR_OWNED norch_tensor *wide = nr_scannable(x);
    if (!wide) return NULL;
    int64_t shape[NORCH_MAX_DIMS];
    for (int32_t d = 0; d < x->ndim; d++) shape[d] = d == axis ? 1 : x->shape[d];
    norch_tensor *out = nr_make(x->ndim, shape, NORCH_INT64, x);
    if (!out || out->numel == 0) return out;
    const norch_tensor *operands[] = {out, wide};
    nr_sort_plan plan = {.n = n, .count = k};
    for (int o = 0; o < 2; o++) plan.step[o] = nr_step(operands[o], axis);
    nr_nest_without(&plan.nest, axis, 2, operands);
    return nr_finished(out, nr_run(NR_SORT, NR_SELECT, &plan, 4.0 * (double)x->numel, wide));
}

norch_tensor *norch_sorted(const norch_tensor *x, int64_t dim, bool descending) {
    int32_t axis;
    if (nr_check_real("sort", x) || nr_check_axis("sort", dim, x->ndim, &axis)) return NULL;
    NR_OWNED norch_tensor *wide = nr_scannable(x), *values = wide ? nr_make(x->ndim, x->shape, wide->dtype, x) : NULL;
    if (!values || argsort(NULL, wide, axis, x->ndim ? x->shape[axis] : 1, descending, values)) return NULL;
    return wide->dtype == x->dtype ? norch_retain(values) : norch_cast(values, x->dtype);
}

static norch_tensor *search(const norch_tensor *sorted, const norch_tensor *values, bool right) {
    norch_tensor *out = nr_make(values->ndim, values->shape, NORCH_INT64, values);
    if (!out || out->numel == 0) return out;
    const int32_t last = sorted->ndim - 1;
    norch_tensor rows = *sorted; /* its first elements, in the shape of values */
    rows.shape[last] = 1;
    rows.numel = 1;
    for (int32_t d = 0; d < last; d++) rows.numel *= rows.shape[d];
    rows.contiguous = 0;
    nr_sort_plan plan = {.n = sorted->shape[last], .step = {0, nr_step(sorted, last)}, .right = right};
    nr_plan_make(&plan.nest, values->ndim, values->shape, 3, (const norch_tensor *[]){out, values, &rows});
    return nr_finished(out, nr_run(NR_SORT, NR_SEARCH, &plan, 20.0 * (double)values->numel, values));
}

norch_tensor *norch_searchsorted(const norch_tensor *sorted, const norch_tensor *values, bool right) {
    static const char op[] = "searchsorted";
    if (nr_check_real(op, sorted) || nr_check_real(op, values)) return NULL;
    if (nr_check_same_device(op, values, sorted)) return NULL;
    bool fits = sorted->ndim == 1 || sorted->ndim == values->ndim;
    for (int32_t d = 0; d + 1 < sorted->ndim && fits; d++) fits = sorted->shape[d] == values->shape[d];
    if (sorted->ndim == 0 || !fits)
        return NR_REFUSE(NORCH_ERROR_SHAPE,
                         "%s: the sorted tensor must be 1-d or have the leading sizes of the values: shapes %s and %s",
                         op, nr_shape_of(sorted), nr_shape_of(values));
    if (nr_is_float(sorted->dtype) ? sorted->dtype != values->dtype : nr_is_float(values->dtype))
        return NR_REFUSE(NORCH_ERROR_DTYPE, "%s: the sorted tensor is %s, the values are %s", op,
                         nr_dtypes[sorted->dtype].name, nr_dtypes[values->dtype].name);
    NR_OWNED norch_tensor *among = nr_scannable(sorted), *wide = among ? nr_scannable(values) : NULL;
    return wide ? search(among, wide, right) : NULL;
}
