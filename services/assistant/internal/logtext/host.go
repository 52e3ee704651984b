package logtext

import (
	"regexp"
	"slices"
	"strings"
)

// Host is a host named in a line; Port is empty if the line gives none.
type Host struct{ Name, Port string }

var hostExpr = regexp.MustCompile(`\b([a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*)(?::(\d{1,5}))?\b`)

// beforeHostExpr matches the text before a short host name: other words of a line only look like one.
var beforeHostExpr = regexp.MustCompile(`(?i)(?:://|@|\bhost(?:name)?["']?[=:] ?["']?|\bhost(?:name)? ["']|\b(?:lookup|dial(?:ing)?|connect(?:ing|ion)?)(?: (?:tcp|udp|to|with|server|host|at))* ["']?)$`)

// Hosts returns the words of a line that may be hosts, with their ports. A name without a dot needs a port, or words
// before it that introduce a host. Only the cluster knows whether they exist.
func Hosts(line string) []Host {
	var hosts []Host
	line = timeExpr.ReplaceAllString(line, " ")
	for _, m := range hostExpr.FindAllStringSubmatchIndex(line, -1) {
		h := Host{Name: strings.ToLower(line[m[2]:m[3]])}
		if m[4] >= 0 {
			h.Port = line[m[4]:m[5]]
		}
		certain := h.Port != "" || strings.Contains(h.Name, ".") || beforeHostExpr.MatchString(line[max(0, m[0]-40):m[0]])
		if certain && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}
