// Strips: a bar for each frame of an object, as high as its loss, in its family's colour and its kind's pattern.
const FAMILY = { time: "merged", place: "mixed", shape: "inexact" };
// The angles of stripes, as in the legend; a kind without one is filled evenly.
const STRIPES = { late: -45, swap: -45, confused: -45, drift: 45, part: 45, leak: 0 };

// The patterns of all strips, which have a unit for each frame and are `width` pixels wide.
function patterns(count, width) {
  const pattern = (name, ground, ink, angle) => `<pattern id="${section.element.id}-${name}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="scale(${count / width} .91) rotate(${angle ?? 0})"><rect width="6" height="6" fill="${ground}"/>${angle === undefined ? "" : `<rect width="2" height="6" fill="${ink}"/>`}</pattern>`;
  const made = document.createElement("div");
  made.innerHTML = `<svg width="0" height="0" aria-hidden="true"><defs>${kinds.map(([kind, family]) => pattern(kind, css(COLOURS[FAMILY[family]]), "#fff8", STRIPES[kind])).join("")}${pattern("absent", "none", "#8886", 45)}</defs></svg>`;
  made.firstChild.style.position = "absolute";
  return made.firstChild;
}

// The bars of one kind, as one path.
function bars(one, kind) {
  return one.at.map((frame, k) => kindOf(one, k) === kind ? `M${frame} 40V${(40 * (1 - one.loss[k])).toFixed(1)}h1V40z` : "").join("");
}

// One strip, with J and F as lines; where the object is absent it is hatched.
function strip(one, count, go) {
  const made = document.createElement("div"), fill = (name) => `url(#${section.element.id}-${name})`;
  made.className = "strip";
  const line = (values) => values.map((value, k) => `${k && one.at[k] === one.at[k - 1] + 1 ? "L" : "M"}${one.at[k] + .5} ${(40 * (1 - value / scale)).toFixed(1)}`).join("");
  const absent = one.at.map((frame, k) => one.kinds[k] === -1 || kinds[one.kinds[k]]?.[0] === "ghost" ? `M${frame} 0V40h1V0z` : "").join("");
  const areas = [["absent", absent], ...kinds.map(([name], kind) => [name, bars(one, kind)])];
  made.innerHTML = `<svg viewBox="0 0 ${count} 40" preserveAspectRatio="none" aria-hidden="true">${areas.map(([name, path]) => path && `<path class="area" fill="${fill(name)}" d="${path}"/>`).join("")}<path class="j" d="${line(one.j)}"/><path class="f" d="${line(one.f)}"/></svg><i></i>`;
  made.onclick = (event) => {
    const box = made.getBoundingClientRect();
    go(Math.floor((event.clientX - box.left) / box.width * count));
  };
  return made;
}
