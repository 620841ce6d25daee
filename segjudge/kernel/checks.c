/* COCO's run lengths as text -> the validity and areas of masks. */
#include "checks.h"
#include "numbers.h"

/* The faults of a text, which run_lengths.py describes. */
enum { SOUND = 0, CHARACTERS = 1, BREAKS_OFF = 2, BELOW_ZERO = 3, WRONG_SUM = 4 };

int8_t sj_check_mask(const uint8_t *text, int64_t length, int64_t pixels, int64_t *area, sj_ending *ending)
{
    reader from = {text, text + length};
    /* The last runs and the sums of the background and of the object, which alternate. From the fourth on, runs are
     * stored as differences to the run before last. Each sum has less than half of 64 bits more than the one before, so
     * that no overflow is missed. */
    int64_t runs[2] = {0, 0}, signs = 0, value;
    uint64_t sums[2] = {0, 0}, above = 0;
    int kind = 0;
    *area = 0;
    if (!sj_are_codes(text, length))
        return CHARACTERS;
    for (int is_first = 1; from.at != from.end; kind = !kind, is_first = 0) {
        if (!take_value(&from, &value))
            return BREAKS_OFF;
        int64_t run = runs[kind] + value;
        signs |= run, sums[kind] += (uint64_t)run, above |= is_first ? 0 : sums[kind];
        runs[kind] = is_first ? 0 : run; /* the third run is no difference */
    }
    if (signs < 0)
        return BELOW_ZERO;
    if (above > INT64_MAX || pixels < 0 || sums[0] + sums[1] != (uint64_t)pixels)
        return WRONG_SUM;
    *area = (int64_t)sums[1];
    *ending = (sj_ending){runs[0], runs[1], kind};
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

