// Gallery: the pairs of two folders. What it lists it opens in the viewer below, in place.

const STATUS = {
  unreadable: { sign: "!", word: "cannot be read" },
  layout: { sign: "⇔", word: "other size or type" },
  changed: { sign: "≠", word: "changed" },
  new: { sign: "+", word: "new" },
  missing: { sign: "−", word: "missing" },
  same: { sign: "=", word: "same" },
};
const THUMBNAILS = ["reference", "new", "difference"];
const pairs = data.pairs.map((pair, number) => ({ ...pair, number }));
let listed = []; // what the filters leave, in order

const inView = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (!isIntersecting) continue;
    inView.unobserve(target);
    target.src = `data:image/webp;base64,${byId(target.dataset.thumb).textContent}`;
  }
}, { rootMargin: "400px" });

function entryOf(pair) {
  const thumbnails = pair.thumbs.map((place) => {
    const image = element("img", { alt: THUMBNAILS[place], decoding: "async" });
    image.dataset.thumb = `thumb-${pair.number}-${place}`;
    inView.observe(image);
    return element("span", { className: "thumb" }, image, element("span", {}, THUMBNAILS[place]));
  });
  const { sign, word } = STATUS[pair.status];
  const button = element(
    "button",
    { type: "button", className: "pair", disabled: pair.sets.length === 0, id: `pair-${pair.number}` },
    element("span", { className: "status" }, element("span", { ariaHidden: "true", className: "sign" }, sign), ` ${word}`),
    element("span", { className: "name" }, pair.name),
    element("span", { className: "thumbs" }, ...thumbnails),
    element("span", { className: "detail" }, pair.detail),
  );
  button.dataset.status = pair.status;
  button.addEventListener("click", () => openPair(pair, true));
  return element("li", {}, button);
}

function listPairs() {
  const wanted = new Set([...document.querySelectorAll("#statuses input:checked")].map((box) => box.value));
  const words = byId("search").value.trim().toLowerCase();
  listed = pairs.filter((pair) => wanted.has(pair.status) && pair.name.toLowerCase().includes(words));
  if (byId("sort").value === "amount") listed.sort((one, other) => other.amount - one.amount || one.number - other.number);
  inView.disconnect();
  byId("pairs").replaceChildren(...listed.map(entryOf));
  byId("listed").value = `${listed.length.toLocaleString("en")} of ${pairs.length.toLocaleString("en")}`;
  markOpen();
}

const openNumber = () => pairs.findIndex((pair) => pair.sets.includes(state.setNumber));

function markOpen() {
  for (const button of document.querySelectorAll(".pair[aria-current]")) button.removeAttribute("aria-current");
  byId(`pair-${openNumber()}`)?.setAttribute("aria-current", "true");
}

function openPair(pair, goThere) {
  if (!pair.sets.includes(state.setNumber)) setSet(pair.sets[0]);
  markOpen();
  byId("open-pair").textContent = pair.sets.length > 1 ? `${pair.name}: ${state.set.pictures[0].name}` : pair.name;
  byId("reason").textContent = pair.detail;
  byId("reason").hidden = pair.status !== "layout";
  byId("announcer").textContent = `${pair.name}, ${STATUS[pair.status].word}. ${pair.detail}`;
  if (!goThere) return;
  byId("viewer").scrollIntoView({ block: "start" });
  stage.focus({ preventScroll: true });
}

// The next pair of the list that can be looked at; sets of one pair one after another.
function stepPair(step) {
  const order = listed.flatMap((pair) => pair.sets.map((set) => ({ pair, set })));
  if (!order.length) return false;
  const from = order.findIndex((each) => each.set === state.setNumber);
  const to = from < 0 && step < 0 ? order.length - 1 : (from + step + order.length) % order.length;
  if (order[to].set !== state.setNumber) setSet(order[to].set);
  openPair(order[to].pair, false);
  return true;
}

function backToGallery() {
  if (!pairs.length) return false;
  const open = byId(`pair-${openNumber()}`) ?? byId("search");
  open.scrollIntoView({ block: "center" });
  open.focus({ preventScroll: true });
  return true;
}

// What is opened first is what has changed most, and not what can only be looked at.
function firstSet() {
  const changed = pairs.filter((pair) => pair.status === "changed" && pair.sets.length);
  return changed.reduce((most, pair) => (pair.amount > most.amount ? pair : most), changed[0])?.sets[0] ?? 0;
}

function startGallery() {
  byId("gallery").hidden = byId("pair-steps").hidden = pairs.length === 0;
  if (!pairs.length) return;
  const counts = Object.entries(STATUS).map(([status, { sign, word }]) => {
    const count = pairs.filter((pair) => pair.status === status).length;
    const box = element("input", { type: "checkbox", value: status, checked: status !== "same" });
    box.addEventListener("change", listPairs);
    const label = element("label", { hidden: count === 0 }, box, ` ${sign} ${word} (${count.toLocaleString("en")})`);
    label.dataset.status = status;
    return label;
  });
  byId("statuses").replaceChildren(...counts);
  if (pairs.every((pair) => pair.status === "same")) byId("statuses").querySelector("[value=same]").checked = true;
  const open = pairs[openNumber()];
  if (open) openPair(open, false);
  on("search", "input", listPairs);
  on("sort", "change", listPairs);
  on("gallery-controls", "submit", (event) => event.preventDefault());
  on("previous-pair", "click", () => stepPair(-1));
  on("next-pair", "click", () => stepPair(1));
  on("back", "click", backToGallery);
  listPairs();
}
