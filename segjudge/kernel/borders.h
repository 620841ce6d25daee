/* The borders of a mask's parts, read in batches, and its pixels as bits. */
#ifndef SEGJUDGE_BORDERS_H
#define SEGJUDGE_BORDERS_H

#include "numbers.h"

/* The borders of a batch. */
#define SJ_BORDERS 1024

/* A mask being read: the pixel behind the runs so far, the last run of each kind, whether the object's is the next. */
typedef struct {
    reader from;
    int64_t at, object, background;
    int is_object;
} sj_runs;

/* Begin with the first run; return whether it is valid. */
static inline int sj_open_runs(sj_runs *of, const uint8_t *text, int64_t length)
{
    *of = (sj_runs){{text, text + length}, 0, 0, 0, length > 0};
    return !length || (take_value(&of->from, &of->at) && of->at >= 0 && of->at <= SJ_MOST_PIXELS);
}

/* Write where the next parts begin and end, which may be empty; return the number of these borders, 0 behind the last
 * part, or -1 for an invalid text. The last part ends before `of->at`, or there. */
int64_t sj_take_borders(sj_runs *of, int64_t *borders);

/* Set the bits of parts; return those that were set before. Most parts lie in one word. */
static inline uint64_t sj_set_parts(uint64_t *bits, const int64_t *borders, int64_t count)
{
    uint64_t before = 0;
    for (int64_t i = 0; i < count; i += 2) {
        int64_t from = borders[i], last = borders[i + 1] - 1, word = from >> 6, end = last >> 6;
        uint64_t mask = ~(uint64_t)0 << (from & 63);
        for (; word < end; word++, mask = ~(uint64_t)0)
            before |= bits[word] & mask, bits[word] |= mask;
        mask &= (~(uint64_t)0 >> (63 - (last & 63))) & -(uint64_t)(from <= last);
        before |= bits[word] & mask, bits[word] |= mask;
    }
    return before;
}

#endif
