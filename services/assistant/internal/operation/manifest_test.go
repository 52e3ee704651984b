package operation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	const two = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n# nothing\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: api\n  namespace: shop\nspec: {replicas: 3, when: 2026-01-01, text: |\n  }\n"
	docs, err := operation.Documents(strings.Replace(two, ", text: |\n  }", "}", 1))
	if err != nil || len(docs) != 2 {
		t.Fatalf("%v, %v; want len(docs) == 2", docs, err)
	}
	if docs[0].Kind != "Namespace" || docs[1].Namespace != "shop" || docs[1].Name != "api" || docs[1].APIVersion != "apps/v1" {
		t.Errorf(`%+v; want docs[0].Kind == "Namespace" && docs[1].Namespace == "shop" && docs[1].Name == "api" && docs[1].APIVersion == "apps/v1"`, docs)
	}
	spec := docs[1].Object["spec"].(map[string]any)
	if spec["replicas"] != int64(3) || spec["when"] != "2026-01-01" {
		t.Errorf(`spec %#v; want spec["replicas"] == int64(3) && spec["when"] == "2026-01-01"`, spec)
	}
	docs, err = operation.Documents(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Service","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"b"}}]}`)
	if err != nil || len(docs) != 2 || docs[1].Kind != "Namespace" {
		t.Errorf(`list: %v, %v; want len(docs) == 2 && docs[1].Kind == "Namespace"`, docs, err)
	}
	// A separator inside a text does not separate.
	docs, err = operation.Documents("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: |\n    ---\n    kind: Namespace\n")
	if err != nil || len(docs) != 1 {
		t.Errorf("block: %v, %v; want len(docs) == 1", docs, err)
	}
	// A few aliases are accepted.
	docs, err = operation.Documents("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {app: x}}\nspec: {selector: *l, other: *l}\n")
	if err != nil || len(docs) != 1 {
		t.Errorf("alias: %v, %v; want len(docs) == 1", docs, err)
	}
}

func TestBadManifests(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 12; i++ {
		p := fmt.Sprintf("*a%d,", i-1)
		fmt.Fprintf(&bomb, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(p, 10), ","))
	}
	for _, tc := range []struct {
		name, manifest string
		reason         operation.Reason
	}{
		{"empty", "", operation.InvalidManifest},
		{"comments", "# a\n---\n", operation.InvalidManifest},
		{"text", "hello", operation.InvalidManifest},
		{"list", "[1]", operation.InvalidManifest},
		{"no kind", "apiVersion: v1\nmetadata: {name: a}", operation.InvalidManifest},
		{"no name", "apiVersion: v1\nkind: X\n", operation.InvalidManifest},
		{"generated name", "apiVersion: v1\nkind: X\nmetadata: {generateName: a-}", operation.InvalidManifest},
		{"name as a number", "apiVersion: v1\nkind: X\nmetadata: {name: 7}", operation.InvalidManifest},
		{"name like a flag", "apiVersion: v1\nkind: X\nmetadata: {name: --all}", operation.InvalidManifest},
		{"namespace as a number", "apiVersion: v1\nkind: X\nmetadata: {name: a, namespace: 7}", operation.InvalidManifest},
		{"empty namespace", "apiVersion: v1\nkind: X\nmetadata: {name: a, namespace: \"\"}", operation.InvalidManifest},
		{"key twice", head + "kind: Namespace\n", operation.InvalidManifest},
		{"merge key", head + "x: &x {a: 1}\ny: {<<: *x}\n", operation.InvalidManifest},
		{"key as a number", head + "1: 2\n", operation.InvalidManifest},
		{"yes", head + "x: yes\n", operation.InvalidManifest},
		{"not a number", head + "x: .nan\n", operation.InvalidManifest},
		{"infinite", head + "x: .inf\n", operation.InvalidManifest},
		{"too large a number", head + "x: 99999999999999999999\n", operation.InvalidManifest},
		{"binary", head + "x: !!binary aGk=\n", operation.InvalidManifest},
		{"own tag", head + "x: !python/object y\n", operation.InvalidManifest},
		{"escaped control", head + "x: \"\\x00\"\n", operation.InvalidManifest},
		{"raw control", head + "x: \x01\n", operation.InvalidManifest},
		{"broken UTF-8", head + "x: \xff\n", operation.InvalidManifest},
		{"broken YAML", head + "x: [\n", operation.InvalidManifest},
		{"second document broken", head + "---\n{", operation.InvalidManifest},
		{"list in a list", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"List","items":[]}]}`, operation.InvalidManifest},
		{"list of texts", `{"apiVersion":"v1","kind":"List","items":["a"]}`, operation.InvalidManifest},
		{"alias bomb", head + bomb.String(), operation.TooLarge},
		{"alias of itself", head + "x: &x [*x]\n", operation.TooLarge},
		{"deep", head + "x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), operation.TooLarge},
		{"many documents", strings.Repeat("---\n"+head, operation.MaxDocuments+1), operation.TooLarge},
		{"large", strings.Repeat("#", operation.MaxManifest+1), operation.TooLarge},
	} {
		docs, err := operation.Documents(tc.manifest)
		var fault *operation.Fault
		if !errors.As(err, &fault) || fault.Reason != tc.reason || docs != nil {
			t.Errorf("%s: %v, %v; want %s", tc.name, docs, err, tc.reason)
		}
	}
}

// FuzzManifest: a manifest is either refused with a fault, or yields bounded objects that each have a kind and a name
// and survive a JSON round trip.
func FuzzManifest(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n")
	f.Add("a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n")
	f.Add("x: &x [*x]")
	f.Add(`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"A","metadata":{"name":"b"}}]}`)
	f.Add("apiVersion: v1\nkind: A\nmetadata: {name: b}\nx: {<<: {a: 1}}\ny: 0o17\nz: 1e3\n")
	f.Fuzz(func(t *testing.T, manifest string) {
		docs, err := operation.Documents(manifest)
		if err != nil {
			var fault *operation.Fault
			if !errors.As(err, &fault) || fault.Sentence == "" {
				t.Fatalf(`refused without a fault: %v; want errors.As(err, &fault) && fault.Sentence != ""`, err)
			}
			return
		}
		if len(docs) == 0 || len(docs) > operation.MaxDocuments {
			t.Fatalf("%d objects; want len(docs) != 0 && len(docs) <= operation.MaxDocuments", len(docs))
		}
		for _, d := range docs {
			if d.Kind == "" || d.APIVersion == "" || !operation.ValidName(d.Name) {
				t.Fatalf(`read %+v; want d.Kind != "" && d.APIVersion != "" && operation.ValidName(d.Name)`, d)
			}
			raw, err := json.Marshal(d.Object)
			if err != nil {
				t.Fatal(err)
			}
			if len(raw) > operation.MaxManifest {
				continue // escapes made it longer than the limit of a manifest
			}
			again, err := operation.Documents(string(raw))
			if err != nil || len(again) != 1 || again[0].Kind != d.Kind || again[0].Name != d.Name {
				t.Fatalf("%s is read as %+v, %v; want len(again) == 1 && again[0].Kind == d.Kind && again[0].Name == d.Name", raw, again, err)
			}
		}
	})
}

// FuzzPatch: the canonical form of a patch is its own canonical form.
func FuzzPatch(f *testing.F) {
	f.Add(`{"spec":{"replicas":3}}`)
	f.Add(`{"a":-0,"b":1e+21,"c":"\u2028\u0000","d":9007199254740993,"<<":{"e":0.5}}`)
	f.Add("spec:\n  x: 1.50\n  y: [1, null, true]\n")
	f.Fuzz(func(t *testing.T, patch string) {
		c, err := operation.CanonicalPatch(patch)
		if err != nil {
			var fault *operation.Fault
			if !errors.As(err, &fault) || fault.Sentence == "" {
				t.Fatalf(`refused without a fault: %v; want errors.As(err, &fault) && fault.Sentence != ""`, err)
			}
			return
		}
		if again, err := operation.CanonicalPatch(c); err != nil || again != c {
			t.Fatalf("%q, then %q, %v; want again == c", c, again, err)
		}
		if o := operation.Normalize(operation.Operation{Verb: operation.Patch, Patch: patch}); o.Patch != c {
			t.Fatalf("%q is normal for %q, and %q canonical; want o.Patch == %v", o.Patch, patch, c, c)
		}
	})
}
