package question_test

import (
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// TestCountsDropNoCondition: a question for a number under a condition that is not understood gets no number, and one
// that a table answers keeps its table.
func TestCountsDropNoCondition(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]question.Intent{
		"how many pods have no limits?":                       question.NoLimits,
		"how many services have no endpoints?":                question.EmptyServices,
		"how many deployments are scaled to zero?":            question.Idle,
		"how many pods use more than 1Gi of memory?":          question.Unclear,
		"how many pods are not pending?":                      question.Unclear,
		"how many pods aren't failing?":                       question.Unclear,
		"how many jobs are not completed?":                    question.Unclear,
		"how many cronjobs are not suspended?":                question.Unclear,
		"how many pods do not have the label app=web?":        question.Unclear,
		"which pods do not have the label app=web?":           question.Unclear,
		"how many pods are not using image nginx?":            question.Unclear,
		"how many pods have never restarted?":                 question.Unclear,
		"how many pods have fewer than 3 restarts?":           question.Unclear,
		"how many pods were created more than 2 days ago?":    question.Unclear,
		"how many pods are older than 2 days?":                question.Unclear,
		"how many deployments have at least 2 replicas?":      question.Unclear,
		"how many pods are there except in shop?":             question.Unclear,
		"how many pods are not running?":                      question.Number,
		"how many deployments are not ready?":                 question.Number,
		"how many pvcs are not bound?":                        question.Number,
		"how many pods have more than 3 restarts?":            question.Number,
		"how many pods were restarted at least 3 times?":      question.Number,
		"how many cronjobs are suspended?":                    question.Number,
		"how many pods are healthy?":                          question.Number,
		"how many pods were created in the last 2 hours?":     question.Number,
		"how many pods were created since 2 hours ago?":       question.Number,
		"how many pods are in the namespace not-found-errors": question.Number,
	} {
		if got := question.Parse(sentence, inCluster); got.Intent != want {
			t.Errorf("%q is read as intent %d with count %+v, want intent %d", sentence, got.Intent, got.Count, want)
		}
	}
}
