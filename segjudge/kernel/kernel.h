/* The kernel: the most frequent operations of scoring, on bytes and words, in whole numbers.
 *
 * Every function checks its arguments, returns a status, keeps no state between calls, and frees what it allocates.
 * Python calls it through ctypes and computes fractions itself, except precisions and similarities, whose steps
 * round as in numpy. Each call has equivalent numpy code beside it. */
#ifndef SEGJUDGE_KERNEL_H
#define SEGJUDGE_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the kernel is for little-endian machines; numpy serves others"
#endif

#ifdef _WIN32
#define SJ_EXPORT __declspec(dllexport)
#else
#define SJ_EXPORT __attribute__((visibility("default")))
#endif

/* The version of the interface: raise it when a signature or the meaning of a result changes, also in library.py. */
#define SJ_ABI 50

enum {
    SJ_FINE = 0,
    SJ_BAD_CALL = -1,  /* invalid arguments */
    SJ_NO_MEMORY = -2,
    SJ_BAD_DATA = 1,   /* invalid data; the numpy path describes the fault */
    SJ_FULL = 2        /* too many objects for the space: call again with more */
};

/* Eight bytes, which need not be aligned. */
static inline uint64_t sj_load(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Return the number of set bits of a word, without instructions that old processors lack; most words of masks are
 * empty or full. */
static inline int64_t sj_ones(uint64_t word)
{
    if (word == 0 || ~word == 0)
        return word ? 64 : 0;
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (int64_t)((word * 0x0101010101010101u) >> 56);
}

/* Set the bits of a row from one to another. */
static inline void sj_set_bits(uint64_t *row, int64_t from, int64_t to)
{
    int64_t word = from / 64, last = (to - 1) / 64;
    uint64_t first_bits = ~(uint64_t)0 << from % 64, last_bits = ~(uint64_t)0 >> (63 - (to - 1) % 64);
    if (word == last) {
        row[word] |= first_bits & last_bits;
        return;
    }
    row[word] |= first_bits;
    while (++word < last)
        row[word] = ~(uint64_t)0;
    row[last] |= last_bits;
}

/* Characters of run lengths encode numbers: five bits each, counted from this character, lowest bits first. */
#define SJ_FIRST_CHARACTER 48
#define SJ_CONTINUED 0x20
#define SJ_NEGATIVE 0x10
/* The maximum characters of a number: thirteen with five bits each. */
#define SJ_LONGEST_NUMBER 13

/* A mask being written: its last two runs, since from the fourth on a run is stored as the difference to the run
 * before last. The count of runs matters only for this and for its parity. */
typedef struct {
    uint8_t *at, *end;
    int64_t count, last[2];
} sj_writer;

/* Write one run; return whether it fits. Up to four characters are written without branches, since their number varies
 * from run to run. */
static inline int sj_put_run(sj_writer *to, int64_t run)
{
    int64_t value = run - (to->count > 2 ? to->last[to->count & 1] : 0);
    if (to->end - to->at < SJ_LONGEST_NUMBER)
        return 0;
    to->last[to->count++ & 1] = run;
    uint64_t bits = (uint64_t)value, size = bits ^ (uint64_t)(value >> 63);
    if (size < 1 << 19) {
        int more = (size > 15) + (size > 511) + (size > 16383);
        uint32_t text = (uint32_t)((bits & 31) | (bits & 31 << 5) << 3 | (bits & 31 << 10) << 6 | (bits & 31 << 15) << 9);
        text += 0x01010101u * SJ_FIRST_CHARACTER + (0x01010101u * SJ_CONTINUED & (((uint32_t)1 << 8 * more) - 1));
        memcpy(to->at, &text, sizeof text);
        to->at += more + 1;
        return 1;
    }
    for (int more = 1; more;) {
        uint8_t part = (uint8_t)(value & 0x1f);
        value >>= 5;
        more = value != (part & SJ_NEGATIVE ? -1 : 0);
        *to->at++ = (uint8_t)((more ? part | SJ_CONTINUED : part) + SJ_FIRST_CHARACTER);
    }
    return 1;
}

/* The maximum number of pixels of an image or video. */
#define SJ_MOST_PIXELS ((int64_t)1 << 40)

/* The maximum side of a volume (z, y, x). */
#define SJ_MOST_SIDE (1 << 15)

/* Return whether a volume has voxels, and no longer sides and no more voxels than allowed. */
static inline int sj_is_volume(int64_t depth, int64_t height, int64_t width, int64_t most)
{
    return depth > 0 && height > 0 && width > 0 && depth <= SJ_MOST_SIDE && height <= SJ_MOST_SIDE && width <= SJ_MOST_SIDE
        && depth * height <= most / width;
}

/* Return whether the bounds of parts rise from 0 and stay within the total length. */
static inline int sj_are_bounds(const int64_t *bounds, int64_t count, int64_t length)
{
    if (count < 0 || bounds[0] != 0 || bounds[count] > length)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (bounds[i] > bounds[i + 1])
            return 0;
    return 1;
}

#endif
