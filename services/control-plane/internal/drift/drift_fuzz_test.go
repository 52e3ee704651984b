package drift

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"testing"
)

type answer []byte

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(a)), Request: r,
	}, nil
}

// Whatever the inference service answers or announces, an accepted reading has a valid model, alias and level, and a
// finite number.
func FuzzReadings(f *testing.F) {
	f.Add([]byte(`[{"model":"JPCP","alias":"Production","status":"CRITICAL","z_score":3.5,"reason":"x"}]`))
	f.Add([]byte(`[{"model":"JPCP","alias":"Production","status":"CRITICAL","z_score":null}]`))
	f.Add([]byte(`{"model":"JPCP","alias":"Production","kind":"prediction","status":"OK","previous":"WARNING","z_score":1e308,"n":1}`))
	f.Add([]byte(`[{"z_score":1e999}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, body []byte) {
		reader, err := NewReader("http://serving.invalid", "", &http.Client{Transport: answer(body)})
		if err != nil {
			t.Fatal(err)
		}
		readings, err := reader.Read(t.Context(), Prediction, "")
		if err != nil {
			readings = nil
		}
		if r, err := decodeStatusChanged(body); err == nil {
			readings = append(readings, r)
		}
		for _, r := range readings {
			if !r.sound() || r.Z != nil && (math.IsNaN(*r.Z) || math.IsInf(*r.Z, 0)) {
				t.Errorf("taken: %+v; want r.sound() && (r.Z == nil || !math.IsNaN(*r.Z) || math.IsInf(*r.Z, 0))", r)
			}
			if a, fires := r.alert(); fires && (a.Key == "" || a.Title == "" || a.Tenant == "") {
				t.Errorf(`alert %+v; want (!fires || !a.Key == "" || a.Title == "" || a.Tenant == "")`, a)
			}
		}
	})
}
