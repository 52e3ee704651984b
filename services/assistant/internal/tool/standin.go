package tool

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/cluster"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// standIn returns a name that no cluster has. It is requested in place of a hidden namespace, so that the server itself
// answers as for one that does not exist: with the same words, in the same time.
func standIn(hidden string) string {
	sum := sha256.Sum256([]byte("absent namespace " + hidden))
	return "absent-" + hex.EncodeToString(sum[:12])
}

// namespaceKinds are the words for the kind whose objects are namespaces themselves.
var namespaceKinds = []string{"namespace", "namespaces", "ns"}

// hiding replaces hidden namespaces in a read by stand-ins. restore puts the names that were typed
// back into what is shown.
func (c *call) hiding() (restore func(string) string) {
	var pairs []string
	replace := func(name string) string {
		if name == "" || c.Policy.Visible(name) {
			return name
		}
		other := standIn(name)
		if !slices.Contains(pairs, other) {
			pairs = append(pairs, other, name)
		}
		return other
	}
	c.op.Namespace = replace(c.op.Namespace)
	if c.op.Namespace == "" && !c.op.AllNamespaces {
		c.by.Scope = replace(c.by.Scope)
	}
	names := slices.Clone(c.op.Names)
	for i, name := range names {
		kind, rest, slash := strings.Cut(name, "/")
		switch {
		case slash && c.op.Kind == "" && slices.Contains(namespaceKinds, strings.ToLower(kind)):
			names[i] = kind + "/" + replace(rest)
		case !slash && slices.Contains(namespaceKinds, strings.ToLower(c.op.Kind)):
			names[i] = replace(name)
		}
	}
	c.op.Names = names
	return strings.NewReplacer(pairs...).Replace
}

// restoreError puts the names that were typed back into an error for the reader.
func restoreError(err error, restore func(string) string) error {
	var refused *operation.Fault
	if !errors.As(err, &refused) {
		return err
	}
	text := restore(refused.Sentence)
	if text == refused.Sentence {
		return err
	}
	return &operation.Fault{Reason: refused.Reason, Field: refused.Field, Sentence: text}
}

// showing wraps the reads of a snapshot that are shown.
func showing(show func(operation.Operation) func(turn.Output, error), restore func(string) string) func(operation.Operation) func(turn.Output, error) {
	return func(op operation.Operation) func(turn.Output, error) {
		op.Namespace = restore(op.Namespace)
		done := show(op)
		return func(out turn.Output, err error) {
			out.Text = restore(out.Text)
			done(out, restoreError(cluster.Fail(err), restore))
		}
	}
}
