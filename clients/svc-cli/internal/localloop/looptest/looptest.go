// Package looptest makes local loops for tests: the folder of a loop that succeeds, in
// which a test then breaks one thing. The sample loops are made the same way.
package looptest

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Loop is a folder that is being made.
type Loop struct {
	Config, Unit, Control *canon.Object
	ControlFile           string
	Manifests             []*canon.Object   // nil for an attempt without one
	Files                 map[string]string // the candidates' files and whatever else lies there
	// Raw replaces whole documents, by path, after everything else was made.
	Raw map[string]string
}

// Revision is the source revision of every loop.
var Revision = strings.Repeat("3", 40)

const unit = `{"schema_version":"0.2","id":"work/demo-0001","version":1,"kind":"coding","objective":"Write the answer.",
"inputs":["the question"],"outputs":["the answer"],"dependencies":[],
"requirements":{"capabilities":["coder"],"resources":{"cpu_cores_min":1,"memory_mb_min":256,"gpu":"none"}},
"constraints":{"allowed_paths":["src/**","docs/*.md"],"forbidden_paths":["**/secrets/**"],"policies":["no new dependency"]},
"uncertainty":"low","security":{"risk_class":"low","data_classification":"public","minimum_worker_trust":"untrusted","sandbox_required":true},
"permissions":{"network":"none","filesystem_write":["src/**","docs/**"],"secrets":[],"process_execution":[]},
"verification_policy":{"strategy":"deterministic","independent_from_worker":true,"minimum_independent_verifiers":1},
"validators":[],"evidence_requirements":["the candidate's digest"],"budget":{"usd_max":0},
"provenance":{"created_by":"maintainer","creator_type":"human","source":"backlog"},
"failure_semantics":{"retryable":true,"max_attempts":2,"on_failure":"report"}}`

const manifestText = `{"schema_version":"0.1","id":"manifest-N","work_unit_id":"work/demo-0001","work_unit_version":1,"attempt":N,
"worker":{"id":"worker-N","type":"agent","adapter":"ADAPTER"},"status":"succeeded",
"started_at":"2026-01-02T03:04:05Z","finished_at":"2026-01-02T03:05:05Z","produced_artifacts":[],"logs":[],
"metrics":{"edits":1},"resources":{"wall_seconds":60.0},"self_report":{"summary":"Done.","claims":["It is correct."]},
"provenance":{"work_unit_digest":"","source_revision":"` + "3333333333333333333333333333333333333333" + `","environment":{"os":"linux"}},
"verification_request":{"expected_validator_ids":[],"evidence_artifact_ids":["candidate"]}}`

func parseObject(text string) *canon.Object {
	v, err := canon.Parse([]byte(text), canon.ObjectRoot())
	if err != nil {
		panic(err) // the texts are constants
	}
	return v.(*canon.Object)
}

func baseLoop(run, control, controlFile, artifact, artifactType string, checks ...string) *Loop {
	l := &Loop{
		Config:  parseObject(`{"schema_version":"0.1","run_id":"` + run + `","work_unit":"work-unit.json","attempts":[]}`),
		Control: parseObject(control), ControlFile: controlFile, Unit: parseObject(unit), Files: map[string]string{}, Raw: map[string]string{},
	}
	key := "verifier_policy"
	if controlFile == "plan.json" {
		key = "evaluator_plan"
		Set(l.Control, "source_revision", Revision)
		Set(l.Control, "verifier_id", "reviewer")
	}
	l.Config.Set(key, controlFile)
	Set(l.Control, "work_unit", parseObject(`{"id":"work/demo-0001","version":1,"digest":""}`))
	Set(l.Control, "candidate_artifact_id", "candidate")
	validators, ids, attempts := canon.Array{}, canon.Array{}, canon.Array{}
	for _, c := range checks {
		validators = append(validators, parseObject(`{"id":"`+c+`","type":"deterministic","required":true}`))
		ids = append(ids, c)
	}
	Set(l.Unit, "validators", validators)
	Set(l.Control, "required_validators", ids)
	for i, adapter := range []string{"fixture-result", "result-bundle"} {
		n := strconv.Itoa(i + 1)
		m := parseObject(strings.NewReplacer(`"attempt":N`, `"attempt":`+n, "-N", "-"+n, "ADAPTER", adapter).Replace(manifestText))
		Set(m, "produced_artifacts", canon.Array{parseObject(`{"id":"candidate","type":"` + artifactType + `","locator":"` + artifact + `","digest":""}`)})
		Set(m, "logs", canon.Array{parseObject(`{"type":"stdout","locator":"logs/stdout.txt","digest":""}`)})
		Set(m, "verification_request.expected_validator_ids", ids)
		l.Manifests = append(l.Manifests, m)
		attempts = append(attempts, parseObject(`{"attempt_id":"attempt-`+n+`","worker_adapter":"`+adapter+`","result_manifest":"attempt-`+n+`/result-manifest.json","candidate_root":"attempt-`+n+`/candidate"}`))
		l.Files["attempt-"+n+"/candidate/logs/stdout.txt"] = "worker " + n + " is done\n"
	}
	Set(l.Config, "attempts", attempts)
	return l
}

// JSON is a loop with a policy: the first attempt is right, the second is wrong.
func JSON() *Loop {
	l := baseLoop("run/json-demo", `{"schema_version":"0.1","kind":"svc-verifier-policy","id":"policy/json-demo",
"allowed_files":["answer.json","logs/stdout.txt"],"max_candidate_bytes":4096,"required_json":{"answer":42,"unit":"none"}}`,
		"policy.json", "answer.json", "json", "artifact-digest", "candidate-scope", "independent-acceptance")
	l.Files["attempt-1/candidate/answer.json"] = "{\"unit\": \"none\", \"answer\": 42}\n"
	l.Files["attempt-2/candidate/answer.json"] = "{\"answer\": 41, \"unit\": \"none\"}\n"
	return l
}

// JSONPlan is JSON with a plan of version 0.1.
func JSONPlan() *Loop {
	p := baseLoop("run/json-plan-demo", `{"schema_version":"0.1","kind":"svc-evaluator-plan","id":"plan/json-demo","evaluator":"json_exact",
"allowed_files":["answer.json","logs/stdout.txt"],"max_candidate_bytes":4096,"required_json":{"answer":42,"unit":"none"}}`,
		"plan.json", "answer.json", "json", "artifact-digest", "candidate-scope", "independent-acceptance")
	p.Files = JSON().Files
	return p
}

// Failing is JSON with a worker that failed in the place of the second attempt.
func Failing() *Loop {
	l := JSON()
	Set(l.Config, "run_id", "run/failing-demo")
	Set(l.Config, "attempts.1", parseObject(`{"attempt_id":"attempt-2","worker_adapter":"fixture-failure","failure":"The worker ran out of memory."}`))
	l.Manifests[1] = nil
	for name := range l.Files {
		if strings.HasPrefix(name, "attempt-2/") {
			delete(l.Files, name)
		}
	}
	return l
}

// GoodPatch is the first attempt's patch in a patch loop.
const GoodPatch = `diff --git a/src/answer.txt b/src/answer.txt
index 1111111..2222222 100644
--- a/src/answer.txt
+++ b/src/answer.txt
@@ -1,2 +1,3 @@
 The question is long.
+The answer is 42.
 The end.
`

// OtherPatch is the second attempt's patch: it writes where nothing may be written.
const OtherPatch = GoodPatch + `diff --git a/src/secrets/key.txt b/src/secrets/key.txt
new file mode 100644
index 0000000..3333333
--- /dev/null
+++ b/src/secrets/key.txt
@@ -0,0 +1 @@
+hello
`

// ChangePatch removes a line too, as a plan of version 0.4 can require.
const ChangePatch = `diff --git a/src/answer.txt b/src/answer.txt
index 1111111..2222222 100644
--- a/src/answer.txt
+++ b/src/answer.txt
@@ -1,2 +1,2 @@
 The question is long.
-The answer is 41.
+The answer is 42.
`

// Patch is a loop with a plan of version 0.2, 0.3 or 0.4.
func Patch(version string) *Loop {
	control := map[string]string{
		"0.2": `{"schema_version":"0.2","kind":"svc-evaluator-plan","id":"plan/patch-lines","evaluator":"patch_exact_lines",
"required_log_types":["stdout"],"files":[{"path":"src/answer.txt","added_lines":["The answer is 42."]}]}`,
		"0.3": `{"schema_version":"0.3","kind":"svc-evaluator-plan","id":"plan/patch-added","evaluator":"patch_added_substrings",
"files":[{"path":"src/answer.txt","added_substrings":["answer","42"]}]}`,
		"0.4": `{"schema_version":"0.4","kind":"svc-evaluator-plan","id":"plan/patch-substrings","evaluator":"patch_substrings",
"files":[{"path":"src/answer.txt","added_substrings":["42"],"removed_substrings":["41"]}]}`,
	}[version]
	l := baseLoop("run/patch-demo-"+version, control, "plan.json", "change.patch", "patch", "result-manifest-schema", "independent-review")
	first := GoodPatch
	if version == "0.4" {
		first = ChangePatch
	}
	l.Files["attempt-1/candidate/change.patch"], l.Files["attempt-2/candidate/change.patch"] = first, OtherPatch
	return l
}

// Set puts a value at a place of a document, "a.b.0.c"; it panics if there is no such
// place.
func Set(doc *canon.Object, place string, v canon.Value) {
	parts := strings.Split(place, ".")
	var at canon.Value = doc
	for i, part := range parts {
		last := i == len(parts)-1
		switch in := at.(type) {
		case *canon.Object:
			if last {
				in.Set(part, v)
			}
			at, _ = in.Get(part)
		case canon.Array:
			n, err := strconv.Atoi(part)
			if err != nil {
				panic(err)
			}
			if last {
				in[n] = v
			}
			at = in[n]
		default:
			panic(place)
		}
	}
}

// Seal fills every digest that is empty: of the work unit, of the files.
func (l *Loop) Seal() *Loop {
	digest := canon.Digest(l.Unit)
	fillMember(l.Control, "work_unit", "digest", digest)
	for i, m := range l.Manifests {
		if m == nil {
			continue
		}
		fillMember(m, "provenance", "work_unit_digest", digest)
		for _, list := range []string{"produced_artifacts", "logs"} {
			files, _ := m.Get(list)
			array, _ := files.(canon.Array)
			for _, f := range array {
				o := f.(*canon.Object)
				locator, _ := o.Get("locator")
				if d, ok := o.Get("digest"); ok && d == "" {
					o.Set("digest", canon.DigestBytes([]byte(l.Files["attempt-"+strconv.Itoa(i+1)+"/candidate/"+locator.(string)])))
				}
			}
		}
	}
	return l
}

func fillMember(doc *canon.Object, in, key string, v canon.Value) {
	o, _ := doc.Get(in)
	if inner, ok := o.(*canon.Object); ok {
		if have, _ := inner.Get(key); have == "" {
			inner.Set(key, v)
		}
	}
}

// Render returns every file of the folder.
func (l *Loop) Render() map[string]string {
	l.Seal()
	out := maps.Clone(l.Files)
	add := func(name string, doc *canon.Object) {
		data, err := canon.P(doc)
		if err != nil {
			panic(err)
		}
		out[name] = string(data)
	}
	add("config.json", l.Config)
	add("work-unit.json", l.Unit)
	add(l.ControlFile, l.Control)
	for i, m := range l.Manifests {
		if m != nil {
			add("attempt-"+strconv.Itoa(i+1)+"/result-manifest.json", m)
		}
	}
	maps.Copy(out, l.Raw)
	return out
}

// Write writes the folder below dir and returns the path of the config.
func (l *Loop) Write(t testing.TB, dir string) string {
	t.Helper()
	for name, text := range l.Render() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "config.json")
}

// Samples are the sample loops, by folder.
func Samples() map[string]*Loop {
	return map[string]*Loop{
		"json": JSON(), "json-plan": JSONPlan(), "failing": Failing(),
		"patch-0.2": Patch("0.2"), "patch-0.3": Patch("0.3"), "patch-0.4": Patch("0.4"),
	}
}
