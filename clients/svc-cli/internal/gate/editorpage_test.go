package gate

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/mlp-platform/platform/clients/svc-cli/internal/gatestat"
	"github.com/mlp-platform/platform/clients/svc-cli/internal/samples"
	"github.com/mlp-platform/platform/libs/evidence/canon"
	"github.com/mlp-platform/platform/libs/loopback/localpage"
)

// TestScript compiles the whole script and looks for code that the page's policy forbids.
func TestScript(t *testing.T) {
	t.Parallel()
	html, err := renderPage("bm9uY2Utb2YtdGhlLXRlc3Q", false, "", "")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?s)<script nonce="[^"]*">(.*)</script>`).FindSubmatch(html)
	if found == nil {
		t.Fatal("the page has no script")
	}
	if _, err := goja.Compile("page.js", string(found[1]), true); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", " style=", "src=", "url("} {
		if strings.Contains(string(html), bad) {
			t.Errorf("the page holds %q; want !strings.Contains(string(html), bad)", bad)
		}
	}
}

// TestModel: a matrix that passes through the editor unchanged keeps its digest, with keys and numbers the editor does
// not know.
func TestModel(t *testing.T) {
	t.Parallel()
	strange := strings.Replace(string(samples.File("gate/panel.json")), `"gate_id"`, `"__proto__": {"x": 1.0}, "note": "caf\u00e9", "big": 12345678901234567890, "gate_id"`, 1)
	for _, text := range []string{
		string(samples.File("gate/panel.json")), strange,
		`{"gate_id":"g","evidence_class":"observed","candidates":[{"id":"a","ground_truth":"accept","probe":false},{"id":"__proto__","ground_truth":"reject","owner":null}],"verifiers":[{"id":"v","verdicts":{"a":"accept","__proto__":"reject"},"model":"m"}]}`,
	} {
		vm := goja.New()
		if _, err := vm.RunString(localpage.JSON + readAsset("matrix.js") + `
			function through(text) { Object.assign(model, readMatrix(parseJSON(text))); return canonical(writeMatrix()); }`); err != nil {
			t.Fatal(err)
		}
		through, _ := goja.AssertFunction(vm.Get("through"))
		got, err := through(goja.Undefined(), vm.ToValue(text))
		if err != nil {
			t.Fatal(err)
		}
		doc, err := canon.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if canon.DigestBytes([]byte(got.String())) != canon.Digest(doc) {
			t.Errorf("the editor makes %s of %s; want canon.DigestBytes([]byte(got.String())) == canon.Digest(doc)", got, text)
		}
	}
}

// The hint beside the quorum counts votes as the audit does.
func TestPageReadsTheQuorumAsTheAuditDoes(t *testing.T) {
	t.Parallel()
	vm := goja.New()
	if _, err := vm.RunString(localpage.JSON + readAsset("matrix.js")); err != nil {
		t.Fatal(err)
	}
	threshold, _ := goja.AssertFunction(vm.Get("threshold"))
	for _, quorum := range []float64{0, 0.5, 2.0 / 3, 0.6666666666666, 1.0 / 3, 0.29, 0.57, 0.66667, 0.123456789, 1.23456789e-7, 0.999} {
		for _, n := range []int{1, 2, 3, 5, 100, 256} {
			got, err := threshold(goja.Undefined(), vm.ToValue(strconv.FormatFloat(quorum, 'g', -1, 64)), vm.ToValue(n))
			if err != nil {
				t.Fatal(err)
			}
			if want := gatestat.ParseQuorum(quorum).Threshold(n); got.ToInteger() != int64(want) {
				t.Errorf("quorum %v of %d votes: threshold %v, want %d", quorum, n, got, want)
			}
		}
	}
	for _, text := range []string{"", "x", "1", "-0.1", "0.9999999999999999"} {
		if got, err := threshold(goja.Undefined(), vm.ToValue(text), vm.ToValue(3)); err != nil || !goja.IsNull(got) {
			t.Errorf("quorum %q: threshold %v, %v; want null", text, got, err)
		}
	}
}
