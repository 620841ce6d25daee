/* The nearest places of queries that are far from few places, found block by block. */
#ifndef SEGJUDGE_NEAREST_H
#define SEGJUDGE_NEAREST_H

#include "kernel.h"

/* Voxels of a volume (z, y, x): their positions in its order, and the first one of each row, behind all rows the
 * count. */
typedef struct {
    int64_t depth, height, width, count;
    const int32_t *at, *firsts;
} sj_list;

/* Places in blocks, and blocks in large blocks, with the boxes that hold them. */
typedef struct sj_blocks sj_blocks;

/* Return the blocks of a volume's places; NULL if they are many, or without memory. */
sj_blocks *sj_make_blocks(const sj_list *places, const double *spacing);
void sj_free_blocks(sj_blocks *blocks);
/* Return the number of large blocks with places. */
int64_t sj_count_blocks(const sj_blocks *blocks);
/* Write the square of each query's distance to the nearest place, of which there must be one. */
int sj_search_blocks(const sj_blocks *blocks, const sj_list *queries, double *out);

/* Find where the places of each row begin, with their number behind; return whether they are in order and inside the
 * volume. */
int sj_find_rows(sj_list *list, int32_t *firsts);
/* Write the square of each query's distance to the nearest place, of which there must be one, by blocks alone; return
 * SJ_FULL if places are too many for that. */
int sj_search_far(const sj_list *queries, const sj_list *places, const double *spacing, double *out);

/* Write the square of each query's distance to the nearest place, infinite if none is nearer than a limit; both are
 * positions in a volume, in its order. The limit, a square, follows the spacing along x, y and z. */
int sj_squares(
    const int32_t *queries, int64_t query_count, const int32_t *places, int64_t place_count, int64_t depth,
    int64_t height, int64_t width, const double *spacing, double *out);

#endif
