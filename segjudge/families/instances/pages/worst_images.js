// Pictures are chosen by words on their masks: in the field, and by a category or a cell of the confusion elsewhere.
const figures = [...section.element.querySelectorAll(".sides")], field = section.element.querySelector("input");
const shown = () => figures.filter((figure) => !figure.hidden);

field.oninput = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const figure of figures) {
    const text = `${figure.dataset.words} ${figure.textContent}`.toLowerCase();
    figure.hidden = !words.every((word) => text.includes(word));
  }
  const more = section.element.querySelector("details");
  if (more && words.length) more.open = true;
  page.say(`${shown().length} of ${figures.length} pictures`);
};

const choose = (words) => {
  field.value = words;
  field.oninput();
  section.element.scrollIntoView();
  field.focus({ preventScroll: true });
};

const button = (cell, words) => {
  if (!words.toLowerCase().split(/\s+/).every((word) => figures.some((figure) => figure.dataset.words.toLowerCase().includes(word)))) return;
  const made = document.createElement("button");
  made.className = "chooser";
  made.title = `pictures with ${words}`;
  made.append(...cell.childNodes);
  made.onclick = () => choose(words);
  cell.append(made);
};
// With several splits the anchors of sections end with the split.
const split = section.element.id.slice("worst-images".length);
for (const cell of document.querySelectorAll("[data-choose], [id^=table-categories] tbody th")) {
  if (cell.closest("section").id.endsWith(split) && !cell.querySelector("button")) button(cell, cell.dataset.choose ?? cell.textContent);
}

const step = (by) => {
  const known = shown(), at = known.indexOf(document.activeElement);
  const next = known[at < 0 ? 0 : Math.min(Math.max(at + by, 0), known.length - 1)];
  if (!next) return;
  const more = next.closest("details");
  if (more) more.open = true;
  next.focus();
  next.scrollIntoView({ block: "start" });
};
page.key(["n"], "next picture", () => step(1));
page.key(["N"], "picture before", () => step(-1));
