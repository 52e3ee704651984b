package notice_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/mlp-platform/platform/libs/outbox"
	"github.com/mlp-platform/platform/services/dashboard-bff/internal/notice"
)

func TestWhatPeopleAreTold(t *testing.T) {
	t.Parallel()
	id, at := uuid.New(), time.Now()
	const approval = `{"id": "a1", "kind": "promotion", "model": "JPCP", "requested_by": "idp-a:ann", "resolved_by": "idp-a:bob", "reason": "too\r\nearly"}`
	for name, c := range map[string]struct {
		kind, data string
		want       notice.Notice
	}{
		"requested": {"approval.created", approval, notice.Notice{
			Type: notice.ApprovalRequested, Kind: notice.Approval, Object: "a1", Author: "idp-a:ann", Model: "JPCP",
			Title: "ann requests the promotion of JPCP", Path: "/approvals?id=a1",
		}},
		"rejected": {"approval.rejected", approval, notice.Notice{
			Type: notice.ApprovalDecided, Kind: notice.Approval, Object: "a1", Author: "idp-a:bob", Model: "JPCP", Outcome: "rejected",
			Title: "bob rejected the promotion of JPCP: too early", Path: "/approvals?id=a1&status=rejected",
		}},
		"expired": {"approval.expired", `{"id": "a1", "kind": "retrain", "model": "JPCP", "requested_by": "idp-a:ann"}`, notice.Notice{
			Type: notice.ApprovalDecided, Kind: notice.Approval, Object: "a1", Model: "JPCP", Outcome: "expired",
			Title: "The request for the training of JPCP expired", Path: "/approvals?id=a1&status=expired",
		}},
		"by the platform": {"approval.created", `{"id": "a1", "kind": "retrain", "model": "JPCP", "requested_by": "system:drift"}`, notice.Notice{
			Type: notice.ApprovalRequested, Kind: notice.Approval, Object: "a1", Author: "system:drift", Model: "JPCP",
			Title: "The platform requests the training of JPCP", Path: "/approvals?id=a1",
		}},
		"alert": {"alert.firing", `{"id": "drift:JPCP:a&b", "severity": "warn", "title": "JPCP drifts"}`, notice.Notice{
			Type: notice.AlertFiring, Kind: notice.Alert, Object: "drift:JPCP:a&b", Severity: "warn", Title: "JPCP drifts", Path: "/alerts?id=drift%3AJPCP%3Aa%26b",
		}},
		"alert is over": {"alert.resolved", `{"id": "x", "severity": "warn", "title": "JPCP drifts"}`, notice.Notice{
			Kind: notice.Alert, Object: "x", Severity: "warn", Outcome: "resolved", Path: "/alerts?id=x",
		}},
		"mention": {"event.mention", `{"user": "Bob", "entity": "model/JPCP", "by": "local:admin", "comment_id": "c1"}`, notice.Notice{
			Type: notice.Mentioned, Kind: notice.Mention, Object: "c1", Author: "local:admin", Recipient: "bob",
			Title: "admin mentions Bob in a comment on model JPCP", Path: "/models/JPCP?tab=discussion",
		}},
	} {
		c.want.EventID, c.want.Tenant, c.want.At = id, "a", at
		got, err := notice.Parse(outbox.Envelope{ID: id, Tenant: "a", Time: at, Type: "platform." + c.kind, Data: json.RawMessage(c.data)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestLongTitlesAreCut(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[string]string{"id": "x", "title": strings.Repeat("ä", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := notice.Parse(outbox.Envelope{Type: "platform.alert.firing", Data: data})
	if got := len([]rune(n.Title)); err != nil || got != 300 {
		t.Errorf("got %d characters, %v; want 300", got, err)
	}
}
