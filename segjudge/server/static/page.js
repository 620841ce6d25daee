// Conveniences: pages refresh themselves, and an upload shows its progress. Every page works without them.
"use strict";

function renew(main) {
  const every = Number(main.dataset.live);
  if (!every) return;
  setTimeout(async () => {
    const busy = main.contains(document.activeElement) && document.activeElement.matches("input, textarea, button");
    if (!document.hidden && !busy) {
      try {
        const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
        if (answer.ok && answer.url === location.href) replace(main, await answer.text());
      } catch (error) {
        say("The rehearsal does not respond; this page shows its last answer.");
      }
    }
    renew(main);
  }, every);
}

function replace(main, text) {
  const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("main");
  if (!fresh) return;
  if (fresh.dataset.live) main.dataset.live = fresh.dataset.live;
  else delete main.dataset.live;
  const opened = [...main.querySelectorAll("details")].map((one) => one.open);
  fresh.querySelectorAll("details").forEach((one, k) => { one.open = opened[k] ?? one.open; });
  // Ignore the signatures in files' URLs, which change with every answer.
  const plain = (node) => node.innerHTML.replace(/expires=\d+&amp;signature=[\w-]+/g, "");
  if (plain(fresh) === plain(main)) return;
  const told = (node) => new Set([...node.querySelectorAll("[data-said]")].map((one) => one.dataset.said));
  const before = told(main);
  const scrolled = [...main.querySelectorAll(".wide, pre")].map((one) => [one.scrollLeft, one.scrollTop]);
  const focused = main.contains(document.activeElement) ? [...main.querySelectorAll("a, .wide, pre")].indexOf(document.activeElement) : -1;
  for (const one of main.querySelectorAll(":checked[name][value]")) {
    const same = fresh.querySelector(`input[name="${CSS.escape(one.name)}"][value="${CSS.escape(one.value)}"]`);
    if (same) same.checked = true;
  }
  main.replaceChildren(...fresh.childNodes);
  main.querySelectorAll(".wide, pre").forEach((one, k) => { if (scrolled[k]) [one.scrollLeft, one.scrollTop] = scrolled[k]; });
  if (focused >= 0) main.querySelectorAll("a, .wide, pre")[focused]?.focus();
  const news = [...told(main)].filter((one) => !before.has(one));
  if (news.length) say(news.slice(0, 3).join(". "));
}

function say(text) {
  const line = document.getElementById("said");
  if (line.textContent !== text) line.textContent = text;
}

function upload(form) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const bar = form.querySelector("progress"), wrong = form.querySelector(".wrong"), button = form.querySelector("button");
    const request = new XMLHttpRequest();
    const fail = (text) => { wrong.textContent = text; wrong.hidden = false; bar.hidden = true; button.disabled = false; };
    request.open("POST", form.action);
    request.upload.onprogress = (step) => { if (step.lengthComputable) bar.value = 100 * step.loaded / step.total; };
    request.onload = () => {
      if (request.status < 400) { location.assign(request.responseURL); return; }
      const page = new DOMParser().parseFromString(request.responseText, "text/html");
      fail(page.querySelector("main p")?.textContent || `The rehearsal rejected the upload (${request.status}).`);
    };
    request.onerror = () => fail("The upload was interrupted. Is the file larger than 200 MB, or has the rehearsal ended?");
    wrong.hidden = true; bar.hidden = false; button.disabled = true;
    request.send(new FormData(form));
  });
}

// Offer only the file types that the chosen phase accepts.
function offer(form) {
  const file = form.querySelector("input[type=file]");
  form.addEventListener("change", (event) => {
    if (event.target.name === "phase") file.accept = event.target.dataset.types;
  });
}

document.querySelectorAll("main[data-live]").forEach(renew);
document.querySelectorAll("form[data-upload]").forEach((form) => { upload(form); offer(form); });
