/* A text of COCO's run lengths, read number by number. */
#ifndef SEGJUDGE_RUNS_H
#define SEGJUDGE_RUNS_H

#include "kernel.h"

/* The maximum characters of a number; six hold thirty bits. */
#define LONGEST_VALUE 6

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

/* The runs that are read at once. */
#define SJ_SOME_RUNS 64

/* The runs of a text after the first, the object's and the background's in turn. */
typedef struct {
    reader from;
    int64_t last[2]; /* the runs before the next: of its kind, and of the other */
    int16_t runs[SJ_SOME_RUNS + 8];
    int count, next; /* of these */
    int wait; /* the runs to read one by one before short numbers are looked for */
} run_reader;

/* Read more runs, and take the next; return 1, 0 at the end, or -1 for an invalid text. */
int sj_read_runs(run_reader *from, int64_t *run);

/* Read the first run, which is the background's; return whether it is valid. */
static inline int begin_runs(run_reader *from, const uint8_t *text, int64_t length, int64_t *background)
{
    from->from = (reader){text, text + length};
    from->last[0] = from->last[1] = 0, from->count = from->next = from->wait = 0;
    *background = 0;
    return !length || (take_value(&from->from, background) && *background >= 0);
}

/* Take the next run; return 1, 0 at the end, or -1 for an invalid text. */
static inline int take_run(run_reader *from, int64_t *run)
{
    if (from->next == from->count)
        return sj_read_runs(from, run);
    *run = from->runs[from->next++];
    return 1;
}

#endif
