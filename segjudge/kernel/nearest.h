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

/* The sides of large blocks in voxels, as a power of two. */
#define SJ_LARGE_BITS 4

/* Return whether places are few enough for blocks to take less time than a volume. */
int sj_are_few(const sj_list *places);
/* Return the blocks of a volume's places; NULL without memory, or if squares of steps do not fit. */
sj_blocks *sj_make_blocks(const sj_list *places, const double *spacing);
void sj_free_blocks(sj_blocks *blocks);
/* Return the number of large blocks with places. */
int64_t sj_count_blocks(const sj_blocks *blocks);
/* Write the square of each query's distance to the nearest place, of which there must be one. */
int sj_search_blocks(const sj_blocks *blocks, const sj_list *queries, double *out);

/* Return the square of so many steps along an axis. */
static inline double sj_square_of(int64_t steps, double spacing)
{
    double length = (double)steps * spacing;
    return length * length;
}

/* A search for the places nearest to voxels of a box: its first and last positions along x, y and z. */
typedef struct sj_search sj_search;

sj_search *sj_open_search(const sj_blocks *blocks);
void sj_close_search(sj_search *in);
/* Look at a box, and from then on at smaller boxes in it. */
void sj_look_around(sj_search *in, const int16_t *least, const int16_t *most);
/* Write the position of the place that is nearest to the middle of a smaller box; then look at this box, and return whether
 * that place is nearest to all of its voxels. */
void sj_find_target(sj_search *in, const int16_t *least, const int16_t *most, int16_t *place);
int sj_look_at(sj_search *in, const int16_t *least, const int16_t *most);
/* Return the square of the distance from a voxel of the box to the nearest place. */
double sj_find_square(sj_search *in, int64_t x, int64_t y, int64_t z);

/* Find where the places of each row begin, with their number behind; return whether they are in order and inside the
 * volume. */
int sj_find_rows(sj_list *list, int32_t *firsts);

/* Write the square of each query's distance to the nearest place, infinite if none is nearer than a limit; both are
 * positions in a volume, in its order. The limit, a square, follows the spacing along x, y and z. */
int sj_squares(
    const int32_t *queries, int64_t query_count, const int32_t *places, int64_t place_count, int64_t depth,
    int64_t height, int64_t width, const double *spacing, double *out);

#endif
