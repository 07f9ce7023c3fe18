// Panes: what stands where on the stage. They share scale and centre, so they move together by construction.

const stage = byId("stage");
const canvas = byId("canvas");
const context = canvas.getContext("2d");
const inputs = () => state.set.pictures.map((_, index) => index).slice(1);
const pictureName = (index) => state.set.pictures[index].name;

function paneContents() {
  const { mode, input } = state;
  const pair = `${pictureName(0)} | ${pictureName(input)}`;
  const shownInputs = state.only ? [input] : inputs();
  if (mode === "side") return [0, ...shownInputs].map((p) => ({ label: pictureName(p), layers: [layer("view", p)] }));
  if (mode === "heat" || mode === "signed") {
    return shownInputs.map((p) => ({ label: `${pictureName(p)} − ${pictureName(0)}`, layers: [layer(mode, p)] }));
  }
  if (mode === "blink") {
    const shown = state.showsInput ? input : 0;
    return [{ label: pictureName(shown), layers: [layer("view", shown)] }];
  }
  return [{ label: pair, layers: [layer("view", 0), layer("view", input)] }];
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

const swipeLine = (pane) => pane.x + state.mix * pane.width;
