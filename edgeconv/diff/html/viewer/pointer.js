// Mouse and touch: drag, pinch, wheel and the swipe line.

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
