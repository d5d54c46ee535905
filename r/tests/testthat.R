library(testthat)
library(taciturn)
test_check("taciturn")
