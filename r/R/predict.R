# Predictions from model.json alone: cells become features in [-1, 1] by the
# stated bounds, one record at a time, exactly as in Python.

predict.tac_fit <- function(object, newdata, type = c("response", "link", "class"), ...) {
  type <- match.arg(type)
  model <- object$model
  if (missing(newdata) || !is.data.frame(newdata)) refuse("newdata: expected a data frame.")
  coefficients <- coefficient_rows(model)
  features <- encode(model, newdata, colSums(coefficients != 0) > 0)
  margins <- features %*% t(coefficients)
  margins <- margins + rep(unlist(model$intercept), each = nrow(margins))
  if (type == "class" && model$task != "classify") refuse("type: expected \"response\" or \"link\" for a regression.")
  if (model$task == "regress") {
    return(if (type == "link") margins[, 1L] else mean_of(model, margins[, 1L]))
  }
  classes <- unlist(model$classes)
  if (type == "link") return(if (length(classes) == 2L) margins[, 1L] else named(margins, classes))
  if (length(classes) == 2L) {
    return(if (type == "class") classes[1L + (margins[, 1L] > 0)] else plogis(margins[, 1L]))
  }
  if (type == "class") {
    # A missing row has no class; of equal margins the first class counts.
    best <- apply(margins, 1L, function(row) if (anyNA(row)) NA_integer_ else which.max(row))
    return(classes[best])
  }
  shares <- exp(margins - apply(margins, 1L, max))
  named(shares / rowSums(shares), classes)
}

named <- function(margins, classes) {
  colnames(margins) <- as.character(classes)
  margins
}

# A mean in the units of the target, within its bounds.
mean_of <- function(model, margins) {
  ends <- unlist(model$parameters$y_bounds)
  loss <- model$parameters$loss
  if (is.null(loss) || !loss %in% c("poisson", "gamma")) return(clip(margins, ends[1L], ends[2L]))
  if (!is.null(model$parameters$exposure_bound)) refuse("model: models with an exposure are not supported in R; predict in Python.")
  least <- if (loss == "gamma") ends[1L] else max(ends[1L], 2^-16 * ends[2L])
  exp(clip(margins, log(least), log(ends[2L])))
}

clip <- function(values, lower, upper) pmin(pmax(values, lower), upper)

# One row for each output.
coefficient_rows <- function(model) {
  found <- model$coefficients
  if (model$task == "regress") found <- list(found)
  do.call(rbind, lapply(found, function(row) as.numeric(unlist(row))))
}

encode <- function(model, data, used) {
  bounds <- model$bounds
  names <- unlist(bounds$order)
  widths <- vapply(names, function(name) length(own_features(bounds, name)), 0L)
  parsed <- lapply(unlist(bounds$terms$list), parse_term, bounds = bounds)
  widths <- c(widths, vapply(parsed, function(term) prod(vapply(term, function(f) f$width, 0)), 0))
  if (sum(widths) != length(model$features)) refuse("model: features that R does not know; predict in Python.")
  owner <- rep(seq_along(widths), widths)
  needed <- unique(owner[used])
  features <- matrix(0, nrow(data), length(owner))
  columns <- list()
  for (at in seq_along(names)) {
    of_terms <- unlist(lapply(parsed[needed[needed > length(names)] - length(names)], function(term) lapply(term, `[[`, "name")))
    if (!at %in% needed && !names[at] %in% of_terms) next
    column <- read_column(bounds, names[at], data)
    columns[[names[at]]] <- column
    features[, owner == at] <- column$features
  }
  for (at in seq_along(parsed)) {
    place <- length(names) + at
    if (place %in% needed) features[, owner == place] <- term_features(parsed[[at]], columns)
  }
  features
}

stated_column <- function(bounds, name) {
  column <- bounds$columns[[name]]
  if (is.null(column)) {
    column <- bounds$defaults
    if (is.null(column$type)) column$type <- "number"
  }
  column
}

fill_of <- function(bounds, name) {
  fill <- bounds$missing[[name]]
  if (is.null(fill)) return(NULL)
  if (is.list(fill)) list(value = fill$value, indicator = isTRUE(fill$indicator)) else list(value = fill, indicator = FALSE)
}

# How many features a column has, by name.
own_features <- function(bounds, name) {
  column <- stated_column(bounds, name)
  own <- switch(column$type,
    number = , boolean = name,
    category = paste0(name, "=", unlist(column$categories)),
    refuse("column ", quoted(name), ": columns of type ", column$type, " are not supported in R; predict in Python.")
  )
  if (isTRUE(fill_of(bounds, name)$indicator)) c(own, paste(name, "missing")) else own
}

# The features of a column in [-1, 1], and its values in their own units for terms.
read_column <- function(bounds, name, data) {
  column <- stated_column(bounds, name)
  if (!name %in% names(data)) refuse("newdata: expected a column ", quoted(name), ", got a data frame without it.")
  if (isTRUE(column$censored) || length(column$missing_values) || length(bounds$table$missing_values)) {
    refuse("column ", quoted(name), ": censored numbers and missing_values are not supported in R; predict in Python.")
  }
  cells <- data[[name]]
  if (is.factor(cells)) cells <- as.character(cells)
  if (is.object(cells) || !is.atomic(cells) || !is.null(dim(cells))) refuse("column ", quoted(name), ": expected numbers, text, factors or truth values.")
  gaps <- is.na(cells)
  raw <- switch(column$type, number = number_cells(name, cells), boolean = truth_cells(name, cells), category = category_cells(column, cells, gaps))
  fill <- fill_of(bounds, name)
  if (is.null(fill) && any(gaps)) {
    refuse("column ", quoted(name), ": expected a value in every row, got missing ones; say in [missing] of the bounds what to fill in, or leave the rows out.")
  }
  ends <- if (column$type == "number") c(column$lower, column$upper) else c(-1, 1)
  middle <- is.list(fill) && is.null(fill$value)
  if (any(gaps)) raw[gaps, ] <- filled(column, fill, ends, ncol(raw))
  scaled <- if (column$type == "number") to_unit_range(raw, ends) else raw
  own <- list(values = raw, ends = ends, gaps = if (middle) gaps else logical(length(gaps)))
  own$features <- if (isTRUE(fill$indicator)) cbind(scaled, as.numeric(gaps)) else scaled
  own
}

filled <- function(column, fill, ends, width) {
  if (is.null(fill$value)) return(rep(ends[1L] / 2 + ends[2L] / 2, each = width))
  if (column$type != "category") return(as.numeric(fill$value))
  rep(as.numeric(normal_text(unlist(column$categories)) == normal_text(as.character(fill$value))), each = 1L)
}

to_unit_range <- function(values, ends) {
  centre <- ends[1L] / 2 + ends[2L] / 2
  half <- max(ends[2L] - centre, centre - ends[1L])
  scaled <- (clip(values, ends[1L], ends[2L]) - centre) / half
  scaled[values <= ends[1L]] <- -1
  scaled[values >= ends[2L]] <- 1
  scaled
}

number_cells <- function(name, cells) {
  if (!is.numeric(cells) && !is.logical(cells)) refuse("column ", quoted(name), ": expected numbers, got text; convert it first.")
  matrix(as.numeric(cells))
}

truths <- list(yes = c("true", "1", "yes", "y", "ja", "j", "oui", "si", "s\u00ed", "sim"),
               no = c("false", "0", "no", "n", "nein", "non", "n\u00e3o", "nao", "nee"))

truth_cells <- function(name, cells) {
  text <- if (is.character(cells)) tolower(trimws(cells)) else normal_text(cells)
  found <- ifelse(text %in% truths$yes, 1, ifelse(text %in% truths$no, 0, NA))
  if (any(is.na(found) & !is.na(cells))) refuse("column ", quoted(name), ": expected true and false, or 1 and 0, or yes and no, got other values.")
  matrix(found)
}

# An unlisted category gives zeros.
category_cells <- function(column, cells, gaps) {
  group <- if (is.null(column$group)) .Machine$integer.max else column$group
  listed <- substr(normal_text(unlist(column$categories)), 1L, group)
  found <- match(substr(normal_text(cells), 1L, group), listed)
  block <- matrix(0, length(cells), length(listed))
  known <- which(!gaps & !is.na(found))
  block[cbind(known, found[known])] <- 1
  block
}

# "1.0", 1 and 1L are one text, and so are "TRUE" and true.
normal_text <- function(values) {
  if (is.logical(values)) return(ifelse(values, "true", "false"))
  if (is.numeric(values)) return(vapply(values, shortest, ""))
  text <- ifelse(tolower(values) %in% c("true", "false"), tolower(values), values)
  decimal <- grepl("^-?(0|[1-9][0-9]*)[.][0-9]+$", text)
  text[decimal] <- vapply(as.numeric(text[decimal]), shortest, "")
  text
}

shortest <- function(value) {
  if (is.na(value)) return(NA_character_)
  if (value == trunc(value) && abs(value) < 2^53) return(sub("^-0$", "0", sprintf("%.0f", value)))
  for (digits in 1:17) {
    text <- format(value, digits = digits, scientific = FALSE, trim = TRUE)
    if (as.numeric(text) == value) break
  }
  text
}
