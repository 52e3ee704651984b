package question

import "strings"

// states are what kubectl shows in the column STATUS, and reasons of events: words of a question,
// never a name.
var states = setOf(`containercreating crashloopbackoff imagepullbackoff errimagepull errimageneverpull invalidimagename createcontainererror
	createcontainerconfigerror runcontainererror containercannotrun podinitializing evicted completed succeeded oomkilled notready unschedulable failedscheduling
	failedmount failedcreate failedattachvolume schedulingdisabled imageinspecterror deadlineexceeded backofflimitexceeded preempted nodelost unexpectedadmissionerror
	rest others another thats hours mins min secs sec hr hrs slowly slower faster flaky sluggish laggy unresponsive resolve resolving stateful log`)

// isNameInQuestion reports whether a word of a question can only be a name. Forms of ordinary words,
// such as "showing", and states are none, though an object may be called so.
func isNameInQuestion(w word) bool {
	return isName(w) && (w.quoted || !states[w.low] && !isInflected(w.low))
}

// isInflected reports whether a word is a form of an ordinary one.
func isInflected(low string) bool {
	for _, suffix := range []string{"ing", "ed", "es", "s", "ly"} {
		stem, ok := strings.CutSuffix(low, suffix)
		if !ok || len(stem) < 3 {
			continue
		}
		if common[stem] || common[stem+"e"] {
			return true
		}
		if n := len(stem); stem[n-1] == stem[n-2] && common[stem[:n-1]] { // stopping
			return true
		}
	}
	return false
}

// pairs are kinds that people write as two words.
var pairs = map[string]string{
	"stateful set": "statefulset", "stateful sets": "statefulsets", "daemon set": "daemonset", "daemon sets": "daemonsets", "replica set": "replicaset",
	"replica sets": "replicasets", "cron job": "cronjob", "cron jobs": "cronjobs", "config map": "configmap", "config maps": "configmaps", "network policy": "networkpolicy",
	"network policies": "networkpolicies", "storage class": "storageclass", "storage classes": "storageclasses", "service account": "serviceaccount",
	"service accounts": "serviceaccounts", "persistent volume": "persistentvolume", "persistent volumes": "persistentvolumes", "disruption budget": "poddisruptionbudget",
	"disruption budgets": "poddisruptionbudgets", "volume claim": "persistentvolumeclaim", "volume claims": "persistentvolumeclaims",
}

// joinPairs makes one word of each kind that was written as two.
func joinPairs(words []word) []word {
	var joined []word
	for i := 0; i < len(words); i++ {
		w := words[i]
		if i+1 < len(words) && !w.quoted && !words[i+1].quoted {
			if kind, ok := pairs[w.low+" "+words[i+1].low]; ok {
				w.text, w.low = kind, kind
				i++
			}
		}
		joined = append(joined, w)
	}
	return joined
}
