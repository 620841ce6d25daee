/* The points of a scan -> their numbers by true class and predicted label, in one pass.
 *
 * A point's label is in the lower 16 bits of its number. */
#include "points.h"

#include <stdlib.h>

#define LABEL_END ((int64_t)1 << SJ_LABEL_BITS)
#define MOST_CELLS ((int64_t)1 << 20)
/* Points take the parts of a cell in turns, because updating one number twice in a row is slow. */
#define LANES 4
#define BLOCK 1024
/* The cells that are examined together. */
#define SKIPPED 8

/* Half of a cell's parts, of a size that processors scale an index by. */
typedef struct {
    uint32_t parts[LANES / 2];
} cell;

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
    return (uint16_t)word;
}

/* Return whether the labels of a block are below their ends, by the signs of differences. */
static int have_cells(const uint8_t *one, uint32_t end, const uint8_t *two, uint32_t other_end, int64_t count)
{
    uint32_t beyond = 0;
    for (int64_t i = 0; i < count; i++)
        beyond |= (end - 1 - label_at(one, i)) | (other_end - 1 - label_at(two, i));
    return !(beyond >> 31);
}

/* Count the points of a block; `rows` has the start of each true label's row, in both halves of a cell's parts. */
static void count_block(const uint8_t *one, const uint8_t *two, int64_t count, cell *const *rows, cell *const *more)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        rows[label_at(one, i)][label_at(two, i)].parts[0]++;
        rows[label_at(one, i + 1)][label_at(two, i + 1)].parts[1]++;
        more[label_at(one, i + 2)][label_at(two, i + 2)].parts[0]++;
        more[label_at(one, i + 3)][label_at(two, i + 3)].parts[1]++;
    }
    for (; i < count; i++)
        rows[label_at(one, i)][label_at(two, i)].parts[0]++;
}

/* Return whether one of the next cells has points. */
static inline int has_points(const cell *cells)
{
    uint64_t any = 0, word;
    for (int i = 0; i < SKIPPED; i++) {
        memcpy(&word, cells + i, sizeof word);
        any |= word;
    }
    return any != 0;
}

/* Write the key and the points of each cell that has points; return their number. */
static int64_t list_cells(const cell *cells, int64_t half, int64_t classes, int64_t labels, int64_t *keys, int64_t *sums)
{
    int64_t count = 0;
    for (int64_t class = 0; class < classes; class++, cells += labels)
        for (int64_t label = 0; label < labels; label++) {
            /* Most cells have none. */
            while (label + SKIPPED <= labels && !has_points(cells + label) && !has_points(cells + half + label))
                label += SKIPPED;
            if (label == labels)
                break;
            const uint32_t *one = cells[label].parts, *two = cells[half + label].parts;
            int64_t sum = (int64_t)one[0] + one[1] + two[0] + two[1];
            if (sum)
                keys[count] = sj_key(class, label), sums[count++] = sum;
        }
    return count;
}

/* Count points by true class and predicted label, and write the key and the points of each pair that has some.
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
    cell *cells = calloc((size_t)(2 * size_of_table), sizeof *cells);
    cell **rows = malloc((size_t)(2 * labels) * sizeof *rows);
    uint32_t copies[BLOCK];
    int status = cells && rows ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t i = 0; i < labels && status == SJ_FINE; i++) {
        rows[i] = cells + (classes[i] < count ? classes[i] : count) * columns;
        rows[labels + i] = rows[i] + size_of_table;
    }
    for (int64_t at = 0, taken; at < points && status == SJ_FINE; at += taken) {
        taken = points - at < BLOCK ? points - at : BLOCK;
        const uint8_t *one = words_of(truth, size, at, taken, copies), *two = prediction + 4 * at;
        if (have_cells(one, (uint32_t)labels, two, (uint32_t)columns, taken))
            count_block(one, two, taken, rows, rows + labels);
        else
            status = SJ_BAD_DATA;
    }
    if (status == SJ_FINE)
        *found = list_cells(cells, size_of_table, count, columns, keys, sums);
    free(cells);
    free(rows);
    return status;
}
