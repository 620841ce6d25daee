/* The points of a scan -> their numbers by true class and predicted label, in one pass.
 *
 * A point's label is in the lower 16 bits of its number. */
#include "points.h"

#include <stdlib.h>

#define LABEL_END ((int64_t)1 << SJ_LABEL_BITS)
#define MOST_CELLS ((int64_t)1 << 20)
/* The parts of a cell, which points take in turns, because updating one number twice in a row is slow. */
#define LANES 4
#define BLOCK 1024

int64_t sj_list_cells(const int64_t *table, int64_t classes, int64_t labels, int64_t *keys, int64_t *points)
{
    int64_t count = 0;
    for (int64_t class = 0; class < classes; class++)
        for (int64_t label = 0; label < labels; label++, table++)
            if (*table)
                keys[count] = class << SJ_LABEL_BITS | label, points[count++] = *table;
    return count;
}

/* Return the numbers of some points as 32 bits each, copied unless they are. */
static const uint8_t *words_of(const uint8_t *numbers, int32_t size, int64_t at, int64_t count, uint32_t *copies)
{
    const uint8_t *bytes = numbers + at * size;
    if (size == 4)
        return bytes;
    for (int64_t i = 0; i < count; i++)
        copies[i] = size == 1 ? bytes[i] : (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
    return (const uint8_t *)copies;
}

static inline uint32_t label_at(const uint8_t *words, int64_t i)
{
    uint32_t word;
    memcpy(&word, words + 4 * i, sizeof word);
    return word & (uint32_t)(LABEL_END - 1);
}

/* Return whether the labels of a block are below their ends, by the signs of differences. */
static int have_cells(const uint8_t *one, uint32_t end, const uint8_t *two, uint32_t other_end, int64_t count)
{
    uint32_t beyond = 0;
    for (int64_t i = 0; i < count; i++)
        beyond |= (end - 1 - label_at(one, i)) | (other_end - 1 - label_at(two, i));
    return !(beyond >> 31);
}

/* Count the points of a block, two at a time; `rows` has the start of each true label's row. */
static void count_block(const uint8_t *one, const uint8_t *two, int64_t count, const uint32_t *rows, uint32_t *cells)
{
    uint64_t mask = (uint64_t)(LABEL_END - 1) << 32 | (LABEL_END - 1);
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane += 2) {
            uint64_t labels = sj_load(one + 4 * (i + lane)) & mask, columns = sj_load(two + 4 * (i + lane)) & mask;
            cells[rows[(uint32_t)labels] + LANES * (uint32_t)columns + lane]++;
            cells[rows[labels >> 32] + LANES * (uint32_t)(columns >> 32) + lane + 1]++;
        }
    for (; i < count; i++)
        cells[rows[label_at(one, i)] + LANES * label_at(two, i)]++;
}

/* Sum the parts of all cells in a table. */
static void join_lanes(const uint32_t *cells, int64_t count, int64_t *table)
{
    for (int64_t i = 0; i < count; i++, cells += LANES)
        table[i] = (int64_t)cells[0] + cells[1] + cells[2] + cells[3];
}

/* Count points by true class and predicted label, and write what `sj_list_cells` writes.
 *
 * `classes` has the class of each label of the truth; points of no class are skipped. Predicted labels must be below
 * `columns`. There is space for `count * columns` keys. */
SJ_EXPORT int sj_points(
    const uint8_t *truth, int32_t size, const uint8_t *prediction, int64_t points, const uint16_t *classes, int64_t labels,
    int64_t count, int64_t columns, int64_t *keys, int64_t *sums, int64_t *found)
{
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points > UINT32_MAX || !classes
        || labels < 1 || labels > LABEL_END || count < 1 || count >= LABEL_END || columns < 1 || columns > LABEL_END
        || (count + 1) * columns > MOST_CELLS || !keys || !sums || !found)
        return SJ_BAD_CALL;
    /* The last row is for points of no class. */
    int64_t size_of_table = (count + 1) * columns;
    uint32_t *cells = calloc((size_t)(size_of_table * LANES), sizeof *cells);
    uint32_t *rows = malloc((size_t)labels * sizeof *rows), copies[BLOCK];
    int64_t *table = malloc((size_t)size_of_table * sizeof *table);
    int status = cells && rows && table ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; i < labels && status == SJ_FINE; i++)
        rows[i] = (uint32_t)((classes[i] < count ? classes[i] : count) * columns * LANES);
    for (int64_t at = 0, taken; at < points && status == SJ_FINE; at += taken) {
        taken = points - at < BLOCK ? points - at : BLOCK;
        const uint8_t *one = words_of(truth, size, at, taken, copies), *two = prediction + 4 * at;
        if (have_cells(one, (uint32_t)labels, two, (uint32_t)columns, taken))
            count_block(one, two, taken, rows, cells);
        else
            status = SJ_BAD_DATA;
    }
    if (status == SJ_FINE) {
        join_lanes(cells, size_of_table, table);
        *found = sj_list_cells(table, count, columns, keys, sums);
    }
    free(cells);
    free(rows);
    free(table);
    return status;
}
