package question_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestUnread: the words that do not affect how a question is read are listed; names are among them, since only the
// cluster distinguishes them from other words.
func TestUnread(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][]string{
		"is checkout losing orders?":                      {"checkout", "losing", "orders"},
		"does the redis have a password?":                 {"redis", "password"},
		"are the pods of catalog spread over zones?":      {"catalog", "spread", "zones"},
		"which deployments are not at the latest version": {"latest", "version"},
		"is anyone mining bitcoin?":                       {"mining", "bitcoin"},
		"why is web crashing and restarting":              {"web"}, // either word alone means the same
		"is api healthy and ready":                        nil,
		"is there anything wrong with shop":               nil,
		"are there any pods stuck at 0/1?":                nil,
		"how much memory does ledger use?":                nil,
		"what runs on the same node as gateway?":          {"same"},
		"which pods were never restarted?":                {"never"},
	} {
		named := func(word string) bool {
			return !slices.Contains(want, word) && slices.Contains([]string{"ledger", "shop", "api", "gateway"}, word)
		}
		if got := question.Unread(message, named); !slices.Equal(got, want) {
			t.Errorf("%q leaves %q; want %q", message, got, want)
		}
	}
}

// TestUnreadOfLongTexts: in a text too long to try each word no word counts as used, and it takes no time.
func TestUnreadOfLongTexts(t *testing.T) {
	t.Parallel()
	var long []string
	for i := range 40 {
		long = append(long, fmt.Sprintf("w%d%s", i, strings.Repeat("ab", 95)))
	}
	took := testenv.ProcessorTime(t, func() {
		if got := question.Unread("is all well with "+strings.Join(long, " "), func(string) bool { return false }); len(got) < len(long) {
			t.Errorf("%d words are left; want all %d", len(got), len(long))
		}
	})
	if took > time.Second {
		t.Errorf("it took %s; want milliseconds", took)
	}
}
