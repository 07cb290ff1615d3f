/* norch.h: the public C API: tensors, and the operations that all others need. norch_families.h has the other families
 * of operations, norch_runtime.h the library itself and devices.
 *
 * These headers hold everything that a caller may know. Python's bindings come from their text: make turns the
 * prototypes into builtin functions (csrc/python/make_calls.py), and the library carries the declarations, from which
 * norch/_binding/header.py reads the rest. So the headers keep to a plain style: one prototype a declaration, no macros
 * but constants. Types and names of parameters matter: optional_x may be NULL, bool is a flag, dims are axes, op is a
 * row of ops.def, a count is followed by its array.
 *
 * A call that makes a tensor returns it, or NULL on failure; other calls return a status (int32_t, NORCH_OK on success)
 * or a value. After a failure norch_last_error() gives the message of this thread, and every argument is unchanged. The
 * caller owns each tensor that a call returns, and releases it with norch_release(). */
#ifndef NORCH_H
#define NORCH_H

#include <stdbool.h>
#include <stdint.h>

#define NORCH_MAX_DIMS 16

/* Status of a call, and the kind of error that the message describes. */
#define NORCH_OK 0
#define NORCH_ERROR_SHAPE 1
#define NORCH_ERROR_DTYPE 2
#define NORCH_ERROR_DEVICE 3
#define NORCH_ERROR_INDEX 4
#define NORCH_ERROR_MEMORY 5
#define NORCH_ERROR_VALUE 6
#define NORCH_ERROR_ZERO_DIVISION 7
#define NORCH_ERROR_CAPTURE 8
#define NORCH_ERROR_META 9 /* the elements of a meta tensor are asked for */

/* Element types: NORCH_FLOAT32 and so on, a constant for each row of dtypes.def. */
enum norch_dtype {
#define DTYPE(NAME, ...) NORCH_##NAME,
#define COMPLEX DTYPE
#include "dtypes.def"
    NORCH_DTYPE_COUNT
};

/* Device types. */
#define NORCH_CPU 0
#define NORCH_CUDA 1
#define NORCH_META 2 /* tensors without memory: shapes, strides and dtypes alone are computed */

/* What is declared from here on is seen from outside the library. */
#pragma GCC visibility push(default)

typedef struct norch_storage norch_storage;

/* A strided N-d array. It does not change after it is made; views share the storage. references and type make it a
 * Python object if Python has loaded the library. node, leaf, grad, version_counter and view are objects of autograd
 * (norch/_tensor/handle.py), attributes is its __dict__ or NULL; C does not read them. data points at the first
 * element; strides (which may be negative) and offset count elements. `weak` marks a Python scalar, of which only the
 * kind takes part in dtype promotion; `mixed` marks a result whose inputs differ from it in shape, dtype or device. */
typedef struct norch_tensor {
    intptr_t references;
    void *type;
    void *node;
    void *leaf;
    void *grad;
    void *version_counter;
    void *view;
    void *attributes;
    void *data;
    norch_storage *storage;
    int64_t numel;
    int64_t offset;
    int32_t dtype;
    int32_t ndim;
    int32_t device_type;
    int32_t device_index;
    int32_t contiguous;
    int32_t weak;
    int32_t mixed;
    int64_t shape[NORCH_MAX_DIMS];
    int64_t strides[NORCH_MAX_DIMS];
} norch_tensor;

/* ---- the table of operations ---------------------------------------------------------------- */

/* The operation of row `op` (NULL past the end): a row's index is its opcode. Its form is one of unary,
 * binary, choice, ternary, reduce. */
const char *norch_op_name(int64_t op);
const char *norch_op_form(int64_t op);
/* 1 when the operation takes this dtype without a conversion. */
int32_t norch_op_takes(int64_t op, int64_t dtype);

/* ---- dtypes --------------------------------------------------------------------------------- */

/* Name (NULL past the end), bytes, kind as a character (b bool, u unsigned, i signed, f float, c complex), and the
 * binary digits that a number may have and be exact (of a complex one each part). */
const char *norch_dtype_name(int64_t dtype);
int32_t norch_dtype_size(int64_t dtype);
int32_t norch_dtype_kind(int64_t dtype);
int32_t norch_dtype_digits(int64_t dtype);
/* Whether a result of dtype `from` may be stored as `to`: no float becomes an integer, no number a bool. */
bool norch_can_cast(int64_t from, int64_t to);
/* The dtype of the parts of a complex dtype, which is that of its absolute values; another dtype itself. */
int32_t norch_dtype_part(int64_t dtype);
/* The dtype that a and b promote to, and the one of an operation on n tensors (xs: their pointers). */
int32_t norch_promote_types(int64_t a, int64_t b);
int64_t norch_result_type(int64_t n, const void *xs);
int32_t norch_set_default_dtype(int64_t dtype);
int32_t norch_default_dtype(void);
/* The dtypes that there have been tensors of, 1 << dtype each: without complex ones no gradient is conjugated. */
int64_t norch_dtypes_seen(void);

/* ---- making tensors ------------------------------------------------------------------------- */

norch_tensor *norch_empty(int64_t ndim, const int64_t *shape, int64_t dtype, int64_t device_type, int64_t device_index);

/* Like x but for the size of the last axis, which is the innermost in memory; the other axes keep their order there. */
norch_tensor *norch_empty_like(const norch_tensor *x, int64_t last);
/* Every element is value; for integers and bool, `integer`. */
norch_tensor *norch_full(int64_t ndim, const int64_t *shape, int64_t dtype, double value, int64_t integer,
                         int64_t device_type, int64_t device_index);
/* The shape and device of x, with dtype -1 also its dtype; the strides of x if x is dense. */
norch_tensor *norch_full_like(const norch_tensor *x, int64_t dtype, double value, int64_t integer);
/* 0-d tensors that take part in promotion like Python scalars. */
norch_tensor *norch_scalar_float(double value);
norch_tensor *norch_scalar_int(int64_t value, int64_t dtype);
norch_tensor *norch_scalar_complex(double real, double imaginary);
/* start, start + step, ...: n elements, 1-d. */
norch_tensor *norch_arange(int64_t n, int64_t dtype, double start, double step, int64_t istart, int64_t istep);
/* n numbers from start to end, which are counted from both ends to the middle; float32 or float64. */
norch_tensor *norch_linspace(int64_t n, int64_t dtype, double start, double end);
/* The first n places (2, n) of the lower or upper triangle of a matrix, from a row on; none of the rows is empty. */
norch_tensor *norch_triangle_indices(int64_t n, int64_t row, int64_t columns, int64_t offset, bool upper);
/* A tensor over memory of the caller; strides count elements. release(context) is called when the storage is freed. */
norch_tensor *norch_from_memory(void *data, int64_t ndim, const int64_t *shape, const int64_t *strides, int64_t dtype,
                                void *release, void *context);
/* Copies n bytes of C-ordered elements into a new tensor. */
norch_tensor *norch_from_bytes(const void *bytes, int64_t n, int64_t ndim, const int64_t *shape, int64_t dtype);

norch_tensor *norch_retain(norch_tensor *x);
void norch_release(norch_tensor *x);
/* Makes x a view of the elements of other; its references and autograd fields stay. */
int32_t norch_set_data(norch_tensor *x, const norch_tensor *other);

/* A header without a storage: the shape, dtype and device of x. */
norch_tensor *norch_meta(const norch_tensor *x);

/* The element of a one-element tensor, as double and as int64. */
int32_t norch_item(const norch_tensor *x, double *value, int64_t *integer);
/* Copies the elements of x, C-ordered, into `bytes`; n must be their number of bytes. */
int32_t norch_to_bytes(const norch_tensor *x, void *bytes, int64_t n);

/* Whether both have the same elements in the same order; share a storage; overlap in memory. */
bool norch_is_same(const norch_tensor *a, const norch_tensor *b);
bool norch_shares_storage(const norch_tensor *a, const norch_tensor *b);
bool norch_overlaps(const norch_tensor *a, const norch_tensor *b);
/* How many tensors and exports hold the storage of x, x itself counted. */
int64_t norch_storage_references(const norch_tensor *x);
/* Whether two elements of x may have the same memory: expanded, or unfolded with windows that overlap. */
bool norch_overlaps_itself(const norch_tensor *x);

/* ---- views: no byte moves ------------------------------------------------------------------- */

/* One size may be -1. If the strides do not allow a view, norch_view fails and norch_reshape copies. */
norch_tensor *norch_view(const norch_tensor *x, int64_t ndim, const int64_t *shape);
norch_tensor *norch_reshape(const norch_tensor *x, int64_t ndim, const int64_t *shape);
/* The axes from start to end as one; a 0-d tensor becomes one of one axis. */
norch_tensor *norch_flatten(const norch_tensor *x, int64_t start, int64_t end);
norch_tensor *norch_permute(const norch_tensor *x, int64_t ndim, const int64_t *axes);
norch_tensor *norch_reverse_axes(const norch_tensor *x);
norch_tensor *norch_transpose(const norch_tensor *x, int64_t dim0, int64_t dim1);
/* A size of -1 keeps that of x. */
norch_tensor *norch_expand(const norch_tensor *x, int64_t ndim, const int64_t *shape);
norch_tensor *norch_squeeze(const norch_tensor *x, int64_t count, const int64_t *dims);
norch_tensor *norch_unsqueeze(const norch_tensor *x, int64_t dim);
norch_tensor *norch_select(const norch_tensor *x, int64_t dim, int64_t index);
/* start and stop as in Python: clipped, negative ones count from the end. With a negative step, a stop below -size
 * includes element 0, like Python's None. */
norch_tensor *norch_slice(const norch_tensor *x, int64_t dim, int64_t start, int64_t stop, int64_t step);
/* start from 0 or, negative, from the end; all `length` elements must lie in x. */
norch_tensor *norch_narrow(const norch_tensor *x, int64_t dim, int64_t start, int64_t length);
norch_tensor *norch_diagonal(const norch_tensor *x, int64_t offset, int64_t dim0, int64_t dim1);
norch_tensor *norch_unfold(const norch_tensor *x, int64_t dim, int64_t size, int64_t step);
norch_tensor *norch_alias(const norch_tensor *x);
/* All bytes of the storage of x, as a uint8 tensor. */
norch_tensor *norch_view_storage(const norch_tensor *x);
/* Any shape and strides inside the storage of x, from `shift` elements after the first of x. */
norch_tensor *norch_as_strided(const norch_tensor *x, int64_t ndim, const int64_t *shape, int64_t count,
                               const int64_t *strides, int64_t shift);
/* The bytes of x as another dtype; the last size changes if the sizes of elements differ. */
norch_tensor *norch_view_dtype(const norch_tensor *x, int64_t dtype);
/* A complex x as its real and imaginary parts, along a new last axis of size 2; and the reverse. */
norch_tensor *norch_view_as_real(const norch_tensor *x);
norch_tensor *norch_view_as_complex(const norch_tensor *x);
/* x in the shape of like: reshaped, or broadcast. */
norch_tensor *norch_reshape_as(const norch_tensor *x, const norch_tensor *like);
norch_tensor *norch_expand_as(const norch_tensor *x, const norch_tensor *like);
/* Expands x, a reduction over the `count` axes in dims (-1: all), back to the shape of like, which was reduced. */
norch_tensor *norch_expand_reduced(const norch_tensor *x, const norch_tensor *like, int64_t count, const int64_t *dims,
                                   bool keepdim);

/* ---- pointwise ------------------------------------------------------------------------------ */

/* A row of ops.def over broadcast inputs. If the result is `mixed`, autograd keeps norch_meta() of each input, to sum
 * and cast gradients back. */
norch_tensor *norch_unary(int64_t op, const norch_tensor *x);
norch_tensor *norch_binary(int64_t op, const norch_tensor *a, const norch_tensor *b);
norch_tensor *norch_ternary(int64_t op, const norch_tensor *a, const norch_tensor *b, const norch_tensor *c);
/* The same, written into out, which keeps its shape and dtype. */
int32_t norch_unary_into(norch_tensor *out, int64_t op, const norch_tensor *x);
int32_t norch_binary_into(norch_tensor *out, int64_t op, const norch_tensor *a, const norch_tensor *b);
int32_t norch_ternary_into(norch_tensor *out, int64_t op, const norch_tensor *a, const norch_tensor *b,
                           const norch_tensor *c);

/* ---- reductions ----------------------------------------------------------------------------- */

/* Reduces the `count` axes in dims (count -1: all). param is the correction of var and std.
 * dtype -1: the one that ops.def gives. */
norch_tensor *norch_reduce(int64_t op, const norch_tensor *x, int64_t count, const int64_t *dims, bool keepdim,
                           int64_t dtype, double param);
/* x summed over broadcast axes, cast and moved to the shape, dtype and device of like; of a complex x the real part, if
 * like is real; x itself, retained, when nothing differs. */
norch_tensor *norch_sum_to(norch_tensor *x, const norch_tensor *like);

/* ---- copies --------------------------------------------------------------------------------- */

/* A contiguous copy; x itself, retained, when it is contiguous already. */
norch_tensor *norch_clone(const norch_tensor *x);
norch_tensor *norch_contiguous(norch_tensor *x);
/* A copy in another dtype, or in the same. */
norch_tensor *norch_cast(const norch_tensor *x, int64_t dtype);
/* Copies src, broadcast and cast, into dst. */
int32_t norch_copy(norch_tensor *dst, const norch_tensor *src);
/* x on a device; x itself, retained, if it is there. non_blocking: the copy may still be under way on return. */
norch_tensor *norch_to_device(norch_tensor *x, int64_t device_type, int64_t device_index, bool non_blocking);

#pragma GCC visibility pop

#endif
