/* Label maps (z, y, x) -> the box of each label. Places of a volume -> the squared distance of each query to the nearest.
 *
 * The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z, in 64
 * bits. Rounding keeps the order of sums, so the least sum has the same bits in any order of search. */
#include "kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MOST_VOXELS ((int64_t)1 << 31)
/* The number of columns transformed at once, limited by this number of squares of their voxels. */
#define BLOCK 8
#define MOST_SQUARES ((int64_t)1 << 22)
/* The lookups of a search that take as long as the transform of a voxel of columns with queries. */
#define LOOKUPS 8
/* The share of these lookups after which a search stops if its progress predicts more. */
#define EARLY 0.125
/* A bound of the rounding error of two parabolas' crossing, in units in the last place. */
#define MARGIN 64

/* ── boxes ───────────────────────────────────────────────────────────────── */

static inline uint32_t label_of(const uint8_t *at, int size)
{
    uint32_t label = 0;
    memcpy(&label, at, (size_t)size);
    return label;
}

/* Count the labels of a row, and widen their boxes; return whether all are below the end. The size of a label is a
 * constant for the compiler. */
static inline int read_row(
    const uint8_t *row, int size, int64_t z, int64_t y, int64_t width, int64_t labels, int64_t *voxels, int64_t *boxes)
{
    for (int64_t x = 0, start; x < width;) {
        if (width - x >= 8 && !sj_load(row + x * size)) {
            x += 8 / size;
            continue;
        }
        uint32_t label = label_of(row + x * size, size);
        for (start = x; x < width && label_of(row + x * size, size) == label;)
            x++;
        if (label >= labels)
            return 0;
        if (!label)
            continue;
        int64_t *box = boxes + 6 * (int64_t)label;
        if (!voxels[label])
            box[0] = z, box[2] = y, box[4] = start;
        voxels[label] += x - start;
        box[1] = z + 1;
        box[2] = y < box[2] ? y : box[2], box[3] = y + 1 > box[3] ? y + 1 : box[3];
        box[4] = start < box[4] ? start : box[4], box[5] = x > box[5] ? x : box[5];
    }
    return 1;
}

/* Count the voxels of each label except 0, and find its box: from and to along z, y and x. */
SJ_EXPORT int sj_boxes(
    const uint8_t *map, int32_t size, int64_t depth, int64_t height, int64_t width, int64_t labels, int64_t *voxels,
    int64_t *boxes)
{
    if (!map || !voxels || !boxes || !sj_is_volume(depth, height, width, MOST_VOXELS) || labels < 1 || (size != 1 && size != 2 && size != 4))
        return SJ_BAD_CALL;
    memset(voxels, 0, (size_t)labels * sizeof *voxels);
    memset(boxes, 0, (size_t)labels * 6 * sizeof *boxes);
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++) {
            const uint8_t *row = map + (z * height + y) * width * size;
            int fine = size == 1 ? read_row(row, 1, z, y, width, labels, voxels, boxes)
                : size == 2      ? read_row(row, 2, z, y, width, labels, voxels, boxes)
                                 : read_row(row, 4, z, y, width, labels, voxels, boxes);
            if (!fine)
                return SJ_BAD_DATA;
        }
    return SJ_FINE;
}

/* ── distances ───────────────────────────────────────────────────────────── */

/* Positions in the order of a volume, and the first one of each row, behind all rows the count. */
typedef struct {
    const int32_t *at;
    int32_t *firsts;
    int64_t count;
} list;

/* A volume. For each voxel of an open row, one with places that was looked at, the steps along x to the nearest; other
 * rows take no memory. For each row, its first query without an answer; for each x, whether it has queries. Also the
 * squares of steps along x, y and z. */
typedef struct {
    int64_t depth, height, width;
    list queries, places;
    uint16_t *steps;
    uint8_t *has_query, *is_open;
    int64_t first, last; /* the range of planes with places */
    int32_t *next;
    double spacing[3], *squares[3], limit; /* the square from which on no distance is needed */
    int64_t lookups;
    double *out;
} field;

/* Find where each row begins in a list; return whether its positions are in order and inside the volume. */
static int find_rows(list *of, int64_t rows, int64_t width)
{
    int64_t place = 0;
    for (int64_t row = 0; row < rows; row++) {
        of->firsts[row] = (int32_t)place;
        for (int64_t end = (row + 1) * width; place < of->count && of->at[place] < end; place++)
            if (of->at[place] < 0 || (place && of->at[place] <= of->at[place - 1]))
                return 0;
    }
    of->firsts[rows] = (int32_t)place;
    return place == of->count;
}

static inline int has_place(const field *all, int64_t row)
{
    return all->places.firsts[row] < all->places.firsts[row + 1];
}

/* Write the steps to the nearest place along a row with places. */
static void write_row(field *all, int64_t row)
{
    int64_t width = all->width;
    const int32_t *place = all->places.at + all->places.firsts[row], *end = all->places.at + all->places.firsts[row + 1];
    uint16_t *steps = all->steps + row * width;
    for (int64_t x = 0, before = -width, behind = *place - row * width; x < width; x++) {
        if (x > behind) {
            before = behind;
            behind = ++place < end ? *place - row * width : 2 * width;
        }
        steps[x] = (uint16_t)(x - before < behind - x ? x - before : behind - x);
    }
}

/* Return whether a row has places; the first look writes the steps to them. */
static inline int open_row(field *all, int64_t row)
{
    if (!has_place(all, row))
        return 0;
    if (!all->is_open[row])
        write_row(all, row);
    return all->is_open[row] = 1;
}

static inline double square_along_row(const field *all, int64_t row, int64_t x)
{
    return all->squares[0][all->steps[row * all->width + x]];
}

/* Search a plane for a nearer place, the nearest rows first. */
static double search_plane(field *all, int64_t plane, int64_t y, int64_t x, double rest, double best)
{
    for (int64_t step = 0; step <= y || step < all->height - y; step++) {
        double square = all->squares[1][step];
        if (square + rest >= best)
            break;
        all->lookups++;
        for (int64_t row = y - step, turn = 0; turn < 1 + (step > 0); turn++, row = y + step)
            if (row >= 0 && row < all->height && open_row(all, plane * all->height + row)) {
                double sum = square_along_row(all, plane * all->height + row, x) + square + rest;
                best = sum < best ? sum : best;
            }
    }
    return best;
}

static double search(field *all, int64_t z, int64_t y, int64_t x)
{
    double best = all->limit;
    for (int64_t step = 0; step <= z || step < all->depth - z; step++) {
        double rest = all->squares[2][step];
        if (rest >= best)
            break;
        all->lookups++;
        if (z >= step)
            best = search_plane(all, z - step, y, x, rest, best);
        if (step && z + step < all->depth)
            best = search_plane(all, z + step, y, x, rest, best);
    }
    return best;
}

/* Answer the queries one by one; return whether that took less time than the transform. */
static int search_all(field *all)
{
    int64_t columns = 0;
    for (int64_t x = 0; x < all->width; x++)
        columns += all->has_query[x];
    double most = LOOKUPS * ((double)(all->height * columns) * (double)(all->last - all->first) + (double)all->queries.count);
    for (int64_t row = 0; row < all->depth * all->height; row++)
        for (int64_t query = all->queries.firsts[row]; query < all->queries.firsts[row + 1]; query++) {
            double share = (double)query / (double)all->queries.count;
            if ((double)all->lookups > most * (EARLY + (1 - EARLY) * share))
                return 0;
            all->out[query] = search(all, row / all->height, row % all->height, all->queries.at[query] - row * all->width);
        }
    return 1;
}

/* The lower envelope of parabolas along a line: the place of each, and where it begins. */
typedef struct {
    int64_t *sites;
    double *starts;
} envelope;

/* Find the least sum at each place of a line by trying all steps, for spacings that differ by more than a million. */
static void search_line(const double *values, int64_t count, const double *squares, double *out)
{
    for (int64_t at = 0; at < count; at++) {
        double best = INFINITY;
        for (int64_t step = 0; step < count && squares[step] < best; step++) {
            double before = at >= step ? values[at - step] + squares[step] : INFINITY;
            double behind = at + step < count ? values[at + step] + squares[step] : INFINITY;
            best = before < best ? before : best, best = behind < best ? behind : best;
        }
        out[at] = best;
    }
}

/* The places of a line that may have values, and those that need sums, by a bit of their marks; all places without
 * marks. */
typedef struct {
    int64_t count, first, last;
    const uint8_t *marks;
    int bit;
} line;

/* Find the least sum of a value and the squared steps to it, at places of a line.
 *
 * Parabolas that only touch the envelope stay in it, since their rounded sums may be the least. */
static void transform_line(
    const double *values, line of, double spacing, const double *squares, envelope *lower, double *out)
{
    double unit = spacing * spacing, greatest = 0, length = (double)of.count;
    int64_t sites = 0;
    for (int64_t at = of.first; at < of.last; at++)
        greatest = values[at] < INFINITY && values[at] > greatest ? values[at] : greatest;
    double margin = MARGIN * DBL_EPSILON * (greatest / unit + length * length);
    if (!(margin < 0.125)) {
        search_line(values, of.count, squares, out);
        return;
    }
    for (int64_t at = of.first; at < of.last; at++) {
        double start = -1;
        if (!(values[at] < INFINITY))
            continue;
        while (sites) {
            int64_t last = lower->sites[sites - 1];
            start = ((values[at] - values[last]) / unit / (double)(at - last) + (double)(at + last)) / 2;
            if (sites == 1 || start >= lower->starts[sites - 1] - margin)
                break;
            sites--;
        }
        if (start < length) {
            lower->sites[sites] = at, lower->starts[sites] = start;
            sites++;
        }
    }
    for (int64_t at = 0, site = 0; at < of.count; at++) {
        double best = INFINITY;
        if (of.marks && !(of.marks[at] >> of.bit & 1))
            continue;
        while (site + 1 < sites && lower->starts[site + 1] <= (double)at + 2 * margin)
            site++;
        for (int64_t each = site; sites; each--) {
            int64_t from = lower->sites[each];
            double sum = values[from] + squares[from < at ? at - from : from - at];
            best = sum < best ? sum : best;
            if (!each || lower->starts[each] < (double)at - 2 * margin)
                break;
        }
        out[at] = best;
    }
}

/* The work space for transforming some columns. */
typedef struct {
    int64_t first, count;  /* along x */
    double *squares;       /* (x, y, z): the least sum in the plane of each voxel */
    double *values, *sums; /* sums of a line; values (x, y) of a plane */
    uint8_t *marks;        /* (y, z): bits of the columns with queries there */
    uint8_t *any_marks;    /* (y): the same in any plane */
    envelope lower;
} block;

/* Mark the queries of columns; all before them have answers. */
static void mark_queries(field *all, block *of)
{
    int64_t depth = all->depth, height = all->height;
    memset(of->any_marks, 0, (size_t)height);
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++) {
            int64_t row = z * height + y, query = all->next[row], first = row * all->width + of->first;
            int mark = 0;
            for (; query < all->queries.firsts[row + 1] && all->queries.at[query] < first + of->count; query++)
                mark |= 1 << (all->queries.at[query] - first);
            of->marks[y * depth + z] = (uint8_t)mark;
            of->any_marks[y] |= (uint8_t)mark;
        }
}

/* Measure the voxels of columns in each plane with places, where other planes have queries. */
static void transform_planes(field *all, block *of)
{
    int64_t depth = all->depth, height = all->height;
    line along_y = {height, 0, height, of->any_marks, 0};
    for (int64_t z = all->first; z < all->last; z++) {
        int64_t rows = 0;
        for (int64_t y = 0; y < height; y++) {
            int is_filled = open_row(all, z * height + y);
            for (int64_t x = 0; x < of->count; x++)
                of->values[x * height + y] = is_filled ? square_along_row(all, z * height + y, of->first + x) : INFINITY;
            rows += is_filled;
        }
        for (int64_t x = 0; x < of->count; x++) {
            double *squares = of->squares + x * height * depth + z;
            if (!all->has_query[of->first + x])
                continue;
            along_y.bit = (int)x;
            if (rows)
                transform_line(of->values + x * height, along_y, all->spacing[1], all->squares[1], &of->lower, of->sums);
            for (int64_t y = 0; y < height; y++)
                if (of->any_marks[y] >> x & 1)
                    squares[y * depth] = rows ? of->sums[y] : INFINITY;
        }
    }
}

/* Answer the queries of columns, in each row in the order of x. */
static void transform_columns(field *all, block *of)
{
    int64_t depth = all->depth, height = all->height;
    mark_queries(all, of);
    transform_planes(all, of);
    for (int64_t y = 0; y < height; y++) {
        line along_z = {depth, all->first, all->last, of->marks + y * depth, 0};
        int marks = 0;
        for (int64_t z = 0; z < depth; z++)
            marks |= along_z.marks[z];
        for (along_z.bit = 0; along_z.bit < of->count; along_z.bit++) {
            const double *squares = of->squares + (along_z.bit * height + y) * depth;
            if (!(marks >> along_z.bit & 1))
                continue;
            transform_line(squares, along_z, all->spacing[2], all->squares[2], &of->lower, of->sums);
            for (int64_t z = 0; z < depth; z++)
                if (along_z.marks[z] >> along_z.bit & 1)
                    all->out[all->next[z * height + y]++] = of->sums[z];
        }
    }
}

static int transform_all(field *all)
{
    int64_t depth = all->depth, height = all->height, width = all->width, rows = depth * height;
    int64_t longest = depth > height ? depth : height, most = MOST_SQUARES / rows;
    most = most < 1 ? 1 : most < BLOCK ? most : BLOCK;
    most = most < width ? most : width;
    double *numbers = malloc((size_t)(most * (rows + height) + 2 * longest) * sizeof *numbers);
    int64_t *sites = malloc((size_t)longest * sizeof *sites);
    block of = {0, 0, numbers, NULL, NULL, malloc((size_t)(rows + height)), NULL, {sites, NULL}};
    if (numbers && sites && of.marks) {
        of.any_marks = of.marks + rows;
        of.values = numbers + most * rows;
        of.sums = of.values + most * height;
        of.lower.starts = of.sums + longest;
        for (int64_t i = 0; i < most * rows; i++)
            numbers[i] = INFINITY;
        for (; of.first < width; of.first += most) {
            of.count = width - of.first < most ? width - of.first : most;
            if (memchr(all->has_query + of.first, 1, (size_t)of.count))
                transform_columns(all, &of);
        }
    }
    int status = numbers && sites && of.marks ? SJ_FINE : SJ_NO_MEMORY;
    free(numbers);
    free(sites);
    free(of.marks);
    return status;
}

/* Prepare a volume whose rows are known, and answer its queries, one by one while places are near, else by the
 * transform. */
static int measure_field(field *all)
{
    int64_t rows = all->depth * all->height, width = all->width;
    const int64_t sides[3] = {width, all->height, all->depth};
    for (int axis = 0; axis < 3; axis++)
        for (int64_t step = 0; step < sides[axis]; step++) {
            double length = (double)step * all->spacing[axis];
            all->squares[axis][step] = length * length;
        }
    all->first = all->depth, all->last = 0;
    for (int64_t row = 0; row < rows; row++) {
        all->next[row] = all->queries.firsts[row];
        for (int64_t query = all->next[row]; query < all->queries.firsts[row + 1]; query++)
            all->has_query[all->queries.at[query] - row * width] = 1;
        if (!has_place(all, row))
            continue;
        all->first = all->first < row / all->height ? all->first : row / all->height;
        all->last = row / all->height + 1;
    }
    int status = search_all(all) ? SJ_FINE : transform_all(all);
    for (int64_t query = 0; query < all->queries.count; query++)
        all->out[query] = all->out[query] < all->limit ? all->out[query] : INFINITY;
    return status;
}

/* Write the square of each query's distance to the nearest place, infinite if none is nearer than a limit; both are
 * positions in a volume, in its order. The limit, a square, follows the spacing along x, y and z. */
SJ_EXPORT int sj_squares(
    const int32_t *queries, int64_t query_count, const int32_t *places, int64_t place_count, int64_t depth,
    int64_t height, int64_t width, const double *spacing, double *out)
{
    field all = {.depth = depth, .height = height, .width = width, .queries = {queries, NULL, query_count}, .places = {places, NULL, place_count}, .out = out};
    if (!queries || !places || query_count < 0 || place_count < 0 || query_count >= INT32_MAX || place_count >= INT32_MAX
        || !sj_is_volume(depth, height, width, INT32_MAX - 1) || !spacing || !out || !(spacing[3] > 0))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++) {
        all.spacing[axis] = spacing[axis];
        if (!(spacing[axis] > 0 && spacing[axis] < 1e100))
            return SJ_BAD_CALL;
    }
    all.limit = spacing[3];
    for (int64_t query = 0; !place_count && query < query_count; query++)
        out[query] = INFINITY;
    if (!place_count || !query_count)
        return SJ_FINE;
    int64_t rows = depth * height;
    double *squares = malloc((size_t)(width + height + depth) * sizeof *squares);
    int32_t *firsts = malloc((size_t)(3 * rows + 2) * sizeof *firsts);
    all.steps = malloc((size_t)(rows * width) * sizeof *all.steps);
    all.has_query = calloc((size_t)(width + rows), 1);
    int status = SJ_NO_MEMORY;
    if (squares && firsts && all.steps && all.has_query) {
        all.is_open = all.has_query + width;
        all.squares[0] = squares, all.squares[1] = squares + width, all.squares[2] = squares + width + height;
        all.queries.firsts = firsts, all.places.firsts = firsts + rows + 1, all.next = firsts + 2 * rows + 2;
        int are_in_order = find_rows(&all.queries, rows, width) && find_rows(&all.places, rows, width);
        status = are_in_order ? measure_field(&all) : SJ_BAD_DATA;
    }
    free(squares);
    free(firsts);
    free(all.steps);
    free(all.has_query);
    return status;
}
