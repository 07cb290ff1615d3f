/* transfer: copies bytes between host and device, and waits for devices. Other Python threads run meanwhile. */
#ifndef NR_TRANSFER_H
#define NR_TRANSFER_H

#include "backend.h"

int32_t nr_transfer_to_host(const nr_backend *backend, void *host, const void *device, size_t bytes);
int32_t nr_transfer_from_host(const nr_backend *backend, void *device, const void *host, size_t bytes,
                              bool non_blocking);
int32_t nr_transfer_synchronize(const nr_backend *backend);
/* Waits for an event, or (NULL) for a stream. */
int32_t nr_transfer_wait_for(const nr_backend *backend, void **event, int64_t stream);

#endif
