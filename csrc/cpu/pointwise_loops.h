/* pointwise_loops: the loops around elementwise formulas. Included once for each dtype and result, with
 *   T, S  the type that formulas see, and the type in memory      R, RS  the same of the result
 *   LOOP_NAME(form)                                               the name to define; the last three are undefined here
 *
 * Plain C: compilers vectorise loops over contiguous operands. Other operands, except scalars in some places, are
 * packed piece by piece first, as in a[::3] + b:
 *
 *   a  0 . . 1 . . 2 . . 3      x  0 1 2 3
 *   b  0 1 2 3                  y  0 1 2 3, where it lies        out[i] = f(x[i], y[i])
 *
 * Results pass a buffer likewise if they are strided, or too large for the cache (stream.h). For long formulas one loop
 * serves contiguous operands too, as a piece without packing: more copies would make the library 0.7 MB larger. IVDEP
 * asserts that an output either is an input or does not overlap it. */

/* n elements of an operand from element `first` on, in place or packed into buffer, which a scalar fills only once. */
static __attribute__((noinline)) const S *LOOP_NAME(packed)(S *buffer, const char *p, int64_t stride, int64_t first,
                                                            int64_t n) {
    if (stride == sizeof(S)) return (const S *)(const void *)p + first;
    if (stride == 0 && first > 0) return buffer;
    p += first * stride;
    if (stride == 2 * sizeof(S)) { /* a constant stride, which compilers vectorise */
        for (int64_t i = 0; i < n; i++) buffer[i] = ((const S *)(const void *)p)[2 * i];
        return buffer;
    }
    for (int64_t i = 0; i < n; i++) buffer[i] = *(const S *)(const void *)(p + i * stride);
    return buffer;
}

/* Writes the results in a buffer to the output, bypassing the cache if that is contiguous. */
static __attribute__((noinline)) void LOOP_NAME(put)(const RS *buffer, char *p, int64_t stride, int64_t n) {
    if (stride == sizeof(RS))
        nr_stream(p, buffer, (size_t)n * sizeof(RS));
    else
        for (int64_t i = 0; i < n; i++) *(RS *)(void *)(p + i * stride) = buffer[i];
}

/* quick, if given, is a faster formula, equal to f where hard(x) is not negative; it is used for pieces of which that
 * holds throughout, and which are long enough for the test to pay. most, if given, is f for most arguments, and NaN
 * for those that rest is for. */
#ifndef WORTH_A_TEST
#define WORTH_A_TEST 32
#endif
INLINE void LOOP_NAME(unary)(int64_t n, char *const *p, const int64_t *s, bool streams, R (*f)(T), INTEGER (*hard)(T),
                             T (*quick)(T), T (*most)(T), T (*rest)(T)) {
    RS *out = (RS *)(void *)p[0], result[PACKED];
    S buffer[PACKED];
    const bool dense = s[0] == sizeof(RS) && !streams;
    const bool whole = dense && s[1] == sizeof(S) && !quick && !most;
    const int64_t piece = whole ? n : PACKED;
    for (int64_t first = 0; first < n; first += piece) {
        const int64_t count = n - first < piece ? n - first : piece;
        const S *x = s[1] == sizeof(S) ? (const S *)(const void *)p[1] + first
                                       : LOOP_NAME(packed)(buffer, p[1], s[1], first, count);
        if (most && p[0] == p[1] && x != buffer)
            x = memcpy(buffer, x, (size_t)count * sizeof(S)); /* it is read again */
        RS *to = dense ? out + first : result;
        const bool tested = quick && count >= WORTH_A_TEST;
        INTEGER signs = tested ? 0 : -1;
        if (tested)
            for (int64_t i = 0; i < count; i++) signs |= hard((T)x[i]);
        if (tested && signs >= 0)
            IVDEP for (int64_t i = 0; i < count; i++) to[i] = (RS)quick((T)x[i]);
        else if (most) {
            IVDEP for (int64_t i = 0; i < count; i++) to[i] = (RS)most((T)x[i]);
            for (int64_t i = 0; i < count; i++)
                if (to[i] != to[i]) to[i] = (RS)rest((T)x[i]);
        } else
            IVDEP for (int64_t i = 0; i < count; i++) to[i] = f((T)x[i]);
        if (to == result) LOOP_NAME(put)(result, p[0] + first * s[0], s[0], count);
    }
}

/* pack_scalars: a scalar is packed like a strided operand, because formulas with conditions on it are not vectorised.
 * one_loop: there is one loop only, for which scalars are packed too. quick, if given, is a faster formula, equal to f
 * for arguments that are `easy`; it is used for pieces of which all are. */
INLINE void LOOP_NAME(binary)(int64_t n, char *const *p, const int64_t *s, bool streams, R (*f)(T, T),
                              const bool pack_scalars, const bool one_loop, bool (*easy)(T, T), T (*quick)(T, T)) {
    RS *out = (RS *)(void *)p[0], result[PACKED];
    const S *a = (const S *)(const void *)p[1], *b = (const S *)(const void *)p[2];
    const bool dense = s[0] == sizeof(RS) && !streams, whole = dense && s[1] == sizeof(S) && s[2] == sizeof(S);
    if (!quick && !one_loop && whole) {
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], (T)b[i]);
        return;
    }
    if (!pack_scalars && !one_loop && dense && s[1] == sizeof(S) && s[2] == 0) {
        const T one = (T)*b;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], one);
        return;
    }
    if (!pack_scalars && !one_loop && dense && s[1] == 0 && s[2] == sizeof(S)) {
        const T one = (T)*a;
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(one, (T)b[i]);
        return;
    }
    const bool packs = pack_scalars || one_loop || streams || (EASY(s[1]) && EASY(s[2]));
    if (!packs) { /* for short formulas packing costs more than vectors gain */
        char *to = p[0], *x = p[1], *y = p[2];
        for (int64_t i = 0; i < n; i++, to += s[0], x += s[1], y += s[2])
            *(RS *)(void *)to = f((T) * (const S *)(void *)x, (T) * (const S *)(void *)y);
        return;
    }
    S buffer[2][PACKED];
    const int64_t piece = one_loop && whole ? n : PACKED;
    for (int64_t first = 0; first < n; first += piece) {
        const int64_t count = n - first < piece ? n - first : piece;
        const S *x = LOOP_NAME(packed)(buffer[0], p[1], s[1], first, count);
        const S *y = LOOP_NAME(packed)(buffer[1], p[2], s[2], first, count);
        RS *to = dense ? out + first : result;
        INTEGER signs = quick ? 0 : -1; /* an integer as wide as T: a bool would be converted for each element */
        if (quick)
            for (int64_t i = 0; i < count; i++) signs |= easy((T)x[i], (T)y[i]) ? 0 : -1;
        if (signs >= 0)
            IVDEP for (int64_t i = 0; i < count; i++) to[i] = (RS)quick((T)x[i], (T)y[i]);
        else
            IVDEP for (int64_t i = 0; i < count; i++) to[i] = f((T)x[i], (T)y[i]);
        if (to == result) LOOP_NAME(put)(result, p[0] + first * s[0], s[0], count);
    }
}

INLINE void LOOP_NAME(ternary)(int64_t n, char *const *p, const int64_t *s, bool streams, R (*f)(T, T, T),
                               const bool one_loop) {
    RS *out = (RS *)(void *)p[0], result[PACKED];
    const bool dense = s[0] == sizeof(RS) && !streams;
    if (!one_loop && dense && s[1] == sizeof(S) && s[2] == 0 && s[3] == 0) { /* clamp */
        const S *a = (const S *)(const void *)p[1];
        const T b = (T) * (const S *)(void *)p[2], c = (T) * (const S *)(void *)p[3];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], b, c);
        return;
    }
    if (!one_loop && dense && s[1] == 0 && s[2] == sizeof(S) && s[3] == 0) { /* addcmul of a channel */
        const S *b = (const S *)(const void *)p[2];
        const T a = (T) * (const S *)(void *)p[1], c = (T) * (const S *)(void *)p[3];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f(a, (T)b[i], c);
        return;
    }
    if (!one_loop && dense && s[1] == sizeof(S) && s[2] == 0 && s[3] == sizeof(S)) { /* addr */
        const S *a = (const S *)(const void *)p[1], *c = (const S *)(const void *)p[3];
        const T b = (T) * (const S *)(void *)p[2];
        IVDEP for (int64_t i = 0; i < n; i++) out[i] = f((T)a[i], b, (T)c[i]);
        return;
    }
    S buffer[3][PACKED];
    for (int64_t first = 0; first < n; first += PACKED) {
        const int64_t count = n - first < PACKED ? n - first : PACKED;
        const S *x = LOOP_NAME(packed)(buffer[0], p[1], s[1], first, count);
        const S *y = LOOP_NAME(packed)(buffer[1], p[2], s[2], first, count);
        const S *z = LOOP_NAME(packed)(buffer[2], p[3], s[3], first, count);
        RS *to = dense ? out + first : result;
        IVDEP for (int64_t i = 0; i < count; i++) to[i] = f((T)x[i], (T)y[i], (T)z[i]);
        if (to == result) LOOP_NAME(put)(result, p[0] + first * s[0], s[0], count);
    }
}

/* The first operand is a bool in memory of its own size. */
INLINE void LOOP_NAME(choice)(int64_t n, char *const *p, const int64_t *s, bool streams, R (*f)(bool, T, T)) {
    RS *out = (RS *)(void *)p[0], result[PACKED];
    const bool dense = s[0] == sizeof(RS) && !streams;
    S buffer[2][PACKED];
    uint8_t truths[PACKED];
    for (int64_t first = 0; first < n; first += PACKED) {
        const int64_t count = n - first < PACKED ? n - first : PACKED;
        const uint8_t *a = (const uint8_t *)p[1] + first;
        const S *x = LOOP_NAME(packed)(buffer[0], p[2], s[2], first, count);
        const S *y = LOOP_NAME(packed)(buffer[1], p[3], s[3], first, count);
        if (s[1] != 1) {
            a = truths;
            for (int64_t i = 0; i < count; i++) truths[i] = *((const uint8_t *)p[1] + (first + i) * s[1]);
        }
        RS *to = dense ? out + first : result;
        IVDEP for (int64_t i = 0; i < count; i++) to[i] = f(a[i] != 0, (T)x[i], (T)y[i]);
        if (to == result) LOOP_NAME(put)(result, p[0] + first * s[0], s[0], count);
    }
}
#undef LOOP_NAME
#undef R
#undef RS
