// Values of the samples, differences between them, and both as text.

async function pixelValues(picture, x, y) {
  const [row, column] = [y, x].map((place) => Math.floor(place / TILE));
  const place = (y % TILE) * tileSize(0, row, column).width + (x % TILE);
  return (await tileValues(picture, row, column)).map((channel) => channel[place]);
}

// The shortest text that gives the same number back.
function valueText(value) {
  if (state.set.dtype !== "float32" || !Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return String(text);
  }
  return String(Number(value.toPrecision(9)));
}

function differenceText(reference, other) {
  if (magnitude(reference, other) === 0) return "0";
  const difference = other - reference;
  const text = state.set.dtype.startsWith("float") ? String(Number(difference.toPrecision(6))) : String(difference);
  return (difference > 0 ? "+" : "") + text.replace("Infinity", "inf").replace("-", "−");
}

// As in scale.py: NaN against NaN and an infinity against itself are the same.
function magnitude(reference, other) {
  if (reference === other || (Number.isNaN(reference) && Number.isNaN(other))) return 0;
  const size = Math.abs(other - reference);
  return Number.isNaN(size) ? Infinity : size;
}

function classOf(size) {
  const { lower } = state.set;
  let index = 0;
  while (index + 1 < lower.length && size >= (lower[index + 1] ?? Infinity)) index++;
  return index;
}

let valuesAsked = 0;

async function showValues(aloud) {
  const asked = ++valuesAsked;
  const { x, y } = state.cursor;
  const { set } = state;
  const all = await Promise.all(set.pictures.map((_, index) => pixelValues(index, x, y)));
  if (asked !== valuesAsked) return; // the cursor has moved on
  const heading = (scope, text) => element("th", { scope }, text);
  const announced = [`x ${x}, y ${y}`];
  const lines = all.map((values, index) => {
    const texts = values.map(valueText);
    const differs = values.some((value, c) => magnitude(all[0][c], value) > 0);
    const differences = values.map((value, c) => differenceText(all[0][c], value)).join(" ");
    announced.push(`${pictureName(index)} ${texts.join(" ")}${differs ? `, difference ${differences}` : ""}`);
    const cells = texts.map((text) => element("td", {}, text));
    const last = element("td", { className: differs ? "differs" : "" }, index === 0 ? "" : differences);
    return element("tr", {}, heading("row", pictureName(index)), ...cells, last);
  });
  const table = byId("values");
  table.caption.textContent = announced[0];
  const columns = ["picture", ...set.channels, "difference"].map((name) => heading("col", name));
  table.tHead.replaceChildren(element("tr", {}, ...columns));
  table.tBodies[0].replaceChildren(...lines);
  table.dataset.pixel = `${x},${y}`;
  if (aloud) byId("announcer").textContent = announced.join(". ");
}
