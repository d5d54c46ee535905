# Terms of a design: powers, logarithms, splines and products of columns.

term_patterns <- c(
  spline = "^spline\\((.+?)((?:\\s*,\\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)+)\\s*\\)$",
  log = "^log\\((.+)\\)$", power = "^(.+?)\\s*\\^\\s*([0-9]+)$"
)

# The factors of a term; columns with colons in their names are refused.
parse_term <- function(text, bounds) {
  pieces <- trimws(strsplit(text, ":", fixed = TRUE)[[1L]])
  lapply(pieces, function(piece) {
    known <- unlist(bounds$order)
    if (piece %in% known) return(factor_of(piece, "column", numeric(), bounds))
    for (kind in names(term_patterns)) {
      found <- regmatches(piece, regexec(term_patterns[[kind]], piece, perl = TRUE))[[1L]]
      if (length(found) && trimws(found[2L]) %in% known) {
        numbers <- if (kind == "log") numeric() else as.numeric(strsplit(gsub("^[ ,]+", "", found[3L]), ",")[[1L]])
        return(factor_of(trimws(found[2L]), kind, numbers, bounds))
      }
    }
    unsupported("terms such as ", quoted(text))
  })
}

factor_of <- function(name, kind, numbers, bounds) {
  column <- stated_column(bounds, name)
  width <- if (column$type == "category") length(column$categories) else 1
  if (kind == "spline") width <- length(numbers) - 2
  list(name = name, kind = kind, numbers = numbers, column = column, width = width)
}

# One column for each feature of a factor, in the units of its column.
factor_values <- function(factor, values) {
  column <- factor$column
  if (!is_number(column)) return(values)
  x <- clip(values[, 1L], column$lower, column$upper)
  power <- function() Reduce(`*`, rep(list(x), factor$numbers))
  found <- switch(factor$kind, column = x, log = log(x), power = power(), spline = spline_values(x, factor$numbers))
  matrix(found, nrow(values))
}

spline_values <- function(x, knots) {
  n <- length(knots)
  last <- knots[n]
  before <- knots[n - 1L]
  scale <- (last - knots[1L])^2
  inside <- pmin(x, last)
  beyond <- pmax(x, last) - last
  vapply(knots[seq_len(n - 2L)], function(knot) {
    first <- pmax(inside - knot, 0)
    second <- pmax(inside - before, 0)
    cubes <- first^3 - (last - knot) / (last - before) * second^3
    cubes / scale + 3 * (last - knot) * (before - knot) / scale * beyond
  }, x)
}

# The range of each feature of a factor, as its values at the ends of the column.
factor_ranges <- function(factor) {
  column <- factor$column
  if (!is_number(column)) return(rep(list(c(0, 1)), factor$width))
  ends <- factor_values(factor, matrix(c(column$lower, column$upper)))
  even <- factor$kind == "power" && factor$numbers %% 2 == 0 && column$lower < 0 && column$upper > 0
  lapply(seq_len(ncol(ends)), function(j) c(min(if (even) 0, ends[, j]), max(ends[, j])))
}

# The last factor changes fastest.
products <- function(first, second, multiply) {
  unlist(lapply(first, function(one) lapply(second, function(other) multiply(one, other))), recursive = FALSE)
}

term_ranges <- function(term) {
  if (!any(vapply(term, function(f) is_number(f$column), TRUE))) {
    return(rep(list(c(-1, 1)), prod(vapply(term, function(f) f$width, 0))))
  }
  multiply <- function(one, other) range(outer(one, other))
  Reduce(function(first, second) products(first, second, multiply), lapply(term, factor_ranges))
}

term_features <- function(term, columns) {
  values <- lapply(term, function(factor) asplit(factor_values(factor, columns[[factor$name]]$values), 2L))
  blocks <- Reduce(function(first, second) products(first, second, `*`), values)
  ranges <- term_ranges(term)
  gaps <- Reduce(`|`, lapply(term, function(factor) columns[[factor$name]]$gaps))
  vapply(seq_along(blocks), function(j) {
    block <- as.numeric(blocks[[j]])
    block[gaps] <- ranges[[j]][1L] / 2 + ranges[[j]][2L] / 2
    to_unit_range(block, ranges[[j]])
  }, numeric(length(gaps)))
}
