// Package terminal lays out text at a terminal as tables that fit its width. What others wrote is cleaned before: see printable.
package terminal
