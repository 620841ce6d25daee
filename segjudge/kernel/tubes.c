/* The masks of a video's frames -> one wide mask with the frames side by side, since run lengths go down columns. */
#include "checks.h"

/* Read one number of a checked text. */
static const uint8_t *take_number(const uint8_t *at, int64_t *value)
{
    int64_t taken = 0;
    int shift = 0;
    uint8_t code;
    do {
        code = (uint8_t)(*at++ - SJ_FIRST_CHARACTER);
        taken |= (int64_t)(code & 0x1f) << shift;
        shift += 5;
    } while (code & SJ_CONTINUED);
    *value = code & SJ_NEGATIVE ? taken - ((int64_t)1 << shift) : taken;
    return at;
}

/* Add the runs of a frame, in pairs of background and object; return whether they fit.
 *
 * From the fourth on, runs are differences within the frame and are copied unchanged. */
static int put_frame(sj_writer *to, const uint8_t *at, const uint8_t *end, const sj_ending *ending)
{
    int64_t run;
    for (int i = 0; at != end && i < 3; i++) {
        at = take_number(at, &run);
        if (!sj_put_run(to, run))
            return 0;
    }
    if (at != end) {
        if (to->end - to->at < end - at)
            return 0;
        memcpy(to->at, at, (size_t)(end - at));
        to->at += end - at;
        to->count = 4 + ending->open;
        to->last[0] = ending->background, to->last[1] = ending->object;
    }
    return to->count & 1 ? sj_put_run(to, 0) : 1;
}

/* Join the masks of the frames of each instance; a frame without a mask has no text and gets an empty one.
 *
 * The texts are consecutive, each between two bounds. Frames are ordered by instance, each instance's frames between
 * two bounds. `texts` is the number of texts, `count` that of frames. */
SJ_EXPORT int sj_join_frames(
    const uint8_t *text, int64_t length, const int64_t *bounds, int64_t texts, const uint8_t *shown,
    const int64_t *pixels, int64_t count, const int64_t *frames, int64_t instances, uint8_t *out, int64_t room,
    int64_t *out_bounds, int64_t *area)
{
    int64_t next = 0;
    if (!text || !bounds || !shown || !pixels || !frames || !out || room < 0 || !out_bounds || !area
        || !sj_are_bounds(bounds, texts, length) || !sj_are_bounds(frames, instances, count))
        return SJ_BAD_CALL;
    for (int64_t f = 0; f < count; f++)
        if (pixels[f] < 0 || pixels[f] > SJ_MOST_PIXELS)
            return SJ_BAD_CALL;
    sj_writer to = {out, out + room, 0, {0, 0}};
    out_bounds[0] = 0;
    for (int64_t i = 0; i < instances; i++) {
        to.count = 0;
        for (int64_t f = frames[i]; f < frames[i + 1]; f++) {
            area[f] = 0;
            if (!shown[f]) {
                if (!sj_put_run(&to, pixels[f]) || !sj_put_run(&to, 0))
                    return SJ_FULL;
                continue;
            }
            if (next == texts)
                return SJ_BAD_CALL;
            sj_ending ending;
            if (sj_check_mask(text + bounds[next], bounds[next + 1] - bounds[next], pixels[f], &area[f], &ending))
                return SJ_BAD_DATA;
            if (!put_frame(&to, text + bounds[next], text + bounds[next + 1], &ending))
                return SJ_FULL;
            next++;
        }
        out_bounds[i + 1] = to.at - out;
    }
    return SJ_FINE;
}
