package telemetry

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// store is a metrics store that gives one answer to everything.
type store struct {
	status int
	body   string
}

func (s store) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: s.status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(s.body)), Request: r}, nil
}

// FuzzPrometheus: whatever the store answers ends in an error without a text, or in a text of bounded length that is
// marked as untrusted, has no escape sequences, and shows no series of a hidden namespace.
func FuzzPrometheus(f *testing.F) {
	for _, body := range []string{
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","pod":"a\u001b[2J"},"value":[1767355200,"NaN"]},null]}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"hush"},"value":[1,"1"]},{"metric":{},"histogram":[1,{"count":"1","sum":"2","buckets":[[0,"1","2","3"]]}]}]}}`,
		`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"a":"b"},"values":[[1,"1"],[1e300,"+Inf"]]},{"metric":{"a":"b"},"values":[]}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"1e309"]},"warnings":["w","x\n","y","z"]}`,
		`{"status":"success","data":{"resultType":"string","result":[1,"password=hunter2hunter2"]}}`, `{"status":"success","data":null}`,
		`{"status":"error","errorType":"bad_data","error":"no \u202e"}`, `{"status":"error","errorType":"execution","error":""}`, strings.Repeat("[", 5000), `null`, "", "\x00",
	} {
		f.Add(body, 200, 0)
		f.Add(body, 422, 60)
	}
	f.Fuzz(func(t *testing.T, body string, status, minutes int) {
		if status < 200 || status > 599 || minutes < 0 || minutes > 1440 {
			return // the client's own code, and the tool's schema, see to these
		}
		client, err := api.NewClient(api.Config{Address: "http://store.invalid", RoundTripper: store{status, body}})
		if err != nil {
			t.Fatal(err)
		}
		p := &Prometheus{api: v1.NewAPI(client), now: noonClock}
		hostiletest.CheckAllocation(t, uint64(48<<20+2048*len(body)), func() {
			out, err := p.Query(t.Context(), "up", minutes, hush)
			switch {
			case err != nil && out.Text != "":
				t.Errorf("got %q beside %v; want either", out.Text, err)
			case err == nil && (out.Text == "" || utf8.RuneCountInString(out.Text) > maxCharacters+500 || strings.Contains(out.Text, "\x1b") || !slices.Equal(out.Untrusted, []string{out.Text})):
				t.Errorf("got %+v; want a bounded, clean text that is marked as untrusted", out)
			case strings.Contains(out.Text, `="hush"`):
				t.Errorf("got %q; want nothing of the hidden namespace", out.Text)
			}
		})
	})
}
