// Wide tables, code and formulas scroll by themselves; people who use a keyboard have to be able to reach them.
addEventListener("load", () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, pre > code, .arithmatex")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
  }
});
