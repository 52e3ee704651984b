package trackerd

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// FuzzDecodeBody: any body is read or refused as the caller's mistake, and no refusal names a Go type.
func FuzzDecodeBody(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `null`, `{"run_id":5}`, `{"metrics":[{"key":"k","value":"NaN","step":1e99}]}`, `{"tags":[null,{"key":[]}]}`, `{"datasets":[{"dataset":{"name":{}}}]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in struct {
			runRef
			Metrics  []metricIn     `json:"metrics"`
			Tags     []pair         `json:"tags"`
			Datasets []datasetInput `json:"datasets"`
			Max      *integer       `json:"max_results"`
			IDs      []string       `json:"ids"`
		}
		err := decodeBody(body, reflect.ValueOf(&in).Elem())
		var ref *refusal
		if err == nil {
			return
		}
		if !errors.As(err, &ref) || ref.status != http.StatusBadRequest {
			t.Fatalf("%q: %v; want a refusal with 400", body, err)
		}
		for _, of := range []string{"metricIn", "runRef", "datasetInput", "trackerd", "Go "} {
			if strings.Contains(ref.Message, of) && !strings.Contains(string(body), of) {
				t.Fatalf("%q: %s; it names %s", body, ref.Message, of)
			}
		}
	})
}
