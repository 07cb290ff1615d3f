/* index_moves: gather (take) and scatter (put), included by index.c once per element size (WORD, SIZE). */
#define S WORD
#define AT_ONCE
#define NAME NR_JOIN2(take, SIZE)
#define VISIT(place, value) (*(value) = *(place))
#define VISIT_ROW(places, value) memcpy(value, places, (size_t)n * sizeof(S))
#include "index_loops.h"
#define NAME NR_JOIN2(put, SIZE)
#define VISIT(place, value) (*(place) = *(value))
#define VISIT_ROW(places, value) memcpy(places, value, (size_t)n * sizeof(S))
#include "index_loops.h"
#undef S
#undef AT_ONCE
#undef WORD
#undef SIZE
