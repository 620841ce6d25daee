/* A surface and targets, in blocks of voxels: bounds of the distances of places, of which few decide. */
#ifndef SEGJUDGE_SHARES_H
#define SEGJUDGE_SHARES_H

#include "nearest.h"

/* The sides of blocks, as powers of two: those of an index, and of surfaces without one. */
#define SJ_BITS 2
#define SJ_MORE_BITS 3
#define SJ_CODES 256
/* The share of a bound by which rounding may differ. */
#define SJ_MARGIN 1e-6

/* The square of a place's distance, and its area. */
typedef struct {
    double square, area;
} measured;

/* A surface and targets in one volume; and places that are measured already, as if they were the surface's last. */
typedef struct {
    sj_list places, targets;
    const uint8_t *codes;
    const double *areas, *spacing;
    const double *extras; /* the square and the area of each */
    int64_t extra_count;
    int bits;
    int64_t side, cells, blocks[3]; /* of blocks: their side, their number, and that along z, y and x */
    double half;                    /* the steps from a block's centre to its first voxel */
    const double *sums; /* an index: the area by block, where its places begin, and their voxels in it and codes */
    const int32_t *starts;
    const uint16_t *voxels;
    const uint8_t *block_codes;
    float *distances;               /* from the centres of blocks to the nearest target */
    double total, low, high;        /* of the area; and the areas that are looked for */
} surface;

/* Return the root of a number from 0 on, with an error of less than the margin. */
static inline double sj_root_of(double square)
{
    uint64_t bits;
    double guess;
    if (!(square > 0))
        return 0;
    memcpy(&bits, &square, sizeof bits);
    bits = (bits >> 1) + ((uint64_t)1023 << 51);
    memcpy(&guess, &bits, sizeof guess);
    for (int step = 0; step < 4; step++)
        guess = (guess + square / guess) / 2;
    return guess;
}

/* Divide the volume into blocks whose sides have this many bits. */
void sj_divide(surface *all, int bits);
/* Return whether places are in order and inside the volume. */
int sj_are_ordered(const sj_list *places);
/* Write the index of places: the area of each block; where the places of each begin, with their number behind; and of
 * these places the voxel in the block and the code, in the order of the volume. Places are in order and inside the
 * volume. */
void sj_index_places(const surface *all, double *sums, int32_t *starts, uint16_t *voxels, uint8_t *codes);
/* Measure the distances from the centres of blocks; return a status. */
int sj_measure_blocks(const surface *all);

/* Compare two measured places by their squares. */
int sj_compare_squares(const void *one, const void *other);
/* Keep the places at which the share may be reached, and add the area of nearer ones; return how many. */
int64_t sj_narrow(measured *items, int64_t count, double low, double high, double *nearer);
/* Find the squares of the distances at which two areas are reached by measured places; return SJ_FULL if they are
 * not. */
int sj_find_squares(measured *items, int64_t count, double nearer, double low, double high, double *squares);

/* Find the squares if most targets are far. */
int sj_find_far(surface *all, double *squares);

#endif
