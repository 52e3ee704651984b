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

// Gains lists, sorted, what the pods of an object may do after a change that they
// could not do before: privilege, host paths, host namespaces, capabilities, another
// service account, a lost restriction. A nil before is an object that is created; what
// every pod has by default is then no gain.
func Gains(before, after map[string]any) []string {
	gained := set{}
	old := podSpecs(before)
	for path, spec := range podSpecs(after) {
		was, existed := old[path]
		had := set{"service account default": true}
		if existed {
			had = powers(was)
		}
		for p := range powers(spec) {
			if !had[p] {
				gained[p] = true
			}
		}
		if existed {
			lost(gained, was, spec)
		}
	}
	// A volume of the cluster reaches the host without any pod spec.
	for _, source := range []string{"hostPath", "local"} {
		if p := text(after, "spec", source, "path"); p != "" && p != text(before, "spec", source, "path") {
			gained["host path "+p] = true
		}
	}
	if driver := text(after, "spec", "flexVolume", "driver"); driver != "" && driver != text(before, "spec", "flexVolume", "driver") {
		gained["volume driver "+driver+" on the host"] = true
	}
	for key, profile := range appArmor(after) {
		if strings.HasPrefix(profile, "unconfined") && appArmor(before)[key] != profile {
			gained["no AppArmor profile ("+key+")"] = true
		}
	}
	return slices.Sorted(maps.Keys(gained))
}

// appArmor reads the annotations that stood for the field before it existed, of the
// object and of its templates.
func appArmor(object map[string]any) map[string]string {
	const prefix = "container.apparmor.security.beta.kubernetes.io/"
	found := map[string]string{}
	for _, path := range [][]string{{"metadata"}, {"spec", "template", "metadata"}, {"spec", "jobTemplate", "spec", "template", "metadata"}, {"template", "metadata"}} {
		annotations, _ := at(object, append(path, "annotations")...).(map[string]any)
		for key, v := range annotations {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				found[name], _ = v.(string)
			}
		}
	}
	return found
}

// powers are the abilities that a pod spec grants beyond a plain pod's.
func powers(spec map[string]any) set {
	p := set{"service account " + account(spec): true}
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} {
		if spec[name] == true {
			p[name] = true
		}
	}
	hostPaths := map[string]string{}
	for _, v := range objects(spec["volumes"]) {
		if path := text(v, "hostPath", "path"); path != "" {
			p["host path "+path] = true
			hostPaths[text(v, "name")] = path
		}
		if driver := text(v, "flexVolume", "driver"); driver != "" {
			p["volume driver "+driver+" on the host"] = true
		}
		for _, s := range objects(at(v, "projected", "sources")) {
			if spec["automountServiceAccountToken"] == false && at(s, "serviceAccountToken") != nil {
				p["a token of its service account"] = true
			}
		}
	}
	security(p, "the pod", at(spec, "securityContext"))
	for _, s := range objects(at(spec, "securityContext", "sysctls")) {
		p["sysctl "+text(s, "name")+"="+text(s, "value")] = true
	}
	for name, c := range containersOf(spec) {
		security(p, "container "+name, c["securityContext"])
		for _, m := range objects(c["volumeMounts"]) {
			if path, ok := hostPaths[text(m, "name")]; ok && m["readOnly"] != true {
				p["writing to host path "+path+" in container "+name] = true
			}
		}
		for _, port := range objects(c["ports"]) {
			if n := port["hostPort"]; n != nil && fmt.Sprint(n) != "0" {
				p["host port "+fmt.Sprint(n)] = true
			}
		}
	}
	return p
}

func account(spec map[string]any) string {
	for _, key := range []string{"serviceAccountName", "serviceAccount"} {
		if name := text(spec, key); name != "" {
			return name
		}
	}
	return "default"
}

// security adds what a security context grants; pods and containers share its members.
func security(p set, who string, context any) {
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
		if at(context, grant.path...) == grant.value {
			p[grant.is+" for "+who] = true
		}
	}
	if user := at(context, "runAsUser"); user != nil && fmt.Sprint(user) == "0" {
		p["user 0 for "+who] = true
	}
	for _, field := range []string{"runAsGroup", "fsGroup"} {
		if group := at(context, field); group != nil && fmt.Sprint(group) == "0" {
			p["group 0 for "+who] = true
		}
	}
	groups, _ := at(context, "supplementalGroups").([]any)
	if slices.ContainsFunc(groups, func(g any) bool { return fmt.Sprint(g) == "0" }) {
		p["group 0 for "+who] = true
	}
	for _, c := range texts(at(context, "capabilities", "add")) {
		p["capability "+c+" for "+who] = true
	}
	if options := at(context, "seLinuxOptions"); options != nil {
		// Maps encode with sorted keys, so equal options make equal text.
		if raw, err := json.Marshal(options); err == nil {
			p["SELinux options "+string(raw)+" for "+who] = true
		}
	}
}

// lost adds the restrictions that the pod or a container no longer has. A container
// that is new must keep what all the earlier ones shared.
func lost(gained set, before, after map[string]any) {
	for _, name := range []string{"automountServiceAccountToken", "hostUsers"} {
		if before[name] == false && after[name] != false {
			gained["the loss of "+name+"=false"] = true
		}
	}
	if text(before, "runtimeClassName") != text(after, "runtimeClassName") {
		gained["the loss of the runtime class "+cmp.Or(text(before, "runtimeClassName"), "default")] = true
	}
	had := map[string]set{}
	var shared set
	for name, c := range containersOf(before) {
		had[name] = restrictions(before, c)
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
		has := restrictions(after, c)
		for r := range want {
			if !has[r] {
				gained["the loss of "+r+" for container "+name] = true
			}
		}
	}
}

// restrictions are what holds a container back; the pod's own count where the
// container says nothing.
func restrictions(spec, container map[string]any) set {
	effective := func(path ...string) any {
		if v := at(container["securityContext"], path...); v != nil {
			return v
		}
		return at(spec["securityContext"], path...)
	}
	r := set{}
	if effective("runAsNonRoot") == true {
		r["runAsNonRoot"] = true
	}
	if user := effective("runAsUser"); user != nil && fmt.Sprint(user) != "0" {
		r["a user other than root"] = true
	}
	if at(container["securityContext"], "allowPrivilegeEscalation") == false {
		r["allowPrivilegeEscalation=false"] = true
	}
	if kind, _ := effective("seccompProfile", "type").(string); kind == "RuntimeDefault" || kind == "Localhost" {
		r["a seccomp profile"] = true
	}
	for _, c := range texts(at(container["securityContext"], "capabilities", "drop")) {
		r["dropped capability "+c] = true
	}
	return r
}
