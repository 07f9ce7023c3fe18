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
const pairs = data.pairs.map((pair, number) => ({ ...pair, number })); // what differs most stands first
let listed = []; // what the filters leave

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
    { type: "button", className: "pair", disabled: pair.set === null, id: `pair-${pair.number}` },
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
  listed = pairs.filter((pair) => wanted.has(pair.status));
  inView.disconnect();
  byId("pairs").replaceChildren(...listed.map(entryOf));
  byId("listed").value = `${listed.length.toLocaleString("en")} of ${pairs.length.toLocaleString("en")}`;
  markOpen();
}

const openNumber = () => pairs.findIndex((pair) => pair.set === state.setNumber);

function markOpen() {
  for (const button of document.querySelectorAll(".pair[aria-current]")) button.removeAttribute("aria-current");
  byId(`pair-${openNumber()}`)?.setAttribute("aria-current", "true");
}

function openPair(pair, goThere) {
  if (pair.set !== state.setNumber) setSet(pair.set);
  markOpen();
  byId("announcer").textContent = `${pair.name}, ${STATUS[pair.status].word}. ${pair.detail}`;
  if (!goThere) return;
  byId("viewer").scrollIntoView({ block: "start" });
  stage.focus({ preventScroll: true });
}

// The next pair of the list whose pictures are in the page.
function stepPair(step) {
  const order = listed.filter((pair) => pair.set !== null);
  if (!order.length) return false;
  const from = order.findIndex((pair) => pair.set === state.setNumber);
  const to = from < 0 && step < 0 ? order.length - 1 : (from + step + order.length) % order.length;
  openPair(order[to], false);
  return true;
}

function backToGallery() {
  if (!pairs.length) return false;
  const open = byId(`pair-${openNumber()}`) ?? byId("statuses").querySelector("input");
  open.scrollIntoView({ block: "center" });
  open.focus({ preventScroll: true });
  return true;
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
  on("gallery-controls", "submit", (event) => event.preventDefault());
  on("previous-pair", "click", () => stepPair(-1));
  on("next-pair", "click", () => stepPair(1));
  on("back", "click", backToGallery);
  listPairs();
}
