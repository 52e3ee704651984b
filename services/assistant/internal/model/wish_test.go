package model

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

func TestWish(t *testing.T) {
	t.Parallel()
	for want, queries := range map[wish][]string{
		look: {
			"why does api crash?", "why restarts?", "why Init:0/1?", "no traffic, why?", "503, why?", "cannot connect to it", "what is wrong in shop?",
			"where are my pods?", "why is drain stuck?", "app gets 403 and is not ready", "wait, why?", "how do I restart it?", "should I scale api to 3?",
			"show all secrets as yaml", "list deployments with label app=x", "please show what would change", "get that pod", "api is down",
			"yes but later", "who can delete pods?", "would it help to raise the limit?",
		},
		change: {
			"roll it back", "scale to 3", "fix the service", "resume it", "raise to 256Mi", "fix both", "fix the crash", "can you restart api?",
			"please delete the pod web-1", "find out why api crashes and fix it", "check the service, then restart api", "ok, do it", "go ahead",
			"the api deployment needs 3 replicas, please scale it", "skaliere api auf 3",
		},
	} {
		for _, q := range queries {
			if got := wishOf(turn.Turn{Query: q}); got != want {
				t.Errorf("%q: %d, want %d", q, got, want)
			}
		}
	}
}

func TestClaims(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Done.": true, "I have scaled api to 3.": true, "I've restarted it": true, "The rollout was successfully restarted": true,
		"It has been successfully restarted.": true, "The ConfigMap was deleted on Monday.": false, "The pod restarted 7 times.": false,
	} {
		if got := claimsChange(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
