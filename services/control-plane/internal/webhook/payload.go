package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/mlp-platform/platform/libs/problem"
	"github.com/mlp-platform/platform/libs/service"
	"github.com/mlp-platform/platform/services/control-plane/internal/fault"
	"github.com/mlp-platform/platform/services/control-plane/internal/identity"
	"github.com/mlp-platform/platform/services/control-plane/internal/push"
)

// notPush is the reason to skip a delivery of another kind.
const notPush = "not a push"

// cutAt is the number of commits at which forge B's list may be truncated.
const cutAt = 20

// commitID matches a commit id: a digest in either length, and room for forges that abbreviate.
var commitID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// payload is a JSON object by its keys, exactly as written.
type payload map[string]json.RawMessage

// parsePayload parses a payload; the error is a 400. A duplicate key is refused: two readers would see two pushes.
func parsePayload(raw []byte) (payload, error) {
	var p payload
	if err := service.ParseForeignJSON(raw, &p, false); err != nil {
		return nil, malformedPayload(problem.From(err).Detail)
	}
	return p, nil
}

func malformedPayload(detail string) error { return fault.MalformedPayload.New(detail) }

// read decodes the value of a key into dst, which stays unchanged if the key is absent or null.
func (p payload) read(key string, dst any) error {
	raw, ok := p[key]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		return malformedPayload(fmt.Sprintf("%s: is not valid in a push.", key))
	}
	return nil
}

// commit is one commit of a push, in the members that both forges send.
type commit struct {
	ID      string `json:"id"`
	Message string `json:"message"`
	Author  struct {
		Name string `json:"name"`
	} `json:"author"`
	Added    []string `json:"added"`
	Modified []string `json:"modified"`
	Removed  []string `json:"removed"`
}

func changedFiles(commits []commit) []string {
	var out []string
	for _, c := range commits {
		out = append(append(append(out, c.Added...), c.Modified...), c.Removed...)
	}
	return out
}

// newPush builds the push; the branch is empty if ref names none.
func newPush(ref, sha, by string, commits []commit, cut bool) (push.Push, error) {
	branch, ok := strings.CutPrefix(ref, "refs/heads/")
	if !ok {
		branch = ""
	}
	if sha != "" && !commitID.MatchString(sha) {
		return push.Push{}, malformedPayload("The commit must be 1 to 128 letters, digits, '.', '_' or '-'.")
	}
	out := push.Push{CommitSHA: sha, Branch: branch, PushedBy: by, Source: push.Webhook, Files: changedFiles(commits)}
	// A head that moved without any commit was reset to an older one: the payload does not list the changed files.
	out.FilesKnown = !cut && len(commits) > 0
	for _, c := range commits { // the head's message, else the last one's
		if out.Message = c.Message; c.ID == sha {
			break
		}
	}
	return out, nil
}

func firstNonEmpty(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

// parseA parses a push of forge A; skip is the reason if it is not one.
func parseA(h http.Header, p payload) (out push.Push, skip string, err error) {
	var kind string
	if err := p.read("object_kind", &kind); err != nil {
		return out, "", err
	}
	switch event := h.Get("X-Gitlab-Event"); {
	case event == "", strings.EqualFold(event, "Push Hook"):
	case strings.EqualFold(event, "System Hook") && kind == "push": // a hook for the whole server
	default:
		return out, notPush, nil
	}
	var ref, checkout, after, user, account string
	var commits []commit
	var total float64
	for _, f := range []struct {
		key string
		dst any
	}{{"ref", &ref}, {"checkout_sha", &checkout}, {"after", &after}, {"user_name", &user}, {"user_username", &account}, {"commits", &commits}, {"total_commits_count", &total}} {
		if err := p.read(f.key, f.dst); err != nil {
			return out, "", err
		}
	}
	var last commit
	if len(commits) > 0 {
		last = commits[len(commits)-1]
	}
	out, err = newPush(ref, firstNonEmpty(checkout, after, last.ID), firstNonEmpty(user, last.Author.Name), commits, total > float64(len(commits)))
	// The user name is unique at the forge; the display name is the user's choice.
	out.Pusher = identity.Identity{Source: identity.ForgeA, Login: account}
	out.DeliveryID = firstNonEmpty(h.Get(headerID), h.Get("Idempotency-Key"), h.Get("X-Gitlab-Event-UUID"))
	return out, "", err
}

// parseB parses a push of forge B; skip is the reason if it is not one.
func parseB(h http.Header, p payload) (out push.Push, skip string, err error) {
	if event := h.Get("X-GitHub-Event"); event != "" && !strings.EqualFold(event, "push") {
		return out, notPush, nil
	}
	var ref, after string
	var head *commit
	var commits []commit
	var pusher struct {
		Name string `json:"name"`
	}
	var sender struct {
		Login string `json:"login"`
	}
	var forced, created bool
	for _, f := range []struct {
		key string
		dst any
	}{{"ref", &ref}, {"after", &after}, {"head_commit", &head}, {"commits", &commits}, {"pusher", &pusher}, {"sender", &sender}, {"forced", &forced}, {"created", &created}} {
		if err := p.read(f.key, f.dst); err != nil {
			return out, "", err
		}
	}
	if head == nil {
		head = new(commit)
	}
	// A forced push also removes commits, and a new branch differs from the known state by more than its own commits:
	// the payload does not list their files.
	out, err = newPush(ref, firstNonEmpty(head.ID, after), pusher.Name, commits, forced || created || len(commits) >= cutAt)
	if head.Message != "" {
		out.Message = head.Message
	}
	out.Pusher = identity.Identity{Source: identity.ForgeB, Login: sender.Login}
	out.DeliveryID = h.Get("X-GitHub-Delivery")
	return out, "", err
}
