/* The borders of a mask's parts, read in batches, and its pixels as words of bits. */
#ifndef SEGJUDGE_BORDERS_H
#define SEGJUDGE_BORDERS_H

#include "numbers.h"

/* The borders of a batch, and the space for them. */
#define SJ_BORDERS 1024
#define SJ_BORDER_SPACE (SJ_BORDERS + 16)

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

/* Words of 64 pixels that are collected border by border. */
typedef struct {
    uint64_t *bits, word, before;
    int64_t number;
} sj_words;

/* Add the collected pixels to their word, and note those that it had. */
static inline void sj_add_word(sj_words *to)
{
    to->before |= to->bits[to->number] & to->word;
    to->bits[to->number] |= to->word;
}

/* Add parts. */
static inline void sj_add_parts(sj_words *to, const int64_t *borders, int64_t count)
{
    sj_words of = *to;
    for (int64_t i = 0; i < count; i++) {
        int64_t number = borders[i] >> 6;
        if (number != of.number) {
            if (of.word)
                sj_add_word(&of);
            of.word = of.word >> 63 ? ~(uint64_t)0 : 0;
            while (++of.number < number && of.word)
                sj_add_word(&of);
            of.number = number;
        }
        of.word ^= ~(uint64_t)0 << (borders[i] & 63);
    }
    *to = of;
}

#endif
