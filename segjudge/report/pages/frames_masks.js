// Masks of frames: streams inflated when needed, and pictures painted of them.
const { methods, sequences, moments, form, kinds, scale, faults } = section.data;
const { mistakes: COLOURS, objects: OBJECTS } = section.data.colours;
const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;
const streams = new Map(), pictures = new Map();

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
async function sequence(name, chosen) {
  if (form === "segments") return segments.read(name, chosen);
  if (form === "slices") return slices.read(name, chosen);
  const truth = await stream(name), predicted = new Map();
  for (const method of chosen) {
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
  const objects = methods.length ? predicted.get(chosen[0]).objects : truth.objects.map((name) => ({ name }));
  return { ...truth, name, truth, predicted, objects };
}

// The picture of a frame, where the page has one; a few are kept.
function picture(sequence, frame) {
  const name = `${sequence}#${frame}`;
  if (!pictures.has(name)) {
    const bytes = page.bytes(name), made = { image: null, ready: null };
    if (bytes) made.ready = createImageBitmap(new Blob([bytes], { type: section.data.pictures })).then((image) => { made.image = image; });
    pictures.set(name, made);
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

// The masks of a frame in a canvas of their size: what differs, or each object of a side in a colour of its own.
function masks(about, frame, { method, layer, object, moved }) {
  if (form === "segments") return segments.masks(about, frame, { method, layer, object, moved });
  const [height, width] = about.size, sides = [about.truth, about.predicted.get(method) ?? about.truth];
  const [truth, prediction] = sides.map((side) => labels(side, frame, height * width));
  const [inTruth, inPrediction] = sides.map((side) => has(side, object));
  const side = layer === "truth" ? 0 : 1, shown = new ImageData(width, height), data = shown.data;
  const [isLabelled, isCalled] = sides.map((side) => has(side, -1));
  const same = (a, b) => form === "slices" ? a === b : sides[0].groups[a].some((object) => sides[1].groups[b].includes(object));
  for (let y = 0, here = 0; y < height; y++) for (let x = 0; x < width; x++, here++) {
    const t = truth[here], p = prediction[here];
    let colour = null, alpha = 165;
    if (layer === "difference") {
      const isThere = inTruth[t], isPredicted = inPrediction[p];
      // What is right has an outline, and hides little of the picture.
      const inside = x && y && x < width - 1 && y < height - 1 && [1, -1, width, -width].every((step) => truth[here + step] === t && prediction[here + step] === p);
      if (isThere && isPredicted) [colour, alpha] = object >= 0 || same(t, p) ? [COLOURS.right, inside ? 90 : 255] : [COLOURS.mixed, 200];
      else if (form === "slices" && (isThere || isPredicted) && isLabelled[t] && isCalled[p]) [colour, alpha] = [COLOURS.mixed, 200];
      else if (isThere) [colour, alpha] = [COLOURS.missing, (x + y) & 4 ? 235 : 150];
      else if (isPredicted) [colour, alpha] = [COLOURS.extra, (x - y) & 4 ? 235 : 150];
    } else {
      const label = side ? p : t;
      if ((side ? inPrediction : inTruth)[label]) colour = OBJECTS[sides[side].groups[label].at(-1) % OBJECTS.length];
    }
    if (colour) data.set([...colour, alpha], 4 * here);
  }
  const made = new OffscreenCanvas(width, height);
  made.getContext("2d").putImageData(shown, 0, 0);
  return made;
}

// Paint a frame over a canvas: its picture, as far as it is there by now, and masks; `part` of both, in shares of their sides.
function paint(pen, about, frame, face, part = [0, 0, 1, 1]) {
  const ground = form === "slices" ? slices.scan(about, frame) : picture(about.name, frame).image;
  for (const [layer, smooth] of [[ground, true], [face.layer === "scan" ? null : masks(about, frame, face), false]]) if (layer) {
    const [left, top, across, down] = part;
    pen.imageSmoothingEnabled = smooth;
    pen.drawImage(layer, left * layer.width, top * layer.height, across * layer.width, down * layer.height, 0, 0, pen.canvas.width, pen.canvas.height);
  }
}

const three = (value) => (value / scale).toFixed(3);
const nameOf = (stream) => sequences.find((one) => one.stream === stream).name;

// The kind that a frame of an object loses most by; nothing where it loses nothing.
function kindOf(one, k) {
  if (one.kinds[k] !== -2) return one.kinds[k] < 0 ? null : one.kinds[k];
  return kinds.length - 4 + one.own[k].indexOf(Math.max(...one.own[k]));
}

// What a method scored in a frame, in words.
function numbers(about, frame, method, object) {
  const named = methods.length > 1 ? `${methods[method]}: ` : "";
  if (form === "segments") return `${named}${segments.numbers(about, frame, method)}`;
  if (form === "slices") return `${named}${slices.numbers(about, frame, method, object)}`;
  const where = `${nameOf(about.name)}, frame ${about.frames[frame]}.`;
  if (method === undefined) return where;
  const shown = about.predicted.get(method).objects.filter((_, number) => object < 0 || number === object).map((one) => {
    const k = one.frame.get(frame);
    if (k === undefined) return `object ${one.name}: not scored here`;
    const whole = one.kinds[k] < 0 ? "" : `, ${kinds[one.kinds[k]][0]}: ${kinds[one.kinds[k]][2]}`;
    const own = one.own[k] ? one.own[k].map((value, kind) => [value, kinds[kinds.length - 4 + kind][0]]).filter(([value]) => value > 9).sort((a, b) => b[0] - a[0]) : [];
    return `object ${one.name}: J ${three(one.j[k])}, F ${three(one.f[k])}${whole}${own.map(([value, kind]) => `, ${kind} ${three(value)}`).join("")}`;
  });
  return `${named}${where} ${shown.join("; ")}`;
}
