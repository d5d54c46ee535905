// Everything is readable without it: it only adds sorting, copying, buttons that print, and a slider where one of several
// parts is shown.
"use strict";
(() => {
  const value = (row, column, numeric) => {
    const text = row.cells[column].textContent.trim();
    if (!numeric) return text;
    const number = parseFloat(text.replaceAll(",", ""));
    return Number.isNaN(number) ? -Infinity : number;
  };
  const sort = (heading) => {
    const body = heading.closest("table").tBodies[0];
    const column = heading.cellIndex;
    const numeric = heading.classList.contains("number");
    const now = heading.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numeric;
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = Array.from(body.rows);
    rows.sort((a, b) => {
      const [x, y] = [value(a, column, numeric), value(b, column, numeric)];
      const order = numeric ? x - y || 0 : x.localeCompare(y, undefined, {numeric: true});
      return up ? order : -order;
    });
    body.append(...rows);
  };
  for (const heading of document.querySelectorAll("table.sortable thead th")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "sort";
    button.setAttribute("aria-label", "Sort by " + heading.textContent);
    button.addEventListener("click", () => sort(heading));
    heading.append(button);
  }
  const whole = document.getElementById("print-whole");
  if (whole) {
    const bar = document.createElement("div");
    bar.className = "printing";
    for (const [text, all] of [["Print everything", true], ["Print the page to sign", false]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => { whole.checked = all; print(); });
      bar.append(button);
    }
    // The box does the same without a script.
    whole.hidden = whole.nextElementSibling.hidden = true;
    whole.nextElementSibling.after(bar);
  }
  const copy = async (block, button) => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block);
      button.textContent = "Selected: press Ctrl+C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 4000);
  };
  for (const label of document.querySelectorAll(".code p")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", () => copy(label.nextElementSibling, button));
    label.append(button);
  }
  for (const [number, group] of document.querySelectorAll(".choices").entries()) {
    const choices = Array.from(group.children);
    const input = document.createElement("input");
    const label = document.createElement("label");
    input.type = "range";
    input.min = 0;
    input.max = choices.length - 1;
    input.id = "choice-" + number;
    label.htmlFor = input.id;
    const show = () => {
      for (const [place, choice] of choices.entries()) choice.hidden = place !== Number(input.value);
      const name = choices[input.value].dataset.choice;
      input.setAttribute("aria-valuetext", name);
      label.textContent = name;
    };
    input.value = Math.floor((choices.length - 1) / 2);
    input.addEventListener("input", show);
    group.before(label, input);
    show();
  }
})();
