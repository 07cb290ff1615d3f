/* backend: the registered devices, by type. */
#include "backend.h"

#include "error.h"

#define DEVICE_TYPES 8

static const nr_device_type *device_types[DEVICE_TYPES];

void nr_register_device_type(int32_t device_type, const nr_device_type *type) { device_types[device_type] = type; }

const nr_device_type *nr_device_type_find(int64_t device_type) {
    if (device_type >= 0 && device_type < DEVICE_TYPES && device_types[device_type]) return device_types[device_type];
    return NR_REFUSE(NORCH_ERROR_DEVICE, "there is no device type number %lld", (long long)device_type);
}

const nr_backend *nr_backend_find(int64_t device_type, int64_t device_index) {
    const nr_device_type *type = nr_device_type_find(device_type);
    return type ? type->find(device_index) : NULL;
}
