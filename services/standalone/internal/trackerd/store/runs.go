package store

import (
	"context"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

var runName = filter.Field{Name: "name"}
var runStart = filter.Field{Name: "start_time", Numeric: true}

// RunGrammar is the grammar of run searches.
var RunGrammar = filter.Grammar{
	Entities: []filter.Entity{filter.Metric, filter.Param, filter.Tag, filter.Dataset},
	Fields: map[string]filter.Field{
		"run_id":   {Name: "id", List: true},
		"run_name": runName, "run name": runName, "Run name": runName, "Run Name": runName,
		"status":       {Name: "status"},
		"user_id":      {Name: "user_id"},
		"artifact_uri": {Name: "artifact_uri"},
		"start_time":   runStart, "created": runStart, "Created": runStart,
		"end_time": {Name: "end_time", Numeric: true},
	},
}

func isTime(column string) bool { return column == "start_time" || column == "end_time" }

// SearchRuns lists runs of these experiments in these stages.
func (q *Queries) SearchRuns(ctx context.Context, experiments []int64, stages []string, s Search) ([]Run, bool, error) {
	b := &query{}
	b.add("r.experiment_id = any(" + b.bind(experiments) + ")")
	b.add("r.stage = any(" + b.bind(stages) + ")")
	for _, c := range s.Filter {
		switch c.Entity {
		case filter.Metric:
			b.add("exists (select from metric_latest m where m.run_id = r.id and m.key = " + b.bind(c.Key) + " and " + b.compareMetric("m.value", c) + ")")
		case filter.Param:
			b.add(b.compare("(r.params ->> "+b.bind(c.Key)+"::text)", c))
		case filter.Tag:
			b.add(b.compare("(r.tags ->> "+b.bind(c.Key)+"::text)", c))
		case filter.Dataset:
			column := "d." + c.Key
			if c.Key == "context" {
				column = "(d.tags ->> 'mlflow.data.context')"
			}
			b.add("exists (select from run_dataset d where d.run_id = r.id and " + b.compare(column, c) + ")")
		case filter.Attribute:
			if isTime(c.Key) {
				b.add(b.compareNumber("r."+c.Key, c))
			} else {
				b.add(b.compare("r."+c.Key, c))
			}
		}
	}
	for _, o := range s.Order {
		switch o.Entity {
		case filter.Metric:
			b.orderByMetric("(select m.value from metric_latest m where m.run_id = r.id and m.key = "+b.bind(o.Key)+")", o.Desc)
		case filter.Param:
			b.orderBy("(r.params ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		case filter.Tag:
			b.orderBy("(r.tags ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		default:
			if isTime(o.Key) {
				b.orderBy("r."+o.Key, o.Desc)
			} else {
				b.orderBy("r."+o.Key+` collate "C"`, o.Desc)
			}
		}
	}
	b.orderBy("r.start_time", true)
	b.orderBy("r.id", false)
	return queryPage(ctx, q.db, `select r.id, r.experiment_id, r.name, r.user_id, r.status, r.start_time, r.end_time, r.artifact_uri,
  r.stage, r.deleted_at, r.tags, r.params from run r`, b, s,
		func(r Run) int { return len(r.Name) + r.Tags.size() + r.Params.size() })
}
