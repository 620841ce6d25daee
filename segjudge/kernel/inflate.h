/* DEFLATE streams and PNG files, read row by row. */
#ifndef SEGJUDGE_INFLATE_H
#define SEGJUDGE_INFLATE_H

#include "kernel.h"

/* No distance in a stream is longer, and no copy. */
#define SJ_WINDOW (1 << 15)
#define SJ_LONGEST_COPY 258
/* Bytes behind the last one that may be written, which are no part of what is inflated. */
#define SJ_SLACK (SJ_LONGEST_COPY + 16)

/* Codes of so many bits are looked up at once. */
#define SJ_CODE_BITS 10
#define SJ_CODE_SLOTS (1 << SJ_CODE_BITS)
#define SJ_MOST_SYMBOLS 288
#define SJ_LONGEST_CODE 15

typedef struct {
    uint32_t table[SJ_CODE_SLOTS];
    uint32_t entries[SJ_MOST_SYMBOLS]; /* by length of code, then by symbol */
    uint16_t counts[SJ_LONGEST_CODE + 1];
} sj_code;

typedef struct {
    const uint8_t *in, *end;
    uint64_t bits;
    int count;      /* bits that are left in `bits` of what `in` has passed; below 0 where there were too few */
    int is_last, is_coded, has_ended;
    int64_t stored; /* bytes that are left of a block without a code */
    int64_t reach;  /* no distance may be longer */
    sj_code literals, distances;
} sj_inflater;

/* Begin to inflate a stream with zlib's header, or return SJ_BAD_DATA. */
int sj_inflate_begin(sj_inflater *stream, const uint8_t *data, int64_t length);

/* Inflate from out[*at] on until *at is `limit` or more, which leaves SJ_SLACK bytes behind it, or the stream ends. */
int sj_inflate_some(sj_inflater *stream, uint8_t *out, int64_t *at, int64_t limit);

/* Return whether a stream that has ended has this checksum. */
int sj_inflate_matches(sj_inflater *stream, uint32_t checksum);

#endif
