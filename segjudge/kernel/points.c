/* The points of a scan, in memory or in files -> their numbers by true class and predicted label, in one pass.
 *
 * A point's label is in the lower 16 bits of its number. */
#include "points.h"

#include <stdlib.h>
#include <unistd.h>

#define LABEL_END ((int64_t)1 << SJ_LABEL_BITS)
#define MOST_CELLS ((int64_t)1 << 20)
/* Points take the parts of a cell in turns, because updating one number twice in a row is slow. */
#define LANES 8
#define BLOCK 1024
/* More blocks could overflow a part; the last one may be short, and gives a part up to LANES - 1 points more. */
#define MOST_BLOCKS ((UINT16_MAX - LANES) / (BLOCK / LANES))
/* The cells that are examined together. */
#define SKIPPED 4
/* The bytes of a file that are read at once. */
#define CHUNK ((int64_t)1 << 16)
/* The space for them, and for one byte more. */
#define ROOM (CHUNK + 64)

/* The points of a cell, in parts that are added up. */
typedef struct {
    uint16_t parts[LANES];
} cell;

/* Return the numbers of some points as bytes or as 32 bits each, copied unless they are. */
static const uint8_t *words_of(const uint8_t *numbers, int32_t size, int64_t at, int64_t count, uint32_t *copies)
{
    const uint8_t *bytes = numbers + at * size;
    if (size != 2)
        return bytes;
    for (int64_t i = 0; i < count; i++)
        copies[i] = (uint32_t)bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
    return (const uint8_t *)copies;
}

static inline uint32_t label_at(const uint8_t *words, int64_t i)
{
    uint32_t word;
    memcpy(&word, words + 4 * i, sizeof word);
    return (uint16_t)word;
}

/* The numbers of points by true label and predicted label. */
typedef struct {
    cell *cells;
    uint32_t *rows; /* where the row of each true label's class begins among the cells */
    int64_t *sums;  /* the points of each cell that its parts have no longer; NULL if no part can overflow */
    int64_t blocks; /* the blocks that the parts have counted */
    int64_t end;    /* a power of two, below which each true label has a row */
    int64_t count, columns;
} table;

/* Return the cells of a table. Two rows follow those of classes: of points of no class, and of true labels that are
 * rejected. */
static int64_t cells_of(const table *of) { return (of->count + 2) * of->columns; }

/* Take memory for a table of so many points, which `close_table` frees in any case; return a status. */
static int open_table(table *to, int64_t points, const uint16_t *classes, int64_t labels, int64_t count, int64_t columns)
{
    int may_overflow = points > MOST_BLOCKS * BLOCK;
    *to = (table){NULL, NULL, NULL, 0, 1 << 8, count, columns};
    while (to->end < labels)
        to->end *= 2;
    to->cells = calloc((size_t)cells_of(to), sizeof *to->cells);
    to->rows = malloc((size_t)to->end * sizeof *to->rows);
    to->sums = may_overflow ? calloc((size_t)cells_of(to), sizeof *to->sums) : NULL;
    if (!to->cells || !to->rows || (may_overflow && !to->sums))
        return SJ_NO_MEMORY;
    for (int64_t i = 0; i < to->end; i++)
        to->rows[i] = (uint32_t)((i >= labels ? count + 1 : classes[i] < count ? classes[i] : count) * columns);
    return SJ_FINE;
}

static void close_table(table *of)
{
    free(of->cells);
    free(of->rows);
    free(of->sums);
}

/* Return the points that the parts of a cell have. */
static inline int64_t sum_parts(const cell *from)
{
    int64_t sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += from->parts[i];
    return sum;
}

/* Move the points of all parts to the sums. */
static void empty_parts(table *of)
{
    for (int64_t i = 0; i < cells_of(of); i++)
        of->sums[i] += sum_parts(of->cells + i);
    memset(of->cells, 0, (size_t)cells_of(of) * sizeof *of->cells);
    of->blocks = 0;
}

/* Return whether a table can have these sides. */
static int may_open(const uint16_t *classes, int64_t labels, int64_t count, int64_t columns)
{
    return classes && labels >= 1 && labels <= LABEL_END && count >= 1 && count < LABEL_END && columns >= 1
        && columns <= LABEL_END && (count + 1) * columns <= MOST_CELLS;
}

/* Return the bits that any label of a block has. */
static uint32_t bits_of(const uint8_t *words, int64_t count)
{
    uint64_t pairs[4] = {0}; /* of two words each, in turns, because each waits for the one before */
    uint32_t bits = 0;
    int64_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (int j = 0; j < 4; j++)
            pairs[j] |= sj_load(words + 4 * (i + 2 * j));
    for (; i < count; i++)
        bits |= label_at(words, i);
    pairs[0] |= pairs[1] | pairs[2] | pairs[3];
    return bits | (uint16_t)pairs[0] | (uint16_t)(pairs[0] >> 32);
}

/* Return whether the labels of a block are below their end: by their bits, or else by the signs of differences. */
static int are_below(const uint8_t *words, uint32_t end, int64_t count)
{
    uint32_t beyond = 0;
    if (bits_of(words, count) < end)
        return 1;
    for (int64_t i = 0; i < count; i++)
        beyond |= end - 1 - label_at(words, i);
    return !(beyond >> 31);
}

/* Count the points of a block, whose true numbers are bytes or words below their end. */
static inline void add_points(const table *to, const uint8_t *one, int are_bytes, const uint8_t *two, int64_t count)
{
    cell *cells = to->cells;
    const uint32_t *rows = to->rows;
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            uint32_t label = are_bytes ? one[i + lane] : label_at(one, i + lane);
            cells[rows[label] + label_at(two, i + lane)].parts[lane]++;
        }
    for (; i < count; i++)
        cells[rows[are_bytes ? one[i] : label_at(one, i)] + label_at(two, i)].parts[0]++;
}

/* Count the points of a block; return a status. */
static int count_block(table *to, const uint8_t *one, int are_bytes, const uint8_t *two, int64_t count)
{
    if (!are_below(two, (uint32_t)to->columns, count) || (!are_bytes && bits_of(one, count) >= to->end))
        return SJ_BAD_DATA;
    if (to->sums && to->blocks == MOST_BLOCKS)
        empty_parts(to);
    to->blocks++;
    if (are_bytes) /* a constant makes the loop a loop of its own */
        add_points(to, one, 1, two, count);
    else
        add_points(to, one, 0, two, count);
    return SJ_FINE;
}

/* Count points, whose numbers have so many bytes in the truth; return a status. */
static int count_all(table *to, const uint8_t *truth, int32_t size, const uint8_t *prediction, int64_t points)
{
    uint32_t copies[BLOCK];
    int status = SJ_FINE;
    for (int64_t at = 0, taken; at < points && status == SJ_FINE; at += taken) {
        taken = points - at < BLOCK ? points - at : BLOCK;
        status = count_block(to, words_of(truth, size, at, taken, copies), size == 1, prediction + 4 * at, taken);
    }
    return status;
}

/* Return whether the parts of one of the next cells have points. */
static inline int have_points(const cell *cells)
{
    uint64_t any = 0;
    for (int i = 0; i < SKIPPED; i++)
        any |= sj_load((const uint8_t *)(cells + i)) | sj_load((const uint8_t *)(cells + i) + 8);
    return any != 0;
}

/* Write the keys of the cells of classes that have points, then from `count * columns` on their points; return a status,
 * for a true label that is rejected too. */
static int list_cells(table *from, int64_t *keys, int64_t *found)
{
    int64_t columns = from->columns, *sums = keys + from->count * columns, count = 0;
    const cell *cells = from->cells, *rejected = cells + (from->count + 1) * columns;
    if (from->sums)
        empty_parts(from);
    for (int64_t label = 0; label < columns; label++)
        if (from->sums ? from->sums[rejected - cells + label] : sum_parts(rejected + label))
            return SJ_BAD_DATA;
    for (int64_t class = 0; class < from->count; class++)
        for (int64_t label = 0; label < columns; label++) {
            int64_t at = class * columns + label;
            if (!from->sums && label + SKIPPED <= columns && !have_points(cells + at)) { /* as most have none */
                label += SKIPPED - 1;
                continue;
            }
            int64_t sum = from->sums ? from->sums[at] : sum_parts(cells + at);
            if (sum)
                keys[count] = sj_key(class, label), sums[count++] = sum;
        }
    return *found = count, SJ_FINE;
}

/* Count points by true class and predicted label, and write the key and the points of each pair that has some.
 *
 * `classes` has the class of each label of the truth; points of no class are skipped. Predicted labels must be below
 * `columns`. There is space for `count * columns` keys, and behind them for as many numbers of points. */
SJ_EXPORT int sj_points(
    const uint8_t *truth, int32_t size, const uint8_t *prediction, int64_t points, const uint16_t *classes, int64_t labels,
    int64_t count, int64_t columns, int64_t *keys, int64_t *found)
{
    table to;
    if (!truth || (size != 1 && size != 2 && size != 4) || !prediction || points < 1 || points > UINT32_MAX
        || !may_open(classes, labels, count, columns) || !keys || !found)
        return SJ_BAD_CALL;
    int status = open_table(&to, points, classes, labels, count, columns);
    if (status == SJ_FINE)
        status = count_all(&to, truth, size, prediction, points);
    if (status == SJ_FINE)
        status = list_cells(&to, keys, found);
    close_table(&to);
    return status;
}

/* Read bytes of an open file until there are enough, and at most so many; return their number, which is less at its
 * end. */
static int64_t read_bytes(int file, uint8_t *bytes, int64_t enough, int64_t most)
{
    int64_t at = 0;
    for (ssize_t taken = 1; at < enough && taken > 0; at += taken > 0 ? taken : 0)
        taken = read(file, bytes + at, (size_t)(most - at));
    return at;
}

/* Count the points of two open files by chunks; return a status, also for files with fewer or more bytes. */
static int count_files(table *to, int truth, int prediction, int64_t points, uint8_t *one, uint8_t *two)
{
    int status = SJ_FINE;
    for (int64_t rest = 4 * points, due; rest && status == SJ_FINE; rest -= due) {
        due = rest < CHUNK ? rest : CHUNK;
        int64_t most = due + (due == rest); /* no file has one byte more */
        if (read_bytes(truth, one, due, most) != due || read_bytes(prediction, two, due, most) != due)
            return SJ_BAD_DATA;
        status = count_all(to, one, 4, two, due / 4);
    }
    return status;
}

/* Do what `sj_points` does for two open files, which have four bytes for each point and which are read from their positions on. */
SJ_EXPORT int sj_points_of_files(
    int32_t truth, int32_t prediction, int64_t points, const uint16_t *classes, int64_t labels, int64_t count,
    int64_t columns, int64_t *keys, int64_t *found)
{
    table to = {0};
    if (truth < 0 || prediction < 0 || points < 1 || points > UINT32_MAX || !may_open(classes, labels, count, columns)
        || !keys || !found)
        return SJ_BAD_CALL;
    uint8_t *chunks = malloc(2 * ROOM);
    int status = chunks ? open_table(&to, points, classes, labels, count, columns) : SJ_NO_MEMORY;
    if (status == SJ_FINE)
        status = count_files(&to, truth, prediction, points, chunks, chunks + ROOM);
    if (status == SJ_FINE)
        status = list_cells(&to, keys, found);
    close_table(&to);
    free(chunks);
    return status;
}
