/* The nearest places of queries that are far from few places, found block by block. */
#ifndef SEGJUDGE_NEAREST_H
#define SEGJUDGE_NEAREST_H

#include "kernel.h"

/* A box of bytes (z, y, x); those but 0 and 255 are voxels of it. */
typedef struct {
    int64_t depth, height, width;
    const uint8_t *bytes;
} sj_volume;

static inline int sj_is_place(uint8_t code) { return (uint8_t)(code + 1) > 1; }

/* Places in blocks, and blocks in large blocks, with the boxes that hold them. */
typedef struct sj_blocks sj_blocks;

/* Return the blocks of a volume's places; NULL if they are many, or without memory. */
sj_blocks *sj_make_blocks(const sj_volume *places, const double *spacing);
void sj_free_blocks(sj_blocks *blocks);
/* Return the number of large blocks with places. */
int64_t sj_count_blocks(const sj_blocks *blocks);
/* Write the square of each query's distance to the nearest place, of which there must be one, from the position of its row on. */
int sj_search_blocks(const sj_blocks *blocks, const sj_volume *queries, int64_t *next, double *out);

#endif
