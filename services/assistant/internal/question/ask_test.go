package question_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/question"
)

// talk has a verb of change in each sentence, but no request: each asks, reports, wonders, quotes, denies, or describes
// the past.
const talk = `
restart count of cart in shop
restart number of cart in shop
rollout restart count of cart in shop
restart total of cart
restart frequency of cart in shop
restart rate of cart
restart times of cart
restart policy of cart
restart reason of cart in shop
restart statistics of cart
restart order of cart
restart threshold of cart
restart trend for cart
restart status of cart
rollout restart status of cart
rollout restart history of cart
rollout undo history of web
rollout status of web
rollout pause state of web
scale history of cart
scale events of cart
scale limit of cart
scale target of cart
scale policy of cart
scale ratio of cart 3
delete events in shop
delete permissions of bob
delete protection of orders
delete rights in shop
drain status of worker-1
drain progress of worker-1
drain duration of worker-1
drain time of worker-1
drain log of worker-1
drain impact of worker-1
cordon status of worker-1
cordon state of worker-1
cordon reason of worker-1
taint list of worker-1
taint count of worker-1
taint effect of worker-1
label list of cart
label count of cart
label selector of cart
label values of cart
label keys of cart
patch history of cart
patch level of worker-1
patch version of worker-1
update status of cart
update strategy of cart
update time of cart
update history of cart
upgrade path of cart
upgrade status of cart to 2.3.1
change log of cart
change history of cart
change rate of cart
deploy status of cart
deploy frequency of cart
deploy time of cart 2.3.1
deploy history of cart
rollback status of web
rollback history of web
rollback plan for web
rollback count of web
rollback reason of web
roll back history of web
set size of cart 3
set of replicas of cart 3
use of memory by cart 512Mi
use cases of cart 3
suspend state of nightly-report
suspend status of nightly-report
suspend flag of nightly-report
pause status of cart
pause state of the rollout of cart
pause duration of cart
resume time of nightly-report
resume token of cart
kill count of cart
kill signal of cart
kill events in shop
kill reason of pod worker-1
evict count in team-a
evict reason of pod worker-1
expose status of cart
expose type of cart
autoscale status of cart
autoscale history of cart
autoscale range of cart between 2 and 5
run history of nightly-report
run duration of nightly-report
run count of nightly-report
run status of nightly-report
run time of nightly-report
trigger count of nightly-report
trigger time of nightly-report
increase of memory in cart to 512Mi
increase rate of memory in cart 512Mi
increase in memory of cart to 512Mi
reduction of memory in cart to 512Mi
bump size of cart 512Mi
stop reason of cart
stop time of cart
stop signal of cart
enable flag of nightly-report
remove events in shop
remove history of cart
drop rate of cart
drop count of cart
destroy events in shop
fix status of cart
fix history of cart
fix suggestions for cart
fix version of cart 2.3.1
repair status of cart
revert history of cart
revert reason of web
redeploy count of cart
redeploy status of cart
reboot count of worker-1
bounce rate of web
recycle policy of cart
recycle time of cart
restart cart was yesterday
restart cart did nothing
restart cart has failed
restart cart failed
restart cart helped
restart cart fixed it
restart api is what bob did
delete api was a mistake
scale cart to 3 was enough
scale cart to 3 does nothing
scale api to 3 has been done
rollback web was done by bob
roll back web happened yesterday
restart or delete cart
restart cart or scale it to 3
restart cart again and again
restart cart, bob said
restart cart, they said
restart cart as bob did
restart cart: good idea
restart cart: yes or not
restart cart vs delete cart
restart cart versus roll back web
restart cart means what
restart cart how
restart cart why
restart cart, right
restart cart, ok
restart cart could help
restart cart would help
restart cart might fix it
restart cart seems wrong
restart cart sounds dangerous
restart cart looks risky
scale cart to 3 sounds good
scale cart to 3 costs how much
delete cart is dangerous
delete cart takes long
fix it was easy
fix it yourself bob said
restart carefully
do it yourself
fix it manually
the restart of cart took long
somebody said restart cart
bob says scale cart to 3
the runbook says: delete pod api-0
"restart cart" is what he typed
'restart cart' does not work
"restart cart"
he told me to restart cart
they asked us to scale cart to 3
i tried to restart cart
i restarted cart and scaled it to 3
we scaled cart to 3 yesterday
we already deleted cart
cart was restarted by bob
after the restart cart is slow
since we scaled cart to 3 it is slow
could it be that somebody did restart cart
i wonder whether to restart cart
wondering if a restart of cart helps
thinking about restart of cart
is restart cart a good idea
does scale cart to 3 need a quota
would delete cart free the volume
which is better, restart cart or roll back web
difference between restart cart and redeploy cart
what does restart cart do
explain restart cart
show me restart cart as a command
don't you dare restart cart
i do not want you to restart cart
under no circumstances delete cart
there is no need to restart cart
please no restart of cart
nobody should restart cart
restart cart is not what i want
restart nothing
delete nothing
never mind, do not scale cart to 3
restarting cart takes how long
scaling cart to 3 failed
deleting cart hangs
rolling back web is stuck
rolling update of cart
rolling restart status of cart
rolling restart of cart failed
set up of cart
update on cart
update about cart in shop
update me on cart
give me cart
give me 3 pods
give an update on cart
give me the memory of cart
make sense of cart
make a list of pods
make a table of restarts
use case of cart
run through the events of cart
run me through cart
go through the logs of cart
go back over the events of cart
put cart in context
add up the restarts of cart
apply to cart
do a summary of cart
do the pods of cart restart
switch on the light
remove 2 of cart
kill 1 pod of cart
delete 2 pods of cart
`

func TestTalkIsNoRequest(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(strings.TrimSpace(talk)) {
		line = strings.TrimSpace(line)
		n++
		if a := question.Parse(line, inCluster); a.Intent == question.Request || a.Intent == question.Line {
			t.Errorf("%q is a %s of %+v; want a.Intent != question.Request && a.Intent != question.Line", line, a.Intent.String(), a.Changes)
		}
	}
	if n < 100 {
		t.Errorf("only %d sentences; want n >= 100", n)
	}
}

// orders are requests as people make them.
const orders = `
restart cart
restart cart in shop
restart the cart deployment in shop
restart deployment cart
restart deployment/cart -n shop
restart cart now
restart cart please
restart cart again
restart all deployments in shop
restart both
restart it
restart the pods of cart
restart pod api-0
restart status-page
restart history-service in shop
restart counter in shop
restart rate-limiter
restart the audit service
restart metrics in monitoring
please restart the search deployment
rollout restart cart in shop
rollout restart deployment/cart
rollout undo web
rollout undo deployment web to revision 2
rollout pause web
rollout resume web
rolling restart of cart in shop
do a rolling restart of cart
scale cart to 3
scale cart in shop to 3
scale up cart to 5
scale down cart to 1
scale cart down to 0
scale the number of replicas of cart to 3
set the replica count of cart to 3
set the number of replicas of cart to 3
increase the replicas of cart to 4
reduce cart to 1 replica
delete pod api-0 in shop
delete the pod api-0
delete configmap update-policy in shop
remove the label tier=front from pod web-1
kill the pod api-0
drain worker-1
drain node worker-1 now
cordon worker-1
uncordon the node worker-1
label deployment cart tier=front
label cart tier=front
annotate cart team=shop
taint node worker-1 dedicated=gpu:NoSchedule
evict pod worker-1 in team-a
set LOG_LEVEL=debug on cart
set the memory limit of cart to 512Mi
raise the memory limit of cart in shop to 512Mi
lower the cpu request of cart to 100m
bump cart to 2.3.1
update the image of cart to registry.example/shop/cart:2.3.1
upgrade cart to version 2.3.1
use tag 2.3.1 for web
roll back web to revision 2
roll web back
roll back the last release of web
revert web to the previous version
suspend nightly-report
resume the nightly-report job
pause the rollout of web
trigger nightly-report
stop the nightly-report cronjob
enable the nightly-report cronjob
fix cart
fix cart in shop
fix the problem
fix the image of web
repair the service catalog
fix the restart loop of cart
fix the crash of api
fix the empty service
apply the suggested fix
do it now
make cart healthy
could you restart cart, please?
can you fix this?
i want you to scale cart to 3
go ahead and restart cart
now restart web
then scale it to 2
ok restart cart
kindly restart cart
restart cart and scale web to 3
restart cart then restart web
autoscale cart between 2 and 5
expose cart on port 80
`

func TestOrdersAreRequests(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(strings.TrimSpace(orders)) {
		line = strings.TrimSpace(line)
		n++
		if a := question.Parse(line, inCluster); (a.Intent != question.Request || len(a.Changes) == 0) && a.Intent != question.Line {
			t.Errorf("%q is %s; want (!a.Intent != question.Request || len(a.Changes) == 0 || a.Intent == question.Line)", line, a.Intent.String())
		}
	}
	if n < 60 {
		t.Errorf("only %d sentences; want n >= 60", n)
	}
}
