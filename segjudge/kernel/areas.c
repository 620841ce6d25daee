/* A label map (z, y, x) -> the areas of the surfaces of many labels at once, where these are scattered: a search for each
 * takes far longer.
 *
 * A surface has a place at each corner between eight voxels that are not all alike, with a code of its voxels; areas are
 * added in the order of the volume, as those of a list. Sixteen corners are compared side by side. */
#include "kernel.h"

#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The corners that are compared side by side, as bytes. */
#define SIDE_BY_SIDE 16
typedef uint8_t lanes __attribute__((vector_size(SIDE_BY_SIDE)));
/* The voxels around a corner, and the codes that are added at once. */
#define AROUND 8
#define ADDED SJ_ADDED
#define MOST_LABELS 255

/* Labels by their numbers from 1 on, 0 for all others; two planes of rows of numbers, with an empty row, and empty bytes,
 * before and behind them; and of each label the codes that are not yet added, and their number. */
typedef struct {
    int64_t depth, height, width, stride, room;
    const double *areas;
    const uint8_t *map;
    uint8_t numbers[256], *planes, *codes;
    int32_t used[MOST_LABELS + 1];
    int64_t count;
    double *sums;
    int64_t *totals, *voxels;
} stage;

static inline uint8_t *row_of(const stage *all, int64_t z, int64_t y)
{
    return all->planes + ((z & 1) * (all->height + 2) + y) * all->stride;
}

/* Read a plane as numbers; planes outside are empty. */
static void read_plane(const stage *all, int64_t z)
{
    for (int64_t y = 0; y < all->height; y++) {
        uint8_t *to = row_of(all, z, y + 1) + 1;
        if (z < 0 || z == all->depth)
            memset(to, 0, (size_t)all->width);
        else
            for (int64_t x = 0; x < all->width; x++)
                to[x] = all->numbers[all->map[(z * all->height + y) * all->width + x]];
    }
}

/* Add the areas of the codes of a label: so many at once, or all that remain. */
static void add_codes(const stage *all, int64_t label, int32_t count)
{
    const uint8_t *codes = all->codes + label * all->room;
    int64_t voxels = 0;
    all->sums[label - 1] += sj_add_in_pairs(codes, count, all->areas);
    for (int32_t i = 0; i < count; i++)
        voxels += codes[i] & 1;
    all->totals[label - 1] += count, all->voxels[label - 1] += voxels;
}

/* Return whether all voxels around eight corners are alike. */
static inline int are_alike(const uint8_t *const *rows, int64_t x)
{
    uint64_t one = sj_load(rows[0] + x);
    return one == sj_load(rows[0] + x + 1) && one == sj_load(rows[1] + x) && one == sj_load(rows[1] + x + 1)
        && one == sj_load(rows[2] + x) && one == sj_load(rows[2] + x + 1) && one == sj_load(rows[3] + x)
        && one == sj_load(rows[3] + x + 1);
}

/* Append the codes of corners side by side to those of their labels. Each label counts once at a corner: with the first of
 * its voxels. */
static void append_codes(stage *all, const uint8_t *const *rows, int64_t x, int64_t corners)
{
    lanes numbers[AROUND], codes[AROUND], firsts = {0};
    for (int i = 0; i < AROUND; i++) {
        memcpy(numbers + i, rows[i & 3] + x + (i >> 2), SIDE_BY_SIDE);
        codes[i] = (lanes){0} + (uint8_t)(1 << i);
    }
    for (int i = 0; i < AROUND; i++)
        for (int j = i + 1; j < AROUND; j++) {
            lanes same = (lanes)(numbers[i] == numbers[j]);
            codes[i] |= same & (uint8_t)(1 << j);
            codes[j] |= same & (uint8_t)(1 << i);
        }
    for (int i = 0; i < AROUND; i++) {
        lanes is_first = (lanes)((codes[i] & (uint8_t)((1 << i) - 1)) == 0) & (lanes)(codes[i] != 255) & (lanes)(numbers[i] != 0);
        firsts |= is_first & (uint8_t)(1 << i);
    }
    uint8_t each_number[AROUND][SIDE_BY_SIDE], each_code[AROUND][SIDE_BY_SIDE], each_first[SIDE_BY_SIDE];
    memcpy(each_number, numbers, sizeof each_number);
    memcpy(each_code, codes, sizeof each_code);
    memcpy(each_first, &firsts, sizeof each_first);
    for (int64_t corner = 0; corner < corners; corner++)
        for (uint32_t bits = each_first[corner]; bits; bits &= bits - 1) {
            int i = __builtin_ctz(bits);
            uint8_t label = each_number[i][corner];
            all->codes[label * all->room + all->used[label]++] = each_code[i][corner];
        }
}

/* Read all rows of corners. */
static void read_corners(stage *all)
{
    read_plane(all, -1);
    for (int64_t z = 0; z <= all->depth; z++) {
        read_plane(all, z);
        for (int64_t y = 0; y <= all->height; y++) {
            const uint8_t *const rows[4] = {row_of(all, z - 1, y), row_of(all, z, y), row_of(all, z - 1, y + 1),
                                            row_of(all, z, y + 1)};
            for (int64_t x = 0; x <= all->width; x += SIDE_BY_SIDE)
                if (!are_alike(rows, x) || !are_alike(rows, x + SIDE_BY_SIDE / 2))
                    append_codes(all, rows, x, all->width + 1 - x < SIDE_BY_SIDE ? all->width + 1 - x : SIDE_BY_SIDE);
            for (int64_t label = 1; label <= all->count; label++)
                while (all->used[label] >= ADDED) {
                    uint8_t *codes = all->codes + label * all->room;
                    add_codes(all, label, ADDED);
                    all->used[label] -= ADDED;
                    memmove(codes, codes + ADDED, (size_t)all->used[label]);
                }
        }
    }
    for (int64_t label = 1; label <= all->count; label++)
        add_codes(all, label, all->used[label]);
}

/* Write the area of the surface of each label, the number of its places, and that of the places whose first voxel has the
 * label. Each byte below an end has the number of a label from 0 on, below 0 for none. */
SJ_EXPORT int sj_label_areas(
    const uint8_t *map, int64_t depth, int64_t height, int64_t width, const int32_t *numbers, int64_t labels,
    const double *areas, int64_t count, double *sums, int64_t *totals, int64_t *voxels)
{
    if (!map || !sj_is_volume(depth, height, width, INT32_MAX) || !numbers || labels < 0 || labels > 256 || !areas
        || count < 1 || count > MOST_LABELS || !sums || !totals || !voxels)
        return SJ_BAD_CALL;
    stage all = {.depth = depth, .height = height, .width = width, .stride = width + 2 + 2 * SIDE_BY_SIDE,
                 .room = ADDED + width + 1, .areas = areas, .map = map, .count = count,
                 .sums = sums, .totals = totals, .voxels = voxels};
    for (int64_t label = 0; label < labels; label++)
        if (numbers[label] >= count)
            return SJ_BAD_CALL;
        else
            all.numbers[label] = (uint8_t)(numbers[label] < 0 ? 0 : numbers[label] + 1);
    memset(sums, 0, (size_t)count * sizeof *sums);
    memset(totals, 0, (size_t)count * sizeof *totals);
    memset(voxels, 0, (size_t)count * sizeof *voxels);
    all.planes = calloc((size_t)(2 * (height + 2) * all.stride), 1);
    all.codes = malloc((size_t)((count + 1) * all.room));
    int status = all.planes && all.codes ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE)
        read_corners(&all);
    free(all.planes);
    free(all.codes);
    return status;
}
