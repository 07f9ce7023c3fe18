// Layers: a tile of a picture or of a map as a canvas.

const layer = (kind, picture) => ({ kind, picture });

function drawnTile(of, level, row, column) {
  const id = [state.setNumber, of.kind, of.picture, level, row, column].join("-");
  const drawn = drawnTiles.get(id);
  if (drawn === undefined) {
    drawnTiles.set(id, null);
    paintTile(of, level, row, column).then((canvas) => {
      drawnTiles.set(id, canvas);
      requestDraw();
    });
  }
  return drawn ?? null;
}

async function paintTile(of, level, row, column) {
  const { width, height } = tileSize(level, row, column);
  const image = new ImageData(width, height);
  if (of.kind === "heat" || of.kind === "signed") await paintMap(image.data, of, level, row, column);
  else await paintView(image.data, of.kind === "overlay" ? 0 : of.picture, level, row, column);
  if (of.kind === "overlay") await paintOver(image.data, of, level, row, column);
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

async function paintView(rgba, picture, level, row, column) {
  const count = rgba.length / 4;
  let channels;
  if (level === 0) {
    channels = await tileValues(picture, row, column);
  } else {
    const bytes = await tileBytes(picture, level, row, column, "w");
    channels = [0, 1, 2].map((c) => bytes.subarray(c * count, (c + 1) * count));
  }
  const shown = level === 0 ? shader() : (value) => value;
  for (let c = 0; c < 3; c++) {
    const values = channels[Math.min(c, channels.length - 1)];
    for (let i = 0; i < count; i++) rgba[4 * i + c] = shown(values[i]);
  }
  for (let i = 3; i < rgba.length; i += 4) rgba[i] = 255;
}

// A value as a shade; as in maps.py.
function shader() {
  const { dtype, low, high } = state.set;
  if (dtype === "uint8") return (value) => value;
  if (dtype === "uint16") return (value) => value >> 8;
  return (value) => (Number.isNaN(value) ? 0 : ((value - low) * 255) / (high - low));
}

async function paintMap(rgba, of, level, row, column) {
  const { heat, plus, minus } = state.set.scale;
  const keys = await mapKeys(of.picture, level, row, column);
  for (let i = 0; i < keys.length; i++) {
    const index = keys[i] >> 1;
    const colour = of.kind === "heat" ? heat[index] : keys[i] & 1 ? minus[index] : plus[index];
    rgba.set(colour, 4 * i);
    rgba[4 * i + 3] = 255;
  }
}

// Heat where pixels differ, over the reference in grey at half brightness; as in maps.py.
async function paintOver(rgba, of, level, row, column) {
  const { heat } = state.set.scale;
  const keys = await mapKeys(of.picture, level, row, column);
  for (let i = 0; i < keys.length; i++) {
    const dimmed = Math.max(rgba[4 * i], rgba[4 * i + 1], rgba[4 * i + 2]) >> 1;
    rgba.set(keys[i] ? heat[keys[i] >> 1] : [dimmed, dimmed, dimmed], 4 * i);
  }
}

// 2 · class + (1 where negative), as tiles.py stores it for the smaller levels.
async function mapKeys(picture, level, row, column) {
  if (level > 0) return tileBytes(picture, level, row, column, "k");
  const reference = await tileValues(0, row, column);
  const other = await tileValues(picture, row, column);
  const keys = new Uint8Array(reference[0].length);
  for (let i = 0; i < keys.length; i++) {
    let largest = 0;
    let negative = false;
    for (let c = 0; c < reference.length; c++) {
      const size = magnitude(reference[c][i], other[c][i]);
      if (size > largest) {
        largest = size;
        negative = other[c][i] < reference[c][i];
      }
    }
    if (largest > 0) keys[i] = 2 * classOf(largest) + (negative ? 1 : 0);
  }
  return keys;
}
