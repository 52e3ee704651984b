package change_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
)

// TestJSONPatch: the steps are applied to the object, shown as a diff, and read back.
func TestJSONPatch(t *testing.T) {
	inWorld(t, func(w *world) {
		const line = `kubectl patch service/catalog --type=json -p '[{"op":"test","path":"/spec/selector/version","value":"v2"},{"op":"replace","path":"/spec/selector/version","value":"v1"}]'`
		p := w.propose(line)
		w.want("diff", p.Diff, "-    version: v2", "+    version: v1")
		if want := strings.Replace(line, "service/catalog", "service/catalog -n shop", 1); p.Command != want {
			t.Errorf("got the command %q, want %q", p.Command, want)
		}
		_, seen := w.verified(line)
		w.want("patch", seen, "service/catalog in shop has 2 ready endpoints")

		_, _ = w.run(`kubectl patch deployment/cart --type=json -p '[{"op":"add","path":"/metadata/labels/a~1b","value":"1"},{"op":"copy","from":"/spec/replicas","path":"/spec/revisionHistoryLimit"},{"op":"add","path":"/spec/template/spec/containers/0/env","value":[{"name":"A","value":"1"}]},{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"B","value":"2"}},{"op":"add","path":"/spec/template/spec/containers/0/env/0","value":{"name":"C","value":"3"}}]'`)
		cart := w.find("deploy", "shop", "cart")
		if got := cart.GetLabels()["a/b"]; got != "1" {
			t.Errorf("label a/b: got %q, want 1", got)
		}
		spec := w.get("deploy", "shop", "cart")["spec"].(object)
		if spec["revisionHistoryLimit"] != spec["replicas"] {
			t.Errorf("copied %v, want %v", spec["revisionHistoryLimit"], spec["replicas"])
		}
		var names []string
		for _, e := range spec["template"].(object)["spec"].(object)["containers"].([]any)[0].(object)["env"].([]any) {
			names = append(names, e.(object)["name"].(string))
		}
		if want := []string{"C", "A", "B"}; !slices.Equal(names, want) {
			t.Errorf("got the variables %v, want %v", names, want)
		}

		for _, bad := range []struct{ name, sentence, steps string }{
			{"path that is not there", "step 1 of the patch (replace", `[{"op":"replace","path":"/spec/nothing/here","value":1}]`},
			{"list that is shorter", "step 1 of the patch (remove", `[{"op":"remove","path":"/spec/template/spec/containers/7"}]`},
			{"test that does not hold", "does not hold", `[{"op":"test","path":"/spec/replicas","value":77},{"op":"replace","path":"/spec/replicas","value":2}]`},
			{"step after others", "step 2 of the patch (remove", `[{"op":"add","path":"/metadata/labels/x","value":"y"},{"op":"remove","path":"/metadata/labels/z"}]`},
			{"field that the kind does not have", "unknown field", `[{"op":"add","path":"/spec/replica","value":1}]`},
		} {
			w.refused(bad.sentence, `kubectl patch deployment/cart --type=json -p '`+bad.steps+`'`)
		}
		w.refused("Nothing would change", `kubectl patch deployment/cart --type=json -p '[{"op":"test","path":"/metadata/name","value":"cart"}]'`)
	})
}

// TestJSONPatchMeetsEachGate: a JSON patch is judged as the merge patch with the same effect, for every role.
func TestJSONPatchMeetsEachGate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.create("cm", "shop", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["x.example/a","x.example/b"]}}`)
		const pods = `{"spec":{"template":{"spec":`
		container := func(members string) string {
			return pods + `{"containers":[{"name":"cart",` + members + `}]}}}}`
		}
		const at = `/spec/template/spec`
		for _, c := range []struct {
			name, object, merge, steps string
			confirm                    guard.Confirm // zero: none
			code                       string        // of the refusal for an admin
		}{
			{"plain", "service/cart", `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, "", ""},
			{"image", "deployment/cart", container(`"image":"registry.example/shop/cart:9"`), `[{"op":"replace","path":"` + at + `/containers/0/image","value":"registry.example/shop/cart:9"}]`, guard.ChangesImageOrResources, ""},
			{"resources", "deployment/cart", container(`"resources":{"limits":{"memory":"1Gi"}}`), `[{"op":"add","path":"` + at + `/containers/0/resources/limits/memory","value":"1Gi"}]`, guard.ChangesImageOrResources, ""},
			{"privilege", "deployment/cart", container(`"securityContext":{"privileged":true}`), `[{"op":"add","path":"` + at + `/containers/0/securityContext","value":{"privileged":true}}]`, guard.GainsPrivilege, ""},
			{"host network", "deployment/cart", pods + `{"hostNetwork":true}}}}`, `[{"op":"add","path":"` + at + `/hostNetwork","value":true}]`, guard.GainsPrivilege, ""},
			{"host path", "deployment/cart", pods + `{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}}}}`, `[{"op":"add","path":"` + at + `/volumes","value":[]},{"op":"add","path":"` + at + `/volumes/-","value":{"name":"h","hostPath":{"path":"/"}}}]`, guard.GainsPrivilege, ""},
			{"another account", "deployment/cart", pods + `{"serviceAccountName":"admin"}}}}`, `[{"op":"add","path":"` + at + `/serviceAccountName","value":"admin"}]`, guard.GainsPrivilege, ""},
			{"Secret of the pods", "deployment/cart", container(`"envFrom":[{"secretRef":{"name":"gateway-db"}}]`), `[{"op":"add","path":"` + at + `/containers/0/envFrom","value":[{"secretRef":{"name":"gateway-db"}}]}]`, guard.GainsCredentials, ""},
			{"finalizer, by its place", "configmap/held", `{"metadata":{"$setElementOrder/finalizers":["x.example/b"],"$deleteFromPrimitiveList/finalizers":["x.example/a"]}}`, `[{"op":"remove","path":"/metadata/finalizers/0"}]`, guard.RemovesFinalizer, ""},
			{"all finalizers", "configmap/held", `{"metadata":{"finalizers":null}}`, `[{"op":"remove","path":"/metadata/finalizers"}]`, guard.RemovesFinalizer, ""},
			{"finalizers, moved away", "configmap/held", `{"metadata":{"finalizers":null},"data":{"x":"y"}}`, `[{"op":"replace","path":"/metadata/finalizers","value":[]},{"op":"add","path":"/data","value":{"x":"y"}}]`, guard.RemovesFinalizer, ""},
			{"owner", "service/cart", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"held","uid":"1"}]}}`, `[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"ConfigMap","name":"held","uid":"1"}]}]`, guard.ChangesOwner, ""},
			{"taint", "node/worker-1", `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`, `[{"op":"add","path":"/spec/taints","value":[{"key":"a","effect":"NoExecute"}]}]`, "", "protected_namespace"}, // from the pods that it evicts
			{"protected namespace", "deployment/coredns -n kube-system", `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, "", "protected_namespace"},
			{"the namespace itself", "namespace/kube-system", `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`, "", "protected_namespace"},
			{"hidden namespace", "configmap/x -n kube-public", `{"data":{"a":"b"}}`, `[{"op":"add","path":"/data","value":{"a":"b"}}]`, "", "not_found"},
			{"Secret", "secret/gateway-db -n payments", `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, "", "protected_kind"},
			{"ServiceAccount", "serviceaccount/default", `{"metadata":{"labels":{"a":"b"}}}`, `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`, "", "protected_kind"},
		} {
			for _, role := range []guard.Role{guard.Admin, guard.Operator, guard.Readonly} {
				merge, err := w.try(role, `kubectl patch `+c.object+` -p '`+c.merge+`'`)
				if err != nil {
					t.Errorf("%s by %s, as a merge patch: %v", c.name, role, err)
					continue
				}
				steps, err := w.try(role, `kubectl patch `+c.object+` --type=json -p '`+c.steps+`'`)
				if err != nil {
					t.Errorf("%s by %s, as a JSON patch: %v", c.name, role, err)
					continue
				}
				got, want := steps.Verdict, merge.Verdict
				if got.Answer != want.Answer || got.Risk != want.Risk || got.Row != want.Row || got.Code != want.Code || !slices.Equal(got.Confirms, want.Confirms) || steps.Diff != merge.Diff {
					t.Errorf("%s by %s:\n got %+v\n%s\nwant %+v\n%s", c.name, role, got, steps.Diff, want, merge.Diff)
				}
				if role != guard.Admin {
					continue
				}
				if got.Code != c.code || c.code != "" && got.Answer != guard.Refuse {
					t.Errorf("%s: got %v %q, want a refusal of code %q", c.name, got.Answer, got.Code, c.code)
				}
				if c.confirm != "" && (got.Answer != guard.AlwaysAsk || !slices.Contains(got.Confirms, c.confirm)) {
					t.Errorf("%s: got %v %v, want it always to ask, for %s", c.name, got.Answer, got.Confirms, c.confirm)
				}
			}
		}
	})
}

// TestJSONPatchIsBoundToPlaces: an index in a path must refer to the element that was shown, in the metadata too.
func TestJSONPatchIsBoundToPlaces(t *testing.T) {
	inWorld(t, func(w *world) {
		w.create("cm", "shop", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"held","finalizers":["x.example/a","x.example/b"]}}`)
		w.edit("deploy", "shop", "cart", `{"metadata":{"finalizers":["x.example/a","x.example/b"]}}`)
		for _, object := range []struct{ short, ref, name string }{{"cm", "configmap/held", "held"}, {"deploy", "deployment/cart", "cart"}} {
			a := w.approved(w.propose(`kubectl patch ` + object.ref + ` --type=json -p '[{"op":"remove","path":"/metadata/finalizers/0"}]'`))
			w.edit(object.short, "shop", object.name, `{"metadata":{"finalizers":["x.example/b","x.example/a"]}}`)
			if told, err := w.Execute(w.ctx, a); err == nil || !strings.Contains(err.Error(), "has changed since") {
				t.Errorf("%s: got %q, %v; want it to be refused since another finalizer is in the first place now", object.ref, told, err)
			}
			if got, want := w.find(object.short, "shop", object.name).GetFinalizers(), []string{"x.example/b", "x.example/a"}; !slices.Equal(got, want) {
				t.Errorf("%s: got the finalizers %v, want %v", object.ref, got, want)
			}
		}
	})
}

// TestJSONPatchShowsNoSecret: the name that marks a secret is in the path, away from the value.
func TestJSONPatchShowsNoSecret(t *testing.T) {
	inWorld(t, func(w *world) {
		w.create("cm", "shop", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"app"},"data":{"colour":"red"}}`)
		p := w.propose(`kubectl patch configmap/app --type=json -p '[{"op":"add","path":"/data/password","value":"hunter2"},{"op":"replace","path":"/data/colour","value":"blue"}]'`)
		for _, text := range append(slices.Clone(p.Verdict.Notes), p.Command, p.Diff) {
			if strings.Contains(text, "hunter2") {
				t.Errorf("shows the password: %s", text)
			}
		}
		w.want("command", p.Command, `"value":"[redacted 7 bytes]"`, `"value":"blue"`)
	})
}
