/* Masks of sequences -> the data of a page: runs of small images, their bytes, and masks grown by a disk. */
#include "kernel.h"

#include <stdlib.h>

#define WORD 64
#define MOST_SIDE ((int64_t)1 << 24)
#define MOST_WORDS ((int64_t)1 << 36)

static int is_shape(int64_t frames, int64_t rows, int64_t across)
{
    return frames >= 0 && rows >= 0 && across >= 0 && frames <= MOST_SIDE && rows <= MOST_SIDE && across <= MOST_SIDE
        && (!rows || !across || frames <= MOST_WORDS / rows / across);
}

/* Find the starts and ends of the runs of small images, in frames of (rows, across) words with some picked rows.
 *
 * `columns` has for each pixel the number of small columns before it. Runs that no column shows are omitted. `first`
 * is the position of the first picked row; `per_row` and `per_frame` are pixels of the small images. */
SJ_EXPORT int sj_small_runs(
    const uint64_t *words, int64_t frames, int64_t rows, int64_t across, const int64_t *picked, int64_t picked_count,
    const int64_t *columns, int64_t column_count, int64_t first, int64_t per_row, int64_t per_frame, int64_t *starts,
    int64_t *ends, int64_t room, int64_t *count)
{
    if (!words || !picked || !columns || !starts || !ends || !count || !is_shape(frames, rows, across) || picked_count < 0
        || picked_count > MOST_SIDE || column_count < across * WORD + 1 || room < 0
        || first < 0 || first > MOST_WORDS || per_row < 0 || per_row > MOST_SIDE || per_frame < 0 || per_frame > MOST_WORDS)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < picked_count; i++)
        if (picked[i] < 0 || picked[i] >= rows)
            return SJ_BAD_CALL;
    int64_t done = 0;
    for (int64_t frame = 0; frame < frames; frame++)
        for (int64_t i = 0; i < picked_count; i++) {
            const uint64_t *line = words + (frame * rows + picked[i]) * across;
            int64_t place = frame * per_frame + first + i * per_row, start = -1;
            uint64_t last = 0; /* the pixel before a word */
            for (int64_t x = 0; x <= across; x++) {
                uint64_t word = x < across ? line[x] : 0, edges = word ^ (word << 1 | last);
                last = x < across ? word >> (WORD - 1) : 0;
                for (; edges; edges &= edges - 1) {
                    int64_t at = place + columns[x * WORD + __builtin_ctzll(edges)];
                    if (start < 0) {
                        start = at;
                        continue;
                    }
                    if (start < at) {
                        if (done == room)
                            return SJ_FULL;
                        starts[done] = start, ends[done++] = at;
                    }
                    start = -1;
                }
            }
        }
    *count = done;
    return SJ_FINE;
}

/* Write numbers in groups of seven bits, lowest first, up to a number of bytes; the eighth bit marks continuation. */
SJ_EXPORT int sj_groups(const int64_t *numbers, int64_t count, int64_t groups, uint8_t *out, int64_t room, int64_t *length)
{
    if (!numbers || !out || !length || count < 0 || groups < 1 || groups > 9 || room < 0 || count > room / groups)
        return SJ_BAD_CALL;
    uint8_t *at = out;
    for (int64_t i = 0; i < count; i++) {
        int64_t rest = numbers[i];
        for (int64_t group = 1; group < groups && rest >> 7 > 0; group++, rest >>= 7)
            *at++ = (uint8_t)((rest & 127) | 128);
        *at++ = (uint8_t)(rest & 127);
    }
    *length = at - out;
    return SJ_FINE;
}

/* Unite each row with itself moved by up to `step` pixels either way; step is below a word. */
static void widen(uint64_t *out, const uint64_t *in, int64_t rows, int64_t across, int64_t step)
{
    for (int64_t y = 0; y < rows; y++, in += across, out += across)
        for (int64_t x = 0; x < across; x++) {
            uint64_t left = x ? in[x - 1] : 0, right = x + 1 < across ? in[x + 1] : 0;
            out[x] = in[x] | in[x] << step | in[x] >> step | left >> (WORD - step) | right << (WORD - step);
        }
}

/* Set the pixels within a disk around any set pixel; `halves` has the disk's half widths by rows from the centre,
 * falling. */
SJ_EXPORT int sj_grow(
    const uint64_t *words, int64_t frames, int64_t rows, int64_t across, const int64_t *halves, int64_t count, uint64_t *out)
{
    if (!words || !halves || !out || !is_shape(frames, rows, across) || count < 1 || count > MOST_SIDE)
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++)
        if (halves[i] < 0 || halves[i] > MOST_SIDE || (i && halves[i] > halves[i - 1]))
            return SJ_BAD_CALL;
    int64_t area = rows * across, farthest = (count < rows ? count : rows) - 1;
    uint64_t *scratch = malloc((size_t)(2 * area + 1) * sizeof *scratch);
    if (!scratch)
        return SJ_NO_MEMORY;
    for (int64_t frame = 0; frame < frames && area; frame++) {
        uint64_t *wide = scratch, *next = scratch + area, *grown = out + frame * area;
        int64_t width = 0;
        memcpy(wide, words + frame * area, (size_t)area * sizeof *wide);
        memset(grown, 0, (size_t)area * sizeof *grown);
        for (int64_t away = farthest; away >= 0; away--) {
            while (width < halves[away]) {
                int64_t step = halves[away] - width;
                step = step > 2 * width + 1 ? 2 * width + 1 : step;
                step = step > WORD - 1 ? WORD - 1 : step;
                widen(next, wide, rows, across, step);
                uint64_t *other = wide;
                wide = next, next = other, width += step;
            }
            for (int64_t i = 0, end = (rows - away) * across; i < end; i++)
                grown[i + away * across] |= wide[i];
            for (int64_t i = 0, end = away ? (rows - away) * across : 0; i < end; i++)
                grown[i] |= wide[i + away * across];
        }
    }
    free(scratch);
    return SJ_FINE;
}
