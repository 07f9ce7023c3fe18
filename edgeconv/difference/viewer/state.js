// What the page holds and what is shown of it: one state, which every other part reads and changes.

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const TILE = data.tile;
const LARGEST_SCALE = 64; // screen pixels a picture pixel
const RING_PIXELS = 9; // radius of the ring that is drawn around regions as small as this on the screen
const CACHED_TILES = 600; // tiles of each kind that are held; about 150 MiB of bitmaps

const MODES = [
  { name: "map", key: "v", label: "map" },
  { name: "side", key: "d", label: "side by side" },
  { name: "blink", key: "b", label: "blink" }, // from one to the other at each press of a button
];

const isMap = () => state.mode === "map";

const state = {
  set: data.sets[0],
  setNumber: 0,
  mode: "map",
  input: 1, // the one that is compared with the reference
  fitted: true, // shows the whole picture, also once the stage has another size
  scale: 1,
  centre: { x: 0, y: 0 },
  cursor: { x: 0, y: 0 },
  showsInput: false,
  region: -1,
};

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

const on = (id, event, action, options) => byId(id).addEventListener(event, action, options);
