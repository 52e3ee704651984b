package store

import (
	"context"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

var modelCreated = filter.Field{Name: "created", Numeric: true}
var modelUpdated = filter.Field{Name: "updated", Numeric: true}

// LoggedModelGrammar is the grammar of logged-model searches.
var LoggedModelGrammar = filter.Grammar{
	Entities: []filter.Entity{filter.Metric, filter.Param, filter.Tag},
	Fields: map[string]filter.Field{
		"model_id":           {Name: "id", List: true},
		"name":               {Name: "name", List: true},
		"status":             {Name: "status", List: true},
		"model_type":         {Name: "model_type", List: true},
		"source_run_id":      {Name: "source_run_id", List: true},
		"artifact_uri":       {Name: "artifact_uri"},
		"creation_timestamp": modelCreated, "creation_time": modelCreated, "creation_timestamp_ms": modelCreated,
		"last_updated_timestamp": modelUpdated, "last_updated_timestamp_ms": modelUpdated,
	},
}

// MetricScope narrows metric conditions and orders to datasets; empty fields do not.
type MetricScope struct{ Name, Digest string }

// SearchLoggedModels lists logged models of these experiments. Metric
// conditions hold if any of the scopes has such a value; orders are by the
// newest value within order's scope at the same place, if there is one.
func (q *Queries) SearchLoggedModels(ctx context.Context, experiments []int64, s Search, scopes, orderScopes []MetricScope) ([]LoggedModel, bool, error) {
	b := &query{}
	b.add("l.experiment_id = any(" + b.bind(experiments) + ")")
	b.add("not l.deleted")
	if len(scopes) > 0 {
		// Models measured on none of the datasets are excluded, whatever the other conditions.
		b.add("exists (select from logged_model_metric m where m.model_id = l.id" + b.scoped(scopes) + ")")
	}
	for _, c := range s.Filter {
		switch c.Entity {
		case filter.Metric:
			b.add("exists (select from logged_model_metric m where m.model_id = l.id and m.key = " + b.bind(c.Key) +
				" and " + b.compareMetric("m.value", c) + b.scoped(scopes) + ")")
		case filter.Param:
			b.add(b.compare("(l.params ->> "+b.bind(c.Key)+"::text)", c))
		case filter.Tag:
			b.add(b.compare("(l.tags ->> "+b.bind(c.Key)+"::text)", c))
		default:
			if c.Key == "created" || c.Key == "updated" {
				b.add(b.compareNumber("l."+c.Key, c))
			} else {
				b.add(b.compare("l."+c.Key, c))
			}
		}
	}
	for i, o := range s.Order {
		switch o.Entity {
		case filter.Metric:
			var scope []MetricScope
			if i < len(orderScopes) && orderScopes[i] != (MetricScope{}) {
				scope = orderScopes[i : i+1]
			}
			b.orderByMetric("(select m.value from logged_model_metric m where m.model_id = l.id and m.key = "+b.bind(o.Key)+
				b.scoped(scope)+" order by m.step desc, m.timestamp desc, m.value desc limit 1)", o.Desc)
		case filter.Param:
			b.orderBy("(l.params ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		case filter.Tag:
			b.orderBy("(l.tags ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		default:
			if o.Key == "created" || o.Key == "updated" {
				b.orderBy("l."+o.Key, o.Desc)
			} else {
				b.orderBy("l."+o.Key+` collate "C"`, o.Desc)
			}
		}
	}
	b.orderBy("l.created", true)
	b.orderBy("l.id", false)
	return queryPage(ctx, q.db, `select l.id, l.experiment_id, l.name, l.status, l.model_type, l.source_run_id, l.artifact_uri,
  l.created, l.updated, l.deleted, l.tags, l.params from logged_model l`, b, s,
		func(m LoggedModel) int { return len(m.Name) + m.Tags.size() + m.Params.size() })
}

func (q *query) scoped(scopes []MetricScope) string {
	if len(scopes) == 0 {
		return ""
	}
	names, digests := make([]string, len(scopes)), make([]string, len(scopes))
	for i, s := range scopes {
		names[i], digests[i] = s.Name, s.Digest
	}
	return " and exists (select from unnest(" + q.bind(names) + "::text[], " + q.bind(digests) +
		"::text[]) as w (name, digest) where w.name in ('', m.dataset_name) and w.digest in ('', m.dataset_digest))"
}
