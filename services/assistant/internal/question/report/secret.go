package report

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Secrets lists Secrets and their keys. A snapshot contains no values.
func Secrets(v View) Answer {
	all := slices.SortedFunc(slices.Values(v.Snapshot.Secrets), func(a, b engine.SecretKeys) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	t := newTable("Namespace", "Secret", "Keys")
	for _, s := range all {
		if v.about("Secret", &metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}) {
			keys := slices.Sorted(slices.Values(s.Keys))
			t.add(tableCell(s.Namespace), tableCell(s.Name), tableCells(keys))
		}
	}
	none := "There are no Secrets " + v.where() + "."
	if v.Unread["secrets"] {
		none = "The Secrets could not be read."
	}
	return t.under("Secrets "+v.where()+" by name and key. Their values are never shown, in no format:", none)
}

// tellingExpr matches names of variables that are likely to contain a secret.
var tellingExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
	"passw", "passwd", "pwd", "secret", "token", "api_?key", "access_?key", "private_?key", "credential", "auth$",
	"dsn$", "connection_?string",
))

// EnvSecrets lists, by name, variables with a secret: as plain text in the spec, or from a Secret.
func EnvSecrets(v View) Answer {
	t := newTable("Namespace", "Workload", "Container", "Variable", "Where the value is")
	plain := 0
	for _, w := range v.Workloads() {
		for _, list := range [][]corev1.Container{w.Template.Spec.InitContainers, w.Template.Spec.Containers} {
			for i := range list {
				c := &list[i]
				for _, e := range c.Env {
					switch {
					case e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil:
						r := e.ValueFrom.SecretKeyRef
						t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), tableCell(e.Name), "Secret "+tableCell(r.Name)+", key "+tableCell(r.Key))
					case e.ValueFrom == nil && e.Value != "" && tellingExpr.MatchString(e.Name):
						plain++
						t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), tableCell(e.Name), "plain text in the spec")
					}
				}
				for _, e := range c.EnvFrom {
					if e.SecretRef != nil {
						t.add(tableCell(w.Ref.Namespace), kindName(w.Ref), tableCell(c.Name), "all keys", "Secret "+tableCell(e.SecretRef.Name))
					}
				}
			}
		}
	}
	head := "Variables " + v.where() + " that hold secrets, by name only."
	if plain > 0 {
		head += " " + strconv.Itoa(plain) + " as plain text in a spec, where everybody who may read the workload reads the value; a Secret is the place for it."
	}
	return t.under(head, "No container "+v.where()+" has a variable from a Secret, or one whose name promises a secret.")
}
