//go:build e2e

package assistant_test

import "testing"

const plain = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, labels: {tier: old, drop: me}}
data: {mode: one}
`

func configMap(name, labels string) string {
	return `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ` + name + `, labels: {` + labels + `}}
data: {mode: one}
`
}

func objectChanges() []change {
	return []change{
		{
			name: "label", objects: plain,
			ask: "kubectl label cm plain tier=new a=b drop- --overwrite", command: "kubectl label configmap/plain a=b tier=new drop- -n NS --overwrite", risk: "medium",
			shows: []string{`(?m)^-\s+tier: old$`, `(?m)^\+\s+tier: new$`, `(?m)^-\s+drop: me$`}, writes: []string{"PATCH configmaps/plain"}, says: []string{`has the label tier`},
			holds: map[string]string{"configmaps/plain {.metadata.labels.tier}{.metadata.labels.a}{.metadata.labels.drop}": "newb"},
		},
		{
			name: "annotate", objects: plain,
			ask: "kubectl annotate configmap/plain note='seen by me' api-token=ghp_0123456789abcdefghijABCDEFGHIJ012345", risk: "medium",
			command: "kubectl annotate configmap/plain 'api-token=[redacted 40 bytes]' 'note=seen by me' -n NS",
			shows:   []string{`(?m)^\+\s+note: seen by me$`}, hides: []string{"ghp_0123456789"}, writes: []string{"PATCH configmaps/plain"}, says: []string{`has the annotation note`},
			holds: map[string]string{"configmaps/plain {.metadata.annotations.note}": "seen by me"},
		},
		{
			name: "patch, strategic", objects: web, before: waitForObjects(webReady),
			ask:     `kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"web","env":[{"name":"A","value":"1"}]}]}}}}'`,
			command: `kubectl patch deployment/web -n NS -p '{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"A","value":"1"}],"name":"web"}]}}}}'`, risk: "high!",
			shows: []string{`(?m)^\+.*name: A$`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{"deployments/web {.spec.template.spec.containers[0].image} {.spec.template.spec.containers[0].env[0].value}": "registry.test/web:1 1"},
		},
		{
			name: "patch, merge", objects: plain,
			ask: `kubectl patch cm plain --type=merge -p '{"data":{"mode":null,"password":"hunter2-s3cr3t","other":"two"}}'`, risk: "high!",
			command: `kubectl patch configmap/plain -n NS --type=merge -p '{"data":{"mode":null,"other":"two","password":"[redacted 14 bytes]"}}'`,
			shows:   []string{`(?m)^-\s+mode: one$`, `(?m)^\+\s+other: two$`}, hides: []string{"hunter2-s3cr3t"}, writes: []string{"PATCH configmaps/plain"},
			holds: map[string]string{"configmaps/plain {.data.mode}{.data.other}": "two"},
		},
		{
			name: "patch a custom resource", objects: widget,
			// The lists of a custom kind are not merged by name.
			ask: `kubectl patch widgetsNS.shop.test one -p '{"spec":{"parts":[{"name":"c","size":3}]}}'`, risk: "medium",
			command: `kubectl patch widgetNS/one -n NS -p '{"spec":{"parts":[{"name":"c","size":3}]}}'`,
			shows:   []string{`(?m)^-.*name: a$`, `(?m)^\+.*name: c$`}, writes: []string{"PATCH widgetsNS/one"},
			holds: map[string]string{"widgetsNS/one {.spec.parts[*].name} {.spec.replicas}": "c 1"},
		},
		{
			name: "delete one", objects: plain + configMap("stays", "a: b"),
			ask: "kubectl delete cm plain", command: "kubectl delete configmap/plain -n NS", risk: "high",
			shows: []string{`(?m)^-\s+mode: one$`}, writes: []string{"DELETE configmaps/plain"}, says: []string{`plain.* is gone`},
			holds: map[string]string{"configmaps/plain": "absent", "configmaps/stays": "there"},
		},
		{
			name: "delete several", objects: plain + configMap("second", "a: b") + configMap("stays", "a: b"),
			ask: "kubectl delete configmap plain second", command: "kubectl delete configmap/plain configmap/second -n NS", risk: "high!",
			writes: []string{"DELETE configmaps/plain", "DELETE configmaps/second"}, says: []string{`second.* is gone`},
			holds: map[string]string{"configmaps/plain": "absent", "configmaps/second": "absent", "configmaps/stays": "there"},
		},
		{
			name: "delete by selector", objects: configMap("one", "set: x") + configMap("two", "set: x") + configMap("stays", "set: z"),
			ask: "kubectl delete configmaps -l set=x", command: "kubectl delete configmap -n NS -l set=x", risk: "high!",
			shows: []string{`configmap/one`, `configmap/two`}, writes: []string{"DELETE configmaps/one", "DELETE configmaps/two"}, says: []string{`two.* is gone`},
			holds: map[string]string{"configmaps/one": "absent", "configmaps/two": "absent", "configmaps/stays": "there"},
		},
		{
			name: "delete a kind", objects: widget,
			ask: "kubectl delete crd widgetsNS.shop.test", command: "kubectl delete customresourcedefinition/widgetsNS.shop.test", risk: "high!",
			shows: []string{`(?i)widget.*one`}, writes: []string{"DELETE customresourcedefinitions/widgetsNS.shop.test"}, says: []string{`is gone`},
			holds: map[string]string{"customresourcedefinitions/widgetsNS.shop.test": "absent"},
		},
		{
			name: "delete, leaving the pods", objects: web, before: waitForObjects(webReady),
			ask: "kubectl delete deployment web --cascade=orphan", command: "kubectl delete deployment/web -n NS --cascade=orphan", risk: "high",
			writes: []string{"DELETE deployments/web"}, says: []string{`is gone`},
			holds: map[string]string{"deployments/web": "absent", "replicasets {.items[*].metadata.labels.app} {.items[*].metadata.ownerReferences[*].name}": "web ", "pods {.items[*].metadata.labels.app}": "web"},
		},
		{
			name: "delete in words", objects: web, before: waitForObjects(webReady),
			ask: "delete deployment web", command: "kubectl delete deployment/web -n NS", risk: "high",
			writes: []string{"DELETE deployments/web"}, says: []string{`is gone`}, holds: map[string]string{"deployments/web": "absent", "pods {.items[*].metadata.labels.app}": ""},
		},
		{
			name: "evict", objects: alone,
			before: func(t *testing.T, c *corner) { c.wait(t, map[string]string{"pods/alone {.status.phase}": "Running"}) },
			ask:    "kubectl evict pod/alone", command: "kubectl evict pod/alone -n NS", risk: "medium",
			writes: []string{"POST pods/alone/eviction"}, says: []string{`is gone`}, holds: map[string]string{"pods/alone": "absent"},
		},
	}
}

const alone = `
---
apiVersion: v1
kind: Pod
metadata: {name: alone, labels: {app: alone}}
spec: {containers: [{name: alone, image: "registry.test/alone:1"}]}
`

func manifestCommand(command, text string) string { return command + " -f - <<'EOF'\n" + text + "EOF" }

// The manifests that the requests use.
const (
	settings = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels:\n    part: shop\ndata:\n  level: info\n"
	debug    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n  labels:\n    part: shop\ndata:\n  level: debug\n"
	limits   = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: limits\n  labels:\n    part: shop\ndata:\n  limit: \"5\"\n"
	another  = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: another\n  labels:\n    part: shop\ndata:\n  limit: \"7\"\n"
)

// applyEarlier writes the objects that the assistant itself applied earlier, and one that was never applied.
func applyEarlier(texts ...string) func(*testing.T, *corner) {
	return func(t *testing.T, c *corner) {
		t.Helper()
		k := c.talk(t, c.ns)
		k.session += "-earlier"
		for _, text := range texts {
			k.say(manifestCommand("kubectl apply --server-side", text), autoApprove)
		}
	}
}

func manifestChanges() []change {
	const apply = "kubectl apply --server-side"
	return []change{
		{
			name: "apply what is new", ask: manifestCommand(apply, settings), command: manifestCommand(apply+" -n NS", settings), risk: "medium",
			shows: []string{`(?m)^\+\s+level: info$`}, writes: []string{"POST configmaps"}, holds: map[string]string{"configmaps/settings {.data.level} {.metadata.managedFields[0].manager}": "info cluster-assistant"},
		},
		{
			name: "apply what has changed", before: applyEarlier(settings), ask: manifestCommand("kubectl apply", debug), command: manifestCommand(apply+" -n NS", debug), risk: "medium",
			shows: []string{`(?m)^-\s+level: info$`, `(?m)^\+\s+level: debug$`}, writes: []string{"PATCH configmaps/settings"}, holds: map[string]string{"configmaps/settings {.data.level}": "debug"},
		},
		{
			name: "apply several documents", before: applyEarlier(settings), ask: manifestCommand(apply, debug+"---\n"+limits), command: manifestCommand(apply+" -n NS", debug+"---\n"+limits), risk: "medium",
			writes: []string{"PATCH configmaps/settings", "POST configmaps"}, holds: map[string]string{"configmaps/settings {.data.level}": "debug", "configmaps/limits {.data.limit}": "5"},
		},
		{
			name: "apply and prune", objects: configMap("foreign", "part: shop"), before: applyEarlier(settings, limits, another),
			ask: manifestCommand(apply+" --prune -l part=shop", debug+"---\n"+another), command: manifestCommand(apply+" -n NS --prune -l part=shop", debug+"---\n"+another), risk: "high!",
			shows: []string{`configmap/limits`}, writes: []string{"PATCH configmaps/settings", "PATCH configmaps/another", "DELETE configmaps/limits"}, says: []string{`limits.* is gone`},
			holds: map[string]string{"configmaps/settings {.data.level}": "debug", "configmaps/limits": "absent", "configmaps/another": "there", "configmaps/foreign": "there"},
		},
		{
			name: "apply over the fields of others", objects: configMap("settings", "part: shop"), before: func(t *testing.T, c *corner) { c.edit(t, "configmaps/settings", `{"data":{"level":"warn"}}`) },
			ask: manifestCommand(apply+" --force-conflicts", debug), command: manifestCommand(apply+" -n NS --force-conflicts", debug), risk: "medium",
			shows: []string{`(?m)^-\s+level: warn$`, `(?m)^\+\s+level: debug$`}, writes: []string{"PATCH configmaps/settings"}, holds: map[string]string{"configmaps/settings {.data.level} {.data.mode}": "debug one"},
		},
		{
			name: "create", ask: manifestCommand("kubectl create", settings), command: manifestCommand("kubectl create -n NS", settings), risk: "medium",
			shows: []string{`(?m)^\+\s+level: info$`}, writes: []string{"POST configmaps"}, holds: map[string]string{"configmaps/settings {.data.level}": "info"},
		},
		{
			name: "replace", objects: configMap("settings", "old: label"), ask: manifestCommand("kubectl replace", debug), command: manifestCommand("kubectl replace -n NS", debug), risk: "high!",
			shows: []string{`(?m)^-\s+mode: one$`, `(?m)^\+\s+level: debug$`}, writes: []string{"PUT configmaps/settings"}, holds: map[string]string{"configmaps/settings {.data.level}{.data.mode}{.metadata.labels.old}": "debug"},
		},
		{
			name: "replace by force", objects: configMap("settings", "old: label"), ask: manifestCommand("kubectl replace --force", debug), command: manifestCommand("kubectl replace -n NS --force", debug), risk: "high!",
			writes: []string{"DELETE configmaps/settings", "POST configmaps"}, holds: map[string]string{"configmaps/settings {.data.level}{.data.mode}": "debug"},
		},
	}
}
