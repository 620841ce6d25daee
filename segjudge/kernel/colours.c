/* The rows of a PNG → one number for each pixel. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SIDE (1 << 20)
#define MOST_CHANNELS 4
/* Made anew for each number of bytes of a pixel, which is known then. */
#define INLINE static inline __attribute__((always_inline))

static int distance(int a, int b) { return a > b ? a - b : b - a; }

/* What PNG guesses from the bytes to the left, above, and above the left. */
static uint8_t guess(uint8_t left, uint8_t up, uint8_t corner)
{
    int sum = left + up - corner, a = distance(sum, left), b = distance(sum, up), c = distance(sum, corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Undo "Sub".  Where residuals are zero, the pixel on the left is repeated. */
INLINE void add_left(uint8_t *row, const uint8_t *residuals, int64_t count, const int step)
{
    for (int64_t i = 0; i < count;) {
        int64_t end = i + 8 < count ? i + 8 : count;
        if (end == i + 8 && sj_load(residuals + i) == 0)
            for (; i < end; i++)
                row[i] = row[i - step];
        else
            for (; i < end; i++)
                row[i] = (uint8_t)(residuals[i] + row[i - step]);
    }
}

/* Undo "Paeth".  Where residuals are zero, a pixel is the one on the left if the row above does not change, and the one
 * above if that on the left is. */
INLINE void add_guesses(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count, const int step)
{
    for (int64_t i = 0; i < count;) {
        int64_t end = i + 8 < count ? i + 8 : count;
        int plain = end == i + 8 && sj_load(residuals + i) == 0;
        if (plain && memcmp(row + i - step, above + i - step, (size_t)step) == 0) {
            memcpy(row + i, above + i, 8);
            i = end;
        } else if (plain && sj_load(above + i) == sj_load(above + i - step)) {
            for (; i < end; i++)
                row[i] = row[i - step];
        } else {
            for (; i < end; i++)
                row[i] = (uint8_t)(residuals[i] + guess(row[i - step], above[i], above[i - step]));
        }
    }
}

/* Say whether a row is the one above. */
static int repeats(const uint8_t *source, int64_t count)
{
    uint8_t any = 0;
    if (source[0] != 2)
        return 0;
    for (int64_t i = 1; i <= count; i++)
        any |= source[i];
    return !any;
}

/* Undo the filter of one row, whose pixels have so many bytes; before `row` and `above` there is an empty pixel. */
INLINE int undo(uint8_t *row, const uint8_t *source, const uint8_t *above, int64_t count, const int step)
{
    const uint8_t *residuals = source + 1;
    switch (source[0]) {
    case 0:
        memcpy(row, residuals, (size_t)count);
        return 1;
    case 1:
        add_left(row, residuals, count, step);
        return 1;
    case 2:
        for (int64_t i = 0; i < count; i++)
            row[i] = (uint8_t)(residuals[i] + above[i]);
        return 1;
    case 3:
        for (int64_t i = 0; i < count; i++)
            row[i] = (uint8_t)(residuals[i] + ((row[i - step] + above[i]) >> 1));
        return 1;
    case 4:
        add_guesses(row, residuals, above, count, step);
        return 1;
    default:
        return 0;
    }
}

static int undo_row(uint8_t *row, const uint8_t *source, const uint8_t *above, int64_t count, int step)
{
    switch (step) {
    case 1: return undo(row, source, above, count, 1);
    case 3: return undo(row, source, above, count, 3);
    default: return undo(row, source, above, count, 4);
    }
}

/* Write red + 256 × green + 65,536 × blue of each pixel as four bytes. */
INLINE void put_codes(uint8_t *out, const uint8_t *row, int64_t width, const int step)
{
    for (int64_t x = 0; x < width; x++) {
        uint32_t code;
        memcpy(&code, row + x * step, sizeof code);
        code &= 0xffffff;
        memcpy(out + x * (int64_t)sizeof code, &code, sizeof code);
    }
}

static void put_row(uint8_t *out, const uint8_t *row, int64_t width, int step)
{
    switch (step) {
    case 1: memcpy(out, row, (size_t)width); break;
    case 3: put_codes(out, row, width, 3); break;
    default: put_codes(out, row, width, 4); break;
    }
}

/* Write the number of each pixel, from its filtered rows: of 3 or 4 channels red + 256 × green + 65,536 × blue, as four
 * bytes; of one channel its byte. */
SJ_EXPORT int sj_codes(
    const uint8_t *raw, int64_t length, int64_t height, int64_t width, int32_t channels, uint8_t *out)
{
    if (!raw || !out || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE
        || (channels != 1 && channels != 3 && channels != MOST_CHANNELS) || length != height * (1 + width * channels))
        return SJ_BAD_CALL;
    int64_t count = width * channels, row_bytes = channels == 1 ? width : width * (int64_t)sizeof(uint32_t);
    uint8_t *space = calloc(1, (size_t)(2 * count + 3 * MOST_CHANNELS)); /* an empty pixel around each row */
    if (!space)
        return SJ_NO_MEMORY;
    uint8_t *row = space + MOST_CHANNELS, *above = row + count + MOST_CHANNELS;
    int status = SJ_FINE;
    for (int64_t y = 0; y < height && status == SJ_FINE; y++, raw += count + 1, out += row_bytes) {
        if (y && repeats(raw, count)) {
            memcpy(out, out - row_bytes, (size_t)row_bytes);
            continue;
        }
        if (!undo_row(row, raw, above, count, channels))
            status = SJ_BAD_DATA;
        put_row(out, row, width, channels);
        uint8_t *other = above;
        above = row;
        row = other;
    }
    free(space);
    return status;
}
