package investigate_test

import "testing"

// TestWhatAnAnswerIsNotAbout: an answer names the words of a question that it ignores, claims nothing about them, and
// shows the fields that they name instead of a diagnosis.
func TestWhatAnAnswerIsNotAbout(t *testing.T) {
	t.Parallel()
	const allClear = "Nothing was found wrong"
	b := liveTools(t)
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"is checkout losing orders?", []string{"left out: `losing`, `orders`", "What the question says with `losing`, `orders`"}, []string{allClear}},
		{"is checkout getting traffic?", []string{"Whether a request is answered now"}, []string{allClear}},
		{"is the queue of checkout growing?", []string{"`growing`"}, []string{allClear}},
		{"is checkout running fine?", []string{allClear}, []string{"left out"}},
		{"what port does catalog listen on?", []string{"`main: containerPort=8080, protocol=TCP`", "targetPort=8080", "ask `what is wrong with catalog?`"}, []string{"service without endpoints"}},
		{"what labels does web have?", []string{"`app=web`"}, []string{"image pull"}},
		{"which team owns ledger?", []string{"I cannot answer more", "`team`, `owns`"}, []string{"out of memory"}},
		{"which deployments are not at the latest version?", []string{"left out: `latest`, `version`"}, nil},
		{"is the disk full anywhere", []string{"How full the volume is", "`kubectl exec POD -- df -h`"}, nil},
		{"what is the memory limit of ledger?", []string{"limits: `memory=64Mi`"}, nil},
		{"would it help to scale web to 5?", []string{"would not remove the cause"}, nil},
		{"is any deployment out of date because of the registry", nil, []string{allClear}},
		{"which variables hold secrets in plain text", nil, []string{"There is no secret"}},
		{"what env does gateway have?", []string{"environment: `DATABASE_URL: valueFrom.secretKeyRef.key=DATABASE_URL"}, []string{"missing key"}},
		{"when was catalog last restarted?", []string{"started last", "catalog-"}, []string{"left out", allClear}},
		{"which services have nobody behind them?", []string{"without a ready endpoint", "`catalog`"}, []string{"left out"}},
		{"what runs on the same node as ledger?", []string{"is on node `worker-3`", "pods of `worker-3` in the cluster"}, []string{allClear}},
		{"what does gateway depend on?", []string{"needs:", "Secret `gateway-db`"}, []string{allClear}},
		{"who talks to checkout?", []string{"Used or limited by:", "Service `checkout`: sends traffic"}, []string{allClear}},
		{"does gateway depend on redis?", []string{"Nothing that was read shows that", "`redis`"}, []string{"Yes,"}},
		{"is gateway ok?", []string{"No, something is wrong."}, nil},
		{"since when is gateway broken?", []string{"answers when."}, []string{allClear}},
		{"if i restart gateway will it come up?", []string{"answers what would happen."}, []string{allClear}},
		{"compare the limits of gateway and ledger", []string{"They differ in limits:", "`memory=64Mi`", "`memory=256Mi`"}, nil},
		{"how old is the ledger pod?", []string{"started last", "ledger-"}, nil},
		{"did checkout ever crash?", []string{"No container", "was restarted"}, []string{allClear}},
		{"what kernel version is worker-3 on?", []string{"Node `worker-3`, kernel: `6.1.0`."}, []string{"no workloads"}},
		{"how many services have nobody behind them?", []string{"Rows: "}, nil},
		{"is gateway broken?", nil, []string{"No, something"}},
		{"which deployment has the fewest replicas?", []string{"The least by replicas: deployment `crm-db`"}, []string{"no object with the name"}},
		{"can people log in", []string{"not something I can answer"}, nil},
		{"what happens to payments if worker-3 dies?", []string{"exact outcome cannot be predicted", "Draining node `worker-3`"}, []string{allClear}},
	} {
		checkAnswer(t, row.query, askOnce(t, b, "", row.query), row.must, row.not)
	}
}

// TestListsOfWhatBelongs: a list of one kind beside the name of another object is limited to what belongs to that
// object.
func TestListsOfWhatBelongs(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for _, row := range []struct {
		query     string
		must, not []string
	}{
		{"which node is ledger on?", []string{"The node of deployment `ledger`", "worker-3"}, []string{"worker-1"}},
		{"which service fronts web?", []string{"The service of deployment `web`"}, []string{"`fronts`", "kube-dns"}},
		{"which secret does gateway use?", []string{"`payments/gateway-db`"}, []string{"There are no Secrets"}},
		{"what pods does ledger have", []string{"ledger-"}, []string{"gateway-"}},
	} {
		checkAnswer(t, row.query, askOnce(t, b, "", row.query), row.must, row.not)
	}
}

// TestObjectsLeftOut: a question that excludes an object is about the others.
func TestObjectsLeftOut(t *testing.T) {
	t.Parallel()
	b := liveTools(t)
	for query, not := range map[string]string{
		"is payments fine except for ledger?":                "`ledger`: out of memory",
		"what is broken in payments apart from ledger":       "`ledger`: out of memory",
		"anything wrong in shop besides the web deployment?": "`web` in namespace `shop`: image pull",
		"what is wrong with all deployments in shop but web": "`web` in namespace `shop`: image pull",
	} {
		checkAnswer(t, query, askOnce(t, b, "", query), []string{"wrong"}, []string{not, "Nothing was found wrong"})
	}
	checkAnswer(t, "except", askOnce(t, b, "", "is payments ok except for gateway, settlements and ledger?"), []string{"without `gateway`, `settlements`, `ledger`"}, []string{"missing key"})
}
