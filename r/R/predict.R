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
  if (length(classes) == 2L) {
    margins <- margins[, 1L]
    return(switch(type, link = margins, class = classes[1L + (margins > 0)], response = plogis(margins)))
  }
  # Of equal margins the first class counts.
  if (type == "class") return(classes[apply(margins, 1L, which.max)])
  colnames(margins) <- as.character(classes)
  if (type == "link") return(margins)
  shares <- exp(margins - apply(margins, 1L, max))
  shares / rowSums(shares)
}

# A mean in the units of the target, within its bounds.
mean_of <- function(model, margins) {
  ends <- unlist(model$parameters$y_bounds)
  loss <- model$parameters$loss
  if (is.null(loss) || !loss %in% c("poisson", "gamma")) return(clip(margins, ends[1L], ends[2L]))
  if (!is.null(model$parameters$exposure_bound)) unsupported("models with an exposure")
  least <- if (loss == "gamma") ends[1L] else max(ends[1L], 2^-16 * ends[2L])
  exp(clip(margins, log(least), log(ends[2L])))
}

clip <- function(values, lower, upper) pmin(pmax(values, lower), upper)

unsupported <- function(...) refuse("model: ", ..., " are not supported in R; predict in Python.")

# One row for each output.
coefficient_rows <- function(model) {
  found <- if (model$task == "regress") list(model$coefficients) else model$coefficients
  do.call(rbind, lapply(found, function(row) as.numeric(unlist(row))))
}

encode <- function(model, data, used) {
  bounds <- model$bounds
  names <- unlist(bounds$order)
  widths <- vapply(names, function(name) length(own_features(bounds, name)), 0L)
  parsed <- lapply(unlist(bounds$terms$list), parse_term, bounds = bounds)
  widths <- c(widths, vapply(parsed, function(term) prod(vapply(term, function(f) f$width, 0)), 0))
  if (sum(widths) != length(model$features)) unsupported("some features of this model")
  owner <- rep(seq_along(widths), widths)
  needed <- unique(owner[used])
  features <- matrix(0, nrow(data), length(owner))
  columns <- list()
  sources <- unlist(lapply(parsed[needed[needed > length(names)] - length(names)], lapply, `[[`, "name"))
  for (at in seq_along(names)) {
    if (!at %in% needed && !names[at] %in% sources) next
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
  if (is.null(column)) utils::modifyList(list(type = "number"), bounds$defaults) else column
}

fill_of <- function(bounds, name) {
  fill <- bounds$missing[[name]]
  if (is.null(fill)) return(NULL)
  if (is.list(fill)) fill else list(value = fill)
}

# A number, or the days since a date.
is_number <- function(column) column$type == "number" || (column$type == "date" && is.null(column$parts))

# Names of the features of a column.
own_features <- function(bounds, name) {
  column <- stated_column(bounds, name)
  own <- switch(column$type,
    number = , boolean = name,
    category = paste0(name, "=", unlist(column$categories)),
    date = if (is_number(column)) name else unsupported("parts of dates, such as of ", quoted(name), ",")
  )
  if (isTRUE(fill_of(bounds, name)$indicator)) c(own, paste(name, "missing")) else own
}

# The features of a column in [-1, 1], and its values in their own units for terms.
read_column <- function(bounds, name, data) {
  column <- stated_column(bounds, name)
  if (!name %in% names(data)) refuse("newdata: expected a column ", quoted(name), ", got a data frame without it.")
  if (column$type == "date") unsupported("predictions for dates, such as ", quoted(name), ",")
  if (isTRUE(column$censored) || length(column$missing_values) || length(bounds$table$missing_values)) {
    unsupported("censored numbers and missing_values, as of ", quoted(name), ",")
  }
  cells <- data[[name]]
  if (is.factor(cells)) cells <- as.character(cells)
  if (is.object(cells) || !is.atomic(cells) || !is.null(dim(cells))) {
    refuse("column ", quoted(name), ": expected numbers, text, factors or truth values, got something else.")
  }
  gaps <- is.na(cells)
  read <- switch(column$type, number = number_cells, boolean = truth_cells, category = category_cells)
  raw <- read(name, cells, column)
  fill <- fill_of(bounds, name)
  if (is.null(fill) && any(gaps)) {
    refuse("column ", quoted(name), ": expected a value in every row, got missing ones; leave these rows out.")
  }
  ends <- if (column$type == "number") c(column$lower, column$upper) else c(-1, 1)
  middle <- is.list(fill) && is.null(fill$value)
  raw[gaps, ] <- rep(filled(column, fill, ends, ncol(raw)), each = sum(gaps))
  scaled <- if (column$type == "number") to_unit_range(raw, ends) else raw
  own <- list(values = raw, ends = ends, gaps = if (middle) gaps else logical(length(gaps)))
  own$features <- if (isTRUE(fill$indicator)) cbind(scaled, as.numeric(gaps)) else scaled
  own
}

filled <- function(column, fill, ends, width) {
  if (is.null(fill$value)) return(rep(ends[1L] / 2 + ends[2L] / 2, each = width))
  if (column$type != "category") return(as.numeric(fill$value))
  as.numeric(normal_text(unlist(column$categories)) == normal_text(as.character(fill$value)))
}

to_unit_range <- function(values, ends) {
  centre <- ends[1L] / 2 + ends[2L] / 2
  half <- max(ends[2L] - centre, centre - ends[1L])
  scaled <- (values - centre) / half
  scaled[values <= ends[1L]] <- -1
  scaled[values >= ends[2L]] <- 1
  scaled
}

number_cells <- function(name, cells, column) {
  if (is.character(cells)) refuse("column ", quoted(name), ": expected numbers, got text; convert it first.")
  matrix(as.numeric(cells))
}

truths <- list(yes = c("true", "1", "yes", "y", "ja", "j", "oui", "si", "s\u00ed", "sim"),
               no = c("false", "0", "no", "n", "nein", "non", "n\u00e3o", "nao", "nee"))

truth_cells <- function(name, cells, column) {
  text <- if (is.character(cells)) tolower(trimws(cells)) else normal_text(cells)
  found <- ifelse(text %in% truths$yes, 1, ifelse(text %in% truths$no, 0, NA))
  if (any(is.na(found) & !is.na(cells))) {
    refuse("column ", quoted(name), ": expected true and false, or 1 and 0, or yes and no, got other values.")
  }
  matrix(found)
}

# An unlisted category gives zeros.
category_cells <- function(name, cells, column) {
  group <- if (is.null(column$group)) .Machine$integer.max else column$group
  listed <- substr(normal_text(unlist(column$categories)), 1L, group)
  found <- match(substr(normal_text(cells), 1L, group), listed)
  block <- matrix(0, length(cells), length(listed))
  known <- which(!is.na(cells) & !is.na(found))
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
