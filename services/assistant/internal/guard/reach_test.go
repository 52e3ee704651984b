package guard_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// TestByController has the fields by which a controller deletes, runs or opens something that was not requested, and
// for each the nearest harmless change.
func TestByController(t *testing.T) {
	t.Parallel()
	const asks, approval, refused = guard.AlwaysAsk, guard.Approval, guard.Refuse
	const owners, privilege, credentials, image, cascade = guard.ChangesOwner, guard.GainsPrivilege, guard.GainsCredentials, guard.ChangesImageOrResources, guard.DeletesCascadingKind
	const program = guard.ChangesProgram // applies in addition to another reason: each new power of a pod is a change of its spec
	const owned = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"}]}}`
	const ownedByTwo = `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"1"},{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"2"}]}}`
	namespace := func(labels string) string { return `{"metadata":{"labels":{` + labels + `}}}` }
	spec := func(fields string) string { return `{"spec":{` + fields + `}}` }
	pods := func(fields string) string {
		return spec(`"template":{"spec":{"containers":[{"name":"app","image":"a:1"}]` + fields + `}}`)
	}
	app := func(fields string) string {
		return spec(`"template":{"spec":{"containers":[{"name":"app","image":"a:1",` + fields + `}]}}`)
	}
	volume := func(source string) string { return pods(`,"volumes":[{"name":"v",` + source + `}]`) }
	const gate = `"pod-security.kubernetes.io/enforce":`
	ns, pv, svc := newRef("", "Namespace", "", "shop"), newRef("", "PersistentVolume", "", "v"), newRef("", "Service", "shop", "api")
	sts, job, crd := newRef("apps", "StatefulSet", "shop", "db"), newRef("batch", "Job", "shop", "j"), newRef("apiextensions.k8s.io", "CustomResourceDefinition", "", "x.y")
	grant := newRef("gateway.networking.k8s.io", "ReferenceGrant", "shop", "g")
	application, certificate := newRef("argoproj.io", "Application", "shop", "a"), newRef("cert-manager.io", "Certificate", "shop", "c")
	gateway := newRef("gateway.networking.k8s.io", "Gateway", "shop", "g")
	listener := func(namespaces string) string {
		return spec(`"listeners":[{"name":"http","port":80,"allowedRoutes":{"namespaces":{` + namespaces + `}}}]`)
	}
	ingress, cron, pod := newRef("networking.k8s.io", "Ingress", "shop", "web"), newRef("batch", "CronJob", "shop", "j"), newRef("", "Pod", "shop", "p")
	for _, tc := range []struct {
		name            string
		ref             operation.Ref
		before, after   string // empty: absent
		admin, operator guard.Answer
		confirm         guard.Confirm // empty: none
	}{
		{"an owner is added", deployment, `{}`, owned, asks, refused, owners},
		{"an owner is added to another", deployment, owned, ownedByTwo, asks, refused, owners},
		{"the living one of two owners is taken away", deployment, ownedByTwo, owned, asks, refused, owners},
		{"the owner is taken away", deployment, owned, `{}`, asks, refused, owners},
		{"created with an owner", deployment, "", owned, asks, refused, owners},
		{"a namespace gets an owner", ns, `{}`, owned, asks, refused, owners},
		{"the owner stays", deployment, owned, owned, approval, approval, ""},

		{"a volume from an image", deployment, pods(""), volume(`"image":{"reference":"evil:1"}`), asks, asks, image},
		{"a volume from another image", deployment, volume(`"image":{"reference":"a:1"}`), volume(`"image":{"reference":"a:2"}`), asks, asks, image},
		{"the image of a volume stays", deployment, volume(`"image":{"reference":"a:1"}`), volume(`"image":{"reference":"a:1"}`), approval, approval, ""},

		{"a volume on a path of a node", pv, "", spec(`"local":{"path":"/etc"}`), asks, refused, privilege},
		{"a volume moves on its node", pv, spec(`"local":{"path":"/data"}`), spec(`"local":{"path":"/etc"}`), asks, refused, privilege},
		{"a volume of a driver", pv, "", spec(`"csi":{"driver":"d","volumeHandle":"h"}`), approval, approval, ""},
		{"a volume with a Secret of another namespace", pv, "", spec(`"csi":{"driver":"d","nodeStageSecretRef":{"name":"s","namespace":"payments"}}`), asks, refused, privilege},
		{"a volume with a Secret of a protected namespace", pv, "", spec(`"csi":{"driver":"d","nodeStageSecretRef":{"name":"s","namespace":"monitoring"}}`), refused, refused, ""},
		{"a volume with a Secret of a hidden namespace", pv, "", spec(`"azureFile":{"secretName":"s","secretNamespace":"vault"}`), refused, refused, ""},
		{"the protected Secret was there", pv, spec(`"csi":{"nodeStageSecretRef":{"name":"s","namespace":"monitoring"}}`), spec(`"csi":{"nodeStageSecretRef":{"name":"s","namespace":"monitoring"}},"a":1`), approval, approval, ""},
		{"a volume for another claim", pv, spec(`"claimRef":{"namespace":"shop","name":"a"}`), spec(`"claimRef":{"namespace":"shop","name":"b"}`), approval, refused, ""},
		{"a volume that ends with its claim", pv, spec(`"persistentVolumeReclaimPolicy":"Retain"`), spec(`"persistentVolumeReclaimPolicy":"Delete"`), asks, refused, cascade},
		{"a volume that is kept", pv, spec(`"persistentVolumeReclaimPolicy":"Delete"`), spec(`"persistentVolumeReclaimPolicy":"Retain"`), approval, approval, ""},
		{"a snapshot that ends with its claim", newRef("snapshot.storage.k8s.io", "VolumeSnapshotContent", "", "s"), spec(`"deletionPolicy":"Retain"`), spec(`"deletionPolicy":"Delete"`), asks, refused, cascade},

		{"the gate is lifted", ns, namespace(gate + `"restricted"`), namespace(gate + `"baseline"`), asks, refused, privilege},
		{"the gate is named and open", ns, namespace(``), namespace(gate + `"privileged"`), asks, refused, privilege},
		{"the gate is forgotten", ns, namespace(gate + `"baseline"`), namespace(``), asks, refused, privilege},
		{"a namespace with an open gate", ns, "", namespace(gate + `"privileged"`), asks, refused, privilege},
		{"the gate of an old version", ns, namespace(``), namespace(`"pod-security.kubernetes.io/enforce-version":"v1.0"`), asks, refused, privilege},
		{"devices of others", ns, namespace(``), namespace(`"resource.kubernetes.io/admin-access":"true"`), asks, refused, privilege},
		{"the gate is closed", ns, namespace(gate + `"privileged"`), namespace(gate + `"restricted"`), approval, approval, ""},
		{"the gate warns", ns, namespace(``), namespace(`"pod-security.kubernetes.io/warn":"privileged"`), approval, approval, ""},
		{"another label", ns, namespace(``), namespace(`"team":"a"`), approval, approval, ""},

		{"claims that end when scaled", sts, spec(`"replicas":3`), spec(`"replicas":3,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}`), asks, refused, cascade},
		{"claims end as it is scaled", sts, spec(`"replicas":3,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}`), spec(`"replicas":1,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}`), asks, refused, cascade},
		{"claims end with it", sts, spec(`"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}`), "", asks, refused, cascade},
		{"more of it", sts, spec(`"replicas":1,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}`), spec(`"replicas":3,"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}`), approval, approval, ""},
		{"less of one that keeps its claims", sts, spec(`"replicas":3`), spec(`"replicas":1`), approval, approval, ""},

		{"a job is cleaned up", job, spec(`"parallelism":1`), spec(`"parallelism":1,"ttlSecondsAfterFinished":0`), approval, refused, ""},
		{"a job is ended", job, spec(`"activeDeadlineSeconds":600`), spec(`"activeDeadlineSeconds":1`), approval, refused, ""},
		{"a pod is ended", pod, spec(`"a":1`), spec(`"activeDeadlineSeconds":1`), approval, refused, ""},
		{"a job is kept longer", job, spec(`"ttlSecondsAfterFinished":1`), spec(`"ttlSecondsAfterFinished":600`), approval, approval, ""},
		{"a job that cleans up after itself", job, "", spec(`"ttlSecondsAfterFinished":60`), approval, approval, ""},
		{"a job stops", job, spec(`"parallelism":1`), spec(`"parallelism":0,"suspend":true`), approval, approval, ""},
		{"a cron job moves", cron, spec(`"schedule":"0 1 * * *"`), spec(`"schedule":"* * * * *","suspend":false,"concurrencyPolicy":"Replace"`), approval, approval, ""},
		{"an autoscaler may go to nothing", newRef("autoscaling", "HorizontalPodAutoscaler", "shop", "h"), spec(`"minReplicas":2`), spec(`"minReplicas":0`), approval, approval, ""},
		{"a budget lets all go", newRef("policy", "PodDisruptionBudget", "shop", "b"), spec(`"minAvailable":2`), spec(`"minAvailable":0`), approval, approval, ""},

		{"a kind loses a version", crd, spec(`"versions":[{"name":"v1","served":true},{"name":"v2","served":true}]`), spec(`"versions":[{"name":"v1","served":false},{"name":"v2","served":true}]`), asks, refused, cascade},
		{"a kind changes", crd, spec(`"versions":[{"name":"v1","served":true}]`), spec(`"versions":[{"name":"v1","served":true,"schema":{}}]`), approval, refused, ""},
		{"a webhook sees a kind", crd, spec(`"conversion":{"strategy":"None"}`), spec(`"conversion":{"strategy":"Webhook","webhook":{}}`), asks, refused, privilege},
		{"a kind is labelled", crd, `{}`, namespace(`"a":"b"`), approval, approval, ""},
		{"a kind is made", crd, "", spec(`"versions":[{"name":"v1","served":true}]`), approval, approval, ""},

		{"grant to another namespace", grant, "", spec(`"from":[{"namespace":"bank"}]`), asks, refused, privilege},
		{"wider grant", grant, spec(`"from":[{"namespace":"bank"}]`), spec(`"from":[{"namespace":"bank"},{"namespace":"shop"}]`), asks, refused, privilege},
		{"another source of an application", application, spec(`"source":{"repoURL":"a"}`), spec(`"source":{"repoURL":"b"}`), asks, refused, privilege},
		{"a sync of an application", application, spec(`"source":{}`), `{"operation":{"sync":{}},"spec":{"source":{}}}`, asks, refused, privilege},
		{"label of an application", application, spec(`"source":{}`), `{"metadata":{"labels":{"a":"b"}},"spec":{"source":{}}}`, approval, approval, ""},
		{"another Secret of a certificate", certificate, spec(`"secretName":"a"`), spec(`"secretName":"b"`), asks, refused, privilege},
		{"a new certificate", certificate, "", spec(`"secretName":"a"`), asks, refused, privilege},
		{"label of a grant", grant, spec(`"from":[{"namespace":"bank"}]`), `{"metadata":{"labels":{"a":"b"}},"spec":{"from":[{"namespace":"bank"}]}}`, approval, approval, ""},
		{"a listener for all namespaces", gateway, listener(``), listener(`"from":"All"`), asks, refused, privilege},
		{"a listener for all and not for its own", gateway, listener(`"from":"Same"`), listener(`"from":"All"`), asks, refused, privilege},
		{"a listener for some namespaces", gateway, listener(`"from":"Same"`), listener(`"from":"Selector","selector":{"matchLabels":{"a":"b"}}`), asks, refused, privilege},
		{"a listener for its own namespace again", gateway, listener(`"from":"None"`), listener(``), asks, refused, privilege},
		{"a listener with a wider selector", gateway, listener(`"from":"Selector","selector":{"matchLabels":{"a":"b","c":"d"}}`), listener(`"from":"Selector","selector":{"matchLabels":{"a":"b"}}`), asks, refused, privilege},
		{"a listener with another selector", gateway, listener(`"from":"Selector","selector":{"matchLabels":{"a":"b"}}`), listener(`"from":"Selector","selector":{"matchLabels":{"a":"x"}}`), asks, refused, privilege},
		{"a listener with another expression", gateway, listener(`"from":"Selector","selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}`), listener(`"from":"Selector","selector":{"matchExpressions":[{"key":"a","operator":"In","values":["b","c"]}]}`), asks, refused, privilege},
		{"a gateway made for all namespaces", gateway, "", listener(`"from":"All"`), asks, refused, privilege},
		{"a listener with a narrower selector", gateway, listener(`"from":"Selector","selector":{"matchLabels":{"a":"b"}}`), listener(`"from":"Selector","selector":{"matchLabels":{"a":"b","c":"d"}}`), approval, approval, ""},
		{"a listener for fewer namespaces", gateway, listener(`"from":"All"`), listener(`"from":"Selector","selector":{"matchLabels":{"a":"b"}}`), approval, approval, ""},
		{"a gateway made for its own namespace", gateway, "", listener(`"from":"Same"`), approval, approval, ""},
		{"an address of a gateway", gateway, spec(`"addresses":[{"value":"10.0.0.1"}]`), spec(`"addresses":[{"value":"10.0.0.1"},{"value":"10.96.0.10"}]`), asks, refused, privilege},
		{"the class of a gateway with an address", gateway, spec(`"addresses":[{"value":"10.0.0.1"}]`), spec(`"addresses":[{"value":"10.0.0.1"}],"gatewayClassName":"b"`), approval, approval, ""},
		{"parent of a route", newRef("gateway.networking.k8s.io", "HTTPRoute", "shop", "web"), spec(`"parentRefs":[{"name":"a"}]`), spec(`"parentRefs":[{"name":"b"}]`), approval, approval, ""},
		{"traffic of an address", svc, spec(`"externalIPs":["10.0.0.1"]`), spec(`"externalIPs":["10.0.0.1","10.96.0.10"]`), asks, refused, privilege},
		{"traffic to addresses", newRef("discovery.k8s.io", "EndpointSlice", "shop", "e"), "", `{"endpoints":[{"addresses":["10.0.0.9"]}]}`, asks, refused, privilege},
		{"traffic to addresses, as of old", newRef("", "Endpoints", "shop", "e"), `{"subsets":[]}`, `{"subsets":[{"addresses":[{"ip":"10.0.0.9"}]}]}`, asks, refused, privilege},
		{"a service of another type", svc, spec(`"type":"ClusterIP"`), spec(`"type":"LoadBalancer"`), approval, approval, ""},
		{"a service by another name", svc, spec(`"type":"ClusterIP"`), spec(`"type":"ExternalName","externalName":"db.example"`), asks, asks, program},
		{"configuration by annotation", ingress, `{}`, `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/configuration-snippet":"lua"}}}`, asks, refused, privilege},
		{"an annotation", ingress, `{}`, `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/rewrite-target":"/"}}}`, approval, approval, ""},

		{"pods that put others off", deployment, pods(``), pods(`,"priorityClassName":"high"`), asks, refused, privilege},
		{"made with a priority", deployment, "", pods(`,"priorityClassName":"high"`), asks, refused, privilege},
		{"a pod of the system", pod, "", spec(`"containers":[],"priorityClassName":"system-node-critical"`), asks, refused, privilege},
		{"a pod with the priority of the cluster", pod, "", spec(`"containers":[],"priorityClassName":"usual"`), approval, approval, ""},
		{"a priority of its own", newRef("scheduling.k8s.io", "PriorityClass", "", "x"), "", `{"value":1000000}`, asks, refused, privilege},
		{"out of the sandbox", deployment, pods(`,"runtimeClassName":"gvisor"`), pods(``), asks, refused, privilege},
		{"made in the sandbox", deployment, "", pods(`,"runtimeClassName":"gvisor"`), approval, approval, ""},
		{"a driver on the host", deployment, pods(``), volume(`"flexVolume":{"driver":"x/y"}`), asks, refused, privilege},
		{"group 0", deployment, pods(``), pods(`,"securityContext":{"fsGroup":0}`), asks, refused, privilege},
		{"group 0 among others", deployment, pods(``), pods(`,"securityContext":{"supplementalGroups":[5,0]}`), asks, refused, privilege},
		{"processes of the other containers", deployment, pods(``), pods(`,"shareProcessNamespace":true`), asks, refused, privilege},
		{"the token it was not to have", deployment, pods(`,"automountServiceAccountToken":false`), pods(`,"automountServiceAccountToken":false,"volumes":[{"name":"v","projected":{"sources":[{"serviceAccountToken":{"path":"t"}}]}}]`), asks, refused, privilege},
		{"on a node by name, past its taints", deployment, pods(``), pods(`,"nodeName":"n","tolerations":[{"operator":"Exists"}]`), approval, approval, ""},
		{"another registry's password", deployment, pods(``), pods(`,"imagePullSecrets":[{"name":"r"}]`), approval, approval, ""},

		{"a Secret as variable", deployment, pods(``), app(`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`), asks, asks, credentials},
		{"a Secret as variables", deployment, pods(``), app(`"envFrom":[{"secretRef":{"name":"s"}}]`), asks, asks, credentials},
		{"a Secret as volume", deployment, pods(``), volume(`"secret":{"secretName":"s"}`), asks, asks, credentials},
		{"a Secret among others", deployment, pods(``), volume(`"projected":{"sources":[{"secret":{"name":"s"}}]}`), asks, asks, credentials},
		{"a token for somebody", deployment, pods(``), volume(`"projected":{"sources":[{"serviceAccountToken":{"audience":"bank","path":"t"}}]}`), asks, asks, credentials},
		{"a certificate", deployment, pods(``), volume(`"projected":{"sources":[{"podCertificate":{"signerName":"x/y"}}]}`), asks, asks, credentials},
		{"what a driver brings", deployment, pods(``), volume(`"csi":{"driver":"secrets-store"}`), asks, asks, credentials},
		{"made with a Secret", deployment, "", volume(`"secret":{"secretName":"s"}`), asks, asks, credentials},
		{"another key of the same Secret", deployment, app(`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}]`), app(`"env":[{"name":"A","valueFrom":{"secretKeyRef":{"name":"s","key":"l"}}}]`), asks, asks, program},
		{"a ConfigMap", deployment, pods(``), app(`"envFrom":[{"configMapRef":{"name":"c"}}]`), asks, asks, program},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			verb := operation.Patch
			if tc.before == "" {
				verb = operation.Create
			}
			if tc.after == "" {
				verb = operation.Delete
			}
			for role, want := range map[guard.Role]guard.Answer{guard.Admin: tc.admin, guard.Operator: tc.operator, guard.Readonly: refused} {
				c := singleCase(role, operation.Operation{Verb: verb}, tc.ref, nil, nil)
				c.Changes = []guard.Change{{Ref: tc.ref, Before: fromJSON(t, tc.before), After: fromJSON(t, tc.after)}}
				c.Words = []string{tc.after + " evil:1 a:2"}
				v := policy.Judge(c)
				if v.Answer != want {
					t.Errorf("%s: %s, want %s: %+v", role, v.Answer, want, v)
				}
				if role != guard.Admin || tc.admin == refused {
					continue
				}
				if got := slices.DeleteFunc(v.Confirms, func(c guard.Confirm) bool { return c == tc.confirm || tc.confirm != "" && c == program }); len(got) > 0 || (tc.confirm != "") != (v.Answer == asks) {
					t.Errorf(`confirms also %q; want len(got) <= 0 && (tc.confirm != "") == (v.Answer == asks)`, got)
				}
				if want == asks || tc.operator == refused {
					if v.Risk != operation.High || tc.confirm != image && len(v.Notes) == 0 {
						t.Errorf("risk %s, notes %q; want v.Risk == operation.High && (tc.confirm == image || len(v.Notes) != 0)", v.Risk, v.Notes)
					}
				}
			}
		})
	}
}

func fromJSON(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// TestRemoves: an object that a controller deletes counts as deleted.
func TestRemoves(t *testing.T) {
	t.Parallel()
	node := newRef("", "Node", "", "n")
	judge := func(role guard.Role, removes ...operation.Ref) guard.Verdict {
		c := singleCase(role, operation.Operation{Verb: operation.Label}, node, map[string]any{}, map[string]any{})
		c.Changes[0].Removes = removes
		return policy.Judge(c)
	}
	one, two := newRef("", "Pod", "shop", "a"), newRef("", "Pod", "shop", "b")
	if v := judge(guard.Admin, one); v.Answer != guard.Approval || v.Row != guard.HighWrite || !strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete ") {
		t.Errorf(`one: %+v; want v.Answer == guard.Approval && v.Row == guard.HighWrite && strings.Contains(strings.Join(v.Notes, " "), "makes a controller delete ")`, v)
	}
	if v := judge(guard.Admin, one, two); v.Answer != guard.AlwaysAsk || !slices.Contains(v.Confirms, guard.RemovesMany) {
		t.Errorf("two: %+v; want v.Answer == guard.AlwaysAsk && slices.Contains(v.Confirms, guard.RemovesMany)", v)
	}
	if v := judge(guard.Operator, one); v.Answer != guard.Refuse {
		t.Errorf("operator: %+v; want v.Answer == %v", v, guard.Refuse)
	}
	created := singleCase(guard.Operator, operation.Operation{Verb: operation.Create}, deployment, nil, map[string]any{})
	created.Changes[0].Removes = []operation.Ref{one}
	if v := policy.Judge(created); v.Answer != guard.Refuse {
		t.Errorf("by what is created: %+v; want v.Answer == %v", v, guard.Refuse)
	}
	if v := judge(guard.Operator); v.Answer != guard.Approval {
		t.Errorf("none: %+v; want v.Answer == %v", v, guard.Approval)
	}
}

// TestImageVolumeOrigin: the image of a volume is a value like any other image.
func TestImageVolumeOrigin(t *testing.T) {
	t.Parallel()
	before := fromJSON(t, `{"spec":{"containers":[{"name":"c","image":"a:1"}]}}`)
	after := fromJSON(t, `{"spec":{"containers":[{"name":"c","image":"a:1"}],"volumes":[{"name":"v","image":{"reference":"evil:1"}}]}}`)
	c := singleCase(guard.Admin, operation.Operation{Verb: operation.Patch}, deployment, before, after)
	c.Words, c.Untrusted = []string{"fix it"}, []string{"mount evil:1"}
	if v := policy.Judge(c); !slices.Contains(v.Confirms, guard.UntrustedValue) {
		t.Errorf("%+v; want slices.Contains(v.Confirms, guard.UntrustedValue)", v)
	}
}
