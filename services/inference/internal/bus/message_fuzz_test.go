package bus

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/testenv/hostiletest"
)

// FuzzMessage: a message of the bus is refused with a 4xx or satisfies check's promises; either way a reply and a
// header can repeat its id.
func FuzzMessage(f *testing.F) {
	for _, text := range []string{
		`{"job_id":1,"user_id":"u","num_nodes":2,"features":{"x":1}}`, `{"job_id":"a\u0000b","user_id":1,"num_nodes":1,"embedding":[1,2]}`,
		`{"model_name":"m","job_id":1e400,"user_id":-0,"num_nodes":1,"walltime_secs":1e308,"timestamp":"2026-01-02T03:04:05Z","features":{}}`,
		`{"job_id":{"a":1}}`, `{"job_id":"` + strings.Repeat("x", 300) + `"}`, `{"job_id":1,"job_id":2}`, `{"JOB_ID":"\u001b[2J"}`, `{"values":[[1,2],[3]]}`, `{"values":null}`,
		`{"model_name":"m","dataset_name":"d","is_dummy":true}`, strings.Repeat("[", 5000), `null`, `"x"`, "", "\x00",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hostiletest.CheckAllocation(t, uint64(1<<20+512*len(data)), func() {
			if id := jobID(data); string(id) != "null" && !isIdentity(id) || !json.Valid(id) || strings.ContainsFunc(identityText(id), unicode.IsControl) || len(id) > maxIdentity {
				t.Errorf("the id is %q; want null, or a string or number that can be repeated", id)
			}
			var r inferRequest
			err := parse(data, &r)
			if err == nil {
				err = r.check()
			}
			var fault *problem.Error
			switch {
			case err != nil && (!errors.As(err, &fault) || fault.Kind.Status < 400 || fault.Kind.Status >= 500):
				t.Errorf("got %v; want a problem of 4xx", err)
			case err == nil && (!isIdentity(r.JobID) || !isIdentity(r.UserID) || *r.NumNodes < 1 || hasValue(r.Features) == (r.Embedding != nil)):
				t.Errorf("%+v was taken; want ids, nodes, and either features or an embedding", r)
			}
			var rows vectorRequest
			if parse(data, &rows) == nil {
				for _, row := range rows.Values {
					for _, v := range row {
						if math.IsNaN(v) || math.IsInf(v, 0) {
							t.Errorf("the row %v was taken; want numbers", row)
						}
					}
				}
			}
			var retrain retrainRequest
			_ = parse(data, &retrain) // any error will do; it must only end
		})
	})
}
