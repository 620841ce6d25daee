/* A text of COCO's run lengths, read number by number. */
#ifndef SEGJUDGE_NUMBERS_H
#define SEGJUDGE_NUMBERS_H

#include "kernel.h"

/* The maximum characters of a number; six hold thirty bits. */
#define LONGEST_VALUE 6

/* The highest code of a character, which encodes six bits. */
#define HIGHEST_CODE 63

/* Return whether all characters encode numbers. */
static inline int sj_are_codes(const uint8_t *text, int64_t length)
{
    uint8_t highest = 0;
    for (int64_t i = 0; i < length; i++) {
        uint8_t code = (uint8_t)(text[i] - SJ_FIRST_CHARACTER);
        highest = code > highest ? code : highest;
    }
    return highest <= HIGHEST_CODE;
}

/* A text: start and end. */
typedef struct {
    const uint8_t *at, *end;
} reader;

/* Read one number; return whether the text is valid. */
static inline int take_value(reader *from, int64_t *value)
{
    int64_t taken = 0;
    int size = 0;
    uint8_t code;
    if (from->at == from->end)
        return 0;
    code = (uint8_t)(*from->at - SJ_FIRST_CHARACTER);
    if (code < SJ_CONTINUED) { /* four of five */
        from->at++;
        *value = (code & 0xf) - (code & SJ_NEGATIVE);
        return 1;
    }
    do {
        if (from->at == from->end || size == LONGEST_VALUE)
            return 0;
        code = (uint8_t)(*from->at++ - SJ_FIRST_CHARACTER);
        taken |= (int64_t)(code & 0x1f) << (5 * size++);
    } while (code & SJ_CONTINUED);
    *value = code & SJ_NEGATIVE ? taken - ((int64_t)1 << (5 * size)) : taken;
    return 1;
}

#endif
