package diagnose

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ask answers a question about a recording that consists of one file of manifests.
func ask(t *testing.T, manifests, namespace string, question ...string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "objects.yaml"), []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := Run("diagnose", append([]string{"--from", folder, "--namespace", namespace}, question...), &out, &errOut); code != 0 {
		t.Fatalf("exit code %d, %s; want 0", code, errOut.String())
	}
	return out.String()
}

// wantWords checks that an answer contains texts.
func wantWords(t *testing.T, answer string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(answer, word) {
			t.Errorf("the answer must say %q:\n%s", word, answer)
		}
	}
}

const recordedApplication = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, creationTimestamp: "2026-03-01T09:00:00Z"}
status: {phase: Active}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: web, creationTimestamp: "2026-03-01T09:00:00Z"}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example/web:1"}]}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {namespace: argocd, name: storefront, creationTimestamp: "2026-03-01T09:00:00Z"}
spec:
  source: {repoURL: "https://git.example/shop.git", path: deploy}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  syncPolicy: {automated: {selfHeal: true}}
status:
  sync: {status: OutOfSync}
  health: {status: Healthy}
  operationState:
    phase: Failed
    message: one or more objects failed to apply
    startedAt: "2026-03-01T10:00:00Z"
    syncResult: {resources: [{group: apps, version: v1, kind: Deployment, namespace: shop, name: web, status: SyncFailed, message: "spec.selector: Invalid value: field is immutable"}]}
  resources: [{group: apps, version: v1, kind: Deployment, namespace: shop, name: web, status: OutOfSync}]
`

// TestRecordedApplication asks about Argo CD applications in a recording without a language model.
func TestRecordedApplication(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"what is wrong?", "why is storefront out of sync?", "what is wrong with web?"} {
		wantWords(t, ask(t, recordedApplication, "shop", question), "**1. Application `storefront` in namespace `argocd`: Argo CD application**",
			"The last sync of the application failed at deployment `web`. A field that cannot be changed differs.")
	}
	wantWords(t, ask(t, recordedApplication, "shop", "list the argo cd applications"), "| `argocd` | `storefront` | `OutOfSync` | `Healthy` | `shop` | automatic, self-heal | `Failed` `one or more objects failed to apply` |")
	wantWords(t, ask(t, recordedApplication, "shop", "describe deployment web"), "It is managed by the Argo CD application `storefront` in namespace `argocd`.")
	wantWords(t, ask(t, recordedCertificate, "shop", "list the argo cd applications"), "The cluster does not serve Argo CD applications.")
}

const recordedRelease = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, creationTimestamp: "2026-03-01T09:00:00Z"}
status: {phase: Active}
---
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: shop, name: storefront, creationTimestamp: "2026-03-01T08:00:00Z", annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: "registry.example/web:1"}]}}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: sh.helm.release.v1.web.v1, creationTimestamp: "2026-03-01T08:00:00Z", labels: {owner: helm, name: web, version: "1", status: deployed, modifiedAt: "1"}}
type: helm.sh/release.v1
data: {release: aHVudGVyMmh1bnRlcjI=}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: sh.helm.release.v1.web.v2, creationTimestamp: "2026-03-01T09:30:00Z", labels: {owner: helm, name: web, version: "2", status: pending-upgrade}}
type: helm.sh/release.v1
data: {release: aHVudGVyMmh1bnRlcjI=}
---
apiVersion: v1
kind: Secret
metadata: {namespace: shop, name: plain, creationTimestamp: "2026-03-01T10:30:00Z", labels: {owner: helm}}
type: Opaque
data: {password: aHVudGVyMmh1bnRlcjI=}
`

// TestRecordedRelease asks about Helm releases in a recording, by names and labels.
func TestRecordedRelease(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"what is wrong?", "why does the helm upgrade of web fail?", "what is wrong with web?", "what is wrong with storefront?"} {
		answer := ask(t, recordedRelease, "shop", question)
		wantWords(t, answer, "**1. Secret `sh.helm.release.v1.web.v2` in namespace `shop`: Helm release**", "An operation of Helm on release `web` has not ended", "`helm rollback web 1 -n shop`")
		if strings.Contains(answer, "hunter2") || strings.Contains(answer, "aHVudGVy") {
			t.Errorf("%s\n%s; want no value of a Secret", question, answer)
		}
	}
	wantWords(t, ask(t, recordedRelease, "shop", "list helm releases"), "| `shop` | `web` | 2 | `pending-upgrade` | ", " | 1 |")
	wantWords(t, ask(t, recordedRelease, "shop", "what changed?"), "helm release `web`", "revision 2, `pending-upgrade`")
	wantWords(t, ask(t, recordedRelease, "shop", "list secrets"), "| `shop` | `plain` | `password` |", "`sh.helm.release.v1.web.v2`")
	wantWords(t, ask(t, recordedCertificate, "shop", "list helm releases"), "The Secrets could not be read, so no Helm release was found.")
}

const recordedCertificate = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, creationTimestamp: "2026-03-01T09:00:00Z"}
status: {phase: Active}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {namespace: shop, name: web, creationTimestamp: "2026-03-01T09:00:00Z"}
spec: {secretName: web-tls, dnsNames: [web.example], issuerRef: {name: ca}}
status:
  conditions:
  - {type: Ready, status: "False", reason: DoesNotExist, message: Issuing certificate as Secret does not exist, lastTransitionTime: "2026-03-01T10:00:00Z"}
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {namespace: shop, name: ca, creationTimestamp: "2026-03-01T09:00:00Z"}
spec: {ca: {secretName: ca}}
status:
  conditions:
  - {type: Ready, status: "False", reason: ErrGetKeyPair, message: 'secrets "ca" not found', lastTransitionTime: "2026-03-01T10:00:00Z"}
`

// TestRecordedCertificate asks about cert-manager objects in a recording without a language model.
func TestRecordedCertificate(t *testing.T) {
	t.Parallel()
	for _, question := range []string{"what is wrong?", "why is the certificate not ready?", "is issuer ca ok?", "is the issuer ok?", "are my certificates ok?", "why is web not ready?"} {
		wantWords(t, ask(t, recordedCertificate, "shop", question), "**1. Issuer `ca` in namespace `shop`: certificate issuer**", "`ErrGetKeyPair`, that is, it cannot read its CA's key pair",
			"A consequence: certificate `web`. The certificate has not been issued: its issuer `ca` is not ready.")
	}
	wantWords(t, ask(t, recordedCertificate, "shop", "list issuers"), "ca")
}
