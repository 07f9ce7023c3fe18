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
  image.data.fill(255);
  if (of.kind !== "heat") await paintView(image.data, of.kind === "overlay" ? 0 : of.picture, level, row, column);
  if (of.kind !== "view") await paintMap(image.data, of, level, row, column);
  const canvas = element("canvas", { width, height });
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
}

// A value as a shade; as in maps.py.
function shader() {
  const { dtype, low, high } = state.set;
  if (dtype === "uint8") return (value) => value;
  if (dtype === "uint16") return (value) => value >> 8;
  return (value) => (Number.isNaN(value) ? 0 : ((value - low) * 255) / (high - low));
}

// Classes in their colours; where nothing differs, an overlay has the reference in grey at half brightness (maps.py).
async function paintMap(rgba, of, level, row, column) {
  const { colours } = state.set;
  const classes = await tileClasses(of.picture, level, row, column);
  for (let i = 0; i < classes.length; i++) {
    const dimmed = Math.max(rgba[4 * i], rgba[4 * i + 1], rgba[4 * i + 2]) >> 1;
    const same = of.kind === "overlay" ? [dimmed, dimmed, dimmed] : colours[0];
    rgba.set(classes[i] ? colours[classes[i]] : same, 4 * i);
  }
}

// The class of each pixel's largest difference, as tiles.py stores it for the smaller levels.
async function tileClasses(picture, level, row, column) {
  if (level > 0) return tileBytes(picture, level, row, column, "k");
  const reference = await tileValues(0, row, column);
  const other = await tileValues(picture, row, column);
  const classes = new Uint8Array(reference[0].length);
  for (let i = 0; i < classes.length; i++) {
    let largest = 0;
    for (let c = 0; c < reference.length; c++) largest = Math.max(largest, magnitude(reference[c][i], other[c][i]));
    classes[i] = classOf(largest);
  }
  return classes;
}
