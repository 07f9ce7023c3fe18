// canny, hysteresis: which weak edge pixels are connected to a strong one, in three passes whatever the picture.
//
//     canny_label    in each tile: what strong pixels reach, and the connected pieces of the rest that reach the tile's border
//     canny_join     across the borders of tiles: pieces that touch become one, as a forest of parents
//     canny_expand   pieces whose root is an edge reach the rest of their tiles; a byte for each pixel, 0 or 255
//
// A tile is 64 × 64 pixels and a warp's; a lane holds two neighbouring rows of it, a bit for each pixel. To reach is to
// widen the set along the runs of a row (a carry runs through the ones of a sum) and to the rows beside, until nothing is new.
//
// The pixels on the border of a tile are nodes, whose number is 1 + 256 · tile + place; of a piece, the node with the highest
// rank stands for the others. A parent is a node of a smaller number, or 0: an edge. Ranks of all pieces are found together,
// a bit at a time: what those with the bit reach has it, and those without it are out where they are reached. So the number
// of passes over a tile grows with the logarithm of its nodes, and a path that winds through all tiles costs no more passes
// over the picture than a dot.
//
// Layouts: canny_map.cuh. Macro that says how the output lies: ALIGNED 0 1 (1 where all rows of it start on 16 bytes).
#include "canny_map.cuh"

typedef unsigned long long Bits;  // of a row of a tile; pixel x is bit x

constexpr int SIDE = 64;  // of a tile
constexpr int WARPS = 4, THREADS = WARP * WARPS;
constexpr int NODES = 4 * SIDE;  // of a tile; corners are two
constexpr int WORDS = NODES / WARP;  // of the bits of a border: two each of top, bottom, left and right
constexpr int UNITS = SIDE / UNIT_PIXELS;

struct MapGeometry {
    int height, width, pictures;
    int tiles_across, tiles_down;
    int late;  // pixels of the last unit of a row that belong to the one before (canny_thin.cu)
    long long out_row_bytes, out_picture_bytes;
};

// Two rows of a tile: 2·lane and 2·lane + 1.
struct Rows {
    Bits upper, lower;
};

// --- sets of pixels in a tile -------------------------------------------------------------------------------------------
__device__ __forceinline__ Bits joined(unsigned low, unsigned high) { return static_cast<Bits>(high) << 32 | low; }
__device__ __forceinline__ unsigned low_word(Bits bits) { return static_cast<unsigned>(bits); }
__device__ __forceinline__ unsigned high_word(Bits bits) { return static_cast<unsigned>(bits >> 32); }
__device__ __forceinline__ Bits of_lane(Bits bits, int lane) {
    return joined(__shfl_sync(EVERY_LANE, low_word(bits), lane), __shfl_sync(EVERY_LANE, high_word(bits), lane));
}

// The row above the lane's rows, and the one below.
__device__ __forceinline__ Bits row_above(const Rows &rows, int lane) {
    const Bits bits = joined(__shfl_up_sync(EVERY_LANE, low_word(rows.lower), 1),
                             __shfl_up_sync(EVERY_LANE, high_word(rows.lower), 1));
    return lane > 0 ? bits : 0;
}
__device__ __forceinline__ Bits row_below(const Rows &rows, int lane) {
    const Bits bits = joined(__shfl_down_sync(EVERY_LANE, low_word(rows.upper), 1),
                             __shfl_down_sync(EVERY_LANE, high_word(rows.upper), 1));
    return lane < WARP - 1 ? bits : 0;
}

// Rows of pixels that may be reached, with what carries to the left takes: runs of two and of four of them.
struct Open {
    Bits one, two, four;
    __device__ __forceinline__ explicit Open(Bits row) : one(row), two(row & row >> 1), four(two & two >> 2) {}
};

// What `from`, pixels of open runs, reaches in its row: all to the right, seven to the left.
__device__ __forceinline__ Bits along(Bits from, const Open &open) {
    from |= ((open.one + from) ^ open.one) & open.one;
    from |= open.one & from >> 1;
    from |= open.two & from >> 2;
    return from | (open.four & from >> 4);
}
__device__ __forceinline__ Bits around(Bits row) { return row | row << 1 | row >> 1; }

// All that `from` reaches among open pixels, of which it is some.
__device__ __forceinline__ Rows reached(Rows from, const Rows &open_rows, int lane) {
    const Open upper(open_rows.upper), lower(open_rows.lower);
    for (;;) {
        const Rows before = from;
        from.upper = along(from.upper, upper);
        from.lower = along(from.lower, lower);
        const Bits above = row_above(from, lane), below = row_below(from, lane);
        const Bits here = from.upper;
        from.upper |= around(above | from.lower) & upper.one;
        from.lower |= around(below | here) & lower.one;
        const bool grew = from.upper != before.upper || from.lower != before.lower;
        if (!__any_sync(EVERY_LANE, grew)) return from;
    }
}

// --- borders of tiles ---------------------------------------------------------------------------------------------------
// Word 0 and 1: top; 2 and 3: bottom; 4 and 5: left of the even and the odd rows; 6 and 7: right, likewise. All lanes have it.
struct Border {
    unsigned word[WORDS];
};
__device__ __forceinline__ Border border_of(const Rows &rows) {
    const Bits top = of_lane(rows.upper, 0), bottom = of_lane(rows.lower, WARP - 1);
    return {{low_word(top), high_word(top), low_word(bottom), high_word(bottom),
             __ballot_sync(EVERY_LANE, rows.upper & 1), __ballot_sync(EVERY_LANE, rows.lower & 1),
             __ballot_sync(EVERY_LANE, rows.upper >> (SIDE - 1)), __ballot_sync(EVERY_LANE, rows.lower >> (SIDE - 1))}};
}

// The rows that hold border pixels: bit w of `chosen` is this lane's pixel of word w.
__device__ __forceinline__ Rows rows_of(unsigned chosen, int lane) {
    Rows rows;
    rows.upper = (chosen >> 4 & 1) | static_cast<Bits>(chosen >> 6 & 1) << (SIDE - 1);
    rows.lower = (chosen >> 5 & 1) | static_cast<Bits>(chosen >> 7 & 1) << (SIDE - 1);
    const Bits top = joined(__ballot_sync(EVERY_LANE, chosen & 1), __ballot_sync(EVERY_LANE, chosen >> 1 & 1));
    const Bits bottom = joined(__ballot_sync(EVERY_LANE, chosen >> 2 & 1), __ballot_sync(EVERY_LANE, chosen >> 3 & 1));
    if (lane == 0) rows.upper |= top;
    if (lane == WARP - 1) rows.lower |= bottom;
    return rows;
}

__device__ __forceinline__ int node_of(int tile, int place) { return 1 + tile * NODES + place; }

// --- in each tile -------------------------------------------------------------------------------------------------------
// The edge pixels of two units, as bits 0 to 7 and 16 to 23.
__device__ __forceinline__ unsigned in_order(unsigned units) {
    units &= 0x55555555u;
    return (units | units >> 7) & 0x00FF00FFu;
}
__device__ __forceinline__ unsigned in_order(unsigned first, unsigned second) {
    const unsigned a = in_order(first), b = in_order(second);
    return (a & 0xFF) | (a >> 8 & 0xFF00) | (b & 0xFF) << 16 | (b & 0xFF0000) << 8;
}

// Which bits of a row lie in the picture; the last unit moves to where its pixels are.
__device__ __forceinline__ Bits settled(Bits row, int left_pixels, int late) {
    if (left_pixels > SIDE) return row;
    if (late) {
        const int at = (left_pixels - 1) / UNIT_PIXELS * UNIT_PIXELS;
        const Bits before = (static_cast<Bits>(1) << at) - 1;
        row = (row & before) | (row >> late & ~before);
    }
    return left_pixels < SIDE ? row & ((static_cast<Bits>(1) << left_pixels) - 1) : row;
}

__device__ __forceinline__ int first_tile() {
    return static_cast<int>(blockIdx.x) * WARPS + __shfl_sync(EVERY_LANE, static_cast<int>(threadIdx.x) / WARP, 0);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    canny_label(uint4 *map, uint4 *borders, int *parents, const __grid_constant__ MapGeometry size) {
    __shared__ uint8 place_of[WARPS][NODES];  // of a rank
    const int lane = threadIdx.x % WARP, tile = first_tile();
    const int across = tile % size.tiles_across, down = tile / size.tiles_across % size.tiles_down;
    const int picture = tile / size.tiles_across / size.tiles_down;
    if (picture >= size.pictures) return;

    Rows open = {0, 0}, strong = {0, 0};
    const int first_row = down * SIDE + 2 * lane, left_pixels = size.width - across * SIDE;
    uint4 *const first = map + (static_cast<long long>(picture) * size.height + first_row) * size.tiles_across + across;
    const auto read = [&](const uint4 *from, Bits &edges, Bits &strong_ones) {
        const uint4 units = *from;
        edges = settled(joined(in_order(units.x, units.y), in_order(units.z, units.w)), left_pixels, size.late);
        const unsigned x = units.x >> 1, y = units.y >> 1, z = units.z >> 1, w = units.w >> 1;
        strong_ones = settled(joined(in_order(x, y), in_order(z, w)), left_pixels, size.late);
    };
    if (first_row < size.height) read(first, open.upper, strong.upper);
    if (first_row + 1 < size.height) read(first + size.tiles_across, open.lower, strong.lower);

    const Rows edges = reached(strong, open, lane);
    const Rows rest = {open.upper & ~edges.upper, open.lower & ~edges.lower};
    const auto write = [&](uint4 *to, Bits of_edges, Bits of_rest) {
        *to = make_uint4(low_word(of_edges), high_word(of_edges), low_word(of_rest), high_word(of_rest));
    };
    if (first_row < size.height) write(first, edges.upper, rest.upper);
    if (first_row + 1 < size.height) write(first + size.tiles_across, edges.lower, rest.lower);

    const Border all = border_of(open), undecided = border_of(rest);
    if (lane == 0) {
        borders[2 * tile] = make_uint4(all.word[0], all.word[1], all.word[2], all.word[3]);
        borders[2 * tile + 1] = make_uint4(all.word[4], all.word[5], all.word[6], all.word[7]);
    }
    unsigned own = 0;  // bit w: the lane's pixel of word w is a node without a strong one
    int rank[WORDS], label[WORDS], nodes = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        own |= (undecided.word[w] >> lane & 1) << w;
        rank[w] = nodes + __popc(undecided.word[w] & ((1u << lane) - 1));
        nodes += __popc(undecided.word[w]);
        label[w] = 0;
        if ((all.word[w] & ~undecided.word[w]) >> lane & 1) parents[node_of(tile, w * WARP + lane)] = 0;
    }
    if (tile == 0 && lane == 0) parents[0] = 0;  // the root of edges
    if (nodes == 0) return;

    unsigned candidates = own;
    for (int bit = nodes > 1 ? 31 - __clz(nodes - 1) : -1; bit >= 0; --bit) {
        unsigned have = 0;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) have |= static_cast<unsigned>(rank[w] >> bit & 1) << w;
        const Border found = border_of(reached(rows_of(candidates & have, lane), rest, lane));
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            if (!(found.word[w] >> lane & 1)) continue;
            label[w] |= 1 << bit;
            candidates &= ~(1u << w) | have;
        }
    }
    uint8 *const places = place_of[threadIdx.x / WARP];
#pragma unroll
    for (int w = 0; w < WORDS; ++w)
        if ((own >> w & 1) && label[w] == rank[w]) places[rank[w]] = static_cast<uint8>(w * WARP + lane);
    __syncwarp();
#pragma unroll
    for (int w = 0; w < WORDS; ++w)
        if (own >> w & 1) parents[node_of(tile, w * WARP + lane)] = node_of(tile, places[label[w]]);
}

// --- across their borders -----------------------------------------------------------------------------------------------
// The root of a node. On the way parents become grandparents: a store that comes late still names an ancestor.
__device__ int root_of(volatile int *parents, int node) {
    int last = node, at = parents[node];
    while (at != last) {
        const int next = parents[at];
        if (next == at) return at;
        parents[last] = next;
        last = at, at = next;
    }
    return at;
}

__device__ void unite(int *parents, int first, int second) {
    int a = root_of(parents, first), b = root_of(parents, second);
    while (a != b) {
        const int larger = max(a, b), smaller = min(a, b);
        const int found = atomicCAS(parents + larger, larger, smaller);
        if (found == larger) return;
        a = root_of(parents, found), b = smaller;  // somebody else gave it a parent
    }
}

// Bit `row` of the left (4) or right (6) border.
__device__ __forceinline__ bool has_row(const unsigned *border, int side, int row) {
    return row >= 0 && row < SIDE && border[side + row % 2] >> (row / 2) & 1;
}
__device__ __forceinline__ int row_place(int side, int row) { return (side + row % 2) * WARP + row / 2; }
__device__ __forceinline__ bool has_column(const unsigned *border, int side, int column) {
    return column >= 0 && column < SIDE && border[side + column / WARP] >> column % WARP & 1;
}
__device__ __forceinline__ int column_place(int side, int column) { return side * WARP + column; }

extern "C" __global__ void __launch_bounds__(THREADS)
    canny_join(const unsigned *borders, int *parents, const __grid_constant__ MapGeometry size) {
    constexpr int TOP = 0, BOTTOM = 2, LEFT = 4, RIGHT = 6;
    const int lane = threadIdx.x % WARP, tile = first_tile();
    const int across = tile % size.tiles_across, down = tile / size.tiles_across % size.tiles_down;
    if (tile / size.tiles_across / size.tiles_down >= size.pictures) return;
    const unsigned *const own = borders + static_cast<long long>(tile) * WORDS;
    const bool has_right = across + 1 < size.tiles_across, has_below = down + 1 < size.tiles_down;
    const auto at = [&](int step) { return own + static_cast<long long>(step) * WORDS; };
    const auto touch = [&](int place, int step, int other) {
        unite(parents, node_of(tile, place), node_of(tile + step, other));
    };
    for (int i = lane; i < SIDE; i += WARP) {
        // Of three pixels beside a pixel the middle one touches both others, so that it is enough.
        if (has_right && has_row(own, RIGHT, i)) {
            const unsigned *const other = at(1);
            if (has_row(other, LEFT, i)) {
                touch(row_place(RIGHT, i), 1, row_place(LEFT, i));
            } else {
                if (has_row(other, LEFT, i - 1)) touch(row_place(RIGHT, i), 1, row_place(LEFT, i - 1));
                if (has_row(other, LEFT, i + 1)) touch(row_place(RIGHT, i), 1, row_place(LEFT, i + 1));
            }
        }
        if (has_below && has_column(own, BOTTOM, i)) {
            const unsigned *const other = at(size.tiles_across);
            if (has_column(other, TOP, i)) {
                touch(column_place(BOTTOM, i), size.tiles_across, column_place(TOP, i));
            } else {
                if (has_column(other, TOP, i - 1))
                    touch(column_place(BOTTOM, i), size.tiles_across, column_place(TOP, i - 1));
                if (has_column(other, TOP, i + 1))
                    touch(column_place(BOTTOM, i), size.tiles_across, column_place(TOP, i + 1));
            }
        }
    }
    // Corners: the tile below on the right, and the one below on the left.
    if (!has_below || lane > 0) return;
    if (has_right && has_column(own, BOTTOM, SIDE - 1) && has_column(at(size.tiles_across + 1), TOP, 0))
        touch(column_place(BOTTOM, SIDE - 1), size.tiles_across + 1, column_place(TOP, 0));
    if (across > 0 && has_column(own, BOTTOM, 0) && has_column(at(size.tiles_across - 1), TOP, SIDE - 1))
        touch(column_place(BOTTOM, 0), size.tiles_across - 1, column_place(TOP, SIDE - 1));
}

// --- to the picture -----------------------------------------------------------------------------------------------------
// Four bits as four bytes, 0 or 255.
__device__ __forceinline__ unsigned as_bytes(unsigned four) { return ((four & 0xF) * 0x00204081u & 0x01010101u) * 0xFFu; }

extern "C" __global__ void __launch_bounds__(THREADS)
    canny_expand(const uint4 *map, uint8 *out, const int *parents, const __grid_constant__ MapGeometry size) {
    __shared__ Bits rows_of_tile[WARPS][SIDE];
    const int lane = threadIdx.x % WARP, tile = first_tile();
    const int across = tile % size.tiles_across, down = tile / size.tiles_across % size.tiles_down;
    const int picture = tile / size.tiles_across / size.tiles_down;
    if (picture >= size.pictures) return;

    Rows edges = {0, 0}, rest = {0, 0};
    const int first_row = down * SIDE + 2 * lane;
    const uint4 *const first =
        map + (static_cast<long long>(picture) * size.height + first_row) * size.tiles_across + across;
    const auto read = [&](const uint4 *from, Bits &of_edges, Bits &of_rest) {
        const uint4 both = *from;
        of_edges = joined(both.x, both.y), of_rest = joined(both.z, both.w);
    };
    if (first_row < size.height) read(first, edges.upper, rest.upper);
    if (first_row + 1 < size.height) read(first + size.tiles_across, edges.lower, rest.lower);

    const Border undecided = border_of(rest);
    unsigned chosen = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        if (!(undecided.word[w] >> lane & 1)) continue;
        int node = node_of(tile, w * WARP + lane);
        for (int up = parents[node]; up != node; up = parents[node]) node = up;
        if (node == 0) chosen |= 1u << w;
    }
    if (__any_sync(EVERY_LANE, chosen != 0)) {
        const Rows more = reached(rows_of(chosen, lane), rest, lane);
        edges.upper |= more.upper, edges.lower |= more.lower;
    }
    Bits *const rows = rows_of_tile[threadIdx.x / WARP];
    rows[2 * lane] = edges.upper;
    rows[2 * lane + 1] = edges.lower;
    __syncwarp();

    const int height = min(SIDE, size.height - down * SIDE), width = min(SIDE, size.width - across * SIDE);
    uint8 *const tile_out = out + picture * size.out_picture_bytes + down * SIDE * size.out_row_bytes + across * SIDE;
#if ALIGNED
    constexpr int CHUNK = 16, CHUNKS = SIDE / CHUNK;
    for (int i = lane; i < height * CHUNKS; i += WARP) {
        const int x = i % CHUNKS * CHUNK;
        const unsigned bits = static_cast<unsigned>(rows[i / CHUNKS] >> x) & 0xFFFF;
        uint8 *const to = tile_out + i / CHUNKS * size.out_row_bytes + x;
        if (x + CHUNK <= width) {
            __stcs(reinterpret_cast<uint4 *>(to),
                   make_uint4(as_bytes(bits), as_bytes(bits >> 4), as_bytes(bits >> 8), as_bytes(bits >> 12)));
        } else {
            for (int k = 0; x + k < width; ++k) to[k] = bits >> k & 1 ? 255 : 0;
        }
    }
#else
    // Whole words of the output where they lie; a row starts up to three bytes into the first.
    constexpr int WORD = 4, WORDS_OF_ROW = SIDE / WORD + 1;
    for (int i = lane; i < height * WORDS_OF_ROW; i += WARP) {
        uint8 *const row = tile_out + i / WORDS_OF_ROW * size.out_row_bytes;
        const Bits bits = rows[i / WORDS_OF_ROW];
        const int x = i % WORDS_OF_ROW * WORD - static_cast<int>(reinterpret_cast<unsigned long long>(row) % WORD);
        if (x >= 0 && x + WORD <= width) {
            *reinterpret_cast<unsigned *>(row + x) = as_bytes(static_cast<unsigned>(bits >> x));
        } else {
            for (int k = max(x, 0); k < min(x + WORD, width); ++k) row[k] = bits >> k & 1 ? 255 : 0;
        }
    }
#endif
}
