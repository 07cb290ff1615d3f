/* abi: see abi.h. On Windows the symbols of Python come from the library of the process that has them: python3.dll has
 * those of the stable ABI, and takes them from python310.dll, python311.dll ..., which has all. */
#ifdef _WIN32
#include "abi.h"

#include "../core/platform.h"

#define PYTHON(result, name, ...) result (*name)(__VA_ARGS__)
#define PYTHON_OBJECT(name) void *name
#define PYTHON_STRUCT(name) nr_object *name
#include "symbols.def"
#undef PYTHON
#undef PYTHON_OBJECT
#undef PYTHON_STRUCT

static void *value_at(void *const *variable) { return variable ? *variable : NULL; }

__attribute__((constructor)) static void find_python(void) {
    void *library = nr_library_with("Py_IsInitialized");
    if (!library) return;
#define PYTHON(result, name, ...) name = (result (*)(__VA_ARGS__))(uintptr_t)nr_symbol(library, #name)
#define PYTHON_OBJECT(name) name = value_at(nr_symbol(library, #name))
#define PYTHON_STRUCT(name) name = nr_symbol(library, #name)
#include "symbols.def"
}
#endif
