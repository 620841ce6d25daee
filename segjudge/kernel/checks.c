/* COCO's run lengths as text -> the validity and areas of masks. */
#include "numbers.h"

/* The faults of a text, which run_lengths.py describes. */
enum { SOUND = 0, CHARACTERS = 1, BREAKS_OFF = 2, BELOW_ZERO = 3, WRONG_SUM = 4 };

/* The runs that were read: the last of the object and of the background, which alternate, and their sums. From the
 * fourth on, runs are stored as differences to the run before last. */
typedef struct {
    int64_t object, background, signs;
    uint64_t covered, total, above; /* each step is less than half of 64 bits, so no overflow is missed */
} tally;

#ifdef HAS_MORE
/* The limit of the runs of 16 bits that short numbers change, and the number of chunks whose sums fit 32 bits. */
#define MOST_RUN (1 << 14)
#define MOST_CHUNKS 1024

/* The factors of the object's runs among eight, whose first is the background's or the object's. */
static const int16_t kinds[2][WIDE] = {{0, 1, 0, 1, 0, 1, 0, 1}, {1, 0, 1, 0, 1, 0, 1, 0}};

/* Add the lanes of 32 bits. */
__attribute__((target("ssse3"))) static inline uint64_t join(__m128i lanes)
{
    uint32_t parts[4];
    _mm_storeu_si128((__m128i *)parts, lanes);
    return (uint64_t)parts[0] + parts[1] + parts[2] + parts[3];
}

/* Read short numbers while runs are small, the object's first; return whether the object's is the next again. */
__attribute__((target("ssse3"))) static int take_short(reader *from, tally *runs)
{
    __m128i last = _mm_set1_epi32((int)(runs->object | runs->background << 16)), signs = last;
    __m128i all = _mm_setzero_si128(), covered = all;
    const uint8_t *at = from->at;
    int is_even = 1, taken = 1;
    for (int left = MOST_CHUNKS; left && taken && from->end - at >= 16; left--) {
        int size = from->end - at >= CHUNK ? CHUNK : (int)(from->end - at) & ~15, place = 0;
        uint64_t all_more = find_more(at, size);
        while (taken && place + WIDE <= size) {
            int more = (int)(all_more >> place) & 0xff;
            taken = length_of_short(more);
            if (!taken) /* a number of more characters */
                break;
            __m128i steps = read_short(at + place, more, last);
            signs = _mm_or_si128(signs, steps);
            last = _mm_shuffle_epi8(steps, load(sj_short.splits[more].ends));
            steps = _mm_and_si128(steps, load(sj_short.splits[more].flags));
            all = _mm_add_epi32(all, _mm_madd_epi16(steps, _mm_set1_epi16(1)));
            covered = _mm_add_epi32(covered, _mm_madd_epi16(steps, load(kinds[is_even])));
            is_even ^= sj_short.counts[more] & 1;
            place += taken;
            if (is_beyond(last, MOST_RUN))
                taken = 0;
        }
        at += place;
    }
    int64_t before = (int16_t)_mm_extract_epi16(last, 0), end = (int16_t)_mm_extract_epi16(last, 1);
    uint64_t object = join(covered);
    runs->object = is_even ? before : end, runs->background = is_even ? end : before;
    runs->signs |= _mm_movemask_epi8(signs) & 0xaaaa ? -1 : 0;
    runs->covered += object, runs->total += join(all) - object;
    runs->above |= runs->covered | runs->total;
    from->at = at;
    return is_even;
}
#endif

/* Read the next run, and add it to those of its kind; return whether the text is valid. */
static inline int take_run(reader *from, tally *runs, int64_t *run, uint64_t *sum)
{
    int64_t value;
    if (!take_value(from, &value))
        return 0;
    *run += value, *sum += (uint64_t)*run;
    runs->above |= *sum, runs->signs |= *run;
    return 1;
}

/* The runs of each kind that are read one by one before short ones are looked for. */
#define SOME_RUNS 2

int8_t sj_check_mask(const uint8_t *text, int64_t length, int64_t pixels, int64_t *area, sj_ending *ending)
{
    reader from = {text, text + length};
    int64_t first = 0;
    *area = 0;
    if (!sj_are_codes(text, length))
        return CHARACTERS;
    if (length && !take_value(&from, &first))
        return BREAKS_OFF;
    tally runs = {0, 0, first, 0, (uint64_t)first, 0};
    int is_object = length > 0; /* whether the object's run is the next */
    int64_t some = length;
    while (from.at != from.end) {
#ifdef HAS_MORE
        some = sj_short.has_shuffles ? SOME_RUNS : length;
        if (sj_short.has_shuffles && is_object && !((runs.object | runs.background) & -(int64_t)MOST_RUN))
            is_object = take_short(&from, &runs);
#endif
        for (int64_t i = 0; i < some && from.at != from.end; i++) {
            if (is_object && !take_run(&from, &runs, &runs.object, &runs.covered))
                return BREAKS_OFF;
            is_object = from.at != from.end;
            if (is_object && !take_run(&from, &runs, &runs.background, &runs.total))
                return BREAKS_OFF;
        }
    }
    if (runs.signs < 0)
        return BELOW_ZERO;
    if (runs.above > INT64_MAX || pixels < 0 || runs.total + runs.covered != (uint64_t)pixels)
        return WRONG_SUM;
    *area = (int64_t)runs.covered;
    ending->background = runs.background, ending->object = runs.object, ending->open = is_object;
    return SOUND;
}

/* Find the fault and the area of each mask, a part of the text between two bounds. */
SJ_EXPORT int sj_check_runs(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t count, const int64_t *pixels, int8_t *fault,
    int64_t *area)
{
    sj_ending ending;
    if (!text || !bounds || !pixels || !fault || !area || !sj_are_bounds(bounds, count, length))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++)
        fault[i] = sj_check_mask(text + bounds[i], bounds[i + 1] - bounds[i], pixels[i], &area[i], &ending);
    return SJ_FINE;
}

