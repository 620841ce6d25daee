/* The surface of a mask and places of another one -> the distances to them within which two shares of its area lie.
 *
 * That needs the distances of few places: if most are only a few steps away, those between two squares that a sample
 * shows; otherwise the distances of blocks of voxels bound those of all. Bounds may round, because they are widened;
 * distances that decide are exact. */
#include "shares.h"
#include "windows.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* All places are measured if there are so many times as many targets as blocks. */
#define MANY 4
/* The counts of codes that are written side by side. */
#define LANES 4
#define BINS 4096
/* The number of places that are sorted. */
#define SORTED 4096
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

/* ── exact distances ── */

int sj_compare_squares(const void *one, const void *other)
{
    double first = ((const measured *)one)->square, second = ((const measured *)other)->square;
    return (first > second) - (first < second);
}

int64_t sj_narrow(measured *items, int64_t count, double low, double high, double *nearer)
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

int sj_find_squares(measured *items, int64_t count, double nearer, double low, double high, double *squares)
{
    if (nearer >= low)
        return SJ_FULL;
    count = sj_narrow(items, count, low, high, &nearer);
    int64_t alike = 1, item = 0;
    while (alike < count && items[alike].square == items[0].square)
        alike++;
    if (alike < count)
        qsort(items, (size_t)count, sizeof *items, sj_compare_squares);
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
        status = sj_find_squares(items, places->count + all->extra_count, 0, all->low, all->high, squares);
    free(answers);
    free(items);
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
    qsort(items, (size_t)count, sizeof *items, sj_compare_squares);
    *least = *greatest = windows->end;
    for (int64_t i = 0; i < count && sum < (share + TOLERANCE) * total; sum += items[i++].area) {
        *least = sum < (share - TOLERANCE) * total ? items[i].square : *least;
        *greatest = (1 + SJ_MARGIN) * items[i].square + LEAST_SQUARE;
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
    int64_t count = 0, counts[SJ_CODES] = {0}, last = -1, end = places->depth * places->height * places->width;
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
        for (int code = 0; code < SJ_CODES; code++)
            nearer += (double)counts[code] * all->areas[code];
        if (status == SJ_FINE)
            status = sj_find_squares(items, count, nearer, all->low, all->high, squares);
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
    for (int code = 0; code < SJ_CODES; code++)
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
    sj_divide(&all, SJ_BITS);
    if (all.cells != cells)
        return SJ_BAD_CALL;
    if (!sj_are_ordered(&all.places))
        return SJ_BAD_DATA;
    sj_index_places(&all, sums, starts, voxels, block_codes);
    return SJ_FINE;
}

/* Add the areas of all places; return whether they can be areas. */
static int add_areas(surface *all)
{
    int64_t counts[LANES][SJ_CODES] = {{0}}, i = 0, count = all->sums ? 0 : all->places.count;
    for (int64_t block = 0; all->sums && block < all->cells; block++)
        all->total += all->sums[block];
    for (; i + LANES <= count; i += LANES) /* so that no count waits for the one before it */
        for (int lane = 0; lane < LANES; lane++)
            counts[lane][all->codes[i + lane]]++;
    for (; i < count; i++)
        counts[0][all->codes[i]]++;
    for (int code = 0; code < SJ_CODES; code++)
        all->total += (double)(counts[0][code] + counts[1][code] + counts[2][code] + counts[3][code]) * all->areas[code];
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
        || !sums != !block_codes || !(shares[0] > 0 && shares[0] <= shares[1] && shares[1] <= 1 + SJ_MARGIN))
        return SJ_BAD_CALL;
    for (int axis = 0; axis < 3; axis++)
        if (!(spacing[axis] > LEAST_STEP && spacing[axis] < GREATEST_STEP))
            return SJ_FULL;
    sj_divide(&all, SJ_BITS);
    if (sums && cells != all.cells)
        return SJ_BAD_CALL;
    if (!add_areas(&all))
        return SJ_BAD_DATA;
    if (!(all.total > 0))
        return SJ_FULL;
    all.low = shares[0] * all.total, all.high = shares[1] * all.total;
    int status = find_near(&all, (shares[0] + shares[1]) / 2, squares);
    if (status == SJ_FULL)
        status = target_count > MANY * all.cells ? measure_all(&all, squares) : sj_find_far(&all, squares);
    return status;
}
