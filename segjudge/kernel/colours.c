/* The rows of a PNG → one number for each pixel. */
#include "kernel.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SIDE (1 << 20)
#define MOST_CHANNELS 4

static int distance(int a, int b) { return a > b ? a - b : b - a; }

/* What PNG guesses from the bytes to the left, above, and above the left. */
static uint8_t guess(uint8_t left, uint8_t up, uint8_t corner)
{
    int sum = left + up - corner, a = distance(sum, left), b = distance(sum, up), c = distance(sum, corner);
    return a <= b && a <= c ? left : b <= c ? up : corner;
}

/* Undo "Paeth".  Where residuals are zero and the row above does not change, the pixel on the left is repeated. */
static void add_guesses(uint8_t *row, const uint8_t *residuals, const uint8_t *above, int64_t count, int step)
{
    for (int64_t i = 0; i < count;) {
        int64_t end = i + 8 < count ? i + 8 : count;
        if (end == i + 8 && sj_load(residuals + i) == 0 && sj_load(above + i) == sj_load(above + i - step))
            for (; i < end; i++)
                row[i] = row[i - step];
        else
            for (; i < end; i++)
                row[i] = (uint8_t)(residuals[i] + guess(row[i - step], above[i], above[i - step]));
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
static int undo(uint8_t *row, const uint8_t *source, const uint8_t *above, int64_t count, int step)
{
    const uint8_t *residuals = source + 1;
    switch (source[0]) {
    case 0:
        memcpy(row, residuals, (size_t)count);
        return 1;
    case 1:
        for (int64_t i = 0; i < count; i++)
            row[i] = (uint8_t)(residuals[i] + row[i - step]);
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

/* Write red + 256 × green + 65,536 × blue of each pixel, from the filtered rows of 3 or 4 channels of a byte; or the only byte. */
SJ_EXPORT int sj_codes(
    const uint8_t *raw, int64_t length, int64_t height, int64_t width, int32_t channels, uint32_t *codes)
{
    if (!raw || !codes || height < 1 || width < 1 || height > MOST_SIDE || width > MOST_SIDE
        || (channels != 1 && channels != 3 && channels != MOST_CHANNELS) || length != height * (1 + width * channels))
        return SJ_BAD_CALL;
    int64_t count = width * channels;
    uint8_t *space = calloc(1, (size_t)(2 * count + 3 * MOST_CHANNELS)); /* an empty pixel around each row */
    if (!space)
        return SJ_NO_MEMORY;
    uint8_t *row = space + MOST_CHANNELS, *above = row + count + MOST_CHANNELS;
    uint32_t mask = channels == 1 ? 0xff : 0xffffff;
    int status = SJ_FINE;
    for (int64_t y = 0; y < height && status == SJ_FINE; y++) {
        if (y && repeats(raw + y * (count + 1), count)) {
            memcpy(codes, codes - width, (size_t)width * sizeof *codes);
            codes += width;
            continue;
        }
        if (!undo(row, raw + y * (count + 1), above, count, channels)) {
            status = SJ_BAD_DATA;
            break;
        }
        const uint8_t *at = row;
        for (int64_t x = 0; x < width; x++, at += channels)
            *codes++ = ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24)
                & mask; /* four bytes are one load */
        uint8_t *other = above;
        above = row;
        row = other;
    }
    free(space);
    return status;
}
