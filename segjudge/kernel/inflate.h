/* DEFLATE streams and PNG files, read row by row. */
#ifndef SEGJUDGE_INFLATE_H
#define SEGJUDGE_INFLATE_H

#include "kernel.h"

/* The maximum distance in a stream, and the maximum length of a copy. */
#define SJ_WINDOW (1 << 15)
#define SJ_LONGEST_COPY 258
/* The number of scratch bytes after the output that may be overwritten. */
#define SJ_SLACK (SJ_LONGEST_COPY + 64)

/* The number of bits that a table looks up at once. */
#define SJ_CODE_BITS 10
#define SJ_CODE_SLOTS (1 << SJ_CODE_BITS)
#define SJ_MOST_SYMBOLS 288
#define SJ_LONGEST_CODE 15

typedef struct {
    uint32_t table[SJ_CODE_SLOTS];
    uint32_t entries[SJ_MOST_SYMBOLS]; /* by length of code, then by symbol */
    uint16_t counts[SJ_LONGEST_CODE + 1];
    int long_first, long_at; /* the first code that is longer than the table's bits, as a number, and its entry */
} sj_code;

typedef struct {
    const uint8_t *in, *end;
    uint64_t bits;
    int count;      /* the remaining bits in `bits`; below 0 if there were too few */
    int is_last, is_coded, has_ended;
    int64_t stored; /* the remaining bytes of a stored block */
    int64_t reach;  /* the maximum distance */
    sj_code literals, distances;
} sj_inflater;

/* Begin to inflate a stream with zlib's header; return SJ_BAD_DATA for others. */
int sj_inflate_begin(sj_inflater *stream, const uint8_t *data, int64_t length);

/* Inflate from out[*at] on until *at is at least `limit`, which leaves SJ_SLACK bytes free, or the stream ends. */
int sj_inflate_some(sj_inflater *stream, uint8_t *out, int64_t *at, int64_t limit);

/* Return whether an ended stream has this checksum. */
int sj_inflate_matches(sj_inflater *stream, uint32_t checksum);

#endif
