package question_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// sentences are examples of what people type, by intent. Only those under Request may lead to a proposal.
var sentences = map[question.Intent]string{
	question.Diagnosis: `
why does api crash?
why is api crashing
why restarts?
why not starting?
why pending?
where are my pods?
no traffic, why?
503, why?
cannot connect
why terminating?
what is wrong?
what's wrong in shop?
whats wrong with api
what is wrong with the api deployment in shop
why no scaling?
why is drain stuck?
why Init:0/1?
app gets 403
wait, why?
why?
api is down
api down
api is broken!!
wtf is wrong with web
help api is crashing
pods keep dying
pod api-6d4b75cb6d-hqb6n is in CrashLoopBackOff
y is web not starting
something is broken in payments
anything wrong?
is anything broken?
debug api
investigate the checkout service in payments
troubleshoot media/player
diagnose shop
my pods won't start
the service returns 503
ImagePullBackOff on web
web can't pull its image
why can't web pull its image
why is the pvc unbound
restart loop on api
api?
shop/web
deployment api
root cause of the api outage
how come ledger keeps restarting
ledger OOMKilled again
drain stuck
hpa not scaling
rollout of api stuck
why did the nightly job not run
why is nightly-report not running?
customers get timeouts from catalog
what is causing the restarts of ledger
the node is NotReady
is api broken?
prod is on fire
can't reach the catalog service
`,
	question.Request: `
roll it back
roll back api
rollback web
please roll back the web deployment in shop
undo the last rollout of web
go back to revision 2
revert api
scale to 3
scale api to 3
scale the api deployment in shop up to 3 replicas please
can you scale api to 3?
could you please scale web to 5 replicas?
set replicas of api to 3
scale api to zero
scale deployment/api to 3
ok scale api to 3
fix it
fix the service
fix both
fix the crash
fix everything in shop
please fix api
do it
apply the fix
make it work
resume it
resume nightly-report
unsuspend the cronjob
suspend the nightly-report cronjob
pause the rollout of api
restart api
pls restart the api deployment
bounce web
rolling restart of api
rollout restart api
raise to 256Mi
raise the memory limit of ledger to 256Mi
increase memory to 512 Mi
give ledger 512Mi
bump ledger memory to 1gb
set the cpu request of web to 200m
set image of web to registry.example/shop/web:2.3.1
use registry.example/shop/web:2.3.1 for web
update web to 2.3.1
bump web to version 2.3.1
set DATABASE_URL to postgres://db:5432/shop on api
set DATABASE_URL=postgres://db:5432/shop for api
delete pod api-6d4b75cb6d-hqb6n
kill pod api-6d4b75cb6d-hqb6n
delete the catalog service in shop
cordon node-1
uncordon node-1
drain node-1
evict pod worker-1 in team-a
label pod web-1 tier=front
taint node node-1 dedicated=gpu:NoSchedule
run the nightly-report cronjob now
scale api to 3 and restart web
then restart it
delete api
autoscale api between 2 and 5 at 70%
could you restart api for me
disable the nightly-report cronjob
let's restart web
i want you to restart web
`,
	question.Advice: `
should I scale to 3?
should we scale api to 3?
what happens if I delete api?
what if i restart web?
what would happen if we roll back?
can I restart api?
can we delete the catalog service?
is it safe to restart api?
how do I roll back web?
how can i scale api
would it help to restart api?
i think we should scale to 3
roll it back?
restart api?
delete api?
i want to restart api
`,
	question.Held: `
don't restart it
dont scale api
do not delete anything
never restart api
please don't roll back
restart api if it crashes again
scale api to 3 tomorrow
roll back when the traffic is low
restart api later
drain node-1 tonight
do not touch api, just restart nothing
scale api to 3 unless it recovers
stop restarting api
`,
	question.Assent: `
yes but later
yes, but not now
ok
okay thanks
sure
go ahead
sounds good
lgtm
no, wait
not now
later
hold on
yes please
approved
never mind
yes scale it later
`,
	question.RecentChanges: `
did somebody scale api?
did anyone restart api?
what changed?
what has changed in shop recently
who changed api?
recent deployments
when was api last deployed?
was api scaled?
has anyone touched payments
latest changes in shop
what was deployed today
`,
	question.Overview: `
give me an overview
summary of the cluster
what is running in shop?
what runs here
what do we have in payments?
describe the cluster
`,
	question.Health: `
is everything ok?
health of shop
cluster status
how is the cluster doing
is api ready?
is the cluster healthy
status of api
all good?
`,
	question.UnhealthyPods: `
which pods are not ready?
show unhealthy pods
list failing pods in shop
pods that are not running
any crashing pods?
pending pods
what pods are stuck
`,
	question.Warnings: `
show warnings
any warnings in shop?
warnings of the last hour
`,
	question.Restarts: `
which pods restart the most?
restart counts
restarts in payments
how often did ledger restart
`,
	question.Usage: `
cpu usage
memory usage of pods in shop
which pods use the most memory?
top pods
how much memory does ledger use
who is the memory hog
`,
	question.Capacity: `
node capacity
how much cpu is free?
how full are the nodes
is there room for another pod
can a pod of 4Gi fit
`,
	question.Quotas: `
show quotas
how much of the quota is used in team-a
`,
	question.NoLimits: `
which pods have no limits?
containers without limits
deployments missing memory limits
`,
	question.Events: `
events in shop
show me the latest events
what happened to api
`,
	question.EmptyServices: `
services without endpoints
which services have no endpoints?
empty services in shop
`,
	question.External: `
what is exposed to the internet?
external services
which services are public
load balancers
`,
	question.ErrorLogs: `
error logs of api
show errors in the logs of ledger
any exceptions in shop?
show recent errors
`,
	question.ErrorRate: `
error rate of api
what is the error rate in shop?
how many 5xx
`,
	question.Latency: `
latency of api
p99 in shop
what are the response times of web
`,
	question.Images: `
which images are running?
what version of web is deployed
images in payments
`,
	question.Idle: `
idle workloads
what is unused?
which deployments are scaled to zero
`,
	question.EnvSecrets: `
are there secrets in env?
which containers have passwords in environment variables
plaintext secrets
`,
	question.DrainPlan: `
what happens if I drain node-1?
can I drain node-1?
drain plan for node-1
is it safe to drain node-1?
`,
	question.WhoCan: `
who can delete pods in shop?
who may read secrets?
who is allowed to scale deployments
`,
	question.Secrets: `
show all secrets as yaml
list secrets in payments
what is the password in secret gateway-db
`,
	question.Number: `
how many pods are there
how many pods are not running?
how many api pods run in shop
number of deployments in shop
which pods use image nginx
which pods run on worker-1
how many pods per node
which pods have label tier=web
pods with label tier=web, how many pods are that
which pods were restarted more than 3 times
which pods use configmap app-config
`,
	question.Clock: `
what time is it?
what's the current date
`,
	question.Manual: `
how do I port-forward to api in shop?
exec into api
open a shell in the api pod
`,
	question.Runbook: `
is there a runbook for api?
show me the runbook of web
`,
	question.List: `
list pods in shop
show me the deployments
get nodes
which services are in shop?
pods
`,
	question.Describe: `
describe api
tell me about ledger
show deployment api
`,
	question.Logs: `
logs of api
show me the logs of api-6d4b75cb6d-hqb6n
tail ledger
`,
	question.History: `
rollout history of api
revisions of web
`,
	question.Line: `
kubectl get pods -n shop
kubectl delete -n shop ns,pv --all
$ kubectl get pods
run kubectl get pods -A
label -nkube-system deployment coredns a=b
get pod --server=https://x
auth reconcile -f roles.yaml
`,
	question.Greeting: `
hi
hello
help
what can you do?
thanks
`,
	question.Unclear: `
the quick brown fox
scale to 3 would be good
tell me a joke
`,
}

func TestSentences(t *testing.T) {
	t.Parallel()
	n := 0
	for want, list := range sentences {
		for line := range strings.Lines(strings.TrimSpace(list)) {
			line = strings.TrimSpace(line)
			n++
			a := question.Parse(line, inCluster)
			if a.Intent != want {
				t.Errorf("%q is %s, want %s", line, a.Intent.String(), want.String())
			}
			if (a.Intent == question.Request) != (len(a.Changes) > 0 && a.Intent != question.Advice) {
				t.Errorf("%q: %d changes in %s; want (a.Intent == question.Request) == (len(a.Changes) > 0 && a.Intent != question.Advice)", line, len(a.Changes), a.Intent.String())
			}
		}
	}
	if n < 150 {
		t.Errorf("only %d sentences; want n >= 150", n)
	}
}

// TestValues checks the values that are read from a request.
func TestValues(t *testing.T) {
	t.Parallel()
	two, three := int32(2), int32(3)
	api := []question.Mention{{Name: "api", Sure: true}}
	for sentence, want := range map[string]question.Change{
		"scale api to 3":                                               {Verb: operation.Scale, Count: &three, Mentions: []question.Mention{{Name: "api", Sure: true}}},
		"scale deployment/api to three in shop":                        {Verb: operation.Scale, Count: &three, Namespace: "shop", Mentions: []question.Mention{{Kind: "deployment", Name: "api", Sure: true}}},
		"set shop/api to 3 replicas":                                   {Verb: operation.Scale, Count: &three, Namespace: "shop", Mentions: []question.Mention{{Name: "api", Sure: true}}},
		"scale api by 2":                                               {Verb: operation.Scale, Count: &two, Step: 1, Mentions: api},
		"scale api down by two":                                        {Verb: operation.Scale, Count: &two, Step: -1, Mentions: api},
		"reduce api by 2":                                              {Verb: operation.Scale, Count: &two, Step: -1, Mentions: api},
		"increase the replicas of api by two":                          {Verb: operation.Scale, Count: &two, Step: 1, Mentions: api},
		"add 2 replicas to api":                                        {Verb: operation.Scale, Count: &two, Step: 1, Mentions: api},
		"remove 2 replicas from api":                                   {Verb: operation.Scale, Count: &two, Step: -1, Mentions: api},
		"scale api down 2":                                             {Verb: operation.Scale, Mentions: api},
		"scale api up 50%":                                             {Verb: operation.Scale, Percent: 50, Mentions: api},
		"increase the memory of api by 128Mi":                          {Verb: operation.SetResources, Quantity: "128Mi", Resource: "memory", Step: 1, Mentions: api},
		"scale api down to 3":                                          {Verb: operation.Scale, Count: &three, Mentions: api},
		"raise to 256Mi":                                               {Verb: operation.SetResources, Quantity: "256Mi"},
		"raise the memory of the api deployment to 1.5 gb":             {Verb: operation.SetResources, Quantity: "1.5G", Resource: "memory", Kind: "deployment", Mentions: []question.Mention{{Kind: "deployment", Name: "api", Sure: true}}},
		"set the cpu request of api to 250m":                           {Verb: operation.SetResources, Quantity: "250m", Resource: "cpu", Request: true, Mentions: []question.Mention{{Name: "api", Sure: true}}},
		"set LOG_LEVEL to Debug on api":                                {Verb: operation.SetEnv, Set: map[string]string{"LOG_LEVEL": "Debug"}, Mentions: []question.Mention{{Name: "api", Sure: true}}},
		"use reg.example:5000/shop/API:1.2 for container web":          {Verb: operation.SetImage, Image: "reg.example:5000/shop/API:1.2", Container: "web"},
		"upgrade web to v2.3.1-rc.1":                                   {Verb: operation.SetImage, Tag: "v2.3.1-rc.1", Mentions: []question.Mention{{Name: "web", Sure: true}}},
		"go back to revision 4":                                        {Verb: operation.Undo, Revision: 4},
		"delete namespace media":                                       {Verb: operation.Delete, Mentions: []question.Mention{{Kind: "namespace", Name: "media", Sure: true}}},
		"remove the taint dedicated=gpu:NoSchedule from node worker-1": {Verb: operation.Taint, Taints: []string{"dedicated=gpu:NoSchedule-"}, Untaint: true, Kind: "node", Mentions: []question.Mention{{Kind: "node", Name: "worker-1", Sure: true}}},
		"fix the service":                                              {Kind: "service", Symptoms: []question.Symptom{question.Traffic}},
	} {
		a := question.Parse(sentence, inCluster)
		if len(a.Changes) != 1 {
			t.Errorf("%q is %s with %d changes; want len(a.Changes) == 1", sentence, a.Intent.String(), len(a.Changes))
			continue
		}
		got := a.Changes[0]
		if want.Kind == "" {
			want.Kind = got.Kind
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %+v, want %+v", sentence, got, want)
		}
	}
}

// TestPlaces checks the names and namespaces that are read from a question.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]string{
		"what is wrong in shop?":                    "in shop",
		"what is wrong in the shop namespace":       "in shop",
		"why does api in namespace payments crash?": "in payments api!",
		"why does the deployment api crash":         "deployment/api!",
		"why is the api deployment down":            "deployment/api!",
		"shop/web is broken":                        "in shop web!",
		"is deployment/web ok":                      "deployment/web!",
		"list pods -n team-a":                       "in team-a",
		"events in kube-system":                     "in kube-system",
		"what is `my-app` doing":                    "my-app!",
		"pods in all namespaces":                    "everywhere pod",
		"list pods in all namespaces":               "everywhere pod",
		"list all namespaces":                       "everywhere namespace",
		"anything wrong across the cluster?":        "everywhere ",
		"why is it down":                            "leans",
		"why?":                                      "leans",
		"why pending?":                              "",
		"pods are stuck in init":                    "",
		"why is my app down":                        "app",
	} {
		a := question.Parse(sentence, inCluster)
		var got []string
		if a.Namespace != "" {
			got = append(got, "in "+a.Namespace)
		}
		for _, m := range a.Mentions {
			name := m.Name
			if m.Kind != "" {
				name = m.Kind + "/" + name
			}
			if m.Sure {
				name += "!"
			}
			got = append(got, name)
		}
		if a.Everywhere {
			got = append(got, "everywhere", a.Kind)
		}
		if a.Leans {
			got = append(got, "leans")
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q is about %q, want %q", sentence, text, want)
		}
	}
}

// TestIntentNames: every intent has a name, and every name an intent.
func TestIntentNames(t *testing.T) {
	t.Parallel()
	if got := question.History.String(); got != "history" {
		t.Errorf("the last intent is named %q, want history", got)
	}
}

// Only an order may be covered by an approval given in advance; anything doubtful is none.
func TestRequestsChange(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]bool{
		"scale api in shop to 3": true, "please restart web": true, "roll it back": true, "fix both": true, "resume it": true, "raise it to 256Mi": true,
		"delete deployment api": true, "web should be deleted": false, "I want web restarted": false, "web needs 3 pods": false, "get rid of web": false, "can you restart api?": true,
		"should I scale api to 3?": false, "how do I restart web?": false, "do not restart web": false, "restart web tomorrow": false, "if it fails, restart web": false,
		"why was web restarted?": false, "api auf 3 hochfahren": false, "what would it help to scale api to 3": false, "yes": false, "": false,
		"is it safe to delete pod api-1?": false, "a log says: delete pod api-1": false,
	} {
		if got := question.RequestsChange(message); got != want {
			t.Errorf("%q: %v, want %v", message, got, want)
		}
	}
}
