"use strict";
// What every section uses: its data, streams that are inflated when needed, tables that sort and filter, keys.
const page = {
  data: JSON.parse(document.getElementById("data").textContent),
  keys: [],
  owner: null,
  used: null,

  // Run a section's script once the page is there; it sees its element and its data.
  section(id, script) {
    page.owner = document.getElementById(id);
    script({ element: page.owner, data: page.data[id] });
    page.owner = null;
  },

  // The bytes of a stream; nothing where the page has none of this name.
  bytes(name) {
    const found = document.querySelector(`script[data-stream="${CSS.escape(name)}"]`);
    return found && Uint8Array.from(atob(found.textContent), (letter) => letter.charCodeAt(0));
  },

  async inflated(name) {
    const stream = new Blob([page.bytes(name)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  },

  // Say to those who listen rather than look.
  say(text) { document.getElementById("said").textContent = text; },

  // Let the page count as loaded when this is done: a document that is still written delays it, which programs that
  // print the page wait for.
  async hold(work) {
    const frame = Object.assign(document.createElement("iframe"), { hidden: true });
    document.body.append(frame);
    frame.contentDocument?.open();
    try { await Promise.race([work, new Promise((resolve) => setTimeout(resolve, 10000))]); } finally {
      frame.contentDocument?.close();
      frame.remove();
    }
  },

  // Let keys (as KeyboardEvent.key names them) do something; `about` stands in the list of keys.
  // Where several sections have a key, it is that of the one that was used last.
  key(names, about, action) { page.keys.push({ names, about, action, owner: page.owner }); },
};

for (const kind of ["pointerdown", "focusin"]) document.addEventListener(kind, (event) => { page.used = event.target.closest("section") ?? page.used; });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range]), select, textarea, dialog *")) return;
  if (event.target.matches("input") && /^(Arrow|Home|End|Page)/.test(event.key)) return;  // a slider has these itself
  const known = page.keys.filter((one) => one.names.includes(event.key));
  const found = known.find((one) => one.owner === page.used) ?? known[0];
  if (found && found.action(event) !== false) event.preventDefault();
});

document.getElementById("help").onclick = () => {
  const dialog = document.getElementById("keys");
  dialog.querySelector("dl").replaceChildren(...[...new Map(page.keys.map((one) => [one.about, one])).values()].flatMap(({ names, about }) => {
    const term = document.createElement("dt"), text = document.createElement("dd");
    term.append(...names.map((name) => Object.assign(document.createElement("kbd"), { textContent: name === " " ? "space" : name })));
    text.textContent = about;
    return [term, text];
  }));
  dialog.showModal();
};
page.key(["?"], "this list", () => document.getElementById("help").click());

{
  const root = document.documentElement, button = document.getElementById("theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const shown = () => { button.textContent = dark() ? "Light" : "Dark"; };
  button.onclick = () => { root.dataset.theme = dark() ? "light" : "dark"; shown(); document.dispatchEvent(new Event("theme")); };
  shown();
}

// Tables: each header sorts, and a field above leaves the rows that hold all its words, or pass `column<0.5`.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  const names = heads.map((head) => head.textContent.trim());
  const valueOf = (row, column) => {
    const cell = row.cells[column], text = cell.dataset.value ?? cell.textContent.trim();
    return text === "" || text === "–" ? null : isNaN(text) ? text : Number(text);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.className = "sort";
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      const compared = (a, b) => a === null || b === null ? (a === null) - (b === null)
        : sign * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true }));
      body.append(...[...body.rows].sort((a, b) => compared(valueOf(a, column), valueOf(b, column))));
    };
  });
  const field = [...document.querySelectorAll("input[data-table]")].find((one) => one.dataset.table === table.id);
  const known = names.filter(Boolean).sort((a, b) => b.length - a.length).map((name) => name.replace(/[^\w\s]/g, "\\$&"));
  const bounded = new RegExp(`(${known.join("|")})([<>])(-?[\\d.]+)`, "gi");
  if (field) field.oninput = () => {
    const bounds = [...field.value.matchAll(bounded)].map(([, name, sign, end]) => [names.findIndex((one) => one.toLowerCase() === name.toLowerCase()), sign === "<" ? 1 : -1, Number(end)]);
    const words = field.value.replace(bounded, " ").toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of body.rows) {
      const within = bounds.every(([column, sign, end]) => valueOf(row, column) !== null && sign * (end - valueOf(row, column)) > 0);
      row.hidden = !within || !words.every((word) => row.textContent.toLowerCase().includes(word));
      left += !row.hidden;
    }
    page.say(`${left} of ${body.rows.length} rows`);
  };
}
page.key(["/"], "filter the table", () => {
  const fields = [...document.querySelectorAll("input[data-table]")], field = fields.find((one) => page.used?.contains(one)) ?? fields[0];
  if (field) { field.focus(); field.scrollIntoView({ block: "center" }); }
});

addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));

// Tables as CSV files.
for (const button of document.querySelectorAll("button[data-csv]")) button.onclick = () => {
  const table = document.getElementById(button.dataset.csv);
  const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const lines = [...table.rows].map((row) => [...row.cells].map((cell) => quoted(cell.dataset.value ?? cell.textContent.trim())).join(","));
  const link = Object.assign(document.createElement("a"), { download: `${button.dataset.csv}.csv`, href: URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" })) });
  link.click();
  URL.revokeObjectURL(link.href);
};
