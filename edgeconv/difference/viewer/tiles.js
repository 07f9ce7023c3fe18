// Tiles: from base64 text in the page to samples and pictures. Level 0 holds the exact values; higher levels are smaller and only for looking at.

const SAMPLES = { uint8: Uint8Array, uint16: Uint16Array, float32: Float32Array, float64: Float64Array };

// Entries by key: the promise of a value, and the value once it is there. Those that were used last stay.
class Cache {
  entries = new Map();

  get(key, make) {
    let entry = this.entries.get(key);
    if (!entry) {
      entry = { promise: make() };
      entry.promise.then((value) => (entry.value = value));
    }
    this.entries.delete(key); // the youngest entry stands last
    this.entries.set(key, entry);
    if (this.entries.size > CACHED_TILES) this.entries.delete(this.entries.keys().next().value);
    return entry;
  }
}

let valueTiles = new Cache(); // one typed array a channel
let drawnTiles = new Cache(); // bitmaps

const levelSize = (level) => ({
  width: Math.ceil(state.set.width / 2 ** level),
  height: Math.ceil(state.set.height / 2 ** level),
});

const tileSize = (level, row, column) => {
  const size = levelSize(level);
  return { width: Math.min(TILE, size.width - column * TILE), height: Math.min(TILE, size.height - row * TILE) };
};

const blockId = (...place) => [state.setNumber, ...place].join("-");

function blockBytes(id) {
  const block = byId(id);
  if (!block) return null; // left out: it agrees with the reference
  const text = atob(block.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

async function inflate(id) {
  const bytes = blockBytes(id);
  if (!bytes) return null;
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const readable = (width, height) => {
  const canvas = element("canvas", { width, height });
  return canvas.getContext("2d", { willReadFrequently: true, alpha: false });
};

// The part of a smaller level that is stored: x and y of its corner, a byte each, and a WebP.
async function drawPart(surface, id) {
  const bytes = blockBytes(id);
  if (!bytes) return;
  const webp = new Blob([bytes.subarray(2)], { type: "image/webp" });
  surface.drawImage(await createImageBitmap(webp, { colorSpaceConversion: "none" }), bytes[0], bytes[1]);
}

const tileValues = (picture, row, column) =>
  valueTiles.get(blockId(picture, row, column), () => decodeValues(picture, row, column)).promise;

// Of an input the difference from the reference is stored, byte by byte; of a reference, from the row above.
async function decodeValues(picture, row, column) {
  const { channels, dtype } = state.set;
  const { width, height } = tileSize(0, row, column);
  const base = picture > 0 ? tileValues(0, row, column) : null;
  const stored = await inflate(blockId(picture, 0, row, column, "v"));
  const reference = await base;
  if (!stored) return reference;
  const Values = SAMPLES[dtype];
  const size = Values.BYTES_PER_ELEMENT;
  const count = width * height;
  return channels.map((_, c) => {
    const bytes = new Uint8Array(count * size);
    const same = reference && new Uint8Array(reference[c].buffer);
    for (let i = 0; i < bytes.length; i++) {
      const known = reference ? same[i] : bytes[i - width * size] ?? 0;
      bytes[i] = stored[(c * size + (i % size)) * count + Math.floor(i / size)] + known;
    }
    return new Values(bytes.buffer);
  });
}
