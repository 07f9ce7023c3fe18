// Moving about: scale, centre and the pixel under the cursor; by mouse, touch and wheel.

function fitScale() {
  const [pane] = panes();
  return Math.min(pane.width / state.set.width, pane.height / state.set.height);
}

function showAll() {
  state.fitted = true;
  state.scale = Math.min(fitScale(), LARGEST_SCALE);
  state.centre = { x: state.set.width / 2, y: state.set.height / 2 };
  moved();
}

// Change the scale and keep what is at (x, y) of a pane where it is; without a pane, keep the cursor's pixel.
function zoomTo(scale, pane = null, x = 0, y = 0) {
  const fixed = pane ? toPicture(pane, x, y) : { x: state.cursor.x + 0.5, y: state.cursor.y + 0.5 };
  const before = state.scale;
  state.fitted = false;
  state.scale = clamp(scale, Math.min(fitScale(), 1) / 2, LARGEST_SCALE);
  const share = before / state.scale;
  state.centre = {
    x: fixed.x + (state.centre.x - fixed.x) * share,
    y: fixed.y + (state.centre.y - fixed.y) * share,
  };
  moved();
}

// After a change of view or of the stage's size: what was fitted is fitted again, anything else keeps its place.
const refit = () => (state.fitted ? showAll() : moved());

function moved() {
  stage.classList.toggle("zoomed", !state.fitted);
  state.centre.x = clamp(state.centre.x, 0, state.set.width);
  state.centre.y = clamp(state.centre.y, 0, state.set.height);
  byId("zoom").value = `${Number((state.scale * 100).toPrecision(3))} %`;
  const { label } = MODES.find((mode) => mode.name === state.mode);
  const shown = `${pictureName(0)} and ${pictureName(state.input)}`;
  stage.setAttribute("aria-label", `${label}: ${shown}; zoom ${byId("zoom").value}`);
  requestDraw();
}

function setCursor(place, aloud = false) {
  state.cursor = inPicture(place);
  requestDraw();
  showValues(aloud);
}

function keepCursorInView() {
  if (state.fitted) return;
  const [pane] = panes();
  for (const [axis, side] of [["x", "width"], ["y", "height"]]) {
    const reach = Math.max(0.5, pane[side] / 2 / state.scale - 1);
    const middle = state.cursor[axis] + 0.5;
    state.centre[axis] = clamp(state.centre[axis], middle - reach, middle + reach);
  }
  moved();
}

const pressed = new Map(); // pointers that are down, by id

const placeOf = (event) => {
  const box = stage.getBoundingClientRect();
  return { x: event.clientX - box.left - stage.clientLeft, y: event.clientY - box.top - stage.clientTop };
};

// How far two fingers are apart, and what is between them.
const pinch = () => {
  const [one, other] = [...pressed.values()];
  return { wide: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
};

function onPress(event) {
  const place = placeOf(event);
  pressed.set(event.pointerId, place);
  stage.setPointerCapture(event.pointerId);
  const isFirst = pressed.size === 1;
  drawing = null; // a second finger moves the picture: what the first one has begun to draw is left
  if (drawsRegions && isFirst) {
    const pane = paneAt(place.x, place.y);
    const from = inPicture(toPicture(pane, place.x, place.y));
    drawing = { pane, from, to: from };
  } else pointAt(place);
}

function onMove(event) {
  const place = placeOf(event);
  const before = pressed.get(event.pointerId);
  if (!before) {
    pointAt(place);
    return;
  }
  const from = pressed.size === 2 ? pinch() : null;
  pressed.set(event.pointerId, place);
  const pane = paneAt(place.x, place.y);
  if (from) {
    const to = pinch();
    drag(to.x - from.x, to.y - from.y);
    if (from.wide > 0) zoomTo((state.scale * to.wide) / from.wide, pane, to.x, to.y);
  } else if (drawing) {
    drawing.to = inPicture(toPicture(drawing.pane, place.x, place.y));
    setCursor(drawing.to);
  } else if (event.pointerType !== "touch" || !state.fitted) {
    drag(place.x - before.x, place.y - before.y);
  }
}

function drag(across, down) {
  state.fitted = false;
  state.centre.x -= across / state.scale;
  state.centre.y -= down / state.scale;
  moved();
}

// A finger scrolls the page over a fitted picture; two fingers never do.
function onTouch(event) {
  const ours = event.touches.length > 1 || drawsRegions || !state.fitted;
  if (ours && event.cancelable) event.preventDefault();
}

function onRelease(event) {
  const isDrawn = drawing && event.type === "pointerup" && drawing.from !== drawing.to;
  if (isDrawn) ignoreBox(drawnBox());
  drawing = null;
  pressed.delete(event.pointerId);
}

function pointAt({ x, y }) {
  const place = toPicture(paneAt(x, y), x, y);
  if (place.x >= 0 && place.y >= 0 && place.x < state.set.width && place.y < state.set.height) setCursor(place);
}

// The wheel scrolls the page, until the pictures are in focus; with Ctrl, as of two fingers on a pad, it always zooms.
function onWheel(event) {
  if (!event.ctrlKey && document.activeElement !== stage) return;
  event.preventDefault();
  const place = placeOf(event);
  zoomTo(state.scale * Math.exp(-event.deltaY / 400), paneAt(place.x, place.y), place.x, place.y);
}
