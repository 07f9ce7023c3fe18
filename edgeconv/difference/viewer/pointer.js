// Mouse and touch: drag, pinch, wheel and the swipe line.

const pressed = new Map(); // pointers that are down, by id
let holdsLine = false;
let drawnFrom = null; // where the press began that draws an ignored region, and whether it marks the second corner

const placeOf = (event) => {
  const box = stage.getBoundingClientRect();
  return { x: event.clientX - box.left - stage.clientLeft, y: event.clientY - box.top - stage.clientTop };
};

// How far two fingers are apart, and what is between them.
const pinch = () => {
  const [one, other] = [...pressed.values()];
  return { wide: Math.hypot(one.x - other.x, one.y - other.y), x: (one.x + other.x) / 2, y: (one.y + other.y) / 2 };
};

const reachOf = (event) => (event.pointerType === "touch" ? FINGER_PIXELS : GRAB_PIXELS);

function onPress(event) {
  const place = placeOf(event);
  pressed.set(event.pointerId, place);
  stage.setPointerCapture(event.pointerId);
  holdsLine = pressed.size === 1 && !drawsRegions && isOnLine(place, reachOf(event));
  if (drawsRegions && pressed.size === 1) startRegion(place);
  else if (!holdsLine) pointAt(place);
}

function onMove(event) {
  const place = placeOf(event);
  const before = pressed.get(event.pointerId);
  if (!before) {
    stage.classList.toggle("on-line", isOnLine(place, reachOf(event)));
    pointAt(place);
    return;
  }
  const from = pressed.size === 2 ? pinch() : null;
  pressed.set(event.pointerId, place);
  const pane = paneAt(place.x, place.y);
  if (drawnFrom && !from) {
    reachTo(place);
  } else if (from) {
    if (drawnFrom) stopRegion();
    const to = pinch();
    drag(to.x - from.x, to.y - from.y);
    if (from.wide > 0) zoomTo((state.scale * to.wide) / from.wide, pane, to.x, to.y);
  } else if (holdsLine) {
    const { left, right } = covered(pane);
    if (right > left) setMix((place.x - left) / (right - left));
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

// A finger scrolls the page over a fitted picture, unless it moves the swipe line; two fingers never do.
function onTouch(event) {
  const ours = event.touches.length > 1 || holdsLine || drawsRegions || !state.fitted;
  if (ours && event.cancelable) event.preventDefault();
}

function onRelease(event) {
  if (drawnFrom && pressed.size === 1) endRegion(placeOf(event), event.type === "pointercancel");
  pressed.delete(event.pointerId);
  holdsLine = false;
}

function startRegion(place) {
  const pane = paneAt(place.x, place.y);
  drawnFrom = { ...place, pane, isSecond: corner !== null };
  reachTo(place);
  if (!drawnFrom.isSecond) corner = { ...state.cursor };
}

// The cursor is the other corner; beyond the picture it is at its edge.
function reachTo(place) {
  const { x, y } = toPicture(drawnFrom.pane, place.x, place.y);
  setCursor(x, y, false);
}

// A second finger moves the picture: what the first one has begun to draw is left.
function stopRegion() {
  if (!drawnFrom.isSecond) corner = null;
  drawnFrom = null;
  requestDraw();
}

function endRegion(place, isCancelled) {
  const { isSecond, ...from } = drawnFrom;
  const isStill = Math.hypot(place.x - from.x, place.y - from.y) < STILL_PIXELS;
  if (isCancelled) {
    stopRegion();
    return;
  }
  drawnFrom = null;
  if (isSecond || !isStill) markCorner();
}

function pointAt(place) {
  const { x, y } = toPicture(paneAt(place.x, place.y), place.x, place.y);
  if (x >= 0 && y >= 0 && x < state.set.width && y < state.set.height) setCursor(x, y, false);
}

// The wheel scrolls the page, until the pictures are in focus; with Ctrl, as of two fingers on a pad, it always zooms.
function onWheel(event) {
  if (!event.ctrlKey && document.activeElement !== stage) return;
  event.preventDefault();
  const place = placeOf(event);
  zoomTo(state.scale * Math.exp(-event.deltaY / 400), paneAt(place.x, place.y), place.x, place.y);
}
