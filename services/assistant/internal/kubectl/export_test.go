package kubectl

// Split exports splitLine for tests.
var Split = splitLine
