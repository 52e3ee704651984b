package store

import (
	"context"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

// ExperimentGrammar is the grammar of experiment searches.
var ExperimentGrammar = filter.Grammar{
	Entities: []filter.Entity{filter.Tag},
	Fields: map[string]filter.Field{
		"name":             {Name: "name"},
		"experiment_id":    {Name: "id", Ops: []filter.Op{}},
		"creation_time":    {Name: "created", Numeric: true},
		"last_update_time": {Name: "updated", Numeric: true},
	},
}

// SearchExperiments lists experiments in these stages.
func (q *Queries) SearchExperiments(ctx context.Context, stages []string, s Search) ([]Experiment, bool, error) {
	b := &query{}
	b.add("e.stage = any(" + b.bind(stages) + ")")
	for _, c := range s.Filter {
		switch {
		case c.Entity == filter.Tag:
			b.add(b.compare("(e.tags ->> "+b.bind(c.Key)+"::text)", c))
		case c.Key == "name":
			b.add(b.compare("e.name", c))
		default:
			b.add(b.compareNumber("e."+c.Key, c))
		}
	}
	for _, o := range s.Order {
		switch {
		case o.Entity == filter.Tag:
			b.orderBy("(e.tags ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		case o.Key == "name":
			b.orderBy(`e.name collate "C"`, o.Desc)
		default:
			b.orderBy("e."+o.Key, o.Desc)
		}
	}
	if len(s.Order) == 0 {
		b.orderBy("e.created", true)
	}
	b.orderBy("e.id", true)
	return queryPage(ctx, q.db, "select e.id, e.name, e.artifact_location, e.stage, e.created, e.updated, e.tags from experiment e", b, s,
		func(e Experiment) int { return len(e.Name) + e.Tags.size() })
}
