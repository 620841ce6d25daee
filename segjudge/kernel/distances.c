/* A grey map and the mask of an object -> sums of grey by distance to the object, and the nearest object pixels.
 *
 * Distances are found in linear time: down columns first, then along rows by the lower envelope of parabolas.
 */
#include "kernel.h"

#include <stdlib.h>

#define REACH 255 /* pixels; greater distances count as this one */
#define SQUARES (REACH * REACH + 1)
#define MOST_SIDE (1 << 15) /* so that squares fit into 32 bits */
#define BLOCK 64

/* A map and its object, the parameters, and the output arrays. */
typedef struct {
    const uint8_t *truth, *values;
    int32_t height, width, near;
    uint8_t least;
    int64_t *excess;
    uint8_t *out;
} map;

/* A row: for each column the distance up or down to the nearest object pixel and its square; and the lower envelope
 * of these parabolas: the column of each, and where it begins. The object lies in the columns from `left` to
 * `right`. */
typedef struct {
    uint8_t *above, *below, *nearer;
    int32_t *squares, *sites, *starts;
    int32_t left, right;
} line;

static inline int32_t away(const line *row, int32_t x, int32_t site)
{
    return (x - site) * (x - site) + row->squares[site];
}

static inline int is_wrong(uint8_t object, uint8_t value, uint8_t least) { return (object == 0) & (value > least); }

static int has_wrong(const uint8_t *truth, const uint8_t *values, int32_t count, uint8_t least)
{
    uint8_t any = 0;
    for (int32_t x = 0; x < count; x++)
        any |= (uint8_t)is_wrong(truth[x], values[x], least);
    return any;
}

/* Find the range of columns (from, to) that contains all wrong pixels of a row; the width and 0 if there are none. */
static void find_wrong(const uint8_t *truth, const uint8_t *values, int32_t width, uint8_t least, int32_t *from, int32_t *to)
{
    int32_t first = 0, last = width;
    while (width - first >= BLOCK && !has_wrong(truth + first, values + first, BLOCK, least))
        first += BLOCK;
    while (first < width && !is_wrong(truth[first], values[first], least))
        first++;
    while (last - first >= BLOCK && !has_wrong(truth + last - BLOCK, values + last - BLOCK, BLOCK, least))
        last -= BLOCK;
    while (last > first && !is_wrong(truth[last - 1], values[last - 1], least))
        last--;
    *from = first, *to = first < last ? last : 0;
}

/* Compute for each column the distance up or down to the nearest object pixel, from the previous row. */
static void step(uint8_t *out, const uint8_t *before, const uint8_t *truth, int32_t width)
{
    for (int32_t x = 0; x < width; x++) {
        uint8_t further = (uint8_t)(before[x] + (before[x] != REACH));
        out[x] = truth[x] ? 0 : further;
    }
}

/* Add a parabola to the envelope of the columns up to `end`, and return the number of parabolas; in a tie the left
 * one stays. */
static inline int32_t add_site(line *row, int32_t count, int32_t site, int32_t begin, int32_t end)
{
    while (count && away(row, row->starts[count - 1], row->sites[count - 1]) > away(row, row->starts[count - 1], site))
        count--;
    int32_t start = begin;
    if (count) {
        int32_t other = row->sites[count - 1];
        start = 1 + (site * site - other * other + row->squares[site] - row->squares[other]) / (2 * (site - other));
    }
    if (start < end) {
        row->sites[count] = site, row->starts[count] = start;
        count++;
    }
    return count;
}

/* Build the envelope of the columns from `begin` to `end` between two object pixels, or -1 and the width. */
static int32_t envelope(line *row, int32_t before, int32_t behind, int32_t width, int32_t begin, int32_t end)
{
    int32_t count = before >= 0 ? add_site(row, 0, before, begin, end) : 0;
    int32_t last = behind < row->right ? behind : row->right;
    for (int32_t x = before + 1 > row->left ? before + 1 : row->left; x < last; x++)
        if (row->squares[x] < SQUARES - 1)
            count = add_site(row, count, x, begin, end);
    return behind < width ? add_site(row, count, behind, begin, end) : count;
}

/* Measure the pixels of a row from `begin` to `end` between two object pixels, or -1 and the width. */
static void measure_gap(const map *all, line *row, int32_t y, int32_t before, int32_t behind, int32_t begin, int32_t end)
{
    const uint8_t *values = all->values + (int64_t)y * all->width;
    uint8_t *out = all->out + (int64_t)y * all->width;
    int32_t count = envelope(row, before, behind, all->width, begin, end);
    for (int32_t x = end - 1; x >= begin; x--) {
        int32_t square = SQUARES - 1, site = 0;
        if (count) {
            while (row->starts[count - 1] > x)
                count--;
            site = row->sites[count - 1];
            square = away(row, x, site);
        }
        square = square < SQUARES - 1 ? square : SQUARES - 1;
        if (values[x] > all->least)
            all->excess[square] += values[x] - all->least;
        if (square <= all->near) {
            int32_t far = row->nearer[site], nearest = row->above[site] == far ? y - far : y + far;
            out[x] = all->values[(int64_t)nearest * all->width + site];
        }
    }
}

/* Measure the pixels of a row that lie outside the object and are wrong or possibly near. */
static void measure_row(const map *all, line *row, int32_t y)
{
    const uint8_t *truth = all->truth + (int64_t)y * all->width, *values = all->values + (int64_t)y * all->width;
    uint8_t *out = all->out + (int64_t)y * all->width, least_far = REACH;
    int32_t from, to;
    for (int32_t x = 0; x < all->width; x++) {
        row->nearer[x] = row->above[x] < row->below[x] ? row->above[x] : row->below[x];
        least_far = row->nearer[x] < least_far ? row->nearer[x] : least_far;
        row->squares[x] = row->nearer[x] * row->nearer[x];
        out[x] = truth[x] ? values[x] : 255;
    }
    find_wrong(truth, values, all->width, all->least, &from, &to);
    if (least_far * least_far <= all->near) {
        int32_t margin = 0;
        while (margin * margin < all->near)
            margin++;
        int32_t left = row->left > margin ? row->left - margin : 0;
        int32_t right = row->right + margin < all->width ? row->right + margin : all->width;
        from = from < left ? from : left, to = to > right ? to : right;
    }
    for (int32_t before = -1, behind; from < to; from = behind) {
        for (behind = from; behind < all->width && !truth[behind];)
            behind++;
        for (before = from - 1; before >= 0 && !truth[before];)
            before--;
        if (behind > from)
            measure_gap(all, row, y, before, behind, from, behind < to ? behind : to);
        while (behind < to && truth[behind])
            behind++;
    }
}

/* Write the distance up to the nearest object pixel for all rows, and find the columns with object pixels. */
static void look_up(const map *all, line *row, uint8_t *above, uint8_t *columns)
{
    memset(row->below, REACH, (size_t)all->width);
    memset(columns, 0, (size_t)all->width);
    for (int32_t y = 0; y < all->height; y++, above += all->width) {
        const uint8_t *truth = all->truth + (int64_t)y * all->width;
        step(above, y ? above - all->width : row->below, truth, all->width);
        for (int32_t x = 0; x < all->width; x++)
            columns[x] |= truth[x];
    }
    row->left = all->width, row->right = 0;
    for (int32_t x = 0; x < all->width; x++)
        if (columns[x]) {
            row->left = x < row->left ? x : row->left;
            row->right = x + 1;
        }
}

/* For each squared distance to the object, sum the excess of outside pixels over `least`. Also copy the map: near
 * outside pixels get the value of the nearest object pixel, all other outside pixels 255.
 *
 * A pixel is near if its squared distance is at most `near`. Of equally near object pixels, the leftmost counts,
 * then the upper one. `excess` has one number for each square up to that of 255. */
SJ_EXPORT int sj_survey(
    const uint8_t *truth, const uint8_t *values, int64_t height, int64_t width, uint32_t least, int32_t near,
    int64_t *excess, int64_t squares, uint8_t *out)
{
    if (!truth || !values || !excess || !out || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE
        || least > 255 || near < 0 || near >= SQUARES - 1 || squares != SQUARES)
        return SJ_BAD_CALL;
    map all = {truth, values, (int32_t)height, (int32_t)width, near, (uint8_t)least, excess, out};
    uint8_t *bytes = malloc((size_t)((height + 3) * width));
    int32_t *numbers = malloc((size_t)(3 * width) * sizeof *numbers);
    if (bytes && numbers) {
        uint8_t *rest = bytes + height * width;
        line row = {bytes, rest, rest + width, numbers, numbers + width, numbers + 2 * width, 0, 0};
        look_up(&all, &row, bytes, rest + 2 * width);
        for (int32_t y = all.height - 1; y >= 0; y--) {
            row.above = bytes + (int64_t)y * width;
            step(row.below, row.below, truth + (int64_t)y * width, all.width);
            measure_row(&all, &row, y);
        }
    }
    int status = bytes && numbers ? SJ_FINE : SJ_NO_MEMORY;
    free(bytes);
    free(numbers);
    return status;
}
