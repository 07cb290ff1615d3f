/* index_kinds: the ways to combine elements in indexed places, included by index.c once per dtype (TYPE, S; PLUS and TIMES,
 * which for bool are or and and), and the
 * table combine_TYPE. A NaN wins over all. Picture: index.c. */
#define NAME NR_JOIN2(add, TYPE)
#define COMBINE(a, b) PLUS(a, b)
#include "index_loops.h"
#define NAME NR_JOIN2(mul, TYPE)
#define COMBINE(a, b) TIMES(a, b)
#include "index_loops.h"
#define NAME NR_JOIN2(max, TYPE)
#define COMBINE(a, b) ((a) < (b) || (b) != (b) ? (b) : (a))
#include "index_loops.h"
#define NAME NR_JOIN2(min, TYPE)
#define COMBINE(a, b) ((a) > (b) || (b) != (b) ? (b) : (a))
#include "index_loops.h"
static const row_kernel NR_JOIN2(combine, TYPE)[] = {NR_JOIN2(add, TYPE), NR_JOIN2(mul, TYPE), NR_JOIN2(max, TYPE),
                                                     NR_JOIN2(min, TYPE)};
#undef TYPE
#undef S
