/* Polygons -> run lengths as text, the same that pycocotools draws. */
#include "kernel.h"

#include <stdlib.h>

/* Corners are rounded to fifths of a pixel; an outline crosses a column between its second and third fifth. */
#define STEPS 5
#define CROSSED 2
/* The exclusive maximum of a corner's coordinate in fifths, and of an image's side. */
#define FURTHEST 1e9
#define FEW 64
#define MOST_PIXELS ((int64_t)1 << 31)

typedef struct {
    int64_t column, pixel;
} crossing;

typedef struct {
    crossing *found, *sorted;
    int64_t count, room;
    int64_t *places; /* the number of crossings per column, then their starts */
    int64_t height, width, first, last;
} canvas;

/* Record that an outline crosses a column at a height in fifths of a pixel. */
static int add_crossing(canvas *on, int64_t column, int64_t fifths)
{
    if (on->count == on->room) {
        int64_t room = on->room ? 2 * on->room : 256;
        crossing *found = realloc(on->found, (size_t)room * sizeof *found);
        if (!found)
            return 0;
        on->found = found;
        crossing *sorted = realloc(on->sorted, (size_t)room * sizeof *sorted);
        if (!sorted)
            return 0;
        on->sorted = sorted, on->room = room;
    }
    int64_t row = fifths <= CROSSED ? 0 : (fifths + CROSSED) / STEPS;
    row = row > on->height ? on->height : row;
    on->found[on->count].column = column, on->found[on->count++].pixel = column * on->height + row;
    on->first = column < on->first ? column : on->first, on->last = column > on->last ? column : on->last;
    return 1;
}

/* Record where a straight line between two corners crosses columns, walking along its longer side. */
static int add_line(canvas *on, int64_t xs, int64_t ys, int64_t xe, int64_t ye)
{
    int64_t low = xs < xe ? xs : xe, high = xs < xe ? xe : xs;
    int64_t column = low <= CROSSED ? 0 : (low - CROSSED + STEPS - 1) / STEPS;
    if (STEPS * column + CROSSED >= high || column >= on->width)
        return 1; /* as most lines of a fine outline */
    int64_t dx = high - low, dy = ye > ys ? ye - ys : ys - ye;
    if (dx >= dy ? xs > xe : ys > ye) {
        int64_t x = xs, y = ys;
        xs = xe, ys = ye, xe = x, ye = y;
    }
    if (dx >= dy) {
        double slope = (double)(ye - ys) / (double)dx;
        for (int64_t x = STEPS * column + CROSSED; x < high && column < on->width; x += STEPS, column++) {
            double there = slope * (double)(x - xs), next = slope * (double)(x - xs + 1);
            int64_t above = (int64_t)((double)ys + there + .5), below = (int64_t)((double)ys + next + .5);
            if (!add_crossing(on, column, above < below ? above : below))
                return 0;
        }
        return 1;
    }
    double slope = (double)(xe - xs) / (double)dy;
    int falls = xe < xs;
    for (int64_t x = STEPS * column + CROSSED; x < high && column < on->width; x += STEPS, column++) {
        /* Return the first step beyond the border, in rounded numbers. */
        int64_t step = (int64_t)(((double)(x - xs) + .5) / slope);
        step = step < 1 ? 1 : step > dy ? dy : step;
        while (step > 1) {
            double shift = slope * (double)(step - 1);
            if (((double)xs + shift + .5 >= (double)(x + 1)) == falls)
                break;
            step--;
        }
        while (step < dy) {
            double shift = slope * (double)step;
            if (((double)xs + shift + .5 >= (double)(x + 1)) != falls)
                break;
            step++;
        }
        if (!add_crossing(on, column, ys + step - 1))
            return 0;
    }
    return 1;
}

static int add_ring(canvas *on, const double *corners, int64_t count)
{
    int64_t x[2], y[2], first[2] = {0, 0};
    for (int64_t i = 0; i <= count; i++) {
        x[i & 1] = first[0], y[i & 1] = first[1];
        if (i < count) {
            double across = STEPS * corners[2 * i], down = STEPS * corners[2 * i + 1];
            if (!(across > -FURTHEST && across < FURTHEST && down > -FURTHEST && down < FURTHEST))
                return 0;
            x[i & 1] = (int64_t)(across + .5), y[i & 1] = (int64_t)(down + .5);
        }
        if (!i)
            first[0] = x[0], first[1] = y[0];
        else if (!add_line(on, x[1 - (i & 1)], y[1 - (i & 1)], x[i & 1], y[i & 1]))
            return 0;
    }
    return 1;
}

static int by_pixel(const void *a, const void *b)
{
    int64_t first = ((const crossing *)a)->pixel, second = ((const crossing *)b)->pixel;
    return (first > second) - (first < second);
}

/* Sort the crossings of a ring: by column, then within each column, which has few. */
static void sort_crossings(canvas *on)
{
    int64_t before = 0, most = 0;
    if (!on->count)
        return;
    for (int64_t i = 0; i < on->count; i++)
        on->places[on->found[i].column]++;
    for (int64_t column = on->first; column <= on->last; column++) {
        int64_t count = on->places[column];
        most = count > most ? count : most;
        on->places[column] = before, before += count;
    }
    for (int64_t i = 0; i < on->count; i++)
        on->sorted[on->places[on->found[i].column]++] = on->found[i];
    for (int64_t column = on->first; column <= on->last; column++)
        on->places[column] = 0;
    if (most > FEW)
        qsort(on->sorted, (size_t)on->count, sizeof *on->sorted, by_pixel);
    for (int64_t i = 1; i < on->count; i++) {
        crossing one = on->sorted[i];
        int64_t j = i;
        for (; j > 0 && on->sorted[j - 1].pixel > one.pixel; j--)
            on->sorted[j] = on->sorted[j - 1];
        on->sorted[j] = one;
    }
}

/* The pixels that a mask covers, as ranges from, to. */
typedef struct {
    int64_t (*parts)[2];
    int64_t count, room;
} cover;

static int add_part(cover *out, int64_t from, int64_t to)
{
    if (from == to)
        return 1;
    if (out->count == out->room) {
        int64_t room = out->room ? 2 * out->room : 256;
        int64_t(*parts)[2] = realloc(out->parts, (size_t)room * sizeof *parts);
        if (!parts)
            return 0;
        out->parts = parts, out->room = room;
    }
    out->parts[out->count][0] = from, out->parts[out->count++][1] = to;
    return 1;
}

static int by_start(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Write the union of the parts. */
static int write_cover(sj_writer *out, cover *all, int several, int64_t pixels, int64_t *area)
{
    int64_t at = 0, i = 0;
    out->count = 0, *area = 0;
    if (several && all->count)
        qsort(all->parts, (size_t)all->count, sizeof *all->parts, by_start);
    while (i < all->count) {
        int64_t from = all->parts[i][0], to = all->parts[i][1];
        for (i++; i < all->count && all->parts[i][0] <= to; i++)
            to = all->parts[i][1] > to ? all->parts[i][1] : to;
        if (!sj_put_run(out, from - at) || !sj_put_run(out, to - from))
            return 0;
        *area += to - from, at = to;
    }
    return at == pixels && out->count ? 1 : sj_put_run(out, pixels - at);
}

static int draw(canvas *on, cover *all, sj_writer *out, const double *numbers, const int64_t *rings, int64_t first,
                int64_t last, int64_t *area)
{
    all->count = 0;
    for (int64_t ring = first; ring < last; ring++) {
        on->count = 0, on->first = on->width, on->last = -1;
        if (!add_ring(on, numbers + rings[ring], (rings[ring + 1] - rings[ring]) / 2))
            return 0;
        sort_crossings(on);
        for (int64_t i = 0; i < on->count; i += 2)
            if (!add_part(all, on->sorted[i].pixel, i + 1 < on->count ? on->sorted[i + 1].pixel : on->height * on->width))
                return 0;
    }
    return write_cover(out, all, last - first > 1, on->height * on->width, area);
}

/* Write the text and area of each mask, the union of its rings in an image of its height and width. A ring is the
 * numbers between two bounds, x and y in turn. `stops` has the end of each text. */
SJ_EXPORT int sj_draw(
    const double *numbers, int64_t length, const int64_t *rings, int64_t ring_count, const int64_t *masks, int64_t count,
    const int64_t *sizes, uint8_t *text, int64_t room, int64_t *stops, int64_t *area)
{
    if (!numbers || length < 0 || !rings || !masks || !sizes || !text || room < 0 || !stops || !area
        || !sj_are_bounds(rings, ring_count, length) || !sj_are_bounds(masks, count, ring_count))
        return SJ_BAD_CALL;
    canvas on = {0};
    cover all = {0};
    sj_writer out = {text, text + room, 0, {0, 0}};
    int64_t widest = 0;
    int status = SJ_FINE;
    for (int64_t i = 0; i < count; i++) {
        int64_t height = sizes[2 * i], width = sizes[2 * i + 1];
        if (height < 1 || width < 1 || height >= MOST_PIXELS || width >= MOST_PIXELS / height)
            return SJ_BAD_DATA;
        widest = width > widest ? width : widest;
    }
    on.places = calloc((size_t)widest + 1, sizeof *on.places);
    if (!on.places)
        status = SJ_BAD_DATA;
    for (int64_t i = 0; i < count && status == SJ_FINE; i++) {
        on.height = sizes[2 * i], on.width = sizes[2 * i + 1];
        if (!draw(&on, &all, &out, numbers, rings, masks[i], masks[i + 1], area + i))
            status = out.end - out.at < SJ_LONGEST_NUMBER ? SJ_FULL : SJ_BAD_DATA;
        stops[i] = out.at - text;
    }
    free(on.places), free(on.found), free(on.sorted), free(all.parts);
    return status;
}
