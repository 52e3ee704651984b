package trackerd

import (
	"bytes"
	"context"
	_ "embed"
	"html/template"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/filter"
	"github.com/mlp-platform/platform/services/standalone/internal/trackerd/store"
)

// Limits of the page.
const (
	shownModels      = 100
	shownRuns        = 50
	shownMetrics     = 8
	shownExperiments = 1000
)

//go:embed overview.html
var overviewHTML string

var overviewPage = template.Must(template.New("overview").Parse(overviewHTML))

type shownMetric struct{ Key, Value string }

type shownModel struct {
	Name, Newest, Changed string
	Aliases               []aliasOut
}

type shownRun struct {
	ID, Name, Experiment, Status, Started string
	Metrics                               []shownMetric
	MoreMetrics                           int
}

type overview struct {
	Version    string
	Models     []shownModel
	MoreModels bool
	Runs       []shownRun
}

// overview shows models and runs to a person with a browser.
func (s *Server) overview(w http.ResponseWriter, r *http.Request) {
	o, err := s.readOverview(r.Context())
	var page bytes.Buffer
	if err == nil {
		err = overviewPage.Execute(&page, o)
	}
	if err != nil {
		s.writeError(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'")
	_, _ = io.Copy(w, &page) // the caller may have gone
}

func (s *Server) readOverview(ctx context.Context) (overview, error) {
	o := overview{Version: protocolVersion}
	rows, more, err := s.q.SearchRegisteredModels(ctx, store.Search{Limit: shownModels})
	if err != nil {
		return o, err
	}
	o.MoreModels = more
	models, err := s.toModels(ctx, s.q, rows)
	if err != nil {
		return o, err
	}
	for i, m := range models {
		row := shownModel{Name: m.Name, Newest: formatInt(rows[i].LastVersion), Changed: shownTime(m.Updated), Aliases: m.Aliases}
		if rows[i].LastVersion == 0 {
			row.Newest = "none"
		}
		o.Models = append(o.Models, row)
	}
	byName := map[int64]string{}
	var ids []int64
	experiments, _, err := s.q.SearchExperiments(ctx, viewStages(""), store.Search{Limit: shownExperiments, Order: []filter.Order{{Key: "updated", Desc: true}}})
	if err != nil {
		return o, err
	}
	for _, e := range experiments {
		byName[e.ID] = e.Name
		ids = append(ids, e.ID)
	}
	found, _, err := s.q.SearchRuns(ctx, ids, viewStages(""), store.Search{Limit: shownRuns})
	if err != nil {
		return o, err
	}
	runs, err := s.toRuns(ctx, s.q, found)
	if err != nil {
		return o, err
	}
	for i, r := range runs {
		row := shownRun{ID: r.Info.ID, Name: r.Info.Name, Experiment: byName[found[i].ExperimentID], Status: r.Info.Status, Started: shownTime(r.Info.Start)}
		for _, m := range r.Data.Metrics[:min(len(r.Data.Metrics), shownMetrics)] {
			row.Metrics = append(row.Metrics, shownMetric{m.Key, strconv.FormatFloat(float64(m.Value), 'g', 6, 64)})
		}
		row.MoreMetrics = len(r.Data.Metrics) - len(row.Metrics)
		o.Runs = append(o.Runs, row)
	}
	return o, nil
}

func shownTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05Z") }
