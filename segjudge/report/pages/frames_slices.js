// Slices of volumes: three planes that meet at one voxel, each with a slider, and rows of a region's wrong voxels by slice.
const slices = {
  async read(name, chosen) {
    const planes = [];
    for (const plane of section.data.planes.keys()) {
      const truth = await stream(`${name}/${plane}`), predicted = new Map();
      for (const method of chosen) predicted.set(method, await stream(`${name}/${plane}/${method}`));
      planes.push({ ...truth, name, truth, predicted, planes, number: plane, called: truth.plane || truth.axis, isDrawn: new Set(truth.drawn), objects: truth.objects.map((name) => ({ name })) });
    }
    return planes[at.plane];
  },

  // What the page has of a case's scan.
  scanOf: (about) => sequences.find((one) => one.stream === about.name).scan,

  // The scan below a slice, as the window shows it; nothing until it is decoded, and where the page has none.
  scan(about, frame) {
    const scan = slices.scanOf(about), image = scan && picture(`${about.name}/${about.number}`, frame).image;
    if (!image) return null;
    const made = new OffscreenCanvas(image.width, image.height), pen = made.getContext("2d", { willReadFrequently: true });
    pen.drawImage(image, 0, 0);
    const shown = pen.getImageData(0, 0, image.width, image.height), { data } = shown, greys = slices.greys(scan);
    for (let k = 0; k < data.length; k += 4) data[k] = data[k + 1] = data[k + 2] = greys[data[k]];
    pen.putImageData(shown, 0, 0);
    return made;
  },

  // The grey of each stored level, from black at the lower end of the window to white at the upper one.
  greys(scan) {
    const [level, width] = at.window && at.windows === scan.windows ? at.window : scan.windows[0].slice(1);
    return Uint8ClampedArray.from({ length: 256 }, (_, stored) => {
      const above = Math.max(1, scan.levels.findIndex((one) => one >= stored)), [from, to] = [scan.levels[above - 1], scan.levels[above]];
      const value = scan.values[above - 1] + (stored - from) / (to - from) * (scan.values[above] - scan.values[above - 1]);
      return 255 * ((value - level) / width + .5);
    });
  },

  // Wait until the scans below three slices are decoded; nothing where they are, or the page has none.
  decode(about, place) {
    if (!slices.scanOf(about)) return null;
    const waiting = about.planes.map((plane) => picture(`${about.name}/${plane.number}`, place[plane.number])).filter(({ image, ready }) => ready && !image);
    return waiting.length ? Promise.all(waiting.map(({ ready }) => ready)) : null;
  },

  // Buttons and sliders of the window, where the case has a scan; cases with the same choices share it.
  offerWindows(about) {
    const scan = slices.scanOf(about), names = part("windows");
    if (!names) return;
    for (const element of [names, part("level").parentElement, part("width").parentElement]) element.hidden = !scan;
    if (!scan) return;
    const [least, most] = [scan.values[0], scan.values.at(-1)], step = most - least > 200 ? 1 : (most - least) / 200;
    Object.assign(part("level"), { min: least, max: most, step });
    Object.assign(part("width"), { min: step, max: 2 * (most - least), step });
    names.replaceChildren(...scan.windows.flatMap(([name, level, width]) => {
      const button = Object.assign(document.createElement("button"), { className: "plain", textContent: name });
      button.onclick = () => slices.show(scan, [level, width]);
      return [button, " "];
    }));
    slices.show(scan, JSON.stringify(at.windows) === JSON.stringify(scan.windows) ? at.window : scan.windows[0].slice(1));
  },

  // Let a window be the one that scans are shown in.
  show(scan, [level, width]) {
    Object.assign(at, { window: [level, width], windows: scan.windows });
    for (const [name, value] of [["level", level], ["width", width]]) {
      part(name).value = value;
      part(`${name}-text`).textContent = `${name[0].toUpperCase()}${name.slice(1)} ${Number(value.toPrecision(4))}`.replace("-", "−");
    }
    scan.windows.forEach((one, number) => part("windows").children[number].setAttribute("aria-pressed", one[1] === level && one[2] === width));
    draw();
  },

  // The drawn slice of a plane that lies nearest.
  nearest(about, frame) {
    return about.drawn.reduce((best, one) => Math.abs(one - frame) < Math.abs(best - frame) ? one : best, about.drawn[0]);
  },

  // Go to a voxel, by default to the worst place.
  start(place) {
    at.place = at.loaded.planes.map((about, plane) => slices.nearest(about, (place ?? about.place)[plane]));
    at.frame = at.place[at.plane];
  },

  // Let a plane be the one that keys and rows are of.
  enter(plane) {
    const moved = at.plane !== plane;
    at.plane = plane;
    at.loaded = at.loaded.planes[plane];
    at.frame = at.place[plane];
    if (moved) strips(at.loaded);
  },

  // A caption and a slider for the canvas of a plane.
  equip(figure, canvas, plane) {
    const caption = document.createElement("figcaption"), slider = Object.assign(document.createElement("input"), { type: "range", min: "0" });
    slider.oninput = () => { slices.enter(plane); go(Number(slider.value)); };
    figure.prepend(caption);
    figure.append(slider);
    figure.className = "plane";
    canvas.style.cursor = "crosshair";
  },

  // What of a plane is in sight: the middle, in shares of its sides, as near to the voxel as the zoom allows.
  middle(about) {
    const half = .5 / at.zoom, { across, down } = section.data.planes[about.number];
    return [slices.share(about, across, false), slices.share(about, down, section.data.planes[about.number].is_turned)].map((share) => Math.min(1 - half, Math.max(half, share)));
  },

  // Where the voxel lies along an axis, in shares of its length.
  share(about, axis, isTurned) {
    const count = about.planes[axis].frames.length, share = (at.place[axis] + .5) / count;
    return isTurned ? 1 - share : share;
  },

  // Move the other two planes to where a plane is pointed at.
  point(event, canvas, plane) {
    const about = at.loaded.planes[plane], box = canvas.getBoundingClientRect(), { across, down, is_turned } = section.data.planes[plane];
    const scale = Math.min(box.width / canvas.width, box.height / canvas.height), [x, y] = slices.middle(about);
    const shares = [(event.clientX - box.left - box.width / 2) / scale / canvas.width / at.zoom + x, (event.clientY - box.top - box.height / 2) / scale / canvas.height / at.zoom + y];
    [[across, shares[0]], [down, is_turned ? 1 - shares[1] : shares[1]]].forEach(([axis, share]) => {
      const other = about.planes[axis];
      at.place[axis] = slices.nearest(other, Math.floor(Math.min(.999, Math.max(0, share)) * other.frames.length));
    });
    at.frame = at.place[at.plane];
    draw();
  },

  // Draw a plane: its slice, where the other two cut it, and where its ends are in the body.
  draw(canvas, plane, found) {
    const about = at.loaded.planes[plane], middle = slices.middle(about), pen = canvas.getContext("2d"), slider = canvas.parentElement.querySelector("input");
    drawView(canvas, found, about, at.place[plane], middle);
    const { across, down, is_turned } = section.data.planes[plane], gap = 14;
    const [x, y] = [[slices.share(about, across, false), middle[0], canvas.width], [slices.share(about, down, is_turned), middle[1], canvas.height]].map(([share, centre, side]) => ((share - centre) * at.zoom + .5) * side);
    pen.fillStyle = "#fffb";
    for (const [left, top, width, height] of [[0, y, x - gap, 1], [x + gap, y, canvas.width, 1], [x, 0, 1, y - gap], [x, y + gap, 1, canvas.height]]) pen.fillRect(left, top, Math.max(0, width), Math.max(0, height));
    pen.font = "bold 18px system-ui, sans-serif";
    pen.fillStyle = "#fff";
    const [w, h] = [canvas.width, canvas.height];
    [[6, h / 2, "left"], [w - 6, h / 2, "right"], [w / 2, 20, "center"], [w / 2, h - 8, "center"]].forEach(([left, top, align], end) => {
      pen.textAlign = align;
      if (about.ends.length && Math.min(w, h) > 80) pen.fillText(about.ends[end], left, top);
    });
    const text = `${about.plane && `${about.plane}, `}${about.axis} ${about.frames[at.place[plane]]}`;
    canvas.parentElement.querySelector("figcaption").textContent = text;
    slider.max = about.frames.length - 1;
    slider.value = at.place[plane];
    slider.setAttribute("aria-label", `${about.called}: slice`);
    slider.setAttribute("aria-valuetext", text);
  },

  // Planes as wide as they are in millimetres, the narrowest a third of the widest.
  arrange(about) {
    const widths = about.planes.map((plane) => plane.size[1]), widest = Math.max(...widths);
    player.querySelector(".views").style.setProperty("--planes", widths.map((width) => `minmax(0, ${Math.max(width, widest / 3)}fr)`).join(" "));
  },

  // The voxels of each region in a slice, in words, those with most wrong ones first.
  numbers(about, frame, method, object) {
    const place = [2, 1, 0].map((axis) => about.planes.find((plane) => plane.axis === "zyx"[axis])).map((plane) => `${plane.axis} ${plane.frames[at.place[plane.number]]}`).join(", ");
    const where = `${nameOf(about.name)}, voxel ${place}. ${about.called} slice`, side = about.predicted.get(method);
    if (!side) return `${where} ${about.axis} ${about.frames[frame]}.`;
    const found = side.counts.filter((one) => object < 0 || one.object === object).map((one) => {
      const [truth, missing, extra] = [one.truth, one.missing, one.extra].map((counts) => counts[frame - one.first] ?? 0);
      return { name: about.objects[one.object].name, truth, missing, extra };
    }).filter((one) => one.truth || one.extra).sort((a, b) => b.missing + b.extra - a.missing - a.extra);
    const texts = found.slice(0, 5).map(({ name, truth, missing, extra }) => {
      const parts = [missing && `${missing} of ${truth} voxels missing`, extra && `${extra} surplus`].filter(Boolean);
      return `${name}: ${parts.join(", ") || `all ${truth} voxels right`}`;
    });
    if (found.length > 5) texts.push(`and ${found.length - 5} more regions`);
    return `${where}: ${texts.join("; ") || "nothing on either side"}.`;
  },

  // Rows of the regions by slice: missing voxels upwards, surplus ones downwards.
  rows(about, list) {
    const sides = methods.length ? [...new Set(at.methods)].map((method) => [methods[method], about.predicted.get(method).counts]) : [], length = about.frames.length;
    part("frame").parentElement.hidden = true;
    const all = sides.flatMap(([method, counts]) => counts.map((one) => ({ ...one, method }))), objects = [...new Set(all.map((one) => one.object))];
    list.replaceChildren(...objects.flatMap((object) => all.filter((one) => one.object === object)).map((one) => {
      const row = document.createElement("div"), name = document.createElement("button"), made = document.createElement("div");
      const most = Math.max(1, ...all.filter(({ object }) => object === one.object).flatMap(({ missing, extra }) => [...missing, ...extra]));
      row.className = "row";
      name.className = "plain";
      name.textContent = [about.objects[one.object].name, one.method].filter(Boolean).join(" ");
      name.title = `show only ${about.objects[one.object].name}`;
      name.setAttribute("aria-pressed", at.object === one.object);
      name.onclick = () => { at.object = at.object === one.object ? -1 : one.object; chosen(); };
      made.className = "strip";
      const path = (values, sign) => values.map((value, k) => value ? `M${one.first + k} 20v${(-sign * 19 * value / most).toFixed(1)}h1V20z` : "").join("");
      made.innerHTML = `<svg viewBox="0 0 ${length} 40" preserveAspectRatio="none" aria-hidden="true"><path class="area" fill="${css(COLOURS.missing)}" d="${path(one.missing, 1)}"/><path class="area" fill="${css(COLOURS.extra)}" d="${path(one.extra, -1)}"/></svg><i></i>`;
      made.onclick = (event) => {
        const box = made.getBoundingClientRect();
        go(slices.nearest(at.loaded, Math.floor((event.clientX - box.left) / box.width * length)));
      };
      row.append(name, made);
      return row;
    }));
  },

  // Three planes through the place of a moment, the part around it; of two methods the second has the moment.
  async film(moment, made, method = Math.min(1, methods.length - 1)) {
    const { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream, methods.map((_, number) => number));
    const object = about.objects.findIndex((one) => one.name === moment.label), text = method === Math.min(1, methods.length - 1) ? moment.text : methods[method];
    await slices.decode(about, moment.place);
    section.data.planes.forEach(({ across, down, is_turned }, plane) => {
      const own = about.planes[plane], canvas = document.createElement("canvas"), share = .5;
      const [x, y] = [[across, false], [down, is_turned]].map(([axis, isTurned]) => {
        const place = (moment.place[axis] + .5) / about.planes[axis].frames.length;
        return Math.min(1 - share, Math.max(0, (isTurned ? 1 - place : place) - share / 2));
      });
      canvas.width = 240; canvas.height = Math.max(1, Math.min(480, Math.round(240 * own.size[0] / own.size[1])));
      canvas.dataset.plane = own.called;
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", `${own.called} slice ${own.axis} ${own.frames[moment.place[plane]]}: ${text}`);
      paint(canvas.getContext("2d"), own, moment.place[plane], { method, layer: "difference", object }, [x, y, share, share]);
      made.append(canvas);
    });
    return made;
  },
};
