// Tables: a click on a heading sorts by it, and what is typed above a long table leaves the rows that contain it.

const UNITS = { "µs": 1e-6, ms: 1e-3, s: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };
const LONG = 12; // rows from which on a table has a field to filter by

// A figure with its unit as a number, or null for a text.
function figureOf(text) {
  const found = /^([+−-]?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(µs|ms|s|KiB|MiB|GiB|%|×)?(?:\s|$)/.exec(text);
  return found && Number(found[1].replaceAll(",", "").replace("−", "-")) * (UNITS[found[2]] ?? 1);
}

function compare(one, other) {
  const [a, b] = [figureOf(one), figureOf(other)];
  if (a !== null && b !== null) return a - b;
  if (a === null && b === null) return one.localeCompare(other, "en", { numeric: true });
  return a === null ? 1 : -1; // what has no figure stands last
}

function sortBy(table, column, heading) {
  const down = heading.ariaSort === "ascending";
  for (const cell of table.tHead.rows[0].cells) cell.ariaSort = null;
  heading.ariaSort = down ? "descending" : "ascending";
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => compare(one.cells[column].textContent, other.cells[column].textContent) * (down ? -1 : 1));
  table.tBodies[0].append(...rows);
}

for (const table of document.querySelectorAll(".tabled table")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
  if (table.tBodies[0].rows.length < LONG) continue;
  const field = Object.assign(document.createElement("input"), { type: "search", placeholder: "only rows with …" });
  const region = table.closest("[role=region]");
  field.ariaLabel = `Only rows of ${region.ariaLabel} with`;
  field.addEventListener("input", () => {
    const words = field.value.trim().toLowerCase();
    for (const row of table.tBodies[0].rows) row.hidden = !row.textContent.toLowerCase().includes(words);
  });
  region.parentElement.prepend(field);
}
