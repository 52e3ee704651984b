package guard_test

import (
	"encoding/json"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// FuzzJudge: whatever shape objects have, nothing panics, an unchanged object gains nothing, readonly never writes, and
// no role gets more than an admin.
func FuzzJudge(f *testing.F) {
	f.Add(`{"spec":{"containers":[{"name":"a","image":"b"}]}}`, `{"spec":{"containers":[{"name":"a","securityContext":{"privileged":true}}],"hostPID":true}}`, "patch")
	f.Add(`{"metadata":{"finalizers":["a"]}}`, `{"metadata":{"finalizers":null}}`, "apply")
	f.Add(`{"spec":{"taints":[{"effect":"NoExecute"}]}}`, `{"spec":7}`, "delete")
	f.Fuzz(func(t *testing.T, before, after, verb string) {
		var b, a map[string]any
		if json.Unmarshal([]byte(before), &b) != nil || json.Unmarshal([]byte(after), &a) != nil {
			return
		}
		if gains := guard.Gains(b, b); b != nil && len(gains) > 0 {
			t.Fatalf("gains over itself: %q; want (b == nil || len(gains) <= 0)", gains)
		}
		verdict := func(role guard.Role) guard.Verdict {
			return policy.Judge(singleCase(role, operation.Operation{Verb: operation.Verb(verb)}, deployment, b, a))
		}
		admin, operator := verdict(guard.Admin), verdict(guard.Operator)
		if operation.Verb(verb).Writes() && verdict(guard.Readonly).Answer != guard.Refuse {
			t.Fatalf("readonly may %s; want (!operation.Verb(verb).Writes() || verdict(guard.Readonly).Answer == guard.Refuse)", verb)
		}
		if admin.Answer == guard.Refuse && operator.Answer != guard.Refuse {
			t.Fatalf("an operator may %s, an admin not; want (admin.Answer != guard.Refuse || operator.Answer == guard.Refuse)", verb)
		}
		if len(admin.Confirms) > 0 && admin.Answer != guard.AlwaysAsk {
			t.Fatalf("%q and yet %s; want (len(admin.Confirms) <= 0 || admin.Answer == guard.AlwaysAsk)", admin.Confirms, admin.Answer)
		}
	})
}
