/* pointwise_dtype: the elementwise kernels of one dtype, out of the formulas of ops.def: a dense one, that moves up to
 * 16 bytes an access, and one for any strides; pointwise.cu has the picture, and chooses. Compiled once a dtype. */
#include "formulas.cuh"
#include "pointwise.cuh"

/* ---- kernels -------------------------------------------------------------------------------------------------- */

/* D: the dtype; choice: the first input is a bool. */
template <template <class> class Row, class D, bool choice> struct kernels_of {
    using T = typename D::T;
    using In = D;
    using First = typename choose<choice, dtype_bool, D>::type;
    using Out = typename choose<is_same<typename Row<T>::R, bool>, dtype_bool, D>::type;
    static constexpr int width = sizeof(typename D::S) >= 8 ? 2 : sizeof(typename D::S) == 4 ? 4 : 8;
    static DEVICE typename Out::T compute(typename First::T x, T y, T z) { return Row<T>::f(x, y, z); }
};

/* n neighbours from the i-th of `count`; `wide`: there are so many, at addresses that one access may take. */
template <class K, int inputs, int n>
DEVICE void compute_run(void *to, int32_t number, const operand (&in)[NR_INPUTS], int64_t i, int64_t count, bool wide) {
    typename K::First::T x[n];
    typename K::T y[n] = {}, z[n] = {};
    typename K::Out::T out[n];
    load<typename K::First, n>(x, number, in[0], i, count, wide);
    if (inputs > 1) load<typename K::In, n>(y, number, in[1], i, count, wide);
    if (inputs > 2) load<typename K::In, n>(z, number, in[2], i, count, wide);
    for (int k = 0; k < n; k++) out[k] = K::compute(x[k], y[k], z[k]);
    store<typename K::Out, n>(to, number, out, i, count, wide);
}

template <class K, int inputs, int n> __global__ void __launch_bounds__(NR_BLOCK) dense(const dense_args a) {
    int64_t i = ((int64_t)blockIdx.x * NR_BLOCK + threadIdx.x) * n;
    if (i >= a.n) return;
    compute_run<K, inputs, n>(a.out, a.number, a.in, i, a.n, a.aligned && i + n <= a.n);
}

template <class D> DEVICE typename D::T element(int32_t number, const operand &x, int64_t at) {
    return x.data ? load_one<D>(number, x.data + at) : widen<D>(immediate<typename D::S>(x.value));
}

template <class K, int inputs> __global__ void __launch_bounds__(NR_BLOCK) strided(const strided_args a) {
    uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;
    if (i >= a.n) return;
    int64_t at[NR_INPUTS + 1];
    a.where.find(i, at);
    if (a.runs) {
        operand in[NR_INPUTS] = {};
        for (int o = 0; o < inputs; o++) {
            in[o] = a.in[o];
            if (in[o].data) in[o].data += at[o + 1];
        }
        return compute_run<K, inputs, K::width>(a.out + at[0], a.number, in, 0, K::width, true);
    }
    typename K::First::T x = element<typename K::First>(a.number, a.in[0], at[1]);
    typename K::T y = {}, z = {};
    if (inputs > 1) y = element<typename K::In>(a.number, a.in[1], at[2]);
    if (inputs > 2) z = element<typename K::In>(a.number, a.in[2], at[3]);
    store_one<typename K::Out>(a.number, a.out + at[0], K::compute(x, y, z));
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

template <template <class> class Row, class D, int domain, int inputs, bool choice = false>
static void enter(nr_kernel_rows kernels, int op) {
    if constexpr ((domain & D::kind) != 0) {
        using K = kernels_of<Row, D, choice>;
        constexpr int of_halves = sizeof(typename D::S) == 4 ? 8 : K::width; /* D computes for dtypes of 2 bytes */
        static const pointwise_kernel entry = {
            dense<K, inputs, K::width>,          dense<K, inputs, of_halves>, strided<K, inputs>, K::width, choice,
            is_same<typename K::Out, dtype_bool>};
        kernels[op][D::code] = reinterpret_cast<nr_kernel>(reinterpret_cast<uintptr_t>(&entry));
    }
}

void NR_JOIN2(nr_fill_pointwise, NR_DTYPE_NAME)(nr_kernel_rows kernels) {
    using D = NR_JOIN2(dtype, NR_DTYPE_NAME);
#define UNARY(name, domain, result, formula) enter<row_##name, D, NR_DOMAIN_##domain, 1>(kernels, NR_OP_##name);
#define BINARY(name, domain, result, formula) enter<row_##name, D, NR_DOMAIN_##domain, 2>(kernels, NR_OP_##name);
#define TERNARY(name, domain, result, formula) enter<row_##name, D, NR_DOMAIN_##domain, 3>(kernels, NR_OP_##name);
#define CHOICE(name, domain, result, formula) enter<row_##name, D, NR_DOMAIN_##domain, 3, true>(kernels, NR_OP_##name);
#include "../ops.def"
}
