/* simulated_mma: the functions of csrc/cuda/mma.cuh on the CPU. Copies happen when they are waited for, and until then
 * their places in shared memory hold NaN; products are collected from all lanes of a warp. Sums of float32 are cut toward
 * zero, as tensor cores do it; which bits they cut is not documented, so that only the trend is theirs. */
#ifndef CUDASIM_MMA_H
#define CUDASIM_MMA_H

static inline uint32_t shared_address(const void *p) { return cudasim::shared_offset(p); }

template <int bytes> static inline void copy_async(uint32_t to, const void *from, bool valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "");
    cudasim::copy_later(to, from, bytes, valid);
}
static inline void commit_copies() { cudasim::end_copy_group(); }
template <int pending> static inline void wait_copies() { cudasim::finish_copies(pending); }

namespace cudasim {

/* What a lane brings to an instruction of its warp; run computes for one lane when all 32 have come. */
struct matrix_load : warp_task {
    uint32_t at;
    uint32_t (&r)[4];
    matrix_load(void (*run)(warp_task *const *, int), uint32_t at, uint32_t (&r)[4]) : warp_task{run}, at(at), r(r) {}
};

template <bool transposed> void load_for(warp_task *const *lanes, int lane) {
    const int g = lane / 4, t = lane % 4;
    matrix_load &own = *static_cast<matrix_load *>(lanes[lane]);
    for (int i = 0; i < 4; i++) {
        uint16_t pair[2];
        for (int e = 0; e < 2; e++) {
            const int row = transposed ? 2 * t + e : g, column = transposed ? g : 2 * t + e;
            const uint32_t at = static_cast<matrix_load *>(lanes[i * 8 + row])->at;
            memcpy(&pair[e], shared_bytes(at, 16, 16) + column * 2, 2);
        }
        memcpy(&own.r[i], pair, 4);
    }
}

/* m16 n8: sums of type Sum, registers of type Word. */
template <class Sum, class Word> struct product : warp_task {
    Sum (&c)[4];
    const Word *a, *b;
    bool from_zero;
    product(void (*run)(warp_task *const *, int), Sum (&c)[4], const Word *a, const Word *b, bool from_zero)
        : warp_task{run}, c(c), a(a), b(b), from_zero(from_zero) {}
};

static inline float cut_toward_zero(double x) {
    float y = (float)x;
    return fabs((double)y) > fabs(x) && !isinf(y) ? nextafterf(y, 0.0f) : y;
}

using product32 = product<float, uint32_t>;
static inline void tf32_for(warp_task *const *lanes, int lane) {
    product32 &own = *static_cast<product32 *>(lanes[lane]);
    auto number = [](uint32_t bits) { return (double)__int_as_float((int)(bits & 0xffffe000u)); };
    for (int q = 0; q < 4; q++) {
        const int g = lane / 4, t = lane % 4;
        const int row = g + 8 * (q / 2), column = 2 * t + q % 2;
        double sum = own.from_zero ? 0.0 : (double)own.c[q];
        for (int k = 0; k < 8; k++) {
            const auto &a = *static_cast<product32 *>(lanes[row % 8 * 4 + k % 4]);
            const auto &b = *static_cast<product32 *>(lanes[column * 4 + k % 4]);
            sum += number(a.a[row / 8 + 2 * (k / 4)]) * number(b.b[k / 4]);
        }
        own.c[q] = cut_toward_zero(sum);
    }
}

template <class D> void mma_16bit_for(warp_task *const *lanes, int lane) {
    product32 &own = *static_cast<product32 *>(lanes[lane]);
    auto number = [](uint32_t pair, int half) {
        return (double)widen<D>((typename D::S)(half ? pair >> 16 : pair & 0xffff));
    };
    for (int q = 0; q < 4; q++) {
        const int g = lane / 4, t = lane % 4;
        const int row = g + 8 * (q / 2), column = 2 * t + q % 2;
        double sum = (double)own.c[q];
        for (int k = 0; k < 16; k++) {
            const auto &a = *static_cast<product32 *>(lanes[row % 8 * 4 + k % 8 / 2]);
            const auto &b = *static_cast<product32 *>(lanes[column * 4 + k % 8 / 2]);
            sum += number(a.a[row / 8 + 2 * (k / 8)], k % 2) * number(b.b[k / 8], k % 2);
        }
        own.c[q] = cut_toward_zero(sum);
    }
}

using product64 = product<double, double>;
static inline void float64_for(warp_task *const *lanes, int lane) {
    product64 &own = *static_cast<product64 *>(lanes[lane]);
    for (int q = 0; q < 4; q++) {
        const int g = lane / 4, t = lane % 4;
        const int row = g + 8 * (q / 2), column = 2 * t + q % 2;
        for (int k = 0; k < 16; k++) {
            const auto &a = *static_cast<product64 *>(lanes[row % 8 * 4 + k % 4]);
            const auto &b = *static_cast<product64 *>(lanes[column * 4 + k % 4]);
            own.c[q] = fma(a.a[row / 8 + 2 * (k / 4)], b.b[k / 4], own.c[q]);
        }
    }
}

} // namespace cudasim

static inline void load_matrices(uint32_t (&r)[4], uint32_t at) {
    cudasim::matrix_load own(cudasim::load_for<false>, at, r);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}
static inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t at) {
    cudasim::matrix_load own(cudasim::load_for<true>, at, r);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}

template <class D> static inline void mma_16bit(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const uint32_t b[2] = {b0, b1};
    cudasim::product32 own(cudasim::mma_16bit_for<D>, c, a, b, false);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}
static inline void mma_tf32(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const uint32_t b[2] = {b0, b1};
    cudasim::product32 own(cudasim::tf32_for, c, a, b, false);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}
static inline void mma_tf32_from_zero(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const uint32_t b[2] = {b0, b1};
    cudasim::product32 own(cudasim::tf32_for, c, a, b, true);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}
static inline uint32_t round_tf32(uint32_t x) {
    return (x & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : (x + 0x1000u) & 0xffffe000u;
}
static inline void mma_float64(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
    cudasim::product64 own(cudasim::float64_for, c, a, b, false);
    cudasim::cooperate(&own, __FILE__, __LINE__);
}

#endif
