/* backend: the table of functions that a device provides, its whole interface to the library. device.h adds the
 * functions that only devices of plugins need.
 *
 * A runner gets a complete, checked call. It fails only if memory or a kernel is missing, or if the device fails. On a
 * device other than the CPU the call may still be running when its runner returns. */
#ifndef NR_BACKEND_H
#define NR_BACKEND_H

#include <stddef.h>
#include "optable.h"
#include "plan.h"

/* The families of operations. A runner gets its family's plan, defined in csrc/families/; pointwise operations and
 * copies have an nr_plan. */
typedef enum nr_family {
#define FAMILY(NAME, ...) NR_##NAME,
#include "../families.def"
    NR_FAMILY_COUNT,
    NR_HOST_CALL = NR_FAMILY_COUNT /* only in recordings: a host function, which no backend runs */
} nr_family;

/* An entry of kernels[op][dtype]. The type is opaque: only the backend casts it back and calls it. */
typedef void (*nr_kernel)(void);

typedef struct nr_backend nr_backend;
typedef struct nr_device nr_device; /* core/device.h */

typedef struct nr_call nr_call;
struct nr_call {
    nr_family family;
    int32_t op;         /* a row of ops.def (matmul: its epilogue, or NR_NO_OP), or a kind of the family */
    int32_t dtype;      /* the dtype that the kernel computes on */
    int32_t from_dtype; /* copy: the dtype of the source */
    double work;        /* estimated nanoseconds on one core */
    const void *plan;   /* the struct of the family (csrc/families/) */
    nr_kernel kernel;   /* set by nr_dispatch(), like backend */
    const nr_backend *backend;
    const char *name;                  /* for messages, if family and op do not determine it; or NULL */
    bool in_place;                     /* pointwise: messages end the name with "_" */
    void (*load)(const nr_call *call); /* converts the numbers in the plan again before each run; or NULL */
};

/* ---- the table ------------------------------------------------------------------------------- */

struct nr_backend {
    const char *name; /* "cpu", "cuda:0" */
    int32_t device_type, device_index;
    /* Memory of at least n bytes, aligned to 64; NULL if there is none (a device sets the error). */
    void *(*alloc)(const nr_backend *self, size_t n);
    void (*free)(const nr_backend *self, void *memory, size_t n);
    /* Copies. Both have finished with host memory when they return, except a non_blocking from_host. */
    int32_t (*to_host)(const nr_backend *self, void *host, const void *device, size_t n);
    int32_t (*from_host)(const nr_backend *self, void *device, const void *host, size_t n, bool non_blocking);
    int32_t (*synchronize)(const nr_backend *self);
    nr_kernel (*kernels)[NR_DTYPE_COUNT]; /* [NR_OP_COUNT][NR_DTYPE_COUNT]; NULL: not supported */
    int32_t (*run[NR_FAMILY_COUNT])(const nr_call *call);
    /* For each family, a bit for each narrow dtype (dtypes.def) that its kernels take; other narrow dtypes are widened
     * first. */
    uint32_t takes_narrow[NR_FAMILY_COUNT];
    const nr_device *device;              /* NULL: the CPU */
    bool fuses_attention;                 /* has the fused kinds of families/attention.h */
    const struct nr_chain_runner *chains; /* families/chain.h; NULL: runs calls one by one */
    const struct nr_layer_runner *layers; /* families/layer.h; NULL: not supported */
};

/* The devices of one type. Each type registers before the first tensor is made (csrc/devices.c). */
typedef struct nr_device_type {
    const nr_backend *(*find)(int64_t device_index); /* NULL, with an error, if there is none */
    int64_t (*count)(void);                          /* -1, with an error, if there are none */
} nr_device_type;

void nr_register_device_type(int32_t device_type, const nr_device_type *type);
/* The registered type, or the backend of one of its devices; NULL with an error if there is none. */
const nr_device_type *nr_device_type_find(int64_t device_type);
const nr_backend *nr_backend_find(int64_t device_type, int64_t device_index);

#endif
