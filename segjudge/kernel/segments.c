/* The points of a scan -> points by true class and predicted label, and the segments that match.
 *
 * A point has a label in its lower 16 bits, and an object number above. */
#include "kernel.h"

#include <stdlib.h>

#define LABEL_BITS 16
#define LABEL_END ((int64_t)1 << LABEL_BITS)
/* The slots of a side at first, and how they grow, as powers of two. */
#define FEWEST_SLOT_BITS 12
#define MORE_SLOT_BITS 3
#define DIGITS 256
/* The highest bit of a segment's points, which are fewer: whether it is matched. */
#define MATCHED ((uint32_t)1 << 31)

/* The class of a label, and its segments' names: some bits of a value, and the class above them unless a value has it. */
typedef struct {
    uint32_t class, above, kept;
} naming;

typedef struct {
    uint32_t name, points;
} segment;

/* For a true segment, the only predicted one that may have most of its points, the points by which it leads in votes,
 * and the points of both. */
typedef struct {
    uint32_t partner, votes, shared;
} election;

/* The segments of one side, and an open-addressing table of their indices, from 1. */
typedef struct {
    segment *items;
    uint32_t *slots, mask, count;
    int shift, most_bits;
} side;

/* A pair of segments of one class at consecutive points. */
typedef struct {
    uint32_t one, two, points;
} stretch;

static inline uint32_t first_slot(const side *all, uint32_t name)
{
    return ((name ^ name >> LABEL_BITS) * 0x9e3779b1u) >> all->shift;
}

/* Empty this many slots, as a power of two, and enter the segments. */
static void enter_segments(side *all, int bits)
{
    bits = bits < all->most_bits ? bits : all->most_bits;
    all->mask = ((uint32_t)1 << bits) - 1, all->shift = 32 - bits;
    memset(all->slots, 0, sizeof *all->slots << bits);
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t slot = first_slot(all, all->items[i].name);
        while (all->slots[slot])
            slot = (slot + 1) & all->mask;
        all->slots[slot] = i + 1;
    }
}

/* Return the index of a segment, which may be new. */
static inline uint32_t index_of(side *all, uint32_t name)
{
    uint32_t slot = first_slot(all, name), at;
    for (; (at = all->slots[slot]); slot = (slot + 1) & all->mask)
        if (all->items[at - 1].name == name)
            return at - 1;
    all->items[all->count] = (segment){name, 0};
    all->slots[slot] = ++all->count;
    if (2 * all->count > all->mask && 32 - all->shift < all->most_bits)
        enter_segments(all, 32 - all->shift + MORE_SLOT_BITS);
    return all->count - 1;
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
    election *elections;
    stretch *stretches;
    int64_t stretched;
    naming *namings;
    int has_values;
} scan;

static uint32_t class_of(const scan *all, uint32_t name)
{
    return all->has_values ? all->namings[name & (LABEL_END - 1)].class : name >> LABEL_BITS;
}

/* Write the matches, ordered by the truth's names: class, shared points, and the points of both together. Count the
 * unmatched segments of enough points by class, missed ones first. Return the number of matches. */
static int64_t match(scan *all, int64_t fewest, uint32_t *matches, int64_t *rest, int64_t classes)
{
    /* Shared points are counted, so the stretches' memory is free; it has three numbers per point. */
    uint32_t *indices = (uint32_t *)all->stretches;
    int64_t count = 0;
    for (int64_t i = 0; i < all->stretched; i++) {
        election *of = all->elections + all->stretches[i].one;
        of->shared += of->partner == all->stretches[i].two ? all->stretches[i].points : 0;
    }
    for (uint32_t i = 0; i < all->one.count; i++) {
        const election *of = all->elections + i;
        segment *truth = all->one.items + i, *partner = all->two.items + of->partner;
        if (of->shared && 3 * (uint64_t)of->shared > (uint64_t)truth->points + partner->points) {
            truth->points |= MATCHED, partner->points |= MATCHED;
            indices[count++] = i;
        }
    }
    order(all->one.items, indices, indices + count, count);
    for (int64_t i = 0; i < count; i++, matches += 3) {
        const election *of = all->elections + indices[i];
        const segment *truth = all->one.items + indices[i], *partner = all->two.items + of->partner;
        matches[0] = class_of(all, truth->name), matches[1] = of->shared;
        matches[2] = (truth->points & ~MATCHED) + (partner->points & ~MATCHED) - of->shared;
    }
    for (int is_surplus = 0; is_surplus < 2; is_surplus++, rest += classes) {
        const side *items = is_surplus ? &all->two : &all->one;
        for (uint32_t i = 0; i < items->count; i++)
            if (items->items[i].points < MATCHED && items->items[i].points >= fewest)
                rest[class_of(all, items->items[i].name)]++;
    }
    return count;
}

/* Take memory for the segments of points, in one piece, which the next scan gets again; return whether there is any. */
static int take_memory(scan *all, int64_t points, int64_t labels)
{
    int bits = 1;
    while ((int64_t)1 << bits < 2 * points)
        bits++;
    size_t segments = (size_t)points * sizeof(segment), slots = sizeof(uint32_t) << bits;
    size_t elections = (size_t)points * sizeof(election), stretches = (size_t)points * sizeof(stretch);
    uint8_t *memory = malloc(2 * (segments + slots) + elections + stretches + (size_t)labels * sizeof(naming));
    if (!memory)
        return 0;
    all->namings = (naming *)memory;
    memory += (size_t)labels * sizeof(naming);
    for (int i = 0; i < 2; i++) {
        side *each = i ? &all->two : &all->one;
        *each = (side){(segment *)memory, (uint32_t *)(memory + segments), 0, 0, 0, bits};
        enter_segments(each, FEWEST_SLOT_BITS);
        memory += segments + slots;
    }
    all->elections = (election *)memory, all->stretches = (stretch *)(memory + elections);
    return 1;
}

/* Count points by true class and predicted label in a table of `count` rows, and match segments whose IoU is above 0.5.
 *
 * `classes` has the class of each label; points whose true label has none are skipped. The first `things` classes have
 * objects, unless each value is a segment. `values` may map the truth's numbers to its values. There is space for as
 * many matches as points. */
SJ_EXPORT int sj_segments(
    const uint8_t *truth, int32_t size, const uint32_t *values, int64_t values_end, const uint32_t *prediction,
    int64_t points, const uint16_t *classes, int64_t labels, int64_t count, int64_t things, int32_t has_values,
    int64_t fewest, int64_t *cells, uint32_t *matches, int64_t *found, int64_t *rest)
{
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points >= MATCHED / 2 || !classes
        || labels < 1 || labels > LABEL_END || count < 1 || count >= LABEL_END || !cells || !matches || !found || !rest)
        return SJ_BAD_CALL;
    scan all = {.stretched = 0, .has_values = has_values};
    if (!take_memory(&all, points, labels))
        return SJ_NO_MEMORY;
    int shift = has_values ? 0 : LABEL_BITS, status = SJ_FINE;
    for (int64_t i = 0; i < labels; i++)
        all.namings[i] = (naming){classes[i], has_values ? 0 : (uint32_t)classes[i] << LABEL_BITS,
                                  has_values ? UINT32_MAX : classes[i] < things ? (uint32_t)(LABEL_END - 1) : 0};
    for (int64_t i = 0, next; i < points; i = next) {
        uint32_t number = number_at(truth, size, i), value = prediction[i], true_value = number;
        for (next = i + 1; next < points && prediction[next] == value && number_at(truth, size, next) == number;)
            next++;
        if (values)
            true_value = number < values_end ? values[number] : UINT32_MAX;
        uint32_t run = (uint32_t)(next - i), label = value & (LABEL_END - 1), true_label = true_value & (LABEL_END - 1);
        if (true_label >= labels || label >= labels || (values && number >= values_end)) {
            status = SJ_BAD_DATA;
            break;
        }
        const naming *one = all.namings + true_label, *two = all.namings + label;
        if (one->class >= count)
            continue;
        cells[one->class * labels + label] += run;
        uint32_t before = all.one.count, true_index = index_of(&all.one, one->above | (true_value >> shift & one->kept));
        all.one.items[true_index].points += run;
        if (true_index == before)
            all.elections[true_index] = (election){0, 0, 0};
        if (two->class >= count)
            continue;
        uint32_t index = index_of(&all.two, two->above | (value >> shift & two->kept));
        all.two.items[index].points += run;
        if (one->class == two->class) {
            vote(all.elections + true_index, index, run);
            all.stretches[all.stretched++] = (stretch){true_index, index, run};
        }
    }
    if (status == SJ_FINE)
        *found = match(&all, fewest, matches, rest, count);
    free(all.namings);
    return status;
}
