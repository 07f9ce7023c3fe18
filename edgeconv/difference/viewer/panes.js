// Panes: what stands where on the stage. They share scale and centre, so they move together by construction.

const stage = byId("stage");
const canvas = byId("canvas");
const context = canvas.getContext("2d");
const inputs = () => state.set.pictures.map((_, index) => index).slice(1);
const pictureName = (index) => state.set.pictures[index].name;

function paneContents() {
  const { mode, input } = state;
  const alone = state.set.pictures.length === 1;
  if (alone) return [{ labels: [pictureName(0)], layers: [layer("view", 0)] }];
  const shownInputs = state.only ? [input] : inputs();
  if (mode === "side") return [0, ...shownInputs].map((p) => ({ labels: [pictureName(p)], layers: [layer("view", p)] }));
  if (MAPS.includes(mode)) {
    return shownInputs.map((p) => ({ labels: [`${pictureName(p)} − ${pictureName(0)}`], layers: [layer(mode, p)] }));
  }
  if (mode === "blink") {
    const shown = state.showsInput ? input : 0;
    return [{ labels: [pictureName(shown)], layers: [layer("view", shown)] }];
  }
  return [{ labels: [pictureName(0), pictureName(input)], layers: [layer("view", 0), layer("view", input)] }];
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

// The part of a pane that the picture covers.
function covered(pane) {
  const from = toScreen(pane, 0, 0);
  const to = toScreen(pane, state.set.width, state.set.height);
  return {
    left: clamp(from.x, pane.x, pane.x + pane.width),
    right: clamp(to.x, pane.x, pane.x + pane.width),
    top: clamp(from.y, pane.y, pane.y + pane.height),
    bottom: clamp(to.y, pane.y, pane.y + pane.height),
  };
}

function swipeLine(pane) {
  const { left, right } = covered(pane);
  return left + state.mix * (right - left);
}

const isOnLine = (place, reach) => {
  if (state.mode !== "swipe" || state.set.pictures.length < 2) return false;
  const pane = paneAt(place.x, place.y);
  const { top, bottom } = covered(pane);
  return Math.abs(place.x - swipeLine(pane)) <= reach && place.y >= top - reach && place.y <= bottom + reach;
};
