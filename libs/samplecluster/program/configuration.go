package program

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Source reads configuration from the namespace of a pod. Both functions return nil for an object that is not there; an error
// means that the cluster did not answer.
type Source struct {
	ConfigMap func(name string) (*corev1.ConfigMap, error)
	Secret    func(name string) (*corev1.Secret, error)
}

// ResolveEnvironment returns the variables of a container, or what is missing for them in the kubelet's words.
func (s Source) ResolveEnvironment(namespace string, spec *corev1.Container) (env map[string]string, missing string, err error) {
	env = map[string]string{}
	for _, from := range spec.EnvFrom {
		missing, err := s.addAll(env, from)
		if missing != "" || err != nil {
			return nil, missing, err
		}
	}
	for _, e := range spec.Env {
		env[e.Name] = e.Value
		if e.ValueFrom == nil {
			continue
		}
		value, found, missing, err := s.readVariable(namespace, e.ValueFrom)
		if missing != "" || err != nil {
			return nil, missing, err
		}
		if found {
			env[e.Name] = value
		}
	}
	return env, "", nil
}

// addAll adds every entry of an object to env.
func (s Source) addAll(env map[string]string, from corev1.EnvFromSource) (missing string, err error) {
	if r := from.ConfigMapRef; r != nil {
		m, err := s.ConfigMap(r.Name)
		if err != nil {
			return "", err
		}
		if m == nil && !isTrue(r.Optional) {
			return fmt.Sprintf("configmap %q not found", r.Name), nil
		}
		if m != nil {
			for k, v := range m.Data {
				env[from.Prefix+k] = v
			}
		}
	}
	if r := from.SecretRef; r != nil {
		m, err := s.Secret(r.Name)
		if err != nil {
			return "", err
		}
		if m == nil && !isTrue(r.Optional) {
			return fmt.Sprintf("secret %q not found", r.Name), nil
		}
		if m != nil {
			for k, v := range m.Data {
				env[from.Prefix+k] = string(v)
			}
		}
	}
	return "", nil
}

// readVariable returns the value that one variable refers to. What is optional and absent is neither found nor missing.
func (s Source) readVariable(namespace string, from *corev1.EnvVarSource) (value string, found bool, missing string, err error) {
	if r := from.ConfigMapKeyRef; r != nil {
		m, err := s.ConfigMap(r.Name)
		switch {
		case err != nil:
			return "", false, "", err
		case m == nil && isTrue(r.Optional):
			return "", false, "", nil
		case m == nil:
			return "", false, fmt.Sprintf("configmap %q not found", r.Name), nil
		}
		v, ok := m.Data[r.Key]
		if !ok && !isTrue(r.Optional) {
			return "", false, fmt.Sprintf("couldn't find key %s in ConfigMap %s/%s", r.Key, namespace, r.Name), nil
		}
		return v, true, "", nil
	}
	if r := from.SecretKeyRef; r != nil {
		m, err := s.Secret(r.Name)
		switch {
		case err != nil:
			return "", false, "", err
		case m == nil && isTrue(r.Optional):
			return "", false, "", nil
		case m == nil:
			return "", false, fmt.Sprintf("secret %q not found", r.Name), nil
		}
		v, ok := m.Data[r.Key]
		if !ok && !isTrue(r.Optional) {
			return "", false, fmt.Sprintf("couldn't find key %s in Secret %s/%s", r.Key, namespace, r.Name), nil
		}
		return string(v), true, "", nil
	}
	return "", false, "", nil // fields of the pod are not acted out
}

// MountFailure returns, in the kubelet's words, why one of the volumes cannot be mounted, or "".
func (s Source) MountFailure(volumes []corev1.Volume) (string, error) {
	for _, v := range volumes {
		var failure string
		var err error
		switch {
		case v.ConfigMap != nil && !isTrue(v.ConfigMap.Optional):
			failure, err = s.configMapFailure(v.ConfigMap)
		case v.Secret != nil && !isTrue(v.Secret.Optional):
			failure, err = s.secretFailure(v.Secret)
		}
		if failure != "" || err != nil {
			return fmt.Sprintf("MountVolume.SetUp failed for volume %q : %s", v.Name, failure), err
		}
	}
	return "", nil
}

func (s Source) configMapFailure(v *corev1.ConfigMapVolumeSource) (string, error) {
	m, err := s.ConfigMap(v.Name)
	if err != nil {
		return "", err
	}
	if m == nil {
		return fmt.Sprintf("configmap %q not found", v.Name), nil
	}
	for _, item := range v.Items {
		_, text := m.Data[item.Key]
		_, binary := m.BinaryData[item.Key]
		if !text && !binary {
			return "configmap references non-existent config key: " + item.Key, nil
		}
	}
	return "", nil
}

func (s Source) secretFailure(v *corev1.SecretVolumeSource) (string, error) {
	m, err := s.Secret(v.SecretName)
	if err != nil {
		return "", err
	}
	if m == nil {
		return fmt.Sprintf("secret %q not found", v.SecretName), nil
	}
	for _, item := range v.Items {
		if _, ok := m.Data[item.Key]; !ok {
			return "references non-existent secret key: " + item.Key, nil
		}
	}
	return "", nil
}

func isTrue(b *bool) bool { return b != nil && *b }
