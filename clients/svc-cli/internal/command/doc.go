// Package command is what all svc commands have in common.
package command
