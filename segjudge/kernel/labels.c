/* Label maps -> the boundaries of segments in one map, and the pairs of labels in two maps. */
#include "kernel.h"

#include <stdlib.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define MOST_SIDE (1 << 20)
#define MOST_PIXELS ((int64_t)1 << 40)
#define MOST_ROOM (1 << 26)
#define MOST_CELLS ((int64_t)1 << 20)
/* After a few shorter runs, this many pixels are examined one by one. */
#define LONG_RUN 16
#define FEW_RUNS 2
#define BLOCK 128
/* The most pixels of a block where noise goes on. */
#define MOST_BLOCK 1024
#define LANES 4
/* The slots for pairs at first, as a power of two. */
#define FEWEST_SLOT_BITS 13
/* The labels of a map in a grid at first and at most, and the most cells of a grid. */
#define FEW_NUMBERED 64
#define NUMBERED_BITS 11
#define MOST_NUMBERED (1 << NUMBERED_BITS)
#define CELLS_PER_PIXEL 16
/* Blocks with more runs are examined after another, those of a grid have at least as many, and blocks with more than
 * these runs are counted pixel by pixel. */
#define FEW_IN_BLOCK 4
#define NOISY_RUNS 24
#define MANY_RUNS 64

/* The most pixels of a small map, the bits of its predicted labels, and so many pairs that are sorted one by one. */
#define SMALL_MAP (1 << 12)
#define LABEL_BITS 25
#define FEW_SORTED 48

/* Labels and their size in bytes. */
typedef struct {
    const uint8_t *bytes;
    int64_t count;
    int size;
} map;

static int is_map(const map *a) { return a->bytes && (a->size == 1 || a->size == 2 || a->size == 4); }

static uint32_t label_at(const map *a, int64_t i)
{
    uint32_t label = 0;
    memcpy(&label, a->bytes + i * a->size, (size_t)a->size);
    return label;
}

/* Return the differences between these bytes and the bytes one label further. */
static uint64_t changes(const uint8_t *at, int size, int words)
{
    uint64_t any = 0;
    for (int i = 0; i < words; i++)
        any |= sj_load(at + 8 * i) ^ sj_load(at + 8 * i + size);
    return any;
}

/* Return where the run of equal labels ends that begins at i. */
static int64_t end_of_run(const map *a, int64_t i)
{
    const uint8_t *start = a->bytes + i * a->size, *at = start, *last = a->bytes + (a->count - 1) * a->size;
    while (last - at >= 32 && !changes(at, a->size, 4))
        at += 32;
    while (last - at >= 8) {
        uint64_t change = changes(at, a->size, 1);
        if (change)
            return i + 1 + (at - start + __builtin_ctzll(change) / 8) / a->size;
        at += 8;
    }
    while (at < last && *at == at[a->size])
        at++;
    return i + 1 + (at - start) / a->size;
}

/* Copy the labels of some pixels as 32 bits each. */
static void take_labels(const map *a, int64_t at, int64_t count, uint32_t *out)
{
    const uint8_t *bytes = a->bytes + at * a->size;
    if (a->size == 4) {
        memcpy(out, bytes, (size_t)count * sizeof *out);
    } else if (a->size == 1) {
        for (int64_t i = 0; i < count; i++)
            out[i] = bytes[i];
    } else {
        for (int64_t i = 0; i < count; i++) {
            uint16_t label;
            memcpy(&label, bytes + 2 * i, sizeof label);
            out[i] = label;
        }
    }
}

/* Copy the labels of these pixels as 32 bits each. */
static void pick_labels(const map *a, int64_t at, const uint8_t *pixels, int64_t count, uint32_t *out)
{
    const uint8_t *bytes = a->bytes + at * a->size;
    for (int64_t i = 0; i < count && a->size == 1; i++)
        out[i] = bytes[pixels[i]];
    for (int64_t i = 0; i < count && a->size == 2; i++)
        out[i] = (uint32_t)bytes[2 * pixels[i]] | (uint32_t)bytes[2 * pixels[i] + 1] << 8;
    for (int64_t i = 0; i < count && a->size == 4; i++)
        memcpy(out + i, bytes + 4 * pixels[i], sizeof *out);
}

/* Two maps of one size, the position of counting, and the ends of the current runs. */
typedef struct {
    map one, two;
    int64_t at, end, other;
    int short_runs; /* the number of consecutive ones */
} walk;

/* Return the number of pixels from here with one pair of labels; 0 if several short runs suggest noise. */
static int64_t run_from(walk *from)
{
    from->end = from->at >= from->end ? end_of_run(&from->one, from->at) : from->end;
    from->other = from->at >= from->other ? end_of_run(&from->two, from->at) : from->other;
    int64_t run = (from->end < from->other ? from->end : from->other) - from->at;
    from->short_runs = run < LONG_RUN ? from->short_runs + 1 : 0;
    return from->short_runs > FEW_RUNS ? 0 : run;
}

/* The runs of a block: the labels of each, and its pixels. */
typedef struct {
    uint32_t one[BLOCK], two[BLOCK];
    uint8_t pixels[BLOCK];
    int64_t count, length;
} runs;

/* Return flags of the labels among 64 that differ from the next one. */
static uint64_t ends_in(const map *a, int64_t at)
{
    const uint8_t *bytes = a->bytes + at * a->size;
    uint64_t ends = 0;
#ifdef __SSE2__
#define SAME(kind, i) \
    _mm_cmpeq_##kind(_mm_loadu_si128((const __m128i *)(bytes + 16 * (i))), \
                     _mm_loadu_si128((const __m128i *)(bytes + 16 * (i) + a->size)))
    for (int i = 0; i < 4; i++) {
        __m128i same = a->size == 1 ? SAME(epi8, i)
                     : a->size == 2 ? _mm_packs_epi16(SAME(epi16, 2 * i), SAME(epi16, 2 * i + 1))
                     : _mm_packs_epi16(_mm_packs_epi32(SAME(epi32, 4 * i), SAME(epi32, 4 * i + 1)),
                                       _mm_packs_epi32(SAME(epi32, 4 * i + 2), SAME(epi32, 4 * i + 3)));
        ends |= (uint64_t)((uint32_t)_mm_movemask_epi8(same) ^ 0xffff) << 16 * i;
    }
#undef SAME
#else
    for (int i = 0; i < 64; i++)
        ends |= (uint64_t)(memcmp(bytes + i * a->size, bytes + (i + 1) * a->size, (size_t)a->size) != 0) << i;
#endif
    return ends;
}

/* Return flags of the last pixels of the runs among up to 64 pixels. */
static uint64_t ends_of_runs(const walk *from, int64_t at)
{
    int64_t left = from->one.count - at;
    uint64_t ends = 0;
    if (left > 64)
        return ends_in(&from->one, at) | ends_in(&from->two, at);
    for (int64_t i = 0; i + 1 < left; i++)
        ends |= (uint64_t)(label_at(&from->one, at + i) != label_at(&from->one, at + i + 1)
                           || label_at(&from->two, at + i) != label_at(&from->two, at + i + 1)) << i;
    return ends;
}

/* Take the runs of the next pixels, or the pixels themselves if there are many runs. */
static void take_block(walk *from, runs *block)
{
    int64_t left = from->one.count - from->at, begun = 0, count = 0;
    uint64_t ends[BLOCK / 64];
    uint8_t last[BLOCK];
    block->length = left < BLOCK ? left : BLOCK;
    for (int i = 0; i < BLOCK / 64; i++)
        ends[i] = ends_of_runs(from, from->at + 64 * i);
    ends[(block->length - 1) / 64] |= (uint64_t)1 << (block->length - 1) % 64;
    for (int i = 0; i < BLOCK / 64; i++)
        count += sj_ones(ends[i]);
    from->short_runs = count > FEW_IN_BLOCK ? FEW_RUNS + 1 : 0;
    block->count = count;
    if (count > MANY_RUNS) {
        block->count = block->length;
        take_labels(&from->one, from->at, block->count, block->one);
        take_labels(&from->two, from->at, block->count, block->two);
        memset(block->pixels, 1, sizeof block->pixels);
        return;
    }
    count = 0;
    for (int i = 0; i < BLOCK / 64; i++)
        for (uint64_t bits = ends[i]; bits; bits &= bits - 1) {
            int64_t end = 64 * i + __builtin_ctzll(bits) + 1;
            last[count] = (uint8_t)(end - 1);
            block->pixels[count++] = (uint8_t)(end - begun);
            begun = end;
        }
    pick_labels(&from->one, from->at, last, count, block->one);
    pick_labels(&from->two, from->at, last, count, block->two);
}

/* A table with a cell for each pair of labels, and its parts: they take turns, because updating one cell twice in a row
 * is slow. */
typedef struct {
    int64_t *table, size;
    uint32_t *lanes; /* the parts, one after the other */
    uint32_t labels, columns, plain; /* `plain` labels have a row and a column */
} cells;

/* Return the labels of some pixels as 32 bits each, copied unless they are. */
static const uint8_t *words_of(const map *a, int64_t at, int64_t count, uint32_t *copies)
{
    if (a->size == sizeof *copies)
        return a->bytes + at * a->size;
    take_labels(a, at, count, copies);
    return (const uint8_t *)copies;
}

static inline uint32_t word_at(const uint8_t *words, int64_t i)
{
    uint32_t word;
    memcpy(&word, words + i * (int64_t)sizeof word, sizeof word);
    return word;
}

/* Return whether the labels of a block are below their ends: by all their bits, or by the signs of differences. */
static int have_cells(const cells *all, const uint8_t *one, const uint8_t *two, int64_t count)
{
    uint32_t any = 0, beyond = 0;
    for (int64_t i = 0; i < count; i++)
        any |= word_at(one, i) | word_at(two, i);
    if (any < all->plain)
        return 1;
    for (int64_t i = 0; i < count; i++) {
        uint32_t label = word_at(one, i), column = word_at(two, i);
        beyond |= label | column | (all->labels - 1 - label) | (all->columns - 1 - column);
    }
    return !(beyond >> 31);
}

/* Count the pixels of a block, two at a time. */
static void count_block(const cells *all, const uint8_t *one, const uint8_t *two, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane += 2) {
            uint64_t labels = sj_load(one + 4 * (i + lane)), columns = sj_load(two + 4 * (i + lane));
            uint32_t *cells_of = all->lanes + lane * all->size;
            cells_of[(uint32_t)labels * all->columns + (uint32_t)columns]++;
            cells_of[all->size + (labels >> 32) * all->columns + (columns >> 32)]++;
        }
    for (; i < count; i++)
        all->lanes[word_at(one, i) * all->columns + word_at(two, i)]++;
}

/* Add the parts to the table, and empty them. */
static void join_lanes(const cells *all)
{
    for (int lane = 0; lane < LANES; lane++)
        for (int64_t i = 0; i < all->size; i++)
            all->table[i] += all->lanes[lane * all->size + i];
    memset(all->lanes, 0, (size_t)(LANES * all->size) * sizeof *all->lanes);
}

/* Count the pixels of each pair of labels in a table, whose rows and columns they must be below. */
SJ_EXPORT int sj_label_table(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    int64_t rows, int64_t columns, int64_t *table)
{
    walk from = {{truth, count, truth_size}, {prediction, count, prediction_size}, 0, 0, 0, 0};
    uint32_t one[MOST_BLOCK], two[MOST_BLOCK];
    if (!is_map(&from.one) || !is_map(&from.two) || count < 1 || count > MOST_PIXELS || !table || rows < 1 || columns < 1
        || rows > MOST_CELLS || columns > MOST_CELLS || rows * columns > MOST_CELLS)
        return SJ_BAD_CALL;
    cells all = {.table = table, .size = rows * columns, .labels = (uint32_t)rows, .columns = (uint32_t)columns,
                 .plain = (uint32_t)(rows < columns ? rows : columns)};
    all.lanes = calloc((size_t)(all.size * LANES), sizeof *all.lanes);
    int status = all.lanes ? SJ_FINE : SJ_NO_MEMORY;
    int64_t most = BLOCK, joined = 0;
    while (from.at < count && status == SJ_FINE) {
        int64_t run = run_from(&from), left = count - from.at, taken = run ? 1 : left < most ? left : most;
        const uint8_t *words = words_of(&from.one, from.at, taken, one), *others = words_of(&from.two, from.at, taken, two);
        if (!have_cells(&all, words, others, taken))
            status = SJ_BAD_DATA;
        else if (run)
            table[word_at(words, 0) * columns + word_at(others, 0)] += run;
        else
            count_block(&all, words, others, taken);
        from.at += run ? run : taken;
        most = run ? BLOCK : most < MOST_BLOCK ? 2 * most : MOST_BLOCK;
        if (from.at - joined > UINT32_MAX - MOST_BLOCK)
            join_lanes(&all), joined = from.at;
    }
    if (status == SJ_FINE)
        join_lanes(&all);
    free(all.lanes);
    return status;
}

/* ── pairs of labels, in any order ── */

/* The found pairs, and an open-addressing table of their indices, from 1. */
typedef struct {
    uint32_t *labels; /* two numbers per pair */
    int64_t *pixels;
    int64_t count, room;
    uint32_t *slots;
    int slot_bits;
} table;

/* Return the slot of a pair, or the free one where it belongs. */
static uint32_t *slot_of(const table *all, uint32_t one, uint32_t two)
{
    uint32_t mask = ((uint32_t)1 << all->slot_bits) - 1;
    uint32_t slot = (uint32_t)((((uint64_t)one << 32 | two) * 0x9e3779b97f4a7c15u) >> (64 - all->slot_bits));
    for (; all->slots[slot]; slot = (slot + 1) & mask) {
        const uint32_t *labels = all->labels + 2 * ((int64_t)all->slots[slot] - 1);
        if (labels[0] == one && labels[1] == two)
            break;
    }
    return all->slots + slot;
}

/* Make slots for all pairs and as many more; return whether there is memory for them. */
static int make_slots(table *all)
{
    while (2 * all->count >= (int64_t)1 << all->slot_bits)
        all->slot_bits++;
    free(all->slots);
    all->slots = calloc((size_t)1 << all->slot_bits, sizeof *all->slots);
    for (int64_t i = 0; all->slots && i < all->count; i++)
        *slot_of(all, all->labels[2 * i], all->labels[2 * i + 1]) = (uint32_t)(i + 1);
    return all->slots != NULL;
}

/* Add pixels to a pair; return whether it fits. */
static int add_pair(table *all, uint32_t one, uint32_t two, int64_t pixels)
{
    uint32_t *slot = slot_of(all, one, two);
    if (*slot) {
        all->pixels[*slot - 1] += pixels;
        return 1;
    }
    if (all->count == all->room)
        return 0;
    all->labels[2 * all->count] = one, all->labels[2 * all->count + 1] = two;
    all->pixels[all->count] = pixels;
    *slot = (uint32_t)++all->count;
    return 2 * all->count < (int64_t)1 << all->slot_bits || make_slots(all);
}

/* Add the pairs of a block until the space is full; return the number of pixels added. */
static int64_t add_block(table *all, const runs *block)
{
    int64_t added = 0;
    for (int64_t i = 0; i < block->count; added += block->pixels[i++])
        if (!add_pair(all, block->one[i], block->two[i], block->pixels[i]))
            break;
    return added;
}

/* ── pairs of numbered labels, in a grid, which is faster for noise ── */

/* The labels of a map, numbered from 1 in the order of their first pixels: label << 32 | number by slot. */
typedef struct {
    uint64_t slots[2 * MOST_NUMBERED];
    uint32_t labels[MOST_NUMBERED];
    uint32_t count;
} numbering;

/* The pixels of each pair of numbered labels; the sides are powers of two. */
typedef struct {
    numbering one, two;
    uint32_t *cells;
    uint32_t rows, columns;
    int64_t most_cells;
} grid;

/* Return the number of a label; 0 if there are too many. */
static inline uint32_t number_of(numbering *all, uint32_t label)
{
    uint32_t slot = (label * 0x9e3779b1u) >> (31 - NUMBERED_BITS);
    for (; all->slots[slot]; slot = (slot + 1) & (2 * MOST_NUMBERED - 1))
        if (all->slots[slot] >> 32 == label)
            return (uint32_t)all->slots[slot];
    if (all->count == MOST_NUMBERED)
        return 0;
    all->labels[all->count++] = label;
    all->slots[slot] = (uint64_t)label << 32 | all->count;
    return all->count;
}

/* Replace labels by their numbers; return whether all have one. */
static int number_labels(numbering *all, uint32_t *labels, int64_t count)
{
    int are_numbered = 1;
    for (int64_t i = 0; i < count; i++) {
        labels[i] = number_of(all, labels[i]);
        are_numbered &= labels[i] != 0;
    }
    return are_numbered;
}

/* Enlarge the grid until each number has a row or a column; return whether it may be so large. */
static int make_cells(grid *all)
{
    uint32_t rows = all->rows, columns = all->columns;
    while (rows < all->one.count)
        rows *= 2;
    while (columns < all->two.count)
        columns *= 2;
    if (all->cells && rows == all->rows && columns == all->columns)
        return 1;
    uint32_t *cells = (int64_t)rows * columns <= all->most_cells ? calloc((size_t)rows * columns, sizeof *cells) : NULL;
    if (!cells)
        return 0;
    for (size_t row = 0; all->cells && row < all->rows; row++)
        memcpy(cells + row * columns, all->cells + row * all->columns, all->columns * sizeof *cells);
    free(all->cells);
    all->cells = cells, all->rows = rows, all->columns = columns;
    return 1;
}

static void free_grid(grid *all)
{
    if (all)
        free(all->cells);
    free(all);
}

/* Return an empty grid for a map of so many pixels; none if it would be too large. */
static grid *make_grid(int64_t pixels)
{
    grid *all = pixels <= UINT32_MAX ? calloc(1, sizeof *all) : NULL;
    if (!all)
        return NULL;
    all->rows = all->columns = FEW_NUMBERED;
    all->most_cells = CELLS_PER_PIXEL * pixels;
    return all;
}

/* Count the pixels of a block, whose labels become numbers; return 0, and count none, if there are too many labels. */
static int number_block(grid *all, runs *block)
{
    if (!number_labels(&all->one, block->one, block->count) || !number_labels(&all->two, block->two, block->count)
        || !make_cells(all))
        return 0;
    for (int64_t i = 0; i < block->count; i++)
        all->cells[(size_t)(block->one[i] - 1) * all->columns + block->two[i] - 1] += block->pixels[i];
    return 1;
}

/* Add the grid's pairs to others; return whether they fit. */
static int take_pairs(table *pairs, const grid *all)
{
    uint32_t rows = !all->cells ? 0 : all->one.count < all->rows ? all->one.count : all->rows;
    uint32_t columns = all->two.count < all->columns ? all->two.count : all->columns;
    for (uint32_t row = 0; row < rows; row++)
        for (uint32_t column = 0; column < columns; column++) {
            uint32_t pixels = all->cells[(size_t)row * all->columns + column];
            if (pixels && !add_pair(pairs, all->one.labels[row], all->two.labels[column], pixels))
                return 0;
        }
    return 1;
}

/* Find the pairs of labels at equal positions of two maps, and their numbers of pixels; `labels` and `pixels` limit the
 * pairs.
 *
 * If there are more, return SJ_FULL: `begun` pixels are counted and `found` pairs known, and a call with more space
 * continues. Noise is counted in a grid, whose pairs are known at the end only; if they do not fit, nothing is. */
SJ_EXPORT int sj_label_pairs(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    uint32_t *labels, int64_t *pixels, int64_t room, int64_t *begun, int64_t *found)
{
    walk from = {{truth, count, truth_size}, {prediction, count, prediction_size}, 0, 0, 0, 0};
    runs block;
    if (!is_map(&from.one) || !is_map(&from.two) || count < 1 || count > MOST_PIXELS || !labels || !pixels || room < 1
        || room > MOST_ROOM || !begun || !found || *begun < 0 || *begun > count || *found < 0 || *found > room)
        return SJ_BAD_CALL;
    table all = {labels, pixels, 0, room, NULL, FEWEST_SLOT_BITS};
    if (!make_slots(&all))
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < *found; i++)
        if (!add_pair(&all, labels[2 * i], labels[2 * i + 1], pixels[i]))
            break;
    int status = !all.slots ? SJ_NO_MEMORY : all.count == *found ? SJ_FINE : SJ_BAD_CALL; /* a pair is repeated */
    int may_have_grid = 1;
    grid *noise = NULL;
    from.at = *begun;
    while (from.at < count && status == SJ_FINE) {
        int64_t taken = from.short_runs > FEW_RUNS ? 0 : run_from(&from), added = taken;
        if (taken)
            added = add_pair(&all, label_at(&from.one, from.at), label_at(&from.two, from.at), taken) ? taken : 0;
        else {
            take_block(&from, &block);
            taken = added = block.length;
            if (!may_have_grid || block.count < NOISY_RUNS)
                added = add_block(&all, &block);
            else if ((!noise && !(noise = make_grid(count))) || !number_block(noise, &block)) {
                may_have_grid = 0;
                if (!noise || take_pairs(&all, noise)) {
                    free_grid(noise);
                    noise = NULL;
                    continue;
                }
                added = 0;
            }
        }
        from.at += added;
        status = added < taken ? SJ_FULL : SJ_FINE;
    }
    if (noise && (status != SJ_FINE || !take_pairs(&all, noise)))
        status = SJ_FULL, from.at = all.count = 0;
    free_grid(noise);
    free(all.slots);
    *begun = from.at, *found = all.count;
    return status;
}

/* ── pairs of small maps, in order ── */

/* The numbers of a pair, true << 32 | predicted, and its pixels. */
typedef struct {
    uint64_t labels;
    int64_t pixels;
} small_pair;

static int compare_pairs(const void *one, const void *two)
{
    uint64_t a = ((const small_pair *)one)->labels, b = ((const small_pair *)two)->labels;
    return (a > b) - (a < b);
}

static void sort_pairs(small_pair *all, int64_t count)
{
    if (count > FEW_SORTED) {
        qsort(all, (size_t)count, sizeof *all, compare_pairs);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        small_pair moved = all[i];
        int64_t at = i;
        for (; at && all[at - 1].labels > moved.labels; at--)
            all[at] = all[at - 1];
        all[at] = moved;
    }
}

/* List the pairs of labels at equal positions of two small maps by rising labels: the true ones, the predicted ones and
 * the pixels, each list with space for `count` numbers. */
SJ_EXPORT int sj_small_pairs(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    int64_t *lists, int64_t *found)
{
    map one = {truth, count, truth_size}, two = {prediction, count, prediction_size};
    if (!is_map(&one) || !is_map(&two) || count < 1 || count > SMALL_MAP || !lists || !found)
        return SJ_BAD_CALL;
    small_pair all[SMALL_MAP];
    int64_t runs = 0, pairs = 0;
    for (int64_t i = 0; i < count; i++) {
        uint32_t predicted = label_at(&two, i);
        uint64_t labels = (uint64_t)label_at(&one, i) << 32 | predicted;
        if (predicted >> LABEL_BITS)
            return SJ_BAD_DATA;
        if (runs && all[runs - 1].labels == labels)
            all[runs - 1].pixels++;
        else
            all[runs++] = (small_pair){labels, 1};
    }
    sort_pairs(all, runs);
    for (int64_t i = 0; i < runs; i++) {
        if (i && all[i].labels == all[i - 1].labels) {
            lists[2 * count + pairs - 1] += all[i].pixels;
            continue;
        }
        lists[pairs] = (int64_t)(all[i].labels >> 32), lists[count + pairs] = (int64_t)(all[i].labels & UINT32_MAX);
        lists[2 * count + pairs++] = all[i].pixels;
    }
    *found = pairs;
    return SJ_FINE;
}

/* Flag the pixels of a row whose label extends at least this far on both sides. */
static void flag_runs(uint32_t *flags, const uint32_t *row, int64_t width, int64_t reach)
{
    map labels = {(const uint8_t *)row, width, sizeof *row};
    memset(flags, 0, (size_t)width * sizeof *flags);
    for (int64_t x = 0, end; x < width; x = end) {
        end = end_of_run(&labels, x);
        if (end - x > 2 * reach)
            memset(flags + x + reach, 0xff, (size_t)(end - x - 2 * reach) * sizeof *flags);
    }
}

/* Copy a map, replacing by `inner` each pixel whose non-zero label fills the box that extends this far on all sides. */
SJ_EXPORT int sj_boundaries(
    const uint32_t *labels, int64_t height, int64_t width, int64_t reach, uint32_t inner, uint32_t *out)
{
    if (!labels || !out || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE || reach < 1
        || reach > MOST_SIDE)
        return SJ_BAD_CALL;
    uint32_t *flags = calloc((size_t)(2 * width), sizeof *flags);
    if (!flags)
        return SJ_NO_MEMORY;
    uint32_t *rows = flags + width; /* the number of rows up to this one in which a pixel was flagged with its label */
    for (int64_t y = 0; y < height; y++) {
        const uint32_t *row = labels + y * width, *above = y ? row - width : row;
        memcpy(out + y * width, row, (size_t)width * sizeof *out);
        flag_runs(flags, row, width, reach);
        for (int64_t x = 0; x < width; x++)
            rows[x] = ((rows[x] & -(uint32_t)(row[x] == above[x])) + 1) & flags[x];
        if (y < 2 * reach)
            continue;
        uint32_t *middle = out + (y - reach) * width;
        for (int64_t x = 0; x < width; x++)
            middle[x] = (int32_t)rows[x] > 2 * (int32_t)reach && middle[x] ? inner : middle[x];
    }
    free(flags);
    return SJ_FINE;
}
