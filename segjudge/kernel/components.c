/* Runs of a mask's voxels along x, in the order of the volume -> the connected component of each run. */
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
