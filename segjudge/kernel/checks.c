/* COCO's run lengths as text -> the validity and areas of masks. */
#include "runs.h"

/* Instructions that not every x86-64 processor has, as in png.c. */
#if defined(__SSE2__) && defined(__x86_64__) && (defined(__clang__) || __GNUC__ > 4) && !defined(SJ_PLAIN)
#define HAS_MORE
#include <cpuid.h>
#include <immintrin.h>
#endif

#define HIGHEST_CODE 63

/* The faults of a text, which run_lengths.py describes. */
enum { SOUND = 0, CHARACTERS = 1, BREAKS_OFF = 2, BELOW_ZERO = 3, WRONG_SUM = 4 };

/* The runs that were read: the last of the object and of the background, which alternate, and their sums. From the
 * fourth on, runs are stored as differences to the run before last. */
typedef struct {
    int64_t object, background, signs;
    uint64_t covered, total, above; /* each step is less than half of 64 bits, so no overflow is missed */
} tally;

#ifdef HAS_MORE
/* Characters and numbers that are read at once, and the limit of the runs of 16 bits that they change. */
#define WIDE 8
#define MOST_RUN (1 << 14)
/* The characters that are examined at once, and the number of such chunks whose sums fit 32 bits. */
#define CHUNK 64
#define MOST_CHUNKS 1024

/* The numbers of one or two characters among eight characters, by flags of those that continue a number: the places of
 * their characters, the bits of their signs, flags of those that are there, and the places of the last two, repeated. */
static struct {
    uint8_t places[2 * WIDE], signs[2 * WIDE], flags[2 * WIDE], ends[2 * WIDE];
} splits[1 << WIDE];
/* How many numbers they are, and their characters. */
static uint8_t counts[1 << WIDE], lengths[1 << WIDE];
/* The factors of the object's runs among eight, whose first is the background's or the object's. */
static const int16_t kinds[2][WIDE] = {{0, 1, 0, 1, 0, 1, 0, 1}, {1, 0, 1, 0, 1, 0, 1, 0}};
static int has_shuffles;

__attribute__((constructor)) static void prepare_splits(void)
{
    for (int more = 0; more < 1 << WIDE; more++) {
        int at = 0, count = 0, two;
        memset(splits[more].places, 0x80, 2 * WIDE);
        for (; at < WIDE; at += 1 + two, count++) {
            two = more >> at & 1;
            if (two && (at + 1 == WIDE || more >> (at + 1) & 1))
                break;
            splits[more].places[2 * count] = (uint8_t)at;
            if (two)
                splits[more].places[2 * count + 1] = (uint8_t)(at + 1);
            splits[more].signs[2 * count + two] = two ? 0x2 : 0x10;
            splits[more].flags[2 * count] = splits[more].flags[2 * count + 1] = 0xff;
        }
        counts[more] = (uint8_t)count, lengths[more] = (uint8_t)at;
        for (int i = 0; i < 2 * WIDE && count > 1; i++)
            splits[more].ends[i] = (uint8_t)(2 * count - 4 + i % 4);
    }
    unsigned a, b, c = 0, d;
    has_shuffles = __get_cpuid(1, &a, &b, &c, &d) && c >> 9 & 1;
}

__attribute__((target("ssse3"))) static inline __m128i load(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

/* Add the lanes of 32 bits. */
__attribute__((target("ssse3"))) static inline uint64_t join(__m128i lanes)
{
    uint32_t parts[4];
    _mm_storeu_si128((__m128i *)parts, lanes);
    return (uint64_t)parts[0] + parts[1] + parts[2] + parts[3];
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

/* Read short numbers while runs are small, the object's first; return whether the object's is the next again. */
__attribute__((target("ssse3"))) static int take_short(reader *from, tally *runs)
{
    const __m128i bits = _mm_set1_epi8(0x1f), weights = _mm_set1_epi16(1 | 32 << 8);
    __m128i last = _mm_set1_epi32((int)(runs->object | runs->background << 16)), signs = last;
    __m128i all = _mm_setzero_si128(), covered = all;
    const uint8_t *at = from->at;
    int is_even = 1, is_short = 1;
    for (int left = MOST_CHUNKS; left && is_short && from->end - at >= 16; left--) {
        int size = from->end - at >= CHUNK ? CHUNK : (int)(from->end - at) & ~15, place = 0;
        uint64_t all_more = find_more(at, size);
        while (place + WIDE <= size) {
            int more = (int)(all_more >> place) & 0xff, count = counts[more], taken = WIDE - (more >> 7);
            if (more & more >> 1) { /* a number of more characters */
                taken = lengths[more];
                if (count < 2) {
                    is_short = 0;
                    break;
                }
            }
            __m128i codes = _mm_loadl_epi64((const __m128i *)(at + place));
            codes = _mm_sub_epi8(codes, _mm_set1_epi8(SJ_FIRST_CHARACTER));
            codes = _mm_shuffle_epi8(codes, load(splits[more].places));
            __m128i sign = load(splits[more].signs), steps = _mm_maddubs_epi16(_mm_and_si128(codes, bits), weights);
            steps = _mm_sub_epi16(_mm_xor_si128(steps, sign), sign);
            steps = _mm_add_epi16(steps, _mm_slli_si128(steps, 4));
            steps = _mm_add_epi16(_mm_add_epi16(steps, _mm_slli_si128(steps, 8)), last);
            signs = _mm_or_si128(signs, steps);
            last = _mm_shuffle_epi8(steps, load(splits[more].ends));
            steps = _mm_and_si128(steps, load(splits[more].flags));
            all = _mm_add_epi32(all, _mm_madd_epi16(steps, _mm_set1_epi16(1)));
            covered = _mm_add_epi32(covered, _mm_madd_epi16(steps, load(kinds[is_even])));
            is_even ^= count & 1;
            place += taken;
            if (_mm_movemask_epi8(_mm_or_si128(last, _mm_add_epi16(last, _mm_set1_epi16(MOST_RUN)))) & 0xaaaa) {
                is_short = 0;
                break;
            }
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
    uint8_t highest = 0;
    *area = 0;
    for (int64_t i = 0; i < length; i++) {
        uint8_t code = (uint8_t)(text[i] - SJ_FIRST_CHARACTER);
        highest = code > highest ? code : highest;
    }
    if (highest > HIGHEST_CODE)
        return CHARACTERS;
    if (length && !take_value(&from, &first))
        return BREAKS_OFF;
    tally runs = {0, 0, first, 0, (uint64_t)first, 0};
    int is_object = length > 0; /* whether the object's run is the next */
    int64_t some = length;
    while (from.at != from.end) {
#ifdef HAS_MORE
        some = has_shuffles ? SOME_RUNS : length;
        if (has_shuffles && is_object && !((runs.object | runs.background) & -(int64_t)MOST_RUN))
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

