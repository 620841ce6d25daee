/* COCO's run lengths as text -> the borders of parts. */
#include "borders.h"

/* The runs of each kind that are read one by one before short numbers are looked for. */
#define SOME_RUNS 2

#ifdef HAS_MORE
/* The limit of the runs of 16 bits of which eight have a sum of 16 bits. */
#define MOST_RUN (1 << 12)

/* Read short numbers while runs are small; return the number of borders, or -1 for a run below zero. */
__attribute__((target("ssse3"))) static int64_t take_short(sj_runs *of, int64_t *borders, int64_t count)
{
    int64_t next = of->is_object ? of->object : of->background, other = of->is_object ? of->background : of->object;
    __m128i last = _mm_set1_epi32((int)(next | other << 16)), signs = last, zero = _mm_setzero_si128();
    __m128i at = _mm_set1_epi64x(of->at);
    const __m128i total = _mm_set_epi64x((int64_t)0x8080808080800f0e, (int64_t)0x8080808080800f0e);
    const uint8_t *text = of->from.at;
    int taken = 1, odd = 0;
    while (taken && of->from.end - text >= 16 && count <= SJ_BORDERS - WIDE) {
        int size = of->from.end - text >= CHUNK ? CHUNK : (int)(of->from.end - text) & ~15, place = 0;
        uint64_t all_more = find_more(text, size);
        while (taken && place + WIDE <= size && count <= SJ_BORDERS - WIDE) {
            int more = (int)(all_more >> place) & 0xff;
            taken = length_of_short(more);
            if (!taken)
                break;
            __m128i steps = read_short(text + place, more, last);
            signs = _mm_or_si128(signs, steps);
            last = _mm_shuffle_epi8(steps, load(sj_short.splits[more].ends));
            steps = _mm_and_si128(steps, load(sj_short.splits[more].flags));
            steps = _mm_add_epi16(steps, _mm_slli_si128(steps, 2));
            steps = _mm_add_epi16(steps, _mm_slli_si128(steps, 4));
            steps = _mm_add_epi16(steps, _mm_slli_si128(steps, 8));
            __m128i low = _mm_unpacklo_epi16(steps, zero), high = _mm_unpackhi_epi16(steps, zero);
            __m128i *out = (__m128i *)(borders + count);
            _mm_storeu_si128(out, _mm_add_epi64(at, _mm_unpacklo_epi32(low, zero)));
            _mm_storeu_si128(out + 1, _mm_add_epi64(at, _mm_unpackhi_epi32(low, zero)));
            _mm_storeu_si128(out + 2, _mm_add_epi64(at, _mm_unpacklo_epi32(high, zero)));
            _mm_storeu_si128(out + 3, _mm_add_epi64(at, _mm_unpackhi_epi32(high, zero)));
            at = _mm_add_epi64(at, _mm_shuffle_epi8(steps, total));
            count += sj_short.counts[more];
            odd ^= sj_short.counts[more] & 1;
            place += taken;
            if (is_beyond(last, MOST_RUN))
                taken = 0;
        }
        text += place;
    }
    of->is_object ^= odd;
    next = (int16_t)_mm_extract_epi16(last, 0), other = (int16_t)_mm_extract_epi16(last, 1);
    of->object = of->is_object ? next : other, of->background = of->is_object ? other : next;
    of->from.at = text;
    _mm_storel_epi64((__m128i *)&of->at, at);
    return _mm_movemask_epi8(signs) & 0xaaaa ? -1 : count;
}
#endif

int64_t sj_take_borders(sj_runs *of, int64_t *borders)
{
    int64_t count = 0;
    if (of->is_object && of->from.at != of->from.end) /* the next part begins behind the last run */
        borders[count++] = of->at;
    while (of->from.at != of->from.end && count <= SJ_BORDERS - 16) {
        int64_t some = SJ_BORDERS;
#ifdef HAS_MORE
        some = sj_short.has_shuffles ? 2 * SOME_RUNS : SJ_BORDERS;
        if (sj_short.has_shuffles && !((of->object | of->background) & -(int64_t)MOST_RUN))
            count = take_short(of, borders, count);
        if (count < 0)
            return -1;
#endif
        for (; some && of->from.at != of->from.end && count < SJ_BORDERS; some--) {
            int64_t value, *run = of->is_object ? &of->object : &of->background;
            if (!take_value(&of->from, &value) || (*run += value) < 0 || (of->at += *run) > SJ_MOST_PIXELS)
                return -1;
            borders[count++] = of->at;
            of->is_object ^= 1;
        }
    }
    /* Behind the last run, or before the next batch, there may be a begin without an end. */
    return count & ~(int64_t)1;
}
