/* A mask (z, y, x) -> the runs of its voxels along x, in the order of the volume; runs -> the connected component of
 * each. */
#include "kernel.h"

/* The maximum number of rows beside a run that it may join. */
#define MOST_ROWS 4
/* Eight voxels of a mask. */
#define ONES ((uint64_t)0x0101010101010101u)
/* Numbers have 32 or 64 bits, which is a constant for the compiler. */
#define INLINE static inline __attribute__((always_inline))

/* The start of each run and the voxel after it, in 32 or 64 bits. */
typedef struct {
    const void *starts, *ends;
    int64_t count;
} runs;

INLINE int64_t number_at(const void *numbers, int64_t run, int is_wide)
{
    return is_wide ? ((const int64_t *)numbers)[run] : ((const int32_t *)numbers)[run];
}

static int are_in_order(const runs *of, int is_wide)
{
    for (int64_t run = 0, last = 0; run < of->count; run++) {
        int64_t start = number_at(of->starts, run, is_wide), end = number_at(of->ends, run, is_wide);
        if (start < last || end <= start || end > SJ_MOST_PIXELS)
            return 0;
        last = end;
    }
    return 1;
}

/* Return whether rows are pairs of a step to a row behind and of the voxels by which runs reach beyond their ends there. */
static int are_rows(const int64_t *rows, int64_t count)
{
    if (!rows || count < 1 || count > MOST_ROWS)
        return 0;
    for (int64_t row = 0; row < count; row++)
        if (rows[2 * row] < 1 || rows[2 * row] > SJ_MOST_PIXELS || rows[2 * row + 1] < 0 || rows[2 * row + 1] > 1)
            return 0;
    return 1;
}

/* Return the first run of a run's component, and halve the way to it. */
static inline int32_t find_root(int32_t *roots, int32_t run)
{
    while (roots[run] != run)
        run = roots[run] = roots[roots[run]];
    return run;
}

/* Join the component of a root with that of a run; return the root of both. */
static inline int32_t join(int32_t *roots, int32_t root, int32_t run)
{
    if (roots[run] == root)
        return root;
    int32_t other = find_root(roots, run);
    if (root < other)
        return roots[other] = root;
    return roots[root] = other;
}

/* Join each run with those that it meets in some rows behind it: by how many voxels it is moved to each, and by how
 * many it is widened there. */
INLINE void join_all(const runs *of, int is_wide, const int64_t *rows, int64_t count, int32_t *roots)
{
    int64_t lowest[MOST_ROWS] = {0};
    for (int64_t run = 0; run < of->count; run++) {
        int32_t root = find_root(roots, (int32_t)run);
        for (int64_t row = 0; row < count; row++) {
            int64_t start = number_at(of->starts, run, is_wide) + rows[2 * row] - rows[2 * row + 1];
            int64_t end = number_at(of->ends, run, is_wide) + rows[2 * row] + rows[2 * row + 1], partner = lowest[row];
            while (partner < of->count && number_at(of->ends, partner, is_wide) <= start)
                partner++;
            lowest[row] = partner;
            for (; partner < of->count && number_at(of->starts, partner, is_wide) < end; partner++)
                root = join(roots, root, (int32_t)partner);
        }
    }
}

/* Write the component of each run, from 0 in the order of their first runs. Rows are pairs of a step to a row behind
 * and of the voxels by which runs reach beyond their ends there. */
SJ_EXPORT int sj_components(
    const void *starts, const void *ends, int32_t size, int64_t count, const int64_t *rows, int64_t row_count,
    int32_t *names)
{
    runs all = {starts, ends, count};
    if (!starts || !ends || (size != 4 && size != 8) || count < 0 || count > INT32_MAX || !are_rows(rows, row_count)
        || !names)
        return SJ_BAD_CALL;
    if (!are_in_order(&all, size == 8))
        return SJ_BAD_DATA;
    for (int64_t run = 0; run < count; run++)
        names[run] = (int32_t)run;
    if (size == 8)
        join_all(&all, 1, rows, row_count, names);
    else
        join_all(&all, 0, rows, row_count, names);
    int32_t components = 0;
    for (int64_t run = 0; run < count; run++)
        names[run] = names[run] == run ? components++ : names[names[run]];
    return SJ_FINE;
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
            uint32_t before = 0;
            for (int64_t x = 0; x < width; x += 8) {
                uint64_t word = 0;
                if (width - x >= 8)
                    word = sj_load(row + x);
                else
                    memcpy(&word, row + x, (size_t)(width - x));
                if (!(word | before))
                    continue;
                if (word & ~ONES)
                    return SJ_BAD_DATA;
                /* A bit for each voxel, and for each that differs from the voxel before it. */
                uint32_t bits = (uint32_t)(word * 0x0102040810204080u >> 56);
                uint32_t changes = (bits ^ (bits << 1 | before)) & 0xff;
                for (before = bits >> 7; changes; changes &= changes - 1) {
                    if (*count < room)
                        put_edge(edges, size, *count, start + x + __builtin_ctz(changes));
                    ++*count;
                }
            }
            if (before) {
                if (*count < room)
                    put_edge(edges, size, *count, start + width);
                ++*count;
            }
        }
    return *count <= room ? SJ_FINE : SJ_FULL;
}
