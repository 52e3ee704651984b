package model

// Summarize is for the tests of this package.
var Summarize = summarize
