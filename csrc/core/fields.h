/* fields: the declaration of a plan, the struct that a family of operations hands to a device.
 *
 *     NR_PLAN(nr_softmax_plan, NUM(int64_t, outer, n, inner), OUT(void *, out), IN(const void *, x, result),
 *             SIZES(p->outer, p->n, p->inner));
 *
 * It makes the struct, and in program/plans.c what a recording needs to know of it: the memory that a call reads and
 * writes, and the numbers in which calls that do the same agree. There is no other way to add a field.
 *
 *   NUM(type, names...)         numbers that decide what the call does
 *   DIMS(ndim, type, names...)  the same, arrays of int64_t whose last dimension has ndim numbers in use
 *   IN(type, names...)          addresses in tensors that the call reads; NULL: none
 *   OUT(type, names...)         addresses in tensors that it writes
 *   OUT_IF(condition, type, names...)  that it writes if so, or else reads; op: that of the call, p: the struct
 *   NEST(written, name)         an nr_plan; bit o of written: operand o is written
 *   ITEMS(type, name, count)    an array of structs, declared in the same way, and their number
 *   KEY(type, names...)         other addresses that decide what the call does
 *   OTHER(type, names...)       what may differ between calls that do the same
 *   SIZES(numbers...)           no field: the sizes that listings show, outermost first; without it those of the nest
 */
#ifndef NR_FIELDS_H
#define NR_FIELDS_H

/* m##a for each a: NR_MAP(NR_MEMBER_, NUM(int64_t, n), IN(const void *, x)) is the NR_MEMBER_ of NUM and of IN. */
#define NR_MAP(m, ...)                                                                                                 \
    NR_MAP_PICK(__VA_ARGS__, NR_MAP18, NR_MAP17, NR_MAP16, NR_MAP15, NR_MAP14, NR_MAP13, NR_MAP12, NR_MAP11, NR_MAP10, \
                NR_MAP9, NR_MAP8, NR_MAP7, NR_MAP6, NR_MAP5, NR_MAP4, NR_MAP3, NR_MAP2, NR_MAP1, )(m, __VA_ARGS__)
#define NR_MAP_PICK(a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q, r, s, name, ...) name
#define NR_MAP1(m, a) m##a
#define NR_MAP2(m, a, ...) m##a NR_MAP1(m, __VA_ARGS__)
#define NR_MAP3(m, a, ...) m##a NR_MAP2(m, __VA_ARGS__)
#define NR_MAP4(m, a, ...) m##a NR_MAP3(m, __VA_ARGS__)
#define NR_MAP5(m, a, ...) m##a NR_MAP4(m, __VA_ARGS__)
#define NR_MAP6(m, a, ...) m##a NR_MAP5(m, __VA_ARGS__)
#define NR_MAP7(m, a, ...) m##a NR_MAP6(m, __VA_ARGS__)
#define NR_MAP8(m, a, ...) m##a NR_MAP7(m, __VA_ARGS__)
#define NR_MAP9(m, a, ...) m##a NR_MAP8(m, __VA_ARGS__)
#define NR_MAP10(m, a, ...) m##a NR_MAP9(m, __VA_ARGS__)
#define NR_MAP11(m, a, ...) m##a NR_MAP10(m, __VA_ARGS__)
#define NR_MAP12(m, a, ...) m##a NR_MAP11(m, __VA_ARGS__)
#define NR_MAP13(m, a, ...) m##a NR_MAP12(m, __VA_ARGS__)
#define NR_MAP14(m, a, ...) m##a NR_MAP13(m, __VA_ARGS__)
#define NR_MAP15(m, a, ...) m##a NR_MAP14(m, __VA_ARGS__)
#define NR_MAP16(m, a, ...) m##a NR_MAP15(m, __VA_ARGS__)
#define NR_MAP17(m, a, ...) m##a NR_MAP16(m, __VA_ARGS__)
#define NR_MAP18(m, a, ...) m##a NR_MAP17(m, __VA_ARGS__)

#ifdef __cplusplus /* of which NVRTC has no __typeof__ */
extern "C++" {
template <class T> struct nr_same {
    typedef T is;
};
}
#define NR_TYPE_OF(type) nr_same<type>::is
#else
#define NR_TYPE_OF(type) __typeof__(type)
#endif
#define NR_MEMBER_NUM(type, ...) NR_TYPE_OF(type) __VA_ARGS__;
#define NR_MEMBER_DIMS(ndim, ...) NR_MEMBER_NUM(__VA_ARGS__)
#define NR_MEMBER_IN NR_MEMBER_NUM
#define NR_MEMBER_OUT NR_MEMBER_NUM
#define NR_MEMBER_OUT_IF(condition, ...) NR_MEMBER_NUM(__VA_ARGS__)
#define NR_MEMBER_NEST(written, name) nr_plan name;
#define NR_MEMBER_ITEMS(type, name, count) \
    const type *name;                      \
    int64_t count;
#define NR_MEMBER_KEY NR_MEMBER_NUM
#define NR_MEMBER_OTHER NR_MEMBER_NUM
#define NR_MEMBER_SIZES(...)

#define NR_PLAN(type, ...)              \
    typedef struct type type;           \
    struct type {                       \
        NR_MAP(NR_MEMBER_, __VA_ARGS__) \
    };                                  \
    NR_PLAN_VISIT(type, __VA_ARGS__)    \
    typedef struct type type
#define NR_PLAN_VISIT(type, ...) /* program/plans.c defines it */

#endif
