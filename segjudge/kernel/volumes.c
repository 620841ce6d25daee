/* Volumes (z, y, x) -> boxes of labels, distances between places.
 *
 * The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z, in 64
 * bits. Rounding keeps the order of sums, so the least sum has the same bits in any order of search. */
#include "windows.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MOST_VOXELS ((int64_t)1 << 31)
#define FAR UINT8_MAX
#define NOT_WRITTEN 2
/* The number of columns transformed at once, limited by this number of squares of their voxels. */
#define BLOCK 8
#define MOST_SQUARES ((int64_t)1 << 22)
#define CODES 256
/* The number of queries from which on near places are first looked up in bits, which stops if after so many of them the
 * places of more than a share of queries are not near. */
#define MANY 2048
#define TRIED 512
#define MOST_FAR 0.25
/* The maximum lookups per query, and per voxel of columns with queries in planes with places; the transform takes as
 * long as these. The search stops early if its progress predicts more: after this part of all lookups and this share
 * of queries. */
#define LOOKUPS 8
#define EARLY 0.125
/* The lookups per query after which places in blocks are searched if they are few: as many as each query takes there,
 * and another one for so many large blocks. */
#define AT_FIRST 64
#define BLOCKS_A_LOOKUP 4
/* A bound of the rounding error of two parabolas' crossing, in units in the last place. */
#define MARGIN 64

typedef struct {
    int64_t depth, height, width;
} shape;

/* ── boxes ───────────────────────────────────────────────────────────────── */

static inline uint32_t label_of(const uint8_t *at, int size)
{
    uint32_t label = 0;
    memcpy(&label, at, (size_t)size);
    return label;
}

/* Count the voxels of a run of a label, and widen its box. */
static inline void count_run(
    uint32_t label, int64_t z, int64_t y, int64_t start, int64_t end, int64_t *voxels, int64_t *boxes)
{
    int64_t *box = boxes + 6 * (int64_t)label;
    if (!voxels[label])
        box[0] = z, box[2] = y, box[3] = y + 1, box[4] = start, box[5] = end;
    voxels[label] += end - start;
    box[1] = z + 1;
    box[2] = y < box[2] ? y : box[2], box[3] = y + 1 > box[3] ? y + 1 : box[3];
    box[4] = start < box[4] ? start : box[4], box[5] = end > box[5] ? end : box[5];
}

/* A row of labels, whose size in bytes is a constant for the compiler. Bytes of words that are not alike are counted one
 * by one, which takes less time than finding where runs of noise end; label 0 is counted where it is among them. */
static inline int read_row(
    const uint8_t *row, int size, int64_t z, int64_t y, int64_t width, int64_t labels, int64_t *voxels, int64_t *boxes)
{
    for (int64_t x = 0; x < width;) {
        const uint8_t *at = row + x * size;
        if (width - x >= 16 && !(sj_load(at) | sj_load(at + 8 * (size > 1)))) {
            x += (size > 1 ? 16 : 8) / size;
            continue;
        }
        uint32_t label = label_of(at, size);
        int64_t start = x;
        if (size == 1 && labels > 255 && width - x >= 8 && sj_load(at) != label * 0x0101010101010101u) {
            for (int64_t end = x + 8; x < end; x++)
                count_run(row[x], z, y, x, x + 1, voxels, boxes);
            continue;
        }
        while (x < width && label_of(row + x * size, size) == label)
            x++;
        if (label >= labels)
            return 0;
        if (!label)
            continue;
        count_run(label, z, y, start, x, voxels, boxes);
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
    memset(voxels, 0, sizeof *voxels);
    memset(boxes, 0, 6 * sizeof *boxes);
    return SJ_FINE;
}

/* ── distances ───────────────────────────────────────────────────────────── */

/* A volume. For each voxel: the steps along x to the nearest place, or FAR; a row is written when it is first read, so
 * other rows take no memory. For each row: whether it has a place (0, 1, or NOT_WRITTEN), and its first query that has
 * no answer. For each x: whether it has queries. Also the squares of steps along x, y and z. */
typedef struct {
    shape of;
    sj_list queries, places;
    uint8_t *steps;
    uint8_t *has_place, *has_query;
    int64_t first, last; /* the range of planes with places */
    int32_t *next;
    double spacing[3], *squares[3], limit; /* the square from which on no distance is needed */
    int64_t lookups;
    double *out;
} field;

/* Write the steps to the nearest place along a row with places. */
static void write_row(field *all, int64_t row)
{
    int64_t width = all->of.width;
    const int32_t *place = all->places.at + all->places.firsts[row], *end = all->places.at + all->places.firsts[row + 1];
    uint8_t *steps = all->steps + row * width;
    all->has_place[row] = 1;
    for (int64_t x = 0, before = -FAR, behind = *place - row * width; x < width; x++) {
        if (x > behind) {
            before = behind;
            behind = ++place < end ? *place - row * width : width + FAR;
        }
        int64_t way = x - before < behind - x ? x - before : behind - x;
        steps[x] = (uint8_t)(way < FAR ? way : FAR);
    }
}

/* Return the steps to the nearest place of a row if they are FAR or more; nearer voxels of the row know it. */
static int64_t count_far_steps(const uint8_t *steps, int64_t width, int64_t x)
{
    for (int64_t way = FAR - 1; way < width; way += FAR - 1) {
        int64_t before = x >= way ? steps[x - way] : FAR, behind = x + way < width ? steps[x + way] : FAR;
        if (before < FAR || behind < FAR)
            return way + (before < behind ? before : behind);
    }
    return width;
}

static inline double square_along_row(const field *all, int64_t row, int64_t x)
{
    const uint8_t *steps = all->steps + row * all->of.width;
    return all->squares[0][steps[x] < FAR ? steps[x] : count_far_steps(steps, all->of.width, x)];
}

/* Search a plane for a nearer place, the nearest rows first. */
static double search_plane(field *all, int64_t plane, int64_t y, int64_t x, double rest, double best)
{
    uint8_t *has_place = all->has_place + plane * all->of.height;
    for (int64_t step = 0; step <= y || step < all->of.height - y; step++) {
        double square = all->squares[1][step];
        if (square + rest >= best)
            break;
        all->lookups++;
        for (int64_t row = y - step, turn = 0; turn < 1 + (step > 0); turn++, row = y + step)
            if (row >= 0 && row < all->of.height && has_place[row]) {
                if (has_place[row] == NOT_WRITTEN)
                    write_row(all, plane * all->of.height + row);
                double sum = square_along_row(all, plane * all->of.height + row, x) + square + rest;
                best = sum < best ? sum : best;
            }
    }
    return best;
}

static double search(field *all, int64_t z, int64_t y, int64_t x)
{
    double best = all->limit;
    for (int64_t step = 0; step <= z || step < all->of.depth - z; step++) {
        double rest = all->squares[2][step];
        if (rest >= best)
            break;
        all->lookups++;
        if (z >= step)
            best = search_plane(all, z - step, y, x, rest, best);
        if (step && z + step < all->of.depth)
            best = search_plane(all, z + step, y, x, rest, best);
    }
    return best;
}

/* Return the lookups that take as long as the transform. */
static double count_lookups(const field *all)
{
    int64_t columns = 0;
    for (int64_t x = 0; x < all->of.width; x++)
        columns += all->has_query[x];
    double lines = (double)all->of.height * (double)columns, planes = (double)(all->last - all->first);
    return LOOKUPS * (lines * (planes > 1 ? planes : 1) + (double)all->queries.count);
}

/* Answer the queries one by one; return whether that needed no more than the allowed lookups. */
static int search_all(field *all, double most)
{
    const sj_list *queries = &all->queries;
    int64_t rows = all->of.depth * all->of.height;
    all->lookups = 0;
    for (int64_t row = 0; row < rows; row++) {
        double share = (double)queries->firsts[row] / (double)queries->count;
        for (int64_t query = queries->firsts[row]; query < queries->firsts[row + 1]; query++) {
            if ((double)all->lookups > most * (EARLY + (1 - EARLY) * share))
                return 0;
            int64_t x = queries->at[query] - row * all->of.width;
            all->out[query] = search(all, row / all->of.height, row % all->of.height, x);
        }
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
    int64_t depth = all->of.depth, height = all->of.height;
    memset(of->any_marks, 0, (size_t)height);
    for (int64_t z = 0; z < depth; z++)
        for (int64_t y = 0; y < height; y++) {
            int64_t row = z * height + y, query = all->next[row], first = row * all->of.width + of->first;
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
    int64_t depth = all->of.depth, height = all->of.height;
    line along_y = {height, 0, height, of->any_marks, 0};
    for (int64_t z = all->first; z < all->last; z++) {
        int64_t rows = 0;
        for (int64_t y = 0; y < height; y++) {
            int has_place = all->has_place[z * height + y];
            for (int64_t x = 0; x < of->count; x++)
                of->values[x * height + y] = has_place ? square_along_row(all, z * height + y, of->first + x) : INFINITY;
            rows += has_place;
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
    int64_t depth = all->of.depth, height = all->of.height;
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
    int64_t depth = all->of.depth, height = all->of.height, width = all->of.width, rows = depth * height;
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
        for (int64_t row = 0; row < rows; row++)
            if (all->has_place[row] == NOT_WRITTEN)
                write_row(all, row);
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

/* Answer all queries in the fastest way: one by one while places are near, else by blocks if these are few, or by the
 * transform. */
static int answer_all(field *all)
{
    double count = (double)all->queries.count, most = count_lookups(all), few = AT_FIRST * count;
    if (few < most && search_all(all, few))
        return SJ_FINE;
    if (few < most) {
        sj_blocks *blocks = sj_are_few(&all->places) ? sj_make_blocks(&all->places, all->spacing) : NULL;
        double lookups = blocks ? few + count * (double)sj_count_blocks(blocks) / BLOCKS_A_LOOKUP : most;
        int status = lookups < most ? sj_search_blocks(blocks, &all->queries, all->out) : SJ_FULL;
        sj_free_blocks(blocks);
        if (status != SJ_FULL)
            return status;
    }
    return search_all(all, most) ? SJ_FINE : transform_all(all);
}

/* Prepare a volume whose rows are known, and answer its queries; the caller owns the tables. */
static int measure_field(field *all)
{
    int64_t rows = all->of.depth * all->of.height, width = all->of.width;
    const int64_t sides[3] = {width, all->of.height, all->of.depth};
    for (int axis = 0; axis < 3; axis++)
        for (int64_t step = 0; step < sides[axis]; step++) {
            double length = (double)step * all->spacing[axis];
            all->squares[axis][step] = length * length;
        }
    for (int64_t row = 0; row < rows; row++) {
        all->next[row] = all->queries.firsts[row];
        for (int64_t query = all->next[row]; query < all->queries.firsts[row + 1]; query++)
            all->has_query[all->queries.at[query] - row * width] = 1;
        all->has_place[row] = all->places.firsts[row] < all->places.firsts[row + 1] ? NOT_WRITTEN : 0;
        all->first = all->has_place[row] && all->first > row / all->of.height ? row / all->of.height : all->first;
        all->last = all->has_place[row] ? row / all->of.height + 1 : all->last;
    }
    int status = answer_all(all);
    for (int64_t query = 0; query < all->queries.count; query++)
        all->out[query] = all->out[query] < all->limit ? all->out[query] : INFINITY;
    return status;
}

static int is_list(const sj_list *list)
{
    return list->at && list->count >= 0 && list->count < INT32_MAX
        && sj_is_volume(list->depth, list->height, list->width, INT32_MAX - 1);
}

/* Answer the queries of a volume whose numbers are checked. */
static int measure_all(field *all)
{
    int64_t rows = all->of.depth * all->of.height, width = all->of.width;
    double *squares = malloc((size_t)(width + all->of.height + all->of.depth) * sizeof *squares);
    int32_t *firsts = malloc((size_t)(3 * rows + 2) * sizeof *firsts);
    all->steps = malloc((size_t)(rows * width) * sizeof *all->steps);
    all->has_place = malloc((size_t)rows);
    all->has_query = calloc((size_t)width, 1);
    int status = SJ_NO_MEMORY;
    if (squares && firsts && all->steps && all->has_place && all->has_query) {
        all->squares[0] = squares, all->squares[1] = squares + width, all->squares[2] = squares + width + all->of.height;
        all->next = firsts + 2 * rows + 2;
        int are_in_order = sj_find_rows(&all->queries, firsts) && sj_find_rows(&all->places, firsts + rows + 1);
        status = are_in_order ? measure_field(all) : SJ_BAD_DATA;
    }
    free(squares);
    free(firsts);
    free(all->steps);
    free(all->has_place);
    free(all->has_query);
    return status;
}

/* Answer the queries whose nearest place is only a few steps away, and mark others by -1; count the others, which are
 * all if they are many. */
static int measure_near(const field *all, int64_t *far)
{
    const sj_list *queries = &all->queries;
    int64_t voxels = all->of.depth * all->of.height * all->of.width, count = 0, i = 0;
    sj_windows windows;
    sj_bit_row row = {0, NULL};
    int status = sj_open_windows(&windows, &all->places, all->spacing, all->limit);
    for (; status == SJ_FINE && i < queries->count && (i < TRIED || (double)count <= MOST_FAR * (double)i); i++) {
        int32_t query = queries->at[i];
        if (query < 0 || query >= voxels || (i && query <= queries->at[i - 1])) {
            status = SJ_BAD_DATA;
            break;
        }
        sj_move(&windows, query, &row);
        double square = sj_look(&windows, &row, query);
        int is_near = square < windows.end;
        all->out[i] = is_near ? square : windows.end < all->limit ? -1 : INFINITY;
        count += !is_near && windows.end < all->limit;
    }
    *far = i < queries->count ? queries->count : count;
    sj_close_windows(&windows);
    return status;
}

/* Answer the queries that are marked by -1, of which the number is given. */
static int measure_far(const field *all, int64_t far)
{
    int32_t *queries = malloc((size_t)far * sizeof *queries);
    double *squares = malloc((size_t)far * sizeof *squares);
    int status = queries && squares ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        field some = *all;
        int64_t count = 0;
        for (int64_t i = 0; i < all->queries.count; i++)
            if (all->out[i] < 0)
                queries[count++] = all->queries.at[i];
        some.queries.at = queries, some.queries.count = count, some.out = squares;
        status = measure_all(&some);
        for (int64_t i = 0, each = 0; status == SJ_FINE && i < all->queries.count; i++)
            if (all->out[i] < 0)
                all->out[i] = squares[each++];
    }
    free(queries);
    free(squares);
    return status;
}

SJ_EXPORT int sj_squares(
    const int32_t *queries, int64_t query_count, const int32_t *places, int64_t place_count, int64_t depth,
    int64_t height, int64_t width, const double *spacing, double *out)
{
    field all = {{depth, height, width}, {depth, height, width, query_count, queries, NULL}, {depth, height, width, place_count, places, NULL}, NULL, NULL, NULL, depth, 0, NULL, {0, 0, 0}, {NULL, NULL, NULL}, 0, 0, out};
    if (!spacing || !out || !is_list(&all.queries) || !is_list(&all.places))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++) {
        all.spacing[axis] = spacing[axis];
        if (!(spacing[axis] > 0 && spacing[axis] < 1e100))
            return SJ_BAD_CALL;
    }
    all.limit = spacing[3];
    if (!(all.limit > 0))
        return SJ_BAD_CALL;
    for (int64_t query = 0; !place_count && query < query_count; query++)
        out[query] = INFINITY;
    if (!place_count || !query_count)
        return SJ_FINE;
    int64_t far = query_count;
    int status = query_count < MANY ? SJ_FINE : measure_near(&all, &far);
    if (status != SJ_FINE || !far)
        return status;
    return far == query_count ? measure_all(&all) : measure_far(&all, far);
}
