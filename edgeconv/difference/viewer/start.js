// Start: build the controls and connect the events.

function start() {
  byId("modes").replaceChildren(
    ...MODES.map((mode) => {
      const label = document.createElement("label");
      const button = Object.assign(document.createElement("input"), {
        type: "radio",
        name: "mode",
        id: `mode-${mode.name}`,
      });
      button.addEventListener("change", () => setMode(mode.name));
      label.append(button, ` ${mode.label}`);
      return label;
    }),
  );
  const on = (id, event, action) => byId(id).addEventListener(event, action);
  on("controls", "submit", (event) => event.preventDefault());
  on("input", "change", (event) => setInput(Number(event.target.value)));
  on("only", "change", (event) => {
    state.only = event.target.checked;
    refit();
  });
  on("mix", "input", (event) => setMix(event.target.value / 100));
  on("rate", "input", () => setBlinking(state.blinking));
  on("blinking", "click", () => setBlinking(!state.blinking));
  on("zoom-in", "click", () => zoomTo(state.scale * 2));
  on("zoom-out", "click", () => zoomTo(state.scale / 2));
  on("fit", "click", showAll);
  on("actual", "click", () => zoomTo(1));
  on("previous-region", "click", () => goToRegion(-1));
  on("next-region", "click", () => goToRegion(1));
  document.addEventListener("keydown", onKey);
  stage.addEventListener("pointerdown", onPress);
  stage.addEventListener("pointermove", onMove);
  stage.addEventListener("pointerup", onRelease);
  stage.addEventListener("pointercancel", onRelease);
  stage.addEventListener("wheel", onWheel, { passive: false });
  for (const kind of ["touchstart", "touchmove"]) stage.addEventListener(kind, onTouch, { passive: false });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", requestDraw);
  new ResizeObserver(refit).observe(stage);
  byId("altered").hidden = readsExactly();
  startIgnoring();
  setSet(firstSet());
  startGallery();
}

if (data.sets.length) start();
else {
  byId("viewer").hidden = true;
  startGallery();
}
