/* The places of a volume -> bits, and the rows near a voxel in the order of their distance. */
#include "windows.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The maximum steps along y and z. */
#define STEPS 12

static int compare_rays(const void *one, const void *another)
{
    double nearer = ((const sj_ray *)one)->rest, farther = ((const sj_ray *)another)->rest;
    return (nearer > farther) - (nearer < farther);
}

/* Return the square from which on places along an axis are not seen. */
static inline double find_end(int64_t side, int64_t steps, double spacing)
{
    return side > steps + 1 ? sj_square_of(steps + 1, spacing) : INFINITY;
}

/* Return the steps along an axis, of which the squares are below the end. */
static int64_t count_steps(int64_t side, double spacing, double end)
{
    int64_t steps = 0;
    while (steps < STEPS && steps + 1 < side && sj_square_of(steps + 1, spacing) < end)
        steps++;
    return steps;
}

/* List the rows that may hold a place nearer than the end. */
static void list_rays(sj_windows *of, const double *spacing)
{
    for (int64_t z = -of->planes; z <= of->planes; z++)
        for (int64_t y = -of->rows; y <= of->rows; y++) {
            double along_y = sj_square_of(y, spacing[1]), along_z = sj_square_of(z, spacing[2]);
            ptrdiff_t offset = (z * (of->height + 2 * of->rows) + y) * of->stride;
            if (along_y + along_z < of->end)
                of->rays[of->count++] = (sj_ray){offset, 0, along_y, along_z, along_y + along_z, y & 1 || z & 1};
        }
    qsort(of->rays, (size_t)of->count, sizeof *of->rays, compare_rays);
    of->rays[of->count] = (sj_ray){0, 0, 0, 0, INFINITY, 0};
}

/* Set the bits of places; return whether they are in order and inside the volume. */
static int set_bits(sj_windows *of, const sj_list *places)
{
    int64_t voxels = places->depth * places->height * places->width;
    sj_bit_row row = {0, NULL};
    for (int64_t i = 0; i < places->count; i++) {
        int32_t place = places->at[i];
        if (place < 0 || place >= voxels || (i && place <= places->at[i - 1]))
            return 0;
        sj_move(of, place, &row);
        int64_t bit = place - row.start + SJ_REACH;
        of->bits[row.bytes - of->bits + (bit >> 3)] |= (uint8_t)(1 << (bit & 7));
    }
    return 1;
}

void sj_limit(sj_windows *of, double limit)
{
    of->limit = limit;
    for (sj_ray *ray = of->rays; ray->rest < limit; ray++) {
        ray->bits = (uint64_t)1 << SJ_REACH;
        for (int step = 1; step <= SJ_REACH && of->along_x[step] + ray->along_y + ray->along_z < limit; step++)
            ray->bits |= (uint64_t)1 << (SJ_REACH + step) | (uint64_t)1 << (SJ_REACH - step);
    }
}

int sj_open_windows(sj_windows *of, const sj_list *places, const double *spacing, double limit)
{
    const double ends[4] = {find_end(places->width, SJ_REACH, spacing[0]), find_end(places->height, STEPS, spacing[1]),
                            find_end(places->depth, STEPS, spacing[2]), limit};
    *of = (sj_windows){.height = places->height, .width = places->width, .end = INFINITY};
    for (int each = 0; each < 4; each++)
        of->end = ends[each] < of->end ? ends[each] : of->end;
    for (int step = 0; step <= SJ_REACH; step++)
        of->along_x[step] = sj_square_of(step, spacing[0]);
    of->along_x[SJ_REACH + 1] = INFINITY;
    of->rows = count_steps(places->height, spacing[1], of->end);
    of->planes = count_steps(places->depth, spacing[2], of->end);
    of->stride = (of->width + 2 * SJ_REACH) / 8 + 9;
    of->rays = malloc((size_t)((2 * of->rows + 1) * (2 * of->planes + 1) + 1) * sizeof *of->rays);
    if (!of->rays)
        return SJ_NO_MEMORY;
    list_rays(of, spacing);
    sj_limit(of, of->end);
    int64_t rows = (places->depth + 2 * of->planes) * (of->height + 2 * of->rows);
    of->bits = calloc((size_t)(rows * of->stride), 1);
    return !of->bits ? SJ_NO_MEMORY : set_bits(of, places) ? SJ_FINE : SJ_BAD_DATA;
}

int64_t sj_list_near(const sj_windows *of, sj_near *rows)
{
    int64_t count = 0;
    /* Places are often side by side: rows that are not come first, since their bits differ most. */
    for (int turn = 0; turn < 2; turn++)
        for (const sj_ray *ray = of->rays; ray->rest < of->limit; ray++)
            if (ray->is_between == turn)
                rows[count++] = (sj_near){ray->offset, ray->bits};
    while (count % SJ_AT_ONCE)
        rows[count++] = (sj_near){0, 0};
    return count;
}

void sj_close_windows(sj_windows *of)
{
    free(of->bits);
    free(of->rays);
}

/* Write whether the square of each query's distance to a place is below a limit; both are positions in a volume, in its
 * order. The limit follows the spacing along x, y and z. Return SJ_FULL if it is too far away to be seen. */
SJ_EXPORT int sj_near_places(
    const int32_t *queries, int64_t query_count, const int32_t *places, int64_t place_count, int64_t depth,
    int64_t height, int64_t width, const double *spacing, uint8_t *flags)
{
    sj_list list = {depth, height, width, place_count, places, NULL};
    if (!queries || !places || !spacing || !flags || query_count < 0 || place_count < 0
        || !sj_is_volume(depth, height, width, INT32_MAX - 1) || !(spacing[3] > 0))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (!(spacing[axis] > 0 && spacing[axis] < 1e100))
            return SJ_BAD_CALL;
    sj_windows windows;
    sj_bit_row row = {0, NULL};
    int status = sj_open_windows(&windows, &list, spacing, spacing[3]);
    sj_near *near = status == SJ_FINE ? malloc((size_t)(windows.count + SJ_AT_ONCE) * sizeof *near) : NULL;
    if (status == SJ_FINE)
        status = !near ? SJ_NO_MEMORY : windows.end < spacing[3] ? SJ_FULL : SJ_FINE;
    int64_t rows = status == SJ_FINE ? sj_list_near(&windows, near) : 0;
    for (int64_t i = 0; i < query_count && status == SJ_FINE; i++) {
        int32_t query = queries[i];
        if (query < 0 || query >= depth * height * width || (i && query <= queries[i - 1]))
            status = SJ_BAD_DATA;
        else {
            sj_move(&windows, query, &row);
            flags[i] = (uint8_t)sj_is_near(near, rows, &row, query);
        }
    }
    sj_close_windows(&windows);
    free(near);
    return status;
}
