/* Maps with a label for each pixel: the boundaries of what they show, and which pairs of labels two of them have. */
#include "kernel.h"

#include <stdlib.h>

#define MOST_SIDE (1 << 20)
#define MOST_PIXELS ((int64_t)1 << 40)
#define MOST_ROOM (1 << 20)

/* Labels of so many bytes each. */
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

/* What differs between so many bytes and those a label further on. */
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

/* The pairs that were found, and where each is: an open table of their indices, from 1. */
typedef struct {
    uint32_t *labels; /* two for each pair */
    int64_t *pixels;
    int64_t count, room;
    uint32_t *slots;
    uint32_t mask;
} table;

/* Add pixels to a pair; return whether there was room. */
static int add_pair(table *all, uint32_t one, uint32_t two, int64_t pixels)
{
    uint32_t slot = (uint32_t)((((uint64_t)one << 32 | two) * 0x9e3779b97f4a7c15u) >> 32) & all->mask;
    for (; all->slots[slot]; slot = (slot + 1) & all->mask) {
        int64_t found = all->slots[slot] - 1;
        if (all->labels[2 * found] == one && all->labels[2 * found + 1] == two) {
            all->pixels[found] += pixels;
            return 1;
        }
    }
    if (all->count == all->room)
        return 0;
    all->labels[2 * all->count] = one, all->labels[2 * all->count + 1] = two;
    all->pixels[all->count] = pixels;
    all->slots[slot] = (uint32_t)++all->count;
    return 1;
}

/* Find the pairs of labels that two maps have at the same pixels, and in how many: `labels` and `pixels` take so many. */
SJ_EXPORT int sj_label_pairs(
    const uint8_t *truth, int32_t truth_size, const uint8_t *prediction, int32_t prediction_size, int64_t count,
    uint32_t *labels, int64_t *pixels, int64_t room, int64_t *found)
{
    map one = {truth, count, truth_size}, two = {prediction, count, prediction_size};
    if (!is_map(&one) || !is_map(&two) || count < 1 || count > MOST_PIXELS || !labels || !pixels || room < 1
        || room > MOST_ROOM || !found)
        return SJ_BAD_CALL;
    uint32_t slots = 2;
    while (slots < 2 * room)
        slots *= 2;
    table all = {labels, pixels, 0, room, calloc(slots, sizeof *all.slots), slots - 1};
    if (!all.slots)
        return SJ_NO_MEMORY;
    int status = SJ_FINE;
    for (int64_t at = 0, end = 0, other = 0; at < count && status == SJ_FINE;) {
        end = at == end ? end_of_run(&one, at) : end;
        other = at == other ? end_of_run(&two, at) : other;
        int64_t next = end < other ? end : other;
        if (!add_pair(&all, label_at(&one, at), label_at(&two, at), next - at))
            status = SJ_FULL;
        at = next;
    }
    free(all.slots);
    *found = all.count;
    return status;
}

/* Flag the pixels of a row around which a label reaches so far on both sides. */
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

/* Copy a map, with `inner` for each pixel of a label, but 0, that fills the box that reaches so far on all sides. */
SJ_EXPORT int sj_boundaries(
    const uint32_t *labels, int64_t height, int64_t width, int64_t reach, uint32_t inner, uint32_t *out)
{
    if (!labels || !out || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE || reach < 1
        || reach > MOST_SIDE)
        return SJ_BAD_CALL;
    uint32_t *flags = calloc((size_t)(2 * width), sizeof *flags);
    if (!flags)
        return SJ_NO_MEMORY;
    uint32_t *rows = flags + width; /* for how many rows, up to this one, a pixel has been flagged with its label */
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
