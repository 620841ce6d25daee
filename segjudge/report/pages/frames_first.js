// The worst moment on the first screen, under the verdict: the truth, what was predicted, and what differs; of two
// methods what differs with each.
const first = (() => {
  let before = section.element;
  while (before && !before.matches(".verdict, .methods")) before = before.previousElementSibling;
  return before?.querySelector(".first");
})();
// A video plays so many frames before and after the worst one, each for so many milliseconds, and the worst one longer.
const AHEAD = 8, STEP = 250, LONG = 6;
// Pictures that are wider stand below each other.
const BROAD = 2.5;

async function showFirst() {
  if (!first) return;
  const moment = moments[Number(first.dataset.number)], faces = first.querySelector(".faces");
  if (form === "slices") {
    const rows = await Promise.all(methods.slice(0, 2).map(async (_, method) => [...(await slices.film(moment, document.createElement("div"), method)).children]));
    const several = rows.length > 1;
    faces.classList.toggle("paired", several);
    return faces.replaceChildren(...rows[0].flatMap((_, plane) => rows.map((row, method) => {
      const name = row[plane].dataset.plane.toLowerCase();
      return faceOf(row[plane], several ? `${methods[method]}${name && `, ${name}`}` : name, !several && plane === 0);
    })));
  }
  const shown = methods.slice(0, 2).map((_, number) => number), { stream } = sequences.find((one) => one.name === moment.sequence), about = await sequence(stream, shown);
  const object = about.objects.findIndex((one) => one.name === moment.label), method = shown.length - 1, worst = Math.max(0, about.frames.indexOf(moment.worst));
  const looks = ["truth", method ? "difference" : "prediction", "difference"].map((layer, place) => ({ method: place === 1 ? 0 : method, layer, object }));
  const names = ["truth", ...(method ? methods.slice(0, 2) : ["prediction", "difference"])];
  const frames = about.frames.map((_, frame) => frame).filter((frame) => frame === worst || (Math.abs(frame - worst) <= AHEAD && about.isDrawn?.has(frame) !== false));
  const parts = partsOf(about, frames, looks[2]), [, , share] = parts[0], [height, width] = about.size, fine = Math.ceil(480 / (share * width));
  faces.style.setProperty("--aspect", width / height);
  faces.classList.toggle("broad", width > BROAD * height);
  const canvases = looks.map((look) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: Math.round(fine * share * width), height: Math.round(fine * share * height) });
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${look.layer}: ${numbers(about, worst, look.method, object)}`);
    return canvas;
  });
  const draw = async (frame) => {
    await picture(stream, frame).ready;
    canvases.forEach((canvas, place) => {
      canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
      paint(canvas.getContext("2d"), about, frame, looks[place], parts[frames.indexOf(frame)]);
    });
  };
  await draw(worst);
  faces.replaceChildren(...canvases.map((canvas, place) => faceOf(canvas, names[place], place === 2)));
  if (frames.length > 1) run(frames, worst, draw);
}

function faceOf(canvas, text, isMain) {
  const made = document.createElement("div");
  if (isMain) made.className = "main";
  made.append(Object.assign(document.createElement("span"), { textContent: text }), canvas);
  return made;
}

// Play frames again and again, but stand still where less motion is asked for, until somebody wants it.
function run(frames, worst, draw) {
  const button = first.querySelector("[data-do=run]"), still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let timer = 0, place = frames.indexOf(worst), rest = 0, isSeen = true;
  new IntersectionObserver(([entry]) => { isSeen = entry.isIntersecting; }).observe(first);
  const step = () => {
    if (!isSeen || document.hidden || rest-- > 0) return;
    place = (place + 1) % frames.length;
    rest = frames[place] === worst ? LONG : 0;
    draw(frames[place]);
  };
  const set = (runs) => {
    clearInterval(timer);
    timer = runs ? setInterval(step, STEP) : 0;
    button.textContent = runs ? "Pause" : "Play";
  };
  button.hidden = false;
  button.onclick = () => set(!timer);
  addEventListener("beforeprint", () => { set(false); draw(worst); });
  set(!still);
}
