# Prints the predictions of every case in a folder: rows of numbers with all of their digits, or labels.
arguments <- commandArgs(trailingOnly = TRUE)
for (file in list.files(arguments[1], pattern = "[.]R$", full.names = TRUE)) source(file)
for (case in list.dirs(arguments[2], recursive = FALSE)) {
  object <- tac_read(case)
  table <- read.csv(file.path(case, "table.csv"), check.names = FALSE, na.strings = "NA")
  for (type in c("response", "link", if (object$model$task == "classify") "class")) {
    predicted <- predict(object, table, type = type)
    lines <- if (is.numeric(predicted) && type != "class") {
      apply(as.matrix(predicted), 1, function(row) paste(sprintf("%.17g", row), collapse = ","))
    } else as.character(predicted)
    writeLines(lines, file.path(case, paste0(type, ".txt")))
  }
  writeLines(sprintf("%s,%.17g", names(coef(object)), coef(object)), file.path(case, "coef.txt"))
  if (!is.null(object$model$inference)) {
    tidied <- tidy.tac_fit(object)
    writeLines(do.call(paste, c(lapply(tidied[c("estimate", "std.error", "p.value", "conf.low", "conf.high")], function(x) sprintf("%.17g", x)), sep = ",")), file.path(case, "tidy.txt"))
  }
}
