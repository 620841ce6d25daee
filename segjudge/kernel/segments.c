/* The points of a scan -> points by true class and predicted label, and the segments that match.
 *
 * A point has a label in its lower 16 bits, and an object number above. */
#include "points.h"
#include "tally.h"

#define LABEL_END ((int64_t)1 << SJ_LABEL_BITS)
/* The most cells of a table of points, and the most points of a scan. */
#define MOST_CELLS ((int64_t)1 << 26)
#define MOST_POINTS ((int64_t)1 << 29)

/* The class of a label, and its segments' names: some bits of a value, and the class above them unless a value has it. */
typedef struct {
    uint32_t class, above, kept;
    int shift;
} naming;

static inline uint32_t name_of(const naming *of, uint32_t value) { return of->above | (value >> of->shift & of->kept); }

/* A match: the true segment's name and class, its shared points, and the points of both segments together. */
typedef struct {
    uint32_t name, class, shared, joint;
} match;

static int compare_names(const void *one, const void *two)
{
    uint32_t a = ((const match *)one)->name, b = ((const match *)two)->name;
    return (a > b) - (a < b);
}

/* The points of true segments, of predicted ones and of pairs of one class, whose keys are the indices of both. */
typedef struct {
    sj_tally one, two, pairs;
    naming *namings;
    match *matches;
    uint8_t *is_matched; /* of the true segments, then of the predicted ones */
    int64_t matched;
} scan;

/* Count the points by class and predicted label in the cells, by segment and by pair; return a status. */
static int
count_points(scan *all, const uint8_t *truth, int32_t size, const uint32_t *values, int64_t values_end,
             const uint32_t *prediction, int64_t points, int64_t labels, int64_t count, int64_t *cells)
{
    for (int64_t i = 0, end; i < points; i = end) {
        uint32_t number = sj_number_at(truth, size, i), value = prediction[i], true_value = number;
        if (values)
            true_value = number < values_end ? values[number] : UINT32_MAX;
        uint32_t true_label = true_value & (LABEL_END - 1), label = value & (LABEL_END - 1);
        if (true_label >= labels || label >= labels || (values && number >= values_end))
            return SJ_BAD_DATA;
        for (end = i + 1; end < points && prediction[end] == value && sj_number_at(truth, size, end) == number;)
            end++;
        const naming *one = all->namings + true_label, *two = all->namings + label;
        if (one->class >= count)
            continue;
        cells[one->class * labels + label] += end - i;
        int64_t first = sj_add(&all->one, name_of(one, true_value), end - i), second = 0;
        if (two->class < count)
            second = sj_add(&all->two, name_of(two, value), end - i);
        if (first < 0 || second < 0
            || (two->class == one->class && sj_add(&all->pairs, (uint64_t)first << 32 | (uint64_t)second, end - i) < 0))
            return SJ_NO_MEMORY;
    }
    return SJ_FINE;
}

/* Find the pairs whose IoU is above 0.5, of which a segment has one at most; return a status. */
static int find_matches(scan *all, int has_values)
{
    all->matches = malloc((size_t)(all->one.count + 1) * sizeof *all->matches);
    all->is_matched = calloc((size_t)(all->one.count + all->two.count + 1), 1);
    if (!all->matches || !all->is_matched)
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < all->pairs.count; i++) {
        int64_t first = (int64_t)(all->pairs.items[i].key >> 32), second = (uint32_t)all->pairs.items[i].key;
        int64_t shared = all->pairs.items[i].sum, joint = all->one.items[first].sum + all->two.items[second].sum - shared;
        uint32_t name = (uint32_t)all->one.items[first].key;
        if (2 * shared <= joint)
            continue;
        all->matches[all->matched++] = (match){name, has_values ? all->namings[name & (LABEL_END - 1)].class : name >> SJ_LABEL_BITS,
                                               (uint32_t)shared, (uint32_t)joint};
        all->is_matched[first] = all->is_matched[all->one.count + second] = 1;
    }
    qsort(all->matches, (size_t)all->matched, sizeof *all->matches, compare_names);
    return SJ_FINE;
}

/* Count the unmatched segments of enough points by class. */
static void count_rest(const scan *all, const sj_tally *side, const uint8_t *is_matched, int has_values, int64_t fewest, int64_t *rest)
{
    for (int64_t i = 0; i < side->count; i++) {
        uint32_t name = (uint32_t)side->items[i].key;
        if (!is_matched[i] && side->items[i].sum >= fewest)
            rest[has_values ? all->namings[name & (LABEL_END - 1)].class : name >> SJ_LABEL_BITS]++;
    }
}

/* Count points by true class and predicted label, writing the key and the points of each pair that has some, and match
 * segments whose IoU is above 0.5: write class, shared points and joint points, by the names of the true segments.
 *
 * `classes` has the class of each label; points whose true label has none are skipped. The first `things` classes have
 * objects, unless each value is a segment. `values` may map the truth's numbers to its values. There is space for
 * `count * labels` keys, and for as many matches as points. `found` gets the numbers of keys and of matches; `rest` the
 * unmatched segments of at least `fewest` points by class, missed ones first. */
SJ_EXPORT int sj_segments(
    const uint8_t *truth, int32_t size, const uint32_t *values, int64_t values_end, const uint32_t *prediction,
    int64_t points, const uint16_t *classes, int64_t labels, int64_t count, int64_t things, int32_t has_values,
    int64_t fewest, int64_t *keys, int64_t *sums, uint32_t *matches, int64_t *found, int64_t *rest)
{
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points > MOST_POINTS || !classes
        || labels < 1 || labels > LABEL_END || count < 1 || count >= LABEL_END || count * labels > MOST_CELLS || !keys || !sums
        || !matches || !found || !rest)
        return SJ_BAD_CALL;
    scan all = {.namings = malloc((size_t)labels * sizeof(naming))};
    int64_t *cells = calloc((size_t)(count * labels), sizeof *cells);
    int status = cells && all.namings ? SJ_FINE : SJ_NO_MEMORY;
    sj_tally *tallies[] = {&all.one, &all.two, &all.pairs};
    for (int i = 0; i < 3 && status == SJ_FINE; i++)
        status = sj_open_tally(tallies[i]);
    for (int64_t i = 0; i < labels && status == SJ_FINE; i++)
        all.namings[i] = has_values ? (naming){classes[i], 0, UINT32_MAX, 0}
                                    : (naming){classes[i], (uint32_t)classes[i] << SJ_LABEL_BITS,
                                               classes[i] < things ? (uint32_t)(LABEL_END - 1) : 0, SJ_LABEL_BITS};
    if (status == SJ_FINE)
        status = count_points(&all, truth, size, values, values_end, prediction, points, labels, count, cells);
    if (status == SJ_FINE)
        status = find_matches(&all, has_values);
    if (status == SJ_FINE) {
        for (int64_t i = 0; i < all.matched; i++, matches += 3)
            matches[0] = all.matches[i].class, matches[1] = all.matches[i].shared, matches[2] = all.matches[i].joint;
        count_rest(&all, &all.one, all.is_matched, has_values, fewest, rest);
        count_rest(&all, &all.two, all.is_matched + all.one.count, has_values, fewest, rest + count);
        found[0] = sj_list_cells(cells, count, labels, keys, sums), found[1] = all.matched;
    }
    for (int i = 0; i < 3; i++)
        sj_close_tally(tallies[i]);
    free(cells);
    free(all.namings);
    free(all.matches);
    free(all.is_matched);
    return status;
}
