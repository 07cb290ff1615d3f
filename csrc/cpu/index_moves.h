/* index_moves: gather (take) and scatter (put), included by index.c once per element size (WORD, SIZE). */
#define S WORD
#define AT_ONCE
#define NAME NR_JOIN2(take, SIZE)
#define VISIT(place, given) (*(given) = *(place))
#define VISIT_ROW(places, given) memcpy(given, places, (size_t)n * sizeof(S))
#include "index_loops.h"
#define NAME NR_JOIN2(put, SIZE)
#define VISIT(place, given) (*(place) = *(given))
#define VISIT_ROW(places, given) memcpy(places, given, (size_t)n * sizeof(S))
#include "index_loops.h"
#undef S
#undef AT_ONCE
#undef WORD
#undef SIZE
