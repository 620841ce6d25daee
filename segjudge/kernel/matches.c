/* Detections -> their order, overlaps of boxes and similarities of keypoints, assignments to instances, and points of a
 * category's curve. */
#include "kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The number of bits by which keys are sorted at a time. */
#define DIGIT 11
#define DIGITS 6

typedef struct {
    uint64_t key;
    int64_t index;
} entry;

/* Sort entries by their keys, stably; `space` has the same size. Return the array with the result. */
static entry *sort(entry *entries, entry *space, int64_t count)
{
    int64_t starts[DIGITS][1 << DIGIT] = {{0}};
    for (int64_t i = 0; i < count; i++)
        for (int d = 0; d < DIGITS; d++)
            starts[d][entries[i].key >> DIGIT * d & ((1 << DIGIT) - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t total = 0, most = 0;
        for (int value = 0; value < 1 << DIGIT; value++) {
            int64_t size = starts[d][value];
            most = size > most ? size : most;
            starts[d][value] = total, total += size;
        }
        if (most == count) /* all keys have the same digit */
            continue;
        for (int64_t i = 0; i < count; i++)
            space[starts[d][entries[i].key >> DIGIT * d & ((1 << DIGIT) - 1)]++] = entries[i];
        entry *sorted = space;
        space = entries, entries = sorted;
    }
    return entries;
}

/* Find the order by rising group, then falling score, then position. */
SJ_EXPORT int sj_order(const double *score, const int64_t *group, int64_t count, int64_t *order)
{
    if (!score || !group || count < 0 || count > INT64_MAX / 64 || !order)
        return SJ_BAD_CALL;
    entry *entries = malloc((size_t)(2 * count + 1) * sizeof *entries), *sorted;
    if (!entries)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        double falling = 0.0 - score[i]; /* -0 and 0 are equal */
        uint64_t bits;
        memcpy(&bits, &falling, sizeof bits);
        entries[i] = (entry){bits >> 63 ? ~bits : bits | (uint64_t)1 << 63, i};
    }
    sorted = sort(entries, entries + count, count);
    for (int64_t i = 0; i < count; i++)
        sorted[i].key = (uint64_t)group[sorted[i].index] ^ (uint64_t)1 << 63;
    sorted = sort(sorted, sorted == entries ? entries + count : entries, count);
    for (int64_t i = 0; i < count; i++)
        order[i] = sorted[i].index;
    free(entries);
    return SJ_FINE;
}

/* Return the lesser and the greater of two numbers; NaN stays NaN. */
static inline double lesser(double one, double two)
{
    return one < two || one != one ? one : two;
}

static inline double greater(double one, double two)
{
    return one > two || one != one ? one : two;
}

/* Kinds of instances: a bit for each range of areas in which an instance is ignored, and these two. */
#define CROWD 0x10
#define UNMATCHABLE 0x20
#define MOST_AREAS 4

#define MOST_GROUPS 32
/* The maximum of ranges of areas times caps, and of recalls, above those of any benchmark. */
#define MOST_PAIRS 64
#define MOST_RECALLS (1 << 16)

/* Pair the detections of each group with its instances if the ratio of their extents lets the IoU reach a bound, or
 * if the instance is a crowd. A group's detections begin at `starts`; its pairs end at the next of `ends`. */
SJ_EXPORT int sj_similar_pairs(
    const int64_t *starts, const int64_t *low, const int64_t *high, int64_t groups, const double *sent, int64_t sent_count,
    const double *real, const uint8_t *crowd, int64_t real_count, const double *bounds, int64_t room, int64_t *pair_sent,
    int64_t *pair_real, int64_t *ends)
{
    if (!starts || !low || !high || groups < 0 || !sent || sent_count < 0 || !real || !crowd || real_count < 0 || !bounds
        || room < 0 || !pair_sent || !pair_real || !ends)
        return SJ_BAD_CALL;
    const double least = bounds[0], slack = bounds[1];
    int64_t used = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (starts[g] < 0 || starts[g + 1] < starts[g] || starts[g + 1] > sent_count || low[g] < 0 || high[g] < low[g]
            || high[g] > real_count)
            return SJ_BAD_CALL;
        for (int64_t i = starts[g]; i < starts[g + 1]; i++) {
            if (room - used < high[g] - low[g])
                return SJ_FULL;
            for (int64_t j = low[g]; j < high[g]; j++) {
                pair_sent[used] = i, pair_real[used] = j;
                used += (lesser(sent[i], real[j]) + slack >= least * greater(sent[i], real[j])) | (crowd[j] != 0);
            }
        }
        ends[g] = used;
    }
    return SJ_FINE;
}

/* Find the IoU of pairs of boxes (left, top, width, height), 0 for disjoint ones; for a crowd, the share of the
 * detection inside it. Each step rounds as in numpy. */
SJ_EXPORT int sj_box_overlaps(
    const int64_t *pair_sent, const int64_t *pair_real, int64_t pairs, const double *sent, int64_t sent_count,
    const double *real, int64_t real_count, const uint8_t *crowd, double *iou)
{
    if (!pair_sent || !pair_real || pairs < 0 || !sent || sent_count < 0 || !real || real_count < 0 || !crowd || !iou)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < pairs; i++) {
        if (pair_sent[i] < 0 || pair_sent[i] >= sent_count || pair_real[i] < 0 || pair_real[i] >= real_count)
            return SJ_BAD_CALL;
        const double *one = sent + 4 * pair_sent[i], *two = real + 4 * pair_real[i];
        double sides[2];
        for (int axis = 0; axis < 2; axis++) {
            double end = lesser(one[2 + axis] + one[axis], two[2 + axis] + two[axis]);
            sides[axis] = end - greater(one[axis], two[axis]);
        }
        iou[i] = 0;
        if (!(sides[0] > 0 && sides[1] > 0))
            continue;
        double shared = sides[0] * sides[1], area = one[2] * one[3];
        iou[i] = shared / (crowd[pair_real[i]] ? area : area + two[2] * two[3] - shared);
    }
    return SJ_FINE;
}

/* The thresholds and ranges of areas as bits of words. */
typedef struct {
    const double *reached;
    int32_t thresholds, areas;
} levels;

/* Return the bits of the thresholds that an IoU reaches, in the first range. */
static uint64_t bits_reached(const levels *all, double iou)
{
    uint64_t bits = 0;
    for (int32_t t = 0; t < all->thresholds; t++)
        bits |= (uint64_t)(iou >= all->reached[t]) << t;
    return bits;
}

/* Return these bits repeated in each range of areas of a kind. */
static uint64_t bits_of_areas(const levels *all, uint64_t bits, unsigned kind)
{
    uint64_t repeated = 0;
    for (int32_t area = 0; area < all->areas; area++)
        if (kind >> area & 1)
            repeated |= bits << area * all->thresholds;
    return repeated;
}

/* Sort the pairs of a detection that reach a threshold, best first, later ones first in ties; return their number.
 *
 * Few pairs reach a threshold, so insertion sort is fast enough. */
static int64_t order_pairs(const levels *all, const double *iou, int64_t first, int64_t count, int64_t *order)
{
    int64_t reaching = 0;
    for (int64_t i = first; i < first + count; i++) {
        if (!bits_reached(all, iou[i]))
            continue;
        int64_t place = reaching++;
        for (; place > 0 && !(iou[order[place - 1]] > iou[i]); place--)
            order[place] = order[place - 1];
        order[place] = i;
    }
    return reaching;
}

/* Match detections in order, each with the best free instance, counted instances first.
 *
 * Each detection has a word with a bit for each range of areas and threshold. `matched` has the bits where it got an
 * instance. `ignored` initially has the bits where its own area does not count; a match sets its bits to whether the
 * instance is ignored. */
SJ_EXPORT int sj_match(
    const int64_t *pair_sent, const int64_t *pair_real, const double *iou, int64_t pairs, const uint8_t *kinds,
    int64_t real, const double *reached, int32_t thresholds, int32_t areas, int64_t sent, uint64_t *matched,
    uint64_t *ignored)
{
    const levels all = {reached, thresholds, areas};
    if (!pair_sent || !pair_real || !iou || pairs < 0 || !kinds || real < 0 || !reached || thresholds < 1 || areas < 1
        || areas > MOST_AREAS || thresholds > 64 / areas || sent < 0 || !matched || !ignored)
        return SJ_BAD_CALL;
    int64_t most = 0, start = 0;
    for (int64_t i = 0; i < pairs; i++) {
        if (pair_sent[i] < (i ? pair_sent[i - 1] : 0) || pair_sent[i] >= sent || pair_real[i] < 0 || pair_real[i] >= real)
            return SJ_BAD_CALL;
        start = pair_sent[i] == pair_sent[start] ? start : i;
        most = i - start + 1 > most ? i - start + 1 : most;
    }
    uint64_t *taken = calloc((size_t)real + 1, sizeof *taken);
    int64_t *order = malloc((size_t)(most + 1) * sizeof *order);
    if (!taken || !order) {
        free(taken), free(order);
        return SJ_NO_MEMORY;
    }
    for (int64_t first = 0, count; first < pairs; first += count) {
        int64_t detection = pair_sent[first];
        uint64_t left = ~(uint64_t)0;
        for (count = 1; first + count < pairs && pair_sent[first + count] == detection;)
            count++;
        int64_t reaching = order_pairs(&all, iou, first, count, order);
        for (int skipped = 0; skipped < 2; skipped++)
            for (int64_t i = 0; i < reaching; i++) {
                int64_t instance = pair_real[order[i]];
                unsigned kind = kinds[instance];
                uint64_t own = bits_of_areas(&all, bits_reached(&all, iou[order[i]]), skipped ? kind : ~kind) & left;
                if (!(kind & CROWD))
                    own &= ~taken[instance];
                left &= ~own, taken[instance] |= own;
                if (!(kind & UNMATCHABLE))
                    matched[detection] |= own;
                if (skipped)
                    ignored[detection] |= own;
                else if (!(kind & UNMATCHABLE))
                    ignored[detection] &= ~own;
            }
    }
    free(taken), free(order);
    return SJ_FINE;
}

/* The detections of all categories, each category by falling score: bits as from `sj_match`, ranks, and groups. */
typedef struct {
    const uint64_t *right, *counted;
    const uint32_t *rank;
    const uint8_t *group;
} ranked;

/* The curves of a category, a range of areas and a cap, one for each threshold and omitted group. Detections are
 * counted up to the last one, then down again. */
typedef struct {
    int64_t thresholds, groups, room;
    /* Whole numbers stored as doubles, so that two fit a register. */
    double seen, seen_in[MOST_GROUPS], less[64], less_in[64][MOST_GROUPS];
    double best[64][MOST_GROUPS];
    int32_t right[64][MOST_GROUPS], left[64][MOST_GROUPS]; /* for each omitted group: all detections, and those not
                                                            * yet visited */
    double *table; /* by threshold, group and number of correct ones: the maximum precision from there on */
    int64_t *places; /* by threshold and number of correct ones: the last of these detections, for reading scores */
} curves;

/* List the detections of a category that count at a threshold of a range of areas; return their number. */
static int64_t choose(const curves *of, const ranked *all, int64_t begin, int64_t end, int64_t shift, int32_t *chosen)
{
    const uint64_t every = ~(uint64_t)0 >> (64 - of->thresholds);
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++) {
        chosen[count] = (int32_t)i;
        count += (all->counted[i] >> shift & every) != 0;
    }
    return count;
}

/* Count the counted ones of these detections, and the correct ones. */
static void count_up(curves *to, const ranked *all, const int32_t *chosen, int64_t count, int64_t shift, int64_t cap)
{
    const uint64_t every = ~(uint64_t)0 >> (64 - to->thresholds);
    int32_t right[64] = {0}, right_in[64][MOST_GROUPS];
    to->seen = 0;
    memset(to->seen_in, 0, sizeof to->seen_in), memset(to->less, 0, sizeof to->less);
    memset(to->less_in, 0, (size_t)to->thresholds * sizeof *to->less_in);
    memset(right_in, 0, (size_t)to->thresholds * sizeof *right_in);
    for (int64_t k = 0; k < count; k++) {
        const int32_t i = chosen[k];
        uint64_t out = ~all->counted[i] >> shift & every, in = all->right[i] >> shift & every & ~out;
        const uint8_t own = all->group[i];
        if (all->rank[i] >= cap)
            continue;
        to->seen++, to->seen_in[own]++;
        for (; out; out &= out - 1) {
            int t = __builtin_ctzll(out);
            to->less[t]++, to->less_in[t][own]++;
        }
        for (; in; in &= in - 1) {
            int t = __builtin_ctzll(in);
            right[t]++, right_in[t][own]++;
        }
    }
    for (int t = 0; t < to->thresholds; t++)
        for (int64_t g = 0; g < to->groups; g++)
            to->right[t][g] = to->left[t][g] = right[t] - right_in[t][g];
}

/* Enter the precision at a correct detection of a group, or the best after it; the curve without that group skips
 * it. */
static inline void enter(curves *to, int t, uint8_t own)
{
    const int64_t groups = to->groups;
    double remaining = to->seen - to->less[t], *best = to->best[t], *table = to->table + t * groups * to->room;
    const double kept = best[own], *less_in = to->less_in[t];
    int32_t *left = to->left[t];
    if (groups == 1 && own) { /* nothing is omitted: the same steps without loops */
        double precision = left[0] / (remaining - (to->seen_in[0] - less_in[0]) + DBL_EPSILON);
        best[0] = precision > best[0] ? precision : best[0];
        table[left[0]--] = best[0];
        return;
    }
    for (int64_t g = 0; g < groups; g++) {
        double precision = left[g] / (remaining - (to->seen_in[g] - less_in[g]) + DBL_EPSILON);
        best[g] = precision > best[g] ? precision : best[g];
    }
    best[own] = kept;
    for (int64_t g = 0; g < groups; g++)
        table[g * to->room + left[g]] = best[g];
    for (int64_t g = 0; g < groups; g++)
        left[g]--;
    left[own] += own < groups;
}

/* Walk from the last detection to the first and fill the tables, after `count_up`. */
static void walk_back(curves *to, const ranked *all, const int32_t *chosen, int64_t count, int64_t shift, int64_t cap)
{
    const uint64_t every = ~(uint64_t)0 >> (64 - to->thresholds);
    memset(to->best, 0, sizeof to->best);
    for (int64_t k = count - 1; k >= 0; k--) {
        const int32_t i = chosen[k];
        uint64_t out = ~all->counted[i] >> shift & every, in = all->right[i] >> shift & every & ~out;
        const uint8_t own = all->group[i];
        if (all->rank[i] >= cap)
            continue;
        for (; in; in &= in - 1) {
            int t = __builtin_ctzll(in);
            if (to->places)
                to->places[t * to->room + to->left[t][0]] = i;
            enter(to, t, own);
        }
        for (; out; out &= out - 1) {
            int t = __builtin_ctzll(out);
            to->less[t]--, to->less_in[t][own]--;
        }
        to->seen--, to->seen_in[own]--;
    }
}

/* Add numbers as numpy does: eight interleaved sums; long arrays are halved first. */
static double add(const double *numbers, int64_t count)
{
    double sums[8], total = 0;
    if (count > 128) {
        int64_t half = count / 2 - count / 2 % 8;
        return add(numbers, half) + add(numbers + half, count - half);
    }
    int64_t i = 0;
    if (count >= 8) {
        memcpy(sums, numbers, sizeof sums);
        for (i = 8; i + 8 <= count; i += 8)
            for (int j = 0; j < 8; j++)
                sums[j] += numbers[i + j];
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    }
    for (; i < count; i++)
        total += numbers[i];
    return total;
}

/* The input and output positions of a category's curves. */
typedef struct {
    const int64_t *counts, *which, *needed; /* by group: the number of instances, and the row of numbers that recalls
                                             * need */
    int64_t recalls;
    int averaged;
    const double *score;
    double *precision, *recall, *reached, *points;
} places;

/* Read the curves of all thresholds and groups; groups without instances keep their values. */
static void read_curves(const curves *of, const places *to)
{
    for (int64_t t = 0; t < of->thresholds; t++)
        for (int64_t g = 0; g < of->groups; g++) {
            if (to->counts[g] <= 0)
                continue;
            const int64_t cell = g * of->thresholds + t, *least = to->needed + to->which[g] * to->recalls;
            const int64_t right = of->right[t][g], *at = of->places ? of->places + t * of->room : NULL;
            const double *table = of->table + (t * of->groups + g) * of->room;
            double *points = to->averaged ? to->points : to->precision + cell * to->recalls;
            int64_t k = 0;
            to->recall[cell] = (double)right / (double)to->counts[g];
            for (; k < to->recalls && least[k] <= right; k++)
                points[k] = table[least[k]];
            memset(points + k, 0, (size_t)(to->recalls - k) * sizeof *points);
            if (to->averaged && to->recalls)
                to->precision[cell] = add(points, to->recalls) / (double)to->recalls;
            for (k = 0; at && k < to->recalls; k++)
                to->reached[cell * to->recalls + k] = least[k] <= right ? to->score[at[least[k]]] : 0;
        }
}

/* Return whether rows of numbers rise from 1. */
static int all_rise(const int64_t *numbers, int64_t lines, int64_t length)
{
    for (int64_t line = 0; line < lines; line++)
        for (int64_t k = 0, before = 1; k < length; before = numbers[line * length + k++])
            if (numbers[line * length + k] < before)
                return 0;
    return 1;
}

/* Draw the curves of some categories, omitting each group of their detections in turn; a group without detections omits
 * nothing.
 *
 * `limits` has for each curve a range of areas, a cap and the row of the results. `counts` has for each category, range
 * of areas and group the number of instances without the group; `which` has the row of `needed`, whose rising numbers
 * are the correct detections that each recall requires. Results are by row, category, group and threshold: `recall`,
 * and `precision`, which is the maximum from each recall on, or 0 if it is never reached; or, averaged, the mean over
 * recalls. Without instances, results keep their values. A precision is one division, which rounds equally everywhere.
 *
 * If no group is omitted, `reached` may get the score of the detection that reaches each recall, or 0. */
SJ_EXPORT int sj_curves(
    const uint64_t *right_bits, const uint64_t *counted_bits, const uint32_t *rank, const uint8_t *group, int64_t count,
    const int64_t *bounds, int64_t categories, int64_t begin, int64_t stop, const int64_t *limits, int64_t pairs,
    int64_t rows, int64_t areas, int64_t thresholds, int64_t groups, const int64_t *counts, const int64_t *which,
    const int64_t *needed, int64_t lines, int64_t recalls, int32_t averaged, double *precision, double *recall,
    const double *score, double *reached)
{
    ranked all = {right_bits, counted_bits, rank, group};
    if (!right_bits || !counted_bits || !rank || !group || count < 0 || count > INT32_MAX || !bounds || begin < 0
        || stop < begin || categories < stop || categories > INT32_MAX || !limits || pairs < 0 || pairs > MOST_PAIRS
        || areas < 1 || areas > 64 || thresholds < 1 || thresholds > 64 / areas || groups < 1 || groups > MOST_GROUPS
        || !counts || !which || !needed || lines < 0 || recalls < 0 || recalls > MOST_RECALLS || !precision || !recall
        || (reached && (!score || groups != 1 || averaged)) || !all_rise(needed, lines, recalls))
        return SJ_BAD_CALL;
    for (int64_t p = 0; p < pairs; p++)
        if (limits[3 * p] < 0 || limits[3 * p] >= areas || limits[3 * p + 2] < 0 || limits[3 * p + 2] >= rows)
            return SJ_BAD_CALL;
    for (int64_t i = begin * areas * groups; i < stop * areas * groups; i++)
        if (counts[i] > 0 && (which[i] < 0 || which[i] >= lines))
            return SJ_BAD_CALL;
    int64_t most = 0, longest = 0;
    for (int64_t c = begin; c < stop; c++) {
        int64_t right = 0;
        if (bounds[c] < 0 || bounds[c + 1] < bounds[c] || bounds[c + 1] > count)
            return SJ_BAD_CALL;
        for (int64_t i = bounds[c]; i < bounds[c + 1]; i++) {
            right += right_bits[i] != 0;
            if (group[i] >= MOST_GROUPS)
                return SJ_BAD_CALL;
        }
        most = right > most ? right : most;
        longest = bounds[c + 1] - bounds[c] > longest ? bounds[c + 1] - bounds[c] : longest;
    }
    curves *drawn = calloc(1, sizeof *drawn);
    if (!drawn)
        return SJ_NO_MEMORY;
    *drawn = (curves){.thresholds = thresholds, .groups = groups, .room = recalls ? most + 1 : 0};
    size_t room = (size_t)(drawn->room * thresholds);
    drawn->table = malloc((room * (size_t)groups + 1) * sizeof *drawn->table);
    drawn->places = reached ? malloc((room + 1) * sizeof *drawn->places) : NULL;
    double *points = malloc((size_t)(recalls + 1) * sizeof *points);
    int32_t *chosen = malloc((size_t)(longest + 1) * sizeof *chosen);
    int64_t chosen_line = -1, chosen_count = 0;
    int status = drawn->table && points && chosen && (drawn->places || !reached) ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t at = begin * pairs; status == SJ_FINE && at < stop * pairs; at++) {
        const int64_t c = at / pairs, *limit = limits + 3 * (at % pairs), shift = limit[0] * thresholds;
        const int64_t line = (c * areas + limit[0]) * groups, cell = (limit[2] * categories + c) * groups * thresholds;
        int64_t any = 0;
        for (int64_t g = 0; g < groups; g++)
            any |= counts[line + g] > 0;
        if (!any)
            continue;
        if (line != chosen_line) /* caps of the same range share them */
            chosen_count = choose(drawn, &all, bounds[c], bounds[c + 1], shift, chosen);
        chosen_line = line;
        count_up(drawn, &all, chosen, chosen_count, shift, limit[1]);
        if (recalls)
            walk_back(drawn, &all, chosen, chosen_count, shift, limit[1]);
        places to = {counts + line, which + line, needed, recalls, averaged, score, NULL, recall + cell, NULL, points};
        to.precision = precision + (averaged ? cell : cell * recalls);
        to.reached = reached ? reached + cell * recalls : NULL;
        read_curves(drawn, &to);
    }
    free(drawn->table), free(drawn->places), free(drawn), free(points), free(chosen);
    return status;
}

/* e^x = 2^n e^r: ln 2 in two parts; products of the first part with whole numbers are exact. */
#define PER_LN2 0x1.71547652b82fep+0
#define LN2 0x1.62e42fee00000p-1
#define LN2_TAIL 0x1.a39ef35793c76p-33
/* Adding and subtracting this number rounds a double to a whole number. */
#define WHOLE 0x1.8p+52
/* The series of e^r, from r^13 to r^2. */
static const double series_of[] = {1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0,
                                   1 / 40320.0,      1 / 5040.0,      1 / 720.0,      1 / 120.0,     1 / 24.0,
                                   1 / 6.0,          1 / 2.0};
#define TERMS ((int)(sizeof series_of / sizeof *series_of))
/* The range of arguments: below the first, exponentials are 0; above the second, they are rejected. */
#define LEAST_EXPONENT -800.0
#define GREATEST_EXPONENT 700.0
/* The maximum number of points, above that of any annotation. */
#define MOST_POINTS (1 << 16)
/* The lowest threshold: smaller similarities are not needed. */
#define LEAST_SIMILARITY 0.5
/* A point is far if its exponent is below minus half of the first number; its exponential is below the second. */
#define FAR_SQUARES 6.0
#define OF_FAR_POINT 0.05
/* A bound of all rounding errors. */
#define ROUNDING 1e-6

/* Return two to this power, which must give a normal number. */
static inline double power_of_two(int64_t power)
{
    uint64_t bits = (uint64_t)(1023 + power) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Replace numbers by their exponentials, by the steps of `values.arithmetic.exp`. */
static void exponentiate(double *numbers, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        double number = numbers[i] > LEAST_EXPONENT ? numbers[i] : LEAST_EXPONENT;
        double whole = number * PER_LN2 + WHOLE - WHOLE;
        double high = number - whole * LN2, low = whole * LN2_TAIL, rest = high - low, series = rest * series_of[0];
        for (int term = 1; term < TERMS; term++)
            series = (series + series_of[term]) * rest;
        series = series * rest + ((high - rest) - low);
        double growth = rest + series, rounding = (rest - growth) + series, result = 1.0 + growth;
        result += rounding + ((1.0 - result) + growth);
        int32_t power = (int32_t)whole, half = power / 2;
        numbers[i] = result * power_of_two(half) * power_of_two(power - half);
    }
}

/* The keypoints of a detection and of an annotation, and the scales of their distances. */
typedef struct {
    const double *sent, *real, *sigmas, *box;
    const uint8_t *marked;
    double area;
    int64_t points;
} two_sets;

/* Return the distance of a coordinate from the box's side, doubled at both ends; 0 inside. */
static double outside(double at, double corner, double side)
{
    double below = corner - side - at, above = at - (corner + side * 2);
    return (below > 0 ? below : 0) + (above > 0 ? above : 0);
}

/* Write the exponents of the marked points, or of all if none is marked; return their number, 0 if their similarity is
 * less than the least, or -1 if one is unusual.  There is room for twice as many. */
static int64_t find_exponents(const two_sets *both, double *exponents)
{
    int64_t count = 0, any = 0, near = 0;
    double *squares = exponents + both->points, area = both->area + DBL_EPSILON;
    for (int64_t k = 0; k < both->points; k++)
        any |= both->marked[k];
    for (int64_t k = 0; k < both->points; k++) {
        if (any && !both->marked[k])
            continue;
        const double *at = both->sent + 2 * k;
        double across = any ? at[0] - both->real[2 * k] : outside(at[0], both->box[0], both->box[2]);
        double down = any ? at[1] - both->real[2 * k + 1] : outside(at[1], both->box[1], both->box[3]);
        double width = both->sigmas[k] * 2;
        squares[count] = across * across + down * down, exponents[count] = width * width;
        near += !(squares[count] > FAR_SQUARES * exponents[count] * area);
        count++;
    }
    if (area > 0 && (double)near + OF_FAR_POINT * (double)(count - near) < (LEAST_SIMILARITY - ROUNDING) * (double)count)
        return 0;
    for (int64_t k = 0; k < count; k++) {
        exponents[k] = -(squares[k] / exponents[k] / area / 2);
        if (!(exponents[k] <= GREATEST_EXPONENT))
            return -1;
    }
    return count;
}

/* Find the similarity (OKS) of pairs of keypoints: the mean over the marked points, by the same steps as numpy; 0 if it is
 * less than the least.
 *
 * A detection has x and y of each point; an annotation also has marks, sigmas, its area and its box. Exponentials
 * that would be too large are bad data. */
SJ_EXPORT int sj_similarities(
    const int64_t *pair_sent, const int64_t *pair_real, int64_t pairs, const double *sent, int64_t sent_count,
    const double *real, const uint8_t *marked, const double *sigmas, const double *area, const double *boxes,
    int64_t real_count, int64_t points, double *oks)
{
    if (!pair_sent || !pair_real || pairs < 0 || !sent || sent_count < 0 || !real || !marked || !sigmas || !area || !boxes
        || real_count < 0 || points < 1 || points > MOST_POINTS || !oks)
        return SJ_BAD_CALL;
    double *exponents = malloc(2 * (size_t)points * sizeof *exponents);
    int status = exponents ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; status == SJ_FINE && i < pairs; i++) {
        int64_t one = pair_sent[i], two = pair_real[i];
        if (one < 0 || one >= sent_count || two < 0 || two >= real_count) {
            status = SJ_BAD_CALL;
            break;
        }
        two_sets both = {sent + 2 * points * one, real + 2 * points * two, sigmas + points * two, boxes + 4 * two,
                         marked + points * two,   area[two],               points};
        int64_t count = find_exponents(&both, exponents);
        if (count < 0) {
            status = SJ_BAD_DATA;
            break;
        }
        exponentiate(exponents, count);
        double mean = count ? add(exponents, count) / (double)count : 0;
        oks[i] = mean >= LEAST_SIMILARITY ? mean : 0;
    }
    free(exponents);
    return status;
}
