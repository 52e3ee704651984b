package mlops

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	api "github.com/mlp-platform/platform/clients/go/dashboard"
	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/input"
)

const (
	maxRegistryPage   = 500
	maxRegistrySearch = 200 // characters
)

// registryQuery is what a request wants of the registry; its zero value wants all of it, by name.
type registryQuery struct {
	limit            int // 0 for all
	after            *registryPosition
	text             string // lower case
	view             string
	stages, fresh    []string
	sort             string
	sortIsDescending bool
}

// registryPosition is where a page ends: a row's value and its name. Rows that change or come in between move, but no
// page repeats or leaves out another row.
type registryPosition struct {
	Key  sortKey `json:"key"`
	Name string  `json:"name"`
}

// sortKey is a row's value in the sorted column.
type sortKey struct {
	Absent bool    `json:"absent,omitempty"`
	Number float64 `json:"number,omitempty"`
	Within float64 `json:"within,omitempty"` // orders equal numbers
}

// sortKeys are the columns that a registry can be sorted by. By name, all keys are equal: the name decides.
var sortKeys = map[string]func(api.RegistryRow) sortKey{
	"name": func(api.RegistryRow) sortKey { return sortKey{} },
	"health": func(r api.RegistryRow) sortKey {
		k := sortKey{Number: float64(slices.Index(severities, r.Severity))}
		if r.ZScore != nil {
			k.Within = -*r.ZScore
		}
		return k
	},
	"version": func(r api.RegistryRow) sortKey { return keyOf(r.Version, func(n int) float64 { return float64(n) }) },
	"z":       func(r api.RegistryRow) sortKey { return keyOf(r.ZScore, func(z float64) float64 { return z }) },
	"freshness": func(r api.RegistryRow) sortKey {
		if r.Freshness == nil {
			return sortKey{Absent: true}
		}
		return sortKey{Number: float64(r.Freshness.UnixMicro())}
	},
	"governed": func(r api.RegistryRow) sortKey {
		return keyOf(r.Governed, func(governed bool) float64 {
			if governed {
				return 0
			}
			return 1
		})
	},
}

func keyOf[T any](v *T, number func(T) float64) sortKey {
	if v == nil {
		return sortKey{Absent: true}
	}
	return sortKey{Number: number(*v)}
}

// severities, worst first.
var severities = []api.RegistryRowSeverity{
	api.RegistryRowSeverityCritical, api.RegistryRowSeverityWarn, api.RegistryRowSeverityUnknown, api.RegistryRowSeverityOk,
}

// criticalZ is the bound of alerts and of mlp drift status.
const criticalZ = 3

var criticalReason = regexp.MustCompile(`(?i)\b(critical|corrupt|not served)\b`)

// severityOf returns how bad a row's health is.
func severityOf(r api.RegistryRow) api.RegistryRowSeverity {
	switch {
	case r.Health == api.RegistryRowHealthOk:
		return api.RegistryRowSeverityOk
	case r.Health == api.RegistryRowHealthUnknown:
		return api.RegistryRowSeverityUnknown
	case r.ZScore != nil && *r.ZScore >= criticalZ, r.HealthReasons != nil && slices.ContainsFunc(*r.HealthReasons, criticalReason.MatchString):
		return api.RegistryRowSeverityCritical
	}
	return api.RegistryRowSeverityWarn
}

// parseRegistryQuery reports every fault at once.
func parseRegistryQuery(c echo.Context) (registryQuery, error) {
	if err := input.CheckQuery(c, "limit", "cursor", "q", "view", "stage", "freshness", "sort"); err != nil {
		return registryQuery{}, err
	}
	limit, err := service.PageLimitUpTo(c, 0, maxRegistryPage)
	if err != nil {
		return registryQuery{}, err
	}
	var faults []problem.Field
	refuse := func(name, msg string) { faults = append(faults, problem.Field{Loc: []string{"query", name}, Msg: msg}) }
	q := registryQuery{limit: limit, text: strings.ToLower(strings.TrimSpace(c.QueryParam("q"))), view: cmp.Or(c.QueryParam("view"), "all")}
	if utf8.RuneCountInString(q.text) > maxRegistrySearch {
		refuse("q", fmt.Sprintf("must have at most %d characters", maxRegistrySearch))
	}
	if !slices.Contains([]string{"all", "attention", "unmeasured"}, q.view) {
		refuse("view", "must be all, attention or unmeasured")
	}
	q.sort, q.sortIsDescending = strings.CutPrefix(cmp.Or(c.QueryParam("sort"), "name"), "-")
	if sortKeys[q.sort] == nil {
		refuse("sort", "must be name, health, version, z, freshness or governed, with - in front for the other way")
	}
	list := func(name string, known ...string) []string {
		if c.QueryParam(name) == "" {
			return nil
		}
		values := strings.Split(c.QueryParam(name), ",")
		if slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(known, v) }) {
			refuse(name, "must be of "+strings.Join(known, ", ")+", separated by commas")
		}
		return values
	}
	q.stages = list("stage", append(slices.Clone(ladder), string(api.None))...)
	q.fresh = list("freshness", "current", "stale", "unknown")
	var at registryPosition
	if begins, err := service.Cursor(c, &at); err != nil {
		return registryQuery{}, err
	} else if begins {
		q.after = &at
	}
	return q, input.InvalidFields(faults...)
}

// matches reports whether a row is among those that the request wants.
func (q registryQuery) matches(r api.RegistryRow) bool {
	switch severity := r.Severity; {
	case q.view == "attention" && severity != api.RegistryRowSeverityCritical && severity != api.RegistryRowSeverityWarn:
		return false
	case q.view == "unmeasured" && severity != api.RegistryRowSeverityUnknown:
		return false
	}
	if len(q.stages) > 0 && !slices.ContainsFunc(q.stages, func(stage string) bool { return string(r.Stage) == stage || (*r.Aliases)[stage] > 0 }) {
		return false
	}
	fresh := "unknown"
	if r.FreshnessStatus != nil {
		fresh = string(*r.FreshnessStatus)
	}
	if len(q.fresh) > 0 && !slices.Contains(q.fresh, fresh) {
		return false
	}
	contains := func(text string) bool { return strings.Contains(strings.ToLower(text), q.text) }
	return q.text == "" || contains(r.Name) || r.Description != nil && contains(*r.Description) || slices.ContainsFunc(*r.HealthReasons, contains)
}

// compare orders by the sorted column, then by name; rows without a value come last in either direction.
func (q registryQuery) compare(a, b registryPosition) int {
	if a.Key.Absent != b.Key.Absent {
		return compareBool(a.Key.Absent, b.Key.Absent)
	}
	byKey := cmp.Or(cmp.Compare(a.Key.Number, b.Key.Number), cmp.Compare(a.Key.Within, b.Key.Within))
	byName := cmp.Compare(a.Name, b.Name)
	if q.sortIsDescending {
		if byKey = -byKey; q.sort == "name" {
			byName = -byName
		}
	}
	return cmp.Or(byKey, byName)
}

// page returns what the request wants of all rows, in their order by name.
func (q registryQuery) page(path string, all []api.RegistryRow) api.Registry {
	type placed struct {
		registryPosition
		row api.RegistryRow
	}
	var rows []placed
	served, bySeverity := 0, map[string]int{}
	for _, s := range severities {
		bySeverity[string(s)] = 0
	}
	for _, r := range all {
		bySeverity[string(r.Severity)]++
		if (*r.Aliases)[production] > 0 {
			served++
		}
		if q.matches(r) {
			rows = append(rows, placed{registryPosition{sortKeys[q.sort](r), r.Name}, r})
		}
	}
	slices.SortFunc(rows, func(a, b placed) int { return q.compare(a.registryPosition, b.registryPosition) })
	out := api.Registry{Count: len(all), Matching: len(rows), Served: served, Severities: bySeverity}
	if q.after != nil {
		first := slices.IndexFunc(rows, func(p placed) bool { return q.compare(p.registryPosition, *q.after) > 0 })
		if first < 0 {
			first = len(rows)
		}
		rows = rows[first:]
	}
	if q.limit > 0 && len(rows) > q.limit {
		rows = rows[:q.limit]
		next := service.EncodeCursor(path, rows[q.limit-1].registryPosition)
		out.NextCursor = &next
	}
	out.Rows = make([]api.RegistryRow, len(rows))
	for i, p := range rows {
		out.Rows[i] = p.row
	}
	return out
}
