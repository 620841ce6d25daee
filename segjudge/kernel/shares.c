/* The surface of a mask and places of another one -> the distance to them within which a share of its area lies.
 *
 * That needs the distances of few places: if most are only a few steps away, those between two squares that a sample
 * shows; otherwise the distances of blocks of voxels bound those of all. Bounds may round, because they are widened;
 * distances that decide are exact. */
#include "windows.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The sides of blocks, as a power of two, and the steps from a block's centre to its first voxel. */
#define BITS 2
#define SIDE (1 << BITS)
#define HALF ((SIDE - 1) / 2.0)
#define VOXELS (SIDE * SIDE * SIDE)
#define CODES 256
/* The share of an area, and of a bound, by which rounding may differ. */
#define ROUNDING 1e-9
#define MARGIN 1e-6
#define BINS 4096
/* The number of places that are sorted. */
#define SORTED 4096
/* The number of columns of blocks that are read together, of which floats fill a line of the processor's memory. */
#define COLUMNS 16
/* At first, places that may be this near to the estimated distance are measured, as a share of a block's radius; then
 * those so many times as near. */
#define NEAR 0.25
#define WIDER 4
/* Of samples of places, whose distances estimate the one within which the share lies: the numbers, first of a few, and
 * by how much more or less of the area it may lie at. */
#define FEW 256
#define SAMPLE 4096
#define TOLERANCE 0.015
/* Less than any square but 0. */
#define LEAST_SQUARE 1e-30
/* Squares of smaller or larger steps would not be precise, nor sums of larger areas. */
#define LEAST_STEP 1e-9
#define GREATEST_STEP 1e9
#define GREATEST_AREA 1e30

/* A place that may lie there: its number, the bounds of its distance, and its area. */
typedef struct {
    int32_t number;
    float least, greatest;
    double area;
} candidate;

/* The square of a place's distance, and its area. */
typedef struct {
    double square, area;
} measured;

/* A surface and targets in one volume. */
typedef struct {
    sj_list places, targets;
    const uint8_t *codes;
    const double *areas, *spacing;
    int64_t blocks[3]; /* along z, y and x */
    double *sums;      /* of the area, by block */
    float *distances;  /* from the centres of blocks to the nearest target */
    double total, nearer;
    double low, high; /* the areas between which the share lies, whatever is rounded */
    candidate *open;
    int64_t open_count;
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

/* A place's row and block. */
typedef struct {
    int64_t start, z, y, block;
} row;

static inline void find_row(const surface *all, int32_t place, int is_first, row *of)
{
    int64_t height = all->places.height, width = all->places.width;
    if (!is_first && place - of->start < width)
        return;
    int64_t number = place / width;
    of->start = number * width, of->z = number / height, of->y = number % height;
    of->block = ((of->z >> BITS) * all->blocks[1] + (of->y >> BITS)) * all->blocks[2];
}

/* Add the areas of places by blocks; return whether places are in order and inside the volume. */
static int add_areas(surface *all)
{
    const sj_list *places = &all->places;
    int64_t end = places->depth * places->height * places->width;
    int64_t cells = all->blocks[0] * all->blocks[1] * all->blocks[2];
    row of = {0, 0, 0, 0};
    for (int64_t i = 0; i < places->count; i++) {
        int32_t place = places->at[i];
        if (place < 0 || place >= end || (i && place <= places->at[i - 1]))
            return 0;
        find_row(all, place, !i, &of);
        all->sums[of.block + ((place - of.start) >> BITS)] += all->areas[all->codes[i]];
    }
    for (int64_t block = 0; block < cells; block++)
        all->total += all->sums[block];
    return 1;
}

/* ── the distances of blocks ── */

/* The lower envelope of parabolas: the site of each, its least value, and where it begins. */
typedef struct {
    double *sites, *values, *starts;
    int64_t count;
} envelope;

/* Add a parabola behind the others. */
static inline void add_parabola(envelope *of, double site, double value, double unit)
{
    double start = -1;
    while (of->count) {
        int64_t last = of->count - 1;
        double apart = site - of->sites[last];
        start = ((value - of->values[last]) / (unit * apart) + site + of->sites[last]) / 2;
        if (!last || start > of->starts[last])
            break;
        of->count--;
    }
    of->sites[of->count] = site, of->values[of->count] = value, of->starts[of->count++] = start;
}

/* Write the least values at the centres of blocks, so many numbers apart. */
static void evaluate(const envelope *of, int64_t blocks, double unit, float *out, int64_t step)
{
    for (int64_t block = 0, each = 0; block < blocks; block++) {
        double at = SIDE * (double)block + HALF;
        while (each + 1 < of->count && of->starts[each + 1] <= at)
            each++;
        out[block * step] = (float)(of->values[each] + unit * (at - of->sites[each]) * (at - of->sites[each]));
    }
}

/* Write the squares of the steps along x from the centres of blocks to the nearest target of a row that has some. */
static void
measure_row(const int32_t *target, const int32_t *end, int64_t start, int64_t blocks, double unit, double *out)
{
    double before = (double)(*target - start), behind = before;
    for (int64_t block = 0; block < blocks; block++) {
        double at = SIDE * (double)block + HALF;
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
        measure_row(targets->at + next, targets->at + last, number * width, blocks, unit_x, rows + count * blocks);
        numbers[count++] = (int32_t)(number - z * targets->height);
        next = last;
    }
    for (int64_t x = 0; x < blocks; x++) {
        lower->count = 0;
        for (int64_t i = 0; i < count; i++)
            add_parabola(lower, numbers[i], rows[i * blocks + x], unit_y);
        evaluate(lower, all->blocks[1], unit_y, out + x, blocks);
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
        int is_filled = 0;
        for (int64_t z = 0; z < all->blocks[0] && !is_filled; z++)
            is_filled = all->sums[z * area + first + column] > 0;
        if (!is_filled)
            continue;
        lower->count = 0;
        for (int64_t i = 0; i < plane_count; i++)
            add_parabola(lower, planes[i], values[column * plane_count + i], unit);
        float *out = all->distances + first + column;
        evaluate(lower, all->blocks[0], unit, out, area);
        for (int64_t z = 0; z < all->blocks[0]; z++)
            out[z * area] = (float)root_of(out[z * area]);
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
static int measure_blocks(surface *all)
{
    const sj_list *targets = &all->targets;
    int64_t longest = targets->depth > targets->height ? targets->depth : targets->height;
    int64_t area = all->blocks[1] * all->blocks[2], rows = targets->height * all->blocks[2], next = 0;
    rows = rows > COLUMNS * targets->depth ? rows : COLUMNS * targets->depth;
    double *numbers = malloc((size_t)(3 * longest + rows) * sizeof *numbers);
    int32_t *planes = malloc((size_t)(targets->depth + targets->height) * sizeof *planes);
    int64_t count = planes ? list_planes(targets, planes) : 0;
    float *squares = malloc((size_t)((count > 0 ? count : 1) * area) * sizeof *squares);
    int status = !numbers || !planes || !squares ? SJ_NO_MEMORY : count < 0 ? SJ_BAD_DATA : SJ_FINE;
    if (status == SJ_FINE) {
        envelope lower = {numbers, numbers + longest, numbers + 2 * longest, 0};
        double *values = numbers + 3 * longest;
        for (int64_t i = 0; i < count; i++)
            next = measure_plane(all, planes[i], next, values, planes + targets->depth, &lower, squares + i * area);
        for (int64_t first = 0; first < area; first += COLUMNS) {
            int64_t columns = area - first < COLUMNS ? area - first : COLUMNS;
            measure_columns(all, first, columns, squares, planes, count, &lower, values);
        }
    }
    free(numbers);
    free(planes);
    free(squares);
    return status;
}

/* ── the places that may lie there ── */

/* Return the distance of blocks within which the share of the area lies, from the middle to the ends of a bin; the
 * greatest error is written. */
static double estimate(const surface *all, double *error)
{
    double bins[BINS] = {0}, sum = 0;
    float least = 0, greatest = 0;
    int64_t cells = all->blocks[0] * all->blocks[1] * all->blocks[2], bin = 0;
    for (int64_t block = 0, any = 0; block < cells; block++)
        if (all->sums[block] > 0) {
            float distance = all->distances[block];
            least = any && least < distance ? least : distance;
            greatest = any && greatest > distance ? greatest : distance;
            any = 1;
        }
    double width = ((double)greatest - least) / (BINS - 1);
    for (int64_t block = 0; block < cells; block++)
        if (all->sums[block] > 0)
            bins[width > 0 ? (int64_t)((all->distances[block] - least) / width) % BINS : 0] += all->sums[block];
    for (; bin + 1 < BINS && sum + bins[bin] < all->low; bin++)
        sum += bins[bin];
    double start = least + (double)bin * width;
    for (sum += bins[bin]; bin + 1 < BINS && sum < all->high;)
        sum += bins[++bin];
    double end = least + (double)(bin + 1) * width;
    *error = (end - start) / 2 + MARGIN * end;
    return (start + end) / 2;
}

/* List the places whose distance may lie between two, and add the area of nearer ones. */
static int list_open(surface *all, double least, double greatest, double radius)
{
    int64_t cells = all->blocks[0] * all->blocks[1] * all->blocks[2], room = 0;
    float offsets[VOXELS];
    row of = {0, 0, 0, 0};
    for (int64_t i = 0; i < VOXELS; i++) {
        double x = ((double)(i % SIDE) - HALF) * all->spacing[0];
        double y = ((double)(i / SIDE % SIDE) - HALF) * all->spacing[1];
        double z = ((double)(i / SIDE / SIDE) - HALF) * all->spacing[2];
        offsets[i] = (float)((1 + MARGIN) * root_of(x * x + y * y + z * z));
    }
    /* A distance below 0 marks the blocks that are not open. */
    for (int64_t block = 0; block < cells; block++) {
        double distance = all->distances[block];
        int is_nearer = (1 + MARGIN) * distance + radius < least;
        if (all->sums[block] > 0 && is_nearer)
            all->nearer += all->sums[block];
        if (is_nearer || (1 - MARGIN) * distance - radius > greatest)
            all->distances[block] = -1;
    }
    for (int64_t i = 0; i < all->places.count; i++) {
        int32_t place = all->places.at[i];
        find_row(all, place, !i, &of);
        int64_t x = place - of.start;
        float distance = all->distances[of.block + (x >> BITS)];
        if (distance < 0)
            continue;
        if (all->open_count == room) {
            room = room ? 2 * room : SORTED;
            candidate *larger = realloc(all->open, (size_t)room * sizeof *larger);
            if (!larger)
                return SJ_NO_MEMORY;
            all->open = larger;
        }
        float offset = offsets[(of.z % SIDE * SIDE + of.y % SIDE) * SIDE + x % SIDE];
        all->open[all->open_count++] = (candidate){(int32_t)i, distance * (float)(1 - MARGIN) - offset,
                                                   distance * (float)(1 + MARGIN) + offset, all->areas[all->codes[i]]};
    }
    return SJ_FINE;
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

/* Find the square of the distance at which the share is reached by measured places; return SJ_FULL unless it is reached
 * by places of one distance, whatever is rounded. */
static int find_square(measured *items, int64_t count, double nearer, double low, double high, double *square)
{
    if (nearer >= low)
        return SJ_FULL;
    count = narrow(items, count, low, high, &nearer);
    int64_t alike = 1, first = 0;
    while (alike < count && items[alike].square == items[0].square)
        alike++;
    if (alike < count)
        qsort(items, (size_t)count, sizeof *items, compare_squares);
    for (; first < count && nearer + items[first].area < low; first++)
        nearer += items[first].area;
    if (first == count)
        return SJ_FULL;
    *square = items[first].square;
    for (; first < count && items[first].square == *square; first++)
        nearer += items[first].area;
    return nearer >= high ? SJ_FINE : SJ_FULL;
}

/* Measure the places that may be as far as some distances, and find the square of the one within which the share
 * lies. */
static int measure_between(const surface *all, double least, double greatest, double *square)
{
    const sj_list *places = &all->places;
    double nearer = all->nearer;
    int64_t count = 0, room = all->open ? all->open_count : places->count;
    int32_t *queries = calloc((size_t)room + 1, sizeof *queries);
    double *squares = malloc((size_t)(room + 1) * sizeof *squares);
    measured *items = malloc((size_t)(room + 1) * sizeof *items);
    int status = queries && squares && items ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; i < room && status == SJ_FINE; i++) {
        int64_t number = all->open ? all->open[i].number : i;
        double area = all->areas[all->codes[number]];
        if (all->open && all->open[i].greatest < least)
            nearer += area;
        else if (!all->open || all->open[i].least <= greatest) {
            queries[count] = places->at[number];
            items[count++].area = area;
        }
    }
    const double numbers[4] = {all->spacing[0], all->spacing[1], all->spacing[2], 1.7e308};
    if (status == SJ_FINE)
        status = sj_squares(queries, count, all->targets.at, all->targets.count, places->depth, places->height,
                            places->width, numbers, squares);
    if (status == SJ_FINE) {
        for (int64_t i = 0; i < count; i++)
            items[i].square = squares[i];
        status = find_square(items, count, nearer, all->low, all->high, square);
    }
    free(queries);
    free(squares);
    free(items);
    return status;
}

/* Find the square, by bounds unless targets are so near to all places that bounds exclude none. */
static int find_by_bounds(surface *all, double *square)
{
    double error, x = HALF * all->spacing[0], y = HALF * all->spacing[1], z = HALF * all->spacing[2];
    double radius = (1 + MARGIN) * root_of(x * x + y * y + z * z);
    int status = measure_blocks(all);
    if (status != SJ_FINE)
        return status;
    double middle = estimate(all, &error), least = middle - error - radius, greatest = middle + error + radius;
    status = list_open(all, least, greatest, radius);
    if (status == SJ_FINE && !all->open_count)
        return SJ_FULL;
    for (double reach = error + NEAR * radius; status == SJ_FINE; reach *= WIDER) {
        int is_all = middle - reach <= least && middle + reach >= greatest;
        status = measure_between(all, middle - reach, middle + reach, square);
        double distance = status == SJ_FINE ? root_of(*square) : 0;
        int is_inside = distance * (1 - MARGIN) >= middle - reach && distance * (1 + MARGIN) <= middle + reach;
        if (is_all || (status == SJ_FINE && is_inside) || (status != SJ_FINE && status != SJ_FULL))
            break;
        status = SJ_FINE;
    }
    return status;
}

/* ── near targets ── */

/* Find the squares between which the share probably lies, by a sample of places; return SJ_FULL if it is not near. */
static int sample_squares(
    const surface *all, const sj_windows *windows, int64_t size, double share, double *least, double *greatest)
{
    const sj_list *places = &all->places;
    int64_t step = places->count / size + 1, count = 0;
    measured *items = malloc((size_t)(places->count / step + 1) * sizeof *items);
    sj_bit_row row = {0, NULL};
    double total = 0, sum = 0;
    if (!items)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < places->count; i += step, count++) {
        sj_move(windows, places->at[i], &row);
        items[count] = (measured){sj_look(windows, &row, places->at[i]), all->areas[all->codes[i]]};
        total += items[count].area;
    }
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
static int measure_near(const surface *all, sj_windows *windows, double least, double greatest, double *square)
{
    const sj_list *places = &all->places;
    int64_t count = 0, counts[CODES] = {0};
    double nearer = 0;
    sj_bit_row row = {0, NULL};
    sj_near *near = malloc((size_t)(windows->count + SJ_AT_ONCE) * sizeof *near);
    measured *items = malloc((size_t)places->count * sizeof *items);
    int status = near && items ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        sj_limit(windows, least);
        int64_t rows = sj_list_near(windows, near);
        sj_limit(windows, greatest);
        for (int64_t i = 0; i < places->count; i++) {
            sj_move(windows, places->at[i], &row);
            if (sj_is_near(near, rows, &row, places->at[i])) {
                counts[all->codes[i]]++;
                continue;
            }
            double distance = sj_look(windows, &row, places->at[i]);
            if (distance < greatest)
                items[count++] = (measured){distance, all->areas[all->codes[i]]};
        }
        for (int code = 0; code < CODES; code++)
            nearer += (double)counts[code] * all->areas[code];
        status = find_square(items, count, nearer, all->low, all->high, square);
    }
    free(near);
    free(items);
    return status;
}

/* Find the square if targets are only a few steps away from most places; SJ_FULL otherwise. */
static int find_near(const surface *all, double share, double *square)
{
    sj_windows windows;
    double least, greatest;
    int status = sj_open_windows(&windows, &all->targets, all->spacing, INFINITY);
    for (int64_t size = FEW; status == SJ_FINE && size <= SAMPLE; size *= SAMPLE / FEW)
        status = sample_squares(all, &windows, size, share, &least, &greatest);
    if (status == SJ_FINE)
        status = measure_near(all, &windows, least, greatest, square);
    sj_close_windows(&windows);
    return status;
}

/* Write the square of the distance to targets within which a share of a surface's area lies; the area of each place is
 * by its code. Return SJ_FULL if rounding could decide which place has it. */
SJ_EXPORT int sj_share(
    const int32_t *places, const uint8_t *codes, int64_t place_count, const int32_t *targets, int64_t target_count,
    int64_t depth, int64_t height, int64_t width, const double *spacing, const double *areas, double share,
    double *square)
{
    surface all = {.places = {depth, height, width, place_count, places, NULL},
                   .targets = {depth, height, width, target_count, targets, NULL},
                   .codes = codes, .areas = areas, .spacing = spacing};
    if (!places || !codes || !targets || !spacing || !areas || !square || place_count < 1 || target_count < 1
        || !sj_is_volume(depth, height, width, INT32_MAX - 1) || !(share > 0 && share <= 1))
        return SJ_BAD_CALL;
    for (int code = 0; code < CODES; code++)
        if (!(areas[code] >= 0 && areas[code] < GREATEST_AREA))
            return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (!(spacing[axis] > LEAST_STEP && spacing[axis] < GREATEST_STEP))
            return SJ_FULL;
    const int64_t sides[3] = {depth, height, width};
    for (int axis = 0; axis < 3; axis++)
        all.blocks[axis] = ((sides[axis] - 1) >> BITS) + 1;
    int64_t cells = all.blocks[0] * all.blocks[1] * all.blocks[2];
    all.sums = calloc((size_t)cells, sizeof *all.sums);
    all.distances = malloc((size_t)cells * sizeof *all.distances);
    int status = all.sums && all.distances ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE && !add_areas(&all))
        status = SJ_BAD_DATA;
    if (status == SJ_FINE) {
        all.low = (share - ROUNDING) * all.total, all.high = (share + ROUNDING) * all.total;
        status = find_near(&all, share, square);
        if (status == SJ_FULL)
            status = target_count > cells / 2 ? measure_between(&all, 0, 0, square) : find_by_bounds(&all, square);
    }
    free(all.sums);
    free(all.distances);
    free(all.open);
    return status;
}
