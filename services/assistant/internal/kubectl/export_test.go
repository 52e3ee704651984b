package kubectl

// Split shows tests the words of a line.
var Split = splitLine
