package logtext

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Answers counts the HTTP responses with one status in logs.
type Answers struct {
	Status, Count, All int
	Most               string // the method and path with the most of them; may be empty
	Flags              string // Envoy's reason as text; may be empty
}

var requestExpr = regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS) (/[^\s"?]*)`)

var flagsExpr = regexp.MustCompile(`HTTP/[\d.]+" [45]\d\d ([A-Z]{2,5}(?:,[A-Z]{2,5})*) `)

// flagTexts explains Envoy's response flags.
var flagTexts = map[string]string{
	"UF": "the connection to the upstream failed", "UH": "no upstream host is healthy", "UO": "the upstream's circuit breaker is open", "NR": "no route matches",
	"URX": "the retries are used up", "UT": "the upstream did not answer in time", "UC": "the upstream ended the connection", "LR": "reset here", "UR": "reset by the upstream",
	"DC": "the client went away", "RL": "rate limited", "UAEX": "refused by external authorization", "NC": "no such upstream cluster", "DPE": "the request was malformed",
}

// Refused returns the responses with status 400 or above, the most frequent first.
func Refused(sources []Source) []Answers {
	all, left := 0, mostWeighed
	found := map[int]*Answers{}
	requests := map[int]map[string]int{}
	for _, s := range sources {
		for line := range strings.Lines(s.Text) {
			line = ends(line[:min(len(line), longest)])
			status := StatusOf(line)
			if status == 0 {
				continue
			}
			all++
			if status < 400 {
				continue
			}
			a := found[status]
			if a == nil {
				a = &Answers{Status: status}
				found[status], requests[status] = a, map[string]int{}
			}
			a.Count++
			if left -= len(line); left < 0 { // the status is still counted
				continue
			}
			if m := requestExpr.FindStringSubmatch(line); m != nil {
				requests[status][m[1]+" "+m[2]]++
			}
			if a.Flags == "" && strings.Contains(line, "HTTP/") {
				if m := flagsExpr.FindStringSubmatch(line); m != nil {
					a.Flags = describeFlags(m[1])
				}
			}
		}
	}
	var list []Answers
	for status, a := range found {
		a.All = all
		for _, request := range slices.Sorted(maps.Keys(requests[status])) {
			if a.Most == "" || requests[status][request] > requests[status][a.Most] {
				a.Most = request
			}
		}
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b Answers) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Status, a.Status))
	})
	return list
}

func describeFlags(flags string) string {
	var texts []string
	for flag := range strings.SplitSeq(flags, ",") {
		if text := flagTexts[flag]; text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}
