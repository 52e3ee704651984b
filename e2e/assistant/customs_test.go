//go:build e2e

package assistant_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mlp-platform/platform/e2e/harness"
	"github.com/mlp-platform/platform/e2e/kube"
)

// installCRDs adds the kinds of cert-manager and Argo CD, as these projects release them, and waits until they are served.
func installCRDs(t *testing.T, c *kube.Cluster) {
	t.Helper()
	script := exec.Command("sh", filepath.Join(harness.Root(t), "scripts/crds.sh"))
	script.Stderr = os.Stderr
	dir, err := script.Output()
	if err != nil {
		t.Fatalf("fetch the CRDs: %v", err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.yaml"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files of CRDs, %v; want 7 at least", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(t.Context(), "", string(text)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	if err := kube.Until(func() error {
		var missing []error
		for group, kinds := range map[string]int{"cert-manager.io/v1": 4, "acme.cert-manager.io/v1": 2, "argoproj.io/v1alpha1": 1} {
			served, err := c.Client.Discovery().ServerResourcesForGroupVersion(group)
			if err == nil && len(served.APIResources) < kinds {
				err = fmt.Errorf("%s serves %d of %d kinds", group, len(served.APIResources), kinds)
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	}); err != nil {
		t.Fatal(err)
	}
}

// certificateObjects are the objects in a cluster some time after it requested certificates that cannot be issued: the
// ACME server finds no address, the CA's key is gone, and a policy denies a renewal.
const certificateObjects = `
apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: letsencrypt}
spec:
  acme:
    server: https://acme-v02.api.letsencrypt.org/directory
    email: ops@shop.example
    privateKeySecretRef: {name: letsencrypt-account}
    solvers: [{http01: {ingress: {ingressClassName: nginx}}}]
status:
  acme: {uri: "https://acme-v02.api.letsencrypt.org/acme/acct/1", lastRegisteredEmail: ops@shop.example, lastPrivateKeyHash: "pXxcNu8="}
  conditions:
  - {type: Ready, status: "True", observedGeneration: 1, reason: ACMEAccountRegistered, message: The ACME account was registered with the ACME server, lastTransitionTime: "2026-01-01T00:00:00Z"}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: front}
spec: {secretName: front-tls, dnsNames: [www.shop.example], issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}, privateKey: {rotationPolicy: Always}, usages: [digital signature, key encipherment]}
status:
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1, reason: DoesNotExist, message: Issuing certificate as Secret does not exist, lastTransitionTime: "2026-01-02T10:00:00Z"}
  - {type: Issuing, status: "False", observedGeneration: 1, reason: Failed, message: "The certificate request has failed to complete and will be retried: Failed to wait for order resource \"front-1-2117\" to become ready: order is in \"invalid\" state: ", lastTransitionTime: "2026-01-02T10:01:00Z"}
  failedIssuanceAttempts: 1
  lastFailureTime: "2026-01-02T10:01:00Z"
  nextPrivateKeySecretName: front-5x7zq
---
apiVersion: cert-manager.io/v1
kind: CertificateRequest
metadata:
  name: front-1
  annotations: {cert-manager.io/certificate-name: front, cert-manager.io/certificate-revision: "1", cert-manager.io/private-key-secret-name: front-5x7zq}
  ownerReferences: [{apiVersion: cert-manager.io/v1, kind: Certificate, name: front, uid: "", controller: true, blockOwnerDeletion: true}]
spec: {issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}, request: LS0tLS1CRUdJTg==, usages: [digital signature, key encipherment]}
status:
  conditions:
  - {type: Approved, status: "True", reason: cert-manager.io, message: Certificate request has been approved by cert-manager.io, lastTransitionTime: "2026-01-02T10:00:00Z"}
  - {type: Ready, status: "False", reason: Failed, message: "Failed to wait for order resource \"front-1-2117\" to become ready: order is in \"invalid\" state: ", lastTransitionTime: "2026-01-02T10:01:00Z"}
  failureTime: "2026-01-02T10:01:00Z"
---
apiVersion: acme.cert-manager.io/v1
kind: Order
metadata:
  name: front-1-2117
  ownerReferences: [{apiVersion: cert-manager.io/v1, kind: CertificateRequest, name: front-1, uid: "", controller: true, blockOwnerDeletion: true}]
spec: {dnsNames: [www.shop.example], issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}, request: LS0tLS1CRUdJTg==}
status:
  state: invalid
  failureTime: "2026-01-02T10:01:00Z"
  url: https://acme-v02.api.letsencrypt.org/acme/order/1/2
  finalizeURL: https://acme-v02.api.letsencrypt.org/acme/finalize/1/2
  authorizations: [{url: "https://acme-v02.api.letsencrypt.org/acme/authz/1/3", identifier: www.shop.example, wildcard: false, initialState: pending, challenges: [{url: "https://acme-v02.api.letsencrypt.org/acme/chall/1/3/a", token: token-that-nobody-reads, type: http-01}]}]
---
apiVersion: acme.cert-manager.io/v1
kind: Challenge
metadata:
  name: front-1-2117-3391
  finalizers: [acme.cert-manager.io/finalizer]
  ownerReferences: [{apiVersion: acme.cert-manager.io/v1, kind: Order, name: front-1-2117, uid: "", controller: true, blockOwnerDeletion: true}]
spec:
  type: HTTP-01
  dnsName: www.shop.example
  issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}
  solver: {http01: {ingress: {ingressClassName: nginx}}}
  url: https://acme-v02.api.letsencrypt.org/acme/chall/1/3/a
  authorizationURL: https://acme-v02.api.letsencrypt.org/acme/authz/1/3
  token: token-that-nobody-reads
  key: key-that-nobody-reads
  wildcard: false
status:
  state: invalid
  presented: false
  processing: false
  reason: "Error accepting authorization: acme: authorization error for www.shop.example: 400 urn:ietf:params:acme:error:dns: DNS problem: NXDOMAIN looking up A for www.shop.example - check that a DNS record exists for this domain"
---
apiVersion: cert-manager.io/v1
kind: Issuer
metadata: {name: ca}
spec: {ca: {secretName: ca-key-pair}}
status:
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1, reason: ErrGetKeyPair, message: "Error getting keypair for CA issuer: secrets \"ca-key-pair\" not found", lastTransitionTime: "2026-01-02T10:00:00Z"}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: internal}
spec: {secretName: internal-tls, commonName: internal.shop, issuerRef: {name: ca}}
status:
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1, reason: DoesNotExist, message: Issuing certificate as Secret does not exist, lastTransitionTime: "2026-01-02T10:00:00Z"}
  - {type: Issuing, status: "True", observedGeneration: 1, reason: DoesNotExist, message: Issuing certificate as Secret does not exist, lastTransitionTime: "2026-01-02T10:00:00Z"}
  nextPrivateKeySecretName: internal-qm2pv
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: old}
spec: {secretName: old-tls, dnsNames: [old.shop.example], issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}}
status:
  conditions:
  - {type: Ready, status: "False", observedGeneration: 1, reason: Expired, message: "Certificate expired on Thu, 01 Jan 2026 00:00:00 UTC", lastTransitionTime: "2026-01-01T00:00:00Z"}
  notBefore: "2025-10-03T00:00:00Z"
  notAfter: "2026-01-01T00:00:00Z"
  renewalTime: "2025-12-02T00:00:00Z"
  revision: 4
---
apiVersion: cert-manager.io/v1
kind: CertificateRequest
metadata:
  name: old-5
  annotations: {cert-manager.io/certificate-name: old, cert-manager.io/certificate-revision: "5"}
  ownerReferences: [{apiVersion: cert-manager.io/v1, kind: Certificate, name: old, uid: "", controller: true, blockOwnerDeletion: true}]
spec: {issuerRef: {name: letsencrypt, kind: ClusterIssuer, group: cert-manager.io}, request: LS0tLS1CRUdJTg==}
status:
  conditions:
  - {type: Denied, status: "True", reason: policy.cert-manager.io, message: "No policy approved this request: [shop: spec.allowed.dnsNames]", lastTransitionTime: "2026-01-01T00:00:00Z"}
  - {type: Ready, status: "False", reason: Denied, message: The CertificateRequest was denied by an approval controller, lastTransitionTime: "2026-01-01T00:00:00Z"}
  failureTime: "2026-01-01T00:00:00Z"
`

// applicationObjects are Applications as Argo CD 3 writes them, which leaves the health of each object out.
const applicationObjects = `
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: refused}
spec:
  project: default
  source: {repoURL: "https://git.example/shop.git", path: deploy, targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  syncPolicy: {automated: {prune: true, selfHeal: true}, retry: {limit: 2}}
status:
  sync: {status: OutOfSync, revision: 4f2c1aa, comparedTo: {source: {repoURL: "https://git.example/shop.git", path: deploy, targetRevision: main}, destination: {server: "https://kubernetes.default.svc", namespace: shop}}}
  health: {status: Healthy, lastTransitionTime: "2026-01-02T10:00:00Z"}
  sourceType: Directory
  resourceHealthSource: appTree
  reconciledAt: "2026-01-02T10:00:00Z"
  conditions:
  - {type: SyncError, message: "Failed last sync attempt to [4f2c1aa]: one or more objects failed to apply (retried 2 times).", lastTransitionTime: "2026-01-02T10:00:00Z"}
  operationState:
    phase: Failed
    message: "one or more objects failed to apply, reason: Deployment.apps \"till\" is invalid: spec.selector: Invalid value: field is immutable (retried 2 times)."
    startedAt: "2026-01-02T10:00:00Z"
    finishedAt: "2026-01-02T10:00:09Z"
    retryCount: 2
    operation: {initiatedBy: {automated: true}, retry: {limit: 2}, sync: {revision: 4f2c1aa, prune: true}}
    syncResult:
      revision: 4f2c1aa
      source: {repoURL: "https://git.example/shop.git", path: deploy, targetRevision: main}
      resources:
      - {group: apps, version: v1, kind: Deployment, namespace: shop, name: till, status: SyncFailed, message: "Deployment.apps \"till\" is invalid: spec.selector: Invalid value: field is immutable", hookPhase: Failed, syncPhase: Sync}
  resources:
  - {group: apps, version: v1, kind: Deployment, namespace: shop, name: till, status: OutOfSync}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: unread}
spec:
  project: default
  sources: [{repoURL: "https://charts.example", chart: till, targetRevision: 1.2.3, helm: {releaseName: till}}]
  destination: {name: in-cluster, namespace: other}
status:
  sync: {status: Unknown, comparedTo: {sources: [{repoURL: "https://charts.example", chart: till, targetRevision: 1.2.3}], destination: {name: in-cluster, namespace: other}}}
  health: {status: Healthy}
  conditions:
  - {type: ComparisonError, message: "Failed to load target state: failed to generate manifest for source 1 of 1: rpc error: code = Unknown desc = failed to resolve revision \"1.2.3\": cannot get digest for revision 1.2.3", lastTransitionTime: "2026-01-02T10:00:00Z"}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: degraded}
spec:
  project: default
  source: {repoURL: "https://git.example/shop.git", path: api, targetRevision: main}
  destination: {server: "https://kubernetes.default.svc", namespace: shop}
  syncPolicy: {automated: {}}
status:
  sync: {status: Synced, revision: 4f2c1aa, comparedTo: {source: {repoURL: "https://git.example/shop.git", path: api, targetRevision: main}, destination: {server: "https://kubernetes.default.svc", namespace: shop}}}
  health: {status: Degraded, lastTransitionTime: "2026-01-02T10:00:00Z"}
  resourceHealthSource: appTree
  resources:
  - {version: v1, kind: Service, namespace: shop, name: api, status: Synced}
  - {group: apps, version: v1, kind: Deployment, namespace: shop, name: api, status: Synced}
`

// TestCustomResources asks about objects of cert-manager and Argo CD that a real API server holds under the projects' own
// schemas, with statuses as their controllers write them.
func TestCustomResources(t *testing.T) {
	t.Parallel()
	w := &world{Cluster: kube.Start(t), table: &table{}}
	t.Cleanup(w.Stop)
	installCRDs(t, w.Cluster)
	for _, ns := range []string{"shop", "certs", "argocd"} {
		if err := w.Namespace(t.Context(), ns); err != nil {
			t.Fatal(err)
		}
	}
	api := setEnvironment(kube.Deployment("shop", "api", goodImage, 1, crashing), corev1.EnvVar{Name: "DATABASE_URL"})
	if _, err := w.Client.AppsV1().Deployments("shop").Create(t.Context(), api, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for ns, objects := range map[string]string{"certs": certificateObjects, "argocd": applicationObjects} {
		if err := w.Apply(t.Context(), ns, objects); err != nil {
			t.Fatal(err)
		}
	}
	if err := kube.Until(w.waiting("shop", 1, "CrashLoopBackOff")); err != nil {
		t.Fatal(err)
	}
	w.open(t)
	for _, row := range customRows {
		t.Run(row.scope+" "+strings.TrimRight(row.query, "?"), func(t *testing.T) {
			k := w.talk(t, row.scope)
			a := k.say(row.query)
			requireMatches(t, a, row.say...)
			for _, not := range slices.Concat(row.not, []string{"that-nobody-reads"}) {
				if strings.Contains(a.text, not) {
					t.Errorf("%q says %q:\n%s", row.query, not, a.text)
				}
			}
			if strings.Contains(k.wire.String(), "that-nobody-reads") {
				t.Errorf("%q shows the key or token of a challenge", row.query)
			}
		})
	}
}

// customRows are questions, the namespace they are asked in, and what an answer matches and does not hold.
var customRows = []struct {
	scope, query string
	say, not     []string
}{
	{"certs", "what is wrong?", []string{
		"The certificate has not been issued: the `HTTP-01` challenge for `www.shop.example` failed, since the name `www.shop.example` has no address",
		"Issuer `ca` in namespace `certs`: certificate issuer", "`ErrGetKeyPair`, that is, it cannot read its CA's key pair",
		"A consequence: certificate `internal`. The certificate has not been issued: its issuer `ca` is not ready",
		"The certificate expired on 2026-01-01T00:00:00Z, and has not been renewed: its request `old-5` was denied",
	}, []string{"could not be read"}},
	{"certs", "why is the certificate front not ready?", []string{"NXDOMAIN", "Order|Challenge"}, nil},
	{"certs", "is the clusterissuer letsencrypt ok?", []string{"letsencrypt"}, []string{"is not ready, so it issues"}},
	{"argocd", "what is wrong?", []string{
		"The last sync of the application failed at deployment `till`. A field that cannot be changed differs",
		"Argo CD cannot compare the application with its source, so it changes nothing. The revision does not exist",
	}, []string{"could not be read"}},
	{"shop", "what is wrong?", []string{"DATABASE_URL", "A consequence: application `degraded`. Objects of the application are not healthy"}, nil},
	{"argocd", "list the argo cd applications", []string{
		"`refused` \\| `OutOfSync` \\| `Healthy` \\| `shop` \\| automatic, self-heal", "`unread` \\| `Unknown`", "`degraded` \\| `Synced` \\| `Degraded` \\| `shop` \\| automatic \\|",
	}, []string{"of another cluster"}},
	{"shop", "describe deployment api", []string{"managed by the Argo CD application `degraded`"}, nil},
}
