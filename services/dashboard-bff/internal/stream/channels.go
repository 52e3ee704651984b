package stream

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/fault"
)

// namespaces are those that clients may subscribe to; audit is not among them.
var namespaces = []string{"job", "drift", "alert", "deploy", "approval", "event"}

const (
	maxChannels = 20
	maxChannel  = 64
)

// channel is a glob over "<namespace>.<name>".
type channel struct{ namespace, name string }

func (c channel) String() string { return c.namespace + "." + c.name }

// channelSet holds the channels of a client's request, at least one, without repetition.
type channelSet []channel

// matches reports whether an event is wanted.
func (s channelSet) matches(namespace, name string) bool {
	for _, c := range s {
		if matchGlob(c.namespace, namespace) && matchGlob(c.name, name) {
			return true
		}
	}
	return false
}

// texts returns the channels as the client reads them in hello.
func (s channelSet) texts() []string {
	out := make([]string, len(s))
	for i, c := range s {
		out[i] = c.String()
	}
	return out
}

// allChannels returns the channels of every namespace.
func allChannels() channelSet {
	all := make(channelSet, len(namespaces))
	for i, ns := range namespaces {
		all[i] = channel{ns, "*"}
	}
	return all
}

// parseChannels reads the query parameter channels. The error is a 422 that names the item.
func parseChannels(text string) (channelSet, error) {
	if strings.TrimSpace(text) == "" {
		return allChannels(), nil
	}
	items := strings.SplitN(text, ",", maxChannels+1)
	if len(items) > maxChannels {
		return nil, invalidChannels(fmt.Sprintf("name at most %d channels", maxChannels))
	}
	var set channelSet
	for _, item := range items {
		found, err := parseChannel(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if !slices.Contains(set, c) {
				set = append(set, c)
			}
		}
	}
	return set, nil
}

func parseChannel(item string) (channelSet, error) {
	if item == "*" {
		return allChannels(), nil
	}
	if item == "" || len(item) > maxChannel || strings.ContainsFunc(item, func(r rune) bool { return !channelRune(r) }) {
		return nil, invalidChannels(fmt.Sprintf("%q is no channel; one has 1 to %d characters out of a-z, 0-9, _ . * -", cut(item), maxChannel))
	}
	ns, name, dotted := strings.Cut(item, ".")
	if !dotted {
		name = "*"
	}
	if !slices.ContainsFunc(namespaces, func(known string) bool { return matchGlob(ns, known) }) {
		return nil, invalidChannels(fmt.Sprintf("%q names an unknown namespace; there are %s", item, strings.Join(namespaces, ", ")))
	}
	if name == "" || strings.Contains(name, ".") { // it would match nothing, silently
		return nil, invalidChannels(fmt.Sprintf("%q matches no event; write <namespace>.<name>, such as job.started or job.*", item))
	}
	return channelSet{{ns, name}}, nil
}

func channelRune(r rune) bool { return nameRune(r) || r == '.' || r == '*' || r == '-' }

// cut keeps a caller's text out of the answer beyond its first part.
func cut(item string) string {
	if len(item) > 2*maxChannel {
		return strings.ToValidUTF8(item[:2*maxChannel], "") + "…"
	}
	return item
}

func invalidChannels(msg string) error {
	return invalidQuery("channels", msg)
}

func invalidQuery(parameter, msg string) error {
	return fault.ValidationFailed.New("query." + parameter + ": " + msg + ".").
		WithErrors(problem.Field{Loc: []string{"query", parameter}, Msg: msg})
}

// matchGlob reports whether text matches glob, in which * matches any characters. Its time is at most the product of
// the lengths, whatever the number of stars.
func matchGlob(glob, text string) bool {
	star, resume := -1, 0 // the last star, and the place in text from which it takes one character more
	g, t := 0, 0
	for t < len(text) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, resume = g, t
			g++
		case g < len(glob) && glob[g] == text[t]:
			g++
			t++
		case star >= 0:
			resume++
			g, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(glob[g:], "*") == ""
}
