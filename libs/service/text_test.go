package service

import (
	"errors"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/problem"
)

// What encoding/json would make U+FFFD of is refused.
func TestParseJSONRefusesBrokenText(t *testing.T) {
	t.Parallel()
	for body, why := range map[string]string{
		`{"a":"\ud800"}`:             "surrogate",
		`{"a":"x\uDC00y"}`:           "surrogate",
		`{"a":"\ud83d\ud83d\ude00"}`: "surrogate",
		`{"a":"\ud83d\n\ude00"}`:     "surrogate",
		`{"\ud800":1}`:               "surrogate",
		`{"a":["\\\ud800"]}`:         "surrogate",
		"{\"a\":\"\xed\xa0\x80\"}":   "UTF-8",
		"{\"a\":\"\xff\"}":           "UTF-8",
		`{"a":"\ud83d\ude00"}`:       "",
		`{"a":"\\ud800"}`:            "",
		`{"a":"\\\\ud800 \ufffd"}`:   "",
		`{"a":"😀 \u00e9"}`:           "",
	} {
		var dst map[string]any
		err := ParseJSON([]byte(body), &dst, false)
		var p *problem.Error
		switch {
		case why == "" && err != nil:
			t.Errorf("%q: got %v, want no error", body, err)
		case why != "" && (!errors.As(err, &p) || p.Kind.Status != 422 || !strings.Contains(p.Detail, why)):
			t.Errorf("%q: got %v, want 422 that tells of %s", body, err, why)
		}
	}
}
