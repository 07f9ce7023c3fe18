// The viewer. One canvas holds one or more panes that share scale and place, so they move together by construction.
// Pictures come as compressed tiles (see tiles.py): level 0 is the exact values, from which views, differences and
// the numbers under the cursor are computed; higher levels are smaller and only for looking at.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const TILE = data.tile;
  const LARGEST_SCALE = 128; // screen pixels a picture pixel
  const SCALE_WITH_NUMBERS = 40; // from here on values are written into the pixels
  const GRAB_PIXELS = 14; // how near to the swipe line a press takes hold of it
  const CACHED_TILES = 600; // decoded tiles of each kind; about 150 MiB of canvases

  const MODES = [
    { name: "side", key: "d", label: "side by side" },
    { name: "swipe", key: "s", label: "swipe" },
    { name: "onion", key: "o", label: "onion skin" },
    { name: "blink", key: "b", label: "blink" },
    { name: "heat", key: "h", label: "heat map" },
    { name: "signed", key: "g", label: "signed map" },
  ];

  const state = {
    set: data.sets[0],
    setNumber: 0,
    mode: "side",
    input: 1,
    only: false, // of several inputs show the chosen one alone
    scale: 1,
    centre: { x: 0, y: 0 },
    cursor: { x: 0, y: 0 },
    mix: 0.5,
    blinking: false,
    showsInput: false,
    region: -1,
  };

  // --- tiles: from text in the page to bytes --------------------------------------------------------------------

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

  // --- values of the samples ------------------------------------------------------------------------------------

  async function tileValues(picture, row, column) {
    const id = [state.setNumber, picture, row, column].join("-");
    let values = valueTiles.get(id);
    if (!values) {
      const { width, height } = tileSize(0, row, column);
      values = splitChannels(await tileBytes(picture, 0, row, column, "v"), width * height);
      valueTiles.set(id, values);
    }
    return values;
  }

  function splitChannels(bytes, count) {
    const { dtype, channels } = state.set;
    if (dtype === "uint8") return channels.map((_, c) => bytes.subarray(c * count, (c + 1) * count));
    const size = dtype === "uint16" ? 2 : 4;
    return channels.map((_, c) => {
      const whole = new DataView(new ArrayBuffer(count * size));
      for (let byte = 0; byte < size; byte++) {
        const plane = (c * size + byte) * count;
        for (let i = 0; i < count; i++) whole.setUint8(i * size + byte, bytes[plane + i]);
      }
      const values = dtype === "uint16" ? new Uint16Array(count) : new Float32Array(count);
      for (let i = 0; i < count; i++) values[i] = size === 2 ? whole.getUint16(i * 2, true) : whole.getFloat32(i * 4, true);
      return values;
    });
  }

  async function pixelValues(picture, x, y) {
    const row = Math.floor(y / TILE);
    const column = Math.floor(x / TILE);
    const place = (y % TILE) * tileSize(0, row, column).width + (x % TILE);
    return (await tileValues(picture, row, column)).map((channel) => channel[place]);
  }

  // The shortest text that gives the same number back.
  function valueText(value) {
    if (state.set.dtype !== "float32" || !Number.isFinite(value)) return String(value).replace("Infinity", "inf");
    for (let digits = 1; digits < 9; digits++) {
      const text = Number(value.toPrecision(digits));
      if (Math.fround(text) === value) return String(text);
    }
    return String(Number(value.toPrecision(9)));
  }

  function differenceText(reference, other) {
    if (magnitude(reference, other) === 0) return "0";
    const difference = other - reference;
    const text = state.set.dtype === "float32" ? String(Number(difference.toPrecision(6))) : String(difference);
    return (difference > 0 ? "+" : "") + text.replace("Infinity", "inf").replace("-", "−");
  }

  // As in scale.py: NaN against NaN and an infinity against itself are the same.
  function magnitude(reference, other) {
    if (reference === other || (Number.isNaN(reference) && Number.isNaN(other))) return 0;
    const size = Math.abs(other - reference);
    return Number.isNaN(size) ? Infinity : size;
  }

  function classOf(size) {
    const { lower } = state.set.scale;
    let index = 0;
    while (index + 1 < lower.length && size >= (lower[index + 1] ?? Infinity)) index++;
    return index;
  }

  // --- layers: a tile of a picture or of a map as a canvas ------------------------------------------------------

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
    if (of.kind === "view") await paintView(image.data, of.picture, level, row, column);
    else await paintMap(image.data, of, level, row, column);
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
      const bytes = await tileBytes(picture, level, row, column, "v");
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

  // --- panes: what stands where on the stage --------------------------------------------------------------------

  const stage = byId("stage");
  const canvas = byId("canvas");
  const context = canvas.getContext("2d");
  const inputs = () => state.set.pictures.map((_, index) => index).slice(1);
  const pictureName = (index) => state.set.pictures[index].name;

  function paneContents() {
    const { mode, input } = state;
    const pair = `${pictureName(0)} | ${pictureName(input)}`;
    const shownInputs = state.only ? [input] : inputs();
    if (mode === "side") return [0, ...shownInputs].map((p) => ({ label: pictureName(p), layers: [layer("view", p)] }));
    if (mode === "heat" || mode === "signed") {
      return shownInputs.map((p) => ({ label: `${pictureName(p)} − ${pictureName(0)}`, layers: [layer(mode, p)] }));
    }
    if (mode === "blink") {
      const shown = state.showsInput ? input : 0;
      return [{ label: pictureName(shown), layers: [layer("view", shown)] }];
    }
    return [{ label: pair, layers: [layer("view", 0), layer("view", input)] }];
  }

  // Equal panes in the grid that shows the picture largest.
  function panes() {
    const contents = paneContents();
    const { clientWidth, clientHeight } = stage;
    const best = { fit: 0 };
    for (let columns = 1; columns <= contents.length; columns++) {
      const rows = Math.ceil(contents.length / columns);
      const width = clientWidth / columns;
      const height = clientHeight / rows;
      const fit = Math.min(width / state.set.width, height / state.set.height);
      if (fit > best.fit) Object.assign(best, { fit, columns, width, height });
    }
    return contents.map((content, index) => ({
      ...content,
      x: (index % best.columns) * best.width,
      y: Math.floor(index / best.columns) * best.height,
      width: best.width,
      height: best.height,
    }));
  }

  const toScreen = (pane, x, y) => ({
    x: pane.x + pane.width / 2 + (x - state.centre.x) * state.scale,
    y: pane.y + pane.height / 2 + (y - state.centre.y) * state.scale,
  });

  const toPicture = (pane, x, y) => ({
    x: state.centre.x + (x - pane.x - pane.width / 2) / state.scale,
    y: state.centre.y + (y - pane.y - pane.height / 2) / state.scale,
  });

  const paneAt = (x, y) =>
    panes().find((p) => x >= p.x && x < p.x + p.width && y >= p.y && y < p.y + p.height) ?? panes()[0];

  const swipeLine = (pane) => pane.x + state.mix * pane.width;

  // --- drawing --------------------------------------------------------------------------------------------------

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
      drawPane(pane, ratio);
      drawCursor(pane, ratio);
      drawLabel(pane, ratio);
    }
    document.documentElement.dataset.state = waitingFor ? "loading" : "drawn";
  }

  function drawPane(pane, ratio) {
    const [under, over] = pane.layers;
    drawLayer(under, pane, ratio, pane.x, pane.x + pane.width, 1);
    if (!over) return;
    if (state.mode === "onion") {
      drawLayer(over, pane, ratio, pane.x, pane.x + pane.width, state.mix);
      return;
    }
    const line = swipeLine(pane);
    drawLayer(over, pane, ratio, line, pane.x + pane.width, 1);
    context.fillStyle = colours.ink;
    context.fillRect(Math.round(line * ratio) - ratio, pane.y * ratio, 2 * ratio, pane.height * ratio);
    context.fillStyle = colours.paper;
    context.strokeStyle = colours.ink;
    context.lineWidth = 2 * ratio;
    context.beginPath();
    context.arc(line * ratio, (pane.y + pane.height / 2) * ratio, 9 * ratio, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }

  // Draw a layer between two vertical lines of a pane.
  function drawLayer(of, pane, ratio, left, right, opacity) {
    const scale = state.scale * ratio;
    const corner = toScreen(pane, 0, 0);
    const origin = { x: Math.round(corner.x * ratio), y: Math.round(corner.y * ratio) };
    // A picture is made a little smaller from the next larger level; a map never is, so that no pixel of it is lost.
    const halvings = of.kind === "view" ? Math.floor(Math.log2(1 / scale)) : Math.ceil(Math.log2(1 / scale));
    const level = clamp(halvings, 0, state.set.levels - 1);
    context.save();
    context.beginPath();
    context.rect(left * ratio, pane.y * ratio, (right - left) * ratio, pane.height * ratio);
    context.clip();
    context.beginPath();
    context.rect(origin.x, origin.y, Math.round(state.set.width * scale), Math.round(state.set.height * scale));
    context.clip();
    context.globalAlpha = opacity;
    context.imageSmoothingEnabled = scale < 1 && of.kind === "view";

    const step = TILE * 2 ** level * scale;
    const size = levelSize(level);
    const range = (from, to, start, count) => [
      Math.max(0, Math.floor((from * ratio - start) / step)),
      Math.min(Math.ceil(count / TILE), Math.ceil((to * ratio - start) / step)),
    ];
    const [firstColumn, endColumn] = range(left, right, origin.x, size.width);
    const [firstRow, endRow] = range(pane.y, pane.y + pane.height, origin.y, size.height);
    for (let row = firstRow; row < endRow; row++) {
      for (let column = firstColumn; column < endColumn; column++) drawTile(of, level, row, column, origin, scale);
    }
    if (state.scale >= SCALE_WITH_NUMBERS && opacity === 1) drawNumbers(of, pane, ratio, origin, scale, left, right);
    context.restore();
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

  // Every channel's value in its pixel; in maps the difference.
  function drawNumbers(of, pane, ratio, origin, scale, left, right) {
    const first = toPicture(pane, left, pane.y);
    const last = toPicture(pane, right, pane.y + pane.height);
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (let y = Math.max(0, Math.floor(first.y)); y < Math.min(state.set.height, last.y); y++) {
      for (let x = Math.max(0, Math.floor(first.x)); x < Math.min(state.set.width, last.x); x++) {
        const lines = loadedTexts(of, x, y);
        if (!lines) continue;
        const longest = Math.max(...lines.map((line) => line.length));
        const size = Math.min(scale / (1.6 * lines.length), scale / (0.7 * longest), 16 * ratio);
        context.font = `${size}px system-ui, sans-serif`;
        context.lineWidth = size / 4;
        lines.forEach((line, index) => {
          const middle = origin.y + (y + 0.5) * scale + (index - (lines.length - 1) / 2) * size * 1.1;
          context.strokeStyle = "#000";
          context.strokeText(line, origin.x + (x + 0.5) * scale, middle);
          context.fillStyle = "#fff";
          context.fillText(line, origin.x + (x + 0.5) * scale, middle);
        });
      }
    }
  }

  // The texts of a pixel whose tile is decoded already; drawing waits for no other.
  function loadedTexts(of, x, y) {
    const row = Math.floor(y / TILE);
    const column = Math.floor(x / TILE);
    const place = (y % TILE) * tileSize(0, row, column).width + (x % TILE);
    const values = valueTiles.get([state.setNumber, of.picture, row, column].join("-"));
    if (!values) return null;
    if (of.kind === "view") return values.map((channel) => valueText(channel[place]));
    const reference = valueTiles.get([state.setNumber, 0, row, column].join("-"));
    return reference ? values.map((channel, c) => differenceText(reference[c][place], channel[place])) : null;
  }

  function drawCursor(pane, ratio) {
    const { x, y } = toScreen(pane, state.cursor.x, state.cursor.y);
    const side = Math.max(state.scale, 9);
    const shift = (state.scale - side) / 2;
    context.save();
    context.beginPath();
    context.rect(pane.x * ratio, pane.y * ratio, pane.width * ratio, pane.height * ratio);
    context.clip();
    for (const [colour, width] of [["#000", 3], ["#fff", 1]]) {
      context.strokeStyle = colour;
      context.lineWidth = width * ratio;
      context.strokeRect((x + shift) * ratio, (y + shift) * ratio, side * ratio, side * ratio);
    }
    context.restore();
  }

  function drawLabel(pane, ratio) {
    context.font = `${13 * ratio}px system-ui, sans-serif`;
    context.textAlign = "left";
    context.textBaseline = "middle";
    const width = Math.min(context.measureText(pane.label).width + 12 * ratio, pane.width * ratio);
    context.fillStyle = colours.paper;
    context.fillRect(pane.x * ratio, pane.y * ratio, width, 22 * ratio);
    context.fillStyle = colours.ink;
    context.fillText(pane.label, (pane.x + 6) * ratio, (pane.y + 11) * ratio, width - 8 * ratio);
    context.strokeStyle = colours.ink;
    context.lineWidth = ratio;
    context.strokeRect(pane.x * ratio, pane.y * ratio, pane.width * ratio, pane.height * ratio);
  }

  // --- moving about ---------------------------------------------------------------------------------------------

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

  function fitScale() {
    const [pane] = panes();
    return Math.min(pane.width / state.set.width, pane.height / state.set.height);
  }

  function showAll() {
    state.scale = Math.min(fitScale(), LARGEST_SCALE);
    state.centre = { x: state.set.width / 2, y: state.set.height / 2 };
    moved();
  }

  // Change the scale and keep what is at (x, y) of a pane where it is; without a pane, keep the cursor's pixel.
  function zoomTo(scale, pane = null, x = 0, y = 0) {
    const fixed = pane ? toPicture(pane, x, y) : { x: state.cursor.x + 0.5, y: state.cursor.y + 0.5 };
    const before = state.scale;
    state.scale = clamp(scale, Math.min(fitScale(), 1) / 2, LARGEST_SCALE);
    const share = before / state.scale;
    state.centre = {
      x: fixed.x + (state.centre.x - fixed.x) * share,
      y: fixed.y + (state.centre.y - fixed.y) * share,
    };
    moved();
  }

  function moved() {
    state.centre.x = clamp(state.centre.x, 0, state.set.width);
    state.centre.y = clamp(state.centre.y, 0, state.set.height);
    byId("zoom").value = `${Number((state.scale * 100).toPrecision(3))} %`;
    describeStage();
    requestDraw();
  }

  function setCursor(x, y, aloud) {
    state.cursor = {
      x: clamp(Math.floor(x), 0, state.set.width - 1),
      y: clamp(Math.floor(y), 0, state.set.height - 1),
    };
    requestDraw();
    showValues(aloud);
  }

  function keepCursorInView() {
    const [pane] = panes();
    const { x, y } = state.cursor;
    const reach = { x: pane.width / 2 / state.scale - 1, y: pane.height / 2 / state.scale - 1 };
    state.centre.x = clamp(state.centre.x, x + 0.5 - Math.max(0.5, reach.x), x + 0.5 + Math.max(0.5, reach.x));
    state.centre.y = clamp(state.centre.y, y + 0.5 - Math.max(0.5, reach.y), y + 0.5 + Math.max(0.5, reach.y));
    moved();
  }

  let valuesAsked = 0;

  async function showValues(aloud) {
    const asked = ++valuesAsked;
    const { x, y } = state.cursor;
    const { set } = state;
    const all = await Promise.all(set.pictures.map((_, index) => pixelValues(index, x, y)));
    if (asked !== valuesAsked) return; // the cursor has moved on
    const [reference] = all;
    const table = byId("values");
    table.caption.textContent = `Pixel x ${x}, y ${y}`;
    const row = (tag, cells) => {
      const line = document.createElement("tr");
      cells.forEach((text, index) => {
        const cell = document.createElement(index === 0 || tag === "th" ? "th" : "td");
        if (cell.tagName === "TH") cell.scope = tag === "th" ? "col" : "row";
        cell.textContent = text;
        line.append(cell);
      });
      return line;
    };
    table.tHead.replaceChildren(row("th", ["picture", ...set.channels, "difference"]));
    const spoken = [`x ${x}, y ${y}`];
    const lines = all.map((values, index) => {
      const texts = values.map(valueText);
      const differences = values.map((value, c) => differenceText(reference[c], value));
      const differs = values.some((value, c) => magnitude(reference[c], value) > 0);
      spoken.push(`${pictureName(index)} ${texts.join(" ")}${differs ? `, difference ${differences.join(" ")}` : ""}`);
      const line = row("td", [pictureName(index), ...texts, index === 0 ? "" : differences.join(" ")]);
      if (differs) line.lastChild.className = "differs";
      return line;
    });
    table.tBodies[0].replaceChildren(...lines);
    table.dataset.pixel = `${x},${y}`;
    if (aloud) byId("announcer").textContent = spoken.join(". ");
  }

  // --- controls -------------------------------------------------------------------------------------------------

  function describeStage() {
    const mode = MODES.find((entry) => entry.name === state.mode);
    const shown = ["side", "heat", "signed"].includes(state.mode)
      ? state.set.pictures.map((picture) => picture.name).join(", ")
      : `${pictureName(0)} and ${pictureName(state.input)}`;
    stage.setAttribute("aria-label", `${mode.label}: ${shown}; zoom ${byId("zoom").value}`);
  }

  function showLegend() {
    const { labels, heat, plus, minus } = state.set.scale;
    let entries = [];
    if (state.mode === "heat") entries = labels.map((label, i) => [label, heat[i]]);
    if (state.mode === "signed") {
      const below = labels.map((label, i) => [`− ${label}`, minus[i]]).slice(1).reverse();
      entries = [...below, [labels[0], heat[0]], ...labels.map((label, i) => [`+ ${label}`, plus[i]]).slice(1)];
    }
    if (!entries.length && state.set.dtype !== "uint8") {
      entries = [[`black ${state.set.low}`, [0, 0, 0]], [`white ${state.set.high}`, [255, 255, 255]]];
    }
    byId("legend").replaceChildren(
      ...entries.map(([label, colour]) => {
        const item = document.createElement("li");
        const swatch = document.createElement("i");
        swatch.style.background = `rgb(${colour.join(" ")})`;
        item.append(swatch, label);
        return item;
      }),
    );
  }

  function setMode(name) {
    const shares = panes().length;
    state.mode = name;
    byId(`mode-${name}`).checked = true;
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    setBlinking(name === "blink" && !still);
    byId("only-label").hidden = inputs().length < 2 || !["side", "heat", "signed"].includes(name);
    byId("mix-label").hidden = name !== "swipe" && name !== "onion";
    byId("rate-label").hidden = byId("blinking").hidden = name !== "blink";
    showLegend();
    if (panes().length !== shares) showAll();
    else moved();
  }

  function setInput(index) {
    state.input = clamp(index, 1, state.set.pictures.length - 1);
    state.region = -1;
    byId("input").value = String(state.input);
    showRegion();
    moved();
  }

  function setMix(share) {
    state.mix = clamp(share, 0, 1);
    byId("mix").value = String(Math.round(state.mix * 100));
    requestDraw();
  }

  let blinkTimer = 0;

  function setBlinking(on) {
    clearInterval(blinkTimer);
    state.blinking = on;
    byId("blinking").setAttribute("aria-pressed", String(on));
    if (on) blinkTimer = setInterval(changeBlink, 1000 / Number(byId("rate").value));
  }

  function changeBlink() {
    state.showsInput = !state.showsInput;
    requestDraw();
  }

  function showRegion() {
    const { regions, regionCount } = state.set.pictures[state.input];
    const listed = regions.length < regionCount ? `${regions.length} largest of ${regionCount}` : `${regionCount}`;
    byId("region").value = state.region < 0 ? `${listed} regions` : `region ${state.region + 1} of ${listed}`;
    byId("previous-region").disabled = byId("next-region").disabled = regions.length === 0;
  }

  function goToRegion(step) {
    const { regions } = state.set.pictures[state.input];
    if (!regions.length) return;
    const from = state.region < 0 && step < 0 ? 0 : state.region; // backwards from none is the last
    state.region = (from + step + regions.length) % regions.length;
    const [left, top, right, bottom] = regions[state.region];
    const [pane] = panes();
    const around = 3; // the region takes a third of the pane
    const fit = Math.min(pane.width / (around * (right - left + 1)), pane.height / (around * (bottom - top + 1)));
    state.scale = clamp(fit, Math.min(fitScale(), 1) / 2, SCALE_WITH_NUMBERS);
    state.centre = { x: (left + right + 1) / 2, y: (top + bottom + 1) / 2 };
    setCursor(state.centre.x, state.centre.y, true);
    showRegion();
    moved();
  }

  function setSet(index) {
    state.setNumber = index;
    state.set = data.sets[index];
    for (const cache of [byteTiles, valueTiles, drawnTiles]) cache.clear();
    byId("input").replaceChildren(
      ...inputs().map((p) => new Option(pictureName(p) + (state.set.pictures[p].same ? " (same)" : ""), String(p))),
    );
    document.querySelectorAll("section.set").forEach((section) => {
      section.hidden = data.sets.length > 1 && section.dataset.set !== String(index);
    });
    setInput(1);
    setMode(state.mode);
    showAll();
    setCursor(state.set.width / 2, state.set.height / 2, false);
  }

  const KEYS = {
    "+": () => zoomTo(state.scale * 2),
    "=": () => zoomTo(state.scale * 2),
    "-": () => zoomTo(state.scale / 2),
    0: showAll,
    1: () => zoomTo(1),
    n: () => goToRegion(1),
    p: () => goToRegion(-1),
    "[": () => setInput(state.input - 1),
    "]": () => setInput(state.input + 1),
    ",": () => setMix(state.mix - 0.05),
    ".": () => setMix(state.mix + 0.05),
    " ": () => state.mode === "blink" && setBlinking(!state.blinking),
    x: () => state.mode === "blink" && changeBlink(),
    ...Object.fromEntries(MODES.map((mode) => [mode.key, () => setMode(mode.name)])),
  };
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const arrow = ARROWS[event.key];
    const action = KEYS[event.key.toLowerCase()];
    if (arrow) {
      const far = event.shiftKey ? 10 : 1;
      setCursor(state.cursor.x + far * arrow[0], state.cursor.y + far * arrow[1], true);
      keepCursorInView();
    } else if (action) {
      action();
    } else {
      return;
    }
    event.preventDefault();
  }

  // --- mouse and touch ------------------------------------------------------------------------------------------

  const pressed = new Map(); // pointers that are down, by id
  let holdsLine = false;

  const placeOf = (event) => {
    const box = stage.getBoundingClientRect();
    return { x: event.clientX - box.left - stage.clientLeft, y: event.clientY - box.top - stage.clientTop };
  };

  const spread = () => {
    const [one, other] = [...pressed.values()];
    return Math.hypot(one.x - other.x, one.y - other.y);
  };

  function onPress(event) {
    const place = placeOf(event);
    pressed.set(event.pointerId, place);
    stage.setPointerCapture(event.pointerId);
    const pane = paneAt(place.x, place.y);
    holdsLine = state.mode === "swipe" && Math.abs(place.x - swipeLine(pane)) <= GRAB_PIXELS;
    if (!holdsLine) pointAt(place);
  }

  function onMove(event) {
    const place = placeOf(event);
    const before = pressed.get(event.pointerId);
    if (!before) {
      pointAt(place);
      return;
    }
    const wide = pressed.size === 2 ? spread() : 0;
    pressed.set(event.pointerId, place);
    const pane = paneAt(place.x, place.y);
    if (pressed.size === 2) {
      if (wide > 0) zoomTo((state.scale * spread()) / wide, pane, place.x, place.y);
    } else if (holdsLine) {
      setMix((place.x - pane.x) / pane.width);
    } else {
      state.centre.x -= (place.x - before.x) / state.scale;
      state.centre.y -= (place.y - before.y) / state.scale;
      moved();
    }
  }

  function onRelease(event) {
    pressed.delete(event.pointerId);
    holdsLine = false;
  }

  function pointAt(place) {
    const { x, y } = toPicture(paneAt(place.x, place.y), place.x, place.y);
    if (x >= 0 && y >= 0 && x < state.set.width && y < state.set.height) setCursor(x, y, false);
  }

  function onWheel(event) {
    event.preventDefault();
    const place = placeOf(event);
    zoomTo(state.scale * Math.exp(-event.deltaY / 400), paneAt(place.x, place.y), place.x, place.y);
  }

  // --- start ----------------------------------------------------------------------------------------------------

  function start() {
    byId("modes").replaceChildren(
      ...MODES.map((mode) => {
        const label = document.createElement("label");
        const button = Object.assign(document.createElement("input"), {
          type: "radio",
          name: "mode",
          id: `mode-${mode.name}`,
        });
        button.addEventListener("change", () => setMode(mode.name));
        label.append(button, ` ${mode.label}`);
        return label;
      }),
    );
    byId("set").replaceChildren(...data.sets.map((set, index) => new Option(set.name, String(index))));
    byId("set-label").hidden = data.sets.length < 2;
    const on = (id, event, action) => byId(id).addEventListener(event, action);
    on("controls", "submit", (event) => event.preventDefault());
    on("set", "change", (event) => setSet(Number(event.target.value)));
    on("input", "change", (event) => setInput(Number(event.target.value)));
    on("only", "change", (event) => {
      state.only = event.target.checked;
      showAll();
    });
    on("mix", "input", (event) => setMix(event.target.value / 100));
    on("rate", "input", () => setBlinking(state.blinking));
    on("blinking", "click", () => setBlinking(!state.blinking));
    on("zoom-in", "click", () => zoomTo(state.scale * 2));
    on("zoom-out", "click", () => zoomTo(state.scale / 2));
    on("fit", "click", showAll);
    on("actual", "click", () => zoomTo(1));
    on("previous-region", "click", () => goToRegion(-1));
    on("next-region", "click", () => goToRegion(1));
    on("theme", "change", (event) => {
      document.documentElement.dataset.theme = event.target.value;
      requestDraw();
    });
    stage.addEventListener("keydown", onKey);
    stage.addEventListener("pointerdown", onPress);
    stage.addEventListener("pointermove", onMove);
    stage.addEventListener("pointerup", onRelease);
    stage.addEventListener("pointercancel", onRelease);
    stage.addEventListener("wheel", onWheel, { passive: false });
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", requestDraw);
    new ResizeObserver(requestDraw).observe(stage);
    setSet(0);
  }

  if (data.sets.length) start();
  else byId("viewer").hidden = true;
})();
