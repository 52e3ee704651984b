//go:build e2e && full

package assistant_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// clusterDNS is a cluster's DNS scaled to zero: no name resolves on this node.
const clusterDNS = `
apiVersion: v1
kind: Service
metadata: {name: kube-dns, labels: {k8s-app: kube-dns, kubernetes.io/name: CoreDNS}}
spec:
  clusterIP: 10.96.0.10
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: coredns, labels: {k8s-app: kube-dns}}
spec:
  replicas: 0
  selector: {matchLabels: {k8s-app: kube-dns}}
  template:
    metadata: {labels: {k8s-app: kube-dns}}
    spec: {containers: [{name: coredns, image: registry.test/coredns:1.12}]}
`

// workload returns a Deployment of one pod whose container runs a line of shell; more is added to the container.
func workload(name, script, more string) string {
	return workloadPod(name, fmt.Sprintf(`{containers: [{name: %s, image: IMAGE, imagePullPolicy: IfNotPresent, command: [/bin/sh, -c, %q]%s}]}`, name, script, more))
}

func workloadPod(name, spec string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: %[2]s
`, name, spec)
}

// realFaults are ten faults. The scripts only cause them; kernel, runtime and kubelet produce the symptoms.
func realFaults() []realFault {
	waiting := func(reason string) func(*world, string) func() error {
		return func(w *world, ns string) func() error { return w.waiting(ns, 1, reason) }
	}
	return slices.Concat(faultsOfProcesses(waiting), faultsOfSurroundings(waiting))
}

func faultsOfProcesses(waiting func(string) func(*world, string) func() error) []realFault {
	return []realFault{
		{
			name: "crash", symptom: "why does billing keep restarting?",
			objects: workload("billing", `echo starting billing; echo "fatal: cannot open /etc/billing/rates.csv: No such file or directory" >&2; exit 3`, ""),
			shows:   waiting("CrashLoopBackOff"), truth: []string{"billing", `exit(ed)?( with)?( code| status)? 3\b|code 3\b`, `rates\.csv`},
		},
		{
			name: "oom", symptom: "importer dies again and again, why?",
			objects: workload("importer", `echo loading all rows; exec tail /dev/zero`, `, resources: {limits: {memory: 24Mi}}`),
			shows: func(w *world, ns string) func() error {
				return terminated(w, ns, func(e *corev1.ContainerStateTerminated) bool { return e.Reason == "OOMKilled" })
			},
			truth: []string{"importer", "memory", "24Mi"},
		},
		{
			name: "probe", symptom: "store gets no traffic although it runs",
			objects: workload("store", `mkdir -p /tmp/www; echo ok >/tmp/www/health; echo serving on 8080; exec httpd -f -p 8080 -h /tmp/www`,
				`, ports: [{containerPort: 8080}], readinessProbe: {periodSeconds: 2, httpGet: {port: 8080, path: /healthz}}`),
			shows: func(w *world, ns string) func() error { return w.event(ns, "Unhealthy") },
			truth: []string{"store", "readiness", "404", "/healthz"},
		},
		{
			name: "signal", symptom: "resizer crashes, what kills it?",
			objects: workload("resizer", `echo resizing cat.png; sh -c 'kill -SEGV $$$$'; exit $?`, ""),
			shows:   waiting("CrashLoopBackOff"), truth: []string{"resizer", "139", "SIGSEGV"},
		},
		{
			name: "init", symptom: "ledger does not start, it hangs in init",
			objects: workloadPod("ledger", `{initContainers: [{name: migrate, image: IMAGE, command: [/bin/sh, -c, 'echo "migration 0042 failed: column amount already exists"; exit 7']}],`+
				` containers: [{name: ledger, image: IMAGE, command: [/bin/sleep, infinity]}]}`),
			shows: waiting("CrashLoopBackOff"), truth: []string{"ledger", "migrate", `exit(ed)?( with)?( code| status)? 7\b|code 7\b`, "0042"},
		},
	}
}

func faultsOfSurroundings(waiting func(string) func(*world, string) func() error) []realFault {
	return []realFault{
		{
			name: "image", symptom: "the new version of cart does not come up",
			objects: workloadPod("cart", `{containers: [{name: cart, image: "registry.test/shop/cart:2.14", command: [/bin/sleep, infinity]}]}`),
			shows:   waiting("ImagePullBackOff"), truth: []string{"cart", `registry\.test/shop/cart:2\.14`, "not found|does not exist|no such|is not there|has no"},
		},
		{
			name: "throttle", symptomOnly: true, symptom: "encoder is very slow since today, why?",
			objects: workload("encoder", `echo encoding; while :; do :; done`, `, resources: {limits: {cpu: 20m, memory: 32Mi}, requests: {cpu: 10m}}`),
			shows:   func(w *world, ns string) func() error { return usesCPU(w, ns, 19) },
			truth:   []string{"encoder", "cpu", "limit", "20m", "throttled"},
		},
		{
			name: "disk", symptom: "the pods of cache vanish after a while, why?",
			objects: workloadPod("cache", `{containers: [{name: cache, image: IMAGE, command: [/bin/sh, -c, 'echo warming up; dd if=/dev/zero of=/data/blob bs=1M count=64; sleep infinity'],`+
				` resources: {limits: {ephemeral-storage: 20Mi}}, volumeMounts: [{name: data, mountPath: /data}]}], volumes: [{name: data, emptyDir: {}}]}`),
			shows: func(w *world, ns string) func() error { return w.event(ns, "Evicted") },
			truth: []string{"cache", "evict", "ephemeral|local storage|disk", "20Mi"},
		},
		{
			name: "dns", symptom: "checkout cannot resolve names, why?",
			objects: workload("checkout", `exec bash -c 'while :; do : </dev/tcp/payments.bank.svc.cluster.local/80; sleep 2; done'`, ""),
			shows: func(w *world, ns string) func() error {
				return logged(w, ns, "checkout", "name resolution")
			},
			truth: []string{"checkout", `dns|resol`, `kube-dns|coredns`},
		},
		{
			name: "policy", symptomOnly: true, symptom: "can web reach db on port 8080?", clear: true,
			objects: `
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {selector: {app: db}, ports: [{port: 8080}]}
` + workload("db", `mkdir -p /tmp/www; echo ok >/tmp/www/index.html; exec httpd -f -p 8080 -h /tmp/www`, `, ports: [{containerPort: 8080}]`) +
				workload("web", `exec bash -c 'while :; do : </dev/tcp/$DB_SERVICE_HOST/8080 && echo answered; sleep 2; done'`, "") + `
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: lock-db}
spec: {podSelector: {matchLabels: {app: db}}, policyTypes: [Ingress]}
`,
			// The plug-in of this node allows what the policy denies.
			shows: func(w *world, ns string) func() error { return logged(w, ns, "web", "answered") },
			truth: []string{"lock-db", "plug-?in"},
		},
	}
}
