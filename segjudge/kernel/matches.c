/* Detections: their order, which gets which instance, and the points of a category's curve. */
#include "kernel.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Keys are sorted by so many bits at a time. */
#define DIGIT 11
#define DIGITS 6

typedef struct {
    uint64_t key;
    int64_t index;
} entry;

/* Sort entries by their keys, equal ones as they are; `space` has as much room. Return which of the two has them. */
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
        if (most == count) /* all have the same digit */
            continue;
        for (int64_t i = 0; i < count; i++)
            space[starts[d][entries[i].key >> DIGIT * d & ((1 << DIGIT) - 1)]++] = entries[i];
        entry *sorted = space;
        space = entries, entries = sorted;
    }
    return entries;
}

/* Find the order by rising group, then by falling score, then as it is. */
SJ_EXPORT int sj_order(const double *score, const int64_t *group, int64_t count, int64_t *order)
{
    if (!score || !group || count < 0 || count > INT64_MAX / 64 || !order)
        return SJ_BAD_CALL;
    entry *entries = malloc((size_t)(2 * count + 1) * sizeof *entries), *sorted;
    if (!entries)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        double falling = 0.0 - score[i]; /* no zero is below another */
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

/* Kinds of instances: a bit for each range of areas in which it does not count, and these two. */
#define CROWD 0x10
#define UNMATCHABLE 0x20
#define MOST_AREAS 4

#define MOST_GROUPS 32
/* Ranges of areas times caps, and recalls: far more than any benchmark has. */
#define MOST_PAIRS 64
#define MOST_RECALLS (1 << 16)

/* Pairs of a detection and an instance, by detection, with their IoU. */
typedef struct {
    const int64_t *sent, *real;
    const double *iou;
    int64_t count;
} overlapping;

/* Return the pair of the instance that a detection gets: the last of the best, of those that count first; or -1.
 *
 * `bit` stands for the range of areas and the threshold, `area` for the range.
 */
static int64_t best_of(
    const overlapping *all, int64_t first, int64_t stop, const uint8_t *kinds, const uint64_t *taken, uint64_t bit,
    int area, double reached)
{
    int64_t best = -1;
    for (int ignored = 0; ignored < 2 && best < 0; ignored++)
        for (int64_t i = first; i < stop; i++) {
            uint8_t kind = kinds[all->real[i]];
            if ((kind >> area & 1) != ignored || (taken[all->real[i]] & bit && !(kind & CROWD)))
                continue;
            if (all->iou[i] >= reached)
                best = i, reached = all->iou[i];
        }
    return best;
}

/* Match detections, in order, each with the best instance left.
 *
 * A word for each detection has a bit for each range of areas and threshold: in `matched` those where it got an
 * instance; in `ignored`, where those are set in which its own area does not count, the bits of its matches change to
 * whether the instance does not.
 */
SJ_EXPORT int sj_match(
    const int64_t *pair_sent, const int64_t *pair_real, const double *iou, int64_t pairs, const uint8_t *kinds,
    int64_t real, const double *reached, int32_t thresholds, int32_t areas, int64_t sent, uint64_t *matched,
    uint64_t *ignored)
{
    overlapping all = {pair_sent, pair_real, iou, pairs};
    if (!pair_sent || !pair_real || !iou || pairs < 0 || !kinds || real < 0 || !reached || thresholds < 1 || areas < 1
        || areas > MOST_AREAS || thresholds > 64 / areas || sent < 0 || !matched || !ignored)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < pairs; i++)
        if (pair_sent[i] < (i ? pair_sent[i - 1] : 0) || pair_sent[i] >= sent || pair_real[i] < 0 || pair_real[i] >= real)
            return SJ_BAD_CALL;
    uint64_t *taken = calloc((size_t)real + 1, sizeof *taken);
    if (!taken)
        return SJ_NO_MEMORY;
    for (int64_t first = 0, stop; first < pairs; first = stop) {
        int64_t detection = pair_sent[first];
        for (stop = first; stop < pairs && pair_sent[stop] == detection;)
            stop++;
        for (int area = 0; area < areas; area++)
            for (int t = 0; t < thresholds; t++) {
                uint64_t bit = (uint64_t)1 << (area * thresholds + t);
                int64_t best = best_of(&all, first, stop, kinds, taken, bit, area, reached[t]);
                if (best < 0)
                    continue;
                uint8_t kind = kinds[pair_real[best]];
                taken[pair_real[best]] |= bit;
                if (!(kind & UNMATCHABLE))
                    matched[detection] |= bit;
                if (kind >> area & 1)
                    ignored[detection] |= bit;
                else if (!(kind & UNMATCHABLE))
                    ignored[detection] &= ~bit;
            }
    }
    free(taken);
    return SJ_FINE;
}

/* The detections of a category by falling score, bits as of `sj_match`, and the group of each. */
typedef struct {
    const uint64_t *right, *counted;
    const uint32_t *rank;
    const uint8_t *group;
    int64_t count;
} ranked;

/* Tables of the curves of a range of areas and a cap, one for each threshold: a row for each number of right detections,
 * a column for each group that is left out. */
typedef struct {
    double *first;
    int64_t size, groups, thresholds;
    int64_t rows[64]; /* of each that are used */
    int64_t *places; /* which detection each row is of, where scores are read */
} tables;

/* Fill in how many detections count up to the one that is right there; infinities where a column ends before others.
 *
 * `right` says how many are right for each threshold and group.
 */
static void count_up(tables *to, const ranked *all, int64_t shift, int64_t cap, int64_t *right)
{
    const uint64_t every = ~(uint64_t)0 >> (64 - to->thresholds);
    int64_t seen = 0, seen_in[MOST_GROUPS] = {0}, less[64] = {0}, less_in[64][MOST_GROUPS] = {{0}};
    int64_t right_in[64][MOST_GROUPS] = {{0}};
    memset(to->rows, 0, sizeof to->rows);
    for (int64_t i = 0; i < all->count; i++) {
        uint64_t out = ~all->counted[i] >> shift & every, in = all->right[i] >> shift & every & ~out;
        const uint8_t own = all->group[i];
        if (out == every || all->rank[i] >= cap)
            continue;
        seen++, seen_in[own]++;
        for (; out; out &= out - 1) {
            int t = __builtin_ctzll(out);
            less[t]++, less_in[t][own]++;
        }
        for (; in; in &= in - 1) {
            int t = __builtin_ctzll(in);
            double *table = to->first + t * to->size;
            if (to->places)
                to->places[t * to->size + to->rows[t]] = i;
            for (int64_t g = 0; to->size && g < to->groups; g++)
                if (g != own)
                    table[(to->rows[t] - right_in[t][g]) * to->groups + g] =
                        (double)(seen - less[t] - (seen_in[g] - less_in[t][g]));
            to->rows[t]++, right_in[t][own]++;
        }
    }
    for (int t = 0; t < to->thresholds; t++)
        for (int64_t g = 0; g < to->groups; g++) {
            int64_t row = *right++ = to->rows[t] - right_in[t][g];
            for (; to->size && row < to->rows[t]; row++)
                to->first[t * to->size + row * to->groups + g] = INFINITY;
        }
}

/* Turn what counts into the highest precision from each row on. */
static void rise(double *table, int64_t rows, int64_t groups)
{
    double best[MOST_GROUPS] = {0};
    for (int64_t row = rows - 1; row >= 0; row--)
        for (int64_t g = 0; g < groups; g++) {
            double precision = (double)(row + 1) / (table[row * groups + g] + DBL_EPSILON);
            best[g] = precision > best[g] ? precision : best[g];
            table[row * groups + g] = best[g];
        }
}

/* Find a category's curves without each group of its detections in turn; a group that none has leaves all of them.
 *
 * A curve is of a range of areas, whose bits begin at a shift, and of a cap.  `needed` says for each such pair and each
 * group, rising, how many right detections reach each recall.  For each pair, group, threshold and recall `precision` is
 * the highest from there on, 0 where the recall is never reached; `right` says for each pair, threshold and group how many
 * were right in all.  A precision is one division, which rounds alike everywhere.
 *
 * Where nobody is left out, `reached` may get the score of the detection that reaches each recall, 0 where none does, for
 * each pair, threshold and recall.
 */
SJ_EXPORT int sj_curves(
    const uint64_t *right_bits, const uint64_t *counted_bits, const uint32_t *rank, const uint8_t *group, int64_t count,
    const int64_t *shifts, const int64_t *caps, int64_t pairs, int64_t thresholds, int64_t groups,
    const int64_t *needed, int64_t recalls, double *precision, int64_t *right, const double *score, double *reached)
{
    ranked all = {right_bits, counted_bits, rank, group, count};
    if (!right_bits || !counted_bits || !rank || !group || count < 0 || count > INT32_MAX || !shifts || !caps || pairs < 0
        || pairs > MOST_PAIRS || thresholds < 1 || thresholds > 64 || groups < 1 || groups > MOST_GROUPS || !needed
        || recalls < 0 || recalls > MOST_RECALLS || !precision || !right || (reached && (!score || groups != 1)))
        return SJ_BAD_CALL;
    int64_t rows = 1;
    for (int64_t i = 0; i < count; i++) {
        rows += right_bits[i] != 0;
        if (group[i] >= MOST_GROUPS)
            return SJ_BAD_CALL;
    }
    for (int64_t p = 0; p < pairs; p++)
        if (shifts[p] < 0 || shifts[p] > 64 - thresholds)
            return SJ_BAD_CALL;
    for (int64_t i = 0; i < pairs * groups * recalls; i++)
        if (needed[i] < 1)
            return SJ_BAD_CALL;
    tables all_tables = {NULL, recalls ? rows * groups : 0, groups, thresholds, {0}, NULL};
    if (recalls && !(all_tables.first = malloc((size_t)(all_tables.size * thresholds) * sizeof *all_tables.first)))
        return SJ_NO_MEMORY;
    if (recalls && reached
        && !(all_tables.places = malloc((size_t)(all_tables.size * thresholds) * sizeof *all_tables.places))) {
        free(all_tables.first);
        return SJ_NO_MEMORY;
    }
    for (int64_t p = 0; p < pairs; p++) {
        count_up(&all_tables, &all, shifts[p], caps[p], right + p * thresholds * groups);
        for (int64_t t = 0; recalls && t < thresholds; t++) {
            double *table = all_tables.first + t * all_tables.size;
            rows = all_tables.rows[t];
            rise(table, rows, groups);
            for (int64_t g = 0; g < groups; g++) {
                double *points = precision + ((p * groups + g) * thresholds + t) * recalls;
                const int64_t *least = needed + (p * groups + g) * recalls;
                for (int64_t k = 0; k < recalls; k++)
                    points[k] = least[k] > rows ? 0 : table[(least[k] - 1) * groups + g];
                if (!reached)
                    continue;
                const int64_t *places = all_tables.places + t * all_tables.size;
                for (int64_t k = 0; k < recalls; k++)
                    reached[(p * thresholds + t) * recalls + k] = least[k] > rows ? 0 : score[places[least[k] - 1]];
            }
        }
    }
    free(all_tables.first);
    free(all_tables.places);
    return SJ_FINE;
}
