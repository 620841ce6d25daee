/* Few places of a volume in blocks of voxels -> the squared distance of each query to the nearest place.
 *
 * Queries of one block are close together, so that places near one of them are the only ones that matter for all.
 * Bounds are sums of the same squares in the same order as distances; rounding keeps their order, so that they are
 * exact. */
#include "nearest.h"

#include <math.h>
#include <stdlib.h>

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* The sides of blocks, and of large blocks, in voxels. */
#define SIDE 4
#define LARGE 16
#define VOXELS (SIDE * SIDE * SIDE)
/* Places are few if a volume has so many times as many voxels. */
#define VOXELS_PER_PLACE 64
/* The number of a block's queries from which on their places are looked for together. */
#define MANY 4
/* The share of a square by which rounding may differ. */
#define MARGIN 1e-9

/* Positions along x, y and z; a side of a volume fits into 16 bits. */
typedef struct {
    int16_t at[3];
} voxel;

/* The box that holds some voxels, and where these begin and end in a list. */
typedef struct {
    int16_t least[3], most[3];
    int64_t first, last;
} group;

/* A block, and the least square of a distance from the voxels of a box to it. */
typedef struct {
    const group *block;
    double least;
} choice;

struct sj_blocks {
    double spacing[3];
    voxel *places;
    group *blocks, *large;
    int64_t places_used, blocks_used, large_used, places_room, blocks_room, large_room;
};

static inline double square_of(int64_t step, double spacing)
{
    double length = (double)step * spacing;
    return length * length;
}

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

/* Add the blocks of large ones in a row; return 0 without memory. */
static int add_row(sj_blocks *to, const sj_list *places, int64_t front, int64_t top)
{
    strip strips[(LARGE / SIDE) * (LARGE / SIDE)];
    int64_t count = 0;
    for (int64_t z = front; z < smaller_of(front + LARGE, places->depth); z += SIDE)
        for (int64_t y = top; y < smaller_of(top + LARGE, places->height); y += SIDE)
            strips[count++] = open_strip(places, z, y);
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

sj_blocks *sj_make_blocks(const sj_list *places, const double *spacing)
{
    sj_blocks *blocks = calloc(1, sizeof *blocks);
    int is_made = blocks && places->count <= VOXELS + places->depth * places->height * places->width / VOXELS_PER_PLACE;
    if (is_made)
        memcpy(blocks->spacing, spacing, sizeof blocks->spacing);
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

/* Return the least square of a distance between two boxes. */
static inline double find_least(const sj_blocks *of, const group *one, const int16_t *least, const int16_t *most)
{
    double squares[3];
    for (int axis = 0; axis < 3; axis++) {
        int before = least[axis] - one->most[axis], behind = one->least[axis] - most[axis];
        int gap = before > behind ? before : behind;
        squares[axis] = square_of(gap > 0 ? gap : 0, of->spacing[axis]);
    }
    return squares[0] + squares[1] + squares[2];
}

/* Return the greatest square of a distance between a place and the voxels of a box. */
static inline double find_greatest(const sj_blocks *of, const voxel *place, const group *box)
{
    double squares[3];
    for (int axis = 0; axis < 3; axis++) {
        int before = place->at[axis] - box->least[axis], behind = box->most[axis] - place->at[axis];
        squares[axis] = square_of(before > behind ? before : behind, of->spacing[axis]);
    }
    return squares[0] + squares[1] + squares[2];
}

static inline double measure(const sj_blocks *of, const voxel *one, const voxel *other)
{
    double squares[3];
    for (int axis = 0; axis < 3; axis++)
        squares[axis] = square_of(one->at[axis] - other->at[axis], of->spacing[axis]);
    return squares[0] + squares[1] + squares[2];
}

/* Search a block for a nearer place; return the least square. */
static inline double
search_block(const sj_blocks *of, const group *block, const voxel *query, double best, int64_t *nearest)
{
    for (int64_t place = block->first; place < block->last; place++) {
        double square = measure(of, query, of->places + place);
        *nearest = square < best ? place : *nearest;
        best = square < best ? square : best;
    }
    return best;
}

/* Return the place nearest to a query, given one that is not far. */
static int64_t search_all(const sj_blocks *of, const voxel *query, int64_t nearest)
{
    double best = measure(of, query, of->places + nearest);
    for (const group *large = of->large; large < of->large + of->large_used; large++)
        if (find_least(of, large, query->at, query->at) < best)
            for (int64_t block = large->first; block < large->last; block++)
                if (find_least(of, of->blocks + block, query->at, query->at) < best)
                    best = search_block(of, of->blocks + block, query, best, &nearest);
    return nearest;
}

/* Squares along each axis from the voxels of a box to a place. */
typedef struct {
    double squares[3][SIDE];
} pivot;

static pivot make_pivot(const sj_blocks *of, const voxel *place, const group *box)
{
    pivot made = {{{0}}};
    for (int axis = 0; axis < 3; axis++)
        for (int at = box->least[axis]; at <= box->most[axis]; at++)
            made.squares[axis][at - box->least[axis]] = square_of(at - place->at[axis], of->spacing[axis]);
    return made;
}

/* Return whether each voxel of a box is nearer to a place than to any of a group, by more than rounding may differ.
 * Squares are sums over axes, so the greatest difference is the sum of those along each axis. */
static int is_behind(const sj_blocks *of, const group *places, const pivot *from, const group *box)
{
    double difference = 0, size = 0;
    for (int axis = 0; axis < 3; axis++) {
        double greatest = -INFINITY;
        for (int at = box->least[axis]; at <= box->most[axis]; at++) {
            int before = places->least[axis] - at, behind = at - places->most[axis];
            int gap = before > behind ? before : behind;
            double square = from->squares[axis][at - box->least[axis]];
            double more = square - square_of(gap > 0 ? gap : 0, of->spacing[axis]);
            greatest = more > greatest ? more : greatest;
            size = square > size ? square : size;
        }
        difference += greatest;
    }
    return difference < -MARGIN * size;
}

/* List the blocks that may hold the nearest place of a voxel in a box, given a place and its greatest square. */
static int64_t list_blocks(const sj_blocks *of, const group *box, const voxel *place, double greatest, choice *chosen)
{
    int64_t count = 0;
    pivot from = make_pivot(of, place, box);
    for (const group *large = of->large; large < of->large + of->large_used; large++) {
        if (find_least(of, large, box->least, box->most) > greatest || is_behind(of, large, &from, box))
            continue;
        for (int64_t block = large->first; block < large->last; block++) {
            choice each = {of->blocks + block, find_least(of, of->blocks + block, box->least, box->most)};
            if (each.least <= greatest && !is_behind(of, each.block, &from, box))
                chosen[count++] = each;
        }
    }
    return count;
}

/* Answer the queries of a block, whose places begin with one that is near. */
static void answer_block(
    const sj_blocks *blocks, const group *box, const voxel *queries, choice *chosen, int64_t *nearest, double *out)
{
    const voxel *places = blocks->places;
    if (box->last < MANY) {
        for (int64_t query = 0; query < box->last; query++) {
            *nearest = search_all(blocks, queries + query, *nearest);
            out[query] = measure(blocks, queries + query, places + *nearest);
        }
        return;
    }
    *nearest = search_all(blocks, queries + box->last / 2, *nearest);
    double greatest = find_greatest(blocks, places + *nearest, box);
    int64_t few = list_blocks(blocks, box, places + *nearest, greatest, chosen);
    for (int64_t query = 0; query < box->last; query++) {
        double best = measure(blocks, queries + query, places + *nearest);
        for (const choice *each = chosen; each < chosen + few; each++)
            if (each->least < best && find_least(blocks, each->block, queries[query].at, queries[query].at) < best)
                best = search_block(blocks, each->block, queries + query, best, nearest);
        out[query] = best;
    }
}

int sj_search_blocks(const sj_blocks *blocks, const sj_list *queries, double *out)
{
    choice *chosen = malloc((size_t)(blocks->blocks_used + 1) * sizeof *chosen);
    voxel voxels[VOXELS];
    int64_t indices[VOXELS], nearest = 0;
    double squares[VOXELS];
    if (!chosen)
        return SJ_NO_MEMORY;
    for (int64_t z = 0; z < queries->depth; z += SIDE)
        for (int64_t y = 0; y < queries->height; y += SIDE) {
            strip all = open_strip(queries, z, y);
            while (all.soonest < queries->width) {
                group box = {{0, 0, 0}, {0, 0, 0}, 0, 0};
                box.last = take_voxels(&all, all.soonest / SIDE * SIDE + SIDE, voxels, indices, &box);
                answer_block(blocks, &box, voxels, chosen, &nearest, squares);
                for (int64_t query = 0; query < box.last; query++)
                    out[indices[query]] = squares[query];
            }
        }
    free(chosen);
    return SJ_FINE;
}
