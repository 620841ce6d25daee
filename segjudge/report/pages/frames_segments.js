// Segments: streams that say of each one what is wrong with it, their masks, words, and rows of a timeline.

// A colour for each object, in turn.
const colourOf = (number) => OBJECTS[number % OBJECTS.length];

const segments = {
  async read(name, chosen) {
    const truth = await stream(name), predicted = new Map();
    for (const method of chosen) {
      const side = await stream(`${name}/${method}`);
      side.faults ??= await stream(`${name}/${method}/faults`);
      side.truth ??= page.bytes(`${name}/${method}/truth`) ? await stream(`${name}/${method}/truth`) : truth;
      predicted.set(method, side);
    }
    return { ...truth, name, truth, predicted, isDrawn: new Set(truth.drawn), objects: truth.objects.map((name) => ({ name })) };
  },

  masks(about, frame, { method, layer, object, moved }) {
    const [height, width] = about.size, side = about.predicted.get(method), shown = new ImageData(width, height), data = shown.data;
    const pixels = height * width, judged = side?.truth ?? about.truth, truth = labels(judged, frame, pixels), stripe = width > 700 ? 8 : 4;
    const prediction = side ? labels(side, frame, pixels) : truth, own = has(judged, object);
    const partner = new Map(side?.partners[frame] ?? []);
    const matches = side && moved ? rematch(side, frame) : null;
    const isCounted = (group) => !matches || !group.length || matches.counts(group[0]);
    const sent = side ? side.groups.map((group) => group.length > 0 && isCounted(group) && (object < 0 || partner.get(group[0]) === object)) : own;
    if (layer === "difference" && side) {
      const codes = labels(side.faults, frame, pixels);
      for (let y = 0, here = 0; y < height; y++) for (let x = 0; x < width; x++, here++) {
        const group = matches ? restyle(matches, judged.groups[truth[here]][0], isCounted(side.groups[prediction[here]]) ? side.groups[prediction[here]][0] : undefined) : side.faults.groups[codes[here]].map((fault) => faults[fault][1]);
        if (!group.length || !(own[truth[here]] || sent[prediction[here]])) continue;
        const rising = (x + y) & stripe, style = group[group.length > 1 && rising ? 1 : 0];
        const border = x && truth[here] !== truth[here - 1] || y && truth[here] !== truth[here - width];
        const alpha = style === "right" ? border ? 220 : 36 : style === "missing" ? rising ? 235 : 150 : style === "extra" ? (x - y) & stripe ? 235 : 150 : style === "partial" ? x & stripe ? 235 : 120 : border ? 255 : 205;
        data.set([...COLOURS[style], alpha], 4 * here);
      }
    } else {
      const shownSide = layer === "truth" || !side ? judged : side, found = shownSide === side ? prediction : truth, wanted = shownSide === side ? sent : own;
      for (let y = 0, here = 0; y < height; y++) for (let x = 0; x < width; x++, here++) {
        const label = found[here];
        if (!wanted[label]) continue;
        const border = section.data.outlined && (x && label !== found[here - 1] || y && label !== found[here - width]);
        data.set([...(border ? [20, 24, 31] : colourOf(shownSide.colours[shownSide.groups[label][0]])), border ? 230 : 165], 4 * here);
      }
    }
    const made = new OffscreenCanvas(width, height);
    made.getContext("2d").putImageData(shown, 0, 0);
    return made;
  },

  // What is wrong in a frame, in words, largest first.
  numbers(about, frame, method) {
    const where = about.frames.length > 1 ? `${nameOf(about.name)}, frame ${about.frames[frame]}.` : `${nameOf(about.name)}.`;
    const side = about.predicted.get(method);
    if (!side) return where;
    if (!side.counts[frame]) return `${where} ${side.segments[frame] ? "Every segment matches" : "There is nothing, and nothing is predicted"}.`;
    const kinds = new Map();
    for (const [fault, text] of side.notes[frame]) kinds.set(fault, [...(kinds.get(fault) ?? []), text]);
    const more = side.counts[frame] - side.notes[frame].length;
    return `${where} ${[...kinds].map(([fault, texts]) => `${faults[fault][0]}: ${texts.join(", ")}`).join("; ")}${more ? `; and ${more} smaller ones` : ""}.`;
  },

  // A row of a timeline: the colour of what stands for the object, which changes where it is swapped, or its fault.
  strip(about, side, row, count) {
    const made = document.createElement("div"), parts = [];
    made.className = "strip";
    const own = row.object < 0 ? COLOURS.extra : colourOf(about.truth.colours[row.object]);
    let before = null;
    row.at.forEach((frame, k) => {
      const kind = row.kinds[k], id = row.ids[k], style = faults[kind]?.[1] ?? "right";
      const name = side.objects[id] ?? "nothing", swapped = faults[kind]?.[0] === "swapped";
      const fill = style === "right" ? css(own) : swapped ? css(colourOf(side.colours[id])) : `url(#${section.element.id}-${style})`;
      const last = parts.at(-1);
      if (last && last.fill === fill && last.stop === frame) last.stop = frame + 1;
      else parts.push({ fill, start: frame, stop: frame + 1, low: style === "missing", text: `${faults[kind]?.[0] ?? ""}${id >= 0 ? `: ${name}` : ""}`, mark: section.data.follows && id >= 0 && before !== null && before !== id });
      if (id >= 0) before = id;
    });
    made.innerHTML = `<svg viewBox="0 0 ${count} 40" preserveAspectRatio="none" aria-hidden="true"></svg><i></i>`;
    const draw = (kind, values) => {
      const element = document.createElementNS(made.firstChild.namespaceURI, kind);
      for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
      made.firstChild.append(element);
      return element;
    };
    for (const { fill, start, stop, low, text, mark } of parts) {
      const title = document.createElementNS(made.firstChild.namespaceURI, "title");
      title.textContent = text;
      draw("rect", { x: start, y: low ? 14 : 4, width: stop - start, height: low ? 12 : 32, fill }).append(title);
      if (mark) draw("path", { class: "switch", d: `M${start} 0V40` });
    }
    return made;
  },

  // The patterns of faults, as the legend has them.
  patterns(count, width) {
    const made = document.createElement("div"), scale = `scale(${count / width} .91)`;
    const pattern = (style, colour, angle) => `<pattern id="${section.element.id}-${style}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="${scale} rotate(${angle})"><rect width="6" height="6" fill="${css(colour)}"/><rect width="2" height="6" fill="#fff8"/></pattern>`;
    made.innerHTML = `<svg width="0" height="0" aria-hidden="true"><defs>${[["missing", 45], ["extra", -45], ["mixed", 0], ["merged", 90], ["split", 45], ["partial", 0]].map(([style, angle]) => pattern(style, COLOURS[style], angle)).join("")}</defs></svg>`;
    made.firstChild.style.position = "absolute";
    return made.firstChild;
  },
};
