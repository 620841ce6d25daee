/* A mask (z, y, x) -> the runs of its voxels along x, in the order of the volume; runs -> the connected component of each
 * run, and their mask. */
#include "kernel.h"

#include <stdlib.h>

/* The maximum number of rows beside a run that it may join. */
#define MOST_ROWS 4

/* The start of each run and the voxel after it, in 32 or 64 bits. */
typedef struct {
    const void *starts, *ends;
    int64_t count;
    int is_wide;
} runs;

static inline int64_t number_at(const runs *of, const void *numbers, int64_t run)
{
    return of->is_wide ? ((const int64_t *)numbers)[run] : ((const int32_t *)numbers)[run];
}

static int are_in_order(const runs *of)
{
    for (int64_t run = 0, last = INT64_MIN; run < of->count; run++) {
        int64_t start = number_at(of, of->starts, run), end = number_at(of, of->ends, run);
        if (start < last || end <= start || end > SJ_MOST_PIXELS)
            return 0;
        last = end;
    }
    return 1;
}

/* Return the first run of a run's component, and halve the way to it. */
static inline int32_t find_root(int32_t *roots, int32_t run)
{
    while (roots[run] != run)
        run = roots[run] = roots[roots[run]];
    return run;
}

static inline void join(int32_t *roots, int32_t run, int32_t partner)
{
    int32_t root = find_root(roots, run), root_of_partner = find_root(roots, partner);
    if (root < root_of_partner)
        roots[root_of_partner] = root;
    else
        roots[root] = root_of_partner;
}

/* Join each run with those that it meets in some rows behind it: by how many voxels it is moved to each, and by how
 * many it is widened there. */
static void join_all(const runs *of, const int64_t *rows, int64_t count, int32_t *roots)
{
    int64_t lowest[MOST_ROWS] = {0};
    for (int64_t run = 0; run < of->count; run++)
        for (int64_t row = 0; row < count; row++) {
            int64_t start = number_at(of, of->starts, run) + rows[2 * row] - rows[2 * row + 1];
            int64_t end = number_at(of, of->ends, run) + rows[2 * row] + rows[2 * row + 1], partner = lowest[row];
            while (partner < of->count && number_at(of, of->ends, partner) <= start)
                partner++;
            lowest[row] = partner;
            for (; partner < of->count && number_at(of, of->starts, partner) < end; partner++)
                join(roots, (int32_t)run, (int32_t)partner);
        }
}

/* Write the component of each run, from 0 in the order of their first runs. Rows are pairs of a step to a row behind
 * and of the voxels by which runs reach beyond their ends there. */
SJ_EXPORT int sj_components(
    const void *starts, const void *ends, int32_t size, int64_t count, const int64_t *rows, int64_t row_count,
    int32_t *names)
{
    runs all = {starts, ends, count, size == 8};
    if (!starts || !ends || (size != 4 && size != 8) || count < 0 || count > INT32_MAX || !rows || !names
        || row_count < 1 || row_count > MOST_ROWS)
        return SJ_BAD_CALL;
    for (int64_t row = 0; row < row_count; row++)
        if (rows[2 * row] < 1 || rows[2 * row] > SJ_MOST_PIXELS || rows[2 * row + 1] < 0 || rows[2 * row + 1] > 1)
            return SJ_BAD_CALL;
    if (!are_in_order(&all))
        return SJ_BAD_DATA;
    for (int64_t run = 0; run < count; run++)
        names[run] = (int32_t)run;
    join_all(&all, rows, row_count, names);
    int32_t components = 0;
    for (int64_t run = 0; run < count; run++)
        names[run] = names[run] == run ? components++ : names[names[run]];
    return SJ_FINE;
}

/* ── masks ───────────────────────────────────────────────────────────────── */

/* Return the next voxel of a row from one on that differs from a value (0 or 1). */
static inline int64_t find_change(const uint8_t *row, int64_t x, int64_t width, uint8_t value)
{
    while (width - x >= 8 && sj_load(row + x) == value * (uint64_t)0x0101010101010101u)
        x += 8;
    while (x < width && row[x] == value)
        x++;
    return x;
}

static inline void put_edge(void *edges, int32_t size, int64_t index, int64_t position)
{
    if (size == 8)
        ((int64_t *)edges)[index] = position;
    else
        ((int32_t *)edges)[index] = (int32_t)position;
}

/* Write where the runs of a mask of 0 and 1 start and end, from the position of its first voxel on, in 32 or 64 bits; a
 * voxel of background follows each row, and such a row each plane. All edges are counted, those in the room written. */
SJ_EXPORT int sj_find_runs(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int64_t first, void *edges, int32_t size,
    int64_t room, int64_t *count)
{
    if (!mask || !sj_is_volume(depth, height, width, SJ_MOST_PIXELS) || !edges || !count || (size != 4 && size != 8) || room < 0 || first < 0
        || first + depth * (height + 1) * (width + 1) > (size == 4 ? INT32_MAX : SJ_MOST_PIXELS))
        return SJ_BAD_CALL;
    *count = 0;
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *row = mask + (z * height + y) * width;
            int64_t start = first + (z * (height + 1) + y) * (width + 1);
            for (int64_t x = find_change(row, 0, width, 0); x < width; x = find_change(row, x, width, 0)) {
                int64_t end = find_change(row, x, width, 1);
                if (end == x)
                    return SJ_BAD_DATA;
                if (*count + 2 <= room) {
                    put_edge(edges, size, *count, start + x);
                    put_edge(edges, size, *count + 1, start + end);
                }
                *count += 2;
                x = end;
            }
        }
    return *count <= room ? SJ_FINE : SJ_FULL;
}

/* Set the voxels of runs in a box: from and to along z, y and x. Rows and planes are as long as those of positions. */
SJ_EXPORT int sj_draw_runs(
    const void *starts, const void *ends, int32_t size, int64_t count, int64_t height, int64_t width, const int64_t *box,
    uint8_t *mask)
{
    runs all = {starts, ends, count, size == 8};
    if (!starts || !ends || (size != 4 && size != 8) || count < 0 || !box || !mask || !sj_is_volume(1, height, width, SJ_MOST_PIXELS))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (box[2 * axis] < 0 || box[2 * axis + 1] < box[2 * axis] || box[2 * axis + 1] > SJ_MOST_SIDE)
            return SJ_BAD_CALL;
    if (!are_in_order(&all))
        return SJ_BAD_DATA;
    for (int64_t run = 0; run < count; run++) {
        int64_t start = number_at(&all, starts, run), length = number_at(&all, ends, run) - start, row = start / width;
        int64_t z = row / height - box[0], y = row % height - box[2], x = start % width - box[4];
        if (start < 0 || z < 0 || z >= box[1] - box[0] || y < 0 || y >= box[3] - box[2] || x < 0
            || length > box[5] - box[4] - x)
            return SJ_BAD_DATA;
        memset(mask + (z * (box[3] - box[2]) + y) * (box[5] - box[4]) + x, 1, (size_t)length);
    }
    return SJ_FINE;
}
