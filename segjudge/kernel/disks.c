/* Masks grown by a disk. */
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
