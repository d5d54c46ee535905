# Fitting: the command reads a private copy of the data frame, and this file
# never computes anything from it. Messages name columns, never cells.

refuse <- function(...) stop(paste0(...), call. = FALSE)

quoted <- function(names) paste0('"', names, '"', collapse = ", ")

tac_fit <- function(formula, data, bounds, epsilon, family, delta = 1e-6,
                    inference = TRUE, account = NULL, seed = NULL,
                    output = NULL) {
  variables <- formula_variables(formula, data)
  family <- family_name(family)
  folder <- tempfile("taciturn-")
  if (!dir.create(folder, mode = "0700")) refuse("tac_fit: no temporary folder can be made.")
  on.exit(unlink(folder, recursive = TRUE, force = TRUE), add = TRUE)
  before <- Sys.umask("077")
  on.exit(Sys.umask(before), add = TRUE)
  stated <- file.path(folder, "bounds.toml")
  write_bounds(bounds, variables$target, family, stated)
  table <- file.path(folder, "table.csv")
  write_table(data, table)
  place <- if (is.null(output)) file.path(folder, "model") else output
  arguments <- c(
    "fit", table, "--bounds", stated, "--target", variables$target,
    "--task", if (family %in% c("binomial", "multinomial")) "classify" else "regress",
    "--epsilon", number_text(epsilon), "--delta", number_text(delta),
    if (inference) "--inference",
    if (!is.null(variables$columns)) c("--columns", paste(variables$columns, collapse = ",")),
    if (!is.null(account)) c("--account", account),
    if (!is.null(seed)) c("--seed", number_text(seed)),
    "--output", place
  )
  run_command(arguments, folder)
  tac_read(file.path(place, "model.json"))
}

# A response and names of columns; everything else belongs into the bounds.
formula_variables <- function(formula, data) {
  if (!inherits(formula, "formula") || length(formula) != 3L) {
    refuse("formula: expected a response and columns, such as ill ~ age + sex.")
  }
  if (!is.data.frame(data)) refuse("data: expected a data frame.")
  if (!is.name(formula[[2L]])) refuse("formula: expected the name of a column on the left.")
  target <- as.character(formula[[2L]])
  columns <- if (identical(formula[[3L]], quote(.))) NULL else {
    stated <- attr(terms(formula, data = data[0L, , drop = FALSE]), "term.labels")
    gsub("^`|`$", "", stated)
  }
  unknown <- setdiff(c(target, columns), names(data))
  if (length(unknown)) {
    refuse("formula: expected columns of the data, got ", quoted(unknown), "; state powers and products in the bounds.")
  }
  if (any(grepl(",", columns, fixed = TRUE))) refuse("formula: expected names without commas; rename the column.")
  list(target = target, columns = columns)
}

family_name <- function(family) {
  if (is.function(family)) family <- family()
  link <- if (is.list(family)) family$link
  if (is.list(family)) family <- family$family
  links <- c(gaussian = "identity", binomial = "logit", multinomial = "logit", poisson = "log", Gamma = "log")
  if (!is.character(family) || length(family) != 1L || !family %in% names(links)) {
    refuse("family: expected one of ", quoted(names(links)), ".")
  }
  if (!is.null(link) && link != links[[family]]) {
    refuse("family: expected the link ", quoted(links[[family]]), " of ", family, "; name that one.")
  }
  family
}

# The bounds as a file of TOML: a copy of a file, or a named list.
write_bounds <- function(bounds, target, family, path) {
  kind <- switch(family, poisson = "count", Gamma = "amount", NULL)
  if (is.character(bounds) && length(bounds) == 1L) {
    if (!file.exists(bounds)) refuse("bounds: expected a file that exists, or a named list.")
    text <- readLines(bounds, warn = FALSE, encoding = "UTF-8")
    # The family is part of what the bounds state, and a wrong one would cost the budget.
    stated <- regmatches(text, regexpr("\\bkind\\s*=\\s*['\"](count|amount)['\"]", sub("#.*", "", text)))
    found <- if (length(stated)) gsub(".*['\"](count|amount)['\"]", "\\1", stated[1L]) else NULL
    if (!identical(found, kind)) {
      refuse("family: expected the one that the bounds state by kind in [target]; correct one of the two.")
    }
    # Files of categories stand beside the bounds.
    lists <- list.files(dirname(bounds), pattern = "[.]txt$", full.names = TRUE, ignore.case = TRUE)
    file.copy(lists, dirname(path))
    writeLines(enc2utf8(text), path, useBytes = TRUE)
    return(invisible(path))
  }
  if (!is.list(bounds) || is.null(names(bounds))) refuse("bounds: expected the path of a file, or a named list.")
  bounds$target <- c(list(name = target), bounds$target[setdiff(names(bounds$target), "name")])
  if (!is.null(kind)) bounds$target$kind <- kind
  sections <- vapply(names(bounds), function(name) toml_pair(name, bounds[[name]]), "")
  writeLines(enc2utf8(sections), path, useBytes = TRUE)
}

listed_keys <- c("classes", "categories", "parts", "missing_values", "list")

toml_pair <- function(name, value) {
  paste(toml_text(name), "=", if (name %in% listed_keys) toml_array(value) else toml_value(name, value))
}

toml_text <- function(text) as.character(jsonlite::toJSON(enc2utf8(as.character(text)), auto_unbox = TRUE))

toml_array <- function(value) {
  parts <- vapply(as.list(value), function(each) toml_value("", each), "")
  paste0("[", paste(parts, collapse = ", "), "]")
}

toml_value <- function(name, value) {
  if (is.list(value)) {
    if (length(value) && is.null(names(value))) refuse("bounds: expected names in the list ", quoted(name), ".")
    pairs <- vapply(names(value), function(key) toml_pair(key, value[[key]]), "")
    return(paste0("{", paste(pairs, collapse = ", "), "}"))
  }
  if (length(value) != 1L || is.na(value)) refuse("bounds: expected one value for ", quoted(name), ".")
  if (is.logical(value)) return(if (value) "true" else "false")
  if (inherits(value, "Date")) return(format(value))
  if (is.numeric(value)) number_text(value) else toml_text(value)
}

# A number with all of its digits.
number_text <- function(value) {
  if (!is.numeric(value) || length(value) != 1L || !is.finite(value)) refuse("expected a finite number.")
  if (value == trunc(value)) sprintf("%.0f", value) else formatC(value, digits = 17, format = "g")
}

# A CSV file with all digits of numbers, which write.csv rounds.
write_table <- function(data, path) {
  cells <- lapply(names(data), function(name) {
    column <- data[[name]]
    if (is.factor(column)) column <- as.character(column)
    if (inherits(column, "Date")) column <- format(column)
    plain <- is.numeric(column) || is.logical(column) || is.character(column)
    if (!plain || is.object(column) || !is.null(dim(column))) {
      refuse("column ", quoted(name), ": expected numbers, text, factors, dates or truth values; convert it.")
    }
    exact <- function() formatC(column, digits = 17, format = "g", width = 1)
    text <- if (is.double(column)) exact() else enc2utf8(as.character(column))
    if (is.character(column)) text <- csv_text(text)
    ifelse(is.na(column), "", text)
  })
  lines <- if (nrow(data)) do.call(paste, c(cells, sep = ",")) else character()
  header <- paste(csv_text(enc2utf8(names(data))), collapse = ",")
  writeLines(c(header, lines), path, useBytes = TRUE)
}

csv_text <- function(text) paste0('"', gsub('"', '""', text, fixed = TRUE), '"')

# Only sentences of the command are shown; anything else it prints is not.
run_command <- function(arguments, folder) {
  command <- getOption("taciturn.command", Sys.which("taciturn"))
  if (!nzchar(Sys.which(command))) {
    refuse("taciturn: the command is not there; install it, or set options(taciturn.command = \"...\").")
  }
  files <- file.path(folder, c("out.txt", "err.txt"))
  code <- suppressWarnings(system2(command, shQuote(arguments), stdout = files[1L], stderr = files[2L]))
  said <- readLines(files[2L], warn = FALSE, encoding = "UTF-8")
  for (note in grep("^note: ", said, value = TRUE)) message(note)
  if (code == 0L || code == 3L) return(invisible())
  sentences <- grep("^taciturn: ", said, value = TRUE)
  if (!length(sentences)) sentences <- "taciturn: the command failed without a sentence."
  refuse(paste(sentences, collapse = "\n"))
}
