package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"

	"github.com/mlp-platform/platform/services/assistant/internal/fault"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func noonClock() time.Time { return noon }

var (
	none Hidden
	hush = Hidden{"hush"}
)

// startStore answers one path as a recorded server did, and keeps the query.
func startStore(t *testing.T, path string, status int, body string) (base string, asked *http.Request) {
	t.Helper()
	asked = &http.Request{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			http.NotFound(w, r)
			return
		}
		_ = r.ParseForm()
		*asked = *r
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func newTestPrometheus(t *testing.T, base string) *Prometheus {
	t.Helper()
	p, err := NewPrometheus(base, noonClock)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestInstant(t *testing.T) {
	t.Parallel()
	base, asked := startStore(t, "/prefix/api/v1/query", 200, `{"status":"success","data":{"resultType":"vector","result":[
{"metric":{"__name__":"up","pod":"api-1","namespace":"shop"},"value":[1767355200,"0"]},
{"metric":{"__name__":"up","pod":"web-1","namespace":"shop"},"value":[1767355200,"0.1234567"]},
{"metric":{"__name__":"up","pod":"x-1","namespace":"hush"},"value":[1767355200,"9"]},
{"metric":{"__name__":"up","token":"ghp_0123456789abcdefghijABCDEFGHIJ012345"},"value":[1767355200,"NaN"]}]},"warnings":["PromQL warning: odd"]}`)
	out, err := newTestPrometheus(t, base+"/prefix").Query(t.Context(), `up{namespace="shop"}`, 0, hush)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Prometheus warns: PromQL warning: odd\n", `up{namespace="shop", pod="web-1"} 0.123457` + "\n" + `up{namespace="shop", pod="api-1"} 0`, "NaN"} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("no %q in\n%s", want, out.Text)
		}
	}
	if strings.Contains(out.Text, "hush") || strings.Contains(out.Text, "ghp_") || out.Truncated || len(out.Untrusted) != 1 {
		t.Errorf(`%+v; want !strings.Contains(out.Text, "hush") && !strings.Contains(out.Text, "ghp_") && !out.Truncated && len(out.Untrusted) == 1`, out)
	}
	if got := asked.Form.Get("query"); got != `up{`+hush.matchers()+`,namespace="shop"}` {
		t.Errorf("asked %s; want got == `up{` + hush.matchers() + `,namespace=\"shop\"}`", got)
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	var series []string
	for i := range 25 {
		var points []string
		for p := range 60 {
			points = append(points, fmt.Sprintf(`[%d,"%d"]`, noon.Unix()-int64(60*(59-p)), i+p))
		}
		series = append(series, fmt.Sprintf(`{"metric":{"pod":"p-%d"},"values":[%s]}`, i, strings.Join(points, ",")))
	}
	base, asked := startStore(t, "/api/v1/query_range", 200, `{"status":"success","data":{"resultType":"matrix","result":[`+strings.Join(series, ",")+`]}}`)
	out, err := newTestPrometheus(t, base).Query(t.Context(), "rate(x[5m])", 60, none)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.Text, `{pod="p-24"} last 83, min 24, max 83, mean 53.5: 11:05 28 11:10 33`) || !strings.Contains(out.Text, "12:00 83\n") || !out.Truncated ||
		!strings.HasSuffix(out.Text, "[20 of 25 series, the greatest first; aggregate or select fewer]\n") {
		t.Errorf("%s; want strings.HasPrefix(out.Text, `{pod=\"p-24\"} last 83, min 24, max 83, mean 53.5: 11:05 28 11:10 33`) && strings.Contains(out.Text, \"12:00 83\\n\") && out.Truncated && …", out.Text)
	}
	if asked.Form.Get("step") != "60" || asked.Form.Get("end") == "" {
		t.Errorf(`asked %v; want asked.Form.Get("step") == "60" && asked.Form.Get("end") != ""`, asked.Form)
	}
}

func TestPrometheusLimits(t *testing.T) {
	t.Parallel()
	var series []string
	for i := range 60 {
		series = append(series, fmt.Sprintf(`{"metric":{"pod":"p-%d","long":"%s"},"value":[1,"1"]}`, i, strings.Repeat("x", 1000)))
	}
	base, _ := startStore(t, "/api/v1/query", 200, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Join(series, ",")+`]}}`)
	out, err := newTestPrometheus(t, base).Query(t.Context(), "x", 0, none)
	if err != nil || !out.Truncated || utf8.RuneCountInString(out.Text) > maxCharacters {
		t.Errorf("%v, %d characters; want out.Truncated && utf8.RuneCountInString(out.Text) <= maxCharacters", err, utf8.RuneCountInString(out.Text))
	}
	base, _ = startStore(t, "/api/v1/query", 200, `{"status":"success","data":"`+strings.Repeat("x", maxAnswer)+`"}`)
	var fail *turn.Fail
	if _, err := newTestPrometheus(t, base).Query(t.Context(), "x", 0, none); !errors.As(err, &fail) || fail.Failure != fault.MetricsUnavailable || !errors.Is(err, errTooLarge) {
		t.Errorf("an endless answer: %v; want errors.As(err, &fail) && fail.Failure == fault.MetricsUnavailable && errors.Is(err, errTooLarge)", err)
	}
}

func TestPrometheusFaults(t *testing.T) {
	t.Parallel()
	base, _ := startStore(t, "/api/v1/query", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": 1:4: parse error: unexpected end of input"}`)
	var refused *operation.Fault
	if _, err := newTestPrometheus(t, base).Query(t.Context(), "up{", 0, none); !errors.As(err, &refused) || !strings.HasPrefix(refused.Sentence, "Prometheus refuses the query: invalid parameter") {
		t.Errorf(`%v; want errors.As(err, &refused) && strings.HasPrefix(refused.Sentence, "Prometheus refuses the query: invalid parameter")`, err)
	}
	elsewhere, reached := startStore(t, "/api/v1/query", 200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`)
	redirect := httptest.NewServer(http.RedirectHandler(elsewhere+"/api/v1/query", http.StatusTemporaryRedirect))
	t.Cleanup(redirect.Close)
	for name, base := range map[string]string{"redirect": redirect.URL, "absent": "http://127.0.0.1:1"} {
		var fail *turn.Fail
		if _, err := newTestPrometheus(t, base).Query(t.Context(), "up", 0, none); !errors.As(err, &fail) || fail.Failure != fault.MetricsUnavailable {
			t.Errorf("%s: %v; want errors.As(err, &fail) && fail.Failure == fault.MetricsUnavailable", name, err)
		}
	}
	if reached.Method != "" {
		t.Error("a redirect was followed")
	}
	var missing *Prometheus
	if _, err := missing.Query(t.Context(), "up", 0, none); err == nil || err.Error() != "No metrics store is configured; set PROMETHEUS_URL." {
		t.Errorf(`%v; want an error && err.Error() == "No metrics store is configured; set PROMETHEUS_URL."`, err)
	}
	for _, bad := range []string{"prometheus:9090", "ftp://a", "http://", "http://a/?b=c", "http://user:pa ss@%zz"} {
		if _, err := NewPrometheus(bad, noonClock); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v; want an error && !strings.Contains(err.Error(), bad)", bad, err)
		}
	}
}

func TestOtherResults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value model.Value
		want  string
	}{
		{&model.Scalar{Value: 2.5}, "2.5\n"},
		{&model.String{Value: "a\nb"}, "a b\n"},
		{model.Vector{}, "No series match.\n"},
		{model.Matrix{{Metric: model.Metric{"a": "b"}, Histograms: make([]model.SampleHistogramPair, 2)}}, `{a="b"} 2 histograms` + "\n"},
		{model.Vector{{Histogram: &model.SampleHistogram{Count: 3, Sum: 1.5}}}, "{} count 3 sum 1.5\n"},
	} {
		if got, cut := formatValue(c.value, none); got != c.want || cut {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
