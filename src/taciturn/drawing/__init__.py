"""Charts as inline SVG, elements of HTML, and numbers as text, for pages and notebooks."""
