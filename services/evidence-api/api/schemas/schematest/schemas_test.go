package schematest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/clients/go/controltower/schemas"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/document"
	"github.com/mlp-platform/platform/libs/evidence/evidencetest"
	"github.com/mlp-platform/platform/libs/evidence/fixture"
	"github.com/mlp-platform/platform/libs/evidence/report"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/libs/evidence/tree"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

func importedRun(t testing.TB) spine.Run {
	t.Helper()
	run, err := fixture.Report().Run(fixture.ProjectID, fixture.SourceRevision, spine.AwaitingHumanDecision)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// exampleDocuments gives a valid document of every schema.
func exampleDocuments(t testing.TB) map[string]*canon.Object {
	t.Helper()
	run := importedRun(t)
	runs := []spine.Run{fixture.Run(), run}
	note := "svc/…\n"
	hash := tree.Hex(tree.Empty())
	docs := map[string]any{
		"api-error": document.NewError("invalid_limit", "The limit is out of range.", false,
			canon.NewObject(canon.Member{Key: "minimum", Value: 1}, canon.Member{Key: "maximum", Value: 200})),
		"list":                                document.NewList(runs, 50, "abc"),
		"readiness":                           document.NewReadiness("1.0.0"),
		"event":                               evidencetest.RunEvents()[0],
		"product-spine-run":                   run,
		"control-tower-run-response":          evidencetest.NewRun(document.RunDetail{Run: run, IdempotencyKey: "key", CreateRequestDigest: fixture.Digest("1")}),
		"control-tower-run-attempts-response": document.NewRunAttempts(run),
		"control-tower-run-evidence-response": evidencetest.NewRunEvidence(fixture.Report()),
		"control-tower-inspection-response":   document.NewInspection(fixture.Report()),
		"control-tower-snapshot":              report.Inspect(fixture.Report()),
		"control-tower-work-unit-response":    document.NewWorkUnit(evidencetest.WorkUnits(runs)[0]),
		"control-tower-project-response":      document.NewProject(evidencetest.ProjectOf(fixture.ProjectID, runs)),
		"control-tower-connection-response":   document.NewConnection(fixture.Connections()[0]),
		"run-evidence-report":                 fixture.Report(),
		"event-log-checkpoint": document.NewCheckpoint(document.CheckpointDetail{
			Origin: "svc/019b0000-0000-7000-8000-000000000001", TreeSize: 2, RootHash: hash, CreatedAt: fixture.CreatedAt, SignedNote: &note,
		}, &document.Consistency{FromSize: 1, Path: []string{hash}}),
		"event-inclusion-proof": document.NewInclusion(document.InclusionDetail{
			EventID: "evt-000000000001", Sequence: 1, LeafHash: hash, TreeSize: 2, RootHash: hash, InclusionPath: []string{hash},
		}),
	}
	out := map[string]*canon.Object{}
	for name, doc := range docs {
		out[name] = canon.MustFrom(doc).(*canon.Object)
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := canon.Parse(data, canon.ObjectRoot())
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = v.(*canon.Object)
	}
	return out
}

// The places of the examples, by schema, at which a document may say anything, have any
// keys, or leave the key out.
var (
	anyForm = map[string][]string{
		"work-unit": {"/uncertainty", "/budget"}, "result-manifest": {"/metrics", "/provenance/environment"},
		"verifier-policy": {"/required_json"}, "connector-profile": {"/settings"},
		"gate-audit-matrix": {""}, // further keys may stand anywhere; see TestMatrices
	}
	anyKeys = map[string][]string{
		"replay-source": {"/verification_results"}, "gate-audit-report": {"/probes/by_kind"},
		"marginal-evidence-benchmark-config": {"/verifier_families"}, "marginal-evidence-benchmark-report": {"/analysis/verifier_families"},
	}
	mayBeAbsent = map[string][]string{
		"connector-profile": {"/auth", "/settings", "/capabilities", "/capabilities/tiers", "/capabilities/task_classes", "/capabilities/tools",
			"/capabilities/candidate_types", "/capabilities/max_risk", "/policy", "/policy/task_classes", "/policy/allowed_risk",
			"/policy/external_processing", "/policy/project_spend_usd_max", "/policy/max_concurrency", "/independence",
			"/independence/provider_family", "/independence/agent_family", "/independence/execution_family"},
		"routing-decision": {"/risk_class", "/task_classes", "/required_tools", "/allowed_connector_kinds", "/external_processing_allowed",
			"/project_spend_usd_max", "/human_gate_satisfied", "/prefer_zero_cost", "/avoid_provider_families", "/independent_reviewer_required"},
		"work-unit": {"/provenance/source_revision"}, "result-manifest": {"/logs/0/digest"},
		"verification-result": {"/provenance/verifier_config_digest"}, "two-attempt-run": {"/attempts/0/candidate_root"},
	}
)

func TestEverySchemaTakesItsExampleAndRefusesAnother(t *testing.T) {
	t.Parallel()
	all := exampleDocuments(t)
	for _, name := range schemas.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := all[name]
			if doc == nil {
				t.Fatal("no example")
			}
			if err := schematest.Validate(t, name, doc); err != nil {
				t.Fatal(err)
			}
			// Every key is required (except the error's details, which may be missing), and no other is accepted,
			// wherever an object is closed; the maps by name are open.
			for path, o := range collectObjects(doc, "") {
				open := name == "api-error" && path == "/error/details" ||
					name == "control-tower-status" && (path == "/schemas" || path == "/endpoints") ||
					name == "store-verification" && path == "/checked" ||
					slices.ContainsFunc(anyForm[name], func(at string) bool { return path == at || strings.HasPrefix(path, at+"/") }) ||
					slices.Contains(anyKeys[name], path)
				if !open {
					o.Set("unknown_key", true)
					if schematest.Validate(t, name, doc) == nil {
						t.Errorf("an unknown key in %q was taken; want schematest.Validate(t, name, doc) != nil", path)
					}
					o.Delete("unknown_key")
				}
				for _, key := range o.Keys() {
					if open || name == "api-error" && key == "details" {
						continue
					}
					v, _ := o.Get(key)
					at := canon.Pointer(path, key)
					o.Delete(key)
					if !slices.Contains(mayBeAbsent[name], at) && schematest.Validate(t, name, doc) == nil {
						t.Errorf("%s without %s was taken; want (slices.Contains(mayBeAbsent[name], at) || schematest.Validate(t, name, doc) != nil)", path, key)
					}
					o.Set(key, canon.NewObject(canon.Member{Key: "a", Value: "b"}))
					if !slices.Contains(anyForm[name], at) && schematest.Validate(t, name, doc) == nil {
						t.Errorf("an object of its own for %s/%s was taken; want (slices.Contains(anyForm[name], at) || schematest.Validate(t, name, doc) != nil)", path, key)
					}
					o.Set(key, v)
				}
			}
		})
	}
	if len(all) != len(schemas.Names()) {
		t.Errorf("%d examples of %d schemas; want len(all) == len(schemas.Names())", len(all), len(schemas.Names()))
	}
}

// collectObjects walks every object of a document with its pointer.
func collectObjects(v canon.Value, path string) map[string]*canon.Object {
	out := map[string]*canon.Object{}
	var walk func(v canon.Value, path string)
	walk = func(v canon.Value, path string) {
		switch v := v.(type) {
		case *canon.Object:
			out[path] = v
			for k, e := range v.All() {
				walk(e, canon.Pointer(path, k))
			}
		case canon.Array:
			for i, e := range v {
				walk(e, canon.Element(path, i))
			}
		}
	}
	walk(v, path)
	return out
}

func TestSchemasAreNamedByTheirID(t *testing.T) {
	t.Parallel()
	names := schemas.Names()
	if !slices.IsSorted(names) || len(names) != len(schemas.IDs()) {
		t.Error(names, "want slices.IsSorted(names) && len(names) == len(schemas.IDs())")
	}
	for _, name := range names {
		text, ok := schemas.Get(name)
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
			Title  string `json:"title"`
		}
		if err := json.Unmarshal(text, &head); !ok || err != nil {
			t.Fatal(name, err, "want ok")
		}
		if head.ID != "urn:svc:schema:"+name+":0.1" || schemas.IDs()[name] != head.ID || head.Schema != "https://json-schema.org/draft/2020-12/schema" || head.Title == "" {
			t.Errorf(`%s: %+v; want head.ID == "urn:svc:schema:" + name + ":0.1" && schemas.IDs()[name] == head.ID && head.Schema == "https://json-schema.org/draft/2020-12/schema" && head.Title != ""`, name, head)
		}
	}
	for _, name := range []string{"", "none", "../schemas/list", `..\list`, "testdata/control-tower-status"} {
		if _, ok := schemas.Get(name); ok {
			t.Errorf("Get(%q); want !ok", name)
		}
	}
}

func TestDocumentsOfEveryShapeFitTheirSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range fixture.Connections() {
		if err := schematest.Validate(t, "control-tower-connection-response", document.NewConnection(c)); err != nil {
			t.Error(err)
		}
	}
	events := evidencetest.RunEvents()
	for _, list := range []any{
		document.NewList(fixture.Connections(), 4, ""), document.NewList([]spine.Run{}, 1, ""),
		document.NewList(events[:], 200, ""), document.NewList(evidencetest.WorkUnits([]spine.Run{fixture.Run()}), 50, "x"),
	} {
		if err := schematest.Validate(t, "list", list); err != nil {
			t.Error(err)
		}
	}
	for _, doc := range []any{
		document.NewCheckpoint(document.CheckpointDetail{Origin: "svc/019b0000-0000-7000-8000-000000000001", RootHash: tree.Hex(tree.Empty()), CreatedAt: fixture.CreatedAt}, nil),
	} {
		if err := schematest.Validate(t, "event-log-checkpoint", doc); err != nil {
			t.Error(err)
		}
	}
	if err := schematest.Validate(t, "api-error", document.NewError("store_error", "The store is locked.", false, nil)); err != nil {
		t.Error(err)
	}
	if err := schematest.Validate(t, "event", evidencetest.RunEvents()[1]); err != nil {
		t.Error(err)
	}
	run := importedRun(t)
	if err := schematest.Validate(t, "event", spine.CreatedEvent(9, fixture.CreatedAt, run, fixture.Digest("1"), &spine.EvidenceRef{Kind: report.Kind, Digest: *run.EvidenceReportDigest})); err != nil {
		t.Error(err)
	}
}
