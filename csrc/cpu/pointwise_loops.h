/* pointwise_loops: the loops around elementwise formulas. Included once for each dtype and result, with
 *   T, S  the type that formulas see, and the type in memory      R, RS  the same of the result
 *   LOOP_NAME(form)                                               the name to define
 *
 * Plain C: unit strides, and one scalar operand, are cases of their own because only there compilers make
 * vectors. IVDEP promises that an output is an input itself or does not touch it. */

static inline __attribute__((always_inline)) void LOOP_NAME(unary)(int64_t n, char *const *p, const int64_t *s,
                                                                   R (*f)(T)) {
    if (s[0] == sizeof(RS) && s[1] == sizeof(S)) {
        RS *out = (RS *)(void *)p[0];
        const S *x = (const S *)(const void *)p[1];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)x[i]);
    } else {
        char *out = p[0], *x = p[1];
        for (int64_t i = 0; i < n; i++, out += s[0], x += s[1]) *(RS *)(void *)out = f((T) * (const S *)(void *)x);
    }
}

static inline __attribute__((always_inline)) void LOOP_NAME(binary)(int64_t n, char *const *p, const int64_t *s,
                                                                    R (*f)(T, T)) {
    RS *out = (RS *)(void *)p[0];
    const S *a = (const S *)(const void *)p[1], *b = (const S *)(const void *)p[2];
    bool dense = s[0] == sizeof(RS);
    if (dense && s[1] == sizeof(S) && s[2] == sizeof(S)) {
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], (T)b[i]);
    } else if (dense && s[1] == sizeof(S) && s[2] == 0) {
        T one = (T)*b;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], one);
    } else if (dense && s[1] == 0 && s[2] == sizeof(S)) {
        T one = (T)*a;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(one, (T)b[i]);
    } else {
        char *q = p[0], *x = p[1], *y = p[2];
        for (int64_t i = 0; i < n; i++, q += s[0], x += s[1], y += s[2])
            *(RS *)(void *)q = f((T) * (const S *)(void *)x, (T) * (const S *)(void *)y);
    }
}

static inline __attribute__((always_inline)) void LOOP_NAME(ternary)(int64_t n, char *const *p, const int64_t *s,
                                                                     R (*f)(T, T, T)) {
    RS *out = (RS *)(void *)p[0];
    const S *a = (const S *)(const void *)p[1];
    if (s[0] == sizeof(RS) && s[1] == sizeof(S) && s[2] == 0 && s[3] == 0) {
        T b = (T) * (const S *)(void *)p[2], c = (T) * (const S *)(void *)p[3];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], b, c);
    } else if (s[0] == sizeof(RS) && s[1] == sizeof(S) && s[2] == sizeof(S) && s[3] == sizeof(S)) {
        const S *b = (const S *)(const void *)p[2], *c = (const S *)(const void *)p[3];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], (T)b[i], (T)c[i]);
    } else {
        char *q = p[0], *x = p[1], *y = p[2], *z = p[3];
        for (int64_t i = 0; i < n; i++, q += s[0], x += s[1], y += s[2], z += s[3])
            *(RS *)(void *)q = f((T) * (const S *)(void *)x, (T) * (const S *)(void *)y, (T) * (const S *)(void *)z);
    }
}

/* The first operand is a bool in memory of its own size. */
static inline __attribute__((always_inline)) void LOOP_NAME(choice)(int64_t n, char *const *p, const int64_t *s,
                                                                    R (*f)(bool, T, T)) {
    RS *out = (RS *)(void *)p[0];
    const uint8_t *a = (const uint8_t *)p[1];
    const S *b = (const S *)(const void *)p[2], *c = (const S *)(const void *)p[3];
    if (s[0] == sizeof(RS) && s[1] == 1 && s[2] == sizeof(S) && s[3] == sizeof(S)) {
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(a[i] != 0, (T)b[i], (T)c[i]);
    } else if (s[0] == sizeof(RS) && s[1] == 1 && s[2] == sizeof(S) && s[3] == 0) {
        T one = (T)*c;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(a[i] != 0, (T)b[i], one);
    } else if (s[0] == sizeof(RS) && s[1] == 1 && s[2] == 0 && s[3] == sizeof(S)) {
        T one = (T)*b;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(a[i] != 0, one, (T)c[i]);
    } else {
        char *q = p[0], *x = p[1], *y = p[2], *z = p[3];
        for (int64_t i = 0; i < n; i++, q += s[0], x += s[1], y += s[2], z += s[3])
            *(RS *)(void *)q = f(*x != 0, (T) * (const S *)(void *)y, (T) * (const S *)(void *)z);
    }
}
