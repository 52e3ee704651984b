package redact_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// A Secret written into a message is redacted in the command and in the history.
func TestSecretsInText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: hunter2}\n":                       "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {p: '[redacted 7 bytes]'}\n",
		"kind: Secret\ndata:\n  a: aHVudGVyMg==\n  b: |\n    hunter2\n    hunter3\ntype: Opaque\n":            "kind: Secret\ndata:\n  a: '[redacted 12 bytes]'\n  b: '[redacted 25 bytes]'\ntype: Opaque\n",
		"data:\n  \"a\": \"hunter2\"\nkind: Secret":                                                           "data:\n  \"a\": \"[redacted 7 bytes]\"\nkind: Secret",
		`{"kind":"Secret","data":{"a":"hunter2","b":"it's"},"metadata":{"name":"x"}}`:                         `{"kind":"Secret","data":{"a":"[redacted 7 bytes]","b":"[redacted 4 bytes]"},"metadata":{"name":"x"}}`,
		`kubectl patch secret db --type=json -p '[{"op":"add","path":"/data/p","value":"hunter2"}]'`:          `kubectl patch secret db --type=json -p '[{"op":"add","path":"/data/p","value":"[redacted 7 bytes]"}]'`,
		`kubectl patch secret db --type=json -p '[{"op":"add","path":"/data","value":{"p":"hunter2"}}]'`:      `kubectl patch secret db --type=json -p '[{"op":"add","path":"/data","value":{"p":"[redacted 7 bytes]"}}]'`,
		`kubectl patch cm app --type=json -p '[{"op":"add","path":"/data/password","value":"hunter2"}]'`:      `kubectl patch cm app --type=json -p '[{"op":"add","path":"/data/password","value":"[redacted 7 bytes]"}]'`,
		`kubectl patch cm app --type=json -p '[{"op":"add","path":"/data/colour","value":"crimson"}]'`:        `kubectl patch cm app --type=json -p '[{"op":"add","path":"/data/colour","value":"crimson"}]'`,
		`kubectl patch secret db -p '{"data":{"p":"hunter2"}}'`:                                               `kubectl patch secret db -p '{"data":{"p":"[redacted 7 bytes]"}}'`,
		`kubectl patch secret/db -n shop -p '{"stringData":{"p":{"q":"hunter2"},"r":[1,2]},"x":1}'`:           `kubectl patch secret/db -n shop -p '{"stringData":{"p":'[redacted 15 bytes]',"r":'[redacted 5 bytes]'},"x":1}'`,
		`{"kind":"Secret","data":{"a":"hunter2`:                                                               `{"kind":"Secret","data":{'[redacted 12 bytes]'`,
		"- kind: ConfigMap\n  data:\n    mode: fast\n- kind: Secret\n  data:\n    p: hunter2\n  type: Opaque": "- kind: ConfigMap\n  data:\n    mode: fast\n- kind: Secret\n  data:\n    p: '[redacted 7 bytes]'\n  type: Opaque",
		"kind: ConfigMap\ndata: {mode: fast}\n---\nkind: Secret\ndata: {}\n":                                  "kind: ConfigMap\ndata: {mode: fast}\n---\nkind: Secret\ndata: {}\n",
		"the data: of a Secret is hidden":                                                                     "the data: of a Secret is hidden",
	} {
		if got := redact.Text(text); got != want {
			t.Errorf("%s\nbecame\n%s\nwant\n%s", text, got, want)
		} else if again := redact.Text(got); again != got {
			t.Errorf("%s\nthen\n%s; want again == %v", got, again, got)
		}
	}
	text := "items:\n- kind: Secret\n  stringData:\n   a:   hunter2 # why\n   b: >-\n      hunter2\n\n      hunter2\n"
	if got := redact.Text(text); strings.Contains(got, "hunter2") {
		t.Error(got, `want !strings.Contains(got, "hunter2")`)
	}
}
