/* Few places of a volume in blocks of voxels -> the squared distance of each query to the nearest place.
 *
 * Queries of one block are close together: places that are farther from each of them than the nearest place of one do
 * not matter. Bounds may round, because they are widened; distances are exact. */
#include "nearest.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The sides of blocks, and of large blocks, in voxels. */
#define SIDE 4
#define LARGE (1 << SJ_LARGE_BITS)
#define VOXELS (SIDE * SIDE * SIDE)
/* Places are few if a volume has so many times as many voxels. */
#define VOXELS_PER_PLACE 64
/* The number of queries in a large block from which on the blocks of their places are looked for together. */
#define MANY 4
/* The strips of blocks in a row of large ones. */
#define STRIPS ((LARGE / SIDE) * (LARGE / SIDE))
/* The blocks in a large one, and its voxels. */
#define BLOCKS ((LARGE / SIDE) * (LARGE / SIDE) * (LARGE / SIDE))
#define MOST_VOXELS (LARGE * LARGE * LARGE)
/* The maximum number of places that are compared one by one for the queries of a large block. */
#define MOST_PLACES 1024
/* The share of a square by which rounding may differ in 32 bits; and the steps whose squares these can hold. */
#define MARGIN 1e-5f
#define LEAST_STEP 1e-9
#define GREATEST_STEP 1e9

/* Positions along x, y and z; a side of a volume fits into 16 bits. */
typedef struct {
    int16_t at[3];
} voxel;

/* The box that holds some voxels, and where these begin and end in a list. */
typedef struct {
    int16_t least[3], most[3];
    int64_t first, last;
} group;

/* Boxes side by side: their ends along each axis and their places; and a number for each, so that many are compared at
 * once. */
typedef struct {
    float *least[3], *most[3], *numbers;
    int64_t *firsts, *lasts, count;
} boxes;

struct sj_blocks {
    double spacing[3];
    voxel *places;
    group *blocks, *large;
    int64_t places_used, blocks_used, large_used, places_room, blocks_room, large_room;
};

static void widen(group *box, const int16_t *least, const int16_t *most, int is_first)
{
    for (int axis = 0; axis < 3; axis++) {
        box->least[axis] = is_first || least[axis] < box->least[axis] ? least[axis] : box->least[axis];
        box->most[axis] = is_first || most[axis] > box->most[axis] ? most[axis] : box->most[axis];
    }
}

/* The rows through blocks side by side: the first voxel of each that no block has, and the end of the row; and the
 * least position along x of these voxels. */
typedef struct {
    const sj_list *of;
    int64_t z, y, planes, rows, soonest;
    int32_t next[SIDE * SIDE], ends[SIDE * SIDE];
} strip;

static inline int64_t smaller_of(int64_t one, int64_t other) { return one < other ? one : other; }

static strip open_strip(const sj_list *of, int64_t z, int64_t y)
{
    strip all = {of, z, y, smaller_of(SIDE, of->depth - z), smaller_of(SIDE, of->height - y), of->width, {0}, {0}};
    for (int64_t plane = 0; plane < all.planes; plane++)
        for (int64_t row = 0; row < all.rows; row++) {
            int64_t index = SIDE * plane + row, number = (z + plane) * of->height + y + row;
            all.next[index] = of->firsts[number], all.ends[index] = of->firsts[number + 1];
            if (all.next[index] < all.ends[index])
                all.soonest = smaller_of(all.soonest, of->at[all.next[index]] - number * of->width);
        }
    return all;
}

/* Take the voxels of the next block that has some out of a strip, up to an end along x, in the volume's order; find
 * their box, and return how many there are. Their indices in the list are written unless there is no space. */
static int64_t take_voxels(strip *from, int64_t end, voxel *voxels, int64_t *indices, group *box)
{
    const sj_list *of = from->of;
    int64_t count = 0, soonest = of->width;
    for (int64_t plane = 0; plane < from->planes; plane++)
        for (int64_t row = 0; row < from->rows; row++) {
            int64_t index = SIDE * plane + row, start = ((from->z + plane) * of->height + from->y + row) * of->width;
            for (; from->next[index] < from->ends[index]; from->next[index]++) {
                int64_t x = of->at[from->next[index]] - start;
                if (x >= end) {
                    soonest = smaller_of(soonest, x);
                    break;
                }
                voxel each = {{(int16_t)x, (int16_t)(from->y + row), (int16_t)(from->z + plane)}};
                widen(box, each.at, each.at, !count);
                if (indices)
                    indices[count] = from->next[index];
                voxels[count++] = each;
            }
        }
    from->soonest = soonest;
    return count;
}

/* Return a list with room for so many items more; NULL without memory, where the old one stays. */
static void *make_room(void *list, int64_t used, int64_t more, int64_t *room, size_t size)
{
    if (used + more <= *room)
        return list;
    int64_t wanted = 2 * *room > used + more ? 2 * *room : used + more;
    void *larger = realloc(list, (size_t)wanted * size);
    *room = larger ? wanted : *room;
    return larger;
}

/* Add the places of a strip's next block, up to an end along x, to the blocks; return 0 without memory. */
static int add_block(sj_blocks *to, strip *from, int64_t end)
{
    group box = {{0, 0, 0}, {0, 0, 0}, to->places_used, 0};
    void *list = make_room(to->places, to->places_used, VOXELS, &to->places_room, sizeof *to->places);
    if (!list)
        return 0;
    to->places = list;
    box.last = to->places_used += take_voxels(from, end, to->places + to->places_used, NULL, &box);
    list = make_room(to->blocks, to->blocks_used, 1, &to->blocks_room, sizeof *to->blocks);
    if (!list)
        return 0;
    to->blocks = list;
    to->blocks[to->blocks_used++] = box;
    return 1;
}

/* Add a large block with the blocks from one on; return 0 without memory. */
static int add_large(sj_blocks *to, int64_t first)
{
    if (first == to->blocks_used)
        return 1;
    void *list = make_room(to->large, to->large_used, 1, &to->large_room, sizeof *to->large);
    if (!list)
        return 0;
    to->large = list;
    group *large = to->large + to->large_used++;
    large->first = first, large->last = to->blocks_used;
    for (int64_t block = first; block < to->blocks_used; block++)
        widen(large, to->blocks[block].least, to->blocks[block].most, block == first);
    return 1;
}

/* Open the strips of the large blocks in a row; return their number. */
static int64_t open_strips(strip *strips, const sj_list *of, int64_t front, int64_t top)
{
    int64_t count = 0;
    for (int64_t z = front; z < smaller_of(front + LARGE, of->depth); z += SIDE)
        for (int64_t y = top; y < smaller_of(top + LARGE, of->height); y += SIDE)
            strips[count++] = open_strip(of, z, y);
    return count;
}

/* Add the blocks of large ones in a row; return 0 without memory. */
static int add_row(sj_blocks *to, const sj_list *places, int64_t front, int64_t top)
{
    strip strips[STRIPS];
    int64_t count = open_strips(strips, places, front, top);
    for (int64_t left = 0; left < places->width; left += LARGE) {
        int64_t first = to->blocks_used;
        for (strip *each = strips; each < strips + count; each++)
            while (each->soonest < smaller_of(left + LARGE, places->width))
                if (!add_block(to, each, each->soonest / SIDE * SIDE + SIDE))
                    return 0;
        if (!add_large(to, first))
            return 0;
    }
    return 1;
}

int sj_are_few(const sj_list *places)
{
    return places->count <= VOXELS + places->depth * places->height * places->width / VOXELS_PER_PLACE;
}

sj_blocks *sj_make_blocks(const sj_list *places, const double *spacing)
{
    sj_blocks *blocks = calloc(1, sizeof *blocks);
    int is_made = blocks != NULL;
    for (int axis = 0; is_made && axis < 3; axis++) {
        blocks->spacing[axis] = spacing[axis];
        is_made = spacing[axis] > LEAST_STEP && spacing[axis] < GREATEST_STEP;
    }
    for (int64_t z = 0; is_made && z < places->depth; z += LARGE)
        for (int64_t y = 0; is_made && y < places->height; y += LARGE)
            is_made = add_row(blocks, places, z, y);
    if (is_made)
        return blocks;
    sj_free_blocks(blocks);
    return NULL;
}

void sj_free_blocks(sj_blocks *blocks)
{
    if (!blocks)
        return;
    free(blocks->places);
    free(blocks->blocks);
    free(blocks->large);
    free(blocks);
}

int64_t sj_count_blocks(const sj_blocks *blocks) { return blocks->large_used; }

static inline double measure(const sj_blocks *of, const voxel *one, const voxel *other)
{
    double squares[3];
    for (int axis = 0; axis < 3; axis++)
        squares[axis] = sj_square_of(one->at[axis] - other->at[axis], of->spacing[axis]);
    return squares[0] + squares[1] + squares[2];
}

/* ── boxes side by side ── */

static int open_boxes(boxes *of, int64_t room)
{
    *of = (boxes){.numbers = malloc((size_t)(7 * room + 1) * sizeof *of->numbers)};
    of->firsts = malloc((size_t)(2 * room + 1) * sizeof *of->firsts), of->lasts = of->firsts + room;
    for (int axis = 0; of->numbers && axis < 3; axis++)
        of->least[axis] = of->numbers + (1 + axis) * room, of->most[axis] = of->numbers + (4 + axis) * room;
    return of->numbers && of->firsts;
}

static void close_boxes(boxes *of)
{
    free(of->numbers);
    free(of->firsts);
}

static void add_box(boxes *to, const group *from)
{
    for (int axis = 0; axis < 3; axis++)
        to->least[axis][to->count] = from->least[axis], to->most[axis][to->count] = from->most[axis];
    to->firsts[to->count] = from->first, to->lasts[to->count++] = from->last;
}

/* Number each box by the least square of the distances between a voxel and the box. */
static void measure_boxes(const sj_blocks *of, const boxes *all, const voxel *from)
{
    const float x = from->at[0], y = from->at[1], z = from->at[2];
    const float along_x = (float)of->spacing[0], along_y = (float)of->spacing[1], along_z = (float)of->spacing[2];
#define GAP(at, axis) \
    float before_##axis = at - all->most[axis][box], behind_##axis = all->least[axis][box] - at; \
    float gap_##axis = before_##axis > behind_##axis ? before_##axis : behind_##axis; \
    gap_##axis = gap_##axis > 0 ? gap_##axis : 0;
    for (int64_t box = 0; box < all->count; box++) {
        GAP(x, 0) GAP(y, 1) GAP(z, 2)
        gap_0 *= along_x, gap_1 *= along_y, gap_2 *= along_z;
        all->numbers[box] = gap_0 * gap_0 + gap_1 * gap_1 + gap_2 * gap_2;
    }
#undef GAP
}

/* Number each box by the greatest difference, among the voxels of a box of queries, of the squares of the distances to a
 * place and to the box: a sum over axes, in each of which the difference is convex, so that an end has the greatest. */
static float compare_boxes(const sj_blocks *of, const boxes *all, const voxel *place, const group *queries)
{
    float size = 0;
    memset(all->numbers, 0, (size_t)all->count * sizeof *all->numbers);
    for (int axis = 0; axis < 3; axis++) {
        const float from = queries->least[axis], to = queries->most[axis], *least = all->least[axis], *most = all->most[axis];
        const float square = (float)(of->spacing[axis] * of->spacing[axis]);
        const float at = (from - place->at[axis]) * (from - place->at[axis]);
        const float other = (to - place->at[axis]) * (to - place->at[axis]);
        float *numbers = all->numbers;
        size += square * (at > other ? at : other);
        for (int64_t box = 0; box < all->count; box++) {
            float before = from - most[box], behind = least[box] - from, gap = before > behind ? before : behind;
            float first, last;
            gap = gap > 0 ? gap : 0;
            first = at - gap * gap;
            before = to - most[box], behind = least[box] - to, gap = before > behind ? before : behind;
            gap = gap > 0 ? gap : 0;
            last = other - gap * gap;
            numbers[box] += square * (first > last ? first : last);
        }
    }
    return -MARGIN * size;
}

/* ── the search ── */

/* Search for a nearer place; return the least square. */
static inline double
search_places(const sj_blocks *of, int64_t first, int64_t last, const voxel *query, double best, int64_t *nearest)
{
    for (int64_t place = first; place < last; place++) {
        double square = measure(of, query, of->places + place);
        *nearest = square < best ? place : *nearest;
        best = square < best ? square : best;
    }
    return best;
}

/* Search the places of boxes for the nearest one to a query, given one that is not far; return its square. */
static double search_boxes(const sj_blocks *of, const boxes *all, const voxel *query, int64_t *nearest)
{
    if (all->count == 1)
        return search_places(of, all->firsts[0], all->lasts[0], query, INFINITY, nearest);
    double best = measure(of, query, of->places + *nearest);
    measure_boxes(of, all, query);
    for (int64_t box = 0; box < all->count; box++)
        if (all->numbers[box] * (1 - MARGIN) <= (float)best)
            best = search_places(of, all->firsts[box], all->lasts[box], query, best, nearest);
    return best;
}

/* Of the places, all large blocks, the blocks of one, the blocks or places that may be the nearest of some voxel of the box
 * around, and those that may be of one of the box; and a place that is not far. */
struct sj_search {
    const sj_blocks *of;
    boxes large, inner, few, fewer;
    int64_t nearest;
};

sj_search *sj_open_search(const sj_blocks *blocks)
{
    int64_t room = blocks->blocks_used > MOST_PLACES ? blocks->blocks_used : MOST_PLACES;
    sj_search *in = calloc(1, sizeof *in);
    if (!in)
        return NULL;
    room = room < blocks->places_used ? room : blocks->places_used;
    in->of = blocks;
    int has_room[4] = {open_boxes(&in->large, blocks->large_used), open_boxes(&in->inner, BLOCKS),
                       open_boxes(&in->few, room), open_boxes(&in->fewer, room)};
    if (!has_room[0] || !has_room[1] || !has_room[2] || !has_room[3]) {
        sj_close_search(in);
        return NULL;
    }
    for (int64_t large = 0; large < blocks->large_used; large++)
        add_box(&in->large, blocks->large + large);
    return in;
}

void sj_close_search(sj_search *in)
{
    if (!in)
        return;
    close_boxes(&in->large);
    close_boxes(&in->inner);
    close_boxes(&in->few);
    close_boxes(&in->fewer);
    free(in);
}

/* List the blocks of a large one. */
static void list_inner(sj_search *in, int64_t large)
{
    in->inner.count = 0;
    for (int64_t block = in->of->large[large].first; block < in->of->large[large].last; block++)
        add_box(&in->inner, in->of->blocks + block);
}

/* Search all places for the nearest one to a query, given one that is not far. */
static double search_all(sj_search *in, const voxel *query)
{
    double best = measure(in->of, query, in->of->places + in->nearest);
    measure_boxes(in->of, &in->large, query);
    for (int64_t large = 0; large < in->large.count; large++)
        if (in->large.numbers[large] * (1 - MARGIN) <= (float)best) {
            list_inner(in, large);
            int64_t near = in->nearest;
            double square = search_boxes(in->of, &in->inner, query, &near);
            in->nearest = square < best ? near : in->nearest;
            best = square < best ? square : best;
        }
    return best;
}

/* Add the boxes that a comparison does not exclude to others. */
static void add_boxes(const boxes *from, float limit, boxes *to)
{
    for (int64_t box = 0; box < from->count; box++)
        if (from->numbers[box] >= limit) {
            for (int axis = 0; axis < 3; axis++)
                to->least[axis][to->count] = from->least[axis][box], to->most[axis][to->count] = from->most[axis][box];
            to->firsts[to->count] = from->firsts[box], to->lasts[to->count++] = from->lasts[box];
        }
}

/* Replace the few boxes by those of their places, unless these are many, that may be the nearest one of a voxel. */
static void keep_places(sj_search *in, const group *box)
{
    int64_t count = 0;
    for (int64_t each = 0; each < in->few.count; each++)
        count += in->few.lasts[each] - in->few.firsts[each];
    if (count > MOST_PLACES)
        return;
    in->fewer.count = 0;
    for (int64_t each = 0; each < in->few.count; each++)
        for (int64_t place = in->few.firsts[each]; place < in->few.lasts[each]; place++) {
            group lone = {{0, 0, 0}, {0, 0, 0}, place, place + 1};
            widen(&lone, in->of->places[place].at, in->of->places[place].at, 1);
            add_box(&in->fewer, &lone);
        }
    float limit = compare_boxes(in->of, &in->fewer, in->of->places + in->nearest, box);
    in->few.count = 0;
    add_boxes(&in->fewer, limit, &in->few);
}

/* Return a box, and write the voxel in its middle. */
static group read_box(const int16_t *least, const int16_t *most, voxel *middle)
{
    group box = {{0, 0, 0}, {0, 0, 0}, 0, 0};
    widen(&box, least, most, 1);
    for (int axis = 0; axis < 3; axis++)
        middle->at[axis] = (int16_t)((least[axis] + most[axis]) / 2);
    return box;
}

void sj_look_around(sj_search *in, const int16_t *least, const int16_t *most)
{
    voxel middle;
    group box = read_box(least, most, &middle);
    search_all(in, &middle);
    const voxel *place = in->of->places + in->nearest;
    float limit = compare_boxes(in->of, &in->large, place, &box);
    in->few.count = 0;
    for (int64_t large = 0; large < in->large.count; large++)
        if (in->large.numbers[large] >= limit) {
            list_inner(in, large);
            add_boxes(&in->inner, compare_boxes(in->of, &in->inner, place, &box), &in->few);
        }
    keep_places(in, &box);
}

void sj_find_target(sj_search *in, const int16_t *least, const int16_t *most, int16_t *place)
{
    voxel middle;
    read_box(least, most, &middle);
    search_boxes(in->of, &in->few, &middle, &in->nearest);
    memcpy(place, in->of->places[in->nearest].at, 3 * sizeof *place);
}

int sj_look_at(sj_search *in, const int16_t *least, const int16_t *most)
{
    voxel middle;
    group box = read_box(least, most, &middle);
    in->fewer.count = 0;
    add_boxes(&in->few, compare_boxes(in->of, &in->few, in->of->places + in->nearest, &box), &in->fewer);
    return in->fewer.count == 1 && in->fewer.lasts[0] == in->fewer.firsts[0] + 1;
}

double sj_find_square(sj_search *in, int64_t x, int64_t y, int64_t z)
{
    voxel at = {{(int16_t)x, (int16_t)y, (int16_t)z}};
    return search_boxes(in->of, &in->fewer, &at, &in->nearest);
}

/* ── queries in a list ── */

/* The queries of a large block, by blocks. */
typedef struct {
    group blocks[BLOCKS];
    voxel voxels[MOST_VOXELS];
    int64_t indices[MOST_VOXELS], count, used; /* of blocks, of voxels */
} block_queries;

/* Answer the queries of a large block. */
static void answer_queries(sj_search *in, const block_queries *of, double *out)
{
    group box = of->blocks[0];
    for (int64_t query = 0; of->used < MANY && query < of->used; query++)
        out[of->indices[query]] = search_all(in, of->voxels + query);
    if (of->used < MANY)
        return;
    for (int64_t block = 1; block < of->count; block++)
        widen(&box, of->blocks[block].least, of->blocks[block].most, 0);
    sj_look_around(in, box.least, box.most);
    for (const group *block = of->blocks; block < of->blocks + of->count; block++) {
        int16_t target[3];
        sj_find_target(in, block->least, block->most, target);
        sj_look_at(in, block->least, block->most);
        for (int64_t query = block->first; query < block->last; query++)
            out[of->indices[query]] = search_boxes(in->of, &in->fewer, of->voxels + query, &in->nearest);
    }
}

/* Answer the queries of large blocks in a row. */
static void
answer_row(sj_search *in, const sj_list *queries, int64_t front, int64_t top, block_queries *of, double *out)
{
    strip strips[STRIPS];
    int64_t count = open_strips(strips, queries, front, top);
    for (int64_t left = 0; left < queries->width; left += LARGE) {
        of->count = of->used = 0;
        for (strip *each = strips; each < strips + count; each++)
            while (each->soonest < smaller_of(left + LARGE, queries->width)) {
                group *block = of->blocks + of->count++;
                block->first = of->used;
                of->used += take_voxels(each, each->soonest / SIDE * SIDE + SIDE, of->voxels + of->used,
                                        of->indices + of->used, block);
                block->last = of->used;
            }
        if (of->used)
            answer_queries(in, of, out);
    }
}

int sj_search_blocks(const sj_blocks *blocks, const sj_list *queries, double *out)
{
    block_queries *of = malloc(sizeof *of);
    sj_search *in = sj_open_search(blocks);
    int status = of && in ? SJ_FINE : SJ_NO_MEMORY;
    for (int64_t z = 0; status == SJ_FINE && z < queries->depth; z += LARGE)
        for (int64_t y = 0; y < queries->height; y += LARGE)
            answer_row(in, queries, z, y, of, out);
    sj_close_search(in);
    free(of);
    return status;
}

int sj_find_rows(sj_list *list, int32_t *firsts)
{
    int64_t rows = list->depth * list->height, place = 0;
    list->firsts = firsts;
    for (int64_t row = 0; row < rows; row++) {
        firsts[row] = (int32_t)place;
        for (int64_t end = (row + 1) * list->width; place < list->count && list->at[place] < end; place++)
            if (list->at[place] < 0 || (place && list->at[place] <= list->at[place - 1]))
                return 0;
    }
    firsts[rows] = (int32_t)place;
    return place == list->count;
}
