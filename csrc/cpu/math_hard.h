/* math_hard: which arguments the quick formulas are not for; the last part of math.h's functions.
 *
 * nr_hard_NAME(x) is negative where nr_quick_NAME(x) may differ from NAME(x). It is an integer, so that one
 * "or" gathers the signs of a vector. */

#define NR_HARD(name, limit, wide_limit)                                                                            \
    NR_INLINE int32_t nr_hard_##name##_f32(float x) { return (int32_t)((limit) - (nr_bits_f32(x) & 0x7fffffffu)); } \
    NR_INLINE int64_t nr_hard_##name##_f64(double x) {                                                              \
        return (int64_t)((wide_limit) - (nr_bits_f64(x) & 0x7fffffffffffffffu));                                    \
    }
NR_HARD(exp, 0x42ae0000u, 0x4086200000000000u)   /* |x| <= 87, 708 */
NR_HARD(exp2, 0x42fc0000u, 0x408ff00000000000u)  /* |x| <= 126, 1022 */
NR_HARD(angle, 0x48000000u, 0x4170000000000000u) /* EASY_ANGLE */
#undef NR_HARD

/* Normal x above 0. */
NR_INLINE int32_t nr_hard_log_f32(float x) {
    uint32_t bits = nr_bits_f32(x);
    return (int32_t)((bits - 0x00800000u) | (0x7f7fffffu - bits));
}
NR_INLINE int64_t nr_hard_log_f64(double x) {
    uint64_t bits = nr_bits_f64(x);
    return (int64_t)((bits - 0x0010000000000000u) | (0x7fefffffffffffffu - bits));
}

/* |x| <= 0.999, where the first polynomial serves; with fused multiply-adds that of float (math_special.h). */
NR_INLINE int32_t nr_hard_erfinv_f32(float x) { return (int32_t)(0x3f7fbe77u - (nr_bits_f32(x) & 0x7fffffffu)); }
#if !NR_HAS_FMA
NR_INLINE float nr_quick_erfinv_f32(float x) {
    double y = (double)x;
    return (float)(y * nr_erfinv_near(-nr_log_wide((1.0 - y) * (1.0 + y))));
}
#endif
