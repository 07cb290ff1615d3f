/* library: the text of norch.h that the library was built from, and its ABI number. */
#include "backend.h"

/* NORCH_HEADER_PATH and NORCH_ABI come from the Makefile. */
__asm__(".pushsection .rodata\n"
        ".balign 16\n"
        "nr_header_text:\n"
        ".incbin \"" NORCH_HEADER_PATH "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char nr_header_text[] __attribute__((visibility("hidden")));

const char *norch_header(void) { return nr_header_text; }

uint64_t nr_abi(void) { return NORCH_ABI; }

uint64_t norch_abi(void) { return nr_abi(); }

int64_t norch_sizeof_tensor(void) { return (int64_t)sizeof(norch_tensor); }
