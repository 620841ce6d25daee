// The part of a frame around an object, in shares of its sides: a third of the frame at least.
function partOf(about, frame, { method, object }) {
  const [height, width] = about.size, box = [width, height, 0, 0];
  for (const side of [about.truth, about.predicted.get(method)]) {
    const found = labels(side, frame, height * width), own = has(side, object);
    found.forEach((label, here) => {
      if (!own[label]) return;
      const x = here % width, y = Math.floor(here / width);
      box[0] = Math.min(box[0], x); box[1] = Math.min(box[1], y); box[2] = Math.max(box[2], x); box[3] = Math.max(box[3], y);
    });
  }
  if (box[2] < box[0]) return [0, 0, 1, 1];
  const share = Math.min(1, Math.max(1 / 3, 1.2 * (box[2] - box[0]) / width, 1.2 * (box[3] - box[1]) / height));
  const start = (first, last, whole) => Math.max(0, Math.min(1 - share, (first + last) / 2 / whole - share / 2));
  return [start(box[0], box[2], width), start(box[1], box[3], height), share, share];
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
  const near = last ? partOf(about, worst, face) : [0, 0, 1, 1], made = document.createElement("span");
  made.className = "film";
  for (const [frame, look] of cells) {
    const canvas = document.createElement("canvas"), [height, width] = about.size;
    canvas.width = 240; canvas.height = Math.max(1, Math.round(240 * height / width));
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${last ? "" : `${look.layer}: `}${numbers(about, frame, look.method, look.object)}`);
    await picture(stream, frame).ready;
    paint(canvas.getContext("2d"), about, frame, look, near);
    made.append(canvas);
  }
  return made;
}
