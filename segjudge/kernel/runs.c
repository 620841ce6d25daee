/* COCO's run lengths as text -> pixels, boxes, and overlaps of pairs and in groups. */
#include "borders.h"
#include "checks.h"

#include <stdlib.h>

/* The maximum numbers for the parts of a group's masks. */
#define MOST_SPACE ((int64_t)1 << 40)
/* The maximum pixels of an image that is held as bits. */
#define MOST_BITS ((int64_t)1 << 32)

/* Write a label to the pixels of a valid mask; return whether all of them were unlabelled. */
static int paint_mask(const uint8_t *text, int64_t length, uint8_t label, uint8_t *out)
{
    int64_t borders[SJ_BORDERS], count;
    sj_runs runs;
    if (!sj_open_runs(&runs, text, length))
        return 0;
    while ((count = sj_take_borders(&runs, borders)) > 0) {
        uint8_t other = 0;
        for (int64_t each = 0; each < count; each += 2)
            for (int64_t i = borders[each]; i < borders[each + 1]; i++)
                other |= out[i], out[i] = label;
        if (other)
            return 0;
    }
    return count == 0;
}

/* Write each mask's label (above 0) to its pixels of an empty map; masks must be disjoint. */
SJ_EXPORT int sj_paint_runs(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t count, const uint8_t *labels, int64_t pixels,
    uint8_t *out)
{
    sj_ending ending;
    int64_t area;
    if (!text || !bounds || !labels || !out || pixels < 1 || pixels > SJ_MOST_PIXELS
        || !sj_are_bounds(bounds, count, length))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *mask = text + bounds[i];
        int64_t size = bounds[i + 1] - bounds[i];
        if (!labels[i])
            return SJ_BAD_CALL;
        if (sj_check_mask(mask, size, pixels, &area, &ending) != SJ_FINE || !paint_mask(mask, size, labels[i], out))
            return SJ_BAD_DATA;
    }
    return SJ_FINE;
}

/* The rows of a mask's pixels in an image of a height, and its column, as its first pixel, at which a run was looked at. */
typedef struct {
    int64_t height, column, top, bottom;
} extent;

/* Extend the rows by a run of pixels. */
static inline void add_rows(extent *of, int64_t from, int64_t to)
{
    int64_t row = from - of->column, last;
    if (row >= of->height) { /* most runs begin in the column in which another ends, or in the next */
        of->column = row < 2 * of->height ? of->column + of->height : from - from % of->height;
        row = from - of->column;
    }
    last = to - 1 - of->column;
    of->top = row < of->top ? row : of->top;
    if (last >= of->height) { /* from the bottom of one column to the top of the next */
        of->top = 0, of->bottom = of->height - 1;
        of->column += last < 2 * of->height ? of->height : last - last % of->height;
    } else
        of->bottom = last > of->bottom ? last : of->bottom;
}

/* Write the box (x, y, width, height) around a mask's pixels in an image of this height; return whether it is valid. */
static int find_box(const uint8_t *text, int64_t length, int64_t height, int64_t pixels, int64_t *box)
{
    int64_t borders[SJ_BORDERS], count, left = -1, end = 0;
    extent rows = {height, 0, height, 0};
    sj_runs runs;
    if (!sj_open_runs(&runs, text, length))
        return 0;
    while ((count = sj_take_borders(&runs, borders)) > 0) {
        if (runs.at > pixels)
            return 0;
        int is_whole = rows.top == 0 && rows.bottom == height - 1;
        for (int64_t i = is_whole ? count - 2 : 0; i >= 0 && i < count; i += is_whole ? -2 : 2) {
            if (borders[i] == borders[i + 1])
                continue;
            left = left < 0 ? borders[i] : left, end = borders[i + 1];
            if (is_whole)
                break;
            add_rows(&rows, borders[i], end);
        }
    }
    if (count < 0 || runs.at > pixels)
        return 0;
    box[0] = left < 0 ? 0 : left / height, box[1] = left < 0 ? 0 : rows.top;
    box[2] = left < 0 ? 0 : (end - 1) / height - box[0] + 1, box[3] = left < 0 ? 0 : rows.bottom - rows.top + 1;
    return 1;
}

/* Find the box around each mask, a part of the text between two bounds, in images of these heights and widths. */
SJ_EXPORT int sj_mask_boxes(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t count, const int64_t *sizes, int64_t *boxes)
{
    if (!text || !bounds || !sizes || !boxes || !sj_are_bounds(bounds, count, length))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++) {
        int64_t height = sizes[2 * i], width = sizes[2 * i + 1];
        if (height < 1 || width < 1 || width > MOST_BITS / height)
            return SJ_BAD_CALL;
        if (!find_box(text + bounds[i], bounds[i + 1] - bounds[i], height, height * width, boxes + 4 * i))
            return SJ_BAD_DATA;
    }
    return SJ_FINE;
}

/* Set the bits of a mask's pixels; return SJ_BAD_DATA for an invalid mask, and SJ_FULL if a bit was set, at once if
 * `is_alone`. */
static int add_mask(const uint8_t *text, int64_t length, uint64_t *bits, int64_t pixels, int is_alone)
{
    int64_t borders[SJ_BORDERS], count;
    uint64_t before = 0;
    sj_runs runs;
    if (!sj_open_runs(&runs, text, length))
        return SJ_BAD_DATA;
    while ((count = sj_take_borders(&runs, borders)) > 0) {
        if (runs.at > pixels)
            return SJ_BAD_DATA;
        before |= sj_set_parts(bits, borders, count);
        if (before && is_alone)
            return SJ_FULL;
    }
    return count < 0 || runs.at > pixels || (!is_alone && runs.at < pixels) ? SJ_BAD_DATA : before ? SJ_FULL : SJ_FINE;
}

/* Set the bits of the pixels of masks of one image, which may overlap. */
SJ_EXPORT int sj_cover(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t count, int64_t pixels, uint64_t *bits)
{
    if (!text || !bounds || !bits || pixels < 1 || pixels > SJ_MOST_PIXELS || !sj_are_bounds(bounds, count, length))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t *mask = text + bounds[i];
        int64_t size = bounds[i + 1] - bounds[i];
        if (!sj_are_codes(mask, size) || add_mask(mask, size, bits, pixels, 0) == SJ_BAD_DATA)
            return SJ_BAD_DATA;
    }
    return SJ_FINE;
}

/* Find the first group of masks of which two share a pixel, and write its number, or the number of groups.
 *
 * `bounds` are those of the texts, `groups` those of the groups' masks; `pixels` has the pixels of each mask's image,
 * which a group's masks share. */
SJ_EXPORT int sj_first_overlap(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t count, const int64_t *pixels,
    const int64_t *groups, int64_t group_count, int64_t *first)
{
    int64_t most = 0;
    if (!text || !bounds || !pixels || !groups || !first || !sj_are_bounds(bounds, count, length)
        || !sj_are_bounds(groups, group_count, count))
        return SJ_BAD_CALL;
    for (int64_t i = 0; i < groups[group_count]; i++) {
        if (pixels[i] < 0 || pixels[i] > MOST_BITS)
            return SJ_BAD_CALL;
        most = pixels[i] > most ? pixels[i] : most;
    }
    uint64_t *bits = malloc((size_t)(most / 64 + 1) * sizeof *bits);
    int status = bits ? SJ_FINE : SJ_NO_MEMORY;
    for (*first = 0; status == SJ_FINE && *first < group_count; ++*first) {
        int64_t i = groups[*first], end = groups[*first + 1];
        if (end - i < 2)
            continue;
        memset(bits, 0, (size_t)(pixels[i] / 64 + 1) * sizeof *bits);
        for (int64_t all = pixels[i]; status == SJ_FINE && i < end; i++)
            status = pixels[i] == all ? add_mask(text + bounds[i], bounds[i + 1] - bounds[i], bits, all, 1) : SJ_BAD_CALL;
        if (status != SJ_FINE)
            break;
    }
    free(bits);
    return status == SJ_FULL ? SJ_FINE : status;
}

/* The parts of an image that a mask covers, as ranges of pixels from, to; an empty part ends the list. */
typedef struct {
    int64_t *parts;
    int64_t count;
} cover;

/* List the parts of a mask, at least those that begin before `limit`. */
static int take_cover(cover *out, int64_t *space, const uint8_t *text, int64_t length, int64_t limit)
{
    int64_t borders[SJ_BORDERS], count = 0;
    sj_runs runs;
    out->parts = space, out->count = 0;
    if (!sj_open_runs(&runs, text, length))
        return 0;
    while (runs.at < limit && (count = sj_take_borders(&runs, borders)) > 0) {
        if (runs.at > SJ_MOST_PIXELS)
            return 0;
        for (int64_t i = 0; i < count; i += 2) { /* without branches, which would be unpredictable */
            space[0] = borders[i], space[1] = borders[i + 1];
            space += borders[i] < borders[i + 1] ? 2 : 0;
        }
    }
    out->count = (space - out->parts) / 2;
    return count >= 0;
}

/* Return the first part that ends after a pixel. */
static int64_t first_behind(const cover *a, int64_t pixel)
{
    int64_t low = 0, high = a->count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (a->parts[2 * middle + 1] > pixel)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int64_t shared_by(const cover *a, const cover *b)
{
    if (!a->count || !b->count || a->parts[0] >= b->parts[2 * b->count - 1] || b->parts[0] >= a->parts[2 * a->count - 1])
        return 0;
    int64_t total = 0, i = first_behind(a, b->parts[0]), j = first_behind(b, a->parts[0]);
    while (i < a->count && j < b->count) { /* without branches, which would be unpredictable */
        int64_t start = a->parts[2 * i], end = a->parts[2 * i + 1];
        int64_t other_start = b->parts[2 * j], other_end = b->parts[2 * j + 1];
        int64_t from = start > other_start ? start : other_start, to = end < other_end ? end : other_end;
        total += (to - from) & -(int64_t)(to > from);
        i += end <= other_end;
        j += other_end <= end;
    }
    return total;
}

/* Masks by number: the text of mask i lies between starts[i] and stops[i]. */
typedef struct {
    const uint8_t *text;
    int64_t length;
    const int64_t *starts, *stops;
    int64_t count;
} masks;

static int are_bounded(const masks *all)
{
    if (!all->text || !all->starts || !all->stops || all->length < 0 || all->count < 0)
        return 0;
    for (int64_t i = 0; i < all->count; i++)
        if (all->starts[i] < 0 || all->starts[i] > all->stops[i] || all->stops[i] > all->length)
            return 0;
    return 1;
}

static int64_t length_of(const masks *all, int64_t i)
{
    return all->stops[i] - all->starts[i];
}

/* The pairs of a group: predicted mask sent[i] with true mask real[i]. */
typedef struct {
    const int64_t *sent, *real;
    int64_t count, lowest, highest; /* of the real ones */
} pairs;

/* Find the true masks and the space that a group needs; return 0 if a mask does not exist. */
static int look_at(pairs *group, const masks *sent, const masks *real, int64_t *sent_space, int64_t *real_space)
{
    int64_t total = 0;
    group->lowest = real->count, group->highest = -1;
    for (int64_t i = 0; i < group->count; i++) {
        if (group->sent[i] < 0 || group->sent[i] >= sent->count || group->real[i] < 0 || group->real[i] >= real->count)
            return 0;
        group->lowest = group->real[i] < group->lowest ? group->real[i] : group->lowest;
        group->highest = group->real[i] > group->highest ? group->real[i] : group->highest;
        if (length_of(sent, group->sent[i]) > *sent_space)
            *sent_space = length_of(sent, group->sent[i]);
    }
    for (int64_t i = group->lowest; i <= group->highest; i++)
        if ((total += length_of(real, i) + 2) > MOST_SPACE) /* a part takes two numbers, and at least two characters */
            return 0;
    if (total > *real_space)
        *real_space = total;
    return 1;
}

static int64_t end_of(const cover *a)
{
    return a->count ? a->parts[2 * a->count - 1] : 0;
}

static const uint8_t *text_of(const masks *all, int64_t i)
{
    return all->text + all->starts[i];
}

/* Count the shared pixels of each pair; return 0 if the read part of a mask is invalid. */
static int compare_group(
    const pairs *group, const masks *sent, const masks *real, cover *covers, int64_t *space, int64_t *sent_space,
    int64_t *shared)
{
    for (int64_t i = group->lowest; i <= group->highest; i++)
        covers[i - group->lowest].parts = NULL;
    for (int64_t i = 0; i < group->count; i++) {
        int64_t other = group->real[i];
        cover *its = &covers[other - group->lowest];
        if (!its->parts) {
            if (!take_cover(its, space, text_of(real, other), length_of(real, other), INT64_MAX))
                return 0;
            space += 2 * its->count;
        }
    }
    int among = sent->text == real->text && sent->starts == real->starts; /* masks are compared with each other */
    for (int64_t i = 0, next; i < group->count; i = next) {
        int64_t number = group->sent[i], limit = 0;
        cover mine = {NULL, 0};
        for (next = i; next < group->count && group->sent[next] == number; next++) {
            int64_t end = end_of(&covers[group->real[next] - group->lowest]);
            limit = end > limit ? end : limit;
        }
        if (among && number >= group->lowest && number <= group->highest)
            mine = covers[number - group->lowest];
        if (!mine.parts && !take_cover(&mine, sent_space, text_of(sent, number), length_of(sent, number), limit))
            return 0;
        for (int64_t j = i; j < next; j++)
            shared[j] = shared_by(&mine, &covers[group->real[j] - group->lowest]);
    }
    return 1;
}

/* Count the shared pixels of `count` pairs of a predicted and a true mask.
 *
 * Pairs are grouped, each group between two bounds; in a group, pairs of one predicted mask are adjacent, and true
 * masks have close numbers. */
SJ_EXPORT int sj_overlaps(
    const uint8_t *sent_text, int64_t sent_length, const int64_t *sent_starts, const int64_t *sent_stops,
    int64_t sent_count, const uint8_t *real_text, int64_t real_length, const int64_t *real_starts,
    const int64_t *real_stops, int64_t real_count, const int64_t *pair_sent, const int64_t *pair_real,
    int64_t count, const int64_t *bounds, int64_t groups, int64_t *shared)
{
    masks sent = {sent_text, sent_length, sent_starts, sent_stops, sent_count};
    masks real = {real_text, real_length, real_starts, real_stops, real_count};
    int64_t sent_space = 0, real_space = 0, most = 0;
    if (!are_bounded(&sent) || !are_bounded(&real) || !pair_sent || !pair_real || !bounds || !shared
        || !sj_are_bounds(bounds, groups, count))
        return SJ_BAD_CALL;
    for (int64_t g = 0; g < groups; g++) {
        pairs group = {pair_sent + bounds[g], pair_real + bounds[g], bounds[g + 1] - bounds[g], 0, 0};
        if (!look_at(&group, &sent, &real, &sent_space, &real_space))
            return SJ_BAD_CALL;
        if (group.highest - group.lowest + 1 > most)
            most = group.highest - group.lowest + 1;
    }
    int64_t *space = malloc((size_t)(real_space + sent_space + 2) * sizeof *space);
    cover *covers = malloc((size_t)(most + 1) * sizeof *covers);
    int status = space && covers ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t g = 0; g < groups && status == SJ_FINE; g++) {
        pairs group = {pair_sent + bounds[g], pair_real + bounds[g], bounds[g + 1] - bounds[g], 0, 0};
        look_at(&group, &sent, &real, &sent_space, &real_space);
        if (!compare_group(&group, &sent, &real, covers, space, space + real_space, shared + bounds[g]))
            status = SJ_BAD_DATA;
    }
    free(space);
    free(covers);
    return status;
}
