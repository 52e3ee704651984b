package guard

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
)

// gains lists, sorted, what [Gains] finds in any object, and the fields of kinds
// without pods that give somebody more than he had.
func gains(c Change) []string {
	base := c.Before
	if base == nil {
		base = c.CopyOf
	}
	gained := set{}
	for _, g := range Gains(base, c.After) {
		gained[g] = true
	}
	changed := func(path ...string) bool { return differ(at(c.Before, path...), at(c.After, path...)) }
	switch c.Ref.Group + "/" + c.Ref.Kind {
	case "/Namespace":
		admission(gained, c.Before, c.After)
	case "/Service":
		// Whoever takes an address as its own gets what was meant for that address.
		for _, ip := range texts(at(c.After, "spec", "externalIPs")) {
			if !slices.Contains(texts(at(c.Before, "spec", "externalIPs")), ip) {
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
		for namespace := range secretNamespaces(at(c.After, "spec"), 0) {
			if !secretNamespaces(at(c.Before, "spec"), 0)[namespace] {
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
		if text(c.After, "spec", "conversion", "strategy") == "Webhook" && changed("spec", "conversion") {
			gained["a webhook that sees and rewrites all objects of the kind"] = true
		}
	case "networking.k8s.io/Ingress", "extensions/Ingress":
		// Their text becomes configuration of the ingress controller, and runs as it.
		had, _ := at(c.Before, "metadata", "annotations").(map[string]any)
		has, _ := at(c.After, "metadata", "annotations").(map[string]any)
		for key, v := range has {
			if strings.Contains(key, "snippet") && had[key] != v {
				gained["configuration of the ingress controller by "+key] = true
			}
		}
	}
	priority(gained, c.Ref, base, c.After)
	return slices.Sorted(maps.Keys(gained))
}

// admission finds labels of a namespace that lift its gate for pods. Only the strictest
// level can be set without lifting anything: without a label, the server's own default
// holds, which is not known here.
func admission(gained set, before, after map[string]any) {
	const gate, version, devices = "pod-security.kubernetes.io/enforce", "pod-security.kubernetes.io/enforce-version", "resource.kubernetes.io/admin-access"
	had, _ := at(before, "metadata", "labels").(map[string]any)
	has, _ := at(after, "metadata", "labels").(map[string]any)
	switch {
	case had[gate] == has[gate], has[gate] == "restricted", had[gate] == "privileged" && has[gate] != nil:
	case had[gate] == "privileged":
		// Back to the default of the server, which is no weaker.
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

// priority finds pods that may put others off their nodes, in whatever namespace.
func priority(gained set, ref operation.Ref, before, after map[string]any) {
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		class := text(spec, "priorityClassName")
		if class == "" || class == text(old[path], "priorityClassName") {
			continue
		}
		// The server puts the default of the cluster into a pod that names none.
		if before == nil && ref.Group == "" && ref.Kind == "Pod" && !strings.HasPrefix(class, "system-") {
			continue
		}
		gained["the priority class "+class] = true
	}
}

// secretNamespaces are the namespaces of the Secrets that a volume of the cluster is
// mounted with.
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
		if namespace := text(inner, "namespace"); namespace != "" && strings.HasSuffix(strings.ToLower(key), "secretref") {
			found[namespace] = true
		}
		maps.Copy(found, secretNamespaces(inner, depth+1))
	}
	return found
}

// credentials lists, sorted, the Secrets, tokens and drivers' volumes that pods get and
// that those before did not have. What a Secret holds is read by nobody here, but a pod
// can be told to say it.
func credentials(before, after map[string]any) []string {
	gained := set{}
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		had := given(old[path])
		for g := range given(spec) {
			if !had[g] {
				gained[g] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(gained))
}

func given(spec map[string]any) set {
	p := set{}
	secret := func(name string) {
		if name != "" {
			p["the Secret "+name] = true
		}
	}
	for _, c := range containersOf(spec) {
		for _, e := range objects(c["env"]) {
			secret(text(e, "valueFrom", "secretKeyRef", "name"))
		}
		for _, e := range objects(c["envFrom"]) {
			secret(text(e, "secretRef", "name"))
		}
	}
	for _, v := range objects(spec["volumes"]) {
		secret(text(v, "secret", "secretName"))
		if driver := text(v, "csi", "driver"); driver != "" {
			p["a volume of the driver "+driver] = true
		}
		for _, s := range objects(at(v, "projected", "sources")) {
			secret(text(s, "secret", "name"))
			if audience := text(s, "serviceAccountToken", "audience"); audience != "" {
				p["a token for "+audience] = true
			}
			if at(s, "podCertificate") != nil {
				p["a certificate of "+text(s, "podCertificate", "signerName")] = true
			}
		}
	}
	return p
}

// changesOwner says whether an object belongs to other owners afterwards. One that is
// not there, or ends, takes the object with it: no deletion is asked of anybody.
func changesOwner(c Change) bool {
	if c.CopyOf != nil {
		return false // the job of a CronJob, which is its owner by itself
	}
	had, _ := at(c.Before, "metadata", "ownerReferences").([]any)
	has, _ := at(c.After, "metadata", "ownerReferences").([]any)
	return (len(had) > 0 || len(has) > 0) && !reflect.DeepEqual(had, has)
}

// takesAlong lists the deletions, of volumes, claims and kinds, that a change leads to.
func takesAlong(c Change) (notes []string) {
	set := func(to string, path ...string) bool {
		return text(c.After, path...) == to && text(c.Before, path...) != to
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
			if text(c.After, "spec", policy, "whenScaled") == "Delete" && less(at(c.After, "spec", "replicas"), at(c.Before, "spec", "replicas")) {
				notes = append(notes, "deletes the volume claims of the pods that go")
			}
		}
		if c.After == nil && text(c.Before, "spec", policy, "whenDeleted") == "Delete" {
			notes = append(notes, "deletes its volume claims")
		}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		for _, was := range objects(at(c.Before, "spec", "versions")) {
			served := slices.ContainsFunc(objects(at(c.After, "spec", "versions")), func(v map[string]any) bool {
				return text(v, "name") == text(was, "name") && v["served"] == true
			})
			if c.After != nil && was["served"] == true && !served {
				notes = append(notes, "takes version "+text(was, "name")+" of the kind away")
			}
		}
	}
	return notes
}

// ends lists what makes a controller end a single object, which is no less than to
// delete it.
func ends(c Change) (notes []string) {
	for _, ref := range c.Removes {
		notes = append(notes, "makes a controller delete "+ref.String())
	}
	if c.Before == nil || c.After == nil {
		return notes
	}
	sooner := func(path ...string) bool {
		had, has := at(c.Before, path...), at(c.After, path...)
		return has != nil && (had == nil || less(has, had))
	}
	switch c.Ref.Group + "/" + c.Ref.Kind {
	case "batch/Job":
		if sooner("spec", "ttlSecondsAfterFinished") {
			notes = append(notes, "lets the job and its pods be deleted after "+fmt.Sprint(at(c.After, "spec", "ttlSecondsAfterFinished"))+" s")
		}
		if sooner("spec", "activeDeadlineSeconds") {
			notes = append(notes, "ends the job after "+fmt.Sprint(at(c.After, "spec", "activeDeadlineSeconds"))+" s")
		}
	case "/Pod":
		if sooner("spec", "activeDeadlineSeconds") {
			notes = append(notes, "ends the pod after "+fmt.Sprint(at(c.After, "spec", "activeDeadlineSeconds"))+" s")
		}
	case "/PersistentVolume":
		if differ(at(c.Before, "spec", "claimRef"), at(c.After, "spec", "claimRef")) {
			notes = append(notes, "gives the volume, with what is on it, to another claim")
		}
	case "apiextensions.k8s.io/CustomResourceDefinition":
		if differ(c.Before["spec"], c.After["spec"]) {
			notes = append(notes, "changes every object of the kind")
		}
	}
	return notes
}

// less compares numbers as JSON decoders give them; what is none is not less.
func less(a, b any) bool {
	x, ok := number(a)
	y, also := number(b)
	return ok && also && x < y
}

func number(v any) (float64, bool) {
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
