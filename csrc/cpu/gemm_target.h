/* gemm_target: the tiles of gemm_tile.h, for files that call them: matmul_isa.c, which has them, and attention_isa.c.
 * Included once for each float type T, after gemm_pack.h. */

#define TARGET NAME(target)

/* The destination of a tile: rows x cols of C at c. The sum is added to C (add), or C is set to the sum plus the bias,
 * which has a number for each column. Rows of B in place bring what is `ahead` of them, or 0, to the second cache. */
typedef struct TARGET {
    T *c;
    int64_t c_row;
    int rows, cols;
    int add;
    const T *bias;
    int64_t ahead;
} TARGET;

typedef void (*NAME(tile_of))(int64_t k, const T *a, int64_t a_row, int64_t a_col, const T *b, int64_t b_row,
                              const TARGET *to);

/* Indexed by the number of rows minus one, and whether the tile has two vectors of columns. */
#define TILES_OF_ROWS NAME(NR_ISA(nr_tiles))
extern const NAME(tile_of) TILES_OF_ROWS[TILE_ROWS][TILE_VECTORS];
