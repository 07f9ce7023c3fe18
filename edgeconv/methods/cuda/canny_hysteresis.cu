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
// Layouts: canny_map.cuh.
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

// Of the first and the last lane, its own.
__device__ __forceinline__ Bits lane_before(Bits bits) {
    return joined(__shfl_up_sync(EVERY_LANE, low_word(bits), 1), __shfl_up_sync(EVERY_LANE, high_word(bits), 1));
}
__device__ __forceinline__ Bits lane_after(Bits bits) {
    return joined(__shfl_down_sync(EVERY_LANE, low_word(bits), 1), __shfl_down_sync(EVERY_LANE, high_word(bits), 1));
}
__device__ __forceinline__ Bits around(Bits row) { return row | row << 1 | row >> 1; }

// A step in all eight directions. The rows above lane 0 and below lane 31 are rows of their own, which changes nothing:
// they are beside those already.
__device__ __forceinline__ Rows widened(const Rows &from, const Rows &open) {
    const Bits above = lane_before(from.lower), below = lane_after(from.upper);
    return {around(above | from.upper | from.lower) & open.upper, around(below | from.upper | from.lower) & open.lower};
}

// What `from`, pixels of open runs, reaches in its row: to the right by the carry of a sum, to the left by doubling.
__device__ __forceinline__ Bits along(Bits from, Bits open) {
    from |= ((open + from) ^ open) & open;
#pragma unroll
    for (int step = 1; step < SIDE; step *= 2) {
        from |= open & from >> step;
        open &= open >> step;
    }
    return from;
}

constexpr int STEPS = 3;  // before it is asked whether anything is new
constexpr int TURNS = 4;  // of those before runs are filled: few edges run on so far in a row

// All that `from` reaches among open pixels, of which it is some.
__device__ __forceinline__ Rows reached(Rows from, const Rows &open) {
    for (int turn = 1;; ++turn) {
        const Rows before = from;
#pragma unroll
        for (int i = 0; i < STEPS; ++i) from = widened(from, open);
        if (turn % TURNS == 0) from = {along(from.upper, open.upper), along(from.lower, open.lower)};
        const bool grew = from.upper != before.upper || from.lower != before.lower;
        if (!__any_sync(EVERY_LANE, grew)) return from;
    }
}

// --- borders of tiles ---------------------------------------------------------------------------------------------------
enum Side { TOP, BOTTOM, LEFT, RIGHT, SIDES };

// Two words a side: columns 0 to 31 and 32 to 63, or the even and the odd rows. All lanes have all of it.
struct Border {
    unsigned word[WORDS];
};
__device__ __forceinline__ Border border_of(const Rows &rows) {
    const Bits top = of_lane(rows.upper, 0), bottom = of_lane(rows.lower, WARP - 1);
    return {{low_word(top), high_word(top), low_word(bottom), high_word(bottom),
             __ballot_sync(EVERY_LANE, rows.upper & 1), __ballot_sync(EVERY_LANE, rows.lower & 1),
             __ballot_sync(EVERY_LANE, rows.upper >> (SIDE - 1)), __ballot_sync(EVERY_LANE, rows.lower >> (SIDE - 1))}};
}

// Of border pixels beside each other on a side the first: the others are connected to it.
__device__ __forceinline__ Border first_ones(const Border &border) {
    const unsigned(&word)[WORDS] = border.word;
    const auto first = [](Bits row) { return row & ~(row << 1); };
    const Bits top = first(joined(word[0], word[1])), bottom = first(joined(word[2], word[3]));
    return {{low_word(top), high_word(top), low_word(bottom), high_word(bottom), word[4] & ~(word[5] << 1),
             word[5] & ~word[4], word[6] & ~(word[7] << 1), word[7] & ~word[6]}};
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

    const Rows edges = reached(strong, open);
    const Rows rest = {open.upper & ~edges.upper, open.lower & ~edges.lower};
    const auto write = [&](uint4 *to, Bits of_edges, Bits of_rest) {
        *to = make_uint4(low_word(of_edges), high_word(of_edges), low_word(of_rest), high_word(of_rest));
    };
    if (first_row < size.height) write(first, edges.upper, rest.upper);
    if (first_row + 1 < size.height) write(first + size.tiles_across, edges.lower, rest.lower);

    const Border all = border_of(open), undecided = border_of(rest);
    if (lane == 0) {
#pragma unroll
        for (int side = 0; side < SIDES; ++side)
            borders[tile * SIDES + side] = make_uint4(all.word[2 * side], all.word[2 * side + 1],
                                                      undecided.word[2 * side], undecided.word[2 * side + 1]);
    }
    const Border starts = first_ones(undecided);
    unsigned own = 0, candidates = 0;  // bit w: the lane's pixel of word w is undecided; and the first of several
    int rank[WORDS], label[WORDS], nodes = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) {
        own |= (undecided.word[w] >> lane & 1) << w;
        candidates |= (starts.word[w] >> lane & 1) << w;
        rank[w] = nodes + __popc(starts.word[w] & ((1u << lane) - 1));
        nodes += __popc(starts.word[w]);
        label[w] = 0;
        if ((all.word[w] & ~undecided.word[w]) >> lane & 1) parents[node_of(tile, w * WARP + lane)] = 0;
    }
    if (tile == 0 && lane == 0) parents[0] = 0;  // the root of edges
    if (nodes == 0) return;

    const unsigned ranked = candidates;
    for (int bit = nodes > 1 ? 31 - __clz(nodes - 1) : -1; bit >= 0; --bit) {
        unsigned have = 0;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) have |= static_cast<unsigned>(rank[w] >> bit & 1) << w;
        const Border found = border_of(reached(rows_of(candidates & have, lane), rest));
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
        if ((ranked >> w & 1) && label[w] == rank[w]) places[rank[w]] = static_cast<uint8>(w * WARP + lane);
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

// Two nodes beside each other: place in this tile, place in the other, and which tile that is.
enum Neighbour { TO_RIGHT, TO_BELOW, TO_BELOW_RIGHT, TO_BELOW_LEFT };
__device__ __forceinline__ unsigned contact(int place, int other, Neighbour tile) { return place | other << 8 | tile << 16; }
__device__ __forceinline__ int place_on(Side side, int word, int bit) { return (2 * side + word) * WARP + bit; }

extern "C" __global__ void __launch_bounds__(THREADS)
    canny_join(const uint4 *borders, int *parents, const __grid_constant__ MapGeometry size) {
    __shared__ unsigned contacts_of[WARPS][2 * NODES];
    const int lane = threadIdx.x % WARP, tile = first_tile();
    const int across = tile % size.tiles_across, down = tile / size.tiles_across % size.tiles_down;
    if (tile / size.tiles_across / size.tiles_down >= size.pictures) return;
    const bool has_right = across + 1 < size.tiles_across, has_below = down + 1 < size.tiles_down;
    const uint4 *const own = borders + static_cast<long long>(tile) * SIDES;
    const auto side_of = [&](int step, Side side) { return own[static_cast<long long>(step) * SIDES + side]; };
    const uint4 none = make_uint4(0, 0, 0, 0);
    const uint4 right = has_right ? own[RIGHT] : none, beside = has_right ? side_of(1, LEFT) : none;
    const uint4 bottom = has_below ? own[BOTTOM] : none, under = has_below ? side_of(size.tiles_across, TOP) : none;

    unsigned *const contacts = contacts_of[threadIdx.x / WARP];
    const unsigned lanes_before = (1u << lane) - 1;
    int count = 0;
    // Bit i of `which`: places `place` + i of this tile and `other` + i of the neighbour touch. All lanes have it.
    const auto note = [&](unsigned which, int place, int other, Neighbour neighbour) {
        if (which >> lane & 1) contacts[count + __popc(which & lanes_before)] = contact(place + lane, other + lane, neighbour);
        count += __popc(which);
    };

    // Where one is undecided: of pixels side by side that touch the first is enough, and a diagonal only where no pixel
    // beside either makes the same contact.
    {
        const unsigned even = right.x, odd = right.y, even_other = beside.x, odd_other = beside.y;
        const unsigned u_even = right.z, u_odd = right.w, u_even_other = beside.z, u_odd_other = beside.w;
        const unsigned both_even = even & even_other, both_odd = odd & odd_other;
        const int e = place_on(RIGHT, 0, 0), o = place_on(RIGHT, 1, 0), e_other = place_on(LEFT, 0, 0), o_other = place_on(LEFT, 1, 0);
        note(both_even & ~(both_odd << 1) & (u_even | u_even_other), e, e_other, TO_RIGHT);
        note(both_odd & ~both_even & (u_odd | u_odd_other), o, o_other, TO_RIGHT);
        note(even & odd_other & ~odd & ~even_other & (u_even | u_odd_other), e, o_other, TO_RIGHT);
        note(odd & even_other & ~even & ~odd_other & (u_odd | u_even_other), o, e_other, TO_RIGHT);
        note(odd & even_other >> 1 & ~(even >> 1) & ~odd_other & (u_odd | u_even_other >> 1), o, e_other + 1, TO_RIGHT);
        note(even & odd_other << 1 & ~(odd << 1) & ~even_other & (u_even | u_odd_other << 1), e, o_other - 1, TO_RIGHT);
    }
    {
        const Bits row = joined(bottom.x, bottom.y), other = joined(under.x, under.y);
        const Bits u_row = joined(bottom.z, bottom.w), u_other = joined(under.z, under.w), both = row & other;
        const auto note_row = [&](Bits which, int shift) {
            note(low_word(which), place_on(BOTTOM, 0, 0), place_on(TOP, 0, 0) + shift, TO_BELOW);
            note(high_word(which), place_on(BOTTOM, 1, 0), place_on(TOP, 1, 0) + shift, TO_BELOW);
        };
        note_row(both & ~(both << 1) & (u_row | u_other), 0);
        note_row(row & other >> 1 & ~(row >> 1) & ~other & (u_row | u_other >> 1), 1);
        note_row(row & other << 1 & ~(row << 1) & ~other & (u_row | u_other << 1), -1);
    }
    if (has_below && has_right && bottom.y >> (WARP - 1) && side_of(size.tiles_across + 1, TOP).x & 1)
        note(1, place_on(BOTTOM, 1, WARP - 1), place_on(TOP, 0, 0), TO_BELOW_RIGHT);
    if (has_below && across > 0 && bottom.x & 1 && side_of(size.tiles_across - 1, TOP).y >> (WARP - 1))
        note(1, place_on(BOTTOM, 0, 0), place_on(TOP, 1, WARP - 1), TO_BELOW_LEFT);
    __syncwarp();
    for (int i = lane; i < count; i += WARP) {
        const unsigned found = contacts[i], neighbour = found >> 16;
        const int other = tile + (neighbour == TO_RIGHT         ? 1
                                  : neighbour == TO_BELOW       ? size.tiles_across
                                  : neighbour == TO_BELOW_RIGHT ? size.tiles_across + 1
                                                                : size.tiles_across - 1);
        unite(parents, node_of(tile, found & 0xFF), node_of(other, found >> 8 & 0xFF));
    }
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
    // Up to the roots, all nodes of a lane at once: their reads do not wait for each other.
    int at[WORDS];
#pragma unroll
    for (int w = 0; w < WORDS; ++w) at[w] = undecided.word[w] >> lane & 1 ? node_of(tile, w * WARP + lane) : 0;
    for (bool moved = true; moved;) {
        moved = false;
#pragma unroll
        for (int w = 0; w < WORDS; ++w) {
            const int up = at[w] ? parents[at[w]] : 0;
            moved |= up != at[w];
            at[w] = up;
        }
    }
    unsigned chosen = 0;
#pragma unroll
    for (int w = 0; w < WORDS; ++w) chosen |= (at[w] == 0 ? undecided.word[w] >> lane & 1 : 0) << w;
    if (__any_sync(EVERY_LANE, chosen != 0)) {
        const Rows more = reached(rows_of(chosen, lane), rest);
        edges.upper |= more.upper, edges.lower |= more.lower;
    }
    Bits *const rows = rows_of_tile[threadIdx.x / WARP];
    rows[2 * lane] = edges.upper;
    rows[2 * lane + 1] = edges.lower;
    __syncwarp();

    const int height = min(SIDE, size.height - down * SIDE), width = min(SIDE, size.width - across * SIDE);
    uint8 *const tile_out =
        out + (static_cast<long long>(picture) * size.height + down * SIDE) * size.width + across * SIDE;
    constexpr int CHUNK = 16, CHUNKS = SIDE / CHUNK;
    const bool aligned = size.width % CHUNK == 0 && reinterpret_cast<unsigned long long>(out) % CHUNK == 0;
    for (int i = lane; aligned && i < height * CHUNKS; i += WARP) {
        const int x = i % CHUNKS * CHUNK;
        const unsigned bits = static_cast<unsigned>(rows[i / CHUNKS] >> x) & 0xFFFF;
        if (x < width)
            __stcs(reinterpret_cast<uint4 *>(tile_out + static_cast<long long>(i / CHUNKS) * size.width + x),
                   make_uint4(as_bytes(bits), as_bytes(bits >> 4), as_bytes(bits >> 8), as_bytes(bits >> 12)));
    }
    if (aligned) return;
    // Whole words of the output where they lie; a row starts up to three bytes into the first.
    constexpr int WORD = 4, WORDS_OF_ROW = SIDE / WORD + 1;
    for (int i = lane; i < height * WORDS_OF_ROW; i += WARP) {
        uint8 *const row = tile_out + static_cast<long long>(i / WORDS_OF_ROW) * size.width;
        const Bits bits = rows[i / WORDS_OF_ROW];
        const int x = i % WORDS_OF_ROW * WORD - static_cast<int>(reinterpret_cast<unsigned long long>(row) % WORD);
        if (x >= 0 && x + WORD <= width) {
            *reinterpret_cast<unsigned *>(row + x) = as_bytes(static_cast<unsigned>(bits >> x));
        } else {
            for (int k = max(x, 0); k < min(x + WORD, width); ++k) row[k] = bits >> k & 1 ? 255 : 0;
        }
    }
}
