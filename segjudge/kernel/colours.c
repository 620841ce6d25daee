/* A PNG -> one number per pixel. */
#include "png.h"

/* Write red + 256 × green + 65,536 × blue of each pixel as four bytes; may read bytes after the row. */
static inline __attribute__((always_inline)) void put_codes(uint8_t *out, const uint8_t *row, int64_t width, const int step)
{
    for (int64_t x = 0; x < width; x++) {
        uint32_t code;
        memcpy(&code, row + x * step, sizeof code);
        code &= 0xffffff;
        memcpy(out + x * (int64_t)sizeof code, &code, sizeof code);
    }
}

static void put_row(uint8_t *out, const uint8_t *row, int64_t width, int channels)
{
    switch (channels) {
    case 1: memcpy(out, row, (size_t)width); break;
    case 3: put_codes(out, row, width, 3); break;
    default: put_codes(out, row, width, 4); break;
    }
}

/* Write the number of each pixel of an 8-bit PNG: for colours red + 256 × green + 65,536 × blue as four bytes, else
 * its byte. */
SJ_EXPORT int sj_read_png(
    const uint8_t *data, int64_t length, int64_t height, int64_t width, int32_t has_colours, uint8_t *out)
{
    if (!out)
        return SJ_BAD_CALL;
    sj_png png;
    int status = sj_png_open(&png, data, length, height, width);
    if (status == SJ_FINE && (png.depth != 8 || has_colours != (png.channels != 1)))
        status = SJ_BAD_DATA;
    int64_t row_bytes = has_colours ? width * (int64_t)sizeof(uint32_t) : width;
    for (int64_t y = 0; y < height && status == SJ_FINE; y++, out += row_bytes) {
        status = sj_png_next(&png);
        if (status == SJ_FINE && y && !png.has_changed)
            memcpy(out, out - row_bytes, (size_t)row_bytes);
        else if (status == SJ_FINE)
            put_row(out, png.row, width, png.channels);
    }
    if (status == SJ_FINE)
        status = sj_png_next(&png);
    sj_png_close(&png);
    return status;
}
