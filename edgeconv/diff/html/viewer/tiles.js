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

async function inflate(id) {
  const block = byId(id);
  if (!block) return null; // left out: it agrees with the reference
  const text = atob(block.textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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
  const stored = inflate(id);
  if (kind === "k") return (await stored) ?? new Uint8Array(width * height);
  if (picture > 0) {
    const base = await tileBytes(0, level, row, column, kind);
    const rest = await stored;
    return rest ? rest.map((byte, i) => byte + base[i]) : base;
  }
  const bytes = await stored;
  const plane = width * height;
  for (let start = 0; start < bytes.length; start += plane) {
    for (let i = start + width; i < start + plane; i++) bytes[i] += bytes[i - width];
  }
  return bytes;
}
