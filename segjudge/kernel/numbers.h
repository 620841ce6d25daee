/* The short numbers of run lengths, eight characters at a time, where the processor has SSSE3. */
#ifndef SEGJUDGE_NUMBERS_H
#define SEGJUDGE_NUMBERS_H

#include "runs.h"

/* Instructions that not every x86-64 processor has, as in png.c. */
#if defined(__SSE2__) && defined(__x86_64__) && (defined(__clang__) || __GNUC__ > 4) && !defined(SJ_PLAIN)
#define HAS_MORE
#include <immintrin.h>

/* Characters and numbers that are read at once, and the characters that are examined at once. */
#define WIDE 8
#define CHUNK 64

/* The numbers of one or two characters among eight characters, by flags of those that continue a number: the places of
 * their characters, the bits of their signs, flags of those that are there, and the places of the last two, repeated;
 * how many numbers they are, and their characters. */
typedef struct {
    struct {
        uint8_t places[2 * WIDE], signs[2 * WIDE], flags[2 * WIDE], ends[2 * WIDE];
    } splits[1 << WIDE];
    uint8_t counts[1 << WIDE], lengths[1 << WIDE];
    int has_shuffles;
} sj_numbers;
__attribute__((visibility("hidden"))) extern sj_numbers sj_short;

__attribute__((target("ssse3"))) static inline __m128i load(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

/* Return flags of the characters that continue a number, of the first so many, a multiple of 16. */
__attribute__((target("ssse3"))) static inline uint64_t find_more(const uint8_t *at, int64_t count)
{
    uint64_t more = 0;
    for (int64_t i = 0; i < count; i += 16) {
        __m128i codes = _mm_sub_epi8(load(at + i), _mm_set1_epi8(SJ_FIRST_CHARACTER));
        more |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_slli_epi16(codes, 2)) << i;
    }
    return more;
}

/* Return how many of eight characters are those of numbers of one or two characters, given which continue a number; 0
 * for less than two numbers. */
static inline int length_of_short(int more)
{
    if (!(more & more >> 1))
        return WIDE - (more >> 7);
    return sj_short.counts[more] < 2 ? 0 : sj_short.lengths[more];
}

/* Return the runs of these numbers, repeated behind them, given the runs of both kinds before. */
__attribute__((target("ssse3"))) static inline __m128i read_short(const uint8_t *at, int more, __m128i last)
{
    __m128i codes = _mm_sub_epi8(_mm_loadl_epi64((const __m128i *)at), _mm_set1_epi8(SJ_FIRST_CHARACTER));
    codes = _mm_shuffle_epi8(codes, load(sj_short.splits[more].places));
    __m128i sign = load(sj_short.splits[more].signs), bits = _mm_and_si128(codes, _mm_set1_epi8(0x1f));
    __m128i steps = _mm_maddubs_epi16(bits, _mm_set1_epi16(1 | 32 << 8));
    steps = _mm_sub_epi16(_mm_xor_si128(steps, sign), sign);
    steps = _mm_add_epi16(steps, _mm_slli_si128(steps, 4));
    return _mm_add_epi16(_mm_add_epi16(steps, _mm_slli_si128(steps, 8)), last);
}

/* Return whether a run is below zero, or not below a limit, a power of two. */
__attribute__((target("ssse3"))) static inline int is_beyond(__m128i runs, int limit)
{
    return _mm_movemask_epi8(_mm_or_si128(runs, _mm_add_epi16(runs, _mm_set1_epi16((short)(0x8000 - limit))))) & 0xaaaa;
}
#endif

#endif
