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

// Filmstrips of the worst moments: a frame before, the worst one, and a frame after, with what differs.
async function filmstrips(around) {
  const method = methods.slice(0, 2).length - 1;
  for (const moment of moments) {
    const { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream, [method]);
    const face = { method, layer: "difference", object: about.objects.findIndex((one) => one.name === moment.label) };
    const worst = about.frames.indexOf(moment.worst), last = about.frames.length - 1;
    const places = [...new Set([worst - around, worst, worst + around].map((frame) => Math.max(0, Math.min(last, frame))))];
    const near = partOf(about, worst, face), film = document.createElement("span");
    film.className = "film";
    for (const frame of places) {
      const canvas = document.createElement("canvas"), [height, width] = about.size;
      canvas.width = 240; canvas.height = Math.max(1, Math.round(240 * height / width));
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", numbers(about, frame, method, face.object));
      await picture(stream, frame).ready;
      paint(canvas.getContext("2d"), about, frame, face, near);
      film.append(canvas);
    }
    section.element.querySelector(`[data-moment="${moment.number}"]`).prepend(film);
  }
}
