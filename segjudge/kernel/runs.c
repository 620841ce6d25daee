/* COCO's run lengths as text: are they sound, how large is a mask, and what do two share. */
#include "kernel.h"

#include <stdlib.h>

/* Characters of one number; six hold thirty bits. */
#define LONGEST_VALUE 6
#define FIRST_CHARACTER 48
#define HIGHEST_CODE 63
#define CONTINUED 0x20
#define NEGATIVE 0x10

/* What is wrong with a text; rle.py has the words. */
enum { SOUND = 0, CHARACTERS = 1, BREAKS_OFF = 2, BELOW_ZERO = 3, WRONG_SUM = 4 };

/* Reads the runs of a text one after the other. */
typedef struct {
    const uint8_t *text;
    int64_t left, before[3], count;
} reader;

/* Read one run; return whether the text is as it should be. */
static int next_run(reader *from, int64_t *run)
{
    int64_t value = 0;
    int size = 0;
    uint8_t code;
    do {
        if (!from->left || size == LONGEST_VALUE)
            return 0;
        code = (uint8_t)(*from->text++ - FIRST_CHARACTER);
        from->left--;
        value |= (int64_t)(code & 0x1f) << (5 * size++);
    } while (code & CONTINUED);
    if (code & NEGATIVE)
        value -= (int64_t)1 << (5 * size);
    if (from->count > 2)
        value += from->before[1];
    from->before[1] = from->before[0];
    from->before[0] = value;
    from->count++;
    *run = value;
    return 1;
}

int8_t sj_check_mask(const uint8_t *text, int64_t length, int64_t pixels, int64_t *area)
{
    reader from = {text, length, {0}, 0};
    int64_t total = 0, covered = 0, run;
    int below = 0;
    *area = 0;
    for (int64_t i = 0; i < length; i++)
        if ((uint8_t)(text[i] - FIRST_CHARACTER) > HIGHEST_CODE)
            return CHARACTERS;
    while (from.left) {
        if (!next_run(&from, &run))
            return BREAKS_OFF;
        below |= run < 0;
        total += run;
        if (from.count % 2 == 0)
            covered += run;
    }
    if (below)
        return BELOW_ZERO;
    if (total != pixels)
        return WRONG_SUM;
    *area = covered;
    return SOUND;
}

static int rising(const int64_t *bounds, int64_t count)
{
    if (bounds[0] < 0)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (bounds[i] > bounds[i + 1])
            return 0;
    return 1;
}

/* Say for each mask, a part of the text between two bounds, what is wrong with it, and its area. */
SJ_EXPORT int sj_check_runs(
    const uint8_t *text, const int64_t *bounds, int64_t count, const int64_t *pixels, int8_t *fault, int64_t *area)
{
    if (!text || !bounds || count < 0 || !pixels || !fault || !area || !rising(bounds, count))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++)
        fault[i] = sj_check_mask(text + bounds[i], bounds[i + 1] - bounds[i], pixels[i], &area[i]);
    return SJ_FINE;
}

/* The parts of an image that a mask covers, as pixels from, to; a last part of nothing ends them. */
typedef struct {
    int64_t *parts;
    int64_t count, area;
} cover;

static int take_cover(cover *out, int64_t *space, const uint8_t *text, int64_t length)
{
    reader from = {text, length, {0}, 0};
    int64_t at = 0, run;
    out->parts = space, out->count = 0, out->area = 0;
    while (from.left) {
        if (!next_run(&from, &run) || run < 0)
            return 0;
        if (from.count % 2 == 0 && run) {
            space[2 * out->count] = at, space[2 * out->count + 1] = at + run;
            out->count++;
            out->area += run;
        }
        at += run;
    }
    return 1;
}

static int64_t shared_by(const cover *a, const cover *b)
{
    int64_t total = 0, i = 0, j = 0;
    if (!a->count || !b->count || a->parts[0] >= b->parts[2 * b->count - 1] || b->parts[0] >= a->parts[2 * a->count - 1])
        return 0;
    while (i < a->count && j < b->count) { /* without branches: which part ends first is anybody's guess */
        int64_t start = a->parts[2 * i], end = a->parts[2 * i + 1];
        int64_t other_start = b->parts[2 * j], other_end = b->parts[2 * j + 1];
        int64_t from = start > other_start ? start : other_start, to = end < other_end ? end : other_end;
        total += (to - from) & -(int64_t)(to > from);
        i += end <= other_end;
        j += other_end <= end;
    }
    return total;
}

typedef struct {
    const uint8_t *text;
    const int64_t *bounds, *starts;
} grouped;

static int64_t most_characters(const grouped *masks, int64_t groups, int each)
{
    int64_t most = 0;
    for (int64_t i = masks->starts[0]; each && i < masks->starts[groups]; i++)
        if (masks->bounds[i + 1] - masks->bounds[i] > most)
            most = masks->bounds[i + 1] - masks->bounds[i];
    for (int64_t g = 0; !each && g < groups; g++) {
        int64_t length = masks->bounds[masks->starts[g + 1]] - masks->bounds[masks->starts[g]];
        if (length > most)
            most = length;
    }
    return most;
}

static int64_t most_masks(const grouped *masks, int64_t groups)
{
    int64_t most = 0;
    for (int64_t g = 0; g < groups; g++)
        if (masks->starts[g + 1] - masks->starts[g] > most)
            most = masks->starts[g + 1] - masks->starts[g];
    return most;
}

/* Compare the masks of one group, the sent with the real, row by row; return 0 where one is not sound. */
static int compare_group(
    const grouped *sent, const grouped *real, int64_t group, const uint8_t *crowd, cover *covers, int64_t *space,
    int64_t *sent_space, int64_t **shared, int64_t **joint)
{
    int64_t first = real->starts[group], last = real->starts[group + 1];
    for (int64_t i = first; i < last; i++) {
        int64_t length = real->bounds[i + 1] - real->bounds[i];
        if (!take_cover(&covers[i - first], space, real->text + real->bounds[i], length))
            return 0;
        space += 2 * covers[i - first].count;
    }
    for (int64_t i = sent->starts[group]; i < sent->starts[group + 1]; i++) {
        cover mine;
        if (!take_cover(&mine, sent_space, sent->text + sent->bounds[i], sent->bounds[i + 1] - sent->bounds[i]))
            return 0;
        for (int64_t j = first; j < last; j++) {
            int64_t both = shared_by(&mine, &covers[j - first]);
            *(*shared)++ = both;
            *(*joint)++ = crowd[j] ? mine.area : mine.area + covers[j - first].area - both;
        }
    }
    return 1;
}

/* Count for each pair of a sent and a real mask of the same group the pixels of both and of either.
 *
 * With a crowd, "either" is the sent mask.  Pairs come group by group, the real masks of each sent one in a row;
 * `starts` say which masks belong to a group, `bounds` where their text is.
 */
SJ_EXPORT int sj_overlaps(
    const uint8_t *sent_text, const int64_t *sent_bounds, const int64_t *sent_starts, const uint8_t *real_text,
    const int64_t *real_bounds, const int64_t *real_starts, const uint8_t *crowd, int64_t groups, int64_t *shared,
    int64_t *joint)
{
    if (!sent_text || !sent_bounds || !sent_starts || !real_text || !real_bounds || !real_starts || !crowd || !shared
        || !joint || groups < 0 || sent_starts[0] != 0 || real_starts[0] != 0)
        return SJ_BAD_CALL;
    if (!rising(sent_starts, groups) || !rising(real_starts, groups)
        || !rising(sent_bounds, sent_starts[groups]) || !rising(real_bounds, real_starts[groups]))
        return SJ_BAD_CALL;
    grouped sent = {sent_text, sent_bounds, sent_starts}, real = {real_text, real_bounds, real_starts};
    /* A part covered takes at least two characters. */
    int64_t numbers = most_characters(&real, groups, 0) + 2 * most_masks(&real, groups);
    int64_t more = most_characters(&sent, groups, 1) + 2;
    int64_t *space = malloc((size_t)(numbers + more + 2) * sizeof *space);
    cover *covers = malloc((size_t)(most_masks(&real, groups) + 1) * sizeof *covers);
    int status = space && covers ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t g = 0; g < groups && status == SJ_FINE; g++)
        if (!compare_group(&sent, &real, g, crowd, covers, space, space + numbers, &shared, &joint))
            status = SJ_BAD_DATA;
    free(space);
    free(covers);
    return status;
}
