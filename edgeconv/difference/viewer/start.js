// Start: build the controls and connect the events.

function start() {
  const modes = MODES.map((mode) => {
    const button = element("input", { type: "radio", name: "mode", id: `mode-${mode.name}` });
    button.addEventListener("change", () => setMode(mode.name));
    return element("label", {}, button, ` ${mode.label}`);
  });
  byId("modes").replaceChildren(...modes);
  const clicks = {
    change: changePicture,
    "zoom-in": () => zoomTo(state.scale * 2),
    "zoom-out": () => zoomTo(state.scale / 2),
    fit: showAll,
    actual: () => zoomTo(1),
    "previous-region": () => goToRegion(-1),
    "next-region": () => goToRegion(1),
    "draw-region": () => setDrawing(!drawsRegions),
    "ignore-difference": ignoreDifference,
    "remove-region": removeRegion,
    "save-regions": saveRegions,
  };
  for (const [id, action] of Object.entries(clicks)) on(id, "click", action);
  for (const form of ["controls", "ignoring"]) on(form, "submit", (event) => event.preventDefault());
  on("input", "change", (event) => setInput(Number(event.target.value)));
  document.addEventListener("keydown", onKey);
  on("stage", "pointerdown", onPress);
  on("stage", "pointermove", onMove);
  on("stage", "pointerup", onRelease);
  on("stage", "pointercancel", onRelease);
  on("stage", "wheel", onWheel, { passive: false });
  for (const kind of ["touchstart", "touchmove"]) on("stage", kind, onTouch, { passive: false });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", requestDraw);
  new ResizeObserver(refit).observe(stage);
  startGallery();
  setSet(0);
}

if (data.sets.length) start();
