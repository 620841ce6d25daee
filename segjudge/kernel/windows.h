/* The nearest places of voxels that are only a few steps away, found in bits: one word of each row around a voxel. */
#ifndef SEGJUDGE_WINDOWS_H
#define SEGJUDGE_WINDOWS_H

#include "nearest.h"

/* The steps along x that a word shows on both sides of a voxel. */
#define SJ_REACH 28

/* A row near a voxel: the bytes to its word; its bits that are nearer than a limit; the squares of the steps to it
 * along y, along z, and of both; and whether these steps are odd. */
typedef struct {
    ptrdiff_t offset;
    uint64_t bits;
    double along_y, along_z, rest;
    int is_between;
} sj_ray;

/* Places as bits of rows, with empty margins around the volume; and the rows near a voxel, the nearest first, with one
 * at an infinite distance behind them. Places from `end` on may be farther away than these rows. */
typedef struct {
    int64_t height, width, stride, rows, planes; /* the last two are those of a margin */
    uint8_t *bits;
    sj_ray *rays;
    int64_t count;
    double along_x[SJ_REACH + 2]; /* the last one is infinite */
    double end, limit;
} sj_windows;

/* Make windows on the places of a volume, for squares up to a limit; return a status. */
int sj_open_windows(sj_windows *of, const sj_list *places, const double *spacing, double limit);
void sj_close_windows(sj_windows *of);
/* Lower the limit, below which squares are looked for. */
void sj_limit(sj_windows *of, double limit);

/* The row of a voxel: the position where it starts, and its first byte. */
typedef struct {
    int64_t start;
    const uint8_t *bytes;
} sj_bit_row;

/* Move to the row of a position; positions are in the order of the volume. */
static inline void sj_move(const sj_windows *of, int64_t position, sj_bit_row *row)
{
    if (row->bytes && position - row->start < of->width)
        return;
    int64_t number = position / of->width, z = number / of->height, y = number % of->height;
    row->start = number * of->width;
    row->bytes = of->bits + ((z + of->planes) * (of->height + 2 * of->rows) + y + of->rows) * of->stride;
}

/* Return the least square from a voxel to a place if it is below the limit, or the limit. */
static inline double sj_look(const sj_windows *of, const sj_bit_row *row, int64_t position)
{
    double limit = of->limit;
    int64_t x = position - row->start;
    const uint8_t *at = row->bytes + (x >> 3);
    int shift = (int)(x & 7);
    for (const sj_ray *ray = of->rays; ray->rest < limit; ray++) {
        uint64_t seen = sj_load(at + ray->offset) >> shift & ray->bits;
        if (!seen)
            continue;
        int behind = __builtin_ctzll(seen >> SJ_REACH | (uint64_t)1 << (SJ_REACH + 1));
        int before = __builtin_clzll(seen << (63 - SJ_REACH) | (uint64_t)1 << (62 - SJ_REACH));
        double sum = of->along_x[behind < before ? behind : before] + ray->along_y + ray->along_z;
        limit = sum < limit ? sum : limit;
    }
    return limit;
}

/* A row near a voxel, and the bits of its word that are nearer than a limit. */
typedef struct {
    ptrdiff_t offset;
    uint64_t bits;
} sj_near;

/* The number of rows that are looked at together. */
#define SJ_AT_ONCE 4

/* Write the rows with bits below the limit, of which there may be as many as in the windows and SJ_AT_ONCE - 1 empty
 * ones; return their number. */
int64_t sj_list_near(const sj_windows *of, sj_near *rows);

/* Return whether a place is in the listed bits around a voxel. */
static inline int sj_is_near(const sj_near *rows, int64_t count, const sj_bit_row *row, int64_t position)
{
    const uint8_t *at = row->bytes + ((position - row->start) >> 3);
    int shift = (int)((position - row->start) & 7);
    for (const sj_near *each = rows; each < rows + count; each += SJ_AT_ONCE) {
        uint64_t seen = 0;
        for (int i = 0; i < SJ_AT_ONCE; i++)
            seen |= sj_load(at + each[i].offset) >> shift & each[i].bits;
        if (seen)
            return 1;
    }
    return 0;
}

#endif
