package chat_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mlp-platform/platform/services/assistant/internal/chat"
)

func TestWords(t *testing.T) {
	t.Parallel()
	const id = action
	one := func(id string) chat.Word { return chat.Word{Verdict: chat.ApproveOne, ActionID: id} }
	for query, want := range map[string]chat.Word{
		"yes": {Verdict: chat.Approve}, "approve": {Verdict: chat.Approve}, "/approve": {Verdict: chat.Approve}, "proceed": {Verdict: chat.Approve},
		"YES": {Verdict: chat.Approve}, " Approve\n": {Verdict: chat.Approve}, "\u00a0proceed\u2003": {Verdict: chat.Approve},
		"no": {Verdict: chat.Deny}, "deny": {Verdict: chat.Deny}, "/deny": {Verdict: chat.Deny}, "cancel": {Verdict: chat.Deny}, "CanCel": {Verdict: chat.Deny},
		"approve all": {Verdict: chat.ApproveAll}, "Approve All": {Verdict: chat.ApproveAll}, "auto-approve": {Verdict: chat.ApproveAll},
		"auto-approve off": {Verdict: chat.AutoApproveOff}, "AUTO-APPROVE OFF": {Verdict: chat.AutoApproveOff},
		"approve " + id: one(id), "/approve " + id: one(id), "APPROVE \t " + strings.ToUpper(id): one(id),
		"deny " + id: {Verdict: chat.DenyOne, ActionID: id}, "/Deny " + id + " ": {Verdict: chat.DenyOne, ActionID: id},
		"deny " + id + " Not in\nOffice \x1b[31mhours": {Verdict: chat.DenyOne, ActionID: id, Reason: "Not in Office [31mhours"},
		"deny " + id + " " + strings.Repeat("é", 600):  {Verdict: chat.DenyOne, ActionID: id, Reason: strings.Repeat("é", 500)},
	} {
		if got := chat.ParseWord(query); got != want {
			t.Errorf("%.80q: %+v, want %+v", query, got, want)
		}
	}
}

// None of these decides anything.
func TestNoWords(t *testing.T) {
	t.Parallel()
	const id = action
	for _, query := range []string{
		"", " ", "yes but later", "yes.", "yes!", "\"yes\"", "yess", "y", "ok", "yes yes", "/yes", "/proceed", "/no", "/cancel", "wait, why?",
		"approve  all", "/approve all", "approve\nall", "approve all of them", "approve everything", "auto approve", "/auto-approve", "auto-approve on", "auto-approve  off",
		"approve it", "approve 7", "approve " + id[:35], "approve " + id + "0", "approve " + id + " and scale to 9", "approve " + id + " " + id, "approve\n" + id, "please approve " + id,
		"//approve", "//approve " + id, "approve" + id, "deny" + id, "denied", "deny it", "proceed to delete", "do not proceed", "yes\x00", "ʏes", "уes", "ｙｅｓ", "yeſ", "y\u200bes",
		"\u200byes", "approve\u00a0" + id, "[context: namespace=shop] yes",
	} {
		if got := chat.ParseWord(query); got != (chat.Word{}) {
			t.Errorf("%q: %+v; want got == (chat.Word{})", query, got)
		}
	}
}

// Context groups precede everything else.
func TestWordAfterContext(t *testing.T) {
	t.Parallel()
	_, query := chat.CutContext("[context: namespace=shop] [context: kube_context=prod]\n Yes ")
	if got := chat.ParseWord(query); got.Verdict != chat.Approve {
		t.Errorf("%q: %v; want got.Verdict == %v", query, got, chat.Approve)
	}
}

// FuzzWords checks that only the words of the table decide, only verdicts with an id name one, and a reason is one
// short line.
func FuzzWords(f *testing.F) {
	for _, s := range []string{"yes", "YES ", "/approve", "approve all", "deny " + action + " because", "approve " + action, "auto-approve off", "K", "İ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) {
		w := chat.ParseWord(query)
		trimmed := strings.TrimSpace(query)
		ascii := strings.IndexFunc(trimmed, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		switch w.Verdict {
		case chat.NoVerdict:
			if w != (chat.Word{}) {
				t.Fatalf("%+v; want w == (chat.Word{})", w)
			}
		case chat.ApproveOne, chat.DenyOne:
			if len(w.ActionID) != 36 || !strings.Contains(strings.ToLower(trimmed), w.ActionID) || w.Verdict == chat.ApproveOne && (w.Reason != "" || len(strings.Fields(trimmed)) != 2) {
				t.Fatalf(`%q: %+v; want len(w.ActionID) == 36 && strings.Contains(strings.ToLower(trimmed), w.ActionID) && (w.Verdict != chat.ApproveOne || !w.Reason != "" || len(strings.Fields(trimmed)) != 2)`, query, w)
			}
		default:
			if w.ActionID != "" || w.Reason != "" || !ascii || len(trimmed) > len("auto-approve off") {
				t.Fatalf(`%q: %+v; want w.ActionID == "" && w.Reason == "" && ascii && len(trimmed) <= len("auto-approve off")`, query, w)
			}
		}
		if utf8.RuneCountInString(w.Reason) > 500 || strings.ContainsAny(w.Reason, "\n\r\t\x1b\u2028") || w.Reason != strings.TrimSpace(w.Reason) {
			t.Fatalf("reason %q; want utf8.RuneCountInString(w.Reason) <= 500 && !strings.ContainsAny(w.Reason, \"\\n\\r\\t\\x1b\\u2028\") && w.Reason == strings.TrimSpace(w.Reason)", w.Reason)
		}
		if again := chat.ParseWord("\n " + strings.ToUpper(trimmed) + "\t"); ascii && again.Verdict != w.Verdict {
			t.Fatalf("%q: %v, in upper case %v; want (!ascii || again.Verdict == w.Verdict)", query, w, again)
		}
	})
}
