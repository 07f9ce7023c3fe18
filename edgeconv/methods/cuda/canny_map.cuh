// The map of edge pixels between the passes of canny: 16 bits for eight pixels of a row, two for each.
//
// Bit 2·(i / 2) + 8·(i % 2) is set where pixel i is an edge pixel, weak or strong, and the next one where it is strong.
// A row is whole 16 bytes (64 pixels). Hysteresis replaces those by 64 bits of pixels that are edges and 64 bits of pixels
// that are so if a strong one of another tile is connected to them, pixel i in bit i.
typedef unsigned char uint8;
typedef unsigned short uint16;

constexpr int UNIT_PIXELS = 8;
constexpr int WARP = 32;
constexpr unsigned EVERY_LANE = ~0u;
