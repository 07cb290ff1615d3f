/* build_isa: the functions of one ISA build, for cpu.c, which chooses a build. Compiled once per instruction set. */
#include "cpu.h"

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)

const nr_isa NR_ISA(nr_build) = {
    .name = TEXT(NR_ISA_NAME),
    .fill_pointwise = NR_ISA(nr_fill_pointwise),
    .fill_reduce = NR_ISA(nr_fill_reduce),
    .fill_conversions = NR_ISA(nr_fill_conversions),
    .fill_rows = NR_ISA(nr_fill_rows),
    .choose_bf16 = NR_ISA(nr_choose_bf16),
    .choose_conv = NR_ISA(nr_choose_conv),
    .choose_int8 = NR_ISA(nr_choose_int8),
    .layers = &NR_ISA(nr_layers),
    .run =
        {
#define PER_ISA(NAME, name, label, traits) [NR_##NAME] = NR_ISA(nr_run_##name),
#include "../families.def"
        },
};
