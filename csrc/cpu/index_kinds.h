/* index_kinds: the ways to combine elements at indexed positions, included by index.c once per dtype (TYPE, S; PLUS and
 * TIMES, which are "or" and "and" for bool). A NaN wins over all. Picture: index.c. */
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
#undef TYPE
#undef S
