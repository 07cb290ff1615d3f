/* library: the text of the public headers that the library was built from, and its ABI number. */
#include "../norch_runtime.h"
#include "device.h"

/* The Makefile makes header.inc, the text of the public headers as string literals, and defines NORCH_ABI. */
static const char header_text[] =
#include "header.inc"
    ;

const char *norch_header(void) { return header_text; }

uint64_t nr_abi(void) { return NORCH_ABI; }

char nr_nvrtc[NR_NVRTC_PATHS];

uint64_t norch_abi(void) { return nr_abi(); }

int64_t norch_sizeof_tensor(void) { return (int64_t)sizeof(norch_tensor); }
