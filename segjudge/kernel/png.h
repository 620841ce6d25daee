/* PNG files, read row by row: in most masks, few bytes of a row differ from the previous row. */
#ifndef SEGJUDGE_PNG_H
#define SEGJUDGE_PNG_H

#include "inflate.h"

/* The size of a row's blocks, which are compared as a whole. Zeros follow the last byte up to the end of its block. */
#define SJ_BLOCK 64

typedef struct {
    int64_t height, width, row_bytes, blocks;
    int depth, channels, pixel_bytes; /* at least 1 */
    uint8_t *row;      /* the latest row without its filter */
    uint64_t *changed; /* a bit for each block: whether it differs from the previous row, at first from zeros */
    int has_changed;

    int64_t y, start, at, limit; /* of the window: the start of the next row, the end of its bytes, and their limit */
    uint8_t *memory, *joined, *space, *window;
    uint64_t checksum[2], row_sums[2];
    int row_is_plain; /* the latest row had no filter; its sums */
    sj_inflater stream;
} sj_png;

/* Copy bytes over the previous row; mark the blocks that change, and return whether any does. */
int sj_update_row(uint8_t *row, const uint8_t *bytes, int64_t count, uint64_t *changed);

/* Open a non-interlaced PNG of this size, with grey levels or indices of 1 to 8 bits, grey levels of 16, or
 * 3 or 4 channels of 8 bits.
 *
 * Return SJ_BAD_DATA for other or invalid files. Close it in any case. */
int sj_png_open(sj_png *png, const uint8_t *data, int64_t length, int64_t height, int64_t width);

/* Read the next row; after the last one, check that the stream ends correctly. */
int sj_png_next(sj_png *png);

void sj_png_close(sj_png *png);

#endif
