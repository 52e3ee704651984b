package telemetry

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

type labels = map[string]string

// seriesStore serves the part of Prometheus's API that lists series, over a fixed list of them.
type seriesStore struct {
	series []labels
	asked  atomic.Int32
}

var matcher = regexp.MustCompile(`(\w+|"[^"]+")(=~|!~|=)"([^"]*)"`)

// matches judges the matchers of one selector.
func (s *seriesStore) matches(series labels, selector string) bool {
	for _, m := range matcher.FindAllStringSubmatch(selector, -1) {
		value := series[strings.Trim(m[1], `"`)]
		pattern := regexp.QuoteMeta(m[3])
		if m[2] != "=" {
			pattern = strings.ReplaceAll(m[3], `\\`, `\`)
		}
		if regexp.MustCompile("^(?:"+pattern+")$").MatchString(value) == (m[2] == "!~") {
			return false
		}
	}
	return true
}

func (s *seriesStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	_ = r.ParseForm() // a form that is none matches nothing
	found := []labels{}
	for _, series := range s.series {
		if slices.ContainsFunc(r.Form["match[]"], func(m string) bool { return s.matches(series, m) }) {
			found = append(found, series)
		}
	}
	var data any = found
	switch r.URL.Path {
	case "/api/v1/labels":
		names := map[string]bool{}
		for _, series := range found {
			for name := range series {
				names[name] = true
			}
		}
		list := []string{}
		for name := range names {
			list = append(list, name)
		}
		slices.Sort(list)
		data = list
	case "/api/v1/query":
		result := []any{}
		selector, sampled := strings.CutPrefix(r.Form.Get("query"), "topk(1, ") // what was asked at first has conditions that nothing meets
		metric, inside, _ := strings.Cut(strings.TrimSuffix(selector, ")"), "{")
		for _, series := range s.series {
			if sampled && series["__name__"] == metric && len(result) == 0 && s.matches(series, inside) {
				result = append(result, map[string]any{"metric": series, "value": []any{0, "1"}})
			}
		}
		data = map[string]any{"resultType": "vector", "result": result}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
}

func startSeries(t *testing.T, series ...labels) (*seriesStore, string) {
	t.Helper()
	s := &seriesStore{series: series}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

var (
	apiPod   = types.NamespacedName{Namespace: "shop", Name: "api-1"}
	webPod   = types.NamespacedName{Namespace: "shop", Name: "web-1"}
	bankPod  = types.NamespacedName{Namespace: "bank", Name: "api-2"}
	statePod = types.NamespacedName{Namespace: "watch", Name: "kube-state-metrics-1"}
	every    = []types.NamespacedName{bankPod, apiPod, webPod, statePod}
)

// restarts are the series that kube-state-metrics exports for every pod, itself included, as a scrape relabels them.
func restarts(name func(of, by types.NamespacedName) labels) []labels {
	var all []labels
	for _, pod := range every {
		series := name(pod, statePod)
		series["__name__"], series["job"], series["instance"] = "restarts", "shop", "10.0.0.9:8080"
		all = append(all, series)
	}
	return all
}

func TestLabels(t *testing.T) {
	t.Parallel()
	own := func(namespace, pod string) []labels {
		return restarts(func(of, _ types.NamespacedName) labels {
			return labels{namespace: of.Namespace, pod: of.Name, "app": "shop"}
		})
	}
	exported := restarts(func(of, by types.NamespacedName) labels {
		return labels{"namespace": by.Namespace, "pod": by.Name, "exported_namespace": of.Namespace, "exported_pod": of.Name}
	})
	named := []labels{
		{"__name__": "restarts", "tenant": "bank", "app": "bank"}, {"__name__": "restarts", "tenant": "bank", "app": "till"}, {"__name__": "restarts", "tenant": "shop", "app": "web"},
	}
	for name, c := range map[string]struct {
		series         []labels
		about          []types.NamespacedName
		namespace, pod string
	}{
		"the common names":                                        {own("namespace", "pod"), []types.NamespacedName{apiPod}, "namespace", "pod"},
		"names of an older scrape":                                {own("kubernetes_namespace", "kubernetes_pod_name"), []types.NamespacedName{apiPod}, "kubernetes_namespace", "kubernetes_pod_name"},
		"names that nobody foresaw":                               {own("mandant", "behaelter"), []types.NamespacedName{apiPod, webPod}, "mandant", "behaelter"},
		"names of OpenTelemetry":                                  {own("k8s.namespace.name", "k8s.pod.name"), []types.NamespacedName{apiPod}, `"k8s.namespace.name"`, `"k8s.pod.name"`},
		"told about by another pod":                               {exported, []types.NamespacedName{apiPod}, "exported_namespace", "exported_pod"},
		"told about by itself":                                    {exported, []types.NamespacedName{statePod}, "exported_namespace", "exported_pod"},
		"a pod that no series names":                              {own("namespace", "pod"), []types.NamespacedName{{Namespace: "gone", Name: "old-1"}}, "", ""},
		"a namespace alone, beside an app that is called like it": {named, []types.NamespacedName{bankPod}, "tenant", ""},
		"an address alone":                                        {restarts(func(of, _ types.NamespacedName) labels { return labels{} }), []types.NamespacedName{bankPod}, "", ""},
		"no series":                                               {nil, []types.NamespacedName{apiPod}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, base := startSeries(t, c.series...)
			got, err := newTestPrometheus(t, base).Labels(t.Context(), "restarts", c.about, every, none)
			if err != nil {
				t.Fatal(err)
			}
			if len(got.All) == 0 != (c.series == nil) {
				t.Errorf("got the labels %v of %d series", got.All, len(c.series))
			}
			got.All = nil
			if diff := cmp.Diff(turn.MetricLabels{Namespace: c.namespace, Pod: c.pod}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestLabelsOfHiddenNamespaces: no label is found that only series of hidden namespaces have.
func TestLabelsOfHiddenNamespaces(t *testing.T) {
	t.Parallel()
	hidden := types.NamespacedName{Namespace: "hush", Name: "api-1"}
	_, base := startSeries(t, labels{"__name__": "up", "namespace": "hush", "pod": "api-1"}, labels{"__name__": "up", "space": "hush", "behaelter": "api-1"})
	got, err := newTestPrometheus(t, base).Labels(t.Context(), "up", []types.NamespacedName{hidden}, []types.NamespacedName{hidden}, hush)
	if err != nil || got.Namespace != "" || got.Pod != "" || slices.Contains(got.All, "pod") {
		t.Errorf("got %+v, %v; want no label of hidden series", got, err)
	}
}

// TestLabelsAreKept: what was found is asked again when its time is over, and what was not found at once.
func TestLabelsAreKept(t *testing.T) {
	t.Parallel()
	store, base := startSeries(t, labels{"__name__": "up", "namespace": "shop", "pod": "api-1"})
	now := noon
	p, err := NewPrometheus(base, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	ask := func(pod types.NamespacedName) int32 {
		before := store.asked.Load()
		if _, err := p.Labels(t.Context(), "up", []types.NamespacedName{pod}, every, none); err != nil {
			t.Fatal(err)
		}
		return store.asked.Load() - before
	}
	if first, second := ask(apiPod), ask(apiPod); first == 0 || second != 0 {
		t.Errorf("got %d requests, then %d; want some, then none", first, second)
	}
	if first, second := ask(bankPod), ask(bankPod); first == 0 || second == 0 {
		t.Errorf("got %d requests, then %d for a pod that no series names; want some each time", first, second)
	}
	now = now.Add(keepLabels)
	if n := ask(apiPod); n == 0 {
		t.Error("nothing is asked after the time limit")
	}
}

// TestNothingMatches: an absent metric, a metric with other labels and a condition that nothing meets get different
// answers.
func TestNothingMatches(t *testing.T) {
	t.Parallel()
	_, base := startSeries(t, labels{"__name__": "restarts", "kubernetes_namespace": "shop"}, labels{"__name__": "secrets", "namespace": "hush"})
	p := newTestPrometheus(t, base)
	for query, want := range map[string]string{
		`sum(restarts{namespace="shop"}) > 3`:                        `Not measured: no series of restarts has these labels now; one that is there is restarts{kubernetes_namespace="shop"}.` + "\n",
		`restarts{kubernetes_namespace="shop"} > 3`:                  "",
		`rate(absent{a="}"}[5m]) or absent{a="}"}`:                   "Not measured: the store has no series of absent now.\n",
		`sum by (pod) (secrets{namespace="shop"})`:                   "Not measured: the store has no series of secrets now.\n",
		`sum(restarts) by (x) > 3 # {no selector}`:                   "",
		`absent{a="1"} or absent{a="2"} or restarts{namespace="no"}`: "Not measured: the store has no series of absent now.\nNot measured: the store has no series of absent now.\n",
	} {
		out, err := p.Query(t.Context(), query, 0, hush)
		if err != nil || out.Text != noSeries+want {
			t.Errorf("%s: got %q, %v; want %q", query, out.Text, err, noSeries+want)
		}
	}
}
