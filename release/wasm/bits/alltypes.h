/* The C library's types on WebAssembly: those of musl for RISC-V of 32 bits, but that addresses are long, not int, as clang has
 * them for WebAssembly. The header includes this one again and again, each time for some of its types. */
#if defined __NEED_size_t && !defined __DEFINED_size_t
typedef __SIZE_TYPE__ size_t;
#define __DEFINED_size_t
#endif
#if defined __NEED_ssize_t && !defined __DEFINED_ssize_t
typedef __PTRDIFF_TYPE__ ssize_t;
#define __DEFINED_ssize_t
#endif
#if defined __NEED_ptrdiff_t && !defined __DEFINED_ptrdiff_t
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#define __DEFINED_ptrdiff_t
#endif
#if defined __NEED_uintptr_t && !defined __DEFINED_uintptr_t
typedef __UINTPTR_TYPE__ uintptr_t;
#define __DEFINED_uintptr_t
#endif
#if defined __NEED_intptr_t && !defined __DEFINED_intptr_t
typedef __INTPTR_TYPE__ intptr_t;
#define __DEFINED_intptr_t
#endif
#include_next <bits/alltypes.h>
/* What Pyodide's C library is compiled with: a time_t of another size would be written beyond. */
#if defined __DEFINED_time_t && defined __DEFINED_struct_timespec
_Static_assert(sizeof(time_t) == 8 && sizeof(struct timespec) == 16, "Emscripten's time_t has 64 bits");
#endif
