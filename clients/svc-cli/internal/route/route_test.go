package route_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/command"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/connectors"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/route"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/evidence/closed"
	"github.com/mlp-platform/platform/libs/evidence/spine"
	"github.com/mlp-platform/platform/services/evidence-api/api/schemas/schematest"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newAgent(id string, change ...func(*connectors.Connector)) connectors.Connector {
	c := connectors.Connector{Connection: spine.Connection{ID: id, Kind: "agent", Driver: "fake-agent", Enabled: true,
		MaxRisk: "medium", ProjectSpendUSDMax: 10, MaxConcurrency: 1}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func newDecision(t testing.TB, more string) route.Decision {
	t.Helper()
	v, err := canon.Parse([]byte(`{"required_capability_tier":"T1","authority_mode":"agent_candidate"` + more + `}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := route.ParseDecision(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newQuestion(d route.Decision, all ...connectors.Connector) route.Question {
	return route.Question{Connectors: all, Probes: connectors.Inspect(all, at), Decision: d, At: at, Select: true}
}

func TestDecisionDefaults(t *testing.T) {
	t.Parallel()
	d := newDecision(t, "")
	if d.Risk != "low" || !slices.Equal(d.AllowedKinds, []string{"agent"}) || !d.ExternalProcessingAllowed || d.ProjectSpendUSDMax != 0 ||
		d.HumanGateSatisfied || !d.PreferZeroCost || d.IndependentReviewerRequired || len(d.TaskClasses)+len(d.RequiredTools)+len(d.AvoidProviderFamilies) != 0 {
		t.Errorf(`%+v; want d.Risk == "low" && slices.Equal(d.AllowedKinds, []string{"agent"}) && d.ExternalProcessingAllowed && d.ProjectSpendUSDMax == 0 && !d.HumanGateSatisfied && …`, d)
	}
}

func TestDecisionFaults(t *testing.T) {
	t.Parallel()
	base := `"required_capability_tier":"T1","authority_mode":"agent_candidate"`
	for _, c := range []struct{ text, code, path string }{
		{`[]`, connectors.InvalidDocument, ""},
		{`{"authority_mode":"deterministic"}`, connectors.MissingField, "/required_capability_tier"},
		{`{` + base + `,"x":1}`, connectors.UnknownField, "/x"},
		{`{"required_capability_tier":"T9","authority_mode":"agent_candidate"}`, connectors.InvalidCapabilityTier, "/required_capability_tier"},
		{`{"required_capability_tier":"T1","authority_mode":"robot"}`, spine.InvalidAuthorityMode, "/authority_mode"},
		{`{"required_capability_tier":"T1","authority_mode":"deterministic"}`, connectors.ConflictingField, "/required_capability_tier"},
		{`{` + base + `,"risk_class":"none"}`, connectors.InvalidRisk, "/risk_class"},
		{`{` + base + `,"task_classes":["a","a"]}`, connectors.DuplicateValue, "/task_classes/1"},
		{`{` + base + `,"required_tools":[""]}`, connectors.InvalidValue, "/required_tools/0"},
		{`{` + base + `,"allowed_connector_kinds":["robot"]}`, connectors.UnknownConnectorKind, "/allowed_connector_kinds/0"},
		{`{` + base + `,"human_gate_satisfied":1}`, connectors.InvalidType, "/human_gate_satisfied"},
		{`{` + base + `,"project_spend_usd_max":-1}`, connectors.InvalidValue, "/project_spend_usd_max"},
	} {
		v, err := canon.Parse([]byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = route.ParseDecision(v)
		var f *closed.Fault
		if !errors.As(err, &f) || f.Code != c.code || f.Path != c.path {
			t.Errorf("%s: %v; want %s at %s", c.text, err, c.code, c.path)
		}
	}
}

// Every reason, alone and in the order of the rules.
func TestReasons(t *testing.T) {
	t.Parallel()
	model := newAgent("c", func(c *connectors.Connector) { c.Kind, c.Driver = "model", "fake-model" })
	for _, c := range []struct {
		name      string
		connector connectors.Connector
		decision  string
		cost      float64
		want      []string
	}{
		{"fit", newAgent("c"), "", 0, nil},
		{"unknown driver", newAgent("c", func(c *connectors.Connector) { c.Driver = "x" }), `,"risk_class":"critical"`, 11, []string{"inspection_error:unknown_driver"}},
		{"own cap", newAgent("c"), `,"risk_class":"critical"`, 11, []string{"connector_spend_policy_exceeded"}},
		{"human", newAgent("c"), `,"authority_mode":"human_required"`, 0, []string{"human_required"}},
		{"gate", newAgent("c"), `,"authority_mode":"human_gate_then_agent"`, 0, []string{"human_gate_pending"}},
		{"gate passed", newAgent("c"), `,"authority_mode":"human_gate_then_agent","human_gate_satisfied":true`, 0, nil},
		{"deterministic", newAgent("c"), `,"authority_mode":"deterministic","required_capability_tier":"T0"`, 0, []string{"deterministic_no_llm"}},
		{"deterministic model", model, `,"authority_mode":"deterministic","required_capability_tier":"T0","allowed_connector_kinds":["model"]`, 0, []string{"deterministic_no_llm"}},
		{"disabled", newAgent("c", func(c *connectors.Connector) { c.Enabled = false }), "", 0, []string{"connector_disabled", "capacity_unavailable"}},
		{"secret", newAgent("c", func(c *connectors.Connector) { c.AuthRefConfigured = true }), "", 0, []string{"connector_unavailable", "secret_unavailable", "capacity_unavailable"}},
		{"kind", model, "", 0, []string{"connector_kind_not_allowed"}},
		{"tier", newAgent("c"), `,"required_capability_tier":"T3"`, 0, []string{"insufficient_capability_tier"}},
		{"configured tier", newAgent("c", func(c *connectors.Connector) { c.CapabilityTiers = []string{"T1", "T4"} }), `,"required_capability_tier":"T2"`, 0, []string{"insufficient_capability_tier"}},
		{"classes", newAgent("c", func(c *connectors.Connector) { c.TaskClasses = []string{"coder", "cook"} }), `,"task_classes":["tests","coder","cook"]`, 0,
			[]string{"task_class_unsupported:cook", "task_class_unsupported:tests"}},
		{"tools", newAgent("c"), `,"required_tools":["saw","git","axe"]`, 0, []string{"required_tool_missing:axe", "required_tool_missing:saw"}},
		{"risk of the driver", newAgent("c", func(c *connectors.Connector) { c.MaxRisk = "high" }), `,"risk_class":"high"`, 0, []string{"risk_not_allowed"}},
		{"risk of the profile", newAgent("c", func(c *connectors.Connector) { c.MaxRisk = "low" }), `,"risk_class":"medium"`, 0, []string{"risk_not_allowed"}},
		{"external", newAgent("c", func(c *connectors.Connector) { c.ExternalProcessing = true }), `,"external_processing_allowed":false`, 0, []string{"external_processing_forbidden"}},
		{"external driver", model, `,"external_processing_allowed":false,"allowed_connector_kinds":["model"]`, 0, []string{"external_processing_forbidden"}},
		{"spend", newAgent("c"), `,"project_spend_usd_max":0.5`, 0.75, []string{"project_spend_exceeded"}},
		{"all", newAgent("c", func(c *connectors.Connector) {
			c.Kind, c.Driver, c.Enabled, c.AuthRefConfigured = "model", "fake-model", false, true
		}), `,"authority_mode":"human_required","required_capability_tier":"T4","task_classes":["x"],"required_tools":["y"],"risk_class":"critical","external_processing_allowed":false`, 1,
			[]string{"human_required", "connector_disabled", "connector_kind_not_allowed", "insufficient_capability_tier", "task_class_unsupported:x", "required_tool_missing:y",
				"risk_not_allowed", "external_processing_forbidden", "project_spend_exceeded", "capacity_unavailable"}},
	} {
		text := `{"required_capability_tier":"T1","authority_mode":"agent_candidate"}`
		v, _ := canon.Parse([]byte(text))
		more, err := canon.Parse([]byte("{" + strings.TrimPrefix(c.decision, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		for k, e := range more.(*canon.Object).All() {
			v.(*canon.Object).Set(k, e)
		}
		d, err := route.ParseDecision(v)
		if err != nil {
			t.Fatal(c.name, err)
		}
		q := newQuestion(d, c.connector)
		q.Costs = map[string]float64{"c": c.cost}
		got := route.Explain(q)
		if c.want == nil {
			if len(got.Eligible) != 1 || len(got.Ineligible) != 0 {
				t.Errorf("%s: %+v; want len(got.Eligible) == 1 && len(got.Ineligible) == 0", c.name, got)
			}
			continue
		}
		if len(got.Eligible) != 0 || got.SelectedConnectionID != nil || len(got.SelectionReason) != 0 || !slices.Equal(got.Ineligible[0].Reasons, c.want) {
			t.Errorf("%s: %+v; want %v", c.name, got, c.want)
		}
	}
}

// Each key of the order decides when all before it are equal: "a" would win by its id.
func TestOrder(t *testing.T) {
	t.Parallel()
	with := func(f func(*connectors.Connector)) connectors.Connector { return newAgent("a", f) }
	for _, c := range []struct {
		name     string
		worse    connectors.Connector
		decision string
		cost     float64
		degraded bool
	}{
		{"tier", with(func(c *connectors.Connector) { c.CapabilityTiers = []string{"T2"} }), "", 0, false},
		{"paid", with(func(*connectors.Connector) {}), `,"project_spend_usd_max":1`, 0.5, false},
		{"cost", with(func(*connectors.Connector) {}), `,"project_spend_usd_max":1,"prefer_zero_cost":false`, 0.5, false},
		{"family", with(func(c *connectors.Connector) { c.Independence.ProviderFamily = "p" }), `,"avoid_provider_families":["p"]`, 0, false},
		{"external", with(func(c *connectors.Connector) { c.ExternalProcessing = true }), "", 0, false},
		{"degraded", with(func(*connectors.Connector) {}), "", 0, true},
	} {
		q := newQuestion(newDecision(t, c.decision), c.worse, newAgent("b"))
		q.Costs = map[string]float64{"a": c.cost}
		if c.degraded {
			q.Probes[0].Probe.Status = connectors.Degraded
		}
		if got := route.Explain(q); len(got.Eligible) != 2 || *got.SelectedConnectionID != "b" {
			t.Errorf(`%s: %+v; want len(got.Eligible) == 2 && *got.SelectedConnectionID == "b"`, c.name, got)
		}
	}
	// A family to avoid comes behind the tier, unless an independent reviewer is required.
	near := newAgent("near", func(c *connectors.Connector) { c.Independence.ProviderFamily = "p" })
	far := newAgent("far", func(c *connectors.Connector) { c.CapabilityTiers = []string{"T2"} })
	for more, want := range map[string]string{"": "near", `,"independent_reviewer_required":true`: "far"} {
		if got := route.Explain(newQuestion(newDecision(t, `,"avoid_provider_families":["p"]`+more), near, far)); *got.SelectedConnectionID != want {
			t.Errorf("%s: %+v; want *got.SelectedConnectionID == %v", more, got, want)
		}
	}
}

func TestExplanation(t *testing.T) {
	t.Parallel()
	q := newQuestion(newDecision(t, `,"risk_class":"medium"`), newAgent("c", func(c *connectors.Connector) { c.Enabled = false }), newAgent("b"), newAgent("a"))
	got, err := canon.C1(route.Explain(q))
	want := `{"checked_at":"2026-01-02T03:04:05Z","eligible":[{"connection_id":"a","supported_tier":"T1"},{"connection_id":"b","supported_tier":"T1"}],` +
		`"ineligible":[{"connection_id":"c","reasons":["connector_disabled","capacity_unavailable"]}],"selected_connection_id":"a",` +
		`"selection_reason":["lexicographic_v0_1","required_tier:T1","authority:agent_candidate","risk:medium"]}`
	if err != nil || string(got) != want {
		t.Errorf("%s %v; want string(got) == want", got, err)
	}
	q.Select = false
	if got := route.Explain(q); got.SelectedConnectionID != nil || len(got.SelectionReason) != 0 || len(got.Eligible) != 2 {
		t.Errorf("selected without being asked: %+v; want got.SelectedConnectionID == nil && len(got.SelectionReason) == 0 && len(got.Eligible) == 2", got)
	}
}

func TestCosts(t *testing.T) {
	t.Parallel()
	all := []connectors.Connector{newAgent("a"), newAgent("b")}
	got, err := route.ParseCosts([]string{"a=0.25", "b=3"}, all)
	if err != nil || got["a"] != 0.25 || got["b"] != 3 {
		t.Error(got, err, `want got["a"] == 0.25 && got["b"] == 3`)
	}
	for pair, code := range map[string]string{
		"a": route.InvalidCost, "a=": route.InvalidCost, "a=x": route.InvalidCost, "a=-1": route.InvalidCost, "a=NaN": route.InvalidCost,
		"a=1e999": route.InvalidCost, "c=1": route.InvalidCost, "=1": route.InvalidCost, `a="1"`: route.InvalidCost, "b=2": route.DuplicateCost,
		"a=1" + strings.Repeat("0", 400): route.InvalidCost,
	} {
		if _, err := route.ParseCosts([]string{"b=1", pair}, all); err == nil || command.FaultOf(err).Code != code {
			t.Errorf("%s: %v; want %s", pair, err, code)
		}
	}
}

func TestDecisionSchemaAgrees(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"decision", "decision-human"} {
		v, err := canon.Parse(samples.File("connectors/" + name + ".json"))
		if err != nil {
			t.Fatal(err)
		}
		doc := v.(*canon.Object)
		if _, err := route.ParseDecision(doc); err != nil {
			t.Fatal(err)
		}
		refused := 0
		schematest.Mutants(doc, func(what string) {
			_, err := route.ParseDecision(doc)
			if schemaErr := schematest.Validate(t, "routing-decision", doc); (err == nil) != (schemaErr == nil) {
				t.Errorf("%s: code %v, schema %v; want (err == nil) == (schemaErr == nil)", what, err, schemaErr)
			} else if err != nil {
				refused++
			}
		}, "T0", "T4", "deterministic", "human_required", canon.Array{"agent"}, canon.Array{"robot"})
		if refused == 0 {
			t.Error("nothing was refused")
		}
	}
}

// A decision that is accepted explains every connector once, whatever the order of the
// question.
func FuzzDecision(f *testing.F) {
	f.Add(samples.File("connectors/decision.json"))
	f.Add(samples.File("connectors/decision-human.json"))
	profile, err := canon.Parse(samples.File("connectors/profile.json"))
	if err != nil {
		f.Fatal(err)
	}
	all, err := connectors.Parse(profile)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := canon.Parse(data)
		if err != nil {
			return
		}
		d, err := route.ParseDecision(v)
		var fault *closed.Fault
		if err != nil {
			if !errors.As(err, &fault) {
				t.Fatalf("%v is no fault; want errors.As(err, &fault)", err)
			}
			return
		}
		got := route.Explain(newQuestion(d, all...))
		if len(got.Eligible)+len(got.Ineligible) != len(all) || (got.SelectedConnectionID != nil) != (len(got.Eligible) > 0) {
			t.Fatalf("%+v; want len(got.Eligible) + len(got.Ineligible) == len(all) && (got.SelectedConnectionID != nil) == (len(got.Eligible) > 0)", got)
		}
		for _, i := range got.Ineligible {
			if len(i.Reasons) == 0 {
				t.Fatalf("%s is refused for no reason; want len(i.Reasons) != 0", i.ConnectionID)
			}
		}
	})
}
