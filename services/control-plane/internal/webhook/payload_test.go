package webhook

import (
	"net/http"
	"os"
	"testing"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

// fuzzPayload checks the promises of both parsers: a refusal is a 400, and a push has a commit that can be stored or
// none.
func fuzzPayload(f *testing.F, name string, parse func(http.Header, payload) (push.Push, string, error)) {
	raw, err := os.ReadFile("testdata/" + name)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		string(raw), `{}`, `[]`, `null`, `{"ref":"refs/heads/main","after":"\ud800"}`, `{"ref":"a","ref":"b"}`, `{"commits":[{}]}`,
		`{"commits":[null,{"added":[null]}]}`, `{"head_commit":null,"total_commits_count":1e400}`, "\xff", `{"ref":` + "\x00" + `}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		refused := func(err error) {
			if p := problem.From(err); p.Kind.Status != http.StatusBadRequest || p.Detail == "" {
				t.Fatalf(`%q: %v; want p.Kind.Status == http.StatusBadRequest && p.Detail != ""`, raw, err)
			}
		}
		fields, err := parsePayload(raw)
		if err != nil {
			refused(err)
			return
		}
		out, skip, err := parse(http.Header{}, fields)
		switch {
		case err != nil:
			refused(err)
		case skip != "":
		case out.CommitSHA != "" && !commitID.MatchString(out.CommitSHA), out.Source != push.Webhook, out.FilesKnown && fields["commits"] == nil:
			t.Fatalf("%q: %+v", raw, out)
		}
	})
}

func FuzzForgeA(f *testing.F) { fuzzPayload(f, "forge-a-push.json", parseA) }
func FuzzForgeB(f *testing.F) { fuzzPayload(f, "forge-b-push.json", parseB) }
