package playbook_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/mlp-platform/platform/services/assistant/internal/assistanttest"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// readSnapshot reads the objects of testdata/file.yaml in the form that a cluster returns.
func readSnapshot(t testing.TB, file string) *engine.Snapshot {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := &engine.Snapshot{
		Taken: time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC), Logs: map[engine.Log]string{}, Unread: map[string]bool{},
	}
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		if assistanttest.AddCustomObject(t, s, doc) {
			continue
		}
		o, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v in %s", file, err, doc)
		}
		if secret, ok := o.(*corev1.Secret); ok {
			s.Secrets = append(s.Secrets, engine.SecretKeys{Namespace: secret.Namespace, Name: secret.Name, Keys: slices.Collect(maps.Keys(secret.Data))})
			continue
		}
		putObject(t, s, o)
	}
	return s
}

// putObject adds an object to the list of its type.
func putObject(t testing.TB, s *engine.Snapshot, o runtime.Object) {
	t.Helper()
	value := reflect.ValueOf(o).Elem()
	for _, list := range listFields(s) {
		if list.Type().Elem() == value.Type() {
			list.Set(reflect.Append(list, value))
			return
		}
	}
	t.Fatalf("no place for %T", o)
}

// listFields returns the lists of a snapshot.
func listFields(s *engine.Snapshot) []reflect.Value {
	var all []reflect.Value
	for _, field := range reflect.ValueOf(s).Elem().Fields() {
		if field.Kind() == reflect.Slice {
			all = append(all, field)
		}
	}
	return all
}

// joinSnapshots merges the objects of several clusters.
func joinSnapshots(all ...*engine.Snapshot) *engine.Snapshot {
	s := &engine.Snapshot{Taken: all[0].Taken, Logs: map[engine.Log]string{}, Unread: map[string]bool{}}
	to := listFields(s)
	for _, o := range all {
		for i, from := range listFields(o) {
			to[i].Set(reflect.AppendSlice(to[i], from))
		}
		maps.Copy(s.Logs, o.Logs)
	}
	return s
}

// cloneSnapshot copies a snapshot, so that changes do not affect the original.
func cloneSnapshot(s *engine.Snapshot) *engine.Snapshot {
	c := &engine.Snapshot{Taken: s.Taken, Logs: maps.Clone(s.Logs), Unread: maps.Clone(s.Unread)}
	to := listFields(c)
	for i, from := range listFields(s) {
		for j := range from.Len() {
			o := from.Index(j)
			if deep := o.Addr().MethodByName("DeepCopy"); deep.IsValid() {
				o = deep.Call(nil)[0].Elem()
			}
			to[i].Set(reflect.Append(to[i], o))
		}
	}
	return c
}

// shuffleSnapshot reorders every list of a snapshot, the same way for each seed.
func shuffleSnapshot(s *engine.Snapshot, seed uint64) *engine.Snapshot {
	random := rand.New(rand.NewPCG(seed, seed))
	for _, list := range listFields(s) {
		random.Shuffle(list.Len(), reflect.Swapper(list.Interface()))
	}
	return s
}

// writeLogs sets every log that the snapshot wants to the same text.
func writeLogs(s *engine.Snapshot, log string) *engine.Snapshot {
	for _, want := range s.Wants() {
		s.Logs[want] = log
	}
	return s
}
