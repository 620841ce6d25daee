/* PNG files, read row by row: of most masks' rows few bytes differ from the row before. */
#ifndef SEGJUDGE_PNG_H
#define SEGJUDGE_PNG_H

#include "inflate.h"

/* Bytes are compared so many at a time: blocks of a row.  Behind its last byte there are zeros up to the end of a block. */
#define SJ_BLOCK 64

typedef struct {
    int64_t height, width, row_bytes, blocks;
    int depth, channels;
    uint8_t *row;      /* the latest row without its filter */
    uint64_t *changed; /* a bit for each of its blocks: whether it differs from that of the row before, at first of zeros */
    int has_changed;

    int64_t y, start, at, limit; /* of the window: where the next row begins, where its bytes end, and how far they may */
    uint8_t *memory, *joined, *space, *window;
    uint64_t checksum[2], row_sums[2];
    int row_is_plain; /* the latest row had no filter, and these sums */
    sj_inflater stream;
} sj_png;

/* Take bytes into a row that holds the one before; mark the blocks that change, and return whether any does. */
int sj_update_row(uint8_t *row, const uint8_t *bytes, int64_t count, uint64_t *changed);

/* Open a PNG of this size: of grey levels or indices of 1 to 8 bits, or of 8 in 3 or 4 channels, and not interlaced.
 *
 * SJ_BAD_DATA says that it is another, or not quite as it should be.  What was opened has to be closed, also then.
 */
int sj_png_open(sj_png *png, const uint8_t *data, int64_t length, int64_t height, int64_t width);

/* Read the next row; behind the last one, whether the stream ends there as it should. */
int sj_png_next(sj_png *png);

void sj_png_close(sj_png *png);

#endif
