/* Volumes (z, y, x): the boxes of labels, the corners of surfaces, the distances between surfaces, components and growing.
 *
 * The square of a distance is the least sum of squares of steps times the spacing, x and y first, then z, in 64 bits.
 * Rounding keeps the order of sums, so this least sum has the same bits in whichever order places are looked at.
 */
#include "kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

#define MOST_SIDE (1 << 15) /* so that steps fit into 16 bits */
#define MOST_VOXELS ((int64_t)1 << 31)
#define NO_PLACE UINT16_MAX
#define CODES 256
/* Places are looked up one by one for so many per voxel; the transform of a whole box takes as long. */
#define LOOKUPS 8
/* The rounding errors of a crossing of two parabolas are less than so many units in the last place. */
#define MARGIN 64

typedef struct {
    int64_t depth, height, width;
} shape;

static int is_shape(const shape *of)
{
    return of->depth > 0 && of->height > 0 && of->width > 0 && of->depth <= MOST_SIDE && of->height <= MOST_SIDE
        && of->width <= MOST_SIDE && of->depth * of->height <= MOST_VOXELS / of->width;
}

/* ── boxes ───────────────────────────────────────────────────────────────── */

static inline uint32_t label_of(const uint8_t *at, int size)
{
    uint32_t label = 0;
    memcpy(&label, at, (size_t)size);
    return label;
}

/* A row of labels, whose size in bytes the compiler knows. */
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
        while (x < width && label_of(row + x * size, size) == label)
            x++;
        if (label >= labels)
            return 0;
        if (!label)
            continue;
        int64_t *box = boxes + 6 * (int64_t)label;
        if (!voxels[label])
            box[0] = z, box[2] = y, box[3] = y + 1, box[4] = start, box[5] = x;
        voxels[label] += x - start;
        box[1] = z + 1;
        box[2] = y < box[2] ? y : box[2], box[3] = y + 1 > box[3] ? y + 1 : box[3];
        box[4] = start < box[4] ? start : box[4], box[5] = x > box[5] ? x : box[5];
    }
    return 1;
}

/* Count the voxels of each label but 0, and find its box: from and to along z, y and x. */
SJ_EXPORT int sj_boxes(
    const uint8_t *map, int32_t size, int64_t depth, int64_t height, int64_t width, int64_t labels, int64_t *voxels,
    int64_t *boxes)
{
    shape of = {depth, height, width};
    if (!map || !voxels || !boxes || !is_shape(&of) || labels < 1 || (size != 1 && size != 2 && size != 4))
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

/* ── corners ─────────────────────────────────────────────────────────────── */

/* Add a row of a mask to a row of codes, which is one longer: its voxels at the right of a corner, and at the left. */
static void add_row(uint8_t *codes, const uint8_t *row, int64_t width, int left, int right)
{
    for (int64_t x = 0; x < width; x++)
        codes[x] |= (uint8_t)(row[x] << right);
    for (int64_t x = 0; x < width; x++)
        codes[x + 1] |= (uint8_t)(row[x] << left);
}

/* Write for each corner between voxels (0 or 1) which of its eight are set, by bits 4 x + 2 y + z; outside none is. */
SJ_EXPORT int sj_corners(const uint8_t *mask, int64_t depth, int64_t height, int64_t width, uint8_t *codes)
{
    shape of = {depth, height, width};
    if (!mask || !codes || !is_shape(&of))
        return SJ_BAD_CALL;
    for (int64_t z = 0; z <= depth; z++)
        for (int64_t y = 0; y <= height; y++) {
            uint8_t *out = codes + (z * (height + 1) + y) * (width + 1);
            memset(out, 0, (size_t)width + 1);
            for (int part = 0; part < 4; part++) {
                int64_t plane = z - 1 + (part & 1), row = y - 1 + (part >> 1);
                if (plane >= 0 && plane < depth && row >= 0 && row < height)
                    add_row(out, mask + (plane * height + row) * width, width, part, part + 4);
            }
        }
    return SJ_FINE;
}

/* ── distances ───────────────────────────────────────────────────────────── */

/* A box: of each voxel by how many steps along x the nearest place is away, of each row whether it has one and where its
 * queries' answers go; squares of steps along x, y and z. */
typedef struct {
    shape of;
    const uint8_t *queries;
    uint16_t *steps;
    uint8_t *has_place;
    int64_t *next;
    double spacing[3], *squares[3];
    int64_t lookups;
    double *out;
} field;

static inline int is_place(uint8_t code) { return (uint8_t)(code + 1) > 1; }

/* Write by how many steps along a row the nearest place is away; return whether there is one. */
static uint8_t measure_row(const uint8_t *places, int64_t width, uint16_t *steps)
{
    int64_t first = 0, before;
    while (width - first >= 8 && (!sj_load(places + first) || !~sj_load(places + first)))
        first += 8;
    while (first < width && !is_place(places[first]))
        first++;
    if (first == width)
        return 0;
    before = first;
    for (int64_t x = 0; x < first; x++)
        steps[x] = (uint16_t)(first - x);
    for (int64_t x = first; x < width; x++) {
        before = is_place(places[x]) ? x : before;
        steps[x] = (uint16_t)(x - before);
    }
    for (int64_t x = width - 1, behind = width + NO_PLACE; x >= 0; x--) {
        behind = steps[x] ? behind : x;
        steps[x] = behind - x < steps[x] ? (uint16_t)(behind - x) : steps[x];
    }
    return 1;
}

/* Look for a nearer place in a plane; its rows nearest to the query first. */
static double search_plane(field *all, int64_t plane, int64_t y, int64_t x, double rest, double best)
{
    const uint8_t *has_place = all->has_place + plane * all->of.height;
    const uint16_t *steps = all->steps + plane * all->of.height * all->of.width + x;
    for (int64_t step = 0; step <= y || step < all->of.height - y; step++) {
        double square = all->squares[1][step];
        if (square + rest >= best)
            break;
        all->lookups++;
        for (int64_t row = y - step, turn = 0; turn < 1 + (step > 0); turn++, row = y + step)
            if (row >= 0 && row < all->of.height && has_place[row]) {
                double sum = all->squares[0][steps[row * all->of.width]] + square + rest;
                best = sum < best ? sum : best;
            }
    }
    return best;
}

static double search(field *all, int64_t z, int64_t y, int64_t x)
{
    double best = INFINITY;
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

/* Answer the queries one by one; return whether they were answered before there were too many lookups. */
static int search_all(field *all)
{
    int64_t rows = all->of.depth * all->of.height, most = LOOKUPS * rows * all->of.width;
    for (int64_t row = 0; row < rows; row++) {
        const uint8_t *queries = all->queries + row * all->of.width;
        double *out = all->out + all->next[row];
        for (int64_t x = 0; x < all->of.width; x++)
            if (is_place(queries[x])) {
                if (all->lookups > most)
                    return 0;
                *out++ = search(all, row / all->of.height, row % all->of.height, x);
            }
    }
    return 1;
}

/* The lower envelope of parabolas along a line: whose each is, and from where on. */
typedef struct {
    int64_t *sites;
    double *starts;
} envelope;

/* Find the least sum at each place of a line in the order of steps, for spacings that differ by more than a million. */
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

/* Find the least sum of a value and the square of the steps to it, at each place of a line.
 *
 * Parabolas that only touch the envelope stay on it, since their rounded sums may be the least. */
static void transform_line(
    const double *values, int64_t count, double spacing, const double *squares, envelope *lower, double *out)
{
    double unit = spacing * spacing, greatest = 0, length = (double)count;
    int64_t sites = 0;
    for (int64_t at = 0; at < count; at++)
        greatest = values[at] < INFINITY && values[at] > greatest ? values[at] : greatest;
    double margin = MARGIN * DBL_EPSILON * (greatest / unit + length * length);
    if (!(margin < 0.125)) {
        search_line(values, count, squares, out);
        return;
    }
    for (int64_t at = 0; at < count; at++) {
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
    for (int64_t at = 0, site = 0; at < count; at++) {
        double best = INFINITY;
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

/* Measure all voxels of a plane (y, z) of one x, and answer its queries. */
static void transform_plane(field *all, int64_t x, double *plane, double *line, envelope *lower)
{
    int64_t depth = all->of.depth, height = all->of.height, width = all->of.width;
    double *values = line, *sums = line + (depth > height ? depth : height);
    for (int64_t z = 0; z < depth; z++) {
        for (int64_t y = 0; y < height; y++) {
            int64_t row = z * height + y;
            values[y] = all->has_place[row] ? all->squares[0][all->steps[row * width + x]] : INFINITY;
        }
        transform_line(values, height, all->spacing[1], all->squares[1], lower, sums);
        for (int64_t y = 0; y < height; y++)
            plane[y * depth + z] = sums[y];
    }
    for (int64_t y = 0; y < height; y++) {
        int64_t queries = 0;
        for (int64_t z = 0; z < depth; z++)
            queries += is_place(all->queries[(z * height + y) * width + x]);
        if (!queries)
            continue;
        transform_line(plane + y * depth, depth, all->spacing[2], all->squares[2], lower, sums);
        for (int64_t z = 0; z < depth; z++)
            if (is_place(all->queries[(z * height + y) * width + x]))
                all->out[all->next[z * height + y]++] = sums[z];
    }
}

static int has_queries(const field *all, int64_t x)
{
    for (int64_t row = 0; row < all->of.depth * all->of.height; row++)
        if (is_place(all->queries[row * all->of.width + x]))
            return 1;
    return 0;
}

static int transform_all(field *all)
{
    int64_t depth = all->of.depth, height = all->of.height, longest = depth > height ? depth : height;
    double *numbers = malloc((size_t)(depth * height + 3 * longest) * sizeof *numbers);
    int64_t *sites = malloc((size_t)longest * sizeof *sites);
    if (numbers && sites) {
        double *rest = numbers + depth * height;
        envelope lower = {sites, rest + 2 * longest};
        for (int64_t x = 0; x < all->of.width; x++)
            if (has_queries(all, x))
                transform_plane(all, x, numbers, rest, &lower);
    }
    int status = numbers && sites ? SJ_FINE : SJ_NO_MEMORY;
    free(numbers);
    free(sites);
    return status;
}

/* Prepare a box, and answer its queries; of the tables the caller is the owner. */
static int measure_field(field *all, const uint8_t *places, int64_t answers)
{
    int64_t rows = all->of.depth * all->of.height, width = all->of.width, count = 0;
    const int64_t sides[3] = {width, all->of.height, all->of.depth};
    for (int axis = 0; axis < 3; axis++)
        for (int64_t step = 0; step < sides[axis]; step++) {
            double length = (double)step * all->spacing[axis];
            all->squares[axis][step] = length * length;
        }
    for (int64_t row = 0; row < rows; row++) {
        all->next[row] = count;
        for (int64_t x = 0; x < width; x++)
            count += is_place(all->queries[row * width + x]);
        all->has_place[row] = measure_row(places + row * width, width, all->steps + row * width);
    }
    if (count != answers)
        return SJ_BAD_CALL;
    return search_all(all) ? SJ_FINE : transform_all(all);
}

/* Write the square of each query's distance to the nearest place, infinite if there is none; they are bytes but 0 and
 * 255. */
SJ_EXPORT int sj_squares(
    const uint8_t *queries, const uint8_t *places, int64_t depth, int64_t height, int64_t width, const double *spacing,
    double *out, int64_t answers)
{
    field all = {{depth, height, width}, queries, NULL, NULL, NULL, {0, 0, 0}, {NULL, NULL, NULL}, 0, out};
    if (!queries || !places || !spacing || !out || !is_shape(&all.of))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++) {
        all.spacing[axis] = spacing[axis];
        if (!(spacing[axis] > 0 && spacing[axis] < 1e100))
            return SJ_BAD_CALL;
    }
    int64_t rows = depth * height;
    double *squares = malloc((size_t)(width + height + depth) * sizeof *squares);
    all.steps = malloc((size_t)(rows * width) * sizeof *all.steps);
    all.has_place = malloc((size_t)rows);
    all.next = malloc((size_t)rows * sizeof *all.next);
    int status = SJ_NO_MEMORY;
    if (squares && all.steps && all.has_place && all.next) {
        all.squares[0] = squares, all.squares[1] = squares + width, all.squares[2] = squares + width + height;
        status = measure_field(&all, places, answers);
    }
    free(squares);
    free(all.steps);
    free(all.has_place);
    free(all.next);
    return status;
}

/* ── components ──────────────────────────────────────────────────────────── */

/* Names of parts that may be one component: each leads to an earlier name of the same, or to itself. */
typedef struct {
    int32_t *above, count, room;
} names;

static int32_t root_of(names *all, int32_t name)
{
    while (all->above[name] != name)
        name = all->above[name] = all->above[all->above[name]];
    return name;
}

static int32_t join(names *all, int32_t one, int32_t other)
{
    if (one == other)
        return one;
    one = root_of(all, one), other = root_of(all, other);
    int32_t first = one < other ? one : other;
    return all->above[one] = all->above[other] = first;
}

static int32_t add_name(names *all)
{
    if (all->count == all->room) {
        if (all->room > INT32_MAX / 2)
            return 0;
        int32_t *wider = realloc(all->above, (size_t)all->room * 2 * sizeof *wider);
        if (!wider)
            return 0;
        all->above = wider, all->room *= 2;
    }
    all->above[all->count] = all->count;
    return all->count++;
}

/* Return the name that a voxel takes from those before it, 0 for none; the rows before it are `reach` wide beside it. */
static int32_t name_before(names *all, const int32_t *numbers, const shape *of, const int64_t *at, int most)
{
    static const int8_t rows[5][2] = {{0, 0}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}};
    int32_t name = 0;
    for (int row = 0; row < 5; row++) {
        int64_t z = at[0] + rows[row][0], y = at[1] + rows[row][1];
        int apart = (rows[row][0] != 0) + (rows[row][1] != 0), reach = apart < most;
        if (apart > most || z < 0 || y < 0 || y >= of->height)
            continue;
        int64_t first = at[2] - reach, last = row ? at[2] + reach : at[2] - 1;
        first = first < 0 ? 0 : first, last = last < of->width ? last : of->width - 1;
        const int32_t *line = numbers + (z * of->height + y) * of->width;
        for (int64_t x = first; x <= last; x++)
            if (line[x])
                name = name ? join(all, name, line[x]) : line[x];
    }
    return name;
}

/* Name the voxels of a mask; return whether there was memory for all names. */
static int name_voxels(names *all, const uint8_t *mask, const shape *of, int most, int32_t *numbers)
{
    int64_t at[3];
    for (at[0] = 0; at[0] < of->depth; at[0]++)
        for (at[1] = 0; at[1] < of->height; at[1]++) {
            int64_t start = (at[0] * of->height + at[1]) * of->width;
            memset(numbers + start, 0, (size_t)of->width * sizeof *numbers);
            for (at[2] = 0; at[2] < of->width; at[2]++) {
                if (!mask[start + at[2]])
                    continue;
                int32_t name = name_before(all, numbers, of, at, most);
                if (!name && !(name = add_name(all)))
                    return 0;
                numbers[start + at[2]] = name;
            }
        }
    return 1;
}

/* Number the components of a mask by 6, 18 or 26 neighbours from 1, in the order of their first voxels. */
SJ_EXPORT int sj_components(
    const uint8_t *mask, int64_t depth, int64_t height, int64_t width, int32_t neighbours, int32_t *numbers,
    int64_t *total)
{
    shape of = {depth, height, width};
    int most = neighbours == 6 ? 1 : neighbours == 18 ? 2 : neighbours == 26 ? 3 : 0;
    if (!mask || !numbers || !total || !most || !is_shape(&of))
        return SJ_BAD_CALL;
    names all = {malloc(CODES * sizeof(int32_t)), 1, CODES};
    if (!all.above)
        return SJ_NO_MEMORY;
    all.above[0] = 0;
    int fine = name_voxels(&all, mask, &of, most, numbers);
    int32_t count = 0;
    for (int32_t name = 1; fine && name < all.count; name++)
        all.above[name] = all.above[name] == name ? ++count : all.above[all.above[name]];
    for (int64_t i = 0; fine && i < depth * height * width; i++)
        numbers[i] = all.above[numbers[i]];
    *total = count;
    free(all.above);
    return fine ? SJ_FINE : SJ_NO_MEMORY;
}
