"use strict";
const at = { run: 0, sample: "", interaction: 1, frame: 0 };
const loaded = {}, pictures = {};
const the = (id) => document.getElementById(id);
const sampleOf = (key) => `${key[0]}, ${key[1]}`;

function step(name, content) { loaded[name] = content; draw(); }

function here() { return RUNS.steps.filter((one) => one.run === at.run && sampleOf(one.key) === at.sample); }
function entry() { return here().find((one) => one.key[2] === at.interaction); }

// COCO's compressed run lengths, down the columns.
function runs(text) {
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
    const colour = parseInt(RUNS.palette[one.object_id].slice(1), 16);
    let pixel = 0, on = false;
    for (const length of runs(one.counts)) {
      if (on) for (let k = pixel; k < pixel + length; k++) {
        const x = Math.floor(k / height), y = k % height, place = 4 * (y * width + x);
        image.data[place] = colour >> 16; image.data[place + 1] = colour >> 8 & 255; image.data[place + 2] = colour & 255;
        image.data[place + 3] = 140;
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

function draw() {
  const now = entry();
  if (!now) return;
  const content = loaded[now.file];
  if (!content) {
    if (!document.querySelector(`script[data-file="${CSS.escape(now.file)}"]`)) {
      const script = document.createElement("script");
      script.dataset.file = now.file;
      script.src = "steps/" + now.file.split("/").map(encodeURIComponent).join("/");
      document.body.append(script);
    }
    return;
  }
  const [frames, height, width] = content.size;
  the("frame").max = frames - 1;
  at.frame = Math.min(at.frame, frames - 1);
  the("frame").value = at.frame;
  const view = the("view"), pen = view.getContext("2d");
  view.height = Math.round(view.width * height / width);
  const ground = picture(now.images[at.frame]);
  if (ground) pen.drawImage(ground, 0, 0, view.width, view.height);
  if (the("masks").checked) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(overlay(content.frames[at.frame], height, width), 0, 0, view.width, view.height);
  }
  if (the("lines").checked) for (const line of content.scribbles[at.frame]) {
    for (const [style, thick] of [["#fff", 6], [line.object_id ? RUNS.palette[line.object_id] : "#000", 3]]) {
      pen.strokeStyle = style; pen.lineWidth = thick; pen.lineJoin = pen.lineCap = "round";
      pen.beginPath();
      for (const [x, y] of line.path) pen.lineTo(x * view.width, y * view.height);
      pen.stroke();
    }
  }
  strip(content, frames);
  const value = content.values[at.frame], drawn = content.scribbles[at.frame].length;
  the("told").textContent = `Frame ${at.frame} of ${frames - 1}` + (value === undefined ? "" : `, J&F ${value.toFixed(3)}`)
    + (drawn ? `, ${drawn} line${drawn > 1 ? "s" : ""}` : "");
}

// J&F of each frame as a bar, those with scribbles marked below.
function strip(content, frames) {
  const made = the("strip"), pen = made.getContext("2d"), across = made.width / frames;
  pen.clearRect(0, 0, made.width, made.height);
  for (let k = 0; k < frames; k++) {
    const value = content.values[k];
    pen.fillStyle = k === at.frame ? "#d55e00" : "#0072b2";
    if (value !== undefined) pen.fillRect(k * across, 36 * (1 - value), Math.max(across - 1, 1), 36 * value + 1);
    if (content.scribbles[k].length) { pen.fillStyle = "#e69f00"; pen.fillRect(k * across, 40, Math.max(across - 1, 2), 8); }
  }
}

function fill(select, names, chosen) {
  select.replaceChildren(...names.map(([value, text]) => new Option(text, value, false, value === chosen)));
}

function choose() {
  const of = RUNS.steps.filter((one) => one.run === at.run);
  const samples = [...new Set(of.map((one) => sampleOf(one.key)))];
  if (!samples.includes(at.sample)) at.sample = samples[0];
  const numbers = here().map((one) => one.key[2]).sort((a, b) => a - b);
  if (!numbers.includes(at.interaction)) at.interaction = numbers[0];
  fill(the("run"), RUNS.runs.map((name, place) => [String(place), name]).filter(([place]) => RUNS.steps.some((one) => one.run === Number(place))), String(at.run));
  fill(the("sample"), samples.map((name) => [name, name]), at.sample);
  the("interactions").replaceChildren(...numbers.map((number) => {
    const button = document.createElement("button");
    button.textContent = number;
    button.setAttribute("aria-pressed", number === at.interaction);
    button.onclick = () => { at.interaction = number; choose(); };
    return button;
  }));
  draw();
}

if (RUNS.steps.length) {
  at.run = RUNS.steps[0].run;
  the("run").onchange = (event) => { at.run = Number(event.target.value); choose(); };
  the("sample").onchange = (event) => { at.sample = event.target.value; at.interaction = 1; choose(); };
  the("frame").oninput = (event) => { at.frame = Number(event.target.value); draw(); };
  for (const name of ["masks", "lines"]) the(name).onchange = draw;
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("select, input[type=range]")) return;
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!move) return;
    event.preventDefault();
    at.frame = Math.max(0, Math.min(Number(the("frame").max), at.frame + move[0]));
    const numbers = here().map((one) => one.key[2]);
    if (numbers.includes(at.interaction + move[1])) at.interaction += move[1];
    choose();
  });
  choose();
}
