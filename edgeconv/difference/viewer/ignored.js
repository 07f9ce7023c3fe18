// Ignored regions: rectangles drawn on the pictures. Once they are saved, `edgeconv diff --ignore` does not judge them.

const ignoredBySet = data.sets.map((set) => set.ignored);
const ignored = () => ignoredBySet[state.setNumber];
let drawsRegions = false;
let drawing = null; // the pane, and the two corners of the region that is being drawn

const boxText = ([left, top, right, bottom]) => `x ${left} to ${right}, y ${top} to ${bottom}`;

function drawnBox() {
  const [xs, ys] = ["x", "y"].map((axis) => [drawing.from[axis], drawing.to[axis]].sort((one, other) => one - other));
  return [xs[0], ys[0], xs[1], ys[1]];
}

function showIgnored(said = "") {
  const count = ignored().length;
  byId("ignored-count").value = `${count || "none"} ignored`;
  byId("remove-region").disabled = count === 0;
  byId("save-regions").disabled = ignoredBySet.every((boxes) => boxes.length === 0);
  if (said) byId("announcer").textContent = `${said}; ${byId("ignored-count").value}`;
  requestDraw();
}

function setDrawing(asked) {
  if (!asked && !drawsRegions) return false;
  drawsRegions = asked;
  drawing = null;
  stage.classList.toggle("drawing", drawsRegions);
  byId("draw-region").setAttribute("aria-pressed", String(drawsRegions));
  requestDraw();
  return true;
}

function ignoreBox(box) {
  if (!ignored().some((known) => known.join() === box.join())) ignored().push(box);
  showIgnored(boxText(box));
}

// The differing region that is shown, or the largest where none is.
function ignoreDifference() {
  if (state.region < 0) goToRegion(1);
  const found = state.set.pictures[state.input].regions[state.region];
  if (found) ignoreBox(found);
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

// Dark and light lines, so that they are seen on any picture.
function hatch() {
  const side = 10;
  const tile = element("canvas", { width: side, height: side });
  const lines = tile.getContext("2d");
  for (let i = 0; i < side; i++) {
    lines.fillStyle = "#000";
    lines.fillRect(i, i, 1, 1);
    lines.fillStyle = "#fff";
    lines.fillRect((i + 1) % side, i, 1, 1);
  }
  return context.createPattern(tile, "repeat");
}

function drawIgnored(pane, ratio) {
  for (const box of [...ignored(), ...(drawing ? [drawnBox()] : [])]) outlinedBox(pane, ratio, box, hatch());
}
