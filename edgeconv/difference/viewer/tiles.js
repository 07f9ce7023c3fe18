// Tiles: from base64 text in the page to bytes. Level 0 holds the exact values; higher levels are smaller and only for looking at.

class Cache {
  constructor(limit) {
    this.limit = limit;
    this.entries = new Map();
  }
  get(key) {
    const entry = this.entries.get(key);
    if (entry !== undefined) {
      this.entries.delete(key); // the youngest entry stands last
      this.entries.set(key, entry);
    }
    return entry;
  }
  set(key, entry) {
    this.entries.set(key, entry);
    if (this.entries.size > this.limit) this.entries.delete(this.entries.keys().next().value);
  }
  clear() {
    this.entries.clear();
  }
}

const byteTiles = new Cache(CACHED_TILES); // promises of bytes
const valueTiles = new Cache(CACHED_TILES); // one typed array a channel
const drawnTiles = new Cache(CACHED_TILES); // canvases, or null while one is being made

const levelSize = (level) => ({
  width: Math.ceil(state.set.width / 2 ** level),
  height: Math.ceil(state.set.height / 2 ** level),
});

const tileSize = (level, row, column) => {
  const size = levelSize(level);
  return { width: Math.min(TILE, size.width - column * TILE), height: Math.min(TILE, size.height - row * TILE) };
};

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
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  return canvas.getContext("2d", { willReadFrequently: true, alpha: false });
};

// The samples of a WebP, one plane after another.
async function webpPlanes(id) {
  const bytes = blockBytes(id);
  if (!bytes) return null;
  const options = { premultiplyAlpha: "none", colorSpaceConversion: "none" };
  const bitmap = await createImageBitmap(new Blob([bytes], { type: "image/webp" }), options);
  const { width, height } = bitmap;
  const surface = readable(width, height);
  surface.drawImage(bitmap, 0, 0);
  bitmap.close();
  const rgba = surface.getImageData(0, 0, width, height).data;
  const plane = width * height;
  const planes = new Uint8Array(3 * plane);
  for (let c = 0; c < 3; c++) for (let i = 0; i < plane; i++) planes[c * plane + i] = rgba[4 * i + c];
  return { planes, width, height };
}

// A tile of a smaller level: the reference's, and over it the part that differs.
function patched(base, { width, height }, patch, at) {
  const result = base.slice();
  for (let c = 0; c < 3; c++) {
    for (let y = 0; y < patch.height; y++) {
      const from = (c * patch.height + y) * patch.width;
      result.set(patch.planes.subarray(from, from + patch.width), (c * height + at[1] + y) * width + at[0]);
    }
  }
  return result;
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

function tileBytes(picture, level, row, column, kind) {
  const id = [state.setNumber, picture, level, row, column, kind].join("-");
  let promise = byteTiles.get(id);
  if (!promise) {
    promise = decodeTile(id, picture, level, row, column, kind);
    byteTiles.set(id, promise);
  }
  return promise;
}

async function decodeTile(id, picture, level, row, column, kind) {
  const { width, height } = tileSize(level, row, column);
  if (kind === "k") return (await inflate(id)) ?? new Uint8Array(width * height);
  const picturePart = kind === "w" ? webpPlanes(id) : null;
  if (level > 0 && picture > 0) {
    const base = await tileBytes(0, level, row, column, kind);
    const at = byId(id)?.dataset.at.split(" ").map(Number);
    return at ? patched(base, { width, height }, await picturePart, at) : base;
  }
  const stored = picturePart ? picturePart.then((found) => found?.planes) : inflate(id);
  if (picture > 0) {
    const base = await tileBytes(0, level, row, column, kind);
    const rest = await stored;
    return rest ? rest.map((byte, i) => byte + base[i]) : base;
  }
  const bytes = await stored;
  if (kind === "w") return bytes;
  const plane = width * height;
  for (let start = 0; start < bytes.length; start += plane) {
    for (let i = start + width; i < start + plane; i++) bytes[i] += bytes[i - width];
  }
  return bytes;
}
