/* abi: the part of CPython's stable ABI (PEP 384) that norch uses, and PyCell_Get(), declared here so that the build
 * needs no header of Python. The interpreter that loads the library provides the symbols; without one they are NULL.
 * Where libraries are ELF or Mach-O they are weak. A DLL names the library that each symbol is of, and Python's has its
 * version in its name: so on Windows they are pointers, which abi.c sets at load. */
#ifndef NR_PYTHON_ABI_H
#define NR_PYTHON_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef intptr_t nr_ssize; /* Py_ssize_t */

/* The layouts of PyObject, PyMemberDef, PyGetSetDef, PyType_Slot and PyType_Spec. */
typedef struct nr_object {
    nr_ssize references;
    void *type;
} nr_object;

typedef struct nr_member {
    const char *name;
    int type;
    nr_ssize offset;
    int flags;
    const char *doc;
} nr_member;

typedef struct nr_property {
    const char *name;
    void *(*get)(void *object, void *context);
    int (*set)(void *object, void *value, void *context);
    const char *doc;
    void *context;
} nr_property;

typedef struct nr_slot {
    int slot;
    void *value;
} nr_slot;

typedef struct nr_spec {
    const char *name;
    int basicsize, itemsize;
    unsigned int flags;
    nr_slot *slots;
} nr_spec;

/* A builtin function; its arguments come as an array (METH_FASTCALL). */
typedef void *(*nr_builtin)(void *self, void *const *arguments, nr_ssize count);
typedef struct nr_method {
    const char *name;
    nr_builtin function;
    int flags;
    const char *doc;
} nr_method;

#define NR_SLOT_SUBSCRIPT 5 /* Py_mp_subscript */
#define NR_SLOT_BASE 48
#define NR_SLOT_CALL 50
#define NR_SLOT_CLEAR 51
#define NR_SLOT_GET 54 /* Py_tp_descr_get */
#define NR_SLOT_DEALLOC 52
#define NR_SLOT_TRAVERSE 71
#define NR_SLOT_METHODS 64
#define NR_SLOT_MEMBERS 72
#define NR_SLOT_PROPERTIES 73
#define NR_MEMBER_INT32 1
#define NR_MEMBER_OBJECT 16
#define NR_MEMBER_INT64 17
#define NR_MEMBER_SIZE 19
#define NR_MEMBER_POINTER (sizeof(void *) == 8 ? NR_MEMBER_INT64 : 11 /* unsigned int */)
#define NR_MEMBER_READONLY 1
#define NR_TYPE_DISALLOW_INSTANTIATION (1u << 7)
#define NR_TYPE_BASE (1u << 10)
#define NR_TYPE_VECTORCALL (1u << 11)
#define NR_TYPE_COLLECTED (1u << 14)
#define NR_TYPE_METHOD (1u << 17) /* called as x.name() without a bound method */
#define NR_TYPE_DEFAULT (1u << 18)
#define NR_TYPE_IS_INTEGER (1u << 24)
#define NR_TYPE_IS_LIST (1u << 25)
#define NR_TYPE_IS_TUPLE (1u << 26)
#define NR_TYPE_IS_BYTES (1u << 27)
#define NR_TYPE_IS_TEXT (1u << 28)
#define NR_TYPE_IS_DICT (1u << 29)
#define NR_EQUAL 2
#define NR_METHOD_FASTCALL 0x80

#ifdef _WIN32
#define PYTHON(result, name, ...) extern result (*name)(__VA_ARGS__)
#define PYTHON_OBJECT(name) extern void *name
#define PYTHON_STRUCT(name) extern nr_object *name
#define NR_AT(name) (name)
#else
#define NR_OF_PYTHON __attribute__((weak, visibility("default")))
#define PYTHON(result, name, ...) extern result name(__VA_ARGS__) NR_OF_PYTHON
#define PYTHON_OBJECT(name) extern void *name NR_OF_PYTHON
#define PYTHON_STRUCT(name) extern nr_object name NR_OF_PYTHON
#define NR_AT(name) (&name) /* the address of a Python object */
#endif
#include "symbols.def"
#undef PYTHON
#undef PYTHON_OBJECT
#undef PYTHON_STRUCT

#define NR_NONE ((void *)NR_AT(_Py_NoneStruct))
#define NR_NOT_IMPLEMENTED ((void *)NR_AT(_Py_NotImplementedStruct))

#endif
