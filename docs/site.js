// The theme wraps wide tables in regions that scroll; people who use a keyboard have to be able to reach them.
addEventListener("load", () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
});
