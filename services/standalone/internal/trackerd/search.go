package trackerd

import (
	"encoding/base64"
	"encoding/json"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

const (
	maxRows  = 10_000 // of one page
	maxRuns  = 1000   // runs or logged models of one page: each includes its metrics
	maxOrder = 20     // order_by clauses
)

// newSearch parses the parts that all searches share.
func newSearch(g filter.Grammar, condition string, order []string, p page) (s store.Search, err error) {
	s.Offset, s.Limit = p.offset, p.limit
	if s.Filter, err = filter.Parse(condition, g); err != nil {
		return s, err
	}
	if len(order) > maxOrder {
		return s, invalidParameter("There are %d order_by clauses; at most %d are read.", len(order), maxOrder)
	}
	for _, clause := range order {
		o, err := filter.ParseOrder(clause, g)
		if err != nil {
			return s, err
		}
		s.Order = append(s.Order, o)
	}
	return s, nil
}

// page is one stretch of a search's results.
type page struct {
	offset, limit int
}

type pageToken struct {
	Offset int `json:"offset"`
}

// newPage checks max_results, which may be absent, against its limits and reads the token. A page has at most rows
// entries, even if max_results is larger.
func newPage(maxResults *integer, def, most, rows int, token string) (p page, err error) {
	p.limit = def
	if maxResults != nil {
		n := int64(*maxResults)
		if n < 1 {
			return p, invalidParameter("Invalid value %d for parameter 'max_results' supplied. It must be a positive integer", n)
		}
		if n > int64(most) {
			return p, invalidParameter("Invalid value %d for parameter 'max_results' supplied. It must be at most %d", n, most)
		}
		p.limit = int(n)
	}
	p.limit = min(p.limit, rows)
	if token == "" {
		return p, nil
	}
	b, err := base64.URLEncoding.DecodeString(token)
	if err != nil {
		if b, err = base64.StdEncoding.DecodeString(token); err != nil {
			return p, invalidParameter("Invalid page token, could not base64-decode")
		}
	}
	var t pageToken
	if json.Unmarshal(b, &t) != nil || t.Offset < 0 || t.Offset > 1<<31-1 {
		return p, invalidParameter("Invalid page token, it does not hold an offset")
	}
	p.offset = t.Offset
	return p, nil
}

// next is the token after n rows of the page, empty if no more follow.
func (p page) next(n int, more bool) string {
	if !more {
		return ""
	}
	b, err := json.Marshal(pageToken{p.offset + n})
	if err != nil {
		panic(err) // a struct of one integer
	}
	return base64.URLEncoding.EncodeToString(b)
}
