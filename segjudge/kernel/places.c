/* Lists of places of a volume (z, y, x) -> their blocks, the places of a box in another volume, and the sum of their
 * areas. */
#include "kernel.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define CODES 256
/* As numpy adds: blocks are halved down to short rows, which are added in so many lanes. */
#define ROW 128
#define LANES 8

/* Write the number of the block of each place, which is given by its position in a volume; the sides of blocks have
 * this many bits. */
SJ_EXPORT int sj_find_blocks(
    const int32_t *places, int64_t count, int64_t depth, int64_t height, int64_t width, int32_t bits, int32_t *blocks)
{
    if (!places || !blocks || count < 0 || !sj_is_volume(depth, height, width, INT32_MAX) || bits < 0 || bits > 8)
        return SJ_BAD_CALL;
    int32_t across = (int32_t)((width - 1) >> bits) + 1, down = (int32_t)((height - 1) >> bits) + 1;
    int32_t end = (int32_t)(depth * height * width), start = 0, block = 0;
    for (int64_t each = 0; each < count; each++) {
        int32_t place = places[each];
        if (place < 0 || place >= end)
            return SJ_BAD_DATA;
        if (!each || place < start || place - start >= width) {
            int32_t row = place / (int32_t)width;
            start = row * (int32_t)width;
            block = ((row / (int32_t)height >> bits) * down + (row % (int32_t)height >> bits)) * across;
        }
        blocks[each] = block + ((place - start) >> bits);
    }
    return SJ_FINE;
}

/* Return the first of some places, which are in order, from a position on. */
static inline int64_t find_place(const int32_t *places, int64_t first, int64_t count, int64_t position)
{
    int64_t step = 1;
    if (first == count || places[first] >= position)
        return first;
    for (; first + step < count && places[first + step] < position; step *= 2)
        first += step;
    for (; step; step /= 2)
        first += first + step <= count && places[first + step - 1] < position ? step : 0;
    return first;
}

/* Return whether a box, from and to along z, y and x, lies in a volume, and in another one if it begins there. */
static int is_in_both(const int64_t *box, const int64_t *sides, const int64_t *to)
{
    for (int axis = 0; axis < 3; axis++) {
        int64_t from = box[2 * axis], end = box[2 * axis + 1];
        if (from < 0 || end < from || end > sides[axis] || to[3 + axis] < 0 || to[3 + axis] > to[axis] - (end - from))
            return 0;
    }
    return 1;
}

/* Write the places of a box, from and to along z, y and x, as places of another volume, of which the sides are given and
 * then the voxel where the box begins; and their codes. Count them; there is room for so many. */
SJ_EXPORT int sj_move_places(
    const int32_t *places, const uint8_t *codes, int64_t count, int64_t depth, int64_t height, int64_t width,
    const int64_t *box, const int64_t *to, int32_t *moved, uint8_t *moved_codes, int64_t room, int64_t *total)
{
    const int64_t sides[3] = {depth, height, width};
    if (!places || count < 0 || !box || !to || !codes || !moved || !moved_codes || !total || room < 0
        || !sj_is_volume(depth, height, width, INT32_MAX) || !sj_is_volume(to[0], to[1], to[2], INT32_MAX)
        || !is_in_both(box, sides, to))
        return SJ_BAD_CALL;
    const int64_t across = box[5] - box[4];
    int64_t used = 0, place = 0, z = box[0], y = box[2];
    while (z < box[1] && y < box[3]) {
        int64_t start = (z * height + y) * width + box[4], end = start + across;
        place = find_place(places, place, count, start);
        if (place == count)
            break;
        if (places[place] < start)
            return SJ_BAD_DATA;
        int32_t by = (int32_t)(((z - box[0] + to[3]) * to[1] + y - box[2] + to[4]) * to[2] + to[5] - start);
        for (; place < count && places[place] >= start && places[place] < end; place++) {
            if (used == room)
                return SJ_BAD_DATA;
            moved_codes[used] = codes[place];
            moved[used++] = places[place] + by;
        }
        if (place == count)
            break;
        /* On in the next row of the box that has a place. */
        int64_t row = places[place] / width, next = z * height + y + 1;
        row = row > next ? row : next;
        z = row / height, y = row % height;
        if (y >= box[3])
            z++, y = box[2];
        y = y < box[2] ? box[2] : y;
    }
    *total = used;
    return SJ_FINE;
}

double sj_add_in_pairs(const uint8_t *codes, int64_t count, const double *areas)
{
    if (count > ROW) {
        int64_t half = count / 2 - count / 2 % LANES;
        return sj_add_in_pairs(codes, half, areas) + sj_add_in_pairs(codes + half, count - half, areas);
    }
    double lanes[LANES] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++)
            lanes[lane] += areas[codes[i + lane]];
    if (i)
        sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; i < count; i++)
        sum += areas[codes[i]];
    return sum;
}

/* Add the areas of the codes of places, or of those with a flag of 1 if there are flags: blocks in pairs, one after
 * another. */
SJ_EXPORT int sj_sum_areas(const uint8_t *codes, const uint8_t *flags, int64_t count, const double *areas, double *sum)
{
    uint8_t chosen[SJ_ADDED];
    int64_t used = 0;
    if (!codes || count < 0 || !areas || !sum)
        return SJ_BAD_CALL;
    *sum = 0;
    for (int64_t i = 0; !flags && i < count; i += SJ_ADDED)
        *sum += sj_add_in_pairs(codes + i, count - i < SJ_ADDED ? count - i : SJ_ADDED, areas);
    for (int64_t i = 0; flags && i < count; i++) {
        chosen[used] = codes[i], used += flags[i] & 1;
        if (used == SJ_ADDED)
            *sum += sj_add_in_pairs(chosen, used, areas), used = 0;
    }
    *sum += sj_add_in_pairs(chosen, used, areas);
    return SJ_FINE;
}
