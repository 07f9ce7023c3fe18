// Layers: a tile of a picture or of a map, ready to be drawn.

// Once it is there; it then asks to be drawn.
function drawnTile(of, level, row, column) {
  const paint = () => paintTile(of, level, row, column).finally(requestDraw);
  return drawnTiles.get(blockId(of.kind, of.picture, level, row, column), paint).value;
}

async function paintTile({ kind, picture }, level, row, column) {
  const { width, height } = tileSize(level, row, column);
  const surface = readable(width, height);
  surface.fillRect(0, 0, width, height); // until then it reads as transparent
  await paintView(surface, kind === "map" ? 0 : picture, level, row, column);
  if (kind === "map") await paintMap(surface, picture, level, row, column);
  return createImageBitmap(surface.canvas); // which may stay where it is drawn from, other than what is read
}

async function paintView(surface, picture, level, row, column) {
  if (level > 0) {
    const [reference, own] = [0, picture].map((each) => blockId(each, level, row, column, "p"));
    await drawPart(surface, reference);
    if (picture > 0) await drawPart(surface, own);
    return;
  }
  const shown = shader();
  const channels = await tileValues(picture, row, column);
  const image = surface.createImageData(surface.canvas.width, surface.canvas.height);
  image.data.fill(255);
  for (let c = 0; c < 3; c++) {
    const values = channels[Math.min(c, channels.length - 1)];
    for (let i = 0; i < values.length; i++) image.data[4 * i + c] = shown(values[i]);
  }
  surface.putImageData(image, 0, 0);
}

// A value as a shade; as in maps.py.
function shader() {
  const { dtype, low, high } = state.set;
  if (dtype === "uint8") return (value) => value;
  if (dtype === "uint16") return (value) => value >> 8;
  return (value) => (Number.isNaN(value) ? 0 : ((value - low) * 255) / (high - low));
}

// Classes in their colours; where nothing differs, the reference in grey at half brightness (maps.py).
async function paintMap(surface, picture, level, row, column) {
  const { colours } = state.set;
  const classes = await tileClasses(picture, level, row, column);
  const image = surface.getImageData(0, 0, surface.canvas.width, surface.canvas.height);
  const rgba = image.data;
  for (let i = 0; i < rgba.length / 4; i++) {
    const dimmed = Math.max(rgba[4 * i], rgba[4 * i + 1], rgba[4 * i + 2]) >> 1;
    rgba.set(classes?.[i] ? colours[classes[i]] : [dimmed, dimmed, dimmed], 4 * i);
  }
  surface.putImageData(image, 0, 0);
}

// The class of each pixel's largest difference, as tiles.py stores it for smaller levels; null where all is the same.
async function tileClasses(picture, level, row, column) {
  if (level > 0) return inflate(blockId(picture, level, row, column, "k"));
  const [reference, other] = await Promise.all([0, picture].map((each) => tileValues(each, row, column)));
  return reference[0].map((_, i) => {
    let largest = 0;
    for (let c = 0; c < reference.length; c++) largest = Math.max(largest, magnitude(reference[c][i], other[c][i]));
    return classOf(largest);
  });
}
