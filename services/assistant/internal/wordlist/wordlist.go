// Package wordlist builds regular expressions from lists of words, so that a list stays readable and a diff shows the
// word that was added.
package wordlist

import "strings"

// AnyOf returns an expression that matches any of the alternatives, which are expressions themselves. It captures nothing.
func AnyOf(alternatives ...string) string { return "(?:" + strings.Join(alternatives, "|") + ")" }
