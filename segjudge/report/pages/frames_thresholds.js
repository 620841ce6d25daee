// Other thresholds than those of the metric: from which overlap masks match, and from which score they count.
const thresholds = { overlap: null, score: null };
const areMoved = () => thresholds.overlap !== null || thresholds.score !== null;
// The middle of the scale, where the sliders begin.
const HALF = .5;

// The masks of a frame that count, and which of them match: each has one partner, the highest scores choose first.
function rematch(side, frame) {
  const counts = (id) => thresholds.score === null || side.scores[id] >= thresholds.score;
  const pairs = side.overlaps[frame].filter(([id, , overlap]) => counts(id) && overlap >= (thresholds.overlap ?? HALF));
  pairs.sort(([a, , first], [b, , second]) => (side.scores.length ? side.scores[b] - side.scores[a] : 0) || second - first);
  const truthOf = new Map(), idOf = new Map();
  for (const [id, truth] of pairs) if (!truthOf.has(id) && !idOf.has(truth)) { truthOf.set(id, truth); idOf.set(truth, id); }
  return { counts, truthOf, idOf };
}

// The style of a pixel: what the truth and the prediction have there.
function restyle({ truthOf }, truth, id) {
  if (truth !== undefined && id !== undefined) return truthOf.get(id) === truth ? ["right"] : ["missing", "extra"];
  return truth !== undefined ? ["missing"] : id !== undefined ? ["extra"] : [];
}

function describeMatches(about) {
  const side = about.predicted.get(at.methods.at(-1));
  if (!areMoved() || !side) return "";
  const { counts, truthOf } = rematch(side, at.frame), [wanted, all] = side.present[at.frame];
  const sent = all.filter(counts).length, from = [];
  if (thresholds.overlap !== null) from.push(`${section.data.threshold} ${thresholds.overlap.toFixed(2)}`);
  if (thresholds.score !== null) from.push(`score ${thresholds.score.toFixed(2)}`);
  return `From ${from.join(" and ")}: ${truthOf.size} of ${wanted} matched, ${sent - truthOf.size} surplus.`;
}

function offerThresholds() {
  for (const name of ["overlap", "score"]) {
    const slider = part(name);
    if (slider) slider.oninput = () => { thresholds[name] = Number(slider.value); layer("difference"); };
  }
  const reset = part("scored");
  if (reset) reset.onclick = () => { thresholds.overlap = thresholds.score = null; fitThresholds(at.loaded); draw(); };
}

// The sliders of a sequence: scores between its lowest and its highest.
function fitThresholds(about) {
  const slider = part("score"), scores = [...about.predicted.values()].flatMap((side) => side.scores ?? []);
  if (slider) {
    slider.parentElement.hidden = new Set(scores).size < 2;
    slider.min = Math.min(...scores);
    slider.max = Math.max(...scores);
    slider.step = (slider.max - slider.min) / 100 || 1;
    slider.value = thresholds.score ?? slider.min;
  }
  if (part("overlap")) part("overlap").value = thresholds.overlap ?? HALF;
}

function showThresholds(about) {
  if (!part("overlap")) return;
  const said = (value) => value === null ? "as scored" : value.toFixed(2);
  for (const name of ["overlap", "score"]) part(name)?.setAttribute("aria-valuetext", said(thresholds[name]));
  part("matched").textContent = describeMatches(about);
  part("scored").hidden = !areMoved();
}
