/* DEFLATE streams and PNG files, read row by row. */
#ifndef SEGJUDGE_INFLATE_H
#define SEGJUDGE_INFLATE_H

#include "kernel.h"

/* The maximum distance in a stream, and the maximum length of a copy. */
#define SJ_WINDOW (1 << 15)
#define SJ_LONGEST_COPY 258
/* The number of scratch bytes after the output that may be overwritten. */
#define SJ_SLACK (SJ_LONGEST_COPY + 80)

/* The bits that a table of literals looks up at once, and its size with the parts for longer codes: two codes share a
 * part, which has at most 16 entries; of distances, parts are longer, but fewer. */
#define SJ_CODE_BITS 11
#define SJ_MOST_SYMBOLS 288
#define SJ_LONGEST_CODE 15
#define SJ_CODE_SLOTS ((1 << SJ_CODE_BITS) + SJ_MOST_SYMBOLS / 2 * (1 << (SJ_LONGEST_CODE - SJ_CODE_BITS)))

typedef struct {
    const uint8_t *in, *end;
    uint64_t bits;
    int count;      /* the remaining bits in `bits`; below 0 if there were too few */
    int is_last, is_coded, has_ended;
    int64_t stored; /* the remaining bytes of a stored block */
    int64_t reach;  /* the maximum distance */
    uint32_t literals[SJ_CODE_SLOTS], distances[SJ_CODE_SLOTS];
} sj_inflater;

/* Begin to inflate a stream with zlib's header; return SJ_BAD_DATA for others. */
int sj_inflate_begin(sj_inflater *stream, const uint8_t *data, int64_t length);

/* Inflate from out[*at] on until *at is at least `limit`, which leaves SJ_SLACK bytes free, or the stream ends. */
int sj_inflate_some(sj_inflater *stream, uint8_t *out, int64_t *at, int64_t limit);

/* Return whether an ended stream has this checksum. */
int sj_inflate_matches(sj_inflater *stream, uint32_t checksum);

#endif
