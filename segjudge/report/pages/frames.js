// Steps through the frames of sequences; masks, strips and filmstrips are in the files beside.
const player = section.element.querySelector(".player"), part = (name) => player.querySelector(`[data-part="${name}"]`);
const at = { stream: "", object: -1, frame: 0, layer: "difference", zoom: 1, x: .5, y: .5, loaded: null, blink: false, swipe: null, methods: methods.slice(0, 2).map((_, number) => number), plane: 0, place: [] };
if (!methods.length) at.layer = "truth";  // only the truth

// The two faces that blink and swipe compare: two methods, or two layers of one.
function pair() {
  const face = { layer: at.layer, object: at.object, moved: areMoved() };
  if (at.methods.length > 1) return at.methods.map((method) => ({ ...face, method }));
  const layers = at.layer === "truth" ? ["truth", "prediction"] : ["truth", at.layer];
  return layers.map((layer) => ({ ...face, layer, method: at.methods[0] }));
}

// What a view shows now: a face, or two with a bar between them.
function faces(place) {
  const both = pair(), own = at.methods.length > 1 ? place : Number(at.layer !== "truth");
  return at.swipe !== null ? both : [both[at.blink ? 1 - own : own]];
}

const nameOfFace = (face) => methods.length > 1 ? methods[face.method] : `the ${face.layer}`;
const reload = async () => { at.loaded = await sequence(at.stream, at.methods); fitThresholds(at.loaded); chosen(); swipe(at.swipe); };

// A canvas for each method that is shown, with a choice of method where there are several; of volumes for each plane.
const shown = methods.length ? at.methods : [undefined], planes = form === "slices" ? section.data.planes.length : 1;
const views = Array.from({ length: shown.length * planes }, (_, number) => {
  const figure = document.createElement("figure"), canvas = document.createElement("canvas"), place = Math.floor(number / planes), plane = number % planes;
  canvas.setAttribute("role", "img");
  if (methods.length > 1 && !plane) {
    const choice = document.createElement("select");
    choice.append(...methods.map((name, number) => new Option(name, String(number), false, number === at.methods[place])));
    choice.setAttribute("aria-label", `Method ${planes > 1 ? place ? "below" : "above" : place ? "on the right" : "on the left"}`);
    choice.onchange = () => { at.methods[place] = Number(choice.value); reload(); };
    (planes > 1 ? player.querySelector(".views") : figure).append(choice);
  }
  figure.append(canvas);
  if (form === "slices") slices.equip(figure, canvas, plane);
  player.querySelector(".views").append(figure);
  let drag = null;
  const bar = (event) => { const box = canvas.getBoundingClientRect(); swipe((event.clientX - box.left) / box.width); };
  canvas.onpointerdown = (event) => {
    if (at.swipe === null && at.zoom === 1 && form !== "slices") return;
    drag = [event.clientX, event.clientY];
    canvas.setPointerCapture(event.pointerId);
    if (at.swipe !== null) bar(event); else if (form === "slices") slices.point(event, canvas, plane);
  };
  canvas.onpointerup = () => { drag = null; };
  canvas.onpointermove = (event) => {
    if (!drag) return;
    if (at.swipe !== null) return bar(event);
    if (form === "slices") return slices.point(event, canvas, plane);
    const box = canvas.getBoundingClientRect();
    at.x -= (event.clientX - drag[0]) / box.width / at.zoom;
    at.y -= (event.clientY - drag[1]) / box.height / at.zoom;
    drag = [event.clientX, event.clientY];
    draw();
  };
  return canvas;
});

// Draw a view: a face on each side of the bar.
function drawView(canvas, found, about = at.loaded, frame = at.frame, [x, y] = [at.x, at.y]) {
  const [height, width] = about.size, half = .5 / at.zoom, pen = canvas.getContext("2d"), fine = form === "slices" ? Math.max(1, Math.round(600 / Math.max(width, height))) : width > 700 ? 1 : 2;
  canvas.width = fine * width; canvas.height = fine * height;
  const bar = found.length > 1 ? Math.round(at.swipe * canvas.width) : canvas.width;
  found.forEach((face, side) => {
    pen.save();
    pen.beginPath();
    pen.rect(side ? bar : 0, 0, side ? canvas.width : bar, canvas.height);
    pen.clip();
    paint(pen, about, frame, face, [x - half, y - half, 2 * half, 2 * half]);
    pen.restore();
  });
  if (found.length > 1) {
    for (const [colour, thick] of [["#000", 6], ["#fff", 2]]) { pen.fillStyle = colour; pen.fillRect(bar - thick / 2, 0, thick, canvas.height); }
  }
  canvas.setAttribute("aria-label", `${found.map(nameOfFace).join(", then ")}: ${found.map((face) => numbers(about, frame, face.method, at.object)).slice(-1)}`);
}

function draw() {
  const about = at.loaded, half = .5 / at.zoom;
  at.x = Math.min(1 - half, Math.max(half, at.x)); at.y = Math.min(1 - half, Math.max(half, at.y));
  const { image, ready } = picture(about.name, at.frame), decoded = form === "slices" ? slices.decode(about, at.place) : image ? null : ready;
  decoded?.then(() => { if (at.loaded === about) draw(); });
  views.forEach((canvas, number) => {
    const place = Math.floor(number / planes);
    canvas.parentElement.hidden = place > 0 && at.swipe !== null;
    if (canvas.parentElement.hidden) return;
    if (form === "slices") slices.draw(canvas, number % planes, faces(place)); else drawView(canvas, faces(place));
  });
  showThresholds(about);
  part("frame").max = about.frames.length - 1;
  part("frame").value = at.frame;
  const lines = shown.map((method) => numbers(about, at.frame, method, at.object));
  part("frame").setAttribute("aria-valuetext", lines.join(" "));
  part("numbers").replaceChildren(...lines.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
  for (const button of player.querySelectorAll("[data-layer]")) button.setAttribute("aria-pressed", button.dataset.layer === at.layer);
  for (const mark of player.querySelectorAll(".strip i")) mark.style.left = `${100 * (at.frame + .5) / about.frames.length}%`;
}

function strips(about) {
  const list = player.querySelector(".strips"), count = about.frames.length;
  if (form === "segments") return timeline(about, list, count);
  if (form === "slices") return slices.rows(about, list);
  list.replaceChildren(...about.objects.flatMap((object, number) => at.methods.map((method, place) => {
    const row = document.createElement("div"), name = document.createElement(place ? "span" : "button");
    row.className = "row";
    if (!place) {
      name.className = "plain";
      name.title = `show only object ${object.name}`;
      name.setAttribute("aria-pressed", at.object === number);
      name.onclick = () => { at.object = at.object === number ? -1 : number; chosen(); };
    }
    name.textContent = methods.length > 1 ? `${place ? "" : `${object.name} `}${methods[method]}` : object.name;
    row.append(name, strip(about.predicted.get(method).objects[number], count, go));
    return row;
  })));
  if (methods.length) list.append(patterns(count, list.querySelector(".strip")?.clientWidth || 600));
}

// Rows of the segments that are wrong most often, where there are several frames: of each object one for each method.
function timeline(about, list, count) {
  const sides = methods.length ? [...new Set(at.methods)].map((method) => [methods[method], about.predicted.get(method)]) : [];
  part("timed").hidden = count < 2;
  part("frame").parentElement.hidden = count < 2;
  if (count < 2 || !sides.length) return list.replaceChildren();
  const order = [...new Set(sides.flatMap(([, side]) => side.rows.map((entry) => entry.object)))].sort((a, b) => (a < 0) - (b < 0));
  list.replaceChildren(...order.flatMap((object) => sides.flatMap(([method, side]) => side.rows.filter((entry) => entry.object === object).map((entry) => {
    const row = document.createElement("div"), name = document.createElement(object < 0 ? "span" : "button"), made = segments.strip(about, side, entry, count);
    row.className = "row";
    name.textContent = sides.length > 1 ? `${entry.name} ${method}` : entry.name;
    name.title = name.textContent;
    if (object >= 0) {
      name.className = "plain";
      name.title += ": show only this";
      name.setAttribute("aria-pressed", at.object === object);
      name.onclick = () => { at.object = at.object === object ? -1 : object; chosen(); };
    }
    made.onclick = (event) => {
      const box = made.getBoundingClientRect();
      go(Math.floor((event.clientX - box.left) / box.width * count));
    };
    row.append(name, made);
    return row;
  }))), segments.patterns(count, list.clientWidth - 100 || 600));
  const [, side] = sides.at(-1);
  if (side.all_rows > side.rows.length) list.append(Object.assign(document.createElement("p"), { className: "hint", textContent: `The ${side.rows.length} of ${side.all_rows} that are wrong most often.` }));
}

// Go to a frame; where not all have their masks in the page, to the nearest in this direction that has.
function go(frame) {
  const last = at.loaded.frames.length - 1, step = frame < at.frame ? -1 : 1, { isDrawn } = at.loaded;
  frame = Math.max(0, Math.min(last, frame));
  const start = frame;
  if (isDrawn?.size) {
    while (!isDrawn.has(frame) && frame >= 0 && frame <= last) frame += step;
    if (!isDrawn.has(frame)) for (frame = start; !isDrawn.has(frame); frame -= step);
  }
  at.frame = frame;
  if (form === "slices") at.place[at.plane] = frame;
  draw();
}

// What a frame lost; of two methods by how much more the right one lost.
function lossOf(frame) {
  if (!methods.length) return null;
  const [first, last] = [at.methods[0], at.methods.at(-1)].map((method) => {
    const side = at.loaded.predicted.get(method);
    if (at.object < 0 || form === "segments") return at.loaded.isDrawn?.has(frame) === false ? null : side.loss[frame];
    return side.objects[at.object].loss[side.objects[at.object].frame.get(frame)] ?? null;
  });
  return last === null || first === null ? null : at.methods.length > 1 ? last - first : last;
}

// The frame at a share of the order of losses: 1 is the worst, .5 the median, 0 the best.
function ranked(share) {
  const order = at.loaded.frames.map((_, frame) => frame).filter((frame) => lossOf(frame) !== null).sort((a, b) => lossOf(a) - lossOf(b) || b - a);
  if (order.length) go(order[Math.round(share * (order.length - 1))]);
}

function chosen() {
  const options = [["-1", "all"], ...at.loaded.objects.map((one, number) => [String(number), one.name])];
  part("object").replaceChildren(...options.map(([value, text]) => new Option(text, value, false, value === String(at.object))));
  strips(at.loaded);
  draw();
}

// Show a sequence, by default at its worst frame.
async function open(stream, { object = -1, frame = null, place = null } = {}) {
  at.stream = stream;
  const loaded = await sequence(stream, at.methods);
  if (at.stream !== stream) return;  // another one was chosen meanwhile
  Object.assign(at, { loaded, object, zoom: 1, x: .5, y: .5, frame: 0 });
  part("sequence").value = stream;
  player.hidden = false;
  fitThresholds(loaded);
  if (form === "slices") { slices.arrange(loaded); slices.start(place); }
  chosen();
  if (form === "slices") slices.offerWindows(loaded);
  if (form === "slices") return;
  if (frame === null) ranked(1); else go(at.loaded.frames.indexOf(frame));
}

// ── links to a moment, and pictures of it ──

const params = () => {
  const about = at.loaded, object = about.objects[at.object]?.name, split = section.element.id === "frames" ? {} : { section: section.element.id };
  return new URLSearchParams({ ...split, sequence: nameOf(at.stream), frame: about.frames[at.frame], ...(form === "slices" ? { place: at.place.join() } : {}), ...(object === undefined ? {} : { object }), layer: at.layer });
};

// Show what the address says; false where it says nothing of this player.
async function follow() {
  const asked = new URLSearchParams(location.hash.slice(1)), entry = sequences.find((one) => one.name === asked.get("sequence"));
  if (!entry || (asked.get("section") ?? "frames") !== section.element.id) return false;
  const about = await sequence(entry.stream, at.methods), frame = asked.get("frame");
  if (methods.length && ["difference", "truth", "prediction", "scan"].includes(asked.get("layer"))) at.layer = asked.get("layer");
  await open(entry.stream, { object: about.objects.findIndex((one) => one.name === asked.get("object")), frame: about.frames.includes(frame) ? frame : null, place: voxelOf(asked.get("place")) });
  section.element.scrollIntoView();
  page.used = section.element;
  return true;
}
addEventListener("hashchange", follow);

// Three numbers of an address or a link; null where there are none.
const voxelOf = (text) => /^\d+,\d+,\d+$/.test(text ?? "") ? text.split(",").map(Number) : null;

async function copyLink() {
  history.replaceState(null, "", `#${params()}`);
  let copied = true;
  try { await navigator.clipboard.writeText(location.href); } catch { copied = false; }
  notice(copied ? "The link to this frame is copied." : "The address of this page now leads to this frame.");
}

function notice(text) {
  part("notice").textContent = text;
  page.say(text);
}

// Save what is seen, with a line below that says what it is.
function savePicture() {
  const seen = views.filter((canvas) => !canvas.parentElement.hidden), high = 28, text = part("numbers").innerText.split("\n")[0];
  const whole = Object.assign(document.createElement("canvas"), { width: seen.reduce((sum, one) => sum + one.width, 0), height: Math.max(...seen.map((one) => one.height)) + high }), pen = whole.getContext("2d");
  pen.fillStyle = "#3a3e46";
  pen.fillRect(0, 0, whole.width, whole.height);
  seen.reduce((x, one) => { pen.drawImage(one, x, 0); return x + one.width; }, 0);
  pen.fillStyle = "#fff";
  pen.font = "16px system-ui, sans-serif";
  pen.fillText(`${methods.length ? `${at.layer}: ` : ""}${text}`, 8, whole.height - 9, whole.width - 16);
  whole.toBlob((blob) => {
    const name = [nameOf(at.stream), at.loaded.frames[at.frame], at.layer].join("-").replace(/[^\w.-]+/g, "_");
    const link = Object.assign(document.createElement("a"), { download: `${name}.png`, href: URL.createObjectURL(blob) });
    link.click();
    URL.revokeObjectURL(link.href);
    notice(`${name}.png is saved.`);
  });
}

async function show(moment) {
  const { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream, at.methods);
  at.moment = moment.number;
  await open(stream, { object: about.objects.findIndex((one) => one.name === moment.label), frame: moment.worst, place: moment.place });
  page.say(part("numbers").textContent);
}

let timer = 0;
function play() {
  if (timer) { clearInterval(timer); timer = 0; } else timer = setInterval(() => go((at.frame + 1) % at.loaded.frames.length), 100);
  player.querySelector("[data-do=play]")?.setAttribute("aria-pressed", timer !== 0);
}

function zoom(factor) { at.zoom = Math.max(1, Math.min(16, at.zoom * factor)); draw(); }
const actions = { worst: () => { if (form !== "slices") return ranked(1); slices.start(null); draw(); }, median: () => ranked(.5), best: () => ranked(0), in: () => zoom(2), out: () => zoom(.5), fit: () => zoom(0), play, link: copyLink, save: savePicture, swipe: () => swipe(at.swipe === null ? .5 : null) };
function layer(name) { if (methods.length) { at.layer = name; swipe(at.swipe); } }

// Show the other face of the pair as long as a key or a button is held.
function blink(on) {
  if (!methods.length || at.blink === on) return;
  at.blink = on;
  player.querySelector("[data-do=blink]").setAttribute("aria-pressed", on);
  draw();
}

// Set the bar between the two faces at a share of the width; nothing takes it away.
function swipe(share) {
  if (!methods.length) return;
  at.swipe = share === null ? null : Math.max(0, Math.min(1, share));
  player.querySelector("[data-do=swipe]").setAttribute("aria-pressed", at.swipe !== null);
  part("bar").parentElement.hidden = at.swipe === null;
  part("bar").value = 100 * (at.swipe ?? .5);
  const [left, right] = pair().map(nameOfFace);
  part("faces").textContent = `${left} | ${right}`;
  part("bar").setAttribute("aria-valuetext", `${left} to the left of ${Math.round(100 * (at.swipe ?? .5))} %, ${right} to the right`);
  draw();
}

const inView = (action) => (event) => { player.scrollIntoView({ block: "nearest" }); action(event); };
function neighbour(step) {
  const place = sequences.findIndex((one) => one.stream === at.stream);
  open(sequences[(place + step + sequences.length) % sequences.length].stream);
}

for (const button of player.querySelectorAll("[data-do]")) button.onclick = actions[button.dataset.do];
for (const button of player.querySelectorAll("[data-layer]")) button.onclick = () => layer(button.dataset.layer);
const held = player.querySelector("[data-do=blink]");
if (held) {
  held.onclick = null;
  held.onpointerdown = () => blink(true);
  held.onpointerup = held.onpointerleave = held.onpointercancel = held.onblur = () => blink(false);
  held.onkeydown = (event) => { if ([" ", "Enter"].includes(event.key)) blink(true); };
  addEventListener("keyup", () => blink(false));
  addEventListener("blur", () => blink(false));
  part("bar").oninput = (event) => swipe(Number(event.target.value) / 100);
}
for (const name of ["level", "width"]) if (part(name)) part(name).oninput = () => slices.show(slices.scanOf(at.loaded), [Number(part("level").value), Number(part("width").value)]);
part("sequence").onchange = (event) => open(event.target.value);
part("object").onchange = (event) => { at.object = Number(event.target.value); chosen(); };
part("frame").oninput = (event) => go(Number(event.target.value));
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-open], [data-moment]");
  const moment = link?.dataset.moment && (section.element.contains(link) || first?.contains(link)), known = sequences.some((one) => one.stream === link?.dataset.open);
  if (!moment && !known) return;
  event.preventDefault();  // of several splits each has its frames
  section.element.scrollIntoView();
  page.used = section.element;
  if (moment) show(moments[Number(link.dataset.moment)]); else open(link.dataset.open, { frame: link.dataset.frame ?? null, place: voxelOf(link.dataset.place) });
});

// Keys do nothing before the first sequence is there.
const key = (names, about, action) => page.key(names, about, (event) => at.loaded ? action(event) : false);
key(["ArrowLeft"], "the previous frame (with Shift: ten)", (event) => go(at.frame - (event.shiftKey ? 10 : 1)));
key(["ArrowRight"], "the next frame (with Shift: ten)", (event) => go(at.frame + (event.shiftKey ? 10 : 1)));
key(["Home"], "the first frame", () => go(0));
key(["End"], "the last frame", () => go(at.loaded.frames.length - 1));
key(["w"], "the worst frame", inView(actions.worst));
if (form !== "slices") key(["m"], "the median frame", inView(actions.median));
if (methods.length) {
  for (const name of ["difference", "truth", "prediction"]) key([name[0]], `the ${name}`, () => layer(name));
  if (part("windows")) key(["c"], "only the scan", () => layer("scan"));
  key(["b"], `while held: the other ${methods.length > 1 ? "method" : "layer, the truth or the prediction"}`, () => blink(true));
  key(["s"], `a bar between two ${methods.length > 1 ? "methods" : "layers"}, or none`, actions.swipe);
  key(["["], "the bar to the left", () => at.swipe !== null && swipe(at.swipe - .05));
  key(["]"], "the bar to the right", () => at.swipe !== null && swipe(at.swipe + .05));
}
key([" "], "play, or stop", (event) => event.target.matches("button, a, summary") ? false : play());
key(["n"], "next worst moment, within the filters", inView(() => walk(1)));
key(["N"], "the previous worst moment", inView(() => walk(-1)));
key(["l"], "copy a link to this frame", copyLink);
key(["i"], "save this frame as an image", savePicture);
key(["j"], "next sequence, with less loss", inView(() => neighbour(1)));
key(["k"], "the previous sequence", inView(() => neighbour(-1)));
key(["1", "2", "3", "4", "5", "6", "7", "8", "9"], "show one object, or all again", (event) => {
  const number = Number(event.key) - 1;
  if (number >= at.loaded.objects.length) return;
  at.object = at.object === number ? -1 : number;
  chosen();
});
key(["+"], "zoom in", actions.in);
key(["-"], "zoom out", actions.out);
key(["0"], "the whole frame", actions.fit);

document.getElementById(`${section.element.id}-without`).hidden = true;
offerChoices();
offerThresholds();
if (sequences.length) page.hold(showFirst().then(follow).then((followed) => followed || open(sequences[0].stream)).then(choose));
