/* The surface of a mask and places of another one -> the distances to them within which two shares of its area lie.
 *
 * That needs the distances of few places: if most are only a few steps away, those between two squares that a sample
 * shows; otherwise the distances of blocks of voxels bound those of all. Bounds may round, because they are widened;
 * distances that decide are exact. An index has the places of each block side by side. */
#include "windows.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The sides of blocks, as powers of two: those of an index, and longer ones, which take less time unless a surface has
 * so many times as many places as there are small blocks. */
#define BITS 2
#define MORE_BITS 3
#define DENSE 8
/* All places are measured if there are so many times as many targets as blocks. */
#define MANY 4
/* The side of boxes of blocks whose places are measured one after another. */
#define LARGE (1 << SJ_LARGE_BITS)
#define CODES 256
/* The share of a bound by which rounding may differ. */
#define MARGIN 1e-6
#define BINS 4096
/* The number of places that are sorted. */
#define SORTED 4096
/* The number of columns of blocks that are read together, of which floats fill a line of the processor's memory. */
#define COLUMNS 16
/* At first, places that are this near to the estimated distance are listed, as a share of a block's radius; then, those so
 * many times as near. */
#define NEAR 0.05
#define WIDER 4
/* Of samples of places, whose distances estimate the one within which the share lies: the numbers, first of a few, and
 * by how much more or less of the area it may lie at. */
#define FEW 128
#define SAMPLE 4096
#define TOLERANCE 0.015
/* Less than any square but 0. */
#define LEAST_SQUARE 1e-30
/* Squares of smaller or larger steps would not be precise, nor sums of larger areas. */
#define LEAST_STEP 1e-9
#define GREATEST_STEP 1e9
#define GREATEST_AREA 1e30

/* The square of a place's distance, and its area. */
typedef struct {
    double square, area;
} measured;

/* A surface and targets in one volume; and places that are measured already, as if they were the surface's last. */
typedef struct {
    sj_list places, targets;
    const uint8_t *codes;
    const double *areas, *spacing;
    const double *extras; /* the square and the area of each */
    int64_t extra_count;
    int bits;
    int64_t side, cells, blocks[3]; /* of blocks: their side, their number, and that along z, y and x */
    double half;                    /* the steps from a block's centre to its first voxel */
    const double *sums; /* an index: the area by block, where its places begin, and their voxels in it and codes */
    const int32_t *starts;
    const uint16_t *voxels;
    const uint8_t *block_codes;
    float *distances;               /* from the centres of blocks to the nearest target */
    double total, low, high;        /* of the area; and the areas that are looked for */
} surface;

/* Return the root of a number from 0 on, with an error of less than the margin. */
static double root_of(double square)
{
    uint64_t bits;
    double guess;
    if (!(square > 0))
        return 0;
    memcpy(&bits, &square, sizeof bits);
    bits = (bits >> 1) + ((uint64_t)1023 << 51);
    memcpy(&guess, &bits, sizeof guess);
    for (int step = 0; step < 4; step++)
        guess = (guess + square / guess) / 2;
    return guess;
}

/* Replace squares by their roots. */
static void take_roots(float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        float square = numbers[i] > 1e-30f ? numbers[i] : 1e-30f, guess;
        memcpy(&bits, &square, sizeof bits);
        bits = (bits >> 1) + ((uint32_t)127 << 22);
        memcpy(&guess, &bits, sizeof guess);
        for (int step = 0; step < 3; step++)
            guess = (guess + square / guess) * 0.5f;
        numbers[i] = guess;
    }
}

/* Divide the volume into blocks whose sides have this many bits. */
static void divide(surface *all, int bits)
{
    const int64_t sides[3] = {all->places.depth, all->places.height, all->places.width};
    all->bits = bits, all->side = (int64_t)1 << bits, all->half = (double)(all->side - 1) / 2, all->cells = 1;
    for (int axis = 0; axis < 3; axis++) {
        all->blocks[axis] = ((sides[axis] - 1) >> bits) + 1;
        all->cells *= all->blocks[axis];
    }
}

/* The first place of a row, the place behind its last one, and where the row starts; its first block; and its line in the
 * voxels of blocks. */
typedef struct {
    int64_t first, last, block;
    int32_t start, line;
} place_row;

/* Find the row of the place behind another row; return whether there is one. */
static inline int next_row(const surface *all, place_row *row)
{
    const sj_list *places = &all->places;
    const int64_t last_bits = all->side - 1;
    if (row->last == places->count)
        return 0;
    int64_t number = places->at[row->last] / places->width, z = number / places->height, y = number % places->height;
    int64_t start = number * places->width, end = start + places->width, last = row->last;
    while (last < places->count && places->at[last] < end)
        last++;
    *row = (place_row){row->last, last, ((z >> all->bits) * all->blocks[1] + (y >> all->bits)) * all->blocks[2],
                       (int32_t)start, (int32_t)(((z & last_bits) << all->bits | (y & last_bits)) << all->bits)};
    return 1;
}

/* Write the index of places: the area of each block; where the places of each begin, with their number behind; and of
 * these places the voxel in the block and the code, in the order of the volume. Return whether places are in order and
 * inside the volume. */
static int index_places(
    const surface *all, double *restrict sums, int32_t *restrict starts, uint16_t *restrict voxels, uint8_t *restrict codes)
{
    const sj_list *places = &all->places;
    const int32_t *at = places->at, bits = all->bits, last_bits = (int32_t)all->side - 1;
    const double *areas = all->areas;
    int is_disordered = at[0] < 0 || at[places->count - 1] >= places->depth * places->height * places->width;
    for (int64_t i = 1; i < places->count; i++)
        is_disordered |= at[i] <= at[i - 1];
    if (is_disordered)
        return 0;
    memset(sums, 0, (size_t)all->cells * sizeof *sums);
    memset(starts, 0, (size_t)(all->cells + 1) * sizeof *starts);
    for (place_row row = {0}; next_row(all, &row);)
        for (int64_t i = row.first; i < row.last; i++) {
            int64_t block = row.block + ((at[i] - row.start) >> bits);
            starts[block]++, sums[block] += areas[all->codes[i]];
        }
    for (int32_t block = 0, sum = 0; block <= all->cells; block++) {
        int32_t count = starts[block];
        starts[block] = sum, sum += count;
    }
    for (place_row row = {0}; next_row(all, &row);)
        for (int64_t i = row.first; i < row.last; i++) {
            int32_t x = at[i] - row.start, *start = starts + row.block + (x >> bits);
            voxels[*start] = (uint16_t)(row.line | (x & last_bits)), codes[(*start)++] = all->codes[i];
        }
    memmove(starts + 1, starts, (size_t)all->cells * sizeof *starts);
    starts[0] = 0;
    return 1;
}

/* ── the distances of blocks ── */

/* The lower envelope of parabolas: the site of each, its least value, and where it begins; and by the steps between two
 * of them, by how much a difference of their values moves where they meet. */
typedef struct {
    double *values, *starts, *moves;
    int32_t *sites;
    int64_t count;
} envelope;

static void set_moves(const envelope *of, int64_t longest, double unit)
{
    for (int64_t apart = 1; apart < longest; apart++)
        of->moves[apart] = 1 / (2 * unit * (double)apart);
}

/* Add a parabola behind the others. */
static inline void add_parabola(envelope *of, int32_t site, double value)
{
    double start = -1;
    while (of->count) {
        int64_t last = of->count - 1;
        start = (value - of->values[last]) * of->moves[site - of->sites[last]] + (double)(site + of->sites[last]) / 2;
        if (!last || start > of->starts[last])
            break;
        of->count--;
    }
    of->sites[of->count] = site, of->values[of->count] = value, of->starts[of->count++] = start;
}

/* Write the least values at the centres of blocks, so many numbers apart. */
static void evaluate(
    const surface *all, const envelope *of, int64_t blocks, double unit, float *out, int64_t step)
{
    for (int64_t block = 0, each = 0; block < blocks; block++) {
        double at = (double)(all->side * block) + all->half;
        while (each + 1 < of->count && of->starts[each + 1] <= at)
            each++;
        out[block * step] = (float)(of->values[each] + unit * (at - of->sites[each]) * (at - of->sites[each]));
    }
}

/* Write the squares of the steps along x from the centres of blocks to the nearest target of a row that has some. */
static void measure_row(
    const surface *all, const int32_t *target, const int32_t *end, int64_t start, double unit, double *out)
{
    double before = (double)(*target - start), behind = before;
    for (int64_t block = 0; block < all->blocks[2]; block++) {
        double at = (double)(all->side * block) + all->half;
        while (behind < at && target < end) {
            before = behind, behind = (double)(*target - start);
            target++;
        }
        double to = at - before < 0 ? before - at : at - before, from = behind - at < 0 ? at - behind : behind - at;
        to = to < from ? to : from;
        out[block] = unit * to * to;
    }
}

/* Write the least squares in a plane (y, x) with targets; return the position of the next plane's first target. */
static int64_t measure_plane(
    const surface *all, int64_t z, int64_t next, double *rows, int32_t *numbers, envelope *lower, float *out)
{
    const sj_list *targets = &all->targets;
    int64_t width = targets->width, blocks = all->blocks[2], end = (z + 1) * targets->height * width, count = 0;
    double unit_x = all->spacing[0] * all->spacing[0], unit_y = all->spacing[1] * all->spacing[1];
    while (next < targets->count && targets->at[next] < end) {
        int64_t number = targets->at[next] / width, last = next;
        while (last < targets->count && targets->at[last] < (number + 1) * width)
            last++;
        measure_row(all, targets->at + next, targets->at + last, number * width, unit_x, rows + count * blocks);
        numbers[count++] = (int32_t)(number - z * targets->height);
        next = last;
    }
    for (int64_t x = 0; x < blocks; x++) {
        lower->count = 0;
        for (int64_t i = 0; i < count; i++)
            add_parabola(lower, numbers[i], rows[i * blocks + x]);
        evaluate(all, lower, all->blocks[1], unit_y, out + x, blocks);
    }
    return next;
}

/* Write the distances of the blocks in columns along z from the least squares in planes with targets. */
static void measure_columns(
    const surface *all, int64_t first, int64_t count, const float *squares, const int32_t *planes, int64_t plane_count,
    envelope *lower, double *values)
{
    int64_t area = all->blocks[1] * all->blocks[2];
    double unit = all->spacing[2] * all->spacing[2];
    for (int64_t i = 0; i < plane_count; i++)
        for (int64_t column = 0; column < count; column++)
            values[column * plane_count + i] = squares[i * area + first + column];
    for (int64_t column = 0; column < count; column++) {
        lower->count = 0;
        for (int64_t i = 0; i < plane_count; i++)
            add_parabola(lower, planes[i], values[column * plane_count + i]);
        evaluate(all, lower, all->blocks[0], unit, all->distances + first + column, area);
    }
}

/* Return the number of planes with targets, which are in order and inside the volume, or -1. */
static int64_t list_planes(const sj_list *targets, int32_t *planes)
{
    int64_t area = targets->height * targets->width, count = 0, end = 0;
    for (int64_t i = 0; i < targets->count; i++) {
        int32_t target = targets->at[i];
        if (target < 0 || target >= targets->depth * area || (i && target <= targets->at[i - 1]))
            return -1;
        if (target >= end) {
            planes[count] = (int32_t)(target / area);
            end = (planes[count++] + 1) * area;
        }
    }
    return count;
}

/* Measure the distances from the centres of blocks; return a status. */
static int measure_blocks(const surface *all)
{
    const sj_list *targets = &all->targets;
    int64_t longest = targets->depth > targets->height ? targets->depth : targets->height;
    int64_t area = all->blocks[1] * all->blocks[2], rows = targets->height * all->blocks[2], next = 0;
    rows = rows > COLUMNS * targets->depth ? rows : COLUMNS * targets->depth;
    double *numbers = malloc((size_t)(3 * longest + rows) * sizeof *numbers);
    int32_t *planes = malloc((size_t)(targets->depth + targets->height + longest) * sizeof *planes);
    int64_t count = planes ? list_planes(targets, planes) : 0;
    float *squares = malloc((size_t)((count > 0 ? count : 1) * area) * sizeof *squares);
    int status = !numbers || !planes || !squares ? SJ_NO_MEMORY : count < 0 ? SJ_BAD_DATA : SJ_FINE;
    if (status == SJ_FINE) {
        envelope lower = {numbers, numbers + longest, numbers + 2 * longest, planes + targets->depth + targets->height, 0};
        double *values = numbers + 3 * longest;
        set_moves(&lower, longest, all->spacing[1] * all->spacing[1]);
        for (int64_t i = 0; i < count; i++)
            next = measure_plane(all, planes[i], next, values, planes + targets->depth, &lower, squares + i * area);
        set_moves(&lower, longest, all->spacing[2] * all->spacing[2]);
        for (int64_t first = 0; first < area; first += COLUMNS) {
            int64_t columns = area - first < COLUMNS ? area - first : COLUMNS;
            measure_columns(all, first, columns, squares, planes, count, &lower, values);
        }
        take_roots(all->distances, all->cells);
    }
    free(numbers);
    free(planes);
    free(squares);
    return status;
}

/* ── the places that may lie there ── */

/* Return the distance of blocks within which the areas lie, from the middle to the ends of bins; the greatest error is
 * written. */
static double estimate(const surface *all, double *error)
{
    double bins[BINS] = {0}, sum = 0, least = INFINITY, greatest = 0;
    int64_t bin = 0;
    for (int64_t block = 0; block < all->cells; block++)
        if (all->sums[block] > 0) {
            least = all->distances[block] < least ? all->distances[block] : least;
            greatest = all->distances[block] > greatest ? all->distances[block] : greatest;
        }
    for (int64_t i = 0; i < all->extra_count; i++) {
        double distance = root_of(all->extras[2 * i]);
        least = distance < least ? distance : least;
        greatest = distance > greatest ? distance : greatest;
    }
    double width = (greatest - least) / (BINS - 1), scale = width > 0 ? (1 - MARGIN) / width : 0;
    for (int64_t block = 0; block < all->cells; block++)
        if (all->sums[block] > 0)
            bins[(int64_t)((all->distances[block] - least) * scale)] += all->sums[block];
    for (int64_t i = 0; i < all->extra_count; i++)
        bins[(int64_t)((root_of(all->extras[2 * i]) - least) * scale)] += all->extras[2 * i + 1];
    for (; bin + 1 < BINS && sum + bins[bin] < all->low; bin++)
        sum += bins[bin];
    double start = least + (double)bin * width;
    for (sum += bins[bin]; bin + 1 < BINS && sum < all->high;)
        sum += bins[++bin];
    double end = least + (double)(bin + 1) * width;
    *error = (end - start) / 2 + MARGIN * end;
    return (start + end) / 2;
}

/* Places that are measured, of which those between two distances are listed, and the area of nearer ones. */
typedef struct {
    double least, greatest, nearer;
    measured *items;
    int64_t count, room;
} choice;

/* Choose a measured place unless it is nearer or farther; return 0 without memory. */
static inline int choose(choice *of, double square, double area)
{
    if (square < of->least * of->least) {
        of->nearer += area;
        return 1;
    }
    if (square > of->greatest * of->greatest)
        return 1;
    if (of->count == of->room) {
        int64_t room = 2 * of->room + SORTED;
        measured *items = realloc(of->items, (size_t)room * sizeof *items);
        if (!items)
            return 0;
        of->items = items, of->room = room;
    }
    of->items[of->count++] = (measured){square, area};
    return 1;
}

/* Open blocks of a surface, and the search for the nearest targets. */
typedef struct {
    const uint8_t *flags;
    sj_search *search;
} open_blocks;

/* Return whether there is a block at a position along z, y and x, and it is open. */
static inline int is_open(const surface *all, const open_blocks *in, const int64_t *at)
{
    return at[0] < all->blocks[0] && at[1] < all->blocks[1] && at[2] < all->blocks[2]
        && in->flags[(at[0] * all->blocks[1] + at[1]) * all->blocks[2] + at[2]];
}

/* Write the first and last positions of a block's voxels along x, y and z. */
static void take_block(const surface *all, const int64_t *at, int16_t *least, int16_t *most)
{
    const int64_t sides[3] = {all->places.depth, all->places.height, all->places.width};
    for (int axis = 0; axis < 3; axis++) {
        int64_t end = (at[axis] + 1) << all->bits;
        least[2 - axis] = (int16_t)(at[axis] << all->bits);
        most[2 - axis] = (int16_t)((end < sides[axis] ? end : sides[axis]) - 1);
    }
}

/* Find the box of open blocks from one on along z, y and x, as many as a large block has; return whether there is any. */
static int find_box(const surface *all, const open_blocks *in, const int64_t *from, int16_t *least, int16_t *most)
{
    int64_t ends[3], at[3];
    int is_any = 0;
    for (int axis = 0; axis < 3; axis++)
        ends[axis] = from[axis] + (LARGE >> all->bits) < all->blocks[axis] ? from[axis] + (LARGE >> all->bits) : all->blocks[axis];
    for (at[0] = from[0]; at[0] < ends[0]; at[0]++)
        for (at[1] = from[1]; at[1] < ends[1]; at[1]++)
            for (at[2] = from[2]; at[2] < ends[2]; at[2]++) {
                if (!is_open(all, in, at))
                    continue;
                int16_t first[3], last[3];
                take_block(all, at, first, last);
                for (int axis = 0; axis < 3; axis++) {
                    least[axis] = is_any && least[axis] < first[axis] ? least[axis] : first[axis];
                    most[axis] = is_any && most[axis] > last[axis] ? most[axis] : last[axis];
                }
                is_any = 1;
            }
    return is_any;
}

/* Measure the places of a block, given its box. */
static int measure_block(const surface *all, const open_blocks *in, const int64_t *at, choice *of)
{
    const int64_t bits = all->bits, last_bits = all->side - 1;
    const int32_t *starts = all->starts + (at[0] * all->blocks[1] + at[1]) * all->blocks[2] + at[2];
    double squares[3][LARGE];
    int16_t least[3], most[3], lone[3];
    if (starts[0] < 0 || starts[1] < starts[0] || starts[1] > all->places.count)
        return SJ_BAD_DATA;
    take_block(all, at, least, most);
    sj_look_at(in->search, least, most);
    int is_lone = sj_find_lone(in->search, lone);
    for (int axis = 0; is_lone && axis < 3; axis++)
        for (int64_t step = 0; step < all->side; step++)
            squares[axis][step] = sj_square_of(least[axis] + step - lone[axis], all->spacing[axis]);
    for (int32_t i = starts[0]; i < starts[1]; i++) {
        int64_t x = all->voxels[i] & last_bits, y = all->voxels[i] >> bits & last_bits, z = all->voxels[i] >> 2 * bits & last_bits;
        double square = is_lone ? squares[0][x] + squares[1][y] + squares[2][z]
                                : sj_find_square(in->search, least[0] + x, least[1] + y, least[2] + z);
        if (!choose(of, square, all->areas[all->block_codes[i]]))
            return SJ_NO_MEMORY;
    }
    return SJ_FINE;
}

/* Measure the places of open blocks in a row of large blocks. */
static int measure_row_of_blocks(const surface *all, const open_blocks *in, int64_t z, int64_t y, choice *of)
{
    const int64_t step = LARGE >> all->bits;
    int16_t least[3], most[3];
    int status = SJ_FINE;
    for (int64_t x = 0; status == SJ_FINE && x < all->blocks[2]; x += step) {
        const int64_t from[3] = {z, y, x};
        if (!find_box(all, in, from, least, most))
            continue;
        sj_look_around(in->search, least, most);
        for (int64_t each = 0; status == SJ_FINE && each < step * step * step; each++) {
            int64_t at[3] = {z + each / (step * step), y + each / step % step, x + each % step};
            if (is_open(all, in, at))
                status = measure_block(all, in, at, of);
        }
    }
    return status;
}

/* Choose the places that lie between two distances; blocks have a radius. */
static int choose_places(const surface *all, const sj_blocks *targets, double radius, choice *of)
{
    uint8_t *flags = malloc((size_t)all->cells);
    open_blocks in = {.flags = flags, .search = sj_open_search(targets)};
    int status = flags && in.search ? SJ_FINE : SJ_NO_MEMORY;
    of->nearer = 0, of->count = 0;
    for (int64_t block = 0; status == SJ_FINE && block < all->cells; block++) {
        double distance = all->distances[block];
        int is_nearer = (1 + MARGIN) * distance + radius < of->least;
        if (is_nearer)
            of->nearer += all->sums[block];
        flags[block] = all->sums[block] > 0 && !is_nearer && (1 - MARGIN) * distance - radius <= of->greatest;
    }
    for (int64_t z = 0; z < all->blocks[0]; z += LARGE >> all->bits)
        for (int64_t y = 0; status == SJ_FINE && y < all->blocks[1]; y += LARGE >> all->bits)
            status = measure_row_of_blocks(all, &in, z, y, of);
    for (int64_t i = 0; status == SJ_FINE && i < all->extra_count; i++)
        status = choose(of, all->extras[2 * i], all->extras[2 * i + 1]) ? SJ_FINE : SJ_NO_MEMORY;
    sj_close_search(in.search);
    free(flags);
    return status;
}

/* ── exact distances ── */

static int compare_squares(const void *one, const void *other)
{
    double first = ((const measured *)one)->square, second = ((const measured *)other)->square;
    return (first > second) - (first < second);
}

/* Keep the places at which the share may be reached, and add the area of nearer ones; return how many. */
static int64_t narrow(measured *items, int64_t count, double low, double high, double *nearer)
{
    while (count > SORTED) {
        double bins[BINS] = {0}, least = items[0].square, greatest = least, sum = *nearer;
        for (int64_t i = 1; i < count; i++) {
            least = items[i].square < least ? items[i].square : least;
            greatest = items[i].square > greatest ? items[i].square : greatest;
        }
        double scale = (BINS - 1) / (greatest - least);
        if (!(scale < 1e90))
            break;
        for (int64_t i = 0; i < count; i++)
            bins[(int64_t)((items[i].square - least) * scale)] += items[i].area;
        int64_t first = 0, last, kept = 0;
        for (; first + 1 < BINS && sum + bins[first] < low; first++)
            sum += bins[first];
        *nearer = sum;
        for (last = first, sum += bins[first]; last + 1 < BINS && sum < high;)
            sum += bins[++last];
        for (int64_t i = 0; i < count; i++) {
            int64_t bin = (int64_t)((items[i].square - least) * scale);
            if (bin >= first && bin <= last)
                items[kept++] = items[i];
        }
        if (kept == count)
            break;
        count = kept;
    }
    return count;
}

/* Find the squares of the distances at which two areas are reached by measured places; return SJ_FULL if they are
 * not. */
static int find_squares(measured *items, int64_t count, double nearer, double low, double high, double *squares)
{
    if (nearer >= low)
        return SJ_FULL;
    count = narrow(items, count, low, high, &nearer);
    int64_t alike = 1, item = 0;
    while (alike < count && items[alike].square == items[0].square)
        alike++;
    if (alike < count)
        qsort(items, (size_t)count, sizeof *items, compare_squares);
    for (; item < count && nearer + items[item].area < low; item++)
        nearer += items[item].area;
    if (item == count)
        return SJ_FULL;
    squares[0] = items[item].square;
    for (; item < count && nearer + items[item].area < high; item++)
        nearer += items[item].area;
    if (item == count)
        return SJ_FULL;
    squares[1] = items[item].square;
    return SJ_FINE;
}

/* Measure all places, and find the squares of the distances at which the areas are reached. */
static int measure_all(const surface *all, double *squares)
{
    const sj_list *places = &all->places;
    double *answers = malloc((size_t)(places->count + 1) * sizeof *answers);
    measured *items = malloc((size_t)(places->count + all->extra_count + 1) * sizeof *items);
    const double numbers[4] = {all->spacing[0], all->spacing[1], all->spacing[2], 1.7e308};
    int status = !answers || !items ? SJ_NO_MEMORY
                                    : sj_squares(places->at, places->count, all->targets.at, all->targets.count, places->depth,
                                                 places->height, places->width, numbers, answers);
    for (int64_t i = 0; status == SJ_FINE && i < places->count; i++)
        items[i] = (measured){answers[i], all->areas[all->codes[i]]};
    for (int64_t i = 0; status == SJ_FINE && i < all->extra_count; i++)
        items[places->count + i] = (measured){all->extras[2 * i], all->extras[2 * i + 1]};
    if (status == SJ_FINE)
        status = find_squares(items, places->count + all->extra_count, 0, all->low, all->high, squares);
    free(answers);
    free(items);
    return status;
}

/* Find the squares by bounds, given the targets in blocks. */
static int find_by_bounds(const surface *all, const sj_blocks *targets, double *squares)
{
    double error, x = all->half * all->spacing[0], y = all->half * all->spacing[1], z = all->half * all->spacing[2];
    double radius = (1 + MARGIN) * root_of(x * x + y * y + z * z), reach;
    choice of = {0, 0, 0, NULL, 0, 0};
    int status = measure_blocks(all), is_done = 0;
    if (status != SJ_FINE)
        return status;
    double middle = estimate(all, &error);
    for (reach = error + NEAR * radius; status == SJ_FINE && !is_done; reach *= WIDER) {
        int is_all = reach >= error + radius;
        of.least = middle - reach > 0 ? middle - reach : 0, of.greatest = middle + reach;
        status = choose_places(all, targets, radius, &of);
        if (status != SJ_FINE)
            break;
        status = find_squares(of.items, of.count, of.nearer, all->low, all->high, squares);
        is_done = is_all || status == SJ_FINE;
        if (!is_done && status == SJ_FULL)
            status = SJ_FINE;
    }
    free(of.items);
    return status;
}

/* Find the squares if most targets are far, given an index. */
static int find_indexed(const surface *all, double *squares)
{
    sj_list targets = all->targets;
    int32_t *firsts = malloc((size_t)(targets.depth * targets.height + 1) * sizeof *firsts);
    int status = !firsts ? SJ_NO_MEMORY : sj_find_rows(&targets, firsts) ? SJ_FINE : SJ_BAD_DATA;
    sj_blocks *blocks = status == SJ_FINE ? sj_make_blocks(&targets, all->spacing) : NULL;
    if (status == SJ_FINE)
        status = blocks ? find_by_bounds(all, blocks, squares) : SJ_NO_MEMORY;
    sj_free_blocks(blocks);
    free(firsts);
    return status;
}

/* Find the squares if most targets are far; an index is made unless there is one. */
static int find_far(surface *all, double *squares)
{
    if (!all->sums && all->places.count < DENSE * all->cells)
        divide(all, MORE_BITS);
    size_t cells = (size_t)all->cells, count = all->sums ? 0 : (size_t)all->places.count;
    double *sums = malloc((all->sums ? 1 : cells) * sizeof *sums);
    int32_t *starts = malloc((all->sums ? 1 : cells + 1) * sizeof *starts);
    uint16_t *voxels = malloc(count * (sizeof *voxels + 1) + 1);
    all->distances = malloc(cells * sizeof *all->distances);
    int status = sums && starts && voxels && all->distances ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE && !all->sums) {
        uint8_t *codes = (uint8_t *)(voxels + count);
        status = index_places(all, sums, starts, voxels, codes) ? SJ_FINE : SJ_BAD_DATA;
        all->sums = sums, all->starts = starts, all->voxels = voxels, all->block_codes = codes;
    }
    if (status == SJ_FINE)
        status = find_indexed(all, squares);
    free(sums);
    free(starts);
    free(voxels);
    free(all->distances);
    return status;
}

/* ── near targets ── */

/* Find the squares between which the share probably lies, by a sample of places; return SJ_FULL if it is not near. */
static int sample_squares(
    const surface *all, const sj_windows *windows, int64_t size, double share, double *least, double *greatest)
{
    const sj_list *places = &all->places;
    int64_t step = (places->count + all->extra_count) / size + 1, count = 0;
    int64_t end = places->depth * places->height * places->width;
    measured *items = malloc((size_t)((places->count + all->extra_count) / step + 2) * sizeof *items);
    sj_bit_row row = {0, NULL};
    double total = 0, sum = 0;
    if (!items)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < places->count; i += step, count++) {
        if (places->at[i] < 0 || places->at[i] >= end || (i && places->at[i] <= places->at[i - step])) {
            free(items);
            return SJ_BAD_DATA;
        }
        sj_move(windows, places->at[i], &row);
        items[count] = (measured){sj_look(windows, &row, places->at[i]), all->areas[all->codes[i]]};
        total += items[count].area;
    }
    for (int64_t i = 0; i < all->extra_count; i += step, total += items[count++].area)
        items[count] = (measured){all->extras[2 * i], all->extras[2 * i + 1]};
    qsort(items, (size_t)count, sizeof *items, compare_squares);
    *least = *greatest = windows->end;
    for (int64_t i = 0; i < count && sum < (share + TOLERANCE) * total; sum += items[i++].area) {
        *least = sum < (share - TOLERANCE) * total ? items[i].square : *least;
        *greatest = (1 + MARGIN) * items[i].square + LEAST_SQUARE;
    }
    *greatest = *greatest < windows->end && sum >= (share + TOLERANCE) * total ? *greatest : windows->end;
    free(items);
    return *least < windows->end ? SJ_FINE : SJ_FULL;
}

/* Measure the places between two squares, and find the one within which the share lies. Most places are nearer, which a
 * few rows show. */
static int measure_near(const surface *all, sj_windows *windows, double least, double greatest, double *squares)
{
    const sj_list *places = &all->places;
    int64_t count = 0, counts[CODES] = {0}, last = -1, end = places->depth * places->height * places->width;
    double nearer = 0;
    sj_bit_row row = {0, NULL};
    sj_near *near = malloc((size_t)(windows->count + SJ_AT_ONCE) * sizeof *near);
    measured *items = malloc((size_t)(places->count + all->extra_count) * sizeof *items);
    int status = near && items ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        sj_limit(windows, least);
        int64_t rows = sj_list_near(windows, near);
        sj_limit(windows, greatest);
        for (int64_t i = 0; i < places->count; i++) {
            if (places->at[i] <= last || places->at[i] >= end) {
                status = SJ_BAD_DATA;
                break;
            }
            last = places->at[i];
            sj_move(windows, places->at[i], &row);
            if (sj_is_near(near, rows, &row, places->at[i])) {
                counts[all->codes[i]]++;
                continue;
            }
            double distance = sj_look(windows, &row, places->at[i]);
            if (distance < greatest)
                items[count++] = (measured){distance, all->areas[all->codes[i]]};
        }
        for (int64_t i = 0; i < all->extra_count; i++)
            if (all->extras[2 * i] < greatest)
                items[count++] = (measured){all->extras[2 * i], all->extras[2 * i + 1]};
        for (int code = 0; code < CODES; code++)
            nearer += (double)counts[code] * all->areas[code];
        if (status == SJ_FINE)
            status = find_squares(items, count, nearer, all->low, all->high, squares);
    }
    free(near);
    free(items);
    return status;
}

/* Find the squares if targets are only a few steps away from most places; SJ_FULL otherwise. */
static int find_near(const surface *all, double share, double *squares)
{
    sj_windows windows;
    double least, greatest;
    int status = sj_open_windows(&windows, &all->targets, all->spacing, INFINITY);
    for (int64_t size = FEW; status == SJ_FINE && size <= SAMPLE; size *= SAMPLE / FEW)
        status = sample_squares(all, &windows, size, share, &least, &greatest);
    if (status == SJ_FINE)
        status = measure_near(all, &windows, least, greatest, squares);
    sj_close_windows(&windows);
    return status;
}

static int is_surface(const surface *all)
{
    const sj_list *places = &all->places;
    if (!places->at || !all->codes || !all->areas || places->count < 1
        || !sj_is_volume(places->depth, places->height, places->width, INT32_MAX - 1))
        return 0;
    for (int code = 0; code < CODES; code++)
        if (!(all->areas[code] >= 0 && all->areas[code] < GREATEST_AREA))
            return 0;
    return 1;
}

/* Write the index of a surface: the sum of the areas in each block, where the places of each begin, with their number
 * behind, and the voxels in the block and the codes of all. */
SJ_EXPORT int sj_index_surface(
    const int32_t *places, const uint8_t *codes, int64_t place_count, int64_t depth, int64_t height, int64_t width,
    const double *areas, double *sums, int64_t cells, int32_t *starts, uint16_t *voxels, uint8_t *block_codes)
{
    surface all = {.places = {depth, height, width, place_count, places, NULL}, .codes = codes, .areas = areas};
    if (!is_surface(&all) || !sums || !starts || !voxels || !block_codes)
        return SJ_BAD_CALL;
    divide(&all, BITS);
    if (all.cells != cells)
        return SJ_BAD_CALL;
    return index_places(&all, sums, starts, voxels, block_codes) ? SJ_FINE : SJ_BAD_DATA;
}

/* Add the areas of all places; return whether they can be areas. */
static int add_areas(surface *all)
{
    int64_t counts[CODES] = {0};
    for (int64_t block = 0; all->sums && block < all->cells; block++)
        all->total += all->sums[block];
    for (int64_t i = 0; !all->sums && i < all->places.count; i++)
        counts[all->codes[i]]++;
    for (int code = 0; code < CODES; code++)
        all->total += (double)counts[code] * all->areas[code];
    for (int64_t i = 0; i < all->extra_count; i++)
        if (!(all->extras[2 * i] >= 0 && all->extras[2 * i] < INFINITY && all->extras[2 * i + 1] >= 0
              && all->extras[2 * i + 1] < GREATEST_AREA))
            return 0;
        else
            all->total += all->extras[2 * i + 1];
    return 1;
}

/* Write the squares of the distances to targets at which two shares of a surface's area are reached; the area of each
 * place is by its code. Extras are more places, as squares of their distances and areas. An index is used if there is
 * one. Return SJ_FULL if rounding could decide which place has it. */
SJ_EXPORT int sj_share(
    const int32_t *places, const uint8_t *codes, int64_t place_count, const int32_t *targets, int64_t target_count,
    int64_t depth, int64_t height, int64_t width, const double *spacing, const double *areas, const double *shares,
    const double *extras, int64_t extra_count, const double *sums, int64_t cells, const int32_t *starts,
    const uint16_t *voxels, const uint8_t *block_codes, double *squares)
{
    surface all = {.places = {depth, height, width, place_count, places, NULL},
                   .targets = {depth, height, width, target_count, targets, NULL},
                   .codes = codes, .areas = areas, .spacing = spacing, .extras = extras, .extra_count = extra_count,
                   .sums = sums, .starts = starts, .voxels = voxels, .block_codes = block_codes};
    if (!is_surface(&all) || !targets || !spacing || !shares || !squares || target_count < 1 || extra_count < 0
        || extra_count >= INT32_MAX - place_count || (extra_count && !extras) || !sums != !starts || !sums != !voxels
        || !sums != !block_codes || !(shares[0] > 0 && shares[0] <= shares[1] && shares[1] <= 1 + MARGIN))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (!(spacing[axis] > LEAST_STEP && spacing[axis] < GREATEST_STEP))
            return SJ_FULL;
    divide(&all, BITS);
    if (sums && cells != all.cells)
        return SJ_BAD_CALL;
    if (!add_areas(&all))
        return SJ_BAD_DATA;
    if (!(all.total > 0))
        return SJ_FULL;
    all.low = shares[0] * all.total, all.high = shares[1] * all.total;
    int status = find_near(&all, (shares[0] + shares[1]) / 2, squares);
    if (status == SJ_FULL)
        status = target_count > MANY * all.cells ? measure_all(&all, squares) : find_far(&all, squares);
    return status;
}
