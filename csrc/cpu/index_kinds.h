/* index_kinds: scatter with add, prod, amax and amin, as the table combine_DTYPE: a template of each_dtype.h for
 * index.c. NaN propagates; bools are added by or, and multiplied by and. */
#define NAME OF_DTYPE(add)
#define COMBINE(a, b) ((a) + (b))
#include "index_loops.h"
#define NAME OF_DTYPE(mul)
#define COMBINE(a, b) ((a) * (b))
#include "index_loops.h"
#define NAME OF_DTYPE(max)
#define COMBINE(a, b) ((a) < (b) || (b) != (b) ? (b) : (a))
#include "index_loops.h"
#define NAME OF_DTYPE(min)
#define COMBINE(a, b) ((a) > (b) || (b) != (b) ? (b) : (a))
#include "index_loops.h"
static const row_kernel OF_DTYPE(combine)[] = {OF_DTYPE(add), OF_DTYPE(mul), OF_DTYPE(max), OF_DTYPE(min)};
