// Package terminal shows the text of others on a terminal: cleaned, and as tables that fit its width.
package terminal
