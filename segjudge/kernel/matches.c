/* Instance masks: which detection gets which instance, and the points of a category's curve. */
#include "kernel.h"

#include <stdlib.h>

/* Kinds of instances: a bit for each range of areas in which it does not count, and these two. */
#define CROWD 0x10
#define UNMATCHABLE 0x20
#define MOST_AREAS 4
#define MOST_GROUPS 32

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

/* The detections of a category by falling score; bits as of `sj_match`. */
typedef struct {
    const uint64_t *right, *counted;
    const uint32_t *rank;
    int64_t count;
} ranked;

/* Note for each detection that is right, and each threshold, how many were counted up to it; count those that are. */
static void count_up(const ranked *all, uint32_t cap, int shift, int thresholds, int64_t *counted, int64_t *right)
{
    const uint64_t every = thresholds == 64 ? ~(uint64_t)0 : ((uint64_t)1 << thresholds) - 1;
    int64_t seen = 0, less[64] = {0};
    for (int64_t i = 0; i < all->count; i++) {
        uint64_t out = ~all->counted[i] >> shift & every, in = all->right[i] >> shift & every;
        if (all->rank[i] >= cap || out == every)
            continue;
        seen++;
        for (int t = 0; out | in; t++, out >>= 1, in >>= 1) {
            less[t] += (int64_t)(out & 1);
            if (in & 1)
                counted[t * all->count + right[t]++] = seen - less[t];
        }
    }
}

/* Find the points of a category's precision, for one range of areas and one cap.
 *
 * `needed` says, rising, how many right detections reach each recall.  For each threshold and recall the highest
 * precision from there on is points[0] / points[1]: how many were right, of how many counted; zeros where the recall is
 * never reached.  `right` says for each threshold how many were right in all.
 */
SJ_EXPORT int sj_curve(
    const uint64_t *right_bits, const uint64_t *counted_bits, const uint32_t *rank, int64_t count, int64_t cap,
    int32_t shift, int32_t thresholds, const int64_t *needed, int64_t recalls, int64_t *points, int64_t *right)
{
    ranked all = {right_bits, counted_bits, rank, count};
    if (!right_bits || !counted_bits || !rank || count < 0 || count > INT64_MAX / 1024 || cap < 0 || cap > UINT32_MAX
        || shift < 0 || thresholds < 1 || thresholds > 64 - shift || !needed || recalls < 0 || !points || !right)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < recalls; i++)
        if (needed[i] < 1 || (i && needed[i] < needed[i - 1]))
            return SJ_BAD_CALL;
    int64_t *counted = malloc((size_t)(count * thresholds + 1) * sizeof *counted);
    if (!counted)
        return SJ_NO_MEMORY;
    for (int t = 0; t < thresholds; t++)
        right[t] = 0;
    count_up(&all, (uint32_t)cap, shift, thresholds, counted, right);
    for (int t = 0; t < thresholds; t++) {
        const int64_t *of = counted + t * count;
        int64_t at = right[t], best = 0, best_of_counted = 1, *point = points + 2 * t * recalls;
        for (int64_t k = recalls - 1; k >= 0; k--) {
            for (; at >= needed[k]; at--)
                if (at * best_of_counted > best * of[at - 1])
                    best = at, best_of_counted = of[at - 1];
            point[2 * k] = best;
            point[2 * k + 1] = best ? best_of_counted : 0;
        }
    }
    free(counted);
    return SJ_FINE;
}

/* Find a category's curves without each group of its detections in turn.
 *
 * `needed` says for each group, rising, how many right detections reach each recall without it.  Points are as those of
 * `sj_curve`, by group, threshold and recall; `right` says for each group and threshold how many were right in all.
 */
SJ_EXPORT int sj_curves_without(
    const uint64_t *right_bits, const uint64_t *counted_bits, const uint8_t *group, int64_t count, int32_t shift,
    int32_t thresholds, int32_t groups, const int64_t *needed, int64_t recalls, int64_t *points, int64_t *right)
{
    if (!right_bits || !counted_bits || !group || count < 0 || shift < 0 || thresholds < 1 || thresholds > 64 - shift
        || count > INT32_MAX || groups < 1 || groups > MOST_GROUPS || !needed || recalls < 0 || !points || !right)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++)
        if (group[i] >= groups)
            return SJ_BAD_CALL;
    for (int t = 0; t < thresholds; t++) {
        const uint64_t bit = (uint64_t)1 << (shift + t);
        int64_t seen = 0, found = 0, seen_in[MOST_GROUPS] = {0}, found_in[MOST_GROUPS] = {0}, next[MOST_GROUPS];
        int64_t best[MOST_GROUPS] = {0}, best_of[MOST_GROUPS] = {0};
        for (int64_t i = 0; i < count; i++) {
            int64_t in = (right_bits[i] & bit) != 0, of = (counted_bits[i] & bit) != 0;
            found += in, found_in[group[i]] += in, seen += of, seen_in[group[i]] += of;
        }
        for (int g = 0; g < groups; g++) {
            right[g * thresholds + t] = found - found_in[g];
            for (next[g] = recalls - 1; next[g] >= 0 && needed[g * recalls + next[g]] > found - found_in[g];)
                next[g]--;
        }
        for (int64_t i = count - 1; i >= 0; i--) {
            int64_t in = (right_bits[i] & bit) != 0, is_counted = (counted_bits[i] & bit) != 0;
            for (int g = 0; in && g < groups; g++) {
                int64_t at = found - found_in[g], of = seen - seen_in[g];
                if (g == group[i])
                    continue;
                if (!best[g] || at * best_of[g] > best[g] * of)
                    best[g] = at, best_of[g] = of;
                for (; next[g] >= 0 && needed[g * recalls + next[g]] >= at; next[g]--) {
                    int64_t *point = points + 2 * ((g * thresholds + t) * recalls + next[g]);
                    point[0] = best[g], point[1] = best_of[g];
                }
            }
            found -= in, found_in[group[i]] -= in, seen -= is_counted, seen_in[group[i]] -= is_counted;
        }
    }
    return SJ_FINE;
}
