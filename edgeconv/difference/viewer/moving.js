// Moving about: scale, centre, the pixel under the cursor and the table of its values.

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

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
function refit() {
  if (state.fitted) showAll();
  else moved();
}

function moved() {
  stage.classList.toggle("zoomed", !state.fitted);
  state.centre.x = clamp(state.centre.x, 0, state.set.width);
  state.centre.y = clamp(state.centre.y, 0, state.set.height);
  byId("zoom").value = `${Number((state.scale * 100).toPrecision(3))} %`;
  describeStage();
  requestDraw();
}

function setCursor(x, y, aloud) {
  state.cursor = {
    x: clamp(Math.floor(x), 0, state.set.width - 1),
    y: clamp(Math.floor(y), 0, state.set.height - 1),
  };
  requestDraw();
  showValues(aloud);
}

function keepCursorInView() {
  if (state.fitted) return;
  const [pane] = panes();
  const { x, y } = state.cursor;
  const reach = { x: pane.width / 2 / state.scale - 1, y: pane.height / 2 / state.scale - 1 };
  state.centre.x = clamp(state.centre.x, x + 0.5 - Math.max(0.5, reach.x), x + 0.5 + Math.max(0.5, reach.x));
  state.centre.y = clamp(state.centre.y, y + 0.5 - Math.max(0.5, reach.y), y + 0.5 + Math.max(0.5, reach.y));
  moved();
}

let valuesAsked = 0;

async function showValues(aloud) {
  const asked = ++valuesAsked;
  const { x, y } = state.cursor;
  const { set } = state;
  const all = await Promise.all(set.pictures.map((_, index) => pixelValues(index, x, y)));
  if (asked !== valuesAsked) return; // the cursor has moved on
  const [reference] = all;
  const table = byId("values");
  table.caption.textContent = `Pixel x ${x}, y ${y}`;
  const row = (tag, cells) => {
    const line = document.createElement("tr");
    cells.forEach((text, index) => {
      const cell = document.createElement(index === 0 || tag === "th" ? "th" : "td");
      if (cell.tagName === "TH") cell.scope = tag === "th" ? "col" : "row";
      cell.textContent = text;
      line.append(cell);
    });
    return line;
  };
  table.tHead.replaceChildren(row("th", ["picture", ...set.channels, "difference"]));
  const announced = [`x ${x}, y ${y}`];
  const lines = all.map((values, index) => {
    const texts = values.map(valueText);
    const differences = values.map((value, c) => differenceText(reference[c], value));
    const differs = values.some((value, c) => magnitude(reference[c], value) > 0);
    announced.push(`${pictureName(index)} ${texts.join(" ")}${differs ? `, difference ${differences.join(" ")}` : ""}`);
    const line = row("td", [pictureName(index), ...texts, index === 0 ? "" : differences.join(" ")]);
    if (differs) line.lastChild.className = "differs";
    return line;
  });
  table.tBodies[0].replaceChildren(...lines);
  table.dataset.pixel = `${x},${y}`;
  if (aloud) byId("announcer").textContent = announced.join(". ");
}
