/* abi: the part of CPython's stable ABI (PEP 384) that norch uses, and PyCell_Get(), declared here so that the build
 * needs no header of Python. The symbols are weak: the interpreter that loads the library provides them; without one
 * they are NULL. */
#ifndef NR_PYTHON_ABI_H
#define NR_PYTHON_ABI_H

#include <stdint.h>

#define PYTHON(result, name, ...) extern result name(__VA_ARGS__) __attribute__((weak, visibility("default")))
#define PYTHON_OBJECT(name) extern void *name __attribute__((weak, visibility("default")))

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

#define NR_SLOT_CALL 50
#define NR_SLOT_CLEAR 51
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
#define NR_TYPE_COLLECTED (1u << 14)
#define NR_TYPE_DEFAULT (1u << 18)
#define NR_TYPE_IS_INTEGER (1u << 24)
#define NR_TYPE_IS_LIST (1u << 25)
#define NR_TYPE_IS_TUPLE (1u << 26)
#define NR_TYPE_IS_BYTES (1u << 27)
#define NR_TYPE_IS_TEXT (1u << 28)
#define NR_TYPE_IS_DICT (1u << 29)
#define NR_EQUAL 2
#define NR_METHOD_FASTCALL 0x80

PYTHON(void *, PyEval_SaveThread, void);
PYTHON(void, PyEval_RestoreThread, void *thread);
PYTHON(int, PyGILState_Check, void);
PYTHON(int, PyGILState_Ensure, void);
PYTHON(void, PyGILState_Release, int state);
PYTHON(int, Py_IsInitialized, void);

PYTHON(void *, PyCapsule_New, void *pointer, const char *name, void (*destructor)(void *capsule));
PYTHON(int, PyCapsule_IsValid, void *capsule, const char *name);
PYTHON(void *, PyCapsule_GetPointer, void *capsule, const char *name);
PYTHON(int, PyCapsule_SetName, void *capsule, const char *name);

PYTHON(void *, PyType_FromSpec, nr_spec *spec);
PYTHON(void *, PyType_GenericAlloc, void *type, nr_ssize items);
PYTHON(int, PyType_IsSubtype, void *type, void *base);
PYTHON(void *, PyCFunction_NewEx, nr_method *method, void *self, void *module);
PYTHON(void *, PyObject_GetAttrString, void *object, const char *name);
PYTHON(void *, PyObject_GenericGetDict, void *object, void *context);
PYTHON(int, PyObject_GenericSetDict, void *object, void *value, void *context);
PYTHON(void, PyObject_GC_UnTrack, void *object);
PYTHON(void, PyObject_GC_Del, void *object);
PYTHON(int, PyGC_Disable, void);
PYTHON(int, PyGC_Enable, void);
PYTHON(void, Py_IncRef, void *object);
PYTHON(void *, Py_NewRef, void *object);
PYTHON(void *, Py_XNewRef, void *object);
PYTHON(void, Py_DecRef, void *object);

PYTHON(unsigned long, PyType_GetFlags, void *type);
PYTHON(void *, PyType_GetSlot, void *type, int slot);
PYTHON(void, PyType_Modified, void *type);
PYTHON(void *, PyObject_GenericGetAttr, void *object, void *name);

PYTHON(void, PyErr_SetString, void *exception, const char *message);
PYTHON(void *, PyErr_Format, void *exception, const char *format, ...);
PYTHON(void *, PyErr_Occurred, void);
PYTHON(int, PyErr_ExceptionMatches, void *exception);
PYTHON(void, PyErr_Clear, void);
PYTHON(void, PyErr_Fetch, void **type, void **value, void **traceback);
PYTHON(void, PyErr_Restore, void *type, void *value, void *traceback);
PYTHON_OBJECT(PyExc_TypeError);
PYTHON_OBJECT(PyExc_OverflowError);
PYTHON_OBJECT(PyExc_ImportError);

PYTHON(long long, PyLong_AsLongLong, void *object);
PYTHON(void *, PyLong_FromLongLong, long long value);
PYTHON(void *, PyLong_FromVoidPtr, void *address);
PYTHON(double, PyFloat_AsDouble, void *object);
PYTHON(void *, PyFloat_FromDouble, double value);
PYTHON(void *, PyComplex_FromDoubles, double real, double imaginary);
PYTHON(void *, PyBool_FromLong, long value);
PYTHON(void *, PySequence_Tuple, void *sequence);
PYTHON(int, PySequence_DelItem, void *sequence, nr_ssize i);
PYTHON(void *, PyTuple_New, nr_ssize count);
PYTHON(nr_ssize, PyTuple_Size, void *tuple);
PYTHON(void *, PyTuple_GetItem, void *tuple, nr_ssize i);
PYTHON(int, PyTuple_SetItem, void *tuple, nr_ssize i, void *item);
PYTHON(void *, PyList_New, nr_ssize count);
PYTHON(nr_ssize, PyList_Size, void *list);
PYTHON(void *, PyList_GetItem, void *list, nr_ssize i);
PYTHON(int, PyList_SetItem, void *list, nr_ssize i, void *item);
PYTHON(void *, PyIter_Next, void *iterator);
PYTHON(void *, PyCell_Get, void *cell);
PYTHON(nr_ssize, PyDict_Size, void *dict);
PYTHON(void *, PyDict_GetItemWithError, void *dict, void *key);
PYTHON(int, PyDict_Next, void *dict, int64_t *position, void **key, void **value);
PYTHON(void *, PyObject_GetAttr, void *object, void *name);
PYTHON(void *, PyObject_CallObject, void *callable, void *arguments);
PYTHON(void *, PyObject_Call, void *callable, void *arguments, void *named);
PYTHON(void *, PyObject_CallFunctionObjArgs, void *callable, ...);
PYTHON(void *, PyObject_CallMethodObjArgs, void *object, void *name, ...);
PYTHON(int, PyObject_RichCompareBool, void *a, void *b, int operation);
PYTHON(int, PyObject_IsTrue, void *object);
PYTHON(void *, PyUnicode_FromString, const char *text);
PYTHON(const char *, PyUnicode_AsUTF8AndSize, void *text, nr_ssize *size);
PYTHON(void *, PyUnicode_InternFromString, const char *text);
PYTHON(int, PySlice_Unpack, void *slice, nr_ssize *start, nr_ssize *stop, nr_ssize *step);
PYTHON(nr_ssize, PySlice_AdjustIndices, nr_ssize size, nr_ssize *start, nr_ssize *stop, nr_ssize step);
extern nr_object _Py_NoneStruct __attribute__((weak, visibility("default")));
extern nr_object _Py_EllipsisObject __attribute__((weak, visibility("default")));
extern nr_object PySlice_Type __attribute__((weak, visibility("default")));
extern nr_object PyBool_Type __attribute__((weak, visibility("default")));
extern nr_object _Py_NotImplementedStruct __attribute__((weak, visibility("default")));
extern nr_object PyLong_Type __attribute__((weak, visibility("default")));
extern nr_object PyUnicode_Type __attribute__((weak, visibility("default")));
extern nr_object PyBytes_Type __attribute__((weak, visibility("default")));
extern nr_object PyFloat_Type __attribute__((weak, visibility("default")));
#define NR_NONE ((void *)&_Py_NoneStruct)
#define NR_NOT_IMPLEMENTED ((void *)&_Py_NotImplementedStruct)

#endif
