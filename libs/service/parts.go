package service

import (
	"fmt"
	"reflect"
	"strings"
)

// RequireParts reports the members of the struct parts that are nil, so that a
// constructor refuses them at the start and not at the first request. A member with
// the tag `part:"optional"` may be nil. owner names the object made from the parts.
func RequireParts(owner string, parts any) error {
	v := reflect.ValueOf(parts)
	var missing []string
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue // the package's own state, not a part that was handed in
		}
		switch field.Type.Kind() {
		case reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer:
			if v.Field(i).IsNil() && field.Tag.Get("part") != "optional" {
				missing = append(missing, field.Name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: missing parts: %s", owner, strings.Join(missing, ", "))
	}
	return nil
}
