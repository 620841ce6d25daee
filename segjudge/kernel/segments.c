/* The points of a scan -> points by true class and predicted label, and the segments that match.
 *
 * A point has a label in its lower 16 bits, and an object number above. */
#include "points.h"

#include <stdlib.h>

#define LABEL_BITS SJ_LABEL_BITS
#define LABEL_END ((int64_t)1 << LABEL_BITS)
/* The most segments of a side that are not noise; there are twice as many slots. */
#define FEW_BITS 11
#define FEW (1 << FEW_BITS)
/* The stretches of a part of noise, and the parts at most, as powers of two. */
#define PART_BITS 10
#define MOST_PART_BITS 10
#define DIGITS 256
/* The most cells of a table of points. */
#define MOST_CELLS ((int64_t)1 << 26)
/* The highest bit of a segment's points, which are fewer: whether it is matched. */
#define MATCHED ((uint32_t)1 << 31)
/* The highest bits of a stretch's points: whether its segments are of interest, and of one class; the bits below. */
#define ONE ((uint32_t)1 << 31)
#define TWO ((uint32_t)1 << 30)
#define ALIKE ((uint32_t)1 << 29)
#define POINTS (ALIKE - 1)
/* The upper bounds of segments' points, as a power of two; the greatest bound, from which on points are not counted; and
 * the bit of segments of interest. */
#define BOUND_BITS 16
#define MOST_BOUND 0x7f
#define OF_INTEREST 0x80

/* The class of a label, and its segments' names: some bits of a value, and the class above them unless a value has it. */
typedef struct {
    uint32_t class, above, kept;
} naming;

typedef struct {
    uint32_t name, points;
} segment;

/* For a segment, the only one of the other side that may have most of its points, the points by which it leads in
 * votes, and the points of both. */
typedef struct {
    uint32_t partner, votes, shared;
} election;

/* The segments of one side, and an open-addressing table of their indices, from 1. */
typedef struct {
    segment *items;
    uint32_t *slots, count;
} side;

/* A pair of segments at consecutive points, by names or indices. */
typedef struct {
    uint32_t one, two, points;
} stretch;

static inline uint32_t hash_of(uint32_t name) { return (name ^ name >> LABEL_BITS) * 0x9e3779b1u; }

/* Return the index of a segment, which may be new; `first` is its slot unless another segment has it. */
static inline uint32_t index_of(side *all, uint32_t name, uint32_t first, uint32_t mask)
{
    uint32_t slot = first, at;
    for (; (at = all->slots[slot]); slot = (slot + 1) & mask)
        if (all->items[at - 1].name == name)
            return at - 1;
    all->items[all->count] = (segment){name, 0};
    return all->slots[slot] = ++all->count, all->count - 1;
}

/* Vote for the partner of a segment: only the winner can have more than half of its points. */
static void vote(election *of, uint32_t partner, uint32_t points)
{
    if (of->partner == partner)
        of->votes += points;
    else if (of->votes >= points)
        of->votes -= points;
    else
        of->partner = partner, of->votes = points - of->votes;
}

/* Return the number of a point: a value, or an index of values. */
static inline uint32_t number_at(const uint8_t *points, int size, int64_t i)
{
    uint16_t half;
    uint32_t whole;
    if (size == 4)
        return memcpy(&whole, points + 4 * i, sizeof whole), whole;
    return size == 2 ? (memcpy(&half, points + 2 * i, sizeof half), half) : points[i];
}

/* Order segments by their names, by one digit after the other. */
static void order(const segment *items, uint32_t *indices, uint32_t *spare, int64_t count)
{
    for (int shift = 0; shift < 32; shift += 8) {
        int64_t ends[DIGITS + 1] = {0};
        for (int64_t i = 0; i < count; i++)
            ends[(items[indices[i]].name >> shift & (DIGITS - 1)) + 1]++;
        for (int digit = 0; digit < DIGITS; digit++)
            ends[digit + 1] += ends[digit];
        for (int64_t i = 0; i < count; i++)
            spare[ends[items[indices[i]].name >> shift & (DIGITS - 1)]++] = indices[i];
        memcpy(indices, spare, (size_t)count * sizeof *indices);
    }
}

/* A scan's segments on both sides. */
typedef struct {
    side one, two;
    election *elections; /* of the truth's segments */
    stretch *stretches;
    int64_t stretched;
    uint32_t *matched; /* the indices of the truth's matched segments */
    int64_t matches;
    naming *namings;
    int has_values;
} scan;

static uint32_t class_of(const scan *all, uint32_t name)
{
    return all->has_values ? all->namings[name & (LABEL_END - 1)].class : name >> LABEL_BITS;
}

/* Match two segments if the IoU of this election's pair is above 0.5. */
static inline void match(scan *all, uint32_t true_index, uint32_t index, uint32_t shared)
{
    segment *truth = all->one.items + true_index, *partner = all->two.items + index;
    if (!shared || 3 * (uint64_t)shared <= (uint64_t)truth->points + partner->points)
        return;
    truth->points |= MATCHED, partner->points |= MATCHED;
    all->elections[true_index] = (election){index, 0, shared};
    all->matched[all->matches++] = true_index;
}

/* ── the points of a scan ── */

typedef struct {
    const uint8_t *truth;
    int32_t size;
    const uint32_t *values, *prediction;
    int64_t values_end, points, labels, count;
    int64_t *cells;
} input;

/* Consecutive points with one pair of segments, if not of values. */
typedef struct {
    int64_t end;
    const naming *one, *two;
    uint32_t true_name, name, points;
} run;

/* Return the bits of a value that name its segment; without object numbers, those of its label. */
static inline uint32_t bits_of_name(const naming *of) { return of->kept ? UINT32_MAX : LABEL_END - 1; }

/* Count the next points with one pair of values, or of segments, in the cells; return a status. `two` is NULL unless
 * both have a class, and `one` unless the true label has one. */
static inline int take_run(const scan *all, const input *from, int64_t i, int by_segments, run *next)
{
    uint32_t number = number_at(from->truth, from->size, i), value = from->prediction[i], true_value = number;
    if (from->values)
        true_value = number < from->values_end ? from->values[number] : UINT32_MAX;
    uint32_t label = value & (LABEL_END - 1), true_label = true_value & (LABEL_END - 1);
    if (true_label >= from->labels || label >= from->labels || (from->values && number >= from->values_end))
        return SJ_BAD_DATA;
    const naming *one = all->namings + true_label, *two = all->namings + label;
    uint32_t bits = by_segments ? bits_of_name(two) : UINT32_MAX;
    uint32_t true_bits = by_segments && !from->values ? bits_of_name(one) : UINT32_MAX;
    int64_t end = i + 1;
    while (end < from->points && !((from->prediction[end] ^ value) & bits)
           && !((number_at(from->truth, from->size, end) ^ number) & true_bits))
        end++;
    *next = (run){end, NULL, NULL, 0, 0, (uint32_t)(end - i)};
    if (one->class >= from->count)
        return SJ_FINE;
    from->cells[one->class * from->labels + label] += next->points;
    int shift = all->has_values ? 0 : LABEL_BITS;
    next->one = one, next->true_name = one->above | (true_value >> shift & one->kept);
    if (two->class < from->count)
        next->two = two, next->name = two->above | (value >> shift & two->kept);
    return SJ_FINE;
}

static inline uint32_t few_index(side *all, uint32_t name)
{
    return index_of(all, name, hash_of(name) >> (31 - FEW_BITS), 2 * FEW - 1);
}

/* Match the segments of a scan; return SJ_FULL if a side has more than a few. */
static int count_few(scan *all, const input *from)
{
    run next;
    memset(all->one.slots, 0, 2 * FEW * sizeof *all->one.slots);
    memset(all->two.slots, 0, 2 * FEW * sizeof *all->two.slots);
    for (int64_t i = 0; i < from->points; i = next.end) {
        int status = take_run(all, from, i, 0, &next);
        if (status != SJ_FINE)
            return status;
        if (!next.one)
            continue;
        uint32_t before = all->one.count, true_index = few_index(&all->one, next.true_name);
        all->one.items[true_index].points += next.points;
        if (true_index == before)
            all->elections[true_index] = (election){0, 0, 0};
        if (next.two) {
            uint32_t index = few_index(&all->two, next.name);
            all->two.items[index].points += next.points;
            if (next.one->class == next.two->class) {
                vote(all->elections + true_index, index, next.points);
                all->stretches[all->stretched++] = (stretch){true_index, index, next.points};
            }
        }
        if (all->one.count == FEW || all->two.count == FEW)
            return SJ_FULL;
    }
    for (int64_t i = 0; i < all->stretched; i++) {
        election *of = all->elections + all->stretches[i].one;
        of->shared += of->partner == all->stretches[i].two ? all->stretches[i].points : 0;
    }
    for (uint32_t i = 0; i < all->one.count; i++)
        match(all, i, all->elections[i].partner, all->elections[i].shared);
    return SJ_FINE;
}

/* ── many segments, most of which are too small to matter ──
 *
 * Unmatched segments count from some points on, and a match shares more than half of the points of each segment. Upper
 * bounds of segments' points, one for all names with a hash, exclude most segments of noise. The others are indexed by
 * parts that fit into the processor's nearest memory. */

static inline uint8_t *bound_of(uint8_t *bounds, uint32_t name)
{
    return bounds + (hash_of(name) >> (32 - BOUND_BITS));
}

/* Add to a bound, and mark it if a segment has points of its class on the other side. */
static inline void raise_bound(uint8_t *bounds, uint32_t name, uint32_t points, uint32_t alike)
{
    uint8_t *bound = bound_of(bounds, name);
    uint32_t sum = (*bound & MOST_BOUND) + points;
    *bound = (uint8_t)((sum < MOST_BOUND ? sum : MOST_BOUND) | (*bound & OF_INTEREST) | (alike ? OF_INTEREST : 0));
}

/* Return the least bound of a segment of interest. */
static inline uint32_t least_bound(int64_t fewest)
{
    return fewest < 0 ? 0 : fewest < MOST_BOUND ? (uint32_t)fewest : MOST_BOUND;
}

/* The points of a class: in the truth, in the prediction, and in both; and whether it is one segment. */
typedef struct {
    uint32_t one, two, shared, is_whole;
} whole;

/* List the stretches and bound the points of their segments, except those that are whole classes. With few true segments,
 * index them; return SJ_FULL if there are more. */
static int
list_stretches(scan *all, const input *from, int is_few, uint8_t *true_bounds, uint8_t *bounds, whole *classes)
{
    run next;
    for (int64_t i = 0; i < from->points; i = next.end) {
        int status = take_run(all, from, i, 1, &next);
        if (status != SJ_FINE)
            return status;
        if (!next.one)
            continue;
        uint32_t alike = next.two && next.two->class == next.one->class ? ALIKE : 0, name = next.true_name;
        uint32_t flags = (next.one->kept ? ONE : 0) | (next.two && next.two->kept ? TWO : 0);
        /* Without conditions that depend on noise, which a processor cannot predict. */
        if (!all->has_values) {
            classes[next.one->class].one += next.points;
            classes[next.one->class].shared += alike ? next.points : 0;
            if (next.two)
                classes[next.two->class].two += next.points;
        }
        if (!is_few)
            raise_bound(true_bounds, name, next.points, alike);
        else if (flags & ONE) {
            name = few_index(&all->one, name);
            all->one.items[name].points += next.points;
            if (all->one.count == FEW)
                return SJ_FULL;
        }
        if (next.two)
            raise_bound(bounds, next.name, next.points, alike);
        all->stretches[all->stretched] = (stretch){name, next.name, next.points | (flags ? alike : 0) | flags};
        all->stretched += flags != 0;
    }
    return SJ_FINE;
}

/* Match the segments that are whole classes. */
static void match_classes(scan *all, const input *from, whole *classes)
{
    for (int64_t label = 0; label < from->labels; label++)
        if (all->namings[label].class < from->count)
            classes[all->namings[label].class].is_whole = !all->namings[label].kept;
    for (int64_t class = 0; class < from->count; class++) {
        const whole *each = classes + class;
        uint32_t name = (uint32_t)class << LABEL_BITS;
        if (!each->is_whole)
            continue;
        if (each->one)
            all->one.items[all->one.count++] = (segment){name, each->one};
        if (each->two)
            all->two.items[all->two.count++] = (segment){name, each->two};
        if (each->shared)
            match(all, all->one.count - 1, all->two.count - 1, each->shared);
    }
}

/* The stretches whose names on one side have the same highest bits of their hashes. */
typedef struct {
    stretch *items;
    int64_t count;
    int bits; /* of the hash */
} part;

static inline uint32_t part_of(const stretch *item, int by_two, int bits)
{
    return (uint32_t)((uint64_t)hash_of(by_two ? item->two : item->one) << bits >> 32);
}

/* Copy stretches in the order of their parts by names of one side; set where each part ends, and return the bits of
 * parts. */
static int divide(const stretch *from, int64_t count, int by_two, stretch *to, int64_t *ends)
{
    int bits = 0;
    while (bits < MOST_PART_BITS && count >> bits >> PART_BITS)
        bits++;
    memset(ends, 0, sizeof *ends << bits);
    for (int64_t i = 0; i < count; i++)
        ends[part_of(from + i, by_two, bits)]++;
    for (int64_t i = 0, sum = 0; i < 1 << bits; i++)
        sum += ends[i], ends[i] = sum - ends[i];
    for (int64_t i = 0; i < count; i++)
        to[ends[part_of(from + i, by_two, bits)]++] = from[i];
    return bits;
}

/* Replace the names of one side by indices in a part, and count the segments' points. */
static void index_part(side *all, const part *of, int by_two)
{
    int bits = 2;
    while ((int64_t)1 << bits < 2 * of->count)
        bits++;
    uint32_t mask = ((uint32_t)1 << bits) - 1, flag = by_two ? TWO : ONE;
    memset(all->slots, 0, sizeof *all->slots << bits);
    for (stretch *item = of->items; item < of->items + of->count; item++) {
        if (!(item->points & flag))
            continue;
        uint32_t *name = by_two ? &item->two : &item->one;
        uint32_t first = (uint32_t)((uint64_t)(hash_of(*name) << of->bits) << bits >> 32);
        uint32_t index = index_of(all, *name, first, mask);
        all->items[index].points += item->points & POINTS;
        *name = index;
    }
}

/* Match the predicted segments of indexed stretches, from this index on. Each elects its partner in the truth. */
static void match_from(scan *all, const stretch *items, int64_t count, uint32_t first, election *elections)
{
    memset(elections, 0, (all->two.count - first) * sizeof *elections);
    for (const stretch *item = items; item < items + count; item++)
        if (item->points & ALIKE)
            vote(elections + (item->two - first), item->one, item->points & POINTS);
    for (const stretch *item = items; item < items + count; item++) {
        election *each = elections + (item->two - first);
        each->shared += item->points & ALIKE && each->partner == item->one ? item->points & POINTS : 0;
    }
    for (uint32_t i = first; i < all->two.count; i++)
        match(all, elections[i - first].partner, i, elections[i - first].shared);
}

/* Copy stretches with the indices of predicted segments; return whether these are few. */
static int index_few(scan *all, stretch *indexed)
{
    memset(all->two.slots, 0, 2 * FEW * sizeof *all->two.slots);
    for (int64_t i = 0; i < all->stretched && all->two.count < FEW; i++) {
        stretch item = all->stretches[i];
        item.two = few_index(&all->two, item.two);
        all->two.items[item.two].points += item.points & POINTS;
        indexed[i] = item;
    }
    return all->two.count < FEW;
}

/* Keep only stretches with a segment of interest on the sides of these flags, and only the flags of those segments. */
static void keep_interesting(scan *all, uint8_t *true_bounds, uint8_t *bounds, uint32_t least)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < all->stretched; i++) {
        stretch item = all->stretches[i];
        uint32_t one = true_bounds ? (uint32_t)(*bound_of(true_bounds, item.one) >= least) * ONE : 0;
        uint32_t two = (uint32_t)(*bound_of(bounds, item.two) >= least) * TWO;
        item.points &= one | two | ALIKE | POINTS;
        all->stretches[kept] = item;
        kept += item.points >= TWO;
    }
    all->stretched = kept;
}

/* Index the true segments, whatever their number, by parts. */
static void index_truth(scan *all, stretch *spare, int64_t *ends)
{
    int bits = divide(all->stretches, all->stretched, 0, spare, ends);
    for (int64_t i = 0, start = 0; i < 1 << bits; start = ends[i++])
        index_part(&all->one, &(part){spare + start, ends[i] - start, bits}, 0);
    memcpy(all->stretches, spare, (size_t)all->stretched * sizeof *spare);
}

/* Mark only predicted segments with more than half as many points as a true one of their class. */
static void mark_partners(const scan *all, uint8_t *bounds)
{
    for (int64_t i = 0; i < (int64_t)1 << BOUND_BITS; i++)
        bounds[i] &= MOST_BOUND;
    for (int64_t i = 0; i < all->stretched; i++) {
        const stretch *item = all->stretches + i;
        if (!(item->points & ALIKE))
            continue;
        uint8_t *bound = bound_of(bounds, item->two);
        uint32_t most = *bound & MOST_BOUND;
        if (most == MOST_BOUND || 2 * most > all->one.items[item->one].points)
            *bound |= OF_INTEREST;
    }
}

/* Match the predicted segments by parts. */
static void match_by_parts(scan *all, stretch *spare, election *elections, int64_t *ends)
{
    int bits = divide(all->stretches, all->stretched, 1, spare, ends);
    all->two.count = 0;
    for (int64_t i = 0, start = 0; i < 1 << bits; start = ends[i++]) {
        part each = {spare + start, ends[i] - start, bits};
        uint32_t first = all->two.count;
        index_part(&all->two, &each, 1);
        match_from(all, each.items, each.count, first, elections);
    }
}

/* Match the segments of a scan, however many there are; `spare` has space for stretches. */
static int count_many(scan *all, const input *from, int is_few, int64_t fewest, stretch *spare, election *elections)
{
    int64_t ends[1 << MOST_PART_BITS];
    uint8_t *bounds = calloc((size_t)2 << BOUND_BITS, sizeof *bounds);
    whole *classes = calloc((size_t)from->count, sizeof *classes);
    if (!bounds || !classes) {
        free(bounds);
        free(classes);
        return SJ_NO_MEMORY;
    }
    uint8_t *true_bounds = bounds + (1 << BOUND_BITS);
    memset(all->one.slots, 0, 2 * FEW * sizeof *all->one.slots);
    int status = list_stretches(all, from, is_few, true_bounds, bounds, classes);
    if (status == SJ_FINE) {
        if (!is_few) {
            keep_interesting(all, true_bounds, bounds, least_bound(fewest));
            index_truth(all, spare, ends);
        }
        mark_partners(all, bounds);
        keep_interesting(all, NULL, bounds, least_bound(fewest));
        if (index_few(all, spare))
            match_from(all, spare, all->stretched, 0, elections);
        else
            match_by_parts(all, spare, elections, ends);
        match_classes(all, from, classes);
    }
    free(bounds);
    free(classes);
    return status;
}

/* Write the matches, ordered by the truth's names: class, shared points, and the points of both together. Count the
 * unmatched segments of enough points by class, missed ones first. */
static void write_matches(scan *all, int64_t fewest, uint32_t *matches, int64_t *rest, int64_t classes)
{
    /* The stretches' memory is free; it has three numbers per point. */
    order(all->one.items, all->matched, (uint32_t *)all->stretches, all->matches);
    for (int64_t i = 0; i < all->matches; i++, matches += 3) {
        const election *of = all->elections + all->matched[i];
        const segment *truth = all->one.items + all->matched[i], *partner = all->two.items + of->partner;
        matches[0] = class_of(all, truth->name), matches[1] = of->shared;
        matches[2] = (truth->points & ~MATCHED) + (partner->points & ~MATCHED) - of->shared;
    }
    for (int is_surplus = 0; is_surplus < 2; is_surplus++, rest += classes) {
        const side *items = is_surplus ? &all->two : &all->one;
        for (uint32_t i = 0; i < items->count; i++)
            if (items->items[i].points < MATCHED && items->items[i].points >= fewest)
                rest[class_of(all, items->items[i].name)]++;
    }
}

/* Take memory for so many stretches and segments, in one piece, which the next scan gets again; return it. */
static uint8_t *take_memory(scan *all, int64_t stretches, int64_t segments, int64_t slots)
{
    size_t items = (size_t)segments * sizeof(segment), sides = 2 * (items + (size_t)slots * sizeof(uint32_t));
    size_t runs = (size_t)stretches * sizeof(stretch), elections = (size_t)segments * sizeof(election);
    size_t matched = (size_t)segments * sizeof(uint32_t);
    uint8_t *memory = malloc(sides + runs + elections + matched);
    if (!memory)
        return NULL;
    uint32_t *all_slots = (uint32_t *)(memory + 2 * items);
    all->one = (side){(segment *)memory, all_slots, 0};
    all->two = (side){(segment *)(memory + items), all_slots + slots, 0};
    all->elections = (election *)(memory + sides);
    all->stretches = (stretch *)(memory + sides + elections), all->stretched = 0;
    all->matched = (uint32_t *)(memory + sides + elections + runs), all->matches = 0;
    return memory;
}

/* Write the key and the points of each cell of a table that has points; return their number. */
static int64_t list_cells(const int64_t *table, int64_t classes, int64_t labels, int64_t *keys, int64_t *points)
{
    int64_t count = 0;
    for (int64_t class = 0; class < classes; class++)
        for (int64_t label = 0; label < labels; label++, table++)
            if (*table)
                keys[count] = sj_key(class, label), points[count++] = *table;
    return count;
}

/* Count points by true class and predicted label, write what `list_cells` writes, and match segments whose IoU is above
 * 0.5.
 *
 * `classes` has the class of each label; points whose true label has none are skipped. The first `things` classes have
 * objects, unless each value is a segment. `values` may map the truth's numbers to its values. There is space for
 * `count * labels` keys, and for as many matches as points. `found` gets the numbers of keys and of matches. */
SJ_EXPORT int sj_segments(
    const uint8_t *truth, int32_t size, const uint32_t *values, int64_t values_end, const uint32_t *prediction,
    int64_t points, const uint16_t *classes, int64_t labels, int64_t count, int64_t things, int32_t has_values,
    int64_t fewest, int64_t *keys, int64_t *sums, uint32_t *matches, int64_t *found, int64_t *rest)
{
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points > POINTS || !classes
        || labels < 1 || labels > LABEL_END || count < 1 || count >= LABEL_END || count * labels > MOST_CELLS || !keys || !sums
        || !matches || !found || !rest)
        return SJ_BAD_CALL;
    int64_t *cells = calloc((size_t)(count * labels), sizeof *cells);
    scan all = {.namings = malloc((size_t)labels * sizeof(naming)), .has_values = has_values};
    input from = {truth, size, values, prediction, values_end, points, labels, count, cells};
    uint8_t *memory = cells && all.namings ? take_memory(&all, points, FEW, 2 * FEW) : NULL;
    int status = memory ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; i < labels && status == SJ_FINE; i++)
        all.namings[i] = (naming){classes[i], has_values ? 0 : (uint32_t)classes[i] << LABEL_BITS,
                                  has_values ? UINT32_MAX : classes[i] < things ? (uint32_t)(LABEL_END - 1) : 0};
    if (status == SJ_FINE)
        status = count_few(&all, &from);
    for (int is_few = all.one.count < FEW; status == SJ_FULL; is_few = 0) {
        int64_t slots = 2 * FEW;
        while (slots < 2 * points)
            slots *= 2;
        free(memory);
        memset(cells, 0, (size_t)(count * labels) * sizeof *cells);
        memory = take_memory(&all, points, points, slots);
        stretch *spare = malloc((size_t)points * (sizeof *spare + sizeof(election)));
        status = memory && spare ? count_many(&all, &from, is_few, fewest, spare, (election *)(spare + points))
                                 : SJ_NO_MEMORY;
        free(spare);
    }
    if (status == SJ_FINE) {
        write_matches(&all, fewest, matches, rest, count);
        found[0] = list_cells(cells, count, labels, keys, sums), found[1] = all.matches;
    }
    free(cells);
    free(memory);
    free(all.namings);
    return status;
}
