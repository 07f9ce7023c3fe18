// Ignored regions: rectangles drawn on the pictures. Once they are saved, `edgeconv diff --ignore` does not judge them.

const ignoredBySet = data.sets.map((set) => (set.ignored ?? []).map((box) => [...box]));
const ignored = () => ignoredBySet[state.setNumber];
const STILL_PIXELS = 4; // a press that moves no further marks a corner; the next one marks the other
const HATCH = 10; // CSS pixels from line to line
let drawsRegions = false;
let corner = null; // the first corner of a region that is being drawn; the other is the cursor

const boxBetween = (one, other) => [
  Math.min(one.x, other.x),
  Math.min(one.y, other.y),
  Math.max(one.x, other.x),
  Math.max(one.y, other.y),
];

const boxText = ([left, top, right, bottom]) => `x ${left} to ${right}, y ${top} to ${bottom}`;

function showIgnored(said = "") {
  const count = ignored().length;
  byId("ignored-count").value = `${count || "none"} ignored`;
  byId("remove-region").disabled = count === 0;
  byId("save-regions").disabled = ignoredBySet.every((boxes) => boxes.length === 0);
  if (said) byId("announcer").textContent = `${said}; ${byId("ignored-count").value}`;
  requestDraw();
}

function setDrawing(on) {
  if (!on && !drawsRegions) return false;
  drawsRegions = on && inputs().length > 0;
  corner = null;
  stage.classList.toggle("drawing", drawsRegions);
  byId("draw-region").setAttribute("aria-pressed", String(drawsRegions));
  requestDraw();
  return true;
}

function markCorner() {
  if (corner === null) {
    corner = { ...state.cursor };
    byId("announcer").textContent = `first corner x ${corner.x}, y ${corner.y}`;
    requestDraw();
  } else {
    ignoreBox(boxBetween(corner, state.cursor));
  }
}

function ignoreBox(box) {
  corner = null;
  if (!ignored().some((known) => known.join() === box.join())) ignored().push(box);
  showIgnored(boxText(box));
}

// The differing region that is shown, or the largest where none is.
function ignoreDifference() {
  if (state.region < 0) goToRegion(1);
  const found = (state.set.pictures[state.input].regions ?? [])[state.region];
  if (found) ignoreBox(found.slice(0, 4));
}

// Of those under the cursor the last that was drawn, else the last of all.
function removeRegion() {
  if (!ignored().length) return false;
  const { x, y } = state.cursor;
  const under = ignored().map((box) => x >= box[0] && y >= box[1] && x <= box[2] && y <= box[3]).lastIndexOf(true);
  const [removed] = ignored().splice(under, 1);
  showIgnored(`removed ${boxText(removed)}`);
  return true;
}

function saveRegions() {
  const regions = data.sets.flatMap(({ picture }, number) =>
    ignoredBySet[number].map(([left, top, right, bottom]) => ({ left, top, right, bottom, ...(picture && { picture }) })),
  );
  const text = `${JSON.stringify({ schema_version: 1, kind: "ignored_regions", regions }, null, 1)}\n`;
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  element("a", { href, download: "ignored.json" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
  byId("announcer").textContent = "saved as ignored.json";
}

function drawIgnored(pane, ratio) {
  const boxes = corner === null ? ignored() : [...ignored(), boxBetween(corner, state.cursor)];
  if (!boxes.length || !inputs().length) return;
  context.save();
  context.beginPath();
  context.rect(pane.x * ratio, pane.y * ratio, pane.width * ratio, pane.height * ratio);
  context.clip();
  for (const [left, top, right, bottom] of boxes) {
    const from = toScreen(pane, left, top);
    const to = toScreen(pane, right + 1, bottom + 1);
    drawHatched(from.x * ratio, from.y * ratio, (to.x - from.x) * ratio, (to.y - from.y) * ratio, pane, ratio);
  }
  context.restore();
}

// Dark and light lines, so that they are seen on any picture.
function drawHatched(x, y, width, height, pane, ratio) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  const step = HATCH * ratio;
  const first = Math.max(x - height, (pane.x - pane.height) * ratio);
  const last = Math.min(x + width, (pane.x + pane.width + pane.height) * ratio);
  for (const [colour, shift] of [["#000", 0], ["#fff", ratio]]) {
    context.strokeStyle = colour;
    context.lineWidth = ratio;
    context.beginPath();
    for (let at = Math.ceil((first - x) / step) * step + x; at < last; at += step) {
      context.moveTo(at + shift, y);
      context.lineTo(at + shift + height, y + height);
    }
    context.stroke();
  }
  context.restore();
  for (const [colour, line] of [["#000", 3], ["#fff", 1]]) {
    context.strokeStyle = colour;
    context.lineWidth = line * ratio;
    context.strokeRect(x, y, width, height);
  }
}

function startIgnoring() {
  const on = (id, action) => byId(id).addEventListener("click", action);
  byId("ignoring").addEventListener("submit", (event) => event.preventDefault());
  on("draw-region", () => setDrawing(!drawsRegions));
  on("ignore-difference", ignoreDifference);
  on("remove-region", removeRegion);
  on("save-regions", saveRegions);
  Object.assign(KEYS, {
    i: () => setDrawing(!drawsRegions),
    delete: () => document.activeElement === stage && removeRegion(),
    escape: () => setDrawing(false),
    enter: () => drawsRegions && document.activeElement === stage && (markCorner(), true),
  });
}
