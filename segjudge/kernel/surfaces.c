/* A mask (z, y, x) of 0 and 1 -> the corners of its surface, or its border, as a list of positions. */
#include "kernel.h"

#include <stdlib.h>

/* Kinds of borders. */
#define OPEN_ENDS 1
#define CORNERS 2
#define INSIDE 255

/* A mask, and a row for outside. */
typedef struct {
    const uint8_t *mask, *outside;
    int64_t depth, height, width;
} volume;

/* A list, which only counts without positions. */
typedef struct {
    int32_t *positions;
    uint8_t *codes;
    int64_t room, count;
} list;

static int is_mask(const volume *of)
{
    return of->mask && sj_is_volume(of->depth, of->height, of->width, INT32_MAX)
        && sj_is_volume(of->depth + 1, of->height + 1, of->width + 1, INT32_MAX);
}

static inline const uint8_t *row_of(const volume *of, int64_t z, int64_t y)
{
    int is_inside = z >= 0 && z < of->depth && y >= 0 && y < of->height;
    return is_inside ? of->mask + (z * of->height + y) * of->width : of->outside;
}

static inline void put(list *to, int64_t position, uint8_t code)
{
    if (to->positions && to->count < to->room) {
        to->positions[to->count] = (int32_t)position;
        if (to->codes)
            to->codes[to->count] = code;
    }
    to->count++;
}

/* List the corners of a row that are neither inside nor outside, given the four rows of voxels around it; `sides` has
 * room for a byte per voxel and one at each end, which are 0. */
static void list_corners(const uint8_t *const *rows, int64_t width, int64_t position, uint8_t *restrict sides, list *to)
{
    const uint8_t *one = rows[0], *two = rows[1], *three = rows[2], *four = rows[3];
    for (int64_t x = 0; x < width; x++)
        sides[x + 1] = (uint8_t)(one[x] | two[x] << 1 | three[x] << 2 | four[x] << 3);
    for (int64_t x = 0; x <= width;) {
        uint8_t left = sides[x];
        if (x + 8 <= width && (!left || left == 15) && sj_load(sides + x + 1) == left * 0x0101010101010101u) {
            x += 8;
            continue;
        }
        uint8_t code = (uint8_t)(left | sides[x + 1] << 4);
        if (code && code != INSIDE)
            put(to, position + x, code);
        x++;
    }
}

/* List the corners between voxels of a mask and others, in the order of the volume: their positions among all corners,
 * and the bits 4 x + 2 y + z of their voxels in the mask. All are counted; those in the room are written. */
SJ_EXPORT int sj_surface(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int32_t *positions, uint8_t *codes, int64_t room,
    int64_t *count)
{
    volume of = {mask, NULL, depth, height, width};
    list to = {positions, codes, room, 0};
    if (!is_mask(&of) || (positions && !codes) || room < 0 || !count)
        return SJ_BAD_CALL;
    uint8_t *bytes = calloc((size_t)(2 * width + 2), 1);
    if (!bytes)
        return SJ_NO_MEMORY;
    of.outside = bytes + width + 2;
    for (int64_t z = 0; z <= depth; z++)
        for (int64_t y = 0; y <= height; y++) {
            const uint8_t *rows[4] = {row_of(&of, z - 1, y - 1), row_of(&of, z, y - 1), row_of(&of, z - 1, y), row_of(&of, z, y)};
            list_corners(rows, width, (z * (height + 1) + y) * (width + 1), bytes, &to);
        }
    free(bytes);
    *count = to.count;
    return SJ_FINE;
}

/* List the voxels of a row that have a neighbour outside; `inner` has room for a byte per voxel and one at each end. */
static void list_border(const volume *of, int32_t kind, int64_t z, int64_t y, uint8_t *restrict inner, list *to)
{
    const uint8_t *row = row_of(of, z, y);
    int64_t width = of->width;
    if (!memchr(row, 1, (size_t)width))
        return;
    memcpy(inner + 1, row, (size_t)width);
    inner[0] = inner[width + 1] = kind == OPEN_ENDS;
    for (int64_t step_z = -1; step_z <= 1; step_z++)
        for (int64_t step_y = -1; step_y <= 1; step_y++) {
            const uint8_t *near = row_of(of, z + step_z, y + step_y);
            if (kind == CORNERS || !step_z != !step_y)
                for (int64_t x = 0; x < width; x++)
                    inner[x + 1] &= near[x];
        }
    const uint8_t *beside = kind == CORNERS ? inner + 1 : row;
    for (int64_t x = 0; x < width; x++) {
        int left = x ? beside[x - 1] : inner[0], right = x + 1 < width ? beside[x + 1] : inner[width + 1];
        if (row[x] && !(inner[x + 1] & left & right))
            put(to, (z * of->height + y) * width + x, 1);
    }
}

/* List the voxels of a mask that have one of six neighbours outside it, in the order of the volume; the outside of the
 * volume counts unless ends are open (1), and 26 neighbours count with corners (2). All are counted; those in the room
 * are written. */
SJ_EXPORT int sj_border(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int32_t kind, int32_t *positions, int64_t room,
    int64_t *count)
{
    volume of = {mask, NULL, depth, height, width};
    list to = {positions, NULL, room, 0};
    if (!is_mask(&of) || kind < 0 || kind > CORNERS || room < 0 || !count)
        return SJ_BAD_CALL;
    uint8_t *bytes = malloc((size_t)(2 * width + 2));
    if (!bytes)
        return SJ_NO_MEMORY;
    of.outside = memset(bytes + width + 2, kind == OPEN_ENDS, (size_t)width);
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++)
            list_border(&of, kind, z, y, bytes, &to);
    free(bytes);
    *count = to.count;
    return SJ_FINE;
}
