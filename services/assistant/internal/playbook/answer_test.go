package playbook_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

const unsetLog = "INFO starting\nFATAL DATABASE_URL is not set\n"

// answerCase is a fixture with one problem, and its expected answer.
type answerCase struct {
	file, log string
	class     engine.Class
	fix       operation.Verb // empty: a person has to supply a value
	say, not  []string
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	checkAnswers(t, []answerCase{
		{"a1_empty_variable", unsetLog, engine.CrashLoop, "", []string{"DATABASE_URL", "FATAL DATABASE_URL is not set", "exit code 1"}, []string{"delete"}},
		{"a2_command_not_in_image", "", engine.CrashLoop, operation.Undo, []string{"command `/bin/serve`", "127"}, []string{"log"}},
		{"a3_out_of_memory", "", engine.OutOfMemory, "", []string{"137", "64Mi"}, []string{"probe"}},
		{"a4_absent_tag", "", engine.ImagePull, operation.SetImage, []string{"shop/web:2.4.0", "no matter of credentials (auth)", "2.3.1"}, []string{"2.4.1", "latest"}},
		{"a5_registry_refuses", "", engine.ImagePull, "", []string{"pull credentials", "absent are `registry-login`"}, []string{"tag"}},
		{"a6_absent_configmap", "", engine.MissingObject, "", []string{"settlements-config", "was searched", "currency"}, []string{"image"}},
		{"a7_secret_key", "", engine.MissingKey, operation.Patch, []string{"DB_URL", "DATABASE_URL"}, []string{"hunter2", "aHVudGVyMg"}},
		{"a8_volume_key", "", engine.MissingKey, operation.Patch, []string{"portal.yaml", "ConfigMap exists"}, []string{"does not exist"}},
		{"a9_asks_too_much", "", engine.PendingResources, "", []string{"Node `node-1`: memory asked 50Gi, free 5Gi of 8Gi, short of 45Gi", "Node `node-2`"}, []string{"taint"}},
		{"a10_all_tainted", "", engine.PendingPlacement, operation.Patch, []string{"taint `gpu=only:NoSchedule`", "toleration"}, []string{"memory", "request"}},
		{"a13_liveness_path", "", engine.LivenessProbe, "", []string{"liveness probe", "`/health`", "404"}, []string{"memory", "OOM"}},
		{"a14_probe_port", "", engine.ReadinessProbe, operation.Patch, []string{"9999", "8080", "no endpoints"}, []string{"DNS"}},
		{"a15_selector", "", engine.ServiceWithoutEndpoint, operation.Patch, []string{"version=v2", "version=v1"}, []string{"NetworkPolicy"}},
		{"service_port_name", "", engine.ServicePort, operation.Patch, []string{"`web`", "8080 (main)"}, []string{"no endpoints"}},
		{"node_selector", "", engine.PendingPlacement, operation.Patch, []string{"disk=fast", "disk=ssd"}, []string{"taint"}},
	})
}

func checkAnswers(t *testing.T, tests []answerCase) {
	for _, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			t.Parallel()
			s := writeLogs(readSnapshot(t, test.file), test.log)
			checkFinding(t, s, test.file, test.class, test.fix, test.say, test.not)
		})
	}
}

// checkFinding checks that a snapshot has one finding, of a class, and that its answer is the same in any order of the
// snapshot. Without a verb a person has to supply a value.
func checkFinding(t *testing.T, s *engine.Snapshot, file string, class engine.Class, wanted operation.Verb, says, nots []string) {
	t.Helper()
	found := playbook.Diagnose(s, "")
	if len(found) != 1 || found[0].Class != class {
		t.Fatalf("got %+v, want one of class %s", found, class)
	}
	var verb operation.Verb
	if fix := found[0].Fix; fix != nil {
		verb = fix.Verb
		if back, err := kubectl.Parse(kubectl.Render(*fix)); err != nil || back.Verb != verb {
			t.Errorf("%s reads back as %+v, %v; want back.Verb == verb", kubectl.Render(*fix), back, err)
		}
	}
	if verb != wanted {
		t.Errorf("the fix is %q, want %q", verb, wanted)
	}
	answer := engine.Answer(s, found)
	for _, say := range says {
		if !strings.Contains(answer, say) {
			t.Errorf("the answer must say %q:\n%s", say, answer)
		}
	}
	for _, not := range nots {
		if strings.Contains(strings.ToLower(answer), strings.ToLower(not)) {
			t.Errorf("the answer must not say %q:\n%s", not, answer)
		}
	}
	assistanttest.CheckGolden(t, file+".md", []byte(answer))
	for seed := range uint64(5) {
		shuffleSnapshot(s, seed)
		if again := engine.Answer(s, playbook.Diagnose(s, "")); again != answer {
			t.Errorf("another order gives another answer:\n%s; want %v", again, answer)
		}
	}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	s := readSnapshot(t, "healthy")
	if found := playbook.Diagnose(s, ""); len(found) != 0 {
		t.Errorf("found %+v; want len(found) == 0", found)
	}
	if wants := s.Wants(); len(wants) != 0 {
		t.Errorf("wants %v", wants)
	}
}

func TestSeveral(t *testing.T) {
	t.Parallel()
	s := joinSnapshots(readSnapshot(t, "a15_selector"), readSnapshot(t, "a4_absent_tag"), writeLogs(readSnapshot(t, "a1_empty_variable"), unsetLog), readSnapshot(t, "a14_probe_port"))
	found := playbook.Diagnose(s, "shop")
	var classes []engine.Class
	for _, f := range found {
		classes = append(classes, f.Class)
	}
	if want := []engine.Class{engine.CrashLoop, engine.ImagePull, engine.ServiceWithoutEndpoint}; !slices.Equal(classes, want) {
		t.Fatalf("got %v, want %v", classes, want)
	}
	if len(found[0].Pods) != 2 || len(found[0].Consequences) != 1 {
		t.Errorf("two pods and the service belong to the crash: %+v; want len(found[0].Pods) == 2 && len(found[0].Consequences) == 1", found[0])
	}
	answer := engine.Answer(s, found)
	assistanttest.CheckGolden(t, "several.md", []byte(answer))

	for seed := range uint64(5) {
		shuffleSnapshot(s, seed)
		if again := engine.Answer(s, playbook.Diagnose(s, "shop")); again != answer {
			t.Errorf("another order gives another answer:\n%s; want %v", again, answer)
		}
	}
}
