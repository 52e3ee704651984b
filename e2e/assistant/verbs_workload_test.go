//go:build e2e

package assistant_test

import "testing"

// web is a deployment of one pod that is ready at once.
const web = `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "registry.test/web:1"}]}
`

const database = `
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: "registry.test/db:1"}]}
`

// agent runs on the case's own node only.
const agent = `
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      nodeSelector: {case: NS}
      tolerations: [{key: case, operator: Exists}]
      containers: [{name: agent, image: "registry.test/agent:1"}]
`

const report = `
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "0 3 * * *"
  jobTemplate:
    metadata: {labels: {from: report}}
    spec: {template: {spec: {restartPolicy: Never, containers: [{name: report, image: "registry.test/report:1"}]}}}
`

const widget = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgetsNS.shop.test}
spec:
  group: shop.test
  scope: Namespaced
  names: {kind: WidgetNS, plural: widgetsNS, singular: widgetNS}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer}
              parts: {type: array, items: {type: object, properties: {name: {type: string}, size: {type: integer}}}}
          status: {type: object, properties: {replicas: {type: integer}}}
---
apiVersion: shop.test/v1
kind: WidgetNS
metadata: {name: one}
spec: {replicas: 1, parts: [{name: a, size: 1}, {name: b, size: 2}]}
`

var (
	webReady   = map[string]string{"deployments/web {.status.readyReplicas}": "1"}
	dbReady    = map[string]string{"statefulsets/db {.status.readyReplicas}": "1"}
	agentReady = map[string]string{"daemonsets/agent {.status.numberReady}": "1"}
)

// waitForObjects waits until objects are ready for a case.
func waitForObjects(holds ...map[string]string) func(*testing.T, *corner) {
	return func(t *testing.T, c *corner) {
		t.Helper()
		for _, h := range holds {
			c.wait(t, h)
		}
	}
}

const imageOf = " {.spec.template.spec.containers[0].image}"

// addRevision gives a workload a second revision, and waits for its rollout.
func addRevision(object, container string, first, second map[string]string) func(*testing.T, *corner) {
	return func(t *testing.T, c *corner) {
		t.Helper()
		c.wait(t, first)
		c.edit(t, object, `{"spec":{"template":{"spec":{"containers":[{"name":"`+container+`","image":"registry.test/`+container+`:2"}]}}}}`)
		c.wait(t, second)
	}
}

func workloadChanges() []change {
	return []change{
		{
			name: "scale a deployment", objects: web, before: waitForObjects(webReady),
			ask: "scale web to 2", command: "kubectl scale deployment/web -n NS --replicas=2", risk: "medium",
			shows: []string{`(?m)^-\s+replicas: 1$`, `(?m)^\+\s+replicas: 2$`}, writes: []string{"PATCH deployments/web"}, says: []string{`2 of 2`},
			holds: map[string]string{"deployments/web {.spec.replicas}/{.status.readyReplicas}": "2/2"},
		},
		{
			name: "scale a stateful set", objects: database, before: waitForObjects(dbReady),
			ask: "kubectl scale sts db --replicas=2", command: "kubectl scale statefulset/db -n NS --replicas=2", risk: "medium",
			shows: []string{`(?m)^\+\s+replicas: 2$`}, writes: []string{"PATCH statefulsets/db"}, says: []string{`2 of 2`},
			holds: map[string]string{"statefulsets/db {.spec.replicas}/{.status.readyReplicas}": "2/2"},
		},
		{
			name: "scale a custom resource", objects: widget,
			ask: "kubectl scale widgetsNS.shop.test one --replicas=3", command: "kubectl scale widgetNS/one -n NS --replicas=3", risk: "medium",
			shows: []string{`(?m)^-\s+replicas: 1$`, `(?m)^\+\s+replicas: 3$`}, writes: []string{"PATCH widgetsNS/one/scale"},
			holds: map[string]string{"widgetsNS/one {.spec.replicas}": "3"},
		},
		{
			name: "restart a deployment", objects: web, before: waitForObjects(webReady),
			ask: "restart web", command: "kubectl rollout restart deployment/web -n NS", risk: "medium",
			shows: []string{`(?m)^\+.*kubectl.kubernetes.io/restartedAt`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{`deployments/web {.metadata.generation}/{.status.updatedReplicas}`: "2/1"},
		},
		{
			name: "restart a stateful set", objects: database, before: waitForObjects(dbReady),
			ask: "kubectl rollout restart statefulset/db", command: "kubectl rollout restart statefulset/db -n NS", risk: "medium",
			writes: []string{"PATCH statefulsets/db"}, says: []string{`1 of 1`}, holds: map[string]string{`statefulsets/db {.metadata.generation}`: "2"},
		},
		{
			name: "undo a deployment", objects: web,
			before: addRevision("deployments/web", "web", webReady, map[string]string{"deployments/web" + imageOf + " {.status.observedGeneration} {.status.updatedReplicas}/{.status.replicas}/{.status.readyReplicas}": "registry.test/web:2 2 1/1/1"}),
			ask:    "roll web back", command: "kubectl rollout undo deployment/web -n NS --to-revision=1", risk: "high!",
			shows: []string{`(?m)^-.*web:2$`, `(?m)^\+.*web:1$`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{"deployments/web" + imageOf: "registry.test/web:1", `deployments/web {.metadata.annotations.deployment\.kubernetes\.io/revision}`: "3"},
		},
		{
			name: "undo a stateful set", objects: database,
			before: addRevision("statefulsets/db", "db", dbReady, map[string]string{"statefulsets/db" + imageOf + " {.status.observedGeneration} {.status.updatedReplicas}/{.status.readyReplicas}": "registry.test/db:2 2 1/1"}),
			ask:    "kubectl rollout undo statefulset db", command: "kubectl rollout undo statefulset/db -n NS --to-revision=1", risk: "high!",
			shows: []string{`(?m)^-.*db:2$`, `(?m)^\+.*db:1$`}, writes: []string{"PATCH statefulsets/db"}, says: []string{`1 of 1`},
			holds: map[string]string{"statefulsets/db" + imageOf: "registry.test/db:1"},
		},
		{
			name: "undo a daemon set", objects: agent, nodes: 1,
			before: addRevision("daemonsets/agent", "agent", agentReady, map[string]string{"daemonsets/agent" + imageOf + " {.status.observedGeneration} {.status.updatedNumberScheduled}/{.status.numberReady}": "registry.test/agent:2 2 1/1"}),
			ask:    "kubectl rollout undo ds/agent --to-revision=1", command: "kubectl rollout undo daemonset/agent -n NS --to-revision=1", risk: "high!",
			shows: []string{`(?m)^-.*agent:2$`, `(?m)^\+.*agent:1$`}, writes: []string{"PATCH daemonsets/agent"}, says: []string{`1 of 1`},
			holds: map[string]string{"daemonsets/agent" + imageOf: "registry.test/agent:1"},
		},
		{
			name: "pause", objects: web, before: waitForObjects(webReady),
			ask: "pause web", command: "kubectl rollout pause deployment/web -n NS", risk: "medium",
			shows: []string{`(?m)^\+\s+paused: true$`}, writes: []string{"PATCH deployments/web"}, says: []string{`(?i)paused`},
			holds: map[string]string{"deployments/web {.spec.paused}": "true"},
		},
		{
			name: "resume a rollout", objects: web,
			before: func(t *testing.T, c *corner) {
				c.wait(t, webReady)
				c.edit(t, "deployments/web", `{"spec":{"paused":true}}`)
			},
			ask: "kubectl rollout resume deploy web", command: "kubectl rollout resume deployment/web -n NS", risk: "medium",
			shows: []string{`(?m)^-\s+paused: true$`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{"deployments/web {.spec.paused}": ""},
		},
		{
			name: "suspend", objects: report,
			ask: "suspend report", command: `kubectl patch cronjob/report -n NS --type=merge -p '{"spec":{"suspend":true}}'`, risk: "medium",
			shows: []string{`(?m)^-\s+suspend: false$`, `(?m)^\+\s+suspend: true$`}, writes: []string{"PATCH cronjobs/report"}, says: []string{`(?i)is suspended`},
			holds: map[string]string{"cronjobs/report {.spec.suspend}": "true"},
		},
		{
			name: "resume a schedule", objects: report, before: func(t *testing.T, c *corner) { c.edit(t, "cronjobs/report", `{"spec":{"suspend":true}}`) },
			ask: `kubectl patch cj report -p '{"spec":{"suspend":false}}'`, command: `kubectl patch cronjob/report -n NS --type=merge -p '{"spec":{"suspend":false}}'`, risk: "medium",
			writes: []string{"PATCH cronjobs/report"}, says: []string{`(?i)not suspended`}, holds: map[string]string{"cronjobs/report {.spec.suspend}": "false"},
		},
		{
			name: "run a job", objects: report,
			ask: "kubectl create job report-now --from=cronjob/report", command: "kubectl create job report-now -n NS --from=cronjob/report", risk: "medium",
			shows: []string{`(?m)^\+.*report:1$`, `new .*report-now`}, writes: []string{"POST jobs"}, says: []string{`(?i)job.*report-now`},
			holds: map[string]string{"jobs/report-now {.metadata.ownerReferences[0].name} {.metadata.labels.from}": "report report"},
		},
		{
			name: "set an image", objects: web, before: waitForObjects(webReady),
			ask: "set the image of web to registry.test/web:2", command: "kubectl set image deployment/web web=registry.test/web:2 -n NS", risk: "high!",
			shows: []string{`(?m)^-.*web:1$`, `(?m)^\+.*web:2$`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{"deployments/web" + imageOf: "registry.test/web:2"},
		},
		{
			name: "set resources", objects: web, before: waitForObjects(webReady),
			ask: "kubectl set resources deployment web --requests=cpu=100m --limits=memory=128Mi", command: "kubectl set resources deployment/web -n NS --requests=cpu=100m --limits=memory=128Mi", risk: "high!",
			shows: []string{`(?m)^\+\s+memory: 128Mi$`, `(?m)^\+\s+cpu: 100m$`}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{"deployments/web {.spec.template.spec.containers[0].resources.requests.cpu}": "100m", "deployments/web {.spec.template.spec.containers[0].resources.limits.memory}": "128Mi"},
		},
		{
			name: "set the environment", objects: web, before: waitForObjects(webReady),
			ask: "kubectl set env deployment/web LEVEL=debug DB_PASSWORD=hunter2-s3cr3t", command: "kubectl set env deployment/web 'DB_PASSWORD=[redacted 14 bytes]' LEVEL=debug -n NS", risk: "medium",
			shows: []string{`(?m)^\+.*name: DB_PASSWORD$`, `(?m)^\+\s+value: debug$`, `redacted`}, hides: []string{"hunter2-s3cr3t"}, writes: []string{"PATCH deployments/web"}, says: []string{`1 of 1`},
			holds: map[string]string{`deployments/web {.spec.template.spec.containers[0].env[?(@.name=="DB_PASSWORD")].value}`: "hunter2-s3cr3t", `deployments/web {.spec.template.spec.containers[0].env[?(@.name=="LEVEL")].value}`: "debug"},
		},
		{
			name: "expose", objects: web, before: waitForObjects(webReady),
			ask: "kubectl expose deployment web --port=80 --target-port=8080 --name=shop", command: "kubectl expose deployment/web -n NS --name=shop --port=80 --target-port=8080", risk: "medium",
			shows: []string{`(?m)^\+\s+targetPort: 8080$`, `(?m)^\+\s+app: web$`}, writes: []string{"POST services"}, says: []string{`1 ready endpoint`},
			holds: map[string]string{"services/shop {.spec.ports[0].port}/{.spec.ports[0].targetPort} {.spec.selector.app}": "80/8080 web"},
		},
		{
			name: "autoscale", objects: web, before: waitForObjects(webReady),
			ask: "kubectl autoscale deployment web --min=1 --max=4 --cpu-percent=70", command: "kubectl autoscale deployment/web -n NS --min=1 --max=4 --cpu=70%", risk: "medium",
			shows: []string{`(?m)^\+\s+maxReplicas: 4$`}, writes: []string{"POST horizontalpodautoscalers"}, says: []string{`between 1 and 4`},
			holds: map[string]string{"horizontalpodautoscalers/web {.spec.scaleTargetRef.name} {.spec.minReplicas}/{.spec.maxReplicas}": "web 1/4"},
		},
	}
}
