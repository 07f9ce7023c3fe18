// Controls: modes, inputs, regions, the legend and the keys.

function describeStage() {
  const mode = MODES.find((entry) => entry.name === state.mode);
  const shown = state.mode === "side" || MAPS.includes(state.mode) || state.set.pictures.length < 2
    ? state.set.pictures.map((picture) => picture.name).join(", ")
    : `${pictureName(0)} and ${pictureName(state.input)}`;
  stage.setAttribute("aria-label", `${mode.label}: ${shown}; zoom ${byId("zoom").value}`);
}

// Labels of one colour as one: "64–127" and "128–255" are "64–255".
function shared(labels, colours) {
  const entries = [];
  labels.forEach((label, i) => {
    const last = entries.at(-1);
    if (last && last[1].join() === colours[i].join()) last[0] = joinedLabel(last[0], label);
    else entries.push([label, colours[i]]);
  });
  return entries;
}

const joinedLabel = (one, other) => (one.includes("1e") ? one : `${one.split("–")[0]}–${other.split("–").at(-1)}`);

function showLegend() {
  const { unit, labels, heat, plus, minus } = state.set.scale;
  let entries = [];
  if (isMap() && state.mode !== "signed") entries = shared(labels, heat);
  if (isMap() && state.mode === "signed") {
    const below = labels.map((label, i) => [`− ${label}`, minus[i]]).slice(1).reverse();
    entries = [...below, [labels[0], heat[0]], ...labels.map((label, i) => [`+ ${label}`, plus[i]]).slice(1)];
  }
  if (!entries.length && state.set.dtype !== "uint8") {
    entries = [[`black ${state.set.low}`, [0, 0, 0]], [`white ${state.set.high}`, [255, 255, 255]]];
  }
  byId("legend").hidden = entries.length === 0;
  byId("legend").replaceChildren(
    element("li", { className: "hint" }, isMap() ? unit : "values"),
    ...entries.map(([label, colour]) => {
      const item = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.style.background = `rgb(${colour.join(" ")})`;
      item.append(swatch, label);
      return item;
    }),
  );
}

// Controls that a view does not need leave their place empty: the others stay where they are.
const show = (id, shown) => byId(id).classList.toggle("absent", !shown);

function setMode(name) {
  state.mode = name;
  byId(`mode-${name}`).checked = true;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  setBlinking(name === "blink" && !still);
  const compares = inputs().length > 0;
  show("only-label", inputs().length > 1 && (name === "side" || MAPS.includes(name)));
  show("mix-label", compares && (name === "swipe" || name === "onion"));
  show("rate-label", compares && name === "blink");
  showLegend();
  refit();
}

function setInput(index) {
  state.input = clamp(index, Math.min(1, inputs().length), inputs().length);
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
  const { regions = [], regionCount = 0 } = state.set.pictures[state.input];
  const listed = regions.length < regionCount ? `${regions.length} largest of ${regionCount}` : `${regionCount}`;
  const noun = regionCount === 1 ? "region" : "regions";
  byId("region").value = state.region < 0 ? `${listed} ${noun}` : `region ${state.region + 1} of ${listed}`;
  for (const id of ["previous-region", "next-region", "ignore-difference"]) byId(id).disabled = regions.length === 0;
}

function goToRegion(step) {
  const { regions = [] } = state.set.pictures[state.input];
  if (!regions.length) return;
  state.fitted = false;
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

let hasOpened = false;

function setSet(index) {
  const before = state.set;
  state.setNumber = index;
  state.set = data.sets[index];
  for (const cache of [byteTiles, valueTiles, drawnTiles]) cache.clear();
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
  for (const id of ["modes-label", "regions"]) byId(id).hidden = inputs().length === 0;
  byId("input-label").hidden = inputs().length < 2;
  const differs = inputs().some((p) => !state.set.pictures[p].same);
  byId("ignoring").hidden = !data.canIgnore || !(differs || ignored().length);
  setDrawing(false);
  showIgnored();
  setInput(firstDifferent);
  if (!hasOpened && state.set.pictures[state.input].same !== false) state.mode = "side";
  setMode(state.mode);
  const [x, y] = state.set.pictures[state.input].worst ?? [state.set.width / 2, state.set.height / 2];
  if (same && !state.fitted) setCursor(state.cursor.x, state.cursor.y, false);
  else setCursor(x, y, false);
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
  ",": () => setMix(state.mix - 0.05),
  ".": () => setMix(state.mix + 0.05),
  " ": () => state.mode === "blink" && (setBlinking(!state.blinking), true),
  x: () => state.mode === "blink" && (changeBlink(), true),
  ...Object.fromEntries(MODES.map((mode) => [mode.key, () => setMode(mode.name)])),
};
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Fields in which a key is a part of what is typed or chosen, and what uses the arrows or the space bar itself.
const TYPED_IN = "input:not([type=radio]):not([type=checkbox]), select, textarea";
const USES_ARROWS = "[type=radio], .wide, #gallery";
const USES_SPACE = "button, input, summary, a";

function onKey(event) {
  const { target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || target.closest(TYPED_IN)) return;
  const arrow = ARROWS[event.key];
  const action = KEYS[event.key.toLowerCase()];
  if (arrow) {
    if (target.closest(USES_ARROWS)) return;
    const far = event.shiftKey ? 10 : 1;
    setCursor(state.cursor.x + far * arrow[0], state.cursor.y + far * arrow[1], true);
    keepCursorInView();
  } else if (!action || (event.key === " " && target.closest(USES_SPACE)) || action() === false) {
    return;
  }
  event.preventDefault();
}
