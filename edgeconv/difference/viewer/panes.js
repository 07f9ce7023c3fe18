// Panes: what stands where on the stage. They share scale and centre, so they move together by construction.

const stage = byId("stage");
const canvas = byId("canvas");
const context = canvas.getContext("2d");
const inputs = () => state.set.pictures.map((_, index) => index).slice(1);
const pictureName = (index) => state.set.pictures[index].name;

function paneContents() {
  const { mode, input } = state;
  const view = (p) => ({ label: pictureName(p), layer: { kind: "view", picture: p } });
  if (mode === "side") return [view(0), view(input)];
  if (mode === "blink") return [view(state.showsInput ? input : 0)];
  return [{ label: `${pictureName(input)} − ${pictureName(0)}`, layer: { kind: "map", picture: input } }];
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
