/* copy_pairs: the conversions out of one dtype (FROM, FROM_S, FROM_T) into every other, for copy.c, where the picture is:
 * the table from_FROM[to]. */
#define TO bool
#define TO_S uint8_t
#include "copy_loops.h"
#define TO uint8
#define TO_S uint8_t
#include "copy_loops.h"
#define TO int32
#define TO_S int32_t
#include "copy_loops.h"
#define TO int64
#define TO_S int64_t
#include "copy_loops.h"
#define TO float32
#define TO_S float
#include "copy_loops.h"
#define TO float64
#define TO_S double
#include "copy_loops.h"
static const mover NR_JOIN2(from, FROM)[NR_DTYPE_COUNT] = {
#define WIDE(NAME, name, ...) [NORCH_##NAME] = NR_JOIN2(FROM, name),
#define NARROW(...)
#include "../dtypes.def"
};
#undef FROM
#undef FROM_S
#undef FROM_T
