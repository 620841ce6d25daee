/* A surface and targets in blocks of voxels -> the distances within which two shares of the surface's area lie.
 *
 * The distances of blocks bound those of their places: only places of blocks between two bounds are measured. An index
 * has the places of each block side by side; without one, a sample shows between which bounds the shares lie, and only
 * the places of these blocks are listed by blocks. */
#include "shares.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The side of boxes of blocks whose places are measured one after another. */
#define LARGE (1 << SJ_LARGE_BITS)
#define BLOCKS ((LARGE >> SJ_BITS) * (LARGE >> SJ_BITS) * (LARGE >> SJ_BITS))
#define BINS 4096
/* The places for which there is room at first. */
#define ROOM 4096
/* At first, places that are this near to the estimated distance are listed, as a share of a block's radius; then, those so
 * many times as near. */
#define NEAR 0.05
#define WIDER 4
/* The places of a sample for bounds without an index, by how many standard deviations of it the share may differ, the
 * number of places from which on this takes less time than an index, and the share of them that may lie there. */
#define SAMPLED 32768
#define SIGMAS 4
#define MANY_PLACES (1 << 15)
#define FEW_OF 4

/* Return the distance of blocks within which the areas lie, from the middle to the ends of bins, which divide the diagonal
 * of the volume; the greatest error is written. */
static double estimate(const surface *all, double *error)
{
    double bins[BINS] = {0}, sum = 0, diagonal = 0;
    int64_t bin = 0;
    for (int axis = 0; axis < 3; axis++)
        diagonal += sj_square_of(all->side * all->blocks[2 - axis], all->spacing[axis]);
    double width = (1 + SJ_MARGIN) * sj_root_of(diagonal) / (BINS - 1), scale = 1 / width;
    for (int64_t block = 0; block < all->cells; block++)
        bins[(int64_t)(all->distances[block] * scale)] += all->sums[block];
    for (int64_t i = 0; i < all->extra_count; i++) {
        double number = sj_root_of(all->extras[2 * i]) * scale;
        bins[number < BINS - 1 ? (int64_t)number : BINS - 1] += all->extras[2 * i + 1];
    }
    for (; bin + 1 < BINS && sum + bins[bin] < all->low; bin++)
        sum += bins[bin];
    double start = (double)bin * width;
    for (sum += bins[bin]; bin + 1 < BINS && sum < all->high;)
        sum += bins[++bin];
    double end = (double)(bin + 1) * width;
    *error = (end - start) / 2 + SJ_MARGIN * end;
    return (start + end) / 2;
}

/* Measured places whose squares lie between two, which are listed, and the area of places that are farther. */
typedef struct {
    double least, greatest, farther;
    measured *items;
    int64_t count, room;
} choice;

/* Make room for more places; return 0 without memory. */
static int make_room(choice *of, int64_t more)
{
    if (of->room - of->count >= more)
        return 1;
    int64_t room = 2 * of->room + ROOM + more;
    measured *items = realloc(of->items, (size_t)room * sizeof *items);
    if (!items)
        return 0;
    of->items = items, of->room = room;
    return 1;
}

/* Choose a measured place unless it is nearer or farther, without branches, which would often be wrong. */
static inline void choose(choice *of, double square, double area)
{
    of->items[of->count] = (measured){square, area};
    of->count += (square >= of->least) & (square <= of->greatest);
    of->farther += square > of->greatest ? area : 0;
}

/* Flags of blocks whose places are nearer than those that are looked for, may be these, or are farther. */
#define NEARER 0
#define OPEN 1
#define FARTHER 2

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

/* Find the open blocks of a large block, of which the first block is given along z, y and x; write the position of each,
 * and the box around all, and return how many there are. */
static int64_t
find_open(const surface *all, const uint8_t *flags, const int64_t *from, int64_t (*found)[3], int16_t *least, int16_t *most)
{
    int64_t ends[3], count = 0;
    for (int axis = 0; axis < 3; axis++)
        ends[axis] = from[axis] + (LARGE >> all->bits) < all->blocks[axis] ? from[axis] + (LARGE >> all->bits) : all->blocks[axis];
    for (int64_t z = from[0]; z < ends[0]; z++)
        for (int64_t y = from[1]; y < ends[1]; y++) {
            const uint8_t *row = flags + (z * all->blocks[1] + y) * all->blocks[2];
            for (int64_t x = from[2]; x < ends[2]; x++)
                if (row[x] == OPEN)
                    found[count][0] = z, found[count][1] = y, found[count++][2] = x;
        }
    for (int64_t each = 0; each < count; each++) {
        int16_t first[3], last[3];
        take_block(all, found[each], first, last);
        for (int axis = 0; axis < 3; axis++) {
            least[axis] = each && least[axis] < first[axis] ? least[axis] : first[axis];
            most[axis] = each && most[axis] > last[axis] ? most[axis] : last[axis];
        }
    }
    return count;
}

/* The places of a block: its first voxel along x, y and z, and their voxels and codes. */
typedef struct {
    const int16_t *from;
    const uint16_t *voxels;
    const uint8_t *codes;
    int64_t count;
} block_places;

/* The squares of the steps along x, y and z from the voxels of a block to a target, and the greatest sum of them: squares
 * round so that a sum of greater ones is not less. */
typedef struct {
    double along[3][LARGE], most;
} square_steps;

static void find_steps(const surface *all, const int16_t *from, const int16_t *target, square_steps *steps)
{
    steps->most = 0;
    for (int axis = 0; axis < 3; axis++) {
        double most = 0;
        for (int64_t step = 0; step < all->side; step++) {
            double square = sj_square_of(from[axis] + step - target[axis], all->spacing[axis]);
            steps->along[axis][step] = square;
            most = square > most ? square : most;
        }
        steps->most += most;
    }
}

static inline double add_steps(const surface *all, const square_steps *steps, int64_t voxel)
{
    const int64_t bits = all->bits, last_bits = all->side - 1;
    return steps->along[0][voxel & last_bits] + steps->along[1][voxel >> bits & last_bits]
        + steps->along[2][voxel >> 2 * bits & last_bits];
}

/* Choose the places of a block, to all voxels of which the same target is nearest. */
static void choose_lone(const surface *all, const block_places *places, const square_steps *steps, choice *of)
{
    choice chosen = *of;
    for (int64_t i = 0; i < places->count; i++)
        choose(&chosen, add_steps(all, steps, places->voxels[i]), all->areas[places->codes[i]]);
    *of = chosen;
}

/* Choose the places of a block, of which those that are nearer to a target than the others are not looked for. */
static void
choose_each(const surface *all, const block_places *places, const square_steps *steps, sj_search *search, choice *of)
{
    const int64_t bits = all->bits, last_bits = all->side - 1;
    for (int64_t i = 0; i < places->count; i++) {
        int64_t voxel = places->voxels[i];
        if (add_steps(all, steps, voxel) < of->least)
            continue;
        int64_t x = voxel & last_bits, y = voxel >> bits & last_bits, z = voxel >> 2 * bits & last_bits;
        choose(of, sj_find_square(search, places->from[0] + x, places->from[1] + y, places->from[2] + z),
               all->areas[places->codes[i]]);
    }
}

/* Measure the places of a block, given its position. */
static int measure_block(const surface *all, sj_search *search, const int64_t *at, choice *of)
{
    const int32_t *starts = all->starts + (at[0] * all->blocks[1] + at[1]) * all->blocks[2] + at[2];
    int16_t least[3], most[3], target[3];
    square_steps steps;
    if (starts[0] < 0 || starts[1] < starts[0] || starts[1] > all->places.count)
        return SJ_BAD_DATA;
    if (!make_room(of, starts[1] - starts[0] + 1))
        return SJ_NO_MEMORY;
    take_block(all, at, least, most);
    sj_find_target(search, least, most, target);
    find_steps(all, least, target, &steps);
    if (steps.most < of->least)
        return SJ_FINE;
    block_places places = {least, all->voxels + starts[0], all->block_codes + starts[0], starts[1] - starts[0]};
    if (sj_look_at(search, least, most))
        choose_lone(all, &places, &steps, of);
    else
        choose_each(all, &places, &steps, search, of);
    return SJ_FINE;
}

/* Measure the places of open blocks in a row of large blocks. */
static int measure_row_of_blocks(
    const surface *all, const uint8_t *flags, sj_search *search, int64_t z, int64_t y, choice *of)
{
    const int64_t step = LARGE >> all->bits;
    int64_t found[BLOCKS][3];
    int16_t least[3], most[3];
    int status = SJ_FINE;
    for (int64_t x = 0; status == SJ_FINE && x < all->blocks[2]; x += step) {
        const int64_t from[3] = {z, y, x}, count = find_open(all, flags, from, found, least, most);
        if (count)
            sj_look_around(search, least, most);
        for (int64_t each = 0; status == SJ_FINE && each < count; each++)
            status = measure_block(all, search, found[each], of);
    }
    return status;
}

/* Choose the places of open blocks, and extras. */
static int choose_open(const surface *all, const sj_blocks *targets, const uint8_t *flags, choice *of)
{
    sj_search *search = sj_open_search(targets);
    int status = search && make_room(of, all->extra_count + 1) ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; status == SJ_FINE && i < all->extra_count; i++)
        choose(of, all->extras[2 * i], all->extras[2 * i + 1]);
    for (int64_t z = 0; z < all->blocks[0]; z += LARGE >> all->bits)
        for (int64_t y = 0; status == SJ_FINE && y < all->blocks[1]; y += LARGE >> all->bits)
            status = measure_row_of_blocks(all, flags, search, z, y, of);
    sj_close_search(search);
    return status;
}

/* Write which blocks of a radius are nearer or farther than two distances, and which are open. */
static void flag_blocks(const surface *all, double radius, double least, double greatest, uint8_t *flags)
{
    const float before = (float)((least - radius) * (1 - 2 * SJ_MARGIN));
    const float behind = (float)((greatest + radius) * (1 + 2 * SJ_MARGIN));
    for (int64_t block = 0; block < all->cells; block++) {
        float distance = all->distances[block];
        flags[block] = (uint8_t)((distance >= before) + (distance > behind));
    }
}

/* ── an index ── */

/* Find the squares among chosen places, given all that are farther. */
static int find_chosen(const surface *all, const choice *of, double *squares)
{
    double nearer = all->total - of->farther;
    for (int64_t i = 0; i < of->count; i++)
        nearer -= of->items[i].area;
    return sj_find_squares(of->items, of->count, nearer, all->low, all->high, squares);
}

/* Return the greatest distance from the centre of a block to one of its voxels. */
static double radius_of(const surface *all)
{
    double x = all->half * all->spacing[0], y = all->half * all->spacing[1], z = all->half * all->spacing[2];
    return (1 + SJ_MARGIN) * sj_root_of(x * x + y * y + z * z);
}

/* Find the squares by bounds, given an index, and the targets in blocks. */
static int find_by_bounds(const surface *all, const sj_blocks *targets, double *squares)
{
    static const double shares[3] = {[FARTHER] = 1};
    double error, radius = radius_of(all), reach;
    choice of = {0, 0, 0, NULL, 0, 0};
    uint8_t *flags = malloc((size_t)all->cells);
    int status = flags ? SJ_FINE : SJ_NO_MEMORY, is_done = 0;
    double middle = estimate(all, &error);
    for (reach = error + NEAR * radius; status == SJ_FINE && !is_done; reach *= WIDER) {
        double least = middle - reach > 0 ? middle - reach : 0, greatest = middle + reach;
        int is_all = reach >= error + radius;
        flag_blocks(all, radius, least, greatest, flags);
        of.least = least * least, of.greatest = greatest * greatest, of.farther = 0, of.count = 0;
        for (int64_t block = 0; block < all->cells; block++) {
            of.farther += shares[flags[block]] * all->sums[block];
            flags[block] &= (uint8_t)-(all->starts[block] != all->starts[block + 1]);
        }
        status = choose_open(all, targets, flags, &of);
        if (status != SJ_FINE)
            break;
        status = find_chosen(all, &of, squares);
        is_done = is_all || status == SJ_FINE;
        if (!is_done && status == SJ_FULL)
            status = SJ_FINE;
    }
    free(of.items);
    free(flags);
    return status;
}

/* ── lists without an index ── */

/* Find the distances of blocks between which the share probably lies, by a sample of places; write them. */
static int sample_blocks(const surface *all, double share, double *least, double *greatest)
{
    const sj_list *places = &all->places;
    int64_t step = (places->count + all->extra_count) / SAMPLED + 1, count = 0;
    measured *items = malloc((size_t)((places->count + all->extra_count) / step + 2) * sizeof *items);
    double total = 0, sum = 0;
    if (!items)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < places->count; i += step, count++) {
        int32_t place = places->at[i], row = place / (int32_t)places->width, z = row / (int32_t)places->height;
        int64_t y = row - z * places->height, x = place - row * places->width;
        int64_t block = ((z >> all->bits) * all->blocks[1] + (y >> all->bits)) * all->blocks[2] + (x >> all->bits);
        items[count] = (measured){all->distances[block], all->areas[all->codes[i]]};
        total += items[count].area;
    }
    for (int64_t i = 0; i < all->extra_count; i += step, total += items[count++].area)
        items[count] = (measured){sj_root_of(all->extras[2 * i]), all->extras[2 * i + 1]};
    double by = SIGMAS * sj_root_of(share * (1 - share) / (double)count), low = (share - by) * total, high = (share + by) * total;
    count = sj_narrow(items, count, low, high, &sum);
    qsort(items, (size_t)count, sizeof *items, sj_compare_squares);
    *least = 0, *greatest = INFINITY;
    for (int64_t i = 0; i < count && sum < high; sum += items[i++].area) {
        *least = sum < low ? items[i].square : *least;
        *greatest = items[i].square;
    }
    free(items);
    return sum >= high ? SJ_FINE : SJ_FULL;
}

/* The places of open blocks in the order of the volume: their blocks, voxels and codes. */
typedef struct {
    int32_t *blocks;
    uint16_t *voxels;
    uint8_t *codes;
    int64_t count, room;
} few_places;

/* Blocks of a row that are not nearer, of one kind side by side. */
typedef struct {
    int64_t first, last;
    int kind;
} segment;

static int64_t find_segments(const uint8_t *flags, int64_t blocks, segment *segments)
{
    int64_t count = 0;
    for (int64_t x = 0; x < blocks; x++)
        if (flags[x] == NEARER)
            continue;
        else if (count && segments[count - 1].last == x && segments[count - 1].kind == flags[x])
            segments[count - 1].last = x + 1;
        else
            segments[count++] = (segment){x, x + 1, flags[x]};
    return count;
}

/* Return the first place from a position on among places from one on, which are often as dense as all. */
static inline int64_t skip_places(const sj_list *places, int64_t first, int32_t position, double density)
{
    const int32_t *at = places->at;
    if (first >= places->count || at[first] >= position)
        return first;
    int64_t guess = first + (int64_t)((double)(position - at[first]) * density), step = 1, end;
    guess = guess < places->count ? guess : places->count - 1;
    if (at[guess] >= position) {
        for (end = guess; end - step > first && at[end - step] >= position; step *= 2)
            end -= step;
        first = end - step > first ? end - step : first;
    } else {
        for (first = guess; first + step < places->count && at[first + step] < position; step *= 2)
            first += step;
        end = first + step < places->count ? first + step : places->count;
    }
    while (first + 1 < end) {
        int64_t middle = first + (end - first) / 2;
        if (at[middle] < position)
            first = middle;
        else
            end = middle;
    }
    return end;
}

/* List the places of open blocks, and add the areas of farther ones; return SJ_FULL if they are too many. */
static int list_open(const surface *all, const uint8_t *flags, segment *segments, few_places *to, double *farther)
{
    const sj_list *places = &all->places;
    const int64_t bits = all->bits, last_bits = all->side - 1;
    const double density = (double)places->count / (double)(places->depth * places->height * places->width);
    int64_t counts[SJ_CODES] = {0}, place = 0;
    for (int64_t row = 0, count = 0; row < places->depth * places->height; row++) {
        int64_t z = row / places->height, y = row % places->height;
        int64_t first_block = ((z >> bits) * all->blocks[1] + (y >> bits)) * all->blocks[2];
        if (!(y & last_bits))
            count = find_segments(flags + first_block, all->blocks[2], segments);
        int32_t start = (int32_t)(row * places->width), line = (int32_t)(((z & last_bits) << bits | (y & last_bits)) << bits);
        for (const segment *each = segments; each < segments + count; each++) {
            int64_t end = each->last << bits < places->width ? start + (each->last << bits) : start + places->width;
            place = skip_places(places, place, start + (int32_t)(each->first << bits), density);
            if (each->kind == FARTHER) {
                for (; place < places->count && places->at[place] < end; place++)
                    counts[all->codes[place]]++;
                continue;
            }
            if (to->room - to->count < end - start)
                return SJ_FULL;
            for (; place < places->count && places->at[place] < end; place++) {
                int32_t x = places->at[place] - start;
                to->blocks[to->count] = (int32_t)first_block + (x >> bits);
                to->voxels[to->count] = (uint16_t)(line | (x & last_bits));
                to->codes[to->count++] = all->codes[place];
            }
        }
    }
    for (int code = 0; code < SJ_CODES; code++)
        *farther += (double)counts[code] * all->areas[code];
    return SJ_FINE;
}

/* Write the index of few places. */
static void index_few(const few_places *few, int64_t cells, int32_t *starts, uint16_t *voxels, uint8_t *codes)
{
    memset(starts, 0, (size_t)(cells + 1) * sizeof *starts);
    for (int64_t i = 0; i < few->count; i++)
        starts[few->blocks[i] + 1]++;
    for (int64_t block = 0; block < cells; block++)
        starts[block + 1] += starts[block];
    for (int64_t i = 0; i < few->count; i++) {
        int32_t at = starts[few->blocks[i]]++;
        voxels[at] = few->voxels[i], codes[at] = few->codes[i];
    }
    memmove(starts + 1, starts, (size_t)cells * sizeof *starts);
    starts[0] = 0;
}

/* Find the squares by the places of blocks between which the share probably lies; return SJ_FULL if it does not, or if
 * these are many. */
static int find_probable(const surface *all, const sj_blocks *targets, double *squares)
{
    double least, greatest, share = (all->low + all->high) / 2 / all->total, radius = radius_of(all);
    size_t cells = (size_t)all->cells, room = (size_t)(all->places.count / FEW_OF + all->places.width);
    int status = sample_blocks(all, share, &least, &greatest);
    if (status != SJ_FINE)
        return status;
    choice of = {0, 0, 0, NULL, 0, 0};
    uint8_t *flags = malloc(cells), *bytes = malloc(room * (2 * sizeof(uint16_t) + sizeof(int32_t) + 2));
    int32_t *starts = malloc((cells + 1) * sizeof *starts);
    segment *segments = malloc((size_t)all->blocks[2] * sizeof *segments);
    status = flags && bytes && starts && segments ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        few_places few = {(int32_t *)bytes, (uint16_t *)(bytes + 4 * room), bytes + 8 * room, 0, (int64_t)room};
        surface open = *all;
        uint16_t *voxels = (uint16_t *)(bytes + 6 * room);
        uint8_t *codes = bytes + 9 * room;
        least = least > NEAR * radius ? least - NEAR * radius : 0, greatest += NEAR * radius;
        flag_blocks(all, radius, least, greatest, flags);
        of.least = least * least, of.greatest = greatest * greatest;
        status = list_open(all, flags, segments, &few, &of.farther);
        if (status == SJ_FINE) {
            index_few(&few, all->cells, starts, voxels, codes);
            open.starts = starts, open.voxels = voxels, open.block_codes = codes;
            for (int64_t block = 0; block < all->cells; block++)
                flags[block] = starts[block] < starts[block + 1] ? OPEN : NEARER;
            status = choose_open(&open, targets, flags, &of);
        }
        if (status == SJ_FINE)
            status = find_chosen(all, &of, squares);
    }
    free(of.items);
    free(flags);
    free(bytes);
    free(starts);
    free(segments);
    return status;
}

/* ── far targets ── */

/* Find the squares by an index, which is made. */
static int find_by_index(const surface *all, const sj_blocks *targets, double *squares)
{
    surface with = *all;
    size_t cells = (size_t)all->cells, count = (size_t)all->places.count;
    double *sums = malloc(cells * sizeof *sums);
    int32_t *starts = malloc((cells + 1) * sizeof *starts);
    uint16_t *voxels = malloc(count * (sizeof *voxels + 1) + 1);
    uint8_t *codes = (uint8_t *)(voxels + count);
    int status = sums && starts && voxels ? SJ_FINE : SJ_NO_MEMORY;
    if (status == SJ_FINE) {
        sj_index_places(all, sums, starts, voxels, codes);
        with.sums = sums, with.starts = starts, with.voxels = voxels, with.block_codes = codes;
        status = find_by_bounds(&with, targets, squares);
    }
    free(sums);
    free(starts);
    free(voxels);
    return status;
}

int sj_find_far(surface *all, double *squares)
{
    sj_list targets = all->targets;
    if (!all->sums && !sj_are_ordered(&all->places))
        return SJ_BAD_DATA;
    if (!all->sums)
        sj_divide(all, SJ_MORE_BITS);
    all->distances = malloc((size_t)all->cells * sizeof *all->distances);
    int32_t *firsts = malloc((size_t)(targets.depth * targets.height + 1) * sizeof *firsts);
    int status = !firsts || !all->distances ? SJ_NO_MEMORY : sj_find_rows(&targets, firsts) ? sj_measure_blocks(all) : SJ_BAD_DATA;
    sj_blocks *blocks = status == SJ_FINE ? sj_make_blocks(&targets, all->spacing) : NULL;
    if (status == SJ_FINE && !blocks)
        status = SJ_NO_MEMORY;
    if (status == SJ_FINE && all->sums)
        status = find_by_bounds(all, blocks, squares);
    else if (status == SJ_FINE) {
        status = all->places.count >= MANY_PLACES ? find_probable(all, blocks, squares) : SJ_FULL;
        if (status == SJ_FULL)
            status = find_by_index(all, blocks, squares);
    }
    sj_free_blocks(blocks);
    free(firsts);
    free(all->distances);
    return status;
}

