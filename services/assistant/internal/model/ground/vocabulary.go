package ground

import (
	"reflect"
	"strings"
	"sync"
	"unicode"

	corev1 "k8s.io/api/core/v1"
)

// apiWords returns the words that make up the names of API fields, such as anti and affinity.
var apiWords = sync.OnceValue(func() map[string]bool {
	words, seen := map[string]bool{}, map[reflect.Type]bool{}
	for _, v := range []any{corev1.Pod{}, corev1.Node{}, corev1.Service{}, corev1.PersistentVolumeClaim{}} {
		addFieldWords(words, seen, reflect.TypeOf(v))
	}
	return words
})

func addFieldWords(words map[string]bool, seen map[reflect.Type]bool, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		name := t.Field(i).Name
		for w := range strings.FieldsSeq(strings.Map(func(c rune) rune {
			if unicode.IsLetter(c) {
				return c
			}
			return ' '
		}, spaced(name))) {
			words[strings.ToLower(w)] = true
		}
		addFieldWords(words, seen, t.Field(i).Type)
	}
}

// spaced inserts blanks before the capitals of a name.
func spaced(name string) string {
	var b strings.Builder
	for _, c := range name {
		if unicode.IsUpper(c) {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
	}
	return b.String()
}
