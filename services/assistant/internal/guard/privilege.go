package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type set = map[string]bool

// Gains lists, sorted, the new abilities of an object's pods after a change: privilege, host paths, host namespaces,
// capabilities, another service account, a lost restriction. A nil before is a created object; the defaults of every
// pod are then no gain.
func Gains(before, after map[string]any) []string {
	gained := set{}
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		was, existed := old[path]
		had := set{"service account default": true}
		if existed {
			had = podPowers(was)
		}
		for p := range podPowers(spec) {
			if !had[p] {
				gained[p] = true
			}
		}
		if existed {
			addLostRestrictions(gained, was, spec)
		}
	}
	// A cluster-wide volume reaches the host without any pod spec.
	for _, source := range []string{"hostPath", "local"} {
		if p := textAt(after, "spec", source, "path"); p != "" && p != textAt(before, "spec", source, "path") {
			gained["host path "+p] = true
		}
	}
	if driver := textAt(after, "spec", "flexVolume", "driver"); driver != "" && driver != textAt(before, "spec", "flexVolume", "driver") {
		gained["volume driver "+driver+" on the host"] = true
	}
	for key, profile := range appArmor(after) {
		if strings.HasPrefix(profile, "unconfined") && appArmor(before)[key] != profile {
			gained["no AppArmor profile ("+key+")"] = true
		}
	}
	return slices.Sorted(maps.Keys(gained))
}

// appArmor reads the annotations that preceded the AppArmor field, of the object and of its
// templates.
func appArmor(object map[string]any) map[string]string {
	const prefix = "container.apparmor.security.beta.kubernetes.io/"
	found := map[string]string{}
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}, {"spec", "jobTemplate", "spec", "template", "metadata"}, {"template", "metadata"}} {
		annotations, _ := podSpecOf(object, append(path, "annotations")...).(map[string]any)
		for key, v := range annotations {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				found[name], _ = v.(string)
			}
		}
	}
	return found
}

// podPowers returns the abilities that a pod spec grants beyond those of a plain pod.
func podPowers(spec map[string]any) set {
	p := set{"service account " + serviceAccountOf(spec): true}
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} {
		if spec[name] == true {
			p[name] = true
		}
	}
	hostPaths := map[string]string{}
	for _, v := range objectList(spec["volumes"]) {
		if path := textAt(v, "hostPath", "path"); path != "" {
			p["host path "+path] = true
			hostPaths[textAt(v, "name")] = path
		}
		if driver := textAt(v, "flexVolume", "driver"); driver != "" {
			p["volume driver "+driver+" on the host"] = true
		}
		for _, s := range objectList(podSpecOf(v, "projected", "sources")) {
			if spec["automountServiceAccountToken"] == false && podSpecOf(s, "serviceAccountToken") != nil {
				p["a token of its service account"] = true
			}
		}
	}
	addSecurityContext(p, "the pod", podSpecOf(spec, "securityContext"))
	for _, s := range objectList(podSpecOf(spec, "securityContext", "sysctls")) {
		p["sysctl "+textAt(s, "name")+"="+textAt(s, "value")] = true
	}
	for name, c := range containersOf(spec) {
		addSecurityContext(p, "container "+name, c["securityContext"])
		for _, m := range objectList(c["volumeMounts"]) {
			if path, ok := hostPaths[textAt(m, "name")]; ok && m["readOnly"] != true {
				p["writing to host path "+path+" in container "+name] = true
			}
		}
		for _, port := range objectList(c["ports"]) {
			if n := port["hostPort"]; n != nil && fmt.Sprint(n) != "0" {
				p["host port "+fmt.Sprint(n)] = true
			}
		}
	}
	return p
}

func serviceAccountOf(spec map[string]any) string {
	for _, key := range []string{"serviceAccountName", "serviceAccount"} {
		if name := textAt(spec, key); name != "" {
			return name
		}
	}
	return "default"
}

// addSecurityContext adds what a security context grants; pods and containers share its members.
func addSecurityContext(p set, who string, context any) {
	for _, grant := range []struct {
		path  []string
		value any
		is    string
	}{
		{[]string{"privileged"}, true, "privileged mode"},
		{[]string{"allowPrivilegeEscalation"}, true, "privilege escalation"},
		{[]string{"procMount"}, "Unmasked", "an unmasked /proc"},
		{[]string{"seccompProfile", "type"}, "Unconfined", "no seccomp profile"},
		{[]string{"appArmorProfile", "type"}, "Unconfined", "no AppArmor profile"},
		{[]string{"windowsOptions", "hostProcess"}, true, "a host process"},
	} {
		if podSpecOf(context, grant.path...) == grant.value {
			p[grant.is+" for "+who] = true
		}
	}
	if user := podSpecOf(context, "runAsUser"); user != nil && fmt.Sprint(user) == "0" {
		p["user 0 for "+who] = true
	}
	for _, field := range []string{"runAsGroup", "fsGroup"} {
		if group := podSpecOf(context, field); group != nil && fmt.Sprint(group) == "0" {
			p["group 0 for "+who] = true
		}
	}
	groups, _ := podSpecOf(context, "supplementalGroups").([]any)
	if slices.ContainsFunc(groups, func(g any) bool { return fmt.Sprint(g) == "0" }) {
		p["group 0 for "+who] = true
	}
	for _, c := range textList(podSpecOf(context, "capabilities", "add")) {
		p["capability "+c+" for "+who] = true
	}
	if options := podSpecOf(context, "seLinuxOptions"); options != nil {
		// Maps are encoded with sorted keys, so equal options have equal text.
		if raw, err := json.Marshal(options); err == nil {
			p["SELinux options "+string(raw)+" for "+who] = true
		}
	}
}

// addLostRestrictions adds the restrictions that the pod or a container no longer has. A new container must keep those
// that all the earlier ones shared.
func addLostRestrictions(gained set, before, after map[string]any) {
	for _, name := range []string{"automountServiceAccountToken", "hostUsers"} {
		if before[name] == false && after[name] != false {
			gained["the loss of "+name+"=false"] = true
		}
	}
	if textAt(before, "runtimeClassName") != textAt(after, "runtimeClassName") {
		gained["the loss of the runtime class "+cmp.Or(textAt(before, "runtimeClassName"), "default")] = true
	}
	had := map[string]set{}
	var shared set
	for name, c := range containersOf(before) {
		had[name] = restrictionsOf(before, c)
		if shared == nil {
			shared = maps.Clone(had[name])
		}
		maps.DeleteFunc(shared, func(r string, _ bool) bool { return !had[name][r] })
	}
	for name, c := range containersOf(after) {
		want, existed := had[name]
		if !existed {
			want = shared
		}
		has := restrictionsOf(after, c)
		for r := range want {
			if !has[r] {
				gained["the loss of "+r+" for container "+name] = true
			}
		}
	}
}

// restrictionsOf returns the restrictions of a container; the pod's apply where the container
// sets none.
func restrictionsOf(spec, container map[string]any) set {
	effective := func(path ...string) any {
		if v := podSpecOf(container["securityContext"], path...); v != nil {
			return v
		}
		return podSpecOf(spec["securityContext"], path...)
	}
	r := set{}
	if effective("runAsNonRoot") == true {
		r["runAsNonRoot"] = true
	}
	if user := effective("runAsUser"); user != nil && fmt.Sprint(user) != "0" {
		r["a user other than root"] = true
	}
	if podSpecOf(container["securityContext"], "allowPrivilegeEscalation") == false {
		r["allowPrivilegeEscalation=false"] = true
	}
	if kind, _ := effective("seccompProfile", "type").(string); kind == "RuntimeDefault" || kind == "Localhost" {
		r["a seccomp profile"] = true
	}
	for _, c := range textList(podSpecOf(container["securityContext"], "capabilities", "drop")) {
		r["dropped capability "+c] = true
	}
	return r
}
