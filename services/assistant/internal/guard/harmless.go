package guard

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// fieldVerdict states whether a field may change under an approval given in advance. The zero value requires a
// decision, so that an unknown field does too.
type fieldVerdict int

const (
	askField fieldVerdict = iota
	harmless              // it changes neither the running program nor where its traffic goes
)

// The harmless fields, by path. A segment * is the name of one element of a list; a final ** covers everything below.
// The lists name the fields that may pass rather than those that may not: a version of Kubernetes adds fields, and each
// has to require a decision.
var (
	// objectFields are the harmless fields of an object around its pod spec. The fields below a CronJob's jobTemplate
	// count as a Job's.
	objectFields = fieldTable(`spec.replicas spec.paused spec.suspend spec.minReadySeconds spec.revisionHistoryLimit
		spec.progressDeadlineSeconds spec.strategy.** spec.updateStrategy.** spec.podManagementPolicy
		spec.schedule spec.timeZone spec.concurrencyPolicy spec.startingDeadlineSeconds spec.successfulJobsHistoryLimit spec.failedJobsHistoryLimit
		spec.parallelism spec.completions spec.backoffLimit spec.backoffLimitPerIndex spec.maxFailedIndexes spec.activeDeadlineSeconds
		spec.ttlSecondsAfterFinished spec.podFailurePolicy.** spec.podReplacementPolicy spec.persistentVolumeClaimRetentionPolicy.**`)
	podFields = fieldTable(`nodeName nodeSelector.** imagePullSecrets.** affinity.** tolerations.** topologySpreadConstraints.** priorityClassName priority
		preemptionPolicy terminationGracePeriodSeconds activeDeadlineSeconds readinessGates.**`)
	// containerFields are the harmless fields of a container that exists before and after and is not an init container.
	// They do not include its ports: a Service whose targetPort is a name follows them.
	containerFields = fieldTable(`terminationMessagePolicy livenessProbe.~ readinessProbe.~ startupProbe.~`)
	// probeFields are the harmless fields of each probe. Its exec runs a program; its host and headers select the target
	// of the kubelet's request.
	probeFields = strings.Fields(`initialDelaySeconds periodSeconds timeoutSeconds successThreshold failureThreshold terminationGracePeriodSeconds
		httpGet.path httpGet.port httpGet.scheme tcpSocket.port grpc.port grpc.service`)
)

// fieldTable parses a list of paths; ~ is replaced by the fields of a probe.
func fieldTable(paths string) map[string]fieldVerdict {
	table := map[string]fieldVerdict{}
	for path := range strings.FieldsSeq(paths) {
		if probe, ok := strings.CutSuffix(path, "~"); ok {
			for _, field := range probeFields {
				table[probe+field] = harmless
			}
			continue
		}
		table[path] = harmless
	}
	return table
}

// lookUp returns the verdict on a path, whose list elements are written *.
func lookUp(table map[string]fieldVerdict, path []string) fieldVerdict {
	if v := table[strings.Join(path, ".")]; v != askField {
		return v
	}
	for n := len(path); n > 0; n-- {
		if v := table[strings.Join(path[:n], ".")+".**"]; v != askField {
			return v
		}
	}
	return askField
}

// programChanges lists, sorted, the fields by which a change affects the running program or where its traffic goes.
func programChanges(c Change) []string {
	found := set{}
	switch {
	case c.Ref.Group == "" && c.Ref.Kind == "ConfigMap":
		addConfiguration(found, c.Before, c.After)
	case c.Ref.Group == "" && c.Ref.Kind == "Service":
		if name := textAt(c.After, "spec", "externalName"); name != "" && name != textAt(c.Before, "spec", "externalName") {
			found["spec.externalName"] = true
		}
	case len(podSpecs(c.After)) == 0 && len(podSpecs(c.Before)) == 0:
	case c.Before == nil && c.CopyOf == nil:
		// A new program changes no running one. Its privileges, Secrets and origin are judged elsewhere.
	default:
		d := fieldDiff{found: found}
		before := c.Before
		if before == nil { // a copy has its own kind's defaults around the pod spec
			before, d.onlyPods = c.CopyOf, true
		}
		d.compareObjects(before, c.After)
	}
	return slices.Sorted(maps.Keys(found))
}

// addConfiguration adds the entries of a ConfigMap that are not harmless: pods take them as variables and files. A new one
// counts too, since pods may wait for it.
func addConfiguration(found set, before, after map[string]any) {
	for _, member := range []string{"data", "binaryData"} {
		old, _ := podSpecOf(before, member).(map[string]any)
		now, _ := podSpecOf(after, member).(map[string]any)
		for key := range mergedKeys(old, now) {
			if valuesDiffer(old[key], now[key]) && !(harmlessSetting(key, old[key]) && harmlessSetting(key, now[key])) {
				found[member+"."+key] = true
			}
		}
	}
}

// fieldDiff collects the changed fields that are not known to be harmless.
type fieldDiff struct {
	found    set
	onlyPods bool
}

func (d fieldDiff) compareObjects(before, after map[string]any) {
	for key := range mergedKeys(before, after) {
		switch key {
		case "status", "apiVersion", "kind":
		case "metadata": // its labels and annotations belong to the object alone; the rest of it is judged elsewhere
		default:
			d.compare(before[key], after[key], []string{key})
		}
	}
}

// compare walks an object to its pod specs, which have separate tables.
func (d fieldDiff) compare(before, after any, path []string) {
	if !valuesDiffer(before, after) {
		return
	}
	old, now := asMap(before), asMap(after)
	switch {
	case isPodSpec(old) || isPodSpec(now):
		d.comparePods(old, now)
		return
	case len(path) > 1 && path[len(path)-2] == "template" && path[len(path)-1] == "metadata":
		d.compareTemplateMetadata(old, now, path)
		return
	case isObject(before) && isObject(after):
		for key := range mergedKeys(old, now) {
			d.compare(old[key], now[key], append(slices.Clone(path), key))
		}
		return
	case isList(before) && isList(after): // a kind with pod specs in a list
		a, b := before.([]any), after.([]any)
		for i := range max(len(a), len(b)) {
			d.compare(elementAt(a, i), elementAt(b, i), append(slices.Clone(path), "*"))
		}
		return
	}
	d.judge(objectFields, path, strings.Join(path, "."))
}

func (d fieldDiff) judge(table map[string]fieldVerdict, path []string, shown string) {
	if d.onlyPods && len(path) > 0 && path[0] == "spec" {
		return
	}
	if len(path) > 2 && path[0] == "spec" && path[1] == "jobTemplate" {
		path = path[2:]
	}
	if lookUp(table, path) == askField {
		d.found[shown] = true
	}
}

// harmlessMetadata lists the annotations of a pod template that change only the revision.
var harmlessMetadata = wordsOf("kubectl.kubernetes.io/restartedAt kubernetes.io/change-cause")

// compareTemplateMetadata judges labels and annotations of a template: an injector or a mesh changes pods by them.
// Labels without a prefix, and the recommended ones, are free for the owner to choose.
func (d fieldDiff) compareTemplateMetadata(before, after map[string]any, path []string) {
	if d.onlyPods {
		return
	}
	for _, member := range []string{"labels", "annotations"} {
		old, now := asMap(before[member]), asMap(after[member])
		for key := range mergedKeys(old, now) {
			own := member == "labels" && (!strings.Contains(key, "/") || strings.HasPrefix(key, "app.kubernetes.io/"))
			if valuesDiffer(old[key], now[key]) && !own && !harmlessMetadata[key] {
				d.found[strings.Join(path, ".")+"."+member+"."+key] = true
			}
		}
	}
}

// comparePods judges the fields of a pod spec.
func (d fieldDiff) comparePods(before, after map[string]any) {
	for key := range mergedKeys(before, after) {
		old, now := before[key], after[key]
		switch {
		case !valuesDiffer(old, now), key == "resources": // which is a separate reason
		case key == "containers":
			d.compareContainers(old, now)
		case lookUp(podFields, []string{key}) == askField:
			d.found["pod "+key] = true
		}
	}
}

func (d fieldDiff) compareContainers(before, after any) {
	old, now, aligned := alignByName(before, after)
	if !aligned {
		d.found["containers"] = true
		return
	}
	for name := range mergedKeys(old, now) {
		was, is := old[name], now[name]
		if was == nil || is == nil {
			d.found["containers."+name] = true
			continue
		}
		for key := range mergedKeys(was, is) {
			d.compareContainer("containers."+name+"."+key, key, was[key], is[key])
		}
	}
}

// compareContainer judges one member of a container. Image and resources are separate reasons.
func (d fieldDiff) compareContainer(shown, key string, before, after any) {
	switch {
	case !valuesDiffer(before, after), key == "image", key == "resources":
	case key == "env":
		d.compareVariables(shown, before, after)
	default:
		for _, field := range changedFields(before, after, []string{key}) {
			if lookUp(containerFields, field) == askField {
				d.found[shown] = true
			}
		}
	}
}

// compareVariables judges each variable separately.
func (d fieldDiff) compareVariables(shown string, before, after any) {
	old, now, aligned := alignByName(before, after)
	if !aligned {
		d.found[shown] = true
		return
	}
	for name := range mergedKeys(old, now) {
		if !valuesDiffer(old[name], now[name]) {
			continue
		}
		for _, variable := range []map[string]any{old[name], now[name]} {
			if variable != nil && (variable["valueFrom"] != nil || !harmlessSetting(name, variable["value"])) {
				d.found[shown+"."+name] = true
			}
		}
	}
}

// changedFields returns the paths below path at which two values differ, down to the first non-object; elements of
// lists are compared by position and written *.
func changedFields(before, after any, path []string) [][]string {
	if !valuesDiffer(before, after) {
		return nil
	}
	var found [][]string
	switch {
	case isObject(before) || isObject(after):
		old, now := asMap(before), asMap(after)
		if before != nil && old == nil || after != nil && now == nil {
			return [][]string{path}
		}
		for key := range mergedKeys(old, now) {
			found = append(found, changedFields(old[key], now[key], append(slices.Clone(path), key))...)
		}
	case isList(before) || isList(after):
		a, okA := before.([]any)
		b, okB := after.([]any)
		if before != nil && !okA || after != nil && !okB {
			return [][]string{path}
		}
		for i := range max(len(a), len(b)) {
			found = append(found, changedFields(elementAt(a, i), elementAt(b, i), append(slices.Clone(path), "*"))...)
		}
	}
	if len(found) == 0 {
		return [][]string{path}
	}
	return found
}

// alignByName pairs the elements of two lists by name. It fails for elements without a name, duplicate names, and
// elements that changed position: variables are expanded in order.
func alignByName(before, after any) (old, now map[string]map[string]any, aligned bool) {
	old, first, ok := byName(before)
	if !ok {
		return nil, nil, false
	}
	now, second, ok := byName(after)
	if !ok {
		return nil, nil, false
	}
	kept := func(list []string, in map[string]map[string]any) []string {
		return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return in[name] == nil })
	}
	return old, now, slices.Equal(kept(first, now), kept(second, old))
}

func byName(v any) (elements map[string]map[string]any, order []string, ok bool) {
	list, isList := v.([]any)
	if !isList && v != nil {
		return nil, nil, false
	}
	elements = map[string]map[string]any{}
	for _, item := range list {
		m := asMap(item)
		name := textAt(m, "name")
		if name == "" || elements[name] != nil {
			return nil, nil, false
		}
		elements[name] = m
		order = append(order, name)
	}
	return elements, order, true
}

// Patterns for harmless settings. A name alone does not show what a program does with it, and a value can be a file, a
// host or an option, so names and values count together: a credential leads nowhere, nor does a measure or a level
// under a name that marks it as one. A single word may be the name of a Service, a number may be a port, an address or
// a switch.
var (
	measureNames    = wordsOf("level verbosity timeout interval delay period ttl retries attempts backoff workers threads concurrency parallelism replicas size limit count")
	measureValues   = regexp.MustCompile(`^(?:[0-9]{1,12}(?:\.[0-9]{1,6})?(?:ns|us|ms|s|m|h|d|[kKMGT]i?B?|B|%)?|(?i:trace|debug|info|notice|warn|warning|error|critical|fatal))$`)
	credentialNames = wordsOf("password passwd passphrase secret token user username")
	lastWord        = regexp.MustCompile(`[A-Za-z]+$`)
	camelWord       = regexp.MustCompile(`[A-Z]?[a-z]+$`)
)

// harmlessSetting reports whether a variable, or an entry of a ConfigMap, is harmless; an absent value is.
func harmlessSetting(name string, value any) bool {
	if value == nil {
		return true
	}
	text, ok := value.(string)
	word := lastWord.FindString(name)
	if word != strings.ToUpper(word) {
		word = camelWord.FindString(word)
	}
	word = strings.ToLower(word)
	return ok && (credentialNames[word] || measureNames[word] && measureValues.MatchString(text))
}

func wordsOf(text string) set {
	words := set{}
	for w := range strings.FieldsSeq(text) {
		words[w] = true
	}
	return words
}

func isPodSpec(m map[string]any) bool { _, ok := m["containers"].([]any); return ok }

func isObject(v any) bool { _, ok := v.(map[string]any); return ok }

func isList(v any) bool { _, ok := v.([]any); return ok }

func asMap(v any) map[string]any { m, _ := v.(map[string]any); return m }

func elementAt(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}

func mergedKeys[V any](a, b map[string]V) set {
	keys := set{}
	for k := range a {
		keys[k] = true
	}
	for k := range b {
		keys[k] = true
	}
	return keys
}
