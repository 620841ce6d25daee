/* Tables that are wider than the page are scrolled by the keyboard too. */
addEventListener("load", () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap"))
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
});
