package bootstrap_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/bootstrap"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The whole answer, to the byte: what svc would put into a repository must not change
// without being seen, since files are replaced by their digests.
func TestPlan(t *testing.T) {
	t.Parallel()
	plan, err := bootstrap.New("v1.2.3", "main")
	if err != nil {
		t.Fatal(err)
	}
	compareGolden(t, "plan.json", mustWrite(t, plan))
	for _, f := range plan.RenderedConfigFiles {
		compareGolden(t, strings.ReplaceAll(strings.TrimPrefix(f.Path, ".svc/"), "/", "__"), []byte(f.Content))
	}
	if err := schematest.Validate(t, "github-bootstrap-dry-run", plan); err != nil {
		t.Error(err)
	}
}

func mustWrite(t *testing.T, v any) []byte {
	t.Helper()
	data, err := canon.P(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; look at it, then run: go test ./internal/bootstrap -update\n%s", name, got)
	}
}

func TestFilesAndTheirRules(t *testing.T) {
	t.Parallel()
	ref := strings.Repeat("a", 40)
	plan, err := bootstrap.New(ref, "release/1.x")
	if err != nil {
		t.Fatal(err)
	}
	var paths, rendered []string
	for _, f := range plan.Plan.Files {
		paths = append(paths, f.Path)
		workflow := strings.HasPrefix(f.Path, ".github/workflows/")
		if !workflow {
			rendered = append(rendered, f.Path)
		}
		policy := map[string]string{"svc_managed": "replace_if_generated_digest_matches", "user_seed": "create_if_absent"}[f.Ownership]
		if f.OverwritePolicy != policy || workflow != (f.Phase == "C8-D") || f.SecretValuesAllowed || f.IntegrationAuthority || f.Purpose == "" || f.RenderSource == "" {
			t.Errorf(`%+v; want f.OverwritePolicy == policy && workflow == (f.Phase == "C8-D") && !f.SecretValuesAllowed && !f.IntegrationAuthority && f.Purpose != "" && f.RenderSource != ""`, f)
		}
	}
	if !slices.IsSorted(paths) || len(paths) != 8 || len(rendered) != 4 {
		t.Error(paths, "want slices.IsSorted(paths) && len(paths) == 8 && len(rendered) == 4")
	}
	for i, r := range plan.RenderedConfigFiles {
		if r.Path != rendered[i] || r.ContentDigest != canon.DigestBytes([]byte(r.Content)) || r.SizeBytes != len(r.Content) || strings.Contains(r.Content, "@REF@") || strings.Contains(r.Content, "@BRANCH@") {
			t.Errorf(`%+v; want r.Path == rendered[i] && r.ContentDigest == canon.DigestBytes([]byte(r.Content)) && r.SizeBytes == len(r.Content) && !strings.Contains(r.Content, "@REF@") && …`, r)
		}
	}
	if p := plan.Plan; p.RefExistenceVerified || p.SvcRef != ref || len(p.OwnerActions) != 4 || plan.WritesPerformed || plan.GithubMutationPerformed || plan.SecretValuesAccessed || !plan.DryRun {
		t.Errorf("%+v; want !p.RefExistenceVerified && p.SvcRef == ref && len(p.OwnerActions) == 4 && !plan.WritesPerformed && !plan.GithubMutationPerformed && !plan.SecretValuesAccessed && …", plan)
	}
}

// The seeds must meet the requirements of the other commands and the policy.
func TestSeeds(t *testing.T) {
	t.Parallel()
	plan, err := bootstrap.New("v1.2.3", "trunk")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range plan.RenderedConfigFiles {
		switch f.Path {
		case ".svc/connections.json":
			v, err := canon.Parse([]byte(f.Content))
			if err != nil {
				t.Fatal(err)
			}
			all, err := connectors.Parse(v)
			if err != nil || len(all) != 1 || all[0].Enabled || !all[0].AuthRefConfigured {
				t.Error(all, err, "want len(all) == 1 && !all[0].Enabled && all[0].AuthRefConfigured")
			}
		case ".svc/project.json":
			v, err := canon.Parse([]byte(f.Content), canon.ObjectRoot())
			if err != nil {
				t.Fatal(err)
			}
			policy, _ := v.(*canon.Object).Get("integration_policy")
			got, err := canon.C1(policy)
			if want := `{"automatic_merge_allowed":false,"human_decision_required":true,"target_branch":"trunk"}`; err != nil || string(got) != want {
				t.Errorf("%s %v; want string(got) == want", got, err)
			}
		}
	}
}

func TestPinning(t *testing.T) {
	t.Parallel()
	for ref, ok := range map[string]bool{
		strings.Repeat("0123456789", 4): true, "v1.2.3": true, "v10.20.30-rc.1": true, "v0.0.0-a": true,
		"": false, "main": false, "v1.2": false, "1.2.3": false, "v1.2.3-": false, "v1.2.3+b": false, "v1.2.3\n": false, "v1.2.3-é": false, "v١.2.3": false,
		strings.Repeat("A", 40): false, strings.Repeat("a", 39): false, strings.Repeat("a", 64): false, "refs/tags/v1.2.3": false,
	} {
		if _, err := bootstrap.New(ref, "main"); (err == nil) != ok || err != nil && command.FaultOf(err).Code != bootstrap.UnpinnedRef {
			t.Errorf("%q: %v; want (err == nil) == ok && (err == nil || command.FaultOf(err).Code == bootstrap.UnpinnedRef)", ref, err)
		}
	}
	for _, branch := range []string{"", "a..b", "a.lock", "a@{0}", "a/", strings.Repeat("x", 129)} {
		if _, err := bootstrap.New("v1.2.3", branch); err == nil || command.FaultOf(err).Code != bootstrap.InvalidBranch {
			t.Errorf("%q: %v; want an error && command.FaultOf(err).Code == bootstrap.InvalidBranch", branch, err)
		}
	}
}
