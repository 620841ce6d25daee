// Steps through the interactions of runs; what each one drew is a script beside the page, which calls `page.step`.
const { runs, steps, palette } = section.data, at = { run: steps[0].run, sample: "", interaction: 1, frame: 0 };
const loaded = {}, pictures = {}, part = (name) => section.element.querySelector(`[data-part="${name}"]`);
const sampleOf = (key) => `${key[0]}, ${key[1]}`;

page.step = (name, content) => { loaded[name] = content; draw(); };

function here() { return steps.filter((one) => one.run === at.run && sampleOf(one.key) === at.sample); }
function entry() { return here().find((one) => one.key[2] === at.interaction); }

// COCO's compressed run lengths, down the columns.
function lengths(text) {
  const found = [];
  for (let place = 0; place < text.length;) {
    let value = 0, shift = 0, code;
    do { code = text.charCodeAt(place++) - 48; value |= (code & 31) << shift; shift += 5; } while (code & 32);
    if (code & 16) value |= -1 << shift;
    if (found.length > 2) value += found[found.length - 2];
    found.push(value);
  }
  return found;
}

function overlay(objects, height, width) {
  const made = new OffscreenCanvas(width, height), pen = made.getContext("2d"), image = pen.createImageData(width, height);
  for (const one of objects) {
    const colour = parseInt(palette[one.object_id].slice(1), 16);
    let pixel = 0, on = false;
    for (const length of lengths(one.counts)) {
      if (on) for (let k = pixel; k < pixel + length; k++) {
        image.data.set([colour >> 16, colour >> 8 & 255, colour & 255, 140], 4 * (k % height * width + Math.floor(k / height)));
      }
      pixel += length; on = !on;
    }
  }
  pen.putImageData(image, 0, 0);
  return made;
}

function picture(address) {
  if (!address) return null;
  if (!pictures[address]) {
    pictures[address] = new Image();
    pictures[address].onload = draw;
    pictures[address].src = address;
  }
  return pictures[address].complete ? pictures[address] : null;
}

function load(file) {
  if (document.querySelector(`script[data-file="${CSS.escape(file)}"]`)) return;
  const script = document.createElement("script");
  script.dataset.file = file;
  script.src = "steps/" + file.split("/").map(encodeURIComponent).join("/");
  document.body.append(script);
}

function draw() {
  const now = entry(), content = now && loaded[now.file];
  if (!content) return now && load(now.file);
  const [frames, height, width] = content.size, view = part("view"), pen = view.getContext("2d");
  at.frame = Math.max(0, Math.min(frames - 1, at.frame));
  part("frame").max = frames - 1;
  part("frame").value = at.frame;
  view.height = Math.round(view.width * height / width);
  const ground = picture(now.images[at.frame]);
  if (ground) pen.drawImage(ground, 0, 0, view.width, view.height);
  if (part("masks").checked) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(overlay(content.frames[at.frame], height, width), 0, 0, view.width, view.height);
  }
  if (part("lines").checked) for (const line of content.scribbles[at.frame]) {
    for (const [style, thick] of [["#fff", 6], [line.object_id ? palette[line.object_id] : "#000", 3]]) {
      pen.strokeStyle = style; pen.lineWidth = thick; pen.lineJoin = pen.lineCap = "round";
      pen.beginPath();
      for (const [x, y] of line.path) pen.lineTo(x * view.width, y * view.height);
      pen.stroke();
    }
  }
  strip(content, frames);
  const value = content.values[at.frame], drawn = content.scribbles[at.frame].length;
  const words = `Frame ${at.frame} of ${frames - 1}` + (value === undefined ? "" : `, J&F ${value.toFixed(3)}`) + (drawn ? `, ${drawn} line${drawn > 1 ? "s" : ""}` : "");
  part("numbers").textContent = words;
  part("frame").setAttribute("aria-valuetext", words);
  view.setAttribute("aria-label", `${runs[at.run]}, ${at.sample}, interaction ${at.interaction}: ${words}`);
}

// J&F of each frame as a bar, those with scribbles marked below.
function strip(content, frames) {
  const made = part("strip"), pen = made.getContext("2d"), across = made.width / frames;
  const [values, lines] = ["mark", "second"].map((name) => getComputedStyle(part(name)).backgroundColor), here = getComputedStyle(made).color;
  pen.clearRect(0, 0, made.width, made.height);
  for (let k = 0; k < frames; k++) {
    const value = content.values[k];
    pen.fillStyle = k === at.frame ? here : values;
    if (value !== undefined) pen.fillRect(k * across, 36 * (1 - value), Math.max(across - 1, 1), 36 * value + 1);
    if (content.scribbles[k].length) { pen.fillStyle = lines; pen.fillRect(k * across, 40, Math.max(across - 1, 2), 8); }
  }
}

function fill(select, names, chosen) {
  select.replaceChildren(...names.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

const numbersHere = () => here().map((one) => one.key[2]).sort((a, b) => a - b);

function choose() {
  const samples = [...new Set(steps.filter((one) => one.run === at.run).map((one) => sampleOf(one.key)))];
  if (!samples.includes(at.sample)) at.sample = samples[0];
  const numbers = numbersHere();
  if (!numbers.includes(at.interaction)) at.interaction = numbers[0];
  fill(part("run"), runs.map((name, place) => [String(place), name]).filter(([place]) => steps.some((one) => one.run === Number(place))), String(at.run));
  fill(part("sample"), samples.map((name) => [name, name]), at.sample);
  part("interactions").replaceChildren(...numbers.map((number) => {
    const button = document.createElement("button");
    button.className = "plain";
    button.textContent = number;
    button.setAttribute("aria-pressed", number === at.interaction);
    button.onclick = () => { at.interaction = number; choose(); };
    return button;
  }));
  draw();
}

function go(frame) { at.frame = frame; draw(); }
function interact(by) { if (numbersHere().includes(at.interaction + by)) at.interaction += by; choose(); }

part("run").onchange = (event) => { at.run = Number(event.target.value); choose(); };
part("sample").onchange = (event) => { at.sample = event.target.value; at.interaction = 1; choose(); };
part("frame").oninput = (event) => go(Number(event.target.value));
for (const name of ["masks", "lines"]) part(name).onchange = draw;
part("strip").onclick = (event) => {
  const box = part("strip").getBoundingClientRect();
  go(Math.floor((event.clientX - box.left) / box.width * (Number(part("frame").max) + 1)));
};
page.key(["ArrowLeft"], "the previous frame (with Shift: ten)", (event) => go(at.frame - (event.shiftKey ? 10 : 1)));
page.key(["ArrowRight"], "the next frame (with Shift: ten)", (event) => go(at.frame + (event.shiftKey ? 10 : 1)));
page.key(["Home"], "the first frame", () => go(0));
page.key(["End"], "the last frame", () => go(Infinity));
page.key(["ArrowUp"], "the next interaction", () => interact(1));
page.key(["ArrowDown"], "the interaction before", () => interact(-1));
choose();
