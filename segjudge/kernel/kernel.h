/* The kernel: what scoring does most often, on bytes and words, in whole numbers.
 *
 * Every function checks its arguments, returns a status, keeps nothing between
 * two calls and allocates only what it frees before it returns.  Python calls
 * it through ctypes and computes fractions itself, but precisions and similarities,
 * whose every step rounds as numpy's does; numpy code that gives the same results stands beside each call.
 */
#ifndef SEGJUDGE_KERNEL_H
#define SEGJUDGE_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the kernel is for little-endian machines; numpy serves others"
#endif

#define SJ_EXPORT __attribute__((visibility("default")))

/* Raised whenever a signature or the meaning of a result changes; library.py has the same number. */
#define SJ_ABI 23

enum {
    SJ_FINE = 0,
    SJ_BAD_CALL = -1,  /* arguments that make no sense */
    SJ_NO_MEMORY = -2,
    SJ_BAD_DATA = 1,   /* the numpy path finds the words for what is wrong */
    SJ_FULL = 2        /* more objects than there is space for: call again with more */
};

/* Eight bytes, which need not be aligned. */
static inline uint64_t sj_load(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Set bits of a word, without an instruction that old processors lack; words of masks are mostly empty or full. */
static inline int64_t sj_ones(uint64_t word)
{
    if (word == 0 || ~word == 0)
        return word ? 64 : 0;
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int64_t)((word * 0x0101010101010101u) >> 56);
}

/* How a mask's run lengths end: the last run of background and of the object, and whether it is one of background. */
typedef struct {
    int64_t background, object;
    int open;
} sj_ending;

/* How characters of run lengths say numbers: five bits each, from this character on, the lowest first. */
#define SJ_FIRST_CHARACTER 48
#define SJ_CONTINUED 0x20
#define SJ_NEGATIVE 0x10
/* Room for any number: thirteen characters of five bits. */
#define SJ_LONGEST_NUMBER 13

/* A mask that is being written: its last two runs, since all but three runs are differences to the one before last.  Of
 * how many there are it matters whether more than two, and an even number. */
typedef struct {
    uint8_t *at, *end;
    int64_t count, last[2];
} sj_writer;

/* Write one run; return whether there was room. */
static inline int sj_put_run(sj_writer *to, int64_t run)
{
    int64_t value = run - (to->count > 2 ? to->last[to->count & 1] : 0);
    int more = 1;
    if (to->end - to->at < SJ_LONGEST_NUMBER)
        return 0;
    to->last[to->count++ & 1] = run;
    while (more) {
        uint8_t bits = (uint8_t)(value & 0x1f);
        value >>= 5;
        more = value != (bits & SJ_NEGATIVE ? -1 : 0);
        *to->at++ = (uint8_t)((more ? bits | SJ_CONTINUED : bits) + SJ_FIRST_CHARACTER);
    }
    return 1;
}

/* No image or video has more pixels. */
#define SJ_MOST_PIXELS ((int64_t)1 << 40)

/* Whether numbers that are said to be the bounds of so many parts rise from 0, and not beyond the length of the whole. */
static inline int sj_are_bounds(const int64_t *bounds, int64_t count, int64_t length)
{
    if (count < 0 || bounds[0] != 0 || bounds[count] > length)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (bounds[i] > bounds[i + 1])
            return 0;
    return 1;
}

/* Say what is wrong with the run lengths of one mask (0 where nothing is), its area, and how they end. */
int8_t sj_check_mask(const uint8_t *text, int64_t length, int64_t pixels, int64_t *area, sj_ending *ending);

#endif
