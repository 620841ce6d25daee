// Steps through the frames of sequences: masks as label images, strips of J and F, all from streams inflated when needed.
const { methods, sequences, moments, kinds, scale } = section.data;
const player = section.element.querySelector(".player"), part = (name) => player.querySelector(`[data-part="${name}"]`);
const at = { stream: "", object: -1, frame: 0, layer: "difference", zoom: 1, x: .5, y: .5, loaded: null, methods: methods.slice(0, 2).map((_, number) => number) };
if (!methods.length) at.layer = "truth";  // the truth alone
const COLOURS = { missing: [230, 159, 0], extra: [0, 114, 178], mixed: [213, 94, 0], right: [0, 158, 115] };
const OBJECTS = [[0, 114, 178], [213, 94, 0], [0, 158, 115], [204, 121, 167], [230, 159, 0], [86, 180, 233], [240, 228, 66], [128, 128, 128]];
const FAMILY = { time: "#cc79a7", place: "#d55e00", shape: "#56b4e9" };
const streams = new Map();

// A stream is a line of JSON, then the runs of label images: labels, and lengths in groups of seven bits.
function stream(name) {
  if (!streams.has(name)) streams.set(name, page.inflated(name).then((bytes) => {
    const line = bytes.indexOf(10), about = JSON.parse(new TextDecoder().decode(bytes.subarray(0, line)));
    let place = line + 1;
    const numbers = () => {
      const found = new Uint32Array(about.runs);
      for (let k = 0; k < about.runs; k++) {
        let value = 0, shift = 0, byte;
        do { byte = bytes[place++]; value |= (byte & 127) << shift; shift += 7; } while (byte & 128);
        found[k] = value;
      }
      return found;
    };
    const pixels = about.size[0] * about.size[1], starts = [0];
    Object.assign(about, { labels: numbers(), lengths: numbers(), starts });
    for (let k = 0, done = 0; k < about.runs; k++) {
      done += about.lengths[k];
      if (done === pixels) { starts.push(k + 1); done = 0; }
    }
    return about;
  }));
  return streams.get(name);
}

// A sequence with what some methods predicted for it.
async function sequence(name) {
  const truth = await stream(name), predicted = new Map();
  for (const method of at.methods) {
    const side = await stream(`${name}/${method}`);
    predicted.set(method, side);
    if (side.loss) continue;
    for (const one of side.objects) {
      let tracked = 0;
      one.frame = new Map(one.at.map((frame, k) => [frame, k]));
      one.loss = one.j.map((j, k) => 1 - (j + one.f[k]) / 2 / scale);
      one.own = one.kinds.map((kind) => kind === -2 ? one.parts.slice(4 * tracked, 4 * ++tracked) : null);
    }
    side.loss = truth.frames.map((_, frame) => {
      const lost = side.objects.filter((one) => one.frame.has(frame)).map((one) => one.loss[one.frame.get(frame)]);
      return lost.length ? lost.reduce((sum, one) => sum + one, 0) / lost.length : null;
    });
  }
  return { ...truth, truth, predicted, objects: methods.length ? predicted.get(at.methods[0]).objects : truth.objects.map((name) => ({ name })) };
}

// The picture of a frame, where the page has one and it is there by now; a few are kept.
const pictures = new Map();
function picture(frame) {
  const name = `${at.stream}#${frame}`;
  if (!pictures.has(name)) {
    const bytes = page.bytes(name);
    pictures.set(name, null);
    if (bytes) createImageBitmap(new Blob([bytes], { type: section.data.pictures })).then((made) => { pictures.set(name, made); draw(); });
    if (pictures.size > 60) pictures.delete(pictures.keys().next().value);
  }
  return pictures.get(name);
}

// The labels of one frame, row by row.
function labels(side, frame, pixels) {
  const found = new Uint16Array(pixels);
  for (let k = side.starts[frame], place = 0; k < side.starts[frame + 1]; place += side.lengths[k++]) {
    if (side.labels[k]) found.fill(side.labels[k], place, place + side.lengths[k]);
  }
  return found;
}

const has = (side, object) => side.groups.map((group) => object < 0 ? group.length > 0 : group.includes(object));

// The colour of each pixel: what differs, or each object of a side in a colour of its own.
function image(about, predicted, frame) {
  const [height, width] = about.size, sides = [about.truth, predicted ?? about.truth];
  const [truth, prediction] = sides.map((side) => labels(side, frame, height * width));
  const [inTruth, inPrediction] = sides.map((side) => has(side, at.object));
  const side = at.layer === "truth" ? 0 : 1, shown = new ImageData(width, height), data = shown.data;
  const same = (a, b) => sides[0].groups[a].some((object) => sides[1].groups[b].includes(object));
  for (let y = 0, here = 0; y < height; y++) for (let x = 0; x < width; x++, here++) {
    const t = truth[here], p = prediction[here];
    let colour = null, alpha = 165;
    if (at.layer === "difference") {
      const isThere = inTruth[t], isPredicted = inPrediction[p];
      // What is right has an outline, and hides little of the picture.
      const inside = x && y && x < width - 1 && y < height - 1 && [1, -1, width, -width].every((step) => truth[here + step] === t && prediction[here + step] === p);
      if (isThere && isPredicted) [colour, alpha] = at.object >= 0 || same(t, p) ? [COLOURS.right, inside ? 90 : 255] : [COLOURS.mixed, 200];
      else if (isThere) [colour, alpha] = [COLOURS.missing, (x + y) & 4 ? 235 : 150];
      else if (isPredicted) [colour, alpha] = [COLOURS.extra, (x - y) & 4 ? 235 : 150];
    } else {
      const label = side ? p : t;
      if ((side ? inPrediction : inTruth)[label]) colour = OBJECTS[sides[side].groups[label].at(-1) % OBJECTS.length];
    }
    if (colour) data.set([...colour, alpha], 4 * here);
  }
  return shown;
}

// A canvas for each method that is shown, with a choice of method where there are several.
const shown = methods.length ? at.methods : [undefined];
const views = shown.map((_, place) => {
  const figure = document.createElement("figure"), canvas = document.createElement("canvas");
  canvas.setAttribute("role", "img");
  if (methods.length > 1) {
    const choice = document.createElement("select");
    choice.append(...methods.map((name, number) => new Option(name, String(number), false, number === at.methods[place])));
    choice.setAttribute("aria-label", place ? "Method at the right" : "Method at the left");
    choice.onchange = async () => { at.methods[place] = Number(choice.value); at.loaded = await sequence(at.stream); chosen(); };
    figure.append(choice);
  }
  figure.append(canvas);
  player.querySelector(".views").append(figure);
  let drag = null;
  canvas.onpointerdown = (event) => { if (at.zoom > 1) { drag = [event.clientX, event.clientY]; canvas.setPointerCapture(event.pointerId); } };
  canvas.onpointerup = () => { drag = null; };
  canvas.onpointermove = (event) => {
    if (!drag) return;
    const box = canvas.getBoundingClientRect();
    at.x -= (event.clientX - drag[0]) / box.width / at.zoom;
    at.y -= (event.clientY - drag[1]) / box.height / at.zoom;
    drag = [event.clientX, event.clientY];
    draw();
  };
  return canvas;
});

function draw() {
  const about = at.loaded, [height, width] = about.size, half = .5 / at.zoom;
  at.x = Math.min(1 - half, Math.max(half, at.x)); at.y = Math.min(1 - half, Math.max(half, at.y));
  views.forEach((canvas, place) => {
    const pen = canvas.getContext("2d"), made = new OffscreenCanvas(width, height);
    canvas.width = 2 * width; canvas.height = 2 * height;
    made.getContext("2d").putImageData(image(about, about.predicted.get(at.methods[place]), at.frame), 0, 0);
    for (const [layer, smooth] of [[picture(at.frame), true], [made, false]]) if (layer) {
      const [across, down] = [layer.width, layer.height];
      pen.imageSmoothingEnabled = smooth;
      pen.drawImage(layer, (at.x - half) * across, (at.y - half) * down, 2 * half * across, 2 * half * down, 0, 0, canvas.width, canvas.height);
    }
    canvas.setAttribute("aria-label", `${at.layer}: ${numbers(about, at.methods[place])}`);
  });
  part("frame").max = about.frames.length - 1;
  part("frame").value = at.frame;
  const lines = shown.map((method) => numbers(about, method));
  part("frame").setAttribute("aria-valuetext", lines.join(" "));
  part("numbers").replaceChildren(...lines.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
  for (const button of player.querySelectorAll("[data-layer]")) button.setAttribute("aria-pressed", button.dataset.layer === at.layer);
  for (const mark of player.querySelectorAll(".strip i")) mark.style.left = `${100 * (at.frame + .5) / about.frames.length}%`;
}

const three = (value) => (value / scale).toFixed(3);
const nameOf = () => sequences.find((one) => one.stream === at.stream).name;

// What a method scored in a frame, in words.
function numbers(about, method) {
  if (method === undefined) return `${nameOf()}, frame ${about.frames[at.frame]}.`;
  const objects = about.predicted.get(method).objects;
  const shown = objects.filter((_, number) => at.object < 0 || number === at.object).map((one) => {
    const k = one.frame.get(at.frame);
    if (k === undefined) return `object ${one.name}: not scored here`;
    const whole = one.kinds[k] < 0 ? "" : `, ${kinds[one.kinds[k]][0]}: ${kinds[one.kinds[k]][2]}`;
    const own = one.own[k] ? one.own[k].map((value, kind) => [value, kinds[kinds.length - 4 + kind][0]]).filter(([value]) => value > 9).sort((a, b) => b[0] - a[0]) : [];
    return `object ${one.name}: J ${three(one.j[k])}, F ${three(one.f[k])}${whole}${own.map(([value, kind]) => `, ${kind} ${three(value)}`).join("")}`;
  });
  return `${methods.length > 1 ? `${methods[method]}: ` : ""}${nameOf()}, frame ${about.frames[at.frame]}. ${shown.join("; ")}`;
}

// One strip for each object: a bar for each frame, as high as its loss and in its family's colour, with J and F as lines.
function strip(one, count) {
  const made = document.createElement("div");
  made.className = "strip";
  const line = (values) => values.map((value, k) => `${k && one.at[k] === one.at[k - 1] + 1 ? "L" : "M"}${one.at[k] + .5} ${(40 * (1 - value / scale)).toFixed(1)}`).join("");
  const bars = one.at.map((frame, k) => {
    const family = one.kinds[k] < 0 ? "shape" : kinds[one.kinds[k]][1], high = 40 * one.loss[k];
    return `<rect x="${frame}" y="${(40 - high).toFixed(1)}" width="1" height="${high.toFixed(1)}" fill="${FAMILY[family]}"/>`;
  });
  made.innerHTML = `<svg viewBox="0 0 ${count} 40" preserveAspectRatio="none" aria-hidden="true">${bars.join("")}<path class="j" d="${line(one.j)}"/><path class="f" d="${line(one.f)}"/></svg><i></i>`;
  made.onclick = (event) => {
    const box = made.getBoundingClientRect();
    go(Math.floor((event.clientX - box.left) / box.width * count));
  };
  return made;
}

function strips(about) {
  player.querySelector(".strips").replaceChildren(...about.objects.flatMap((object, number) => at.methods.map((method, place) => {
    const row = document.createElement("div"), name = document.createElement(place ? "span" : "button");
    row.className = "row";
    if (!place) {
      name.className = "plain";
      name.title = `show object ${object.name} alone`;
      name.setAttribute("aria-pressed", at.object === number);
      name.onclick = () => { at.object = at.object === number ? -1 : number; chosen(); };
    }
    name.textContent = methods.length > 1 ? `${place ? "" : `${object.name} `}${methods[method]}` : object.name;
    row.append(name, strip(about.predicted.get(method).objects[number], about.frames.length));
    return row;
  })));
}

function go(frame) {
  at.frame = Math.max(0, Math.min(at.loaded.frames.length - 1, frame));
  draw();
}

// What a frame lost; of two methods by how much more the right one lost.
function lossOf(frame) {
  if (!methods.length) return null;
  const [first, last] = [at.methods[0], at.methods.at(-1)].map((method) => {
    const side = at.loaded.predicted.get(method);
    if (at.object < 0) return side.loss[frame];
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
async function open(stream, { object = -1, frame = null } = {}) {
  at.loaded = await sequence(stream);
  Object.assign(at, { stream, object, zoom: 1, x: .5, y: .5, frame: 0 });
  part("sequence").value = stream;
  player.hidden = false;
  chosen();
  if (frame === null) ranked(1); else go(at.loaded.frames.indexOf(frame));
}

async function show(moment) {
  const { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream);
  at.moment = moment.number;
  await open(stream, { object: about.objects.findIndex((one) => one.name === moment.label), frame: moment.worst });
  page.say(part("numbers").textContent);
}

let timer = 0;
function play() {
  if (timer) { clearInterval(timer); timer = 0; } else timer = setInterval(() => go((at.frame + 1) % at.loaded.frames.length), 100);
  player.querySelector("[data-do=play]").setAttribute("aria-pressed", timer !== 0);
}

function zoom(factor) { at.zoom = Math.max(1, Math.min(16, at.zoom * factor)); draw(); }
const actions = { worst: () => ranked(1), median: () => ranked(.5), best: () => ranked(0), in: () => zoom(2), out: () => zoom(.5), fit: () => zoom(0), play };
function layer(name) { if (methods.length) { at.layer = name; draw(); } }
function neighbour(step) {
  const place = sequences.findIndex((one) => one.stream === at.stream);
  open(sequences[(place + step + sequences.length) % sequences.length].stream);
}

for (const button of player.querySelectorAll("[data-do]")) button.onclick = actions[button.dataset.do];
for (const button of player.querySelectorAll("[data-layer]")) button.onclick = () => layer(button.dataset.layer);
part("sequence").onchange = (event) => open(event.target.value);
part("object").onchange = (event) => { at.object = Number(event.target.value); chosen(); };
part("frame").oninput = (event) => go(Number(event.target.value));
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-open], [data-moment]");
  if (!link) return;
  if (link.dataset.moment && section.element.contains(link)) show(moments[Number(link.dataset.moment)]);
  else if (sequences.some((one) => one.stream === link.dataset.open)) open(link.dataset.open);
});

page.key(["ArrowLeft"], "the frame before (with Shift ten)", (event) => go(at.frame - (event.shiftKey ? 10 : 1)));
page.key(["ArrowRight"], "the next frame (with Shift ten)", (event) => go(at.frame + (event.shiftKey ? 10 : 1)));
page.key(["Home"], "the first frame", () => go(0));
page.key(["End"], "the last frame", () => go(at.loaded.frames.length - 1));
const inView = (action) => () => { player.scrollIntoView({ block: "nearest" }); action(); };
page.key(["w"], "the worst frame", inView(actions.worst));
page.key(["m"], "the median frame", inView(actions.median));
page.key(["d"], "the difference", () => layer("difference"));
page.key(["t"], "the truth", () => layer("truth"));
page.key(["p"], "the prediction", () => layer("prediction"));
page.key([" "], "play, or stop", (event) => event.target.matches("button, a, summary") ? false : play());
page.key(["n"], "the next of the worst moments", inView(() => moments.length && show(moments[((at.moment ?? -1) + 1) % moments.length])));
page.key(["N"], "the one before", inView(() => moments.length && show(moments[((at.moment ?? 0) + moments.length - 1) % moments.length])));
page.key(["j"], "the next sequence, which lost less", inView(() => neighbour(1)));
page.key(["k"], "the sequence before", inView(() => neighbour(-1)));
page.key(["1", "2", "3", "4", "5", "6", "7", "8", "9"], "an object alone, or all again", (event) => {
  const number = Number(event.key) - 1;
  if (number >= at.loaded.objects.length) return;
  at.object = at.object === number ? -1 : number;
  chosen();
});
page.key(["+"], "zoom in", actions.in);
page.key(["-"], "zoom out", actions.out);
page.key(["0"], "the whole frame", actions.fit);

document.getElementById(`${section.element.id}-without`).hidden = true;
if (sequences.length) open(sequences[0].stream);
