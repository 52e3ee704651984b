package store

import (
	"context"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
)

var registryUpdated = filter.Field{Name: "updated", Numeric: true, Ops: []filter.Op{}}

// RegisteredModelGrammar is the grammar of registered-model searches.
var RegisteredModelGrammar = filter.Grammar{
	Entities: []filter.Entity{filter.Tag},
	Fields: map[string]filter.Field{
		"name":                   {Name: "name"},
		"timestamp":              registryUpdated,
		"last_updated_timestamp": registryUpdated,
	},
}

// SearchRegisteredModels lists registered models.
func (q *Queries) SearchRegisteredModels(ctx context.Context, s Search) ([]RegisteredModel, bool, error) {
	b := &query{}
	for _, c := range b.onlyModels("m.tags", s.Filter) {
		if c.Entity == filter.Tag {
			b.add(b.compare("(m.tags ->> "+b.bind(c.Key)+"::text)", c))
		} else {
			b.add(b.compare("m.name", c))
		}
	}
	for _, o := range s.Order {
		switch {
		case o.Entity == filter.Tag:
			b.orderBy("(m.tags ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		case o.Key == "name":
			b.orderBy(`m.name collate "C"`, o.Desc)
		default:
			b.orderBy("m.updated", o.Desc)
		}
	}
	b.orderBy(`m.name collate "C"`, false)
	return queryPage(ctx, q.db, "select m.name, m.description, m.created, m.updated, m.last_version, m.tags from registered_model m", b, s,
		func(m RegisteredModel) int { return len(m.Name) + 1000 + m.Tags.size() })
}

// PromptTag marks prompts among the registered models.
const PromptTag = "mlflow.prompt.is_prompt"

// onlyModels excludes prompts by default, as the interface requires, or selects only them if the filter names their
// tag. It returns the rest of the filter: the condition "tag is not 'true'" would not match models without the tag.
func (q *query) onlyModels(column string, all []filter.Clause) []filter.Clause {
	op := "<>"
	i := slices.IndexFunc(all, func(c filter.Clause) bool { return c.Entity == filter.Tag && c.Key == PromptTag })
	if i >= 0 {
		c := all[i]
		if c.Op == filter.Eq && strings.EqualFold(c.Text, "true") || c.Op == filter.Ne && strings.EqualFold(c.Text, "false") {
			op = "="
		}
		all = slices.Delete(slices.Clone(all), i, i+1)
	}
	q.add("coalesce(lower(" + column + " ->> '" + PromptTag + "'), '') " + op + " 'true'")
	return all
}

// ModelVersionGrammar is the grammar of model-version searches.
var ModelVersionGrammar = filter.Grammar{
	Entities: []filter.Entity{filter.Tag},
	Fields: map[string]filter.Field{
		"name":                   {Name: "name"},
		"version_number":         {Name: "version", Numeric: true},
		"run_id":                 {Name: "run_id", List: true},
		"source_path":            {Name: "source"},
		"creation_timestamp":     {Name: "created", Numeric: true, Ops: []filter.Op{}},
		"last_updated_timestamp": {Name: "updated", Numeric: true, Ops: []filter.Op{}},
	},
}

// SearchModelVersions lists model versions.
func (q *Queries) SearchModelVersions(ctx context.Context, s Search) ([]ModelVersion, bool, error) {
	b := &query{}
	for _, c := range b.onlyModels("v.tags", s.Filter) {
		switch {
		case c.Entity == filter.Tag:
			b.add(b.compare("(v.tags ->> "+b.bind(c.Key)+"::text)", c))
		case c.Key == "version":
			b.add(b.compareNumber("v.version", c))
		default:
			b.add(b.compare("v."+c.Key, c))
		}
	}
	for _, o := range s.Order {
		switch {
		case o.Entity == filter.Tag:
			b.orderBy("(v.tags ->> "+b.bind(o.Key)+`::text) collate "C"`, o.Desc)
		case o.Key == "name" || o.Key == "run_id" || o.Key == "source":
			b.orderBy("v."+o.Key+` collate "C"`, o.Desc)
		default:
			b.orderBy("v."+o.Key, o.Desc)
		}
	}
	if len(s.Order) == 0 {
		b.orderBy("v.updated", true)
	}
	b.orderBy(`v.name collate "C"`, false)
	b.orderBy("v.version", true)
	return queryPage(ctx, q.db, `select v.name, v.version, v.created, v.updated, v.description, v.source, v.download_uri, v.run_id, v.run_link,
  v.model_id, v.stage, v.tags from model_version v`, b, s,
		func(v ModelVersion) int {
			return len(v.Name) + len(v.Description) + len(v.Source) + 300 + v.Tags.size()
		})
}
