// Panes: what stands where on the stage. They share scale and centre, so they move together by construction.

const stage = byId("stage");
const canvas = byId("canvas");
const context = canvas.getContext("2d");
const inputs = () => state.set.pictures.map((_, index) => index).slice(1);
const pictureName = (index) => state.set.pictures[index].name;

function paneContents() {
  const { mode, input } = state;
  const view = (p) => ({ labels: [pictureName(p)], layers: [layer("view", p)] });
  if (mode === "side") return [view(0), view(input)];
  if (isMap()) return [{ labels: [`${pictureName(input)} − ${pictureName(0)}`], layers: [layer(mode, input)] }];
  if (mode === "blink") return [view(state.showsInput ? input : 0)];
  return [{ labels: [pictureName(0), pictureName(input)], layers: [layer("view", 0), layer("view", input)] }];
}

// One pane, or two in the row or column that shows the pictures larger.
function panes() {
  const contents = paneContents();
  const { clientWidth: width, clientHeight: height } = stage;
  const count = contents.length;
  const fit = (across, down) => Math.min(width / across / state.set.width, height / down / state.set.height);
  const columns = fit(count, 1) >= fit(1, count) ? count : 1;
  const size = { width: width / columns, height: (height * columns) / count };
  return contents.map((content, index) => ({
    ...content,
    ...size,
    x: columns > 1 ? index * size.width : 0,
    y: columns > 1 ? 0 : index * size.height,
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

// The pixel there; beyond the picture the one at its edge.
const inPicture = ({ x, y }) => ({
  x: clamp(Math.floor(x), 0, state.set.width - 1),
  y: clamp(Math.floor(y), 0, state.set.height - 1),
});

const paneAt = (x, y) =>
  panes().find((p) => x >= p.x && x < p.x + p.width && y >= p.y && y < p.y + p.height) ?? panes()[0];

// The part of a pane that the picture covers, and where the swipe line divides it.
function covered(pane) {
  const from = toScreen(pane, 0, 0);
  const to = toScreen(pane, state.set.width, state.set.height);
  const [left, right] = [from.x, to.x].map((x) => clamp(x, pane.x, pane.x + pane.width));
  const [top, bottom] = [from.y, to.y].map((y) => clamp(y, pane.y, pane.y + pane.height));
  return { left, right, top, bottom, line: left + state.mix * (right - left) };
}

const isOnLine = ({ x, y }, reach) => {
  if (state.mode !== "swipe") return false;
  const { top, bottom, line } = covered(paneAt(x, y));
  return Math.abs(x - line) <= reach && y >= top - reach && y <= bottom + reach;
};
