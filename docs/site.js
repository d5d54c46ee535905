// Wide tables, code and formulas scroll by themselves; people who use a keyboard have to be able to reach them, also after
// a window became narrower.
addEventListener("load", () => {
  const sizes = new ResizeObserver((changed) => {
    for (const { target: region } of changed) {
      if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
      else region.removeAttribute("tabindex");
    }
  });
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, pre > code, .arithmatex")) sizes.observe(region);
});
