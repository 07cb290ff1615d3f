/* columns: sequences of tensors as arguments of calls.c: the tensors of cat, index tensors, the parameters of an
 * optimizer. */

/* Sequences of tensors of one length, each as an array: in `few` up to FEW_POINTERS of them, otherwise in `memory`. */
#define FEW_POINTERS 80
#define MOST_COLUMNS 5
typedef struct columns {
    int64_t count;
    void **column[MOST_COLUMNS];
    void **memory;
    void *tuples[MOST_COLUMNS];
    void *few[FEW_POINTERS];
} columns;

static bool take_columns(const char *name, void *from, int width, columns *to) {
    to->memory = NULL;
    for (int c = 0; c < MOST_COLUMNS; c++) to->tuples[c] = to->column[c] = NULL;
    void *rows = width > 1 ? PySequence_Tuple(from) : NULL;
    if (width > 1 && (!rows || PyTuple_Size(rows) != width)) {
        if (rows) Py_DecRef(rows);
        return nr_refuse(name, "a tuple of sequences of tensors", from);
    }
    bool good = true;
    to->count = -1;
    for (int c = 0; good && c < width; c++) {
        void *row = rows ? PyTuple_GetItem(rows, c) : from;
        if (row == NR_NONE && c > 0) continue;
        to->tuples[c] = PySequence_Tuple(row);
        if (!to->tuples[c]) {
            good = PyErr_ExceptionMatches(PyExc_TypeError) && nr_refuse(name, "a sequence of tensors", row);
            break;
        }
        int64_t count = PyTuple_Size(to->tuples[c]);
        if (c == 0) {
            to->count = count;
            if (count * width > FEW_POINTERS && !(to->memory = nr_malloc((size_t)(count * width) * sizeof(void *))))
                good = nr_fail(NORCH_ERROR_MEMORY, "%s: out of memory", name) == NORCH_OK;
        } else if (count != to->count) {
            good = nr_fail(NORCH_ERROR_VALUE, "%s: %lld tensors beside %lld", name, (long long)count,
                           (long long)to->count) == NORCH_OK;
        }
        if (!good) break;
        to->column[c] = (to->memory ? to->memory : to->few) + c * count;
        for (int64_t k = 0; good && k < count; k++) {
            tensor x = NULL;
            good = take_tensor(name, PyTuple_GetItem(to->tuples[c], k), &x);
            to->column[c][k] = x;
        }
    }
    if (rows) Py_DecRef(rows);
    return good;
}

static inline void drop_columns(columns *taken) {
    for (int c = 0; c < MOST_COLUMNS; c++)
        if (taken->tuples[c]) Py_DecRef(taken->tuples[c]);
    nr_free(taken->memory);
}
