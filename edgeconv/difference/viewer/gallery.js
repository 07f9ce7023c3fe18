// Gallery: the pairs of two folders, as the page lists them. What has changed opens in the viewer below.

const pairs = [...document.querySelectorAll(".pair:enabled")]; // what differs most stands first
const openedPair = () => pairs.find((pair) => Number(pair.dataset.set) === state.setNumber);

function openPair(pair) {
  setSet(Number(pair.dataset.set));
  byId("announcer").textContent = pair.innerText;
}

function markOpened() {
  for (const pair of pairs) pair.removeAttribute("aria-current");
  openedPair()?.setAttribute("aria-current", "true");
}

function stepPair(step) {
  if (!pairs.length) return false;
  openPair(pairs[(pairs.indexOf(openedPair()) + step + pairs.length) % pairs.length]);
  return true;
}

function backToGallery() {
  if (!pairs.length) return false;
  openedPair().scrollIntoView({ block: "center" });
  openedPair().focus({ preventScroll: true });
  return true;
}

function startGallery() {
  for (const pair of pairs) {
    pair.addEventListener("click", () => {
      openPair(pair);
      byId("viewer").scrollIntoView({ block: "start" });
      stage.focus({ preventScroll: true });
    });
  }
  on("previous-pair", "click", () => stepPair(-1));
  on("next-pair", "click", () => stepPair(1));
  on("back", "click", backToGallery);
}
