/* Label maps -> the boundaries of segments in one map, and the pairs of labels in two maps. */
#include "tally.h"

#define MOST_SIDE (1 << 20)
#define MOST_PIXELS ((int64_t)1 << 40)
#define MOST_ROOM (1 << 26)
#define MOST_CELLS ((int64_t)1 << 20)

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

/* Return where the run of equal labels ends that begins at i, eight bytes at a time. */
static int64_t end_of_run(const map *a, int64_t i)
{
    const uint8_t *start = a->bytes + i * a->size, *at = start, *last = a->bytes + (a->count - 1) * a->size;
    for (; last - at >= 8; at += 8) {
        uint64_t change = sj_load(at) ^ sj_load(at + a->size);
        if (change)
            return i + 1 + (at - start + __builtin_ctzll(change) / 8) / a->size;
    }
    while (at < last && *at == at[a->size])
        at++;
    return i + 1 + (at - start) / a->size;
}

/* Two maps of one size, the position of counting, and the ends of the current runs. */
typedef struct {
    map one, two;
    int64_t at, end, other;
} walk;

/* Return the number of pixels from here with one pair of labels. */
static int64_t run_from(walk *from)
{
    from->end = from->at >= from->end ? end_of_run(&from->one, from->at) : from->end;
    from->other = from->at >= from->other ? end_of_run(&from->two, from->at) : from->other;
    return (from->end < from->other ? from->end : from->other) - from->at;
}

/* Count the pixels of each pair of labels in a table, whose rows and columns they must be below. */
SJ_EXPORT int sj_label_table(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    int64_t rows, int64_t columns, int64_t *table)
{
    walk from = {{truth, count, truth_size}, {prediction, count, prediction_size}, 0, 0, 0};
    if (!is_map(&from.one) || !is_map(&from.two) || count < 1 || count > MOST_PIXELS || !table || rows < 1 || columns < 1
        || rows > MOST_CELLS || columns > MOST_CELLS || rows * columns > MOST_CELLS)
        return SJ_BAD_CALL;
    while (from.at < count) {
        int64_t row = label_at(&from.one, from.at), column = label_at(&from.two, from.at), run = run_from(&from);
        if (row >= rows || column >= columns)
            return SJ_BAD_DATA;
        table[row * columns + column] += run;
        from.at += run;
    }
    return SJ_FINE;
}

/* Find the pairs of labels at equal positions of two maps, and their numbers of pixels, in the order of their first
 * pixels; return SJ_FULL if there are more than `room`. */
SJ_EXPORT int sj_label_pairs(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    uint32_t *labels, int64_t *pixels, int64_t room, int64_t *found)
{
    walk from = {{truth, count, truth_size}, {prediction, count, prediction_size}, 0, 0, 0};
    sj_tally all;
    if (!is_map(&from.one) || !is_map(&from.two) || count < 1 || count > MOST_PIXELS || !labels || !pixels || room < 1
        || room > MOST_ROOM || !found)
        return SJ_BAD_CALL;
    int status = sj_open_tally(&all);
    while (from.at < count && status == SJ_FINE) {
        uint64_t key = (uint64_t)label_at(&from.one, from.at) << 32 | label_at(&from.two, from.at);
        int64_t run = run_from(&from);
        status = sj_add(&all, key, run) < 0 ? SJ_NO_MEMORY : all.count > room ? SJ_FULL : SJ_FINE;
        from.at += run;
    }
    *found = status == SJ_FINE ? all.count : 0;
    for (int64_t i = 0; i < *found; i++)
        labels[2 * i] = (uint32_t)(all.items[i].key >> 32), labels[2 * i + 1] = (uint32_t)all.items[i].key, pixels[i] = all.items[i].sum;
    sj_close_tally(&all);
    return status;
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
