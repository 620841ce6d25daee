/* A surface and targets -> the index of its places by blocks of voxels, and the distances of blocks to the targets. */
#include "shares.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The columns of blocks that are read together, of which floats fill a line of the processor's memory; the columns in which
 * all lines are tried, which fit into its first memory; and the lines and blocks, as the quotient of their product and
 * their sum, above which trying takes more time than envelopes. */
#define COLUMNS 16
#define TRIED 256
#define FEW_LINES 24

/* Replace squares by their roots. */
static void take_roots(float *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        float square = numbers[i] > 1e-30f ? numbers[i] : 1e-30f, guess;
        memcpy(&bits, &square, sizeof bits);
        bits = (bits >> 1) + ((uint32_t)127 << 22);
        memcpy(&guess, &bits, sizeof guess);
        for (int step = 0; step < 2; step++)
            guess = (guess + square / guess) * 0.5f;
        numbers[i] = guess;
    }
}

void sj_divide(surface *all, int bits)
{
    const int64_t sides[3] = {all->places.depth, all->places.height, all->places.width};
    all->bits = bits, all->side = (int64_t)1 << bits, all->half = (double)(all->side - 1) / 2, all->cells = 1;
    for (int axis = 0; axis < 3; axis++) {
        all->blocks[axis] = ((sides[axis] - 1) >> bits) + 1;
        all->cells *= all->blocks[axis];
    }
}

int sj_are_ordered(const sj_list *places)
{
    const int32_t *at = places->at;
    int is_disordered = at[0] < 0 || at[places->count - 1] >= places->depth * places->height * places->width;
    for (int64_t i = 1; i < places->count; i++)
        is_disordered |= at[i] <= at[i - 1];
    return !is_disordered;
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

void sj_index_places(
    const surface *all, double *restrict sums, int32_t *restrict starts, uint16_t *restrict voxels, uint8_t *restrict codes)
{
    const sj_list *places = &all->places;
    const int32_t *at = places->at, bits = all->bits, last_bits = (int32_t)all->side - 1;
    const double *areas = all->areas;
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
}

/* ── the distances of blocks ── */

/* The lower envelope of parabolas: the site of each, its least value, and where it begins; and by the steps between two
 * of them, by how much a difference of their values moves where they meet. Values of several columns, in turn. */
typedef struct {
    double *values, *starts, *moves, *columns;
    int32_t *sites;
    int64_t count;
} envelope;

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

/* Lines of squares side by side, and the number of each along another axis. */
typedef struct {
    const float *squares;
    const int32_t *numbers;
    int64_t count, length;
} lines;

/* Write the least sums of squares and of those of the steps to lines from the centres of blocks, by trying all lines. */
static void try_lines(const surface *all, const lines *of, double unit, int64_t blocks, float *restrict out)
{
    for (int64_t first = 0; first < of->length; first += TRIED) {
        int64_t count = of->length - first < TRIED ? of->length - first : TRIED;
        for (int64_t block = 0; block < blocks; block++) {
            float *restrict to = out + block * of->length + first;
            double at = (double)(all->side * block) + all->half;
            for (int64_t i = 0; i < count; i++)
                to[i] = INFINITY;
            for (int64_t line = 0; line < of->count; line++) {
                const float *restrict from = of->squares + line * of->length + first;
                const float more = (float)(unit * (at - of->numbers[line]) * (at - of->numbers[line]));
                for (int64_t i = 0; i < count; i++) {
                    float sum = from[i] + more;
                    to[i] = sum < to[i] ? sum : to[i];
                }
            }
        }
    }
}

/* Write the same by envelopes, which takes less time if both lines and blocks are many. */
static void fold_lines(
    const surface *all, const lines *of, double unit, int64_t blocks, envelope *lower, float *out)
{
    if (of->count * blocks <= FEW_LINES * (of->count + blocks)) {
        try_lines(all, of, unit, blocks, out);
        return;
    }
    for (int64_t apart = 1; apart <= of->numbers[of->count - 1] - of->numbers[0]; apart++)
        lower->moves[apart] = 1 / (2 * unit * (double)apart);
    for (int64_t first = 0; first < of->length; first += COLUMNS) {
        int64_t columns = of->length - first < COLUMNS ? of->length - first : COLUMNS;
        for (int64_t line = 0; line < of->count; line++)
            for (int64_t column = 0; column < columns; column++)
                lower->columns[column * of->count + line] = of->squares[line * of->length + first + column];
        for (int64_t column = 0; column < columns; column++) {
            lower->count = 0;
            for (int64_t line = 0; line < of->count; line++)
                add_parabola(lower, of->numbers[line], lower->columns[column * of->count + line]);
            evaluate(all, lower, blocks, unit, out + first + column, of->length);
        }
    }
}

/* Write the squares of the steps along x from the centres of blocks to the nearest target of a row that has some. */
static void measure_row(
    const surface *all, const int32_t *target, const int32_t *end, int64_t start, double unit, float *out)
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
        out[block] = (float)(unit * to * to);
    }
}

/* Write the least squares in a plane (y, x) with targets; return the position of the next plane's first target. */
static int64_t measure_plane(
    const surface *all, int64_t z, int64_t next, float *squares, int32_t *numbers, envelope *lower, float *out)
{
    const sj_list *targets = &all->targets;
    int64_t width = targets->width, end = (z + 1) * targets->height * width;
    lines rows = {squares, numbers, 0, all->blocks[2]};
    while (next < targets->count && targets->at[next] < end) {
        int64_t number = targets->at[next] / width, last = next;
        while (last < targets->count && targets->at[last] < (number + 1) * width)
            last++;
        measure_row(all, targets->at + next, targets->at + last, number * width, all->spacing[0] * all->spacing[0],
                    squares + rows.count * rows.length);
        numbers[rows.count++] = (int32_t)(number - z * targets->height);
        next = last;
    }
    fold_lines(all, &rows, all->spacing[1] * all->spacing[1], all->blocks[1], lower, out);
    return next;
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

int sj_measure_blocks(const surface *all)
{
    const sj_list *targets = &all->targets;
    int64_t longest = targets->depth > targets->height ? targets->depth : targets->height;
    int64_t area = all->blocks[1] * all->blocks[2], rows = targets->height * all->blocks[2], next = 0;
    double *numbers = malloc((size_t)((3 + COLUMNS) * longest) * sizeof *numbers);
    int32_t *planes = malloc((size_t)(targets->depth + targets->height + longest) * sizeof *planes);
    int64_t count = planes ? list_planes(targets, planes) : 0;
    float *squares = malloc((size_t)((count > 0 ? count : 1) * area + rows) * sizeof *squares);
    int status = !numbers || !planes || !squares ? SJ_NO_MEMORY : count < 0 ? SJ_BAD_DATA : SJ_FINE;
    if (status == SJ_FINE) {
        envelope lower = {numbers, numbers + longest, numbers + 2 * longest, numbers + 3 * longest,
                          planes + targets->depth + targets->height, 0};
        lines with_targets = {squares + rows, planes, count, area};
        for (int64_t i = 0; i < count; i++)
            next = measure_plane(all, planes[i], next, squares, planes + targets->depth, &lower, squares + rows + i * area);
        fold_lines(all, &with_targets, all->spacing[2] * all->spacing[2], all->blocks[0], &lower, all->distances);
        take_roots(all->distances, all->cells);
    }
    free(numbers);
    free(planes);
    free(squares);
    return status;
}

