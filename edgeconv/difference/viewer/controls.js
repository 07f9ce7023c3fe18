// Controls: modes, inputs, regions, the legend and the keys.

function showLegend() {
  const { unit, legend, dtype, low, high } = state.set;
  const grey = dtype === "uint8" ? [] : [[`black ${low}`, [0, 0, 0]], [`white ${high}`, [255, 255, 255]]];
  const entries = isMap() ? legend : grey;
  byId("legend").hidden = entries.length === 0;
  byId("legend").replaceChildren(
    element("li", { className: "hint" }, isMap() ? unit : "values"),
    ...entries.map(([label, colour]) => {
      const swatch = element("i", {});
      swatch.style.background = `rgb(${colour.join(" ")})`;
      return element("li", {}, swatch, label);
    }),
  );
}

function setMode(name) {
  state.mode = name;
  byId(`mode-${name}`).checked = true;
  byId("change").hidden = name !== "blink";
  showLegend();
  refit();
}

function setInput(index) {
  state.input = clamp(index, 1, inputs().length);
  state.region = -1;
  byId("input").value = String(state.input);
  showRegion();
  moved();
}

function changePicture() {
  if (state.mode !== "blink") return false;
  state.showsInput = !state.showsInput;
  byId("announcer").textContent = pictureName(state.showsInput ? state.input : 0);
  requestDraw();
  return true;
}

function showRegion() {
  const { regions, regionCount } = state.set.pictures[state.input];
  const listed = regions.length < regionCount ? `${regions.length} largest of ${regionCount}` : `${regionCount}`;
  const noun = regionCount === 1 ? "region" : "regions";
  byId("region").value = state.region < 0 ? `${listed} ${noun}` : `region ${state.region + 1} of ${listed}`;
  for (const id of ["previous-region", "next-region", "ignore-difference"]) byId(id).disabled = regions.length === 0;
}

function goToRegion(step) {
  const { regions } = state.set.pictures[state.input];
  if (!regions.length) return;
  state.fitted = false;
  const from = state.region < 0 && step < 0 ? 0 : state.region; // backwards from none is the last
  state.region = (from + step + regions.length) % regions.length;
  const [left, top, right, bottom] = regions[state.region];
  const [pane] = panes();
  const around = 3; // the region takes a third of the pane
  const fit = Math.min(pane.width / (around * (right - left + 1)), pane.height / (around * (bottom - top + 1)));
  state.scale = clamp(fit, Math.min(fitScale(), 1) / 2, LARGEST_SCALE);
  state.centre = { x: (left + right + 1) / 2, y: (top + bottom + 1) / 2 };
  setCursor(state.centre, true);
  showRegion();
  moved();
}

let hasOpened = false;

function setSet(index) {
  const before = state.set;
  state.setNumber = index;
  state.set = data.sets[index];
  valueTiles = new Cache();
  drawnTiles = new Cache();
  byId("input").replaceChildren(
    ...inputs().map((p) => new Option(pictureName(p) + (state.set.pictures[p].same ? " (same)" : ""), String(p))),
  );
  document.querySelectorAll("section.set").forEach((section) => {
    section.hidden = data.sets.length > 1 && section.dataset.set !== String(index);
  });
  byId("open-pair").textContent = state.set.name;
  const same = hasOpened && before.width === state.set.width && before.height === state.set.height;
  if (!same) state.fitted = true;
  const firstDifferent = inputs().find((p) => !state.set.pictures[p].same) ?? 1;
  byId("input-label").hidden = inputs().length < 2;
  const differs = inputs().some((p) => !state.set.pictures[p].same);
  byId("ignoring").hidden = !data.canIgnore || !(differs || ignored().length);
  setDrawing(false);
  showIgnored();
  setInput(firstDifferent);
  if (!hasOpened && state.set.pictures[state.input].same !== false) state.mode = "side";
  setMode(state.mode);
  markOpened();
  const [x, y] = state.set.pictures[state.input].worst ?? [state.set.width / 2, state.set.height / 2];
  setCursor(same && !state.fitted ? state.cursor : { x, y });
  hasOpened = true;
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
  " ": changePicture,
  i: () => setDrawing(!drawsRegions),
  delete: () => document.activeElement === stage && removeRegion(),
  j: () => stepPair(1),
  k: () => stepPair(-1),
  escape: () => setDrawing(false) || backToGallery(),
  ...Object.fromEntries(MODES.map((mode) => [mode.key, () => setMode(mode.name)])),
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Fields in which a key is a part of what is typed or chosen, and what uses the arrows or the space bar itself.
const TYPED_IN = "input:not([type=radio]):not([type=checkbox]), select, textarea";
const USES_ARROWS = "[type=radio], .wide, #pairs";
const USES_SPACE = "button, input, summary, a";

function onKey(event) {
  const { target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || target.closest(TYPED_IN)) return;
  const arrow = ARROWS[event.key];
  const action = KEYS[event.key.toLowerCase()];
  if (arrow) {
    if (target.closest(USES_ARROWS)) return;
    const far = event.shiftKey ? 10 : 1;
    setCursor({ x: state.cursor.x + far * arrow[0], y: state.cursor.y + far * arrow[1] }, true);
    keepCursorInView();
  } else if (!action || (event.key === " " && target.closest(USES_SPACE)) || action() === false) {
    return;
  }
  event.preventDefault();
}
