package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/argocd"
	"github.com/mlp-platform/platform/services/assistant/internal/certmanager"
	"github.com/mlp-platform/platform/services/assistant/internal/gatewayapi"
	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// listGains lists, sorted, the results of [Gains] for any object, and the fields of kinds without pods that widen
// access.
func listGains(c Change) []string {
	base := c.Before
	if base == nil {
		base = c.CopyOf
	}
	gained := set{}
	for _, g := range Gains(base, c.After) {
		gained[g] = true
	}
	changed := func(path ...string) bool {
		return valuesDiffer(podSpecOf(c.Before, path...), podSpecOf(c.After, path...))
	}
	switch c.Ref.Group + "/" + c.Ref.Kind {
	case "/Namespace":
		addAdmissionGains(gained, c.Before, c.After)
	case "/Service":
		// An object that claims an address receives the traffic meant for it.
		for _, ip := range textList(podSpecOf(c.After, "spec", "externalIPs")) {
			if !slices.Contains(textList(podSpecOf(c.Before, "spec", "externalIPs")), ip) {
				gained["the traffic to "+ip] = true
			}
		}
	case "/Endpoints":
		if changed("subsets") {
			gained["traffic of a service to addresses that nothing checks"] = true
		}
	case "discovery.k8s.io/EndpointSlice":
		if changed("endpoints") {
			gained["traffic of a service to addresses that nothing checks"] = true
		}
	case "/PersistentVolume":
		for namespace := range secretNamespaces(podSpecOf(c.After, "spec"), 0) {
			if !secretNamespaces(podSpecOf(c.Before, "spec"), 0)[namespace] {
				gained["the use of a Secret of "+namespace] = true
			}
		}
	case "scheduling.k8s.io/PriorityClass":
		for _, field := range []string{"value", "globalDefault", "preemptionPolicy"} {
			if changed(field) {
				gained["which pods put others off their nodes"] = true
			}
		}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		if textAt(c.After, "spec", "conversion", "strategy") == "Webhook" && changed("spec", "conversion") {
			gained["a webhook that sees and rewrites all objects of the kind"] = true
		}
	case "networking.k8s.io/Ingress", "extensions/Ingress":
		// Their text becomes part of the ingress controller's configuration, and runs with its
		// rights.
		had, _ := podSpecOf(c.Before, "metadata", "annotations").(map[string]any)
		has, _ := podSpecOf(c.After, "metadata", "annotations").(map[string]any)
		for key, v := range has {
			if strings.Contains(key, "snippet") && had[key] != v {
				gained["configuration of the ingress controller by "+key] = true
			}
		}
	}
	if c.Ref.Group+"/"+c.Ref.Kind == gatewayapi.Group+"/ReferenceGrant" && c.After != nil && changed("spec") {
		gained["references from other namespaces to objects of this one"] = true
	}
	if c.Ref.Group+"/"+c.Ref.Kind == gatewayapi.Group+"/Gateway" && c.After != nil {
		addGatewayGains(gained, c.Before, c.After)
	}
	if what := delegated[c.Ref.Group+"/"+c.Ref.Kind]; what != "" && c.After != nil && (changed("spec") || !reflect.DeepEqual(podSpecOf(c.Before, "operation"), podSpecOf(c.After, "operation"))) {
		gained[what] = true
	}
	addPriorityGains(gained, c.Ref, base, c.After)
	return slices.Sorted(maps.Keys(gained))
}

// delegated are the kinds whose controllers write, with their own rights, what an object requests.
var delegated = map[string]string{
	argocd.Group + "/Application":             "whatever Argo CD applies for it",
	argocd.Group + "/ApplicationSet":          "whatever Argo CD applies for it",
	argocd.Group + "/AppProject":              "what applications of Argo CD may apply",
	certmanager.Group + "/Certificate":        "a Secret that cert-manager writes for it",
	certmanager.Group + "/Issuer":             "certificates that cert-manager signs by it",
	certmanager.Group + "/ClusterIssuer":      "certificates that cert-manager signs by it",
	certmanager.Group + "/CertificateRequest": "a certificate that cert-manager signs for it",
}

// addGatewayGains finds listeners that accept routes of more namespaces, whose owners can then serve their hosts and
// paths, and addresses that the gateway did not claim. Listeners are matched by name: a new one has no routes yet, so
// it is compared with the default.
func addGatewayGains(gained set, before, after map[string]any) {
	listener := func(object map[string]any, name string) map[string]any {
		for _, l := range objectList(podSpecOf(object, "spec", "listeners")) {
			if textAt(l, "name") == name {
				return l
			}
		}
		return nil
	}
	for _, l := range objectList(podSpecOf(after, "spec", "listeners")) {
		name := textAt(l, "name")
		had, has := podSpecOf(listener(before, name), "allowedRoutes", "namespaces"), podSpecOf(l, "allowedRoutes", "namespaces")
		if admitsMore(had, has) {
			gained["routes of other namespaces at listener "+name] = true
		}
	}
	claimed := set{}
	for _, a := range objectList(podSpecOf(before, "spec", "addresses")) {
		claimed[textAt(a, "type")+" "+textAt(a, "value")] = true
	}
	for _, a := range objectList(podSpecOf(after, "spec", "addresses")) {
		if value := textAt(a, "value"); value != "" && !claimed[textAt(a, "type")+" "+value] {
			gained["the traffic to "+value] = true
		}
	}
}

// admitsMore reports whether the allowedRoutes.namespaces of a listener select namespaces that they did not select
// before. A selector counts as wider unless it only has more conditions.
func admitsMore(before, after any) bool {
	switch textAt(after, "from") {
	case "All":
		return textAt(before, "from") != "All"
	case "Selector":
		switch textAt(before, "from") {
		case "All":
			return false
		case "Selector":
			return !keepsConditions(podSpecOf(before, "selector"), podSpecOf(after, "selector"))
		}
		return true
	case "", "Same":
		return textAt(before, "from") == "None"
	}
	return false
}

// keepsConditions reports whether a label selector has all conditions of another one.
func keepsConditions(before, after any) bool {
	had, _ := podSpecOf(before, "matchLabels").(map[string]any)
	for key, value := range had {
		if !reflect.DeepEqual(podSpecOf(after, "matchLabels", key), value) {
			return false
		}
	}
	for _, e := range objectList(podSpecOf(before, "matchExpressions")) {
		if !slices.ContainsFunc(objectList(podSpecOf(after, "matchExpressions")), func(o map[string]any) bool { return reflect.DeepEqual(e, o) }) {
			return false
		}
	}
	return true
}

// addAdmissionGains finds labels of a namespace that relax its admission of pods. Only the
// strictest level can be set without relaxing anything: without a label, the server's own
// default applies, which is not known here.
func addAdmissionGains(gained set, before, after map[string]any) {
	const gate, version, devices = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version", "resource.kubernetes.io/admin-access"
	had, _ := podSpecOf(before, "metadata", "labels").(map[string]any)
	has, _ := podSpecOf(after, "metadata", "labels").(map[string]any)
	switch {
	case had[gate] == has[gate], has[gate] == "restricted", had[gate] == "privileged" && has[gate] != nil:
	case had[gate] == "privileged":
		// Falls back to the server's default, which is not weaker.
	default:
		gained["a weaker gate for pods ("+gate+")"] = true
	}
	if had[version] != has[version] {
		gained["a gate for pods of another version ("+version+")"] = true
	}
	if has[devices] == "true" && had[devices] != "true" {
		gained["devices that others use ("+devices+")"] = true
	}
}

// addPriorityGains finds pods that may displace others from their nodes, in any namespace.
func addPriorityGains(gained set, ref operation.Ref, before, after map[string]any) {
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		class := textAt(spec, "priorityClassName")
		if class == "" || class == textAt(old[path], "priorityClassName") {
			continue
		}
		// The server sets the cluster's default for a pod that names none.
		if before == nil && ref.Group == "" && ref.Kind == "Pod" && !strings.HasPrefix(class, "system-") {
			continue
		}
		gained["the priority class "+class] = true
	}
}

// secretNamespaces returns the namespaces of the Secrets with which a cluster-wide volume is
// mounted.
func secretNamespaces(v any, depth int) set {
	found := set{}
	m, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		return found
	}
	for key, inner := range m {
		if namespace, ok := inner.(string); ok && key == "secretNamespace" && namespace != "" {
			found[namespace] = true
		}
		if namespace := textAt(inner, "namespace"); namespace != "" && strings.HasSuffix(strings.ToLower(key), "secretref") {
			found[namespace] = true
		}
		maps.Copy(found, secretNamespaces(inner, depth+1))
	}
	return found
}

// newCredentials lists, sorted, the Secrets, tokens and driver volumes that pods newly get. The assistant never reads a
// Secret, but a pod can be made to print it.
func newCredentials(before, after map[string]any) []string {
	gained := set{}
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		had := credentialsOf(old[path])
		for g := range credentialsOf(spec) {
			if !had[g] {
				gained[g] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(gained))
}

func credentialsOf(spec map[string]any) set {
	p := set{}
	secret := func(name string) {
		if name != "" {
			p["the Secret "+name] = true
		}
	}
	for _, c := range containersOf(spec) {
		for _, e := range objectList(c["env"]) {
			secret(textAt(e, "valueFrom", "secretKeyRef", "name"))
		}
		for _, e := range objectList(c["envFrom"]) {
			secret(textAt(e, "secretRef", "name"))
		}
	}
	for _, v := range objectList(spec["volumes"]) {
		secret(textAt(v, "secret", "secretName"))
		if driver := textAt(v, "csi", "driver"); driver != "" {
			p["a volume of the driver "+driver] = true
		}
		for _, s := range objectList(podSpecOf(v, "projected", "sources")) {
			secret(textAt(s, "secret", "name"))
			if audience := textAt(s, "serviceAccountToken", "audience"); audience != "" {
				p["a token for "+audience] = true
			}
			if podSpecOf(s, "podCertificate") != nil {
				p["a certificate of "+textAt(s, "podCertificate", "signerName")] = true
			}
		}
	}
	return p
}

// changesOwner reports whether an object has other owners afterwards. An owner that is absent or ends takes the object
// with it, without a request to delete it.
func changesOwner(c Change) bool {
	if c.CopyOf != nil {
		return false // the job of a CronJob, which becomes its owner
	}
	had, _ := podSpecOf(c.Before, "metadata", "ownerReferences").([]any)
	has, _ := podSpecOf(c.After, "metadata", "ownerReferences").([]any)
	return (len(had) > 0 || len(has) > 0) && !reflect.DeepEqual(had, has)
}

// takesAlong lists the deletions, of volumes, claims and kinds, that a change causes.
func takesAlong(c Change) (notes []string) {
	set := func(to string, path ...string) bool {
		return textAt(c.After, path...) == to && textAt(c.Before, path...) != to
	}
	if c.Before != nil {
		for _, field := range []string{"persistentVolumeReclaimPolicy", "deletionPolicy", "reclaimPolicy"} {
			for _, end := range []string{"Delete", "Recycle"} {
				if set(end, "spec", field) || set(end, field) {
					notes = append(notes, "lets the data end with its claim: "+field+" becomes "+end)
				}
			}
		}
	}
	switch c.Ref.Group + "/" + c.Ref.Kind {
	case "apps/StatefulSet":
		const policy = "persistentVolumeClaimRetentionPolicy"
		if c.Before != nil && c.After != nil {
			for _, when := range []string{"whenDeleted", "whenScaled"} {
				if set("Delete", "spec", policy, when) {
					notes = append(notes, "lets volume claims end with their pods: "+when+" becomes Delete")
				}
			}
			if textAt(c.After, "spec", policy, "whenScaled") == "Delete" && numberLess(podSpecOf(c.After, "spec", "replicas"), podSpecOf(c.Before, "spec", "replicas")) {
				notes = append(notes, "deletes the volume claims of the pods that go")
			}
		}
		if c.After == nil && textAt(c.Before, "spec", policy, "whenDeleted") == "Delete" {
			notes = append(notes, "deletes its volume claims")
		}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		for _, was := range objectList(podSpecOf(c.Before, "spec", "versions")) {
			served := slices.ContainsFunc(objectList(podSpecOf(c.After, "spec", "versions")), func(v map[string]any) bool {
				return textAt(v, "name") == textAt(was, "name") && v["served"] == true
			})
			if c.After != nil && was["served"] == true && !served {
				notes = append(notes, "takes version "+textAt(was, "name")+" of the kind away")
			}
		}
	}
	return notes
}

// listEndings lists the changes that make a controller end a single object, which amounts to deleting it.
func listEndings(c Change) (notes []string) {
	for _, ref := range c.Removes {
		notes = append(notes, "makes a controller delete "+ref.String())
	}
	if c.Before == nil || c.After == nil {
		return notes
	}
	sooner := func(path ...string) bool {
		had, has := podSpecOf(c.Before, path...), podSpecOf(c.After, path...)
		return has != nil && (had == nil || numberLess(has, had))
	}
	switch c.Ref.Group + "/" + c.Ref.Kind {
	case "batch/Job":
		if sooner("spec", "ttlSecondsAfterFinished") {
			notes = append(notes, "lets the job and its pods be deleted after "+fmt.Sprint(podSpecOf(c.After, "spec", "ttlSecondsAfterFinished"))+" s")
		}
		if sooner("spec", "activeDeadlineSeconds") {
			notes = append(notes, "ends the job after "+fmt.Sprint(podSpecOf(c.After, "spec", "activeDeadlineSeconds"))+" s")
		}
	case "/Pod":
		if sooner("spec", "activeDeadlineSeconds") {
			notes = append(notes, "ends the pod after "+fmt.Sprint(podSpecOf(c.After, "spec", "activeDeadlineSeconds"))+" s")
		}
	case "/PersistentVolume":
		if valuesDiffer(podSpecOf(c.Before, "spec", "claimRef"), podSpecOf(c.After, "spec", "claimRef")) {
			notes = append(notes, "gives the volume, with what is on it, to another claim")
		}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		if valuesDiffer(c.Before["spec"], c.After["spec"]) {
			notes = append(notes, "changes every object of the kind")
		}
	}
	return notes
}

// numberLess compares numbers as JSON decoders return them; a non-number is not less.
func numberLess(a, b any) bool {
	x, ok := toFloat(a)
	y, also := toFloat(b)
	return ok && also && x < y
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
