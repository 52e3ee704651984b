package mcpclient

import (
	"path"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// use is what a tool may be used for. The zero value is nothing.
type use int

const (
	unused use = iota
	reads
	writes
)

// useOf decides by the admin's lists, for a tool that may be used; writes take precedence. A tool in neither list reads, unless the server itself says
// that it does not.
func (s *Server) useOf(t *mcp.Tool) use {
	switch {
	case matchesAny(s.Writes, t.Name):
		return writes
	case matchesAny(s.Reads, t.Name):
		return reads
	case admitsWriting(t):
		return unused
	}
	return reads
}

// allows reports whether a tool is one of those that may be used at all.
func (s *Server) allows(name string) bool { return len(s.Tools) == 0 || matchesAny(s.Tools, name) }

func matchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return err == nil && ok
	})
}

// admitsWriting reports whether a server's annotations of a tool do not say that it only reads. Without annotations it says
// nothing.
func admitsWriting(t *mcp.Tool) bool {
	a := t.Annotations
	return a != nil && (!a.ReadOnlyHint || a.DestructiveHint != nil && *a.DestructiveHint)
}
