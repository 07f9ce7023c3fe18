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

function bitmapOf(webp) {
  const options = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
  return createImageBitmap(new Blob([webp], { type: "image/webp" }), options);
}

// The part of a smaller level that is stored: x and y of its corner, a byte each, and a WebP.
async function drawPart(surface, id) {
  const bytes = blockBytes(id);
  if (bytes) surface.drawImage(await bitmapOf(bytes.subarray(2)), bytes[0], bytes[1]);
}

// The samples of a WebP, one plane after another.
async function webpPlanes(id) {
  const bytes = blockBytes(id);
  if (!bytes) return null;
  const bitmap = await bitmapOf(bytes);
  const { width, height } = bitmap;
  const surface = readable(width, height);
  surface.drawImage(bitmap, 0, 0);
  const rgba = surface.getImageData(0, 0, width, height).data;
  const count = width * height;
  const planes = new Uint8Array(3 * count);
  for (let c = 0; c < 3; c++) for (let i = 0; i < count; i++) planes[c * count + i] = rgba[4 * i + c];
  return planes;
}

// Whether what is drawn is what is read back: browsers that guard against fingerprinting change it a little.
function readsExactly() {
  const side = 64;
  const surface = readable(side, side);
  const image = surface.createImageData(side, side);
  for (let i = 0; i < image.data.length; i++) image.data[i] = i % 4 === 3 ? 255 : (i * 2654435761) >>> 24;
  surface.putImageData(image, 0, 0);
  return surface.getImageData(0, 0, side, side).data.every((value, i) => value === image.data[i]);
}

const tileValues = (picture, row, column) =>
  valueTiles.get(blockId(picture, row, column), () => decodeValues(picture, row, column)).promise;

// Of an input the difference from the reference is stored, byte by byte; of planes of a reference, from the row above.
async function decodeValues(picture, row, column) {
  const { channels, dtype } = state.set;
  const { width, height } = tileSize(0, row, column);
  const id = blockId(picture, 0, row, column);
  const isWebp = dtype === "uint8";
  const base = picture > 0 ? tileValues(0, row, column) : null;
  const stored = await (isWebp ? webpPlanes(`${id}-w`) : inflate(`${id}-v`));
  const reference = await base;
  if (!stored) return reference;
  const Values = SAMPLES[dtype];
  const size = Values.BYTES_PER_ELEMENT;
  const count = width * height;
  return channels.map((_, c) => {
    const bytes = new Uint8Array(count * size);
    const known = reference && new Uint8Array(reference[c].buffer);
    for (let i = 0; i < bytes.length; i++) {
      const above = isWebp ? 0 : bytes[i - width * size] ?? 0;
      bytes[i] = stored[(c * size + (i % size)) * count + Math.floor(i / size)] + (known ? known[i] : above);
    }
    return new Values(bytes.buffer);
  });
}
