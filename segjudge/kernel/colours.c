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

/* Write two bytes for each pixel, whose higher byte comes first in the row. */
static void put_greys(uint8_t *out, const uint8_t *row, int64_t width)
{
    for (int64_t x = 0; x < width; x++) {
        uint16_t grey;
        memcpy(&grey, row + 2 * x, sizeof grey);
        grey = (uint16_t)(grey >> 8 | grey << 8);
        memcpy(out + 2 * x, &grey, sizeof grey);
    }
}

static void put_row(uint8_t *out, const uint8_t *row, int64_t width, int pixel_bytes)
{
    switch (pixel_bytes) {
    case 1: memcpy(out, row, (size_t)width); break;
    case 2: put_greys(out, row, width); break;
    case 3: put_codes(out, row, width, 3); break;
    default: put_codes(out, row, width, 4); break;
    }
}

/* Write the number of each pixel of a PNG in `size` bytes: 1 for 8 bits, 2 for greys of 16 bits, and 4 for colours of
 * 8 bits, of which it is red + 256 × green + 65,536 × blue. */
SJ_EXPORT int sj_read_png(const uint8_t *data, int64_t length, int64_t height, int64_t width, int32_t size, uint8_t *out)
{
    if (!out || (size != 1 && size != 2 && size != 4))
        return SJ_BAD_CALL;
    sj_png png;
    int status = sj_png_open(&png, data, length, height, width);
    if (status == SJ_FINE && (png.depth != (size == 2 ? 16 : 8) || (size == 4) != (png.channels != 1)))
        status = SJ_BAD_DATA;
    int64_t row_bytes = width * size;
    for (int64_t y = 0; y < height && status == SJ_FINE; y++, out += row_bytes) {
        status = sj_png_next(&png);
        if (status == SJ_FINE && y && !png.has_changed)
            memcpy(out, out - row_bytes, (size_t)row_bytes);
        else if (status == SJ_FINE)
            put_row(out, png.row, width, png.pixel_bytes);
    }
    if (status == SJ_FINE)
        status = sj_png_next(&png);
    sj_png_close(&png);
    return status;
}
