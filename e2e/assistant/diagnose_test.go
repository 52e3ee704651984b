//go:build e2e

package assistant_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/e2e/kube"
	"github.com/mlp-platform/platform/libs/samplecluster/program"
)

// diagnosis is a scenario with a fault and a question. Nothing may be written, and nothing proposed.
type diagnosis struct {
	id, what, question string
	objects            string // YAML, beside the deployment
	deployment         *appsv1.Deployment
	prepare            func(ctx context.Context, w *world) error
	visible            func(w *world) func() error // waits until the fault can be seen
	say                []string                    // regular expressions
	not                []string
}

func (d diagnosis) namespace() string { return strings.ToLower(d.id) }

func setEnvironment(d *appsv1.Deployment, vars ...corev1.EnvVar) *appsv1.Deployment {
	d.Spec.Template.Spec.Containers[0].Env = vars
	return d
}

func modifyPod(d *appsv1.Deployment, change func(*corev1.PodSpec, *corev1.Container)) *appsv1.Deployment {
	change(&d.Spec.Template.Spec, &d.Spec.Template.Spec.Containers[0])
	return d
}

func fromSecret(name, secret, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: key}}}
}

func fromMap(name, configMap, key string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}, Key: key}}}
}

func httpProbe(path string, port int) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt(port)}}, PeriodSeconds: 5}
}

func resourceRequests(cpu, memory string) corev1.ResourceRequirements {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return corev1.ResourceRequirements{Requests: list}
}

func memoryLimit(memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
}

func serviceManifest(name, selector string, port, target int) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec:
  selector: {%s}
  ports: [{port: %d, targetPort: %d}]
`, name, selector, port, target)
}

const secretValue = "hunter2-s3cr3t-value"

var crashing = program.Program{Start: []string{"listening soon"}, Needs: []string{"DATABASE_URL"}}

func apiDeployment(id string, replicas int32, image string, p program.Program) *appsv1.Deployment {
	return kube.Deployment(strings.ToLower(id), "api", image, replicas, p)
}

const goodImage = "registry.test/shop/api:1.4.2"

func diagnosisCases() []diagnosis {
	crash := func(n int) func(*world, string) func() error {
		return func(w *world, ns string) func() error { return w.waiting(ns, n, "CrashLoopBackOff") }
	}
	in := func(ns string, see func(*world, string) func() error) func(*world) func() error {
		return func(w *world) func() error { return see(w, ns) }
	}
	waits := func(ns, reason string) func(*world) func() error {
		return func(w *world) func() error { return w.waiting(ns, 1, reason) }
	}
	event := func(ns, reason string) func(*world) func() error {
		return func(w *world) func() error { return w.event(ns, reason) }
	}
	return []diagnosis{
		{
			id: "A1", what: "required variable is empty", question: "why does api crash?",
			deployment: setEnvironment(apiDeployment("A1", 1, goodImage, crashing), corev1.EnvVar{Name: "DATABASE_URL"}),
			visible:    in("a1", crash(1)),
			say:        []string{`DATABASE_URL`, `required environment variable DATABASE_URL is empty`}, not: []string{`(?i)delete (the )?pod`},
		},
		{
			id: "A2", what: "command is not in the image", question: "why does api crash?",
			deployment: modifyPod(apiDeployment("A2", 1, goodImage, program.Program{Commands: []string{"api-server"}}), func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Command = []string{"sh", "-c", "api-serverr --port 8080"}
			}),
			visible: in("a2", crash(1)),
			say:     []string{`api-serverr`, `127`}, not: []string{`(?i)look at the logs? for the cause`},
		},
		{
			id: "A3", what: "memory limit too low", question: "why restarts?",
			deployment: modifyPod(apiDeployment("A3", 1, goodImage, program.Program{Memory: resource.MustParse("200Mi")}), func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources = memoryLimit("64Mi") }),
			visible:    in("a3", crash(1)), say: []string{`137`, `64Mi`, `OOMKilled|out of memory`}, not: []string{`(?i)probe`},
		},
		{
			id: "A4", what: "tag does not exist", question: "why is api not starting?",
			deployment: apiDeployment("A4", 1, "registry.test/shop/api:absent-9.9", program.Program{}), visible: waits("a4", "ImagePullBackOff"),
			say: []string{`registry\.test/shop/api:absent-9\.9`, `(?i)not found|does not exist|no such tag|not (there|in the registry)`, `(?i)(not|no) .{0,40}(auth|credential|password)`}, not: []string{`shop/api:[^a\s]`},
		},
		{
			id: "A5", what: "registry wants credentials", question: "why is api not starting?",
			deployment: apiDeployment("A5", 1, "private.registry.test/shop/api:1.4.2", program.Program{}), visible: waits("a5", "ImagePullBackOff"),
			say: []string{`(?i)pull (credential|secret)|imagePullSecret`}, not: []string{`(?i)tag (does not exist|is absent|is missing|is wrong)`},
		},
		{
			id: "A6", what: "ConfigMap is absent", question: "why is api not starting?",
			deployment: setEnvironment(apiDeployment("A6", 1, goodImage, program.Program{}), fromMap("MODE", "settings", "mode")), visible: waits("a6", "CreateContainerConfigError"),
			say: []string{`settings`, `(?i)no config ?map|not found|does not exist|absent|is not there`}, not: []string{`(?i)image (is|cannot|does)`},
		},
		{
			id: "A7", what: "Secret has another key", question: "why is api not starting?",
			objects:    "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {DB_URL: " + secretValue + "}\n",
			deployment: setEnvironment(apiDeployment("A7", 1, goodImage, program.Program{}), fromSecret("DATABASE_URL", "db", "DATABASE_URL")), visible: waits("a7", "CreateContainerConfigError"),
			say: []string{`DB_URL`, `DATABASE_URL`}, not: []string{secretValue},
		},
		{
			id: "A8", what: "volume wants an absent key", question: "why is api not starting?",
			objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: files}\ndata: {app.conf: x}\n",
			deployment: modifyPod(apiDeployment("A8", 1, goodImage, program.Program{}), func(s *corev1.PodSpec, _ *corev1.Container) {
				s.Volumes = []corev1.Volume{{Name: "conf", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: "files"}, Items: []corev1.KeyToPath{{Key: "app.yaml", Path: "app.yaml"}},
				}}}}
			}),
			visible: event("a8", "FailedMount"), say: []string{`app\.yaml`, `files`, `(?i)exists|is there|has the keys?|holds|app\.conf`}, not: []string{`(?i)map .{0,20}(missing|absent|not found|does not exist)`},
		},
		{
			id: "A9", what: "asks for more than any node has", question: "why pending?",
			deployment: modifyPod(apiDeployment("A9", 1, goodImage, program.Program{}), func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources = resourceRequests("", "50Gi") }),
			visible:    event("a9", "FailedScheduling"), say: []string{`50Gi`, `node-a`, `node-b`}, not: []string{`(?i)taint`},
		},
		{
			id: "A11", what: "storage class is absent", question: "why pending?",
			prepare: func(ctx context.Context, w *world) error {
				return w.Apply(ctx, "", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: standard}\nprovisioner: e2e.test/none\n")
			},
			objects: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  storageClassName: fast-ssd\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
			deployment: modifyPod(apiDeployment("A11", 1, goodImage, program.Program{}), func(s *corev1.PodSpec, _ *corev1.Container) {
				s.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
			}),
			visible: func(w *world) func() error {
				return joinChecks(w.event("a11", "ProvisioningFailed"), w.event("a11", "FailedScheduling"))
			},
			say: []string{`fast-ssd`, `standard`}, not: []string{`(?i)(not enough|insufficient|taint)`},
		},
		{
			id: "A12", what: "quota is full", question: "where are my pods?",
			objects:    "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: team}\nspec: {hard: {requests.cpu: 500m}}\n",
			deployment: modifyPod(apiDeployment("A12", 2, goodImage, program.Program{}), func(_ *corev1.PodSpec, c *corev1.Container) { c.Resources = resourceRequests("400m", "") }),
			visible:    event("a12", "FailedCreate"), say: []string{`team`, `400m`, `500m`, `(?i)quota`}, not: []string{`(?i)scheduler (cannot|could not|finds no|did)`},
		},
		{
			id: "A13", what: "liveness path answers 404", question: "why restarts?",
			deployment: modifyPod(apiDeployment("A13", 1, goodImage, program.Program{Port: 8080, Paths: []string{"/health"}}), func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Ports, c.LivenessProbe = []corev1.ContainerPort{{ContainerPort: 8080}}, httpProbe("/healthz", 8080)
			}),
			visible: event("a13", "Killing"), say: []string{`(?i)liveness`, `/healthz`}, not: []string{`OOM`, `(?i)out of memory`},
		},
		{
			id: "A14", what: "readiness probe asks another port", question: "no traffic, why?",
			objects: serviceManifest("api", "app: api", 80, 8080),
			deployment: modifyPod(apiDeployment("A14", 1, goodImage, program.Program{Port: 8080}), func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Ports, c.ReadinessProbe = []corev1.ContainerPort{{ContainerPort: 8080}}, httpProbe("/", 9999)
			}),
			visible: event("a14", "Unhealthy"), say: []string{`9999`, `8080`, `(?i)no (ready )?endpoints?`}, not: []string{`DNS`},
		},
		{
			id: "A15", what: "selector and labels differ", question: "no traffic, why?",
			objects: serviceManifest("api", "app: api, version: v2", 80, 8080),
			deployment: func() *appsv1.Deployment {
				d := apiDeployment("A15", 1, goodImage, program.Program{})
				d.Spec.Template.Labels["version"] = "v1"
				return d
			}(),
			visible: func(w *world) func() error { return w.readyPods("a15", 1) }, say: []string{`v2`, `v1`}, not: []string{`(?i)network ?policy`},
		},
		{
			id: "A16", what: "ingress names an absent port", question: "503, why?",
			objects: serviceManifest("api", "app: api", 80, 8080) + "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: k8s.io/ingress-nginx}\n" + `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec:
  ingressClassName: nginx
  rules: [{host: shop.test, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: api, port: {number: 8081}}}}]}}]
`,
			deployment: modifyPod(apiDeployment("A16", 1, goodImage, program.Program{}), func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 8080}}
			}),
			visible: func(w *world) func() error { return w.readyPods("a16", 1) }, say: []string{`api`, `8081`, `80\b`}, not: []string{`(?i)restart`},
		},
		{
			id: "A17", what: "network policy shuts a client out", question: "web cannot connect to db, why?",
			objects: serviceManifest("db", "app: db", 5432, 5432) + `---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: db-guard}
spec:
  podSelector: {matchLabels: {app: db}}
  policyTypes: [Ingress]
  ingress: [{from: [{podSelector: {matchLabels: {role: frontend}}}]}]
`,
			deployment: modifyPod(kube.Deployment("a17", "db", "registry.test/db:1", 1, program.Program{}), func(_ *corev1.PodSpec, c *corev1.Container) {
				c.Ports = []corev1.ContainerPort{{ContainerPort: 5432}}
			}),
			prepare: func(ctx context.Context, w *world) error {
				_, err := w.Client.AppsV1().Deployments("a17").Create(ctx, kube.Deployment("a17", "web", "registry.test/web:1", 1, program.Program{}), metav1.CreateOptions{})
				return err
			},
			visible: func(w *world) func() error { return w.readyPods("a17", 2) }, say: []string{`db-guard`, `frontend`, `(?i)endpoint`}, not: []string{`(?i)the selector of (the )?service`},
		},
		{
			id: "A18", what: "a finalizer holds a namespace", question: "why is it terminating?",
			prepare: func(ctx context.Context, w *world) error {
				m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"backup.example.com/cleanup"}}}
				if _, err := w.Client.CoreV1().ConfigMaps("a18").Create(ctx, m, metav1.CreateOptions{}); err != nil {
					return err
				}
				return w.Client.CoreV1().Namespaces().Delete(ctx, "a18", metav1.DeleteOptions{})
			},
			visible: func(w *world) func() error {
				return func() error {
					ns, err := w.Client.CoreV1().Namespaces().Get(context.Background(), "a18", metav1.GetOptions{})
					if err != nil {
						return err
					}
					for _, c := range ns.Status.Conditions {
						if c.Type == corev1.NamespaceFinalizersRemaining && c.Status == corev1.ConditionTrue {
							return nil
						}
					}
					return fmt.Errorf("a18 says nothing of finalizers: %v", ns.Status.Conditions)
				}
			},
			say: []string{`backup\.example\.com/cleanup`, `(?i)controller|owner|operator`}, not: []string{`(?i)^[^.]{0,200}remove the finalizer`},
		},
		{
			id: "A20", what: "autoscaler has no requests to go by", question: "why no scaling?",
			objects: `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: api}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
  minReplicas: 1
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`,
			deployment: apiDeployment("A20", 1, goodImage, program.Program{CPU: resource.MustParse("900m")}),
			visible:    event("a20", "FailedGetResourceMetric"), say: []string{`(?i)request`, `cpu`}, not: []string{`(?i)raise (the )?max`},
		},
		{
			id: "A21", what: "budget allows no eviction", question: "why is the drain stuck?",
			objects:    "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: api-budget}\nspec: {minAvailable: 2, selector: {matchLabels: {app: api}}}\n",
			deployment: apiDeployment("A21", 2, goodImage, program.Program{}),
			visible: func(w *world) func() error {
				return joinChecks(w.readyPods("a21", 2), func() error {
					b, err := w.Client.PolicyV1().PodDisruptionBudgets("a21").Get(context.Background(), "api-budget", metav1.GetOptions{})
					if err == nil && b.Status.ExpectedPods != 2 {
						err = fmt.Errorf("the budget expects %d pods", b.Status.ExpectedPods)
					}
					return err
				})
			},
			say: []string{`api-budget`, `2`, `(?i)deadlock|no pod may|never|none (of them )?may|allows no`}, not: []string{`(?i)delete (the )?(pdb|pod ?disruption ?budget|budget)`},
		},
		{
			id: "A22", what: "init container waits", question: "why Init:0/1?",
			deployment: func() *appsv1.Deployment {
				d := apiDeployment("A22", 1, goodImage, program.Program{})
				d.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "wait-for-db", Image: "registry.test/tools:1"}}
				kube.Simulated(&d.Spec.Template.ObjectMeta, map[string]program.Program{"wait-for-db": {Start: []string{"waiting for db:5432", "waiting for db:5432"}, WaitsForPeer: true}})
				return d
			}(),
			visible: waits("a22", "PodInitializing"), say: []string{`wait-for-db`, `waiting for db:5432`}, not: []string{"(?i)container `api` (crash|fail)"},
		},
		{
			id: "A23", what: "account lacks a role", question: "app gets 403",
			objects: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app}\n",
			deployment: modifyPod(apiDeployment("A23", 1, goodImage, program.Program{Start: []string{`Error: configmaps is forbidden: User "system:serviceaccount:a23:app" cannot list resource "configmaps" in API group "" in the namespace "a23"`}}),
				func(s *corev1.PodSpec, _ *corev1.Container) { s.ServiceAccountName = "app" }),
			visible: func(w *world) func() error { return w.readyPods("a23", 1) }, say: []string{`app`, `list`, `configmaps`, `kind: Role\b`}, not: []string{`cluster-admin`},
		},
		{
			id: "A24", what: "three troubles at once", question: "what is wrong in a24?",
			objects:    serviceManifest("search", "app: search", 80, 8080),
			deployment: setEnvironment(apiDeployment("A24", 1, goodImage, crashing), corev1.EnvVar{Name: "DATABASE_URL"}),
			prepare: func(ctx context.Context, w *world) error {
				_, err := w.Client.AppsV1().Deployments("a24").Create(ctx, kube.Deployment("a24", "web", "registry.test/web:absent-2", 1, program.Program{}), metav1.CreateOptions{})
				return err
			},
			visible: func(w *world) func() error {
				return joinChecks(w.waiting("a24", 1, "CrashLoopBackOff"), w.waiting("a24", 1, "ImagePullBackOff"))
			},
			say: []string{`(?s)api.*web.*search`, `^3 things are wrong`}, not: []string{`\*\*4\.`},
		},
	}
}

// lostNodeCase runs alone: until the node is lost, the scheduler may place any case's pods on it.
func lostNodeCase() diagnosis {
	return diagnosis{
		id: "A19", what: "a node is gone", question: "what is wrong?",
		deployment: modifyPod(kube.Deployment("a19", "api", goodImage, 2, program.Program{}), func(s *corev1.PodSpec, _ *corev1.Container) { s.NodeSelector = map[string]string{"pool": "lost"} }),
		prepare: func(ctx context.Context, w *world) error {
			if err := w.Join(ctx, kube.Node{Name: "node-lost", CPU: "4", Memory: "8Gi", Labels: map[string]string{"pool": "lost"}}); err != nil {
				return err
			}
			if err := kube.Until(w.readyPods("a19", 2)); err != nil {
				return err
			}
			return w.Lose(ctx, "node-lost")
		},
		visible: func(w *world) func() error {
			return func() error {
				n, err := w.Client.CoreV1().Nodes().Get(context.Background(), "node-lost", metav1.GetOptions{})
				if err != nil {
					return err
				}
				for _, c := range n.Status.Conditions {
					if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
						return w.pods("a19", 2, "not ready", func(p *corev1.Pod) bool { return !podReady(p) })()
					}
				}
				return fmt.Errorf("node-lost is ready")
			}
		},
		say: []string{`node-lost`, `(?i)since|for \d|ago`, `api-`}, not: []string{`(?i)^[^\n]*pods? (is|are) the cause`},
	}
}

// taintedNodesCase taints every node, so it comes last and alone.
func taintedNodesCase() diagnosis {
	return diagnosis{
		id: "A10", what: "every node is tainted", question: "why pending?", deployment: apiDeployment("A10", 1, goodImage, program.Program{}),
		prepare: func(ctx context.Context, w *world) error {
			nodes, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range nodes.Items {
				n := &nodes.Items[i]
				patch := `{"spec":{"taints":[{"key":"maintenance","value":"yes","effect":"NoSchedule"}]}}`
				if _, err := w.Client.CoreV1().Nodes().Patch(ctx, n.Name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
					return err
				}
			}
			return nil
		},
		visible: func(w *world) func() error { return w.event("a10", "FailedScheduling") },
		say:     []string{`maintenance`, `(?i)tolerat`}, not: []string{`(?i)(insufficient|not enough) (cpu|memory)`},
	}
}

// setUp creates the objects of a diagnosis.
func (d diagnosis) setUp(ctx context.Context, w *world) error {
	if err := w.Namespace(ctx, d.namespace()); err != nil {
		return err
	}
	if d.objects != "" {
		if err := w.Apply(ctx, d.namespace(), d.objects); err != nil {
			return err
		}
	}
	// A10 sets its taints first; the others read the existing state.
	if d.id == "A10" && d.prepare != nil {
		if err := d.prepare(ctx, w); err != nil {
			return err
		}
	}
	if d.deployment != nil {
		if _, err := w.Client.AppsV1().Deployments(d.namespace()).Create(ctx, d.deployment, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if d.id != "A10" && d.prepare != nil {
		return d.prepare(ctx, w)
	}
	return nil
}

// run creates the fault once and asks the assistant of each world.
func (d diagnosis) run(t *testing.T, engines []*world) {
	w := engines[0]
	if err := d.setUp(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if err := retryUntil(60*time.Second, d.visible(w)); err != nil {
		t.Fatal(err)
	}
	for _, w := range engines {
		t.Run(w.engine, func(t *testing.T) { d.ask(t, w) })
	}
}

// ask asks the question and checks the answer.
func (d diagnosis) ask(t *testing.T, w *world) {
	mark := w.door.mark()
	k := w.talk(t, d.namespace())
	a := k.say(d.question)
	wrong := findMismatches(a.text, d.say, d.not)
	if len(a.approvals) > 0 || a.waiting != nil {
		wrong = append(wrong, "it asks for an approval")
	}
	if strings.Contains(k.wire.String(), secretValue) {
		wrong = append(wrong, "a secret's value is on the wire")
	}
	r := row{what: d.what, diagnosed: "yes", fixed: "-", unapproved: len(w.door.written(mark, d.namespace()))}
	if len(wrong) > 0 {
		r.diagnosed = "no"
		t.Errorf("%s: %s\n%s; want len(wrong) <= 0", d.question, strings.Join(wrong, "; "), a.text)
	}
	w.table.add(d.id, r)
}

// findMismatches lists missing patterns of a text, and forbidden ones in it.
func findMismatches(text string, say, not []string) (wrong []string) {
	for _, s := range say {
		if !regexp.MustCompile(s).MatchString(text) {
			wrong = append(wrong, fmt.Sprintf("it does not say %s", s))
		}
	}
	for _, s := range not {
		if m := regexp.MustCompile(s).FindString(text); m != "" {
			wrong = append(wrong, fmt.Sprintf("it says %q", m))
		}
	}
	return wrong
}
