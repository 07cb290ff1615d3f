/* chain_source: a chain as the text of a kernel. A call becomes a line, in which its formula is the class that
 * formulas.cuh makes of its row of ops.def, and which is rounded as memory would round it. So the bits are those of the
 * kernels that walk the chain (chain_dtype.cu), and of the calls alone: x * 0.5 and then tanh is
 *
 *   const T t0 = rounded<D>(dtype_float32::code, (T)row_mul<T>::f(at.load(0, dtype_float32::code),
 *                                                                  at.constant(1, dtype_float32::code), T()));
 *   at.store(2, dtype_float32::code, (T)row_tanh<T>::f(t0, T(), T()));
 *
 * A register of the chain is a variable while its phase lasts (chain_dtype.cu has the phases of rows),
 * and lies in shared memory only if a later phase reads it. Sizes and strides are arguments: one
 * kernel does for all sizes of a batch. */
#include <stdarg.h>
#include <stdio.h>

#include "chain_compile.cuh"

namespace {

struct writer {
    const chain_args &a;
    std::string text;

    __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
        char line[256];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(line, sizeof line, format, arguments);
        va_end(arguments);
        text += line;
    }

    static const char *name(int dtype) { return nr_library->dtypes[dtype].name; }
    static const char *row(const chain_step &step) {
        return step.op == NR_CHAIN_COPY ? "copy" : nr_library->ops[step.op].name;
    }

    bool reads(const chain_step &step, int where) const {
        const int inputs = step.role == NR_INTO_ROW ? 1 : step.inputs;
        for (int o = 0; o < inputs; o++)
            if (step.in[o] == where) return true;
        return false;
    }

    /* Whether the result of step s is read in a register after the end of its phase. */
    bool outlives(int s, int end) const {
        const int where = a.steps[s].out;
        for (int k = s + 1; k < a.count; k++) {
            if (k >= end && reads(a.steps[k], where)) return true;
            if (a.steps[k].out == where) return false;
        }
        return false;
    }

    /* Input o of step s, whose phase begins with step `first`. */
    void add_input(int s, int o, int first) {
        const chain_step &step = a.steps[s];
        const int where = step.in[o], k = where - NR_CHAIN_REGISTERS;
        if (k >= 0) {
            const char *how = a.operands[k].data ? "load" : "constant";
            return add("at.%s(%d, dtype_%s::code)", how, k, name(o == 0 ? step.first : step.from));
        }
        for (int p = s - 1; p >= first; p--)
            if (a.steps[p].out == where) return add("t%d", p);
        add("at.in_register(%d)", where);
    }

    void add_value(int s, int first) {
        const chain_step &step = a.steps[s];
        if (step.op == NR_CHAIN_COPY) return add_input(s, 0, first);
        add("(T)row_%s<T>::f(", row(step));
        for (int o = 0; o < NR_MAX_OPERANDS - 1; o++) {
            if (o) add(", ");
            if (o < step.inputs)
                add_input(s, o, first);
            else
                add("T()");
            if (o == 0 && nr_library->ops[step.op].form == NR_CHOICE) add(" != 0");
        }
        add(")");
    }

    /* The steps of a phase, none of which reduces. */
    void add_steps(int first, int end, const char *indent) {
        for (int s = first; s < end; s++) {
            const chain_step &step = a.steps[s];
            const bool stores = step.out >= NR_CHAIN_REGISTERS;
            if (stores)
                add("%sat.store(%d, dtype_%s::code, ", indent, step.out - NR_CHAIN_REGISTERS, name(step.to));
            else
                add("%sconst T t%d = rounded<D>(dtype_%s::code, ", indent, s, name(step.to));
            add_value(s, first);
            add(");\n");
            if (!stores && outlives(s, end)) add("%sat.in_register(%d) = t%d;\n", indent, step.out, s);
        }
    }

    void add_reduction(int s) {
        const chain_step &step = a.steps[s];
        add("    constexpr chain_step step%d = {NR_OP_%s, NR_INTO_ROW, %d, {%d, %d, 0}, 0, ", s, row(step), step.out,
            step.in[0], step.in[1]);
        add("dtype_%s::code, dtype_%s::code, dtype_%s::code};\n", name(step.first), name(step.from), name(step.to));
        add("    reduce_rows<row_%s<D>, D, loops>(a, step%d, shared, rows);\n", row(step), s);
    }

    void add_elements() {
        add("    const uint32_t i = blockIdx.x * NR_BLOCK + threadIdx.x;\n    if (i >= a.n) return;\n");
        add("    const element_of<D, loops> at(a, nullptr, i, 0, 0);\n");
        add_steps(0, a.count, "    ");
    }

    void add_rows() {
        add("    DYNAMIC_SHARED(T, registers);\n    __shared__ warp_state of_warps[NR_BLOCK / 32];\n");
        add("    const shared_of<D> shared = {registers, of_warps};\n    const rows_of_block rows(a);\n");
        add("    const uint32_t row = a.row.size;\n    (void)shared, (void)row;\n");
        for (int s = 0, end; s < a.count; s = end) {
            end = s + 1;
            if (a.steps[s].role == NR_INTO_ROW) {
                add_reduction(s);
            } else {
                while (end < a.count && a.steps[end].role == a.steps[s].role) end++;
                const bool each = a.steps[s].role == NR_EACH;
                add("    for (uint32_t i = threadIdx.x; i < rows.here%s; i += NR_BLOCK) {\n", each ? " * row" : "");
                add("        const element_of<D, loops> at(a, registers, rows.first * row + %s);\n",
                    each ? "i, i, quotient(i, a.row)" : "i * row, i, i");
                add_steps(s, end, "        ");
                add("    }\n");
            }
            add("    __syncthreads();\n");
        }
    }
};

} // namespace

std::string nr_cuda_chain_source(const chain_args &a, int32_t dtype, bool rows) {
    writer w = {a, {}};
    w.add("/* A chain of %d calls on %s:", a.count, w.name(dtype));
    for (int s = 0; s < a.count; s++) w.add("%s %s", s ? "," : "", w.row(a.steps[s]));
    w.add(" */\n#include \"chain_rows.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(NR_BLOCK%s)\n",
          rows && nr_library->dtypes[dtype].size == 8 ? ", 2" : "");
    w.add("    chain(const __grid_constant__ chain_args a) {\n    using D = dtype_%s;\n    using T = D::T;\n",
          w.name(dtype));
    w.add("    constexpr int loops = %d;\n", a.ndim);
    rows ? w.add_rows() : w.add_elements();
    w.add("}\n");
    return w.text;
}
