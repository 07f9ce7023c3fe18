// Drawing: the panes with their layers, values, cursor and label onto one canvas.

let drawRequested = false;
let waitingFor = 0;
let colours = {};

function requestDraw() {
  document.documentElement.dataset.state = "loading";
  if (drawRequested) return;
  drawRequested = true;
  requestAnimationFrame(draw);
}

function draw() {
  drawRequested = false;
  waitingFor = 0;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(stage.clientWidth * ratio);
  canvas.height = Math.round(stage.clientHeight * ratio);
  const style = getComputedStyle(document.documentElement);
  colours = { ink: style.getPropertyValue("--ink"), paper: style.getPropertyValue("--paper") };
  for (const pane of panes()) {
    drawLayer(pane, ratio);
    drawIgnored(pane, ratio);
    drawRegions(pane, ratio);
    drawCursor(pane, ratio);
    drawLabel(pane, ratio);
  }
  document.documentElement.dataset.state = waitingFor ? "loading" : "drawn";
}

function drawLayer(pane, ratio) {
  const of = pane.layer;
  const scale = state.scale * ratio;
  const corner = toScreen(pane, 0, 0);
  const origin = { x: Math.round(corner.x * ratio), y: Math.round(corner.y * ratio) };
  // A picture is made a little smaller from the next larger level; a map never is, so that no pixel of it is lost.
  const halvings = of.kind === "view" ? Math.floor(Math.log2(1 / scale)) : Math.ceil(Math.log2(1 / scale));
  const level = clamp(halvings, 0, state.set.levels - 1);
  context.save();
  clipTo(pane, ratio);
  context.beginPath();
  context.rect(origin.x, origin.y, Math.round(state.set.width * scale), Math.round(state.set.height * scale));
  context.clip();
  context.imageSmoothingEnabled = scale < 1 && of.kind === "view";

  const step = TILE * 2 ** level * scale;
  const size = levelSize(level);
  const range = (from, to, start, count) => [
    Math.max(0, Math.floor((from * ratio - start) / step)),
    Math.min(Math.ceil(count / TILE), Math.ceil((to * ratio - start) / step)),
  ];
  const [firstColumn, endColumn] = range(pane.x, pane.x + pane.width, origin.x, size.width);
  const [firstRow, endRow] = range(pane.y, pane.y + pane.height, origin.y, size.height);
  for (let row = firstRow; row < endRow; row++) {
    for (let column = firstColumn; column < endColumn; column++) drawTile(of, level, row, column, origin, scale);
  }
  context.restore();
}

function clipTo(pane, ratio) {
  context.beginPath();
  context.rect(pane.x * ratio, pane.y * ratio, pane.width * ratio, pane.height * ratio);
  context.clip();
}

// A tile, or until it is there its part of a smaller level.
function drawTile(of, level, row, column, origin, scale) {
  const { width, height } = tileSize(level, row, column);
  const factor = 2 ** level * scale;
  const x = Math.round(origin.x + column * TILE * factor);
  const y = Math.round(origin.y + row * TILE * factor);
  const right = Math.round(origin.x + (column * TILE + width) * factor);
  const bottom = Math.round(origin.y + (row * TILE + height) * factor);
  const tile = drawnTile(of, level, row, column);
  if (tile) {
    context.drawImage(tile, x, y, right - x, bottom - y);
    return;
  }
  waitingFor++;
  const top = state.set.levels - 1;
  if (level === top) return;
  const shrink = 2 ** (top - level);
  const coarse = drawnTile(of, top, Math.floor(row / shrink), Math.floor(column / shrink));
  if (!coarse) return;
  const part = TILE / shrink;
  const place = { x: (column % shrink) * part, y: (row % shrink) * part };
  context.drawImage(coarse, place.x, place.y, width / shrink, height / shrink, x, y, right - x, bottom - y);
}

// In maps: a ring around each region that is tiny on the screen, and the bounds of the one that was gone to.
function drawRegions(pane, ratio) {
  if (!isMap()) return;
  state.set.pictures[state.input].regions.forEach((box, index) => {
    const [left, top, right, bottom] = box;
    const isTiny = (Math.max(right - left, bottom - top) + 1) * state.scale < RING_PIXELS;
    const { x, y } = toScreen(pane, (left + right + 1) / 2, (top + bottom + 1) / 2);
    if (isTiny) outlined(pane, ratio, () => context.arc(x * ratio, y * ratio, RING_PIXELS * ratio, 0, 2 * Math.PI));
    else if (index === state.region) outlinedBox(pane, ratio, box);
  });
}

function outlinedBox(pane, ratio, [left, top, right, bottom], fill = null) {
  const from = toScreen(pane, left, top);
  const to = toScreen(pane, right + 1, bottom + 1);
  const sides = [from.x, from.y, to.x - from.x, to.y - from.y].map((side) => side * ratio);
  outlined(pane, ratio, () => context.rect(...sides), fill);
}

// A path within a pane as a light line on a dark one, so that it is seen on any picture.
function outlined(pane, ratio, path, fill = null) {
  context.save();
  clipTo(pane, ratio);
  context.beginPath();
  path();
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  for (const [colour, width] of [["#000", 3], ["#fff", 1]]) {
    context.strokeStyle = colour;
    context.lineWidth = width * ratio;
    context.stroke();
  }
  context.restore();
}

function drawCursor(pane, ratio) {
  const { x, y } = toScreen(pane, state.cursor.x, state.cursor.y);
  const side = Math.max(state.scale, 9);
  const shift = (state.scale - side) / 2;
  outlined(pane, ratio, () => context.rect((x + shift) * ratio, (y + shift) * ratio, side * ratio, side * ratio));
}

// The pane's frame, and its name in the corner.
function drawLabel(pane, ratio) {
  context.font = `${13 * ratio}px system-ui, sans-serif`;
  context.textAlign = "left";
  context.textBaseline = "middle";
  const width = Math.min(context.measureText(pane.label).width / ratio + 12, pane.width);
  const [left, top] = [pane.x * ratio, pane.y * ratio];
  context.fillStyle = colours.paper;
  context.fillRect(left, top, width * ratio, 22 * ratio);
  context.fillStyle = colours.ink;
  context.fillText(pane.label, left + 6 * ratio, top + 11 * ratio, (width - 8) * ratio);
  context.strokeStyle = colours.ink;
  context.lineWidth = ratio;
  context.strokeRect(left, top, pane.width * ratio, pane.height * ratio);
}
