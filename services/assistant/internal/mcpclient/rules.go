package mcpclient

import (
	"path"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// use is the permitted use of a tool. The zero value permits nothing.
type use int

const (
	unused use = iota
	reads
	writes
)

// useOf decides by the admin's lists, for a tool that may be used; writes take precedence. A tool in neither list
// reads, or is unused if the server itself declares that it may write.
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

// admitsWriting reports whether a server's annotations of a tool declare, explicitly or by default, that it may write.
// Without annotations they declare nothing.
func admitsWriting(t *mcp.Tool) bool {
	a := t.Annotations
	return a != nil && (!a.ReadOnlyHint || a.DestructiveHint != nil && *a.DestructiveHint)
}
