/* fold: the sum and the largest of the lanes of a vector, by halves, in registers. Included once for each float type T
 * by files that define NAME(vec), a vector of VECTOR bytes. Vectors are passed by address, as not all builds have such
 * registers.
 *
 *   a b c d e f g h  ->  a+e b+f c+g d+h  ->  (a+e)+(c+g)  (b+f)+(d+h)  ->  their sum
 *
 * A sum in as many steps as its length has doublings: Hillis and Steele, "Data Parallel Algorithms" (CACM 29, 1986). */

typedef T NAME(lanes_16) __attribute__((vector_size(16)));
typedef T NAME(lanes_32) __attribute__((vector_size(32)));
typedef T NAME(lanes_64) __attribute__((vector_size(64)));

#define SUM(a, b) (a) + (b)
#define BITS(v, like) (__typeof__(like))(v)
#define LARGER(a, b) BITS((((b) > (a)) & BITS(b, (b) > (a))) | (~((b) > (a)) & BITS(a, (b) > (a))), a)
#define LARGER_ONE(a, b) (b) > (a) ? (b) : (a)

#define HALVE(name, size, half, COMBINE)                                \
    static inline T NAME(name##_##size)(const NAME(lanes_##size) * v) { \
        NAME(lanes_##half) low, high;                                   \
        memcpy(&low, v, sizeof low);                                    \
        memcpy(&high, (const char *)v + sizeof low, sizeof high);       \
        low = COMBINE(low, high);                                       \
        return NAME(name##_##half)(&low);                               \
    }
#define FOLD(name, COMBINE, COMBINE_ONE)                                           \
    static inline T NAME(name##_16)(const NAME(lanes_16) * at) {                   \
        const NAME(lanes_16) v = *at;                                              \
        const int last = (int)(16 / sizeof(T)) - 1;                                \
        T even = COMBINE_ONE(v[0], v[last - 1]), odd = COMBINE_ONE(v[1], v[last]); \
        return last == 1 ? COMBINE_ONE(v[0], v[1]) : COMBINE_ONE(even, odd);       \
    }                                                                              \
    HALVE(name, 32, 16, COMBINE)                                                   \
    HALVE(name, 64, 32, COMBINE)                                                   \
    static inline T NAME(name##_across)(const NAME(vec) * v) {                     \
        NAME(NR_JOIN2(lanes, VECTOR)) lanes;                                       \
        memcpy(&lanes, v, sizeof lanes);                                           \
        return NAME(NR_JOIN2(name, VECTOR))(&lanes);                               \
    }

FOLD(sum, SUM, SUM)
FOLD(largest, LARGER, LARGER_ONE)
#undef SUM
#undef BITS
#undef LARGER
#undef LARGER_ONE
#undef HALVE
#undef FOLD
