/* A label map (z, y, x) -> the borders of many labels at once, where these are scattered: a search for each takes far
 * longer. */
#include "kernel.h"

#include <stdlib.h>

#define WORD 64
#define CORNERS 2
#define MOST_LABELS 255
#define MOST_PLANES 3

/* Labels by their numbers from 1 on, 0 for all others; three planes of rows of numbers, with an empty row, and empty bytes,
 * before and behind them; flags of a row. Of each label: its box and, in a row, where that begins in it and its width,
 * which is 0 where the row is outside; and where its next place goes, and those behind it. */
typedef struct {
    int64_t depth, height, width, stride, count;
    const uint8_t *map;
    uint8_t numbers[256], *planes, *flags;
    const int64_t *boxes;
    int32_t bases[MOST_LABELS + 1], lefts[MOST_LABELS + 1], widths[MOST_LABELS + 1];
    int64_t next[MOST_LABELS + 1], ends[MOST_LABELS + 1];
    int32_t *positions;
} stage;

static inline uint8_t *row_of(const stage *all, int64_t z, int64_t y)
{
    return all->planes + ((z + MOST_PLANES) % MOST_PLANES * (all->height + 2) + y + 1) * all->stride + 1;
}

/* Read a plane as numbers; planes outside are empty. */
static void read_plane(const stage *all, int64_t z)
{
    for (int64_t y = 0; y < all->height; y++) {
        uint8_t *to = row_of(all, z, y);
        if (z < 0 || z == all->depth)
            memset(to, 0, (size_t)all->width);
        else
            for (int64_t x = 0; x < all->width; x++)
                to[x] = all->numbers[all->map[(z * all->height + y) * all->width + x]];
    }
}

/* Find where a row begins in the box of each label. */
static void place_row(stage *all, int64_t z, int64_t y)
{
    for (int64_t label = 1; label <= all->count; label++) {
        const int64_t *box = all->boxes + 6 * (label - 1);
        int is_inside = z >= box[0] && z < box[1] && y >= box[2] && y < box[3];
        all->bases[label] = (int32_t)(((z - box[0]) * (box[3] - box[2]) + y - box[2]) * (box[5] - box[4]) - box[4]);
        all->widths[label] = is_inside ? (int32_t)(box[5] - box[4]) : 0;
    }
}

/* Flag the voxels of a row that differ from a neighbour: from one beside them, or at their place in other rows. */
static void flag_row(const stage *all, int64_t z, int64_t y, int corners)
{
    const uint8_t *row = row_of(all, z, y);
    uint8_t *restrict flags = all->flags;
    for (int64_t x = 0; x < all->width; x++)
        flags[x] = (row[x] != row[x - 1]) | (row[x] != row[x + 1]);
    for (int step_z = -1; step_z <= 1; step_z++)
        for (int step_y = -1; step_y <= 1; step_y++) {
            const uint8_t *other = row_of(all, z + step_z, y + step_y);
            if (!step_z == !step_y && !(corners && step_z))
                continue;
            for (int64_t x = 0; x < all->width; x++)
                flags[x] |= row[x] != other[x];
            for (int64_t x = 0; corners && x < all->width; x++)
                flags[x] |= (row[x] != other[x - 1]) | (row[x] != other[x + 1]);
        }
    for (int64_t x = 0; x < all->width; x++)
        flags[x] &= row[x] != 0;
}

/* List the flagged voxels of a row by labels; return whether boxes and lists have room. */
static int list_row(stage *all, const uint8_t *row)
{
    for (int64_t first = 0; first < all->width; first += 8) {
        uint64_t bits = sj_load(all->flags + first);
        for (; bits; bits &= bits - 1) {
            int64_t x = first + __builtin_ctzll(bits) / 8;
            uint8_t label = row[x];
            int64_t at = all->next[label]++;
            if (at >= all->ends[label] || (uint32_t)((int32_t)x - all->lefts[label]) >= (uint32_t)all->widths[label])
                return 0;
            all->positions[at] = all->bases[label] + (int32_t)x;
        }
    }
    return 1;
}

/* Return whether boxes lie in the volume, and lists one after another in the room. */
static int are_fine(const stage *all, const int64_t *bounds, int64_t room)
{
    const int64_t sides[3] = {all->depth, all->height, all->width};
    for (int64_t label = 0; label < all->count; label++) {
        const int64_t *box = all->boxes + 6 * label;
        for (int axis = 0; axis < 3; axis++)
            if (box[2 * axis] < 0 || box[2 * axis + 1] < box[2 * axis] || box[2 * axis + 1] > sides[axis])
                return 0;
        if (bounds[label] < 0 || bounds[label + 1] < bounds[label] || bounds[label + 1] > room)
            return 0;
    }
    return 1;
}

/* List the border of each label from its bound on, as positions in its box: from and to along z, y and x; count them. Each
 * byte below an end has the number of a label from 0 on, below 0 for none. A voxel of a border has a neighbour outside, of
 * six, or of 26 with corners (2). */
SJ_EXPORT int sj_label_borders(
    const uint8_t *map, int64_t depth, int64_t height, int64_t width, const int32_t *numbers, int64_t labels,
    const int64_t *boxes, int64_t count, int32_t kind, const int64_t *bounds, int64_t *totals, int32_t *positions,
    int64_t room)
{
    if (!map || !sj_is_volume(depth, height, width, INT32_MAX) || !numbers || labels < 0 || labels > 256 || !boxes
        || count < 1 || count > MOST_LABELS || (kind && kind != CORNERS) || !bounds || !totals || !positions || room < 0)
        return SJ_BAD_CALL;
    stage all = {.depth = depth, .height = height, .width = width, .stride = width + 2, .count = count, .map = map,
                 .boxes = boxes, .positions = positions};
    if (!are_fine(&all, bounds, room))
        return SJ_BAD_CALL;
    for (int64_t label = 0; label < labels; label++)
        if (numbers[label] >= count)
            return SJ_BAD_CALL;
        else
            all.numbers[label] = (uint8_t)(numbers[label] < 0 ? 0 : numbers[label] + 1);
    for (int64_t label = 0; label < count; label++) {
        all.lefts[label + 1] = (int32_t)boxes[6 * label + 4];
        all.next[label + 1] = bounds[label], all.ends[label + 1] = bounds[label + 1];
    }
    all.planes = calloc((size_t)(MOST_PLANES * (height + 2) * all.stride + width + WORD), 1);
    if (!all.planes)
        return SJ_NO_MEMORY;
    all.flags = all.planes + MOST_PLANES * (height + 2) * all.stride;
    read_plane(&all, -1);
    read_plane(&all, 0);
    int fits = 1;
    for (int64_t z = 0; fits && z < depth; z++) {
        read_plane(&all, z + 1);
        for (int64_t y = 0; fits && y < height; y++) {
            place_row(&all, z, y);
            flag_row(&all, z, y, kind == CORNERS);
            fits = list_row(&all, row_of(&all, z, y));
        }
    }
    for (int64_t label = 0; label < count; label++)
        totals[label] = all.next[label + 1] - bounds[label];
    free(all.planes);
    return fits ? SJ_FINE : SJ_BAD_DATA;
}
