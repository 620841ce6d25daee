// The box of an object on one side of a frame: left, top, right, bottom; nothing where it is absent.
function boxOf(side, frame, object, width) {
  const own = has(side, object), box = [Infinity, Infinity, -1, -1];
  for (let k = side.starts[frame], start = 0; k < side.starts[frame + 1]; start += side.lengths[k++]) {
    if (!own[side.labels[k]]) continue;
    const end = start + side.lengths[k] - 1, top = Math.floor(start / width), bottom = Math.floor(end / width), isOneRow = top === bottom;
    box[0] = Math.min(box[0], isOneRow ? start % width : 0); box[1] = Math.min(box[1], top);
    box[2] = Math.max(box[2], isOneRow ? end % width : width - 1); box[3] = Math.max(box[3], bottom);
  }
  return box[2] < 0 ? undefined : box;
}

// For some frames the part around an object, in shares of their sides. The parts follow the object, the true one where it
// is, and stay where it was last; all are of one size that holds both sides: a third of a frame at least.
function partsOf(about, frames, { method, object }) {
  const [height, width] = about.size, wholes = [width, height], sides = [about.truth, about.predicted.get(method)];
  const boxes = frames.map((frame) => sides.map((side) => boxOf(side, frame, object, width)).filter(Boolean));
  const middles = boxes.map(([box]) => box && wholes.map((_, axis) => (box[axis] + box[axis + 2]) / 2));
  if (!middles.some(Boolean)) return frames.map(() => [0, 0, 1, 1]);
  let share = 1 / 3, last = middles.find(Boolean);
  boxes.forEach((both, k) => both.forEach((box) => box.forEach((edge, place) => {
    share = Math.max(share, 2.4 * Math.abs(edge - middles[k][place % 2]) / wholes[place % 2]);
  })));
  share = Math.min(1, share);
  return middles.map((middle) => {
    last = middle ?? last;
    return [...last.map((place, axis) => Math.max(0, Math.min(1 - share, place / wholes[axis] - share / 2))), share, share];
  });
}

// The moments that are chosen, in a list; each with a filmstrip of a frame before, the worst one, and a frame after.
const chooser = section.element.querySelector(".chooser-of-moments"), list = section.element.querySelector("ol.moments"), picked = new Map();
const places = new Map([...section.element.querySelectorAll("[data-moment]")].map((link) => [Number(link.dataset.moment), link.closest("li")]));
const FILMS = 12;

// What is searched: phrases between commas, each found whole in a moment, or word by word where none has it whole.
const isPicked = (moment) => [...picked].every(([group, word]) => moment.words.some(([own, text]) => own === group && text === word));
const search = () => (chooser?.querySelector("input")?.value ?? "").toLowerCase().split(",").map((phrase) => phrase.trim().replace(/\s+/g, " ")).filter(Boolean);
const textOf = ({ sequence, subject, label, kind, text, words, faults = "" }) => [sequence, subject, label, kind, text, faults, ...words.map((word) => word[1])].join(" ; ").toLowerCase().replace(/\s+/g, " ");
// A number is found as a whole, and a word by its beginning.
const finds = (phrase) => { const found = new RegExp(`(?<![\\p{L}\\d])${phrase.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")}${/\d$/.test(phrase) ? "(?!\\d)" : ""}`, "u"); return (moment) => found.test(textOf(moment)); };
const chosenMoments = () => searched(search(), moments.filter(isPicked));
function searched(phrases, among) {
  return phrases.reduce((left, phrase) => {
    const whole = finds(phrase), parts = phrase.split(" ").map(finds);
    return left.filter(moments.some(whole) ? whole : (moment) => parts.every((finds) => finds(moment)));
  }, among);
}

function placeOf(moment) {
  if (!places.has(moment.number)) {
    const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("span"), swatch = document.createElement("span");
    link.href = `#${section.element.id}`;
    link.dataset.moment = moment.number;
    swatch.className = `swatch ${moment.style}`;
    text.append(Object.assign(document.createElement("b"), { textContent: moment.sequence }), `${moment.subject}: `, swatch, ` ${moment.text}`);
    link.append(text);
    item.append(link);
    places.set(moment.number, item);
  }
  return places.get(moment.number);
}

let painting = 0;
async function choose() {
  if (!list) return;
  const turn = ++painting, chosen = chosenMoments(), active = picked.size || search().length, shown = active ? chosen.slice(0, 5 * FILMS) : chosen.filter((moment) => moment.film);
  list.replaceChildren(...shown.map(placeOf));
  const count = section.element.querySelector("[data-part=chosen]");
  if (count) count.textContent = active ? `${chosen.length} of ${moments.length} moments; press n for the next` : "";
  for (const moment of shown.slice(0, FILMS)) {
    if (turn !== painting) return;
    if (!placeOf(moment).querySelector(".film")) placeOf(moment).firstChild.prepend(await film(moment));
  }
  document.documentElement.dataset.films = "ready";
}

function walk(step) {
  const chosen = chosenMoments(), place = chosen.findIndex((moment) => moment.number === at.moment);
  if (chosen.length) show(chosen[(place < 0 && step < 0 ? chosen.length - 1 : place + step + chosen.length) % chosen.length]);
}

for (const button of chooser?.querySelectorAll("[data-word]") ?? []) button.onclick = () => {
  const { group, word } = button.dataset;
  if (picked.get(group) === word) picked.delete(group); else picked.set(group, word);
  for (const one of chooser.querySelectorAll("[data-word]")) one.setAttribute("aria-pressed", picked.get(one.dataset.group) === one.dataset.word);
  choose();
  page.say(`${chosenMoments().length} moments`);
};
if (chooser?.querySelector("input")) chooser.querySelector("input").oninput = choose;

// Let cells of a confusion and categories choose the moments that have their words; of several splits each has its own.
function offerChoices() {
  const split = section.element.id.replace(/^[^-]+/, ""), field = chooser?.querySelector("input");
  for (const cell of field ? document.querySelectorAll("[data-choose], [id^=table-categories] tbody th") : []) {
    const words = (cell.dataset.choose ?? cell.textContent).trim();
    if (!cell.closest("section").id.endsWith(split) || cell.querySelector("a, button") || !searched([words.toLowerCase()], moments).length) continue;
    const button = Object.assign(document.createElement("button"), { className: "chooser", title: `moments with ${words}` });
    button.append(...cell.childNodes);
    button.onclick = () => {
      field.value = words;
      choose();
      chooser.scrollIntoView();
      field.focus({ preventScroll: true });
      page.say(`${chosenMoments().length} moments`);
    };
    cell.append(button);
  }
}

async function film(moment) {
  if (form === "slices") return slices.film(moment, Object.assign(document.createElement("span"), { className: "film" }));
  const shown = methods.slice(0, 2).map((_, number) => number), method = shown.length - 1, { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream, shown);
  const object = about.objects.findIndex((one) => one.name === moment.label), face = { method, layer: "difference", object };
  const worst = about.frames.indexOf(moment.worst), last = about.frames.length - 1, { around } = section.data;
  const frames = [...new Set([worst - around, worst, worst + around].map((frame) => Math.max(0, Math.min(last, frame))))].filter((frame) => about.isDrawn?.has(frame) !== false);
  // Of a single picture the truth, what was predicted, and what differs; or what differs of both methods.
  const single = method ? [{ layer: "truth" }, { method: 0 }, {}] : [{ layer: "truth" }, { layer: "prediction" }, {}];
  const cells = last ? frames.map((frame) => [frame, face]) : single.map((other) => [0, { ...face, ...other }]);
  const parts = last ? partsOf(about, frames, face) : cells.map(() => [0, 0, 1, 1]), made = document.createElement("span");
  made.className = "film";
  for (const [place, [frame, look]] of cells.entries()) {
    const canvas = document.createElement("canvas"), [height, width] = about.size;
    canvas.width = 240; canvas.height = Math.max(1, Math.round(240 * height / width));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${last ? "" : `${look.layer}: `}${numbers(about, frame, look.method, look.object)}`);
    await picture(stream, frame).ready;
    paint(canvas.getContext("2d"), about, frame, look, parts[place]);
    made.append(canvas);
  }
  return made;
}
